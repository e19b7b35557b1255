# SPDX-License-Identifier: Apache-2.0
"""Jumps of the control-flow graph against nvdisasm's own, where nvdisasm draws one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.oracle.operands.corpus import compile_cubin, own_sources, tool

from gpadvisor.analyzer import build_program
from gpadvisor.cubin import read_cubin
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.program import EdgeKind, Program
from gpadvisor.toolchain.disassembly import disassemble

SOURCES = frozenset({"control", "loops", "warp"})
SWITCHES = Path(__file__).with_name("switch.cu")
MIN_SWITCHES = 2

_CLUSTER = re.compile(r'^subgraph "cluster_(.*)" \{')
_NODE = re.compile(r'^"(.*)"$')
_EDGE = re.compile(r'^"(.*)":\w+:\w -> "(.*)":\w+:\w ')
_PLACE = re.compile(r"(?:\\l|<entry>|<exit\d*>|^)([0-9a-f]{4,}):")

Jumps = set[tuple[str, int, int]]
"""Section or function, last instruction of a block, first instruction of the next."""


def drawn(cubin: Path) -> Jumps:
    """What nvdisasm -bbcfg draws."""
    nvdisasm = tool("nvdisasm")
    assert nvdisasm is not None
    text = subprocess.run(
        [nvdisasm, "-bbcfg", "-poff", cubin], capture_output=True, text=True, check=True
    ).stdout
    section, node = "", ""
    places: dict[tuple[str, str], list[int]] = {}
    edges: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        if match := _CLUSTER.match(line):
            section = match[1]
        elif match := _NODE.match(line):
            node = match[1]
        elif line.startswith("[label="):
            places[section, node] = [int(place, 16) for place in _PLACE.findall(line)]
        elif match := _EDGE.match(line):
            edges.append((section, match[1], match[2]))
    return {
        (one, places[one, source][-1], places[one, target][0])
        for one, source, target in edges
        if places[one, source] and places[one, target]
    }


def built(program: Program) -> Jumps:
    """What the analyzer found."""
    return {
        (function.section, int(function.instructions[block.end - 1].pc), int(function.instructions[start].pc))
        for function in program.functions
        for block in function.blocks
        for target, _ in block.successors
        for start in (function.blocks[target].start,)
    }


def jumps(edges: Jumps) -> Jumps:
    """Without steps to the next instruction, and without the branch to itself behind a kernel."""
    return {edge for edge in edges if edge[2] not in {edge[1], edge[1] + 16}}


@pytest.mark.slow
@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_jumps_are_those_that_nvdisasm_draws(arch: str, tmp_path: Path) -> None:
    seen = 0
    for source in own_sources():
        if source.stem not in SOURCES:
            continue
        path = compile_cubin(source, arch, tmp_path)
        data = path.read_bytes()
        program = build_program(read_cubin(data), disassemble(data).listing)
        guessed = {
            function.section
            for function in program.functions
            for block in function.blocks
            if any(kind is EdgeKind.INDIRECT for _, kind in block.successors)
        }
        sections = {function.name: function.section for function in program.functions}
        calls = {
            (function.section, int(function.instructions[call.index].pc))
            for function in program.functions
            for call in function.calls
        }
        theirs = {
            (sections[name], place, target)
            for name, place, target in jumps(drawn(path))
            # A call of the function by itself is drawn as a jump; ours stays in the caller.
            if sections[name] not in guessed and (sections[name], place) not in calls
        }
        ours = {edge for edge in jumps(built(program)) if edge[0] not in guessed}
        assert ours == theirs, (source.stem, sorted(ours - theirs), sorted(theirs - ours))
        seen += len(ours)
    assert seen > 50


_LABEL = re.compile(r"^(\.L_x_\d+):")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_OFFSET = re.compile(r"/\*([0-9a-f]{4,})\*/")
_BRANCH_TARGETS = re.compile(r"BRANCH_TARGETS ([^\"]+)")


def listed(cubin: Path) -> dict[tuple[str, int], set[int]]:
    """Targets that nvdisasm prints behind each indirect branch, as section offsets."""
    nvdisasm = tool("nvdisasm")
    assert nvdisasm is not None
    text = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True).stdout
    section, waiting = "", []
    labels: dict[str, int] = {}
    branches: dict[tuple[str, int], list[str]] = {}
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif match := _LABEL.match(line):
            waiting.append(match[1])
        elif match := _OFFSET.search(line):
            place = int(match[1], 16)
            labels.update(dict.fromkeys(waiting, place))
            waiting = []
            if names := _BRANCH_TARGETS.search(line):
                branches[section, place] = names[1].split(",")
    return {branch: {labels[name] for name in names} for branch, names in branches.items()}


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_indirect_branches_lead_where_nvdisasm_says(arch: str, tmp_path: Path) -> None:
    path = compile_cubin(SWITCHES, arch, tmp_path)
    data = path.read_bytes()
    program = build_program(read_cubin(data), disassemble(data).listing)
    theirs = listed(path)
    assert len(theirs) >= MIN_SWITCHES
    assert max(map(len, theirs.values())) > 2
    assert not [one for one in program.problems if one.code is ProblemCode.INDIRECT_BRANCH]
    ours = {
        (function.section, int(function.instructions[block.end - 1].pc)): {
            int(function.instructions[function.blocks[target].start].pc)
            for target, kind in block.successors
            if kind is EdgeKind.INDIRECT
        }
        for function in program.functions
        for block in function.blocks
        if function.instructions[block.end - 1].info.opclass is OpcodeClass.INDIRECT_BRANCH
    }
    assert ours == theirs
    sections = {function.name: function.section for function in program.functions}
    calls = {
        (function.section, int(function.instructions[call.index].pc))
        for function in program.functions
        for call in function.calls
    }
    drawn_jumps = {(sections[name], place, target) for name, place, target in jumps(drawn(path))}
    assert {one for one in jumps(built(program)) if one[:2] not in calls} == {
        one for one in drawn_jumps if one[:2] not in calls
    }
