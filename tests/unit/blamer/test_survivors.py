# SPDX-License-Identifier: Apache-2.0
"""Paths from a def to a use that neither a reader nor the latency ends, and how long they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.blame_rows import graph_of

from gpadvisor.blamer.graph import Edge
from gpadvisor.blamer.rules import Budget
from gpadvisor.blamer.survivors import PathRules, SurvivingPaths, surviving_paths
from gpadvisor.model.blame import DependencyKind
from gpadvisor.model.instruction import RegisterFile, register

ANY = PathRules(None, Budget.INSTRUCTIONS, predicated_readers=False)
DIAMOND = """
    LDG.E R0, [R2.64] | S2
    @P1 BRA short | S5
    MOV R6, R7 | S3
    MOV R6, R8 | S4
    short: FMUL R3, R0, R4
    EXIT
    """
R0 = register(RegisterFile.GPR, 0)


def _paths(text: str, definition: int, use: int, rules: PathRules = ANY) -> SurvivingPaths:
    return surviving_paths(
        graph_of(text), Edge(definition, use, DependencyKind.REGISTER, (R0,)), (R0,), rules
    )


@pytest.mark.parametrize(
    ("budget", "average", "longest"), [(None, 3, 4), (4, 3, 4), (3, 2, 2), (2, 2, 2), (1, None, None)]
)
def test_a_path_ends_where_as_many_instructions_lie_between_as_the_budget(
    budget: int | None, average: float | None, longest: int | None
) -> None:
    found = _paths(DIAMOND, 0, 4, replace(ANY, budget=budget))
    assert (found.average, found.longest, found.exists, found.reader) == (
        average,
        longest,
        average is not None,
        None,
    )


@pytest.mark.parametrize(("budget", "longest"), [(13, 4), (12, 2), (6, 2), (5, None)])
def test_or_as_many_cycles_by_the_stall_counts(budget: int, longest: int | None) -> None:
    rules = replace(ANY, budget=budget, counts=Budget.CYCLES)
    assert _paths(DIAMOND, 0, 4, rules).longest == longest


@pytest.mark.parametrize("guard", ["", "@P2 "])
def test_a_reader_in_between_ends_a_path_and_a_guarded_one_only_by_the_code(guard: str) -> None:
    text = f"LDG.E R0, [R2.64]\n{guard}MOV R6, R0\nMOV R7, R8\nFMUL R3, R0, R4\nEXIT"
    paper, code = (_paths(text, 0, 3, replace(ANY, predicated_readers=also)) for also in (False, True))
    assert (code.exists, code.reader) == (False, 0x10)
    assert (paper.exists, paper.reader) == ((True, None) if guard else (False, 0x10))
    assert _paths(text, 0, 3, replace(ANY, predicated_readers=True, readers=False)).longest == 3


def test_a_reader_on_one_way_leaves_the_other() -> None:
    found = _paths(DIAMOND.replace("R6, R8", "R6, R0"), 0, 4)
    assert (found.average, found.longest, found.exists) == (2, 2, True)


def test_a_value_of_the_pass_before_comes_around_the_loop() -> None:
    text = "top: FMUL R3, R0, R4\nLDG.E R0, [R2.64]\nMOV R6, R7\n@P0 BRA top\nEXIT"
    assert _paths(text, 1, 0).longest == 3
    itself = "top: LDG.E R0, [R0.64]\nMOV R6, R7\n@P0 BRA top\nEXIT"
    assert (_paths(itself, 0, 0).longest, _paths(itself, 0, 0).average) == (3, 3)


def test_a_loop_between_is_not_gone_around() -> None:
    text = "LDG.E R0, [R2.64]\ntop: MOV R6, R7\n@P0 BRA top\nFMUL R3, R0, R4\nEXIT"
    assert (_paths(text, 0, 3).average, _paths(text, 0, 3).longest) == (3, 3)


def test_paths_are_averaged_with_those_that_join_again() -> None:
    text = """
        LDG.E R0, [R2.64]
        @P1 BRA first
        MOV R6, R7
        first: @P2 BRA second
        MOV R6, R7
        MOV R6, R8
        second: FMUL R3, R0, R4
        EXIT
        """
    # 3, 4, 5 and 6 instructions.
    assert (_paths(text, 0, 6).average, _paths(text, 0, 6).longest) == (4.5, 6)
    # Of two pairs of paths of the same cost each counts.
    same = text.replace("MOV R6, R7\n        MOV R6, R8", "MOV R6, R8")
    assert _paths(same, 0, 5).average == 4


def test_of_several_registers_the_longest_path_counts_and_a_barrier_has_no_readers() -> None:
    text = "MOV R0, R9\nMOV R1, R0\nMOV R5, R6\nFMUL R3, R0, R1\nEXIT"
    graph = graph_of(text)
    r1 = register(RegisterFile.GPR, 1)
    edge = Edge(0, 3, DependencyKind.REGISTER, (R0, r1))
    found = surviving_paths(graph, edge, (R0, r1), ANY)
    assert (found.exists, found.longest, found.average) == (True, 3, 3)  # nobody reads R1 before
    assert surviving_paths(graph, edge, (), ANY).longest == 3
    assert surviving_paths(graph, edge, (R0,), ANY) == SurvivingPaths(exists=False, reader=0x10)


def test_three_paths_of_one_cost_count_each() -> None:
    branches = [f"@P{at} BRA b{at}\nMOV R6, R7\nb{at}: MOV R8, R9" for at in range(3)]
    text = "\n".join(["LDG.E R0, [R2.64]", *branches, "FMUL R3, R0, R4", "EXIT"])
    assert (_paths(text, 0, 10).average, _paths(text, 0, 10).longest) == (8.5, 10)


def test_each_register_has_its_own_paths() -> None:
    r1 = register(RegisterFile.GPR, 1)
    graph = graph_of(DIAMOND.replace("R6, R8", "R6, R1"))
    edge = Edge(0, 4, DependencyKind.REGISTER, (R0, r1))
    found = surviving_paths(graph, edge, (R0, r1), ANY)
    assert (found.average, found.longest) == ((3 + 2) / 2, 4)
    read = graph_of("LDG.E R0, [R2.64]\nMOV R9, R1\nFMUL R3, R0, R4\nEXIT")
    edge = Edge(0, 2, DependencyKind.REGISTER, (R0, r1))
    assert surviving_paths(read, edge, (R0, r1), replace(ANY, budget=1)).reader == 0x10


@pytest.mark.parametrize(("blocks", "found"), [(1024, True), (1025, False)])
def test_a_path_is_looked_for_over_1024_blocks(blocks: int, found: bool) -> None:
    lines = [f"b{at}: @P0 BRA b{at + 1}" for at in range(blocks)]
    text = "\n".join(["LDG.E R0, [R2.64]", *lines, f"b{blocks}: FMUL R3, R0, R4", "EXIT"])
    assert _paths(text, 0, blocks + 1, replace(ANY, budget=9999)).exists is found


def test_a_def_that_is_on_no_path_has_none() -> None:
    assert _paths("FMUL R3, R0, R4\nLDG.E R0, [R2.64]\nEXIT", 1, 0) == SurvivingPaths(exists=False)
