# SPDX-License-Identifier: Apache-2.0
"""Collections of the cupti collector: one file per process, and each machine code image under its hash."""

from __future__ import annotations

from gpadvisor.store.collection.files import Live, is_collection, live_counters
from gpadvisor.store.collection.profile import collection_notes, read_collection

__all__ = ["Live", "collection_notes", "is_collection", "live_counters", "read_collection"]
