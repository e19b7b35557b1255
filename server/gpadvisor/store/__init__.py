# SPDX-License-Identifier: Apache-2.0
"""Profile formats: Nsight Compute reports and gpadvisor's own snapshot, files to values and back."""

from __future__ import annotations

from gpadvisor.store.load import load_bytes, load_profile

__all__ = ["load_bytes", "load_profile"]
