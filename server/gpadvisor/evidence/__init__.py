# SPDX-License-Identifier: Apache-2.0
"""What rules ask of a kernel: patterns of its machine code, beside what was measured of it."""
