# SPDX-License-Identifier: Apache-2.0
"""Live registers, and with them the control-flow graph, against nvdisasm's life ranges."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.oracle.analyzer.liveness import live_registers
from tests.oracle.operands import life_ranges
from tests.oracle.operands.corpus import compile_cubin, own_sources, tool

from gpadvisor.analyzer import build_program
from gpadvisor.cubin import read_cubin
from gpadvisor.model.instruction import OpcodeClass, Register, RegisterFile, register
from gpadvisor.toolchain.disassembly import disassemble

SOURCES = frozenset({"control", "fp32", "integer", "loops", "memory", "warp"})
STACK_POINTER = register(RegisterFile.GPR, 1)
"""nvdisasm keeps R1 alive to the end of the kernel, read or not."""


def life_range_counts(cubin: Path) -> dict[tuple[str, int], int]:
    """Registers in use per section and offset, R1 left out."""
    nvdisasm = tool("nvdisasm")
    assert nvdisasm is not None
    text = subprocess.run(
        [nvdisasm, "-c", "-plr", "-lrm", "narrow", cubin], capture_output=True, text=True, check=True
    ).stdout
    counts: dict[tuple[str, int], int] = {}
    for line, section, columns in table_rows(text):
        row, at = life_ranges._ROW.match(line), line.find("// |")
        if row is not None and at >= 0:
            marked = [one for column, one in columns.items() if line[at:].ljust(column + 1)[column] != " "]
            counts[section, int(row["offset"], 16)] = sum(
                one >> 8 == RegisterFile.GPR.value and one != STACK_POINTER for one in marked
            )
    return counts


def table_rows(text: str) -> Iterator[tuple[str, str, dict[int, Register]]]:
    """Lines of each section behind its table's header, with the text columns of registers."""
    section, header = "", []
    columns: dict[int, Register] = {}
    for line in text.splitlines():
        match = life_ranges._SECTION.match(line)
        if match is not None:
            section, header, columns = match["name"], [], {}
        at = line.find("// ")
        if not columns and at >= 0 and line[at:].startswith(("// +-", "// |")):
            header.append(line[at:])
            if sum(part.startswith("// +-") for part in header) == 2:
                columns = life_ranges._columns(header)
        elif columns:
            yield line, section, columns


@pytest.mark.slow
@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_register_pressure(arch: str, tmp_path: Path) -> None:
    differences: Counter[int] = Counter()
    for source in own_sources():
        if source.stem not in SOURCES:
            continue
        path = compile_cubin(source, arch, tmp_path)
        data = path.read_bytes()
        expected = life_range_counts(path)
        for function in build_program(read_cubin(data), disassemble(data).listing).functions:
            opclasses = {one.info.opclass for one in function.instructions}
            if opclasses & {OpcodeClass.CALL, OpcodeClass.RETURN, OpcodeClass.INDIRECT_BRANCH}:
                continue  # the table shows what the calling convention may touch
            counts = live_registers(function, without=STACK_POINTER)
            for index, instruction in enumerate(function.instructions):
                row = expected.get((function.section, instruction.pc))
                if row is not None:
                    differences[int(counts[index]) - row] += 1
    total = sum(differences.values())
    assert total > 1000
    assert differences[0] / total > 0.99, differences.most_common(8)
