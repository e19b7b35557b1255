# SPDX-License-Identifier: Apache-2.0
"""The source line and inline chain of every instruction of a code section (GPA section III)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Sequence as Series
from itertools import pairwise
from typing import Final

from gpadvisor.cubin.image import CodeSection, Cubin, LineTable
from gpadvisor.cubin.line_program import LineRow, Sequence, sequences
from gpadvisor.cubin.line_tables import string_at
from gpadvisor.cubin.names import demangle, unescaped_path
from gpadvisor.model.ids import INSTRUCTION_BYTES, SourceLocation
from gpadvisor.model.program import InlineFrame, LineEntry

# Deeper chains than any compiler makes come from damaged tables only.
_DEPTH_MAX: Final = 256
# A sound table covers an instruction once; overlaps in a damaged one must not cost their product.
_COVER_MAX: Final = 16
# Of one cubin, for each of its instructions: real ones have less than four rows, and some ten frames.
_ROWS_MAX: Final = 16
_FRAMES_MAX: Final = 64
_SPARE_ROWS: Final = 1 << 12


def section_lines(cubin: Cubin, section: CodeSection) -> tuple[LineEntry | None, ...]:
    """The line entry of each instruction of a section; None where the table says nothing."""
    count = section.instruction_count
    entries: list[LineEntry | None] = [None] * count
    table = cubin.line_table
    if not table.program or not count:
        return tuple(entries)
    budget = _COVER_MAX * count
    for sequence in _decoded(table, _row_limit(cubin))[0]:
        base = _base(cubin, section, sequence)
        if base is None or budget < 0:
            continue
        budget -= count
        chains = _Chains(sequence, table.strings, _FRAMES_MAX * count)
        for row, start, end in _runs(sequence, base, count):
            entries[start:end] = [chains.entry(row)] * (end - start)
    return tuple(entries)


@functools.lru_cache(maxsize=4)
def _decoded(table: LineTable, max_rows: int) -> tuple[Series[Sequence], str | None]:
    """All sequences of a line table and its damage, decoded once for all sections of a cubin."""
    return sequences(table.program, table.line_strings, table.strings, table.relocations, max_rows=max_rows)


def _row_limit(cubin: Cubin) -> int:
    return _SPARE_ROWS + _ROWS_MAX * sum(section.instruction_count for section in cubin.sections)


def line_table_damage(cubin: Cubin) -> str | None:
    """What is wrong with the line table, or None; what stands before the damage is used all the same."""
    return _decoded(cubin.line_table, _row_limit(cubin))[1]


def _base(cubin: Cubin, section: CodeSection, sequence: Sequence) -> int | None:
    """The address in a sequence that is the section's first byte; None when it is about other code."""
    if not sequence.rows:
        return None
    if sequence.section is not None:
        return 0 if sequence.section == section.index else None
    start = sequence.rows[0].address
    if section.load_address:
        inside = section.load_address <= start < section.load_address + len(section.code)
        return section.load_address if inside else None
    # In an image that was never loaded a bare address means something only if there is one section.
    return 0 if len(cubin.sections) == 1 else None


def _runs(sequence: Sequence, base: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Each row with the instructions that belong to it: those from its address on, up to the next one's.

    In plain Python: a process that decodes lines ends sooner than numpy is imported.
    """
    limit = count * INSTRUCTION_BYTES
    stop = _instructions(min(max(sequence.end - base, 0), limit))
    reached, firsts = 0, []
    for row in sequence.rows:
        reached = max(reached, min(row.address - base, limit))
        firsts.append(min(_instructions(reached), stop))
    for row_index, (first, end) in enumerate(pairwise([*firsts, stop])):
        if first < end:
            yield row_index, first, end


def _instructions(size: int) -> int:
    """How many instructions so many bytes hold, the last one in part."""
    return -(-size // INSTRUCTION_BYTES)


class _Chains:
    """Line entries of one sequence, each made once."""

    def __init__(self, sequence: Sequence, strings: bytes, max_frames: int) -> None:
        self._rows = sequence.rows
        self._files = sequence.files
        self._strings = strings
        self._frames_left = max_frames
        self._entries: dict[tuple[int, int, int, int], LineEntry | None] = {}
        self._locations: dict[tuple[int, int], SourceLocation | None] = {}
        self._names: dict[int, str | None] = {}

    def entry(self, index: int) -> LineEntry | None:
        """The entry of a row."""
        row = self._rows[index]
        key = (row.file, row.line, row.context, row.function)
        if key not in self._entries:
            self._entries[key] = self._make(row, index)
        return self._entries[key]

    def _make(self, row: LineRow, index: int) -> LineEntry | None:
        location = self._location(row)
        frames: list[InlineFrame] = []
        # A call site is an earlier row, so a chain ends; in a damaged table it just stops.
        while 0 < row.context <= index and len(frames) < min(_DEPTH_MAX, self._frames_left):
            index = row.context - 1
            caller = self._rows[index]
            site = self._location(caller)
            if location is None:
                # Line 0 marks code of no line of its own; it belongs to the call.
                location = site
            elif site is not None:
                frames.append(InlineFrame(self._name(row.function), site))
            row = caller
        self._frames_left -= len(frames)
        return None if location is None else LineEntry(location, tuple(frames))

    def _location(self, row: LineRow) -> SourceLocation | None:
        """File and line of a row, None for line 0 or an unknown file."""
        key = (row.file, row.line)
        if key not in self._locations:
            path = self._files.path(row.file) if row.line > 0 else None
            self._locations[key] = None if path is None else SourceLocation(unescaped_path(path), row.line)
        return self._locations[key]

    def _name(self, offset: int) -> str | None:
        """The name of an inlined function."""
        if offset not in self._names:
            name = string_at(self._strings, offset)
            self._names[offset] = demangle(name) if name else None
        return self._names[offset]
