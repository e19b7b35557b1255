# SPDX-License-Identifier: Apache-2.0
"""What a collector wants to know of a collection, without making a profile of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpadvisor.store.collection import files
from gpadvisor.store.collection.notes import sentences
from gpadvisor.store.collection.process import read_process
from gpadvisor.store.collection.stacks import module_of
from gpadvisor.store.collection.unfinished import unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSummary:
    """What a collector wants to know of what it has just collected."""

    notes: tuple[str, ...]  # what stood in the way, a sentence each
    host_addresses: Mapping[str, frozenset[int]]  # by module, offsets of native frames in its image
    kernels: frozenset[str]  # mangled names of what was launched


def summarize_collection(path: Path) -> CollectionSummary:
    """Notes of a collection, and the native frames that could be named better.

    Raises:
        ProfileFormatError: there is nothing of the cupti collector in it.
    """
    processes = tuple(read_process(files.read_bounded(entry)) for entry in files.process_files(path))
    addresses: dict[str, set[int]] = {}
    for process in processes:
        for symbol in process.symbols.values():
            addresses.setdefault(module_of(process, symbol) or "", set()).add(symbol.offset)
    return CollectionSummary(
        notes=(*sentences(processes), *(problem.message for problem in unfinished(processes))),
        host_addresses={module: frozenset(offsets) for module, offsets in addresses.items() if module},
        kernels=frozenset(
            name
            for process in processes
            for identifier in {row.name for row in process.launches} | {row.name for row in process.kernels}
            if (name := process.name(identifier)) is not None
        ),
    )
