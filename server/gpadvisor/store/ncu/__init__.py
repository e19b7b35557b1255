# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute reports, read from the documented file format without NVIDIA's library."""
