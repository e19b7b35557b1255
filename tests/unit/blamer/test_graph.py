# SPDX-License-Identifier: Apache-2.0
"""What the graph of a function answers: times, neighbours, distances, and the ways back from a place."""

from __future__ import annotations

import pytest
from tests.blame_rows import graph_of

from gpadvisor.blamer.graph import Candidates, Edge, FunctionGraph, backwards
from gpadvisor.model.blame import DependencyKind, PruneRule
from gpadvisor.model.instruction import register_name

LOOP = """
    MOV R0, R1
    top: IADD3 R2, R2, R0, RZ | S3
    LDG.E R4, [R6.64] | W0 S2
    @P1 BRA skip
    MOV R8, R9
    skip: @P0 BRA top
    EXIT
    """


def _stores(graph: FunctionGraph, use: int, *, end: int | None = None, blocks: int = 512) -> list[int]:
    def take(index: int) -> bool:
        return graph.instructions[index].opcode == "STG"

    return backwards(graph, use, take=take, stop=lambda index: index == end, blocks=blocks)[0]


@pytest.mark.parametrize(
    ("line", "cycles"),
    [
        ("FADD R0, R1, R2", (4, 6)),
        ("LDG.E R0, [R2.64] | W0", (0, 0)),
        ("FADD R0, R1, R2 | W0", (0, 0)),  # who waits for a scoreboard does not count cycles
        ("NONESUCH R0, R1", (0, 0)),
    ],
)
def test_a_fixed_latency_has_bounds_and_a_variable_one_none(line: str, cycles: tuple[int, int]) -> None:
    graph = graph_of(f"{line}\nEXIT")
    assert graph.fixed_cycles[0] == cycles
    assert graph.longest_fixed_cycles == cycles[1]


@pytest.mark.parametrize(
    ("line", "longest"),
    [
        ("LDG.E R0, [R2.64]", 1100),  # of global memory
        ("LDS R0, [R2]", 90),  # of shared memory
        ("ATOMS.ADD R0, [R2], R3", 300),  # longer than it
        ("ULDC UR4, c[0x0][0x118]", 300),  # of constant memory, longer than the instruction
        ("MUFU.RCP R0, R1", 60),  # of the instruction
        ("NONESUCH R0, R1", None),
    ],
)
def test_the_longest_time_is_that_of_the_memory_or_of_the_instruction(line: str, longest: int | None) -> None:
    assert graph_of(line).bound_cycles(0) == longest


def test_an_instruction_takes_a_cycle_at_least() -> None:
    graph = graph_of("MOV R0, R1 | S0\nMOV R2, R3 | S4\nEXIT | S5")
    assert graph.passed_cycles == [0, 1, 5, 10]


def test_right_before_a_join_are_the_ends_of_all_ways() -> None:
    graph = graph_of(LOOP)
    assert [graph.before(at) for at in range(7)] == [(), (0, 5), (1,), (2,), (3,), (3, 4), (5,)]


def test_behind_an_exit_only_the_filling_comes_from_it() -> None:
    assert graph_of("MOV R0, R1\nEXIT\nfilling: BRA filling").before(2) == (1,)
    assert graph_of("@P0 BRA other\nEXIT\nother: MOV R0, R1\nEXIT").before(2) == (0,)


def test_who_is_held_by_a_depbar_is_sampled_at_it_or_right_behind() -> None:
    graph = graph_of("LDGDEPBAR | W0\nDEPBAR.LE SB0, 0x1\nMOV R0, R1\nMOV R2, R3\nEXIT")
    assert [graph.waited_at(at) for at in range(4)] == [(0,), (1,), (2, 1), (3,)]
    assert graph_of(LOOP).waited_at(1) == (1,)


def test_an_instruction_is_named_with_its_modifiers_and_its_address() -> None:
    assert graph_of(LOOP).text(2) == "LDG.E at 0x20"


def test_distances_are_the_longest_way_and_known_ones_stay() -> None:
    graph = graph_of(LOOP)
    edges = [Edge(definition, 5, DependencyKind.REGISTER, ()) for definition in (0, 1, 4, 5)]
    known = Edge(1, 5, DependencyKind.REGISTER, (), distance=77)
    graph.measure([*edges, known])
    assert [edge.distance for edge in edges] == [5, 4, 1, 5]
    assert known.distance == 77


def test_the_distance_of_two_blocks_leaves_out_what_lies_between_them_by_address_alone() -> None:
    graph = graph_of("@P0 BRA other\nMOV R0, R1\nBRA join\nother: MOV R0, R2\njoin: MOV R3, R0\nEXIT")
    edges = [Edge(0, 4, DependencyKind.REGISTER, ()), Edge(1, 4, DependencyKind.REGISTER, ())]
    graph.measure(edges)
    assert [edge.distance for edge in edges] == [3, 2]


def test_only_the_first_rule_that_cuts_an_edge_is_noted() -> None:
    edge = Edge(0, 1, DependencyKind.REGISTER, ())
    edge.cut(PruneRule.REASON, "first")
    edge.cut(PruneRule.LATENCY, "second")
    assert (edge.rule, edge.detail) == (PruneRule.REASON, "first")


def test_edges_are_made_once_and_stand_in_program_order_and_those_added_behind() -> None:
    text = "LDG.E R0, [R2.64] | W0\nMOV R1, R5\nFADD R6, R0, R1 | ?0\nEXIT"
    edges = Candidates(graph_of(text, waiting=[2]), 2)
    assert edges.definitions == {0, 1}
    assert 3 not in edges
    added = Edge(3, 2, DependencyKind.BARRIER, ())
    edges.add(added)
    assert (3 in edges, 1 in edges, 0 in edges) == (True, True, True)
    assert edges.definitions == {0, 1, 3}
    assert edges.edge(3) is added
    assert edges.edge(1) is edges.edge(1)
    assert [edge.definition for edge in edges.edges()] == [0, 1, 3]
    edges.edge(1).alive = True
    assert edges.alive == {1}


def test_a_wait_without_a_register_is_an_edge_too() -> None:
    edges = Candidates(graph_of("LDG.E R0, [R2.64] | W0\nMOV R1, R5 | ?0\nEXIT", waiting=[1]), 1)
    assert (0 in edges, edges.definitions) == (True, {0})


@pytest.mark.parametrize(
    ("text", "kind", "registers"),
    [
        ("LDG.E R0, [R2.64] | W0\nFADD R6, R0, R1 | ?0", DependencyKind.REGISTER, ["R0", "B0"]),
        ("ISETP.GE.AND P0, PT, R0, R1, PT\n@P0 MOV R6, R7", DependencyKind.GUARD, ["P0"]),
        ("LDG.E R0, [R2.64] | W0\nMOV R6, R7 | ?0", DependencyKind.BARRIER, ["B0"]),
        ("STG.E [R2.64], R0 | R0\nMOV R0, R7 | ?0", DependencyKind.WRITE_AFTER_READ, ["B0"]),
    ],
)
def test_an_edge_says_what_links_its_ends(text: str, kind: DependencyKind, registers: list[str]) -> None:
    edge = Candidates(graph_of(text, waiting=[1]), 1).edge(0)
    assert edge.kind is kind
    assert [register_name(register) for register in edge.registers] == registers


def test_the_scoreboard_of_a_group_is_no_register() -> None:
    text = "HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0\nWARPGROUP.DEPBAR.LE gsb0, 0x0\nEXIT"
    edge = Candidates(graph_of(text, waiting=[1], arch="sm_90"), 1).edge(0)
    assert (edge.kind, edge.registers) == (DependencyKind.BARRIER, ())


STORES = "STG.E [R2.64], R0\nSTG.E [R2.64], R1\nMOV R5, R6\nSTG.E [R2.64], R2\nEXIT"


def test_the_nearest_are_taken_first_and_no_more_than_64() -> None:
    assert _stores(graph_of(STORES), 4) == [3, 1, 0]
    assert _stores(graph_of("STG.E [R2.64], R0\n" * 66), 65) == [*range(64, 0, -1)]
    assert _stores(graph_of(STORES), 3) == [1, 0]  # itself is not looked at


def test_a_way_ends_at_the_block_that_is_one_too_many() -> None:
    text = "STG.E [R2.64], R0\n@P0 BRA second\nsecond: STG.E [R2.64], R1\n@P0 BRA third\nthird: EXIT"
    assert _stores(graph_of(text), 4, blocks=2) == [2]
    assert _stores(graph_of(text), 4, blocks=3) == [2, 0]


def test_a_loop_is_gone_around_once_up_to_where_the_walk_began() -> None:
    text = "top: STG.E [R2.64], R0\nFADD R1, R2, R3\nSTG.E [R2.64], R4\n@P0 BRA top\nEXIT"
    graph = graph_of(text)
    assert _stores(graph, 1) == [0, 2]
    _, passed = backwards(graph, 1, take=lambda _: False, stop=lambda _: False)
    assert passed == [(0, 1), (1, 4)]
    _, passed = backwards(graph, 1, take=lambda _: False, stop=lambda index: index == 2)
    assert passed == [(0, 1), (3, 4)]


def test_behind_what_stops_a_way_nothing_is_taken() -> None:
    text = "STG.E [R2.64], R0\n@P0 BRA next\nnext: STG.E [R2.64], R1\nMOV R5, R6\nSTG.E [R2.64], R2\nEXIT"
    assert _stores(graph_of(text), 5, end=3) == [4]
    assert _stores(graph_of(text), 5, end=1) == [4, 2]
