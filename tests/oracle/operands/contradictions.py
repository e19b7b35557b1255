# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.oracle.operands.contradictions [NVDISASM ...]``: two forms in which the table is wrong.

A row of each, the row that contradicts it, and the same instruction with bits of its encoding changed. A
table that stays the same when the predicate is negated, or the mask has fewer components, is not of the code.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from tests.oracle.operands import life_ranges
from tests.oracle.operands.corpus import HERE, compile_cubin, tool

from gpadvisor.model.instruction import Register, register_name


@dataclass(frozen=True)
class Case:
    """A form, and changes of its encoding: what is changed, by the bits of the 128."""

    source: str
    arch: str
    function: str
    pattern: str
    reader: str  # the row that reads what this one is said to overwrite, or leaves unwritten
    changes: tuple[tuple[str, tuple[int, ...]], ...]


CASES = (
    Case(
        source="async",
        arch="sm_80",
        function="_Z8pipelinePK6float4PS_i",
        pattern=r"LDGSTS\.E\.64\.ZFILL",
        reader=r"LDGSTS\.E\.64\.ZFILL",
        changes=(("predicate negated", (90,)), ("predicate P1", (87,)), ("without ZFILL", (82,))),
    ),
    Case(
        source="texture",
        arch="sm_100",
        function="_Z7indexedPKyS0_PKiP6float4PfP4int2",
        pattern=r"TEX\.LL R",
        reader=r"STG\.E\.128",
        changes=(("three components", (75,)), ("the first two", (74, 75)), ("the last two", (72, 73))),
    ),
)


def main() -> None:
    """Print every case with every disassembler named, else with the pinned one."""
    pinned = tool("nvdisasm")
    named = [Path(path) for path in sys.argv[1:]] or ([pinned] if pinned else [])
    with tempfile.TemporaryDirectory() as name:
        for disassembler in named:
            version = subprocess.run([disassembler, "--version"], capture_output=True, text=True, check=True)
            lines = [f"nvdisasm {re.findall(r'V([0-9.]+)', version.stdout)[-1]}"]
            for case in CASES:
                lines += _shown(case, disassembler, Path(name))
            sys.stdout.write("\n".join(lines) + "\n")


def _shown(case: Case, disassembler: Path, folder: Path) -> Iterator[str]:
    cubin = compile_cubin(HERE / f"{case.source}.cu", case.arch, folder)
    rows = _rows(disassembler, cubin, case.function)
    if not rows:
        yield f"  {case.source}.cu for {case.arch}: no table"
        return
    pc = next(pc for pc, (text, _) in rows.items() if re.search(case.pattern, text))
    reader = next(at for at, (text, _) in rows.items() if at > pc and re.search(case.reader, text))
    yield f"  {case.source}.cu for {case.arch}, {case.function}"
    for at in (pc, reader):
        yield f"    {at:#06x} {_line(rows[at])}"
    changed = folder / "changed.cubin"
    for what, bits in case.changes:
        changed.write_bytes(_flipped(cubin, case.function, pc, bits))
        yield f"    {what}: {_line(_rows(disassembler, changed, case.function)[pc])}"


def _rows(disassembler: Path, cubin: Path, function: str) -> dict[int, tuple[str, life_ranges.Marks]]:
    command = [disassembler, "-c", "-plr", "-lrm", "narrow", cubin]
    text = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False).stdout
    texts: dict[int, str] = {}
    inside = False
    for line in text.splitlines():
        section = re.match(r"\s*\.section\s+\.text\.([^\s,]+)", line)
        inside = section[1] == function if section else inside
        row = re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?) ;", line)
        if inside and row:
            texts[int(row[1], 16)] = row[2]
    marks = {at: found for section, at, found in life_ranges.read(text) if section == function}
    return {at: (texts.get(at, ""), found) for at, found in marks.items()}


def _line(row: tuple[str, life_ranges.Marks]) -> str:
    text, marks = row
    return f"{text}   writes {_names(marks.defs)}, reads {_names(marks.uses)}"


def _names(registers: frozenset[Register]) -> str:
    return " ".join(register_name(r) for r in sorted(registers)) or "-"


def _flipped(cubin: Path, function: str, pc: int, bits: tuple[int, ...]) -> bytes:
    data = bytearray(cubin.read_bytes())
    with cubin.open("rb") as file:
        start = ELFFile(file).get_section_by_name(f".text.{function}")["sh_offset"] + pc
    for bit in bits:
        data[start + bit // 8] ^= 1 << (bit % 8)
    return bytes(data)


if __name__ == "__main__":
    main()
