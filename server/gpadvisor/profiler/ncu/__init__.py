# SPDX-License-Identifier: Apache-2.0
"""The collector that runs the user's Nsight Compute and keeps its report."""
