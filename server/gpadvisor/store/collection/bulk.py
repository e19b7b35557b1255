# SPDX-License-Identifier: Apache-2.0
"""Records that a run may have millions of, such as the nodes of its graphs, in little memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.store.collection import layout

_MERGE_FROM: Final = 1 << 20
"""Rows of samples beyond which those of one place are added up."""
_PART: Final = 1 << 13
"""Records that are objects of Python at a time."""
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


class PlainRows:
    """Records of one kind as they were recorded, of so many bytes each."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._records = bytearray()

    def add(self, payload: memoryview) -> None:
        """Take one record.

        Raises:
            ValueError: it holds too little.
        """
        if len(payload) < self._size:
            raise ValueError(f"{len(payload)} bytes of {self._size}")
        self._records += payload[: self._size]

    def __len__(self) -> int:
        return len(self._records) // self._size

    def values(self, form: struct.Struct) -> Iterator[tuple[int, ...]]:
        """The numbers of each."""
        return form.iter_unpack(self._records)

    def columns(self, form: np.dtype[np.void]) -> NDArray[np.void]:
        """All of them, by the names of their numbers."""
        return np.frombuffer(bytes(self._records), form)

    def parts(self, form: np.dtype[np.void]) -> Iterator[NDArray[np.void]]:
        """The same, some thousands of records at a time."""
        step = _PART * self._size
        for start in range(0, len(self._records), step):
            yield np.frombuffer(self._records[start : start + step], form)


class KernelRows(PlainRows):
    """Executions as they were recorded: the nodes of graphs can be many millions."""

    def __init__(self) -> None:
        super().__init__(layout.KERNEL.itemsize)

    def __iter__(self) -> Iterator[KernelRow]:
        for records in self.parts(layout.KERNEL):
            columns = [records[name].tolist() for name in KernelRow._fields]
            sizes = [map(tuple, column) if isinstance(column[0], list) else column for column in columns]
            yield from map(KernelRow._make, zip(*sizes, strict=True))


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
