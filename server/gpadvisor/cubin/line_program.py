# SPDX-License-Identifier: Apache-2.0
"""The DWARF line program of a cubin, with NVIDIA's opcodes for inlined calls (GPA section III)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from gpadvisor.cubin.line_tables import (
    DamagedLinesError,
    Files,
    Header,
    Reader,
    Tables,
    file_tail,
    read_header,
)

_WORD64: Final = 0xFFFFFFFF
_EXTENDED: Final = 0
_COPY: Final = 1
_ADVANCE_PC: Final = 2
_ADVANCE_LINE: Final = 3
_SET_FILE: Final = 4
_CONST_ADD_PC: Final = 8
_FIXED_ADVANCE_PC: Final = 9
_END_SEQUENCE: Final = 1
_SET_ADDRESS: Final = 2
_DEFINE_FILE: Final = 3
_INLINED_CALL: Final = 0x90  # DW_LNE_NVIDIA_inlined_call


class LineRow(NamedTuple):
    """One row of the line table."""

    address: int  # as the program says; for a relocated sequence the offset in its section
    file: int
    line: int
    context: int  # row, counted from 1 in its sequence, where this code was inlined; 0: not inlined
    function: int  # offset in .debug_str of the inlined function's name


@dataclass(slots=True)
class Sequence:
    """Rows of ascending addresses, up to ``end``."""

    section: int | None  # ELF section index that the relocation names; None without one
    files: Files
    rows: list[LineRow] = field(default_factory=list)
    end: int = 0


def sequences(
    program: bytes,
    line_strings: bytes,
    strings: bytes,
    relocations: Mapping[int, tuple[int, int]],
    *,
    max_rows: int,
) -> tuple[list[Sequence], str | None]:
    """All sequences of a ``.debug_line`` section, and what is wrong with it, if anything.

    What it costs is bounded: a few bytes of a table can ask for any number of rows and names.
    """
    result: list[Sequence] = []
    tables = Tables(line_strings, strings)
    rows = 0
    index = 0
    while index + 4 <= len(program):
        before = len(result)
        try:
            index = _unit(program, index, tables, relocations, result, max_rows - rows)
            rows += sum(len(sequence.rows) for sequence in result[before:])
        except DamagedLinesError as error:
            return result, str(error)
    return result, None


def _unit(
    program: bytes,
    index: int,
    tables: Tables,
    relocations: Mapping[int, tuple[int, int]],
    result: list[Sequence],
    max_rows: int,
) -> int:
    """Read one unit; the offset behind it."""
    reader = Reader(program, index, len(program))
    length = reader.unsigned(4)
    offset_size = 4
    if length == _WORD64:
        length, offset_size = reader.unsigned(8), 8
    end = reader.at + length
    if end > len(program):
        raise DamagedLinesError("the line table is truncated")
    if length == 0:
        return end
    reader.end = end
    header = read_header(reader, offset_size, tables)
    _Machine(reader, header, relocations, result, max_rows).run()
    return end


class _Machine:
    """The state machine of one unit."""

    def __init__(
        self,
        reader: Reader,
        header: Header,
        relocations: Mapping[int, tuple[int, int]],
        result: list[Sequence],
        max_rows: int,
    ) -> None:
        self._reader = reader
        self._header = header
        self._relocations = relocations
        self._found = result
        self._max_rows = max_rows
        self._begin()

    def _begin(self) -> None:
        """The state at the start of a sequence."""
        self._sequence = Sequence(None, self._header.files)
        self._address, self._file, self._line, self._context, self._function = 0, 1, 1, 0, 0

    def run(self) -> None:
        """Follow the program to its end."""
        reader = self._reader
        _, line_base, line_range, opcode_base, _, _ = self._header
        scale = self._header.minimum_length
        data, end = reader.data, reader.end
        while reader.at < end:
            opcode = data[reader.at]
            reader.at += 1
            if opcode >= opcode_base:
                step, advance = divmod(opcode - opcode_base, line_range)
                self._address += step * scale
                self._line += line_base + advance
                self._copy()
            elif opcode == _ADVANCE_PC:
                self._address += reader.uleb() * scale
            elif opcode == _ADVANCE_LINE:
                self._line += reader.sleb()
            elif opcode == _COPY:
                self._copy()
            elif opcode == _SET_FILE:
                self._file = reader.uleb()
            elif opcode == _EXTENDED:
                self._extended()
            else:
                self._standard(opcode)

    def _copy(self) -> None:
        """Add a row."""
        self._max_rows -= 1
        if self._max_rows < 0:
            raise DamagedLinesError("the line table has far more rows than there are instructions")
        self._sequence.rows.append(
            LineRow(self._address, self._file, self._line, self._context, self._function)
        )

    def _standard(self, opcode: int) -> None:
        """The rarer standard opcodes, and those of later versions, whose operands are skipped."""
        if opcode == _CONST_ADD_PC:
            steps = (255 - self._header.opcode_base) // self._header.line_range
            self._address += steps * self._header.minimum_length
        elif opcode == _FIXED_ADVANCE_PC:
            self._address += self._reader.unsigned(2)
        else:
            for _ in range(self._header.operand_counts[opcode - 1]):
                self._reader.uleb()

    def _extended(self) -> None:
        """An extended opcode; unknown ones say how long they are."""
        reader = self._reader
        length = reader.uleb()
        begin = reader.at
        if length == 0 or begin + length > reader.end:
            raise DamagedLinesError("an instruction of the line table has a wrong length")
        kind = reader.unsigned(1)
        if kind == _END_SEQUENCE:
            self._sequence.end = self._address
            self._found.append(self._sequence)
            self._begin()
        elif kind == _SET_ADDRESS:
            target = self._relocations.get(reader.at)
            if target is None:
                self._address = reader.unsigned(length - 1)
            else:
                self._sequence.section, self._address = target
        elif kind == _DEFINE_FILE:
            self._header.files.names.append((reader.string(), file_tail(reader)))
        elif kind == _INLINED_CALL:
            self._context, self._function = reader.uleb(), reader.uleb()
        reader.at = begin + length
