# SPDX-License-Identifier: Apache-2.0
"""Records that a run may have millions of, such as the nodes of its graphs, in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.store.collection import layout

_MERGE_FROM: Final = 1 << 20
"""Rows of samples beyond which those of one place are added up."""
_SUMS: Final = np.dtype(
    [(name, "<u8" if name == "samples" else layout.SAMPLE[name]) for name in layout.SAMPLE.names or ()]
)
_KEYS: Final = tuple(name for name in _SUMS.names or () if name != "samples")


class KernelRow(NamedTuple):
    """One execution of a kernel, as the activity API reports it."""

    correlation: int
    device: int
    context: int
    stream: int
    start_ns: int
    end_ns: int
    name: int
    graph: int
    registers: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    static_shared: int
    dynamic_shared: int
    shared_executed: int


class KernelRows:
    """Executions as they were recorded: the nodes of graphs can be many millions."""

    def __init__(self) -> None:
        self._records = bytearray()

    def add(self, payload: memoryview) -> None:
        """Take one record.

        Raises:
            ValueError: it holds too little.
        """
        if len(payload) < layout.KERNEL.size:
            raise ValueError(f"{len(payload)} bytes of {layout.KERNEL.size}")
        self._records += payload[: layout.KERNEL.size]

    def __len__(self) -> int:
        return len(self._records) // layout.KERNEL.size

    def __iter__(self) -> Iterator[KernelRow]:
        for row in layout.KERNEL.iter_unpack(self._records):
            # row[7] is the graph's node, which nothing needs.
            shapes = row[10:13], row[13:16], row[16:19]
            yield KernelRow._make((*row[:7], row[8], row[9], *shapes, *row[19:22]))


class SampleRows:
    """Rows of samples by context; of many, those of one instruction, launch and reason are added up."""

    def __init__(self) -> None:
        self._parts: dict[int, list[NDArray[np.void]]] = {}
        self._rows = 0
        self._merge_from = _MERGE_FROM

    def add(self, context: int, rows: NDArray[np.void]) -> None:
        """Take rows of `layout.SAMPLE`; they are copied."""
        self._parts.setdefault(context, []).append(rows.astype(_SUMS))
        self._rows += len(rows)
        if self._rows > self._merge_from:
            self._parts = {context: [_merged(parts)] for context, parts in self._parts.items()}
            self._rows = sum(len(part) for parts in self._parts.values() for part in parts)
            self._merge_from = max(_MERGE_FROM, 2 * self._rows)

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.void]]]:
        """Each context with its rows, whose samples are 64 bits wide."""
        for context, parts in self._parts.items():
            yield context, np.concatenate(parts)


def _merged(parts: list[NDArray[np.void]]) -> NDArray[np.void]:
    rows = np.concatenate(parts)
    rows = rows[np.lexsort([rows[name] for name in _KEYS])]
    changes = [rows[name][1:] != rows[name][:-1] for name in _KEYS]
    begins = np.flatnonzero(np.concatenate(([True], np.logical_or.reduce(changes))))
    sums = rows[begins]
    sums["samples"] = np.add.reduceat(rows["samples"], begins)
    return sums
