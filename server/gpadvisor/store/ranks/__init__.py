# SPDX-License-Identifier: Apache-2.0
"""Snapshots of many ranks as one: sums and extremes over them (Zhou et al., HPCToolkit on GPUs)."""
