# SPDX-License-Identifier: Apache-2.0
"""Collections of the cupti collector: one file per process, and each machine code image under its hash."""

from __future__ import annotations

from gpadvisor.store.collection.files import HOST_LINES, HostLine, Live, is_collection, live_counters
from gpadvisor.store.collection.picks import Picks, write_picks
from gpadvisor.store.collection.profile import read_collection
from gpadvisor.store.collection.summary import CollectionSummary, summarize_collection

__all__ = [
    "HOST_LINES",
    "CollectionSummary",
    "HostLine",
    "Live",
    "Picks",
    "is_collection",
    "live_counters",
    "read_collection",
    "summarize_collection",
    "write_picks",
]
