# SPDX-License-Identifier: Apache-2.0
"""What is outstanding at a fence or at the end of a thread, and how long it can be."""

from __future__ import annotations

import pytest
from tests.blame_rows import graph_of

from gpadvisor.blamer.graph import FunctionGraph
from gpadvisor.blamer.in_flight import drain_stall, exit_before, fence_stall, is_fence, nearest
from gpadvisor.blamer.sources import UNATTRIBUTED, UseResult
from gpadvisor.model.blame import DependencyClass, PruneRule


def _found(result: UseResult) -> dict[int, float | None]:
    """Distances by source of the one reason."""
    (found,) = result.found.values()
    assert all(source.edge.alive for source in found.sources)
    return {source.edge.definition: source.distance for source in found.sources}


def _waits(cycles: int) -> str:
    """Lines that take so many cycles together."""
    return "\n".join(["MOV R9, R8 | S10"] * (cycles // 10) + [f"MOV R9, R8 | S{cycles % 10}"])


@pytest.mark.parametrize(("cycles", "cut"), [(1100, False), (1101, True)])
def test_a_store_is_in_flight_for_its_longest_latency_and_no_cycle_longer(cycles: int, cut: bool) -> None:
    text = f"STG.E [R2.64], R0\n{_waits(cycles - 2)}\nSTG.E [R2.64], R1\nEXIT"
    graph = graph_of(text)
    last = len(graph.instructions) - 1
    result = drain_stall(graph, last, 3)
    assert graph.bound_cycles(0) == 1100
    assert (result.edges[-1].rule is PruneRule.LATENCY) is cut
    assert set(_found(result)) == {last - 1} | (set() if cut else {0})
    if cut:
        assert result.edges[-1].detail == "1101 cycles lie between, its latency is at most 1100"


def test_where_all_stores_are_old_the_youngest_holds_the_warp() -> None:
    graph = graph_of(f"STG.E [R2.64], R0\nSTG.E [R2.64], R1\n{_waits(2005)}\nEXIT")
    assert set(_found(drain_stall(graph, len(graph.instructions) - 1, 3))) == {1}


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("STS [R1], R0\nSTG.E [R2.64], R0\nEXIT", {1}),  # not for shared memory
        ("STS [R1], R0\nEXIT", {0}),
        ("LDGSTS.E [R8], [R2.64]\nSTG.E [R2.64], R0\nEXIT", {1}),
        ("LDGSTS.E [R8], [R2.64]\nSTS [R1], R0\nEXIT", {0}),
        ("LDG.E R0, [R2.64]\nEXIT", set()),
        ("RED.E.ADD.STRONG.GPU [R2.64], R5\nEXIT", {0}),
    ],
)
def test_a_drain_waits_for_stores_to_memory_first(text: str, sources: set[int]) -> None:
    graph = graph_of(text)
    assert set(_found(drain_stall(graph, len(graph.instructions) - 1, 3))) == sources


@pytest.mark.parametrize(
    ("stored", "ended", "weight"), [(10, 40, 1.0), (40, 10, 0.25), (0, 40, 1.0), (40, 0, 1.0)]
)
def test_a_store_counts_by_its_last_execution_in_each_warp_that_ends(
    stored: int, ended: int, weight: float
) -> None:
    graph = graph_of("STG.E [R2.64], R0\nEXIT", [stored, ended])
    (source,) = drain_stall(graph, 1, 3).found[3].sources
    assert (source.weight, source.dependency_class) == (weight, DependencyClass.STORE_IN_FLIGHT)


FENCE = "STG.E [R2.64], R0\nLDG.E R4, [R2.64]\nMOV R6, R7\nMEMBAR.SC.GPU\nERRBAR\nMOV R8, R9\nEXIT"


def test_a_fence_waits_for_writes_and_only_without_any_for_reads() -> None:
    assert _found(fence_stall(graph_of(FENCE), 3, 5)) == {0: 3}
    reads = FENCE.replace("STG.E [R2.64], R0", "MOV R0, R1")
    assert _found(fence_stall(graph_of(reads), 3, 5)) == {1: 2}


def test_the_distance_to_an_access_goes_on_behind_the_fence() -> None:
    assert _found(fence_stall(graph_of(FENCE), 5, 5)) == {0: 5}
    around = "top: STG.E [R2.64], R0\n@P1 BRA out\nMEMBAR.SC.GPU\nBRA top\nout: EXIT"
    assert _found(fence_stall(graph_of(around), 1, 5)) == {0: 2}


def test_a_fence_with_nothing_before_it_is_blamed_by_who_waits_behind_it() -> None:
    graph = graph_of("MOV R0, R1\nMEMBAR.SC.GPU\nMOV R2, R3\nEXIT")
    assert _found(fence_stall(graph, 2, 5)) == {1: 1}
    assert len(fence_stall(graph, 2, 5).edges) == 1
    for at in (0, 1):
        result = fence_stall(graph, at, 5)
        assert (result.edges, result.found) == ((), {5: UNATTRIBUTED})


def test_an_errbar_only_stands_behind_a_fence() -> None:
    graph = graph_of(FENCE)
    assert [is_fence(instruction) for instruction in graph.instructions].index(True) == 3
    assert not is_fence(graph.instructions[4])


def test_a_sample_belongs_to_the_exit_that_it_stands_behind() -> None:
    text = "EXIT\nNOP\nfilling: BRA filling\nMOV R0, R1\nNOP\nEXIT\nNOP"
    graph = graph_of(text)
    assert [exit_before(graph, at) for at in range(7)] == [0, 0, 0, 0, None, 5, 5]
    assert exit_before(graph_of("NOP\nNOP\nMOV R0, R1"), 1) is None


def _barrier(graph: FunctionGraph, use: int) -> int | None:
    return nearest(graph, use, lambda instruction: instruction.opcode == "BAR")


def test_the_nearest_on_the_ways_to_a_place_and_the_place_itself_first() -> None:
    text = "BAR.SYNC 0x0\n@P0 BRA join\nMOV R0, R1\nBAR.SYNC 0x0\njoin: MOV R2, R3\nBAR.SYNC 0x0\nEXIT"
    graph = graph_of(text)
    assert [_barrier(graph, at) for at in range(7)] == [0, 0, 0, 3, 3, 5, 5]


@pytest.mark.parametrize(("between", "found"), [(253, 0), (254, None)])
def test_it_is_looked_for_over_255_instructions(between: int, found: int | None) -> None:
    text = "\n".join(["BAR.SYNC 0x0", *["MOV R0, R1"] * between, "EXIT"])
    assert _barrier(graph_of(text), between + 1) == found
