# SPDX-License-Identifier: Apache-2.0
"""nvdisasm's life-range table as sets of registers per instruction: ``^`` written, ``v`` read, ``x`` both."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpadvisor.model.instruction import Register, RegisterFile, register

_FILES = {
    "GPR": RegisterFile.GPR,
    "PRED": RegisterFile.PREDICATE,
    "UGPR": RegisterFile.UNIFORM,
    "UPRED": RegisterFile.UNIFORM_PREDICATE,
}
_SECTION = re.compile(r"\s*\.section\s+\.text\.(?P<name>[^\s,]+)")
_ROW = re.compile(r"\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s")


@dataclass(frozen=True)
class Marks:
    """What the table says about one instruction."""

    defs: frozenset[Register]
    uses: frozenset[Register]


def read(text: str) -> Iterator[tuple[str, int, Marks]]:
    """(section, offset, marks) of every row that the table covers."""
    section = ""
    header: list[str] = []
    columns: dict[int, Register] = {}
    for line in text.splitlines():
        match = _SECTION.match(line)
        if match is not None:
            section, header, columns = match["name"], [], {}
            continue
        at = line.find("// ")
        if at < 0:
            continue
        table = line[at:]
        row = _ROW.match(line)
        if row is None:
            if not columns and table.startswith(("// +-", "// |")):
                header.append(table)
                if sum(part.startswith("// +-") for part in header) == 2:
                    columns = _columns(header)
            continue
        if columns and table.startswith("// |"):
            yield section, int(row["offset"], 16), _marks(table, columns)


def _columns(header: list[str]) -> dict[int, Register]:
    """Text column of each register, from the names of the files and the vertical numbers below."""
    names, digits = header[1], [line for line in header[2:] if line.startswith("// |")]
    edges = [i for i, char in enumerate(names) if char == "|"]
    columns: dict[int, Register] = {}
    for left, right in itertools.pairwise(edges):
        name = names[left + 1 : right].strip()
        if name not in _FILES:
            continue
        for column in range(left + 1, right):
            number = "".join(line[column] for line in digits if column < len(line)).strip()
            if number.isdigit():
                columns[column] = register(_FILES[name], int(number))
    return columns


def _marks(table: str, columns: dict[int, Register]) -> Marks:
    defs, uses = set(), set()
    for column, name in columns.items():
        mark = table[column] if column < len(table) else " "
        if mark in "^x":
            defs.add(name)
        if mark in "vx":
            uses.add(name)
    return Marks(frozenset(defs), frozenset(uses))
