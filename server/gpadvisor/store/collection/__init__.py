# SPDX-License-Identifier: Apache-2.0
"""Collections of the cupti collector: one file per process, and each machine code image under its hash."""
