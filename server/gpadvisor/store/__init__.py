# SPDX-License-Identifier: Apache-2.0
"""Profile formats: Nsight Compute reports and gpadvisor's own snapshot, files to values and back."""

from __future__ import annotations

from gpadvisor.store.isolation import being_read, load_profile_isolated
from gpadvisor.store.load import load_bytes, load_profile
from gpadvisor.store.snapshot import export_snapshot, write_snapshot

__all__ = [
    "being_read",
    "export_snapshot",
    "load_bytes",
    "load_profile",
    "load_profile_isolated",
    "write_snapshot",
]
