# SPDX-License-Identifier: Apache-2.0
"""Blocks and edges of functions of a few lines."""

from __future__ import annotations

from dataclasses import replace

from tests.assembly import assemble, function_of

from gpadvisor.analyzer.flow import build_graph, control_transfers
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import EdgeKind, Function


def edges(function: Function) -> set[tuple[int, int, str]]:
    """Edges by the first instruction of their blocks."""
    return {
        (block.start, function.blocks[target].start, kind.value)
        for block in function.blocks
        for target, kind in block.successors
    }


def test_a_guarded_branch_falls_through_and_an_unguarded_one_does_not() -> None:
    function = function_of(
        """
        @P0 BRA side | S5
        MOV R0, R1
        BRA end | S5
        side: MOV R0, R2
        end: EXIT | S5
        """
    )
    assert edges(function) == {
        (0, 3, "branch"),
        (0, 1, "fall_through"),
        (1, 4, "branch"),
        (3, 4, "fall_through"),
    }
    assert function.block_of == (0, 1, 1, 2, 3)
    assert function.idom == (None, 0, 0, 0)


def test_a_branch_with_its_condition_in_an_operand_falls_through() -> None:
    function = function_of("BRA.U !UP0, end\nMOV R0, R1\nend: EXIT")
    assert edges(function) == {(0, 2, "branch"), (0, 1, "fall_through"), (1, 2, "fall_through")}


def test_guarded_exits_and_returns_fall_through() -> None:
    function = function_of("@P0 EXIT\n@P1 RET.REL.NODEC R20\nMOV R0, R1\nEXIT")
    assert edges(function) == {(0, 1, "fall_through"), (1, 2, "fall_through")}


def test_a_call_is_followed_by_the_next_instruction() -> None:
    function = function_of("CALL.ABS.NOINC R2\nMOV R0, R1\nEXIT")
    assert edges(function) == {(0, 1, "call_return")}


def test_filling_behind_the_exit_is_unreachable() -> None:
    function = function_of("MOV R0, R1\nEXIT\nself: BRA self\nNOP\nNOP")
    assert [block.start for block in function.blocks] == [0, 2, 3]
    assert function.idom == (None, None, None)
    assert function.loops == ()  # the branch to itself is no loop of the program


def test_convergence_goes_on_behind_it_or_where_the_barrier_says() -> None:
    near = function_of("BSSY B0, out\n@P0 BRA join\nMOV R0, R1\njoin: BSYNC B0\nout: EXIT")
    assert (3, 4, "branch") not in edges(near)
    far = function_of("BSSY B0, out\n@P0 BRA join\nMOV R0, R1\nout: EXIT\njoin: BSYNC B0\nEXIT")
    assert (4, 3, "branch") in edges(far)


def test_an_indirect_branch_leads_to_blocks_that_nothing_else_leads_to() -> None:
    problems: list[Problem] = []
    function = function_of(
        "BRX R2, -0x10\nMOV R0, R1\nEXIT\nMOV R0, R2\nEXIT\nself: BRA self\nNOP", problems=problems
    )
    indirect = {edge for edge in edges(function) if edge[2] == EdgeKind.INDIRECT.value}
    assert indirect == {(0, 1, "indirect"), (0, 3, "indirect")}
    assert [problem.code for problem in problems] == [ProblemCode.INDIRECT_BRANCH]


def test_listed_targets_of_an_indirect_branch_are_taken() -> None:
    code = list(assemble("BRX R2, -0x10\nMOV R0, R1\nMOV R0, R2\nEXIT"))
    code[0] = replace(code[0], operands='R2 -0x10 (*"BRANCH_TARGETS 0x10,0x20"*)')
    problems: list[Problem] = []
    function = function_of(code, problems=problems)
    assert {edge[1] for edge in edges(function) if edge[2] == "indirect"} == {1, 2}
    assert problems == []


def test_recorded_targets_of_an_indirect_branch_are_taken() -> None:
    code = assemble("NOP\nBRX R2, -0x10\nMOV R0, R1\nEXIT\nMOV R0, R2\nEXIT\nMOV R0, R3\nEXIT")
    tables = {0x10: (0x20, 0x60, 0x64, 0x7000)}  # one that is no instruction, one behind the function
    graph = build_graph(code, control_transfers(code), tables)
    branch = graph.blocks[graph.block_of[1]]
    assert {graph.blocks[target].start for target, _ in branch.successors} == {2, 6}
    assert graph.guessed_branches == 0


def test_a_branch_out_of_the_function_leaves_it() -> None:
    function = function_of("MOV R0, R1\n@P0 BRA 0x0\nEXIT", start=4)
    assert edges(function) == {(0, 0, "branch"), (0, 2, "fall_through")}
    outside = [replace(one, target=None) for one in assemble("@P0 BRA 0x0\nBRA 0x0")]
    assert edges(function_of(outside)) == {(0, 1, "fall_through")}
