# SPDX-License-Identifier: Apache-2.0
"""One file for each feature: what a snapshot says to a request. No waiting, no files, no processes."""
