# SPDX-License-Identifier: Apache-2.0
"""From device addresses to offsets in the sections of a cubin.

A report states addresses. Newer ones also state where each symbol was loaded; older ones store the cubin with
the addresses already in its symbol table; both may state the addresses of the launch's functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.cubin import CodeSection, CodeSymbol, Cubin
from gpadvisor.store.ncu.report import LoadedFunction


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where the sections of one module lay in memory, as columns sorted by start address."""

    names: tuple[str, ...]
    start: NDArray[np.uint64]
    end: NDArray[np.uint64]  # first address behind the section

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Row of the section and offset in it; row -1 and the address itself where no section is."""
        if not self.names:
            return np.full(len(addresses), -1, np.int64), addresses
        row = np.searchsorted(self.start, addresses, side="right").astype(np.int64) - 1
        inside = (row >= 0) & (addresses < self.end[np.maximum(row, 0)])
        offset = np.where(inside, addresses - self.start[np.maximum(row, 0)], addresses)
        return np.where(inside, row, -1), offset


NOWHERE: Final = Placement((), np.zeros(0, np.uint64), np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class SectionCandidates:
    """Start addresses that a module's own data implies, by ELF section index."""

    cubin: Cubin
    starts: Mapping[int, tuple[int, ...]]

    def settled(self) -> Placement | None:
        """The placement if no section has a choice of addresses; most modules are launched many times."""
        if any(len(starts) > 1 for starts in self.starts.values()):
            return None
        return place(self, [], "", np.zeros(0, np.uint64))


def candidates_of(cubin: Cubin, functions: Iterable[LoadedFunction]) -> SectionCandidates:
    """Gather what relocation data and the symbol table say, in this order of trust."""
    related = _from_relocation_data(cubin, functions)
    starts: dict[int, tuple[int, ...]] = {}
    for section in cubin.sections:
        loaded = [section.load_address] if section.load_address else []
        starts[section.index] = tuple(dict.fromkeys([*related.get(section.index, ()), *loaded]))
    return SectionCandidates(cubin, starts)


def place(
    module: SectionCandidates, function_addresses: Sequence[int], kernel: str, sampled: NDArray[np.uint64]
) -> Placement:
    """Decide the start address of each section; where sources differ, the sampled addresses decide."""
    rows: list[tuple[int, int, str]] = []
    for section in module.cubin.sections:
        candidates = list(module.starts.get(section.index, ()))
        entry = _entry_offset(section, kernel)
        if entry is not None:
            candidates += [address - entry for address in function_addresses if address >= entry]
        start = _most_hit(candidates, len(section.code), sampled)
        if start is not None and section.code:
            rows.append((start, start + len(section.code), section.name))
    rows = _without_overlap(rows, sampled)
    return Placement(
        names=tuple(name for _, _, name in rows),
        start=np.array([start for start, _, _ in rows], np.uint64),
        end=np.array([end for _, end, _ in rows], np.uint64),
    )


def _from_relocation_data(cubin: Cubin, functions: Iterable[LoadedFunction]) -> dict[int, list[int]]:
    """ELF section index -> start addresses that its loaded symbols imply, the most frequent first."""
    by_index: dict[int, tuple[CodeSection, CodeSymbol]] = {}
    by_name: dict[str, list[tuple[CodeSection, CodeSymbol]]] = {}
    for section in cubin.sections:
        for symbol in section.symbols:
            by_index[symbol.elf_index] = (section, symbol)
            by_name.setdefault(symbol.name, []).append((section, symbol))
    votes: dict[int, Counter[int]] = {}
    for function in functions:
        # The index decides, since a name may stand for one private copy per kernel.
        located = None if function.symbol_index is None else by_index.get(function.symbol_index)
        if located is None or located[1].name != function.name:
            namesakes = by_name.get(function.name, [])
            located = namesakes[0] if len(namesakes) == 1 else located if function.name == "" else None
        if located is None or function.address < located[1].offset:
            continue
        votes.setdefault(located[0].index, Counter())[function.address - located[1].offset] += 1
    return {index: [start for start, _ in counter.most_common()] for index, counter in votes.items()}


def _entry_offset(section: CodeSection, kernel: str) -> int | None:
    if section.name != kernel:
        return None
    return next((symbol.offset for symbol in section.symbols if symbol.name == kernel), 0)


def _hits(start: int, size: int, sampled: NDArray[np.uint64]) -> int:
    first, end = np.searchsorted(sampled, np.array([start, min(start + size, _MAX)], np.uint64))
    return int(end - first)


_MAX: Final = (1 << 64) - 1


def _most_hit(candidates: list[int], size: int, sampled: NDArray[np.uint64]) -> int | None:
    usable = [start for start in dict.fromkeys(candidates) if 0 < start <= _MAX - size]
    if len(usable) == 1:
        return usable[0]
    return max(usable, key=lambda start: _hits(start, size, sampled), default=None)


def _without_overlap(
    rows: list[tuple[int, int, str]], sampled: NDArray[np.uint64]
) -> list[tuple[int, int, str]]:
    """Sorted by address; of two sections that claim the same bytes the one with more samples stays."""
    result: list[tuple[int, int, str]] = []
    for row in sorted(rows):
        if result and row[0] < result[-1][1]:
            rival = result[-1]
            if _hits(row[0], row[1] - row[0], sampled) > _hits(rival[0], rival[1] - rival[0], sampled):
                result[-1] = row
            continue
        result.append(row)
    return result
