# SPDX-License-Identifier: Apache-2.0
"""Profile formats: Nsight Compute reports and gpadvisor's own snapshot, files to values and back."""
