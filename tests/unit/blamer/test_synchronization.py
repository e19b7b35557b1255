# SPDX-License-Identifier: Apache-2.0
"""What the slow side of a barrier does before it, and what a barrier takes by itself."""

from __future__ import annotations

import pytest
from tests.blame_rows import graph_of

from gpadvisor.blamer.sources import UNATTRIBUTED
from gpadvisor.blamer.synchronization import (
    barrier_of,
    by_address,
    by_barrier,
    slow_side,
    synchronization_stall,
)
from gpadvisor.model.blame import DependencyClass, Role
from gpadvisor.model.instruction import OpcodeClass

STRAIGHT = "MOV R0, R1\nMOV R2, R3\nMOV R4, R5\nBAR.SYNC 0x0\nMOV R6, R7\nEXIT"
BRANCH = """
    MOV R0, R1
    @P0 BRA join
    MOV R2, R3
    MOV R4, R5
    join: MOV R6, R7
    BAR.SYNC 0x0
    EXIT
    """
LOOP = """
    BAR.SYNC 0x0
    top: MOV R0, R1
    MOV R2, R3
    @P0 BRA top
    MOV R4, R5
    BAR.SYNC 0x0
    EXIT
    """
SYNC = DependencyClass.SYNCHRONIZATION


def test_each_moment_counts_by_how_much_of_the_way_lies_behind_it() -> None:
    """Half of its own time and all that came before: the weights add up to half the square of the time."""
    spent = {0: [(0, 10)], 1: [(1, 10)], 2: [(2, 20)], 4: [(4, 1000)]}
    assert slow_side(graph_of(STRAIGHT), 3, spent) == {0: 50, 1: 150, 2: 600}


def test_a_cause_of_several_samples_has_all_of_their_weight() -> None:
    spent = {0: [(9, 10)], 1: [(1, 10), (9, 10)]}
    assert slow_side(graph_of(STRAIGHT), 3, spent) == {9: 50 + 250, 1: 150}


@pytest.mark.parametrize(("first", "named"), [(20, {0, 1}), (19, {1})])
def test_a_twentieth_of_the_time_is_named_and_less_is_not(first: int, named: set[int]) -> None:
    # The first takes a*a/2 of (a+b)*(a+b)/2.
    assert 20 * 20 * 20 >= (20 + 69) ** 2 > 19 * 19 * 20
    assert slow_side(graph_of(STRAIGHT), 3, {0: [(0, first)], 1: [(1, 69)]}).keys() == named


def test_a_barrier_does_not_wait_for_itself() -> None:
    assert slow_side(graph_of(STRAIGHT), 3, {0: [(3, 90)], 1: [(1, 10)]}) == {1: 10 * (90 + 5)}


@pytest.mark.parametrize(
    ("few", "weights"),
    [
        (100, {0: 50, 2: 150}),
        (50, {0: 50, 2: 20 * (10 + 10)}),  # half as many warps take twice as long
        (200, {0: 50, 2: 150}),  # more than pass by do not take less
        (0, {0: 50, 2: 150}),
    ],
)
def test_what_fewer_warps_do_takes_them_longer(few: int, weights: dict[int, float]) -> None:
    graph = graph_of(BRANCH, [100, 100, few, few, 100, 100, 100])
    assert slow_side(graph, 5, {0: [(0, 10)], 2: [(2, 10)]}) == weights


def test_the_way_to_a_barrier_begins_behind_the_one_before_and_goes_around_loops() -> None:
    spent = {at: [(at, 10)] for at in range(7)}
    assert slow_side(graph_of(LOOP), 5, spent) == {1: 50, 2: 150, 3: 250, 4: 350}
    assert slow_side(graph_of(STRAIGHT), 3, {4: [(4, 10)]}) == {}


@pytest.mark.parametrize(
    ("waited", "own"),
    [(20 * 80 * 4, 0.25), (20 * 80, 1.0), (20 * 10, 1.0), (0, 0.0)],
    ids=["a fourth", "all of it", "no more than all", "not known"],
)
def test_of_the_waiting_behind_a_barrier_its_own_latency_is_its_share(waited: float, own: float) -> None:
    graph = graph_of(STRAIGHT, [80] * 6)
    assert graph.machine.sm.barrier_cycles.value == 20
    spent = {0: [(0, 10)], 1: [(1, 10)]}
    found = synchronization_stall(graph, 4, 7, spent, waited, warpgroup=False).found[7]
    weights = {source.edge.definition: source.weight for source in found.sources}
    expected = {0: (1 - own) / 4, 1: 3 * (1 - own) / 4} | ({3: own} if own else {})
    assert weights == pytest.approx(expected)
    assert {(source.distance, source.dependency_class) for source in found.sources} == {(1, SYNC)}
    assert all(source.edge.alive for source in found.sources)
    assert {source.edge.definition: source.edge.distance for source in found.sources} == {
        at: 4 - at for at in expected
    }


def test_a_barrier_that_nobody_is_late_at_has_all_of_it() -> None:
    found = synchronization_stall(graph_of(STRAIGHT, [80] * 6), 4, 7, {}, 64000, warpgroup=False).found[7]
    assert [(source.edge.definition, source.weight) for source in found.sources] == [(3, 1)]


def test_what_lies_farther_by_the_way_comes_earlier_wherever_it_stands() -> None:
    text = "BRA far\nnear: MOV R0, R1\nBAR.SYNC 0x0\nEXIT\nfar: MOV R2, R3\nBRA near"
    assert slow_side(graph_of(text), 2, {1: [(1, 10)], 4: [(4, 10)]}) == {4: 50, 1: 150}


def test_exactly_a_twentieth_is_named() -> None:
    # 1 * 1 / 2 of ten, the barrier's own aside: 1 * (1 + 8 + 1 / 2) is the other.
    assert slow_side(graph_of(STRAIGHT), 3, {0: [(0, 1)], 1: [(3, 8)], 2: [(2, 1)]}) == {0: 0.5, 2: 9.5}


def test_at_the_barrier_itself_the_slow_side_has_it_all() -> None:
    graph = graph_of(STRAIGHT, [80] * 6)
    found = synchronization_stall(graph, 3, 7, {0: [(0, 10)]}, 1600, warpgroup=False).found[7]
    assert [(source.edge.definition, source.weight) for source in found.sources] == [(0, 50)]


def test_without_a_barrier_nobody_is_known() -> None:
    graph = graph_of("MOV R0, R1\nMOV R2, R3\nEXIT")
    for warpgroup in (False, True):
        result = synchronization_stall(graph, 1, 7, {0: [(0, 10)]}, 100, warpgroup=warpgroup)
        assert (result.edges, result.found) == ((), {7: UNATTRIBUTED})


def test_a_warp_waits_at_the_barrier_that_it_came_by_last() -> None:
    graph = graph_of(LOOP)
    assert [barrier_of(graph, at, warpgroup=False) for at in range(7)] == [0, 0, 0, 0, 0, 5, 5]


def test_a_warpgroup_waits_there_or_right_behind() -> None:
    graph = graph_of("WARPGROUP.ARRIVE\nMOV R0, R1\nMOV R2, R3\nBAR.SYNC 0x0\nEXIT", arch="sm_90")
    assert [barrier_of(graph, at, warpgroup=True) for at in range(5)] == [0, 0, None, None, None]


@pytest.mark.parametrize(
    ("use", "definition"), [(0, None), (1, 0), (3, None), (4, 3)], ids=["entry", "behind", "barrier", "next"]
)
def test_by_address_the_instruction_before_is_blamed_but_a_barrier_keeps_its_own(
    use: int, definition: int | None
) -> None:
    result = by_address(graph_of(STRAIGHT), use, 7, SYNC, {OpcodeClass.BARRIER})
    if definition is None:
        assert result.edges == ()
        assert result.found[7] == ((), Role.SELF, SYNC)
    else:
        (edge,) = result.edges
        assert (edge.definition, edge.use, edge.distance, edge.alive) == (definition, use, 1, True)
        assert [(source.edge, source.distance) for source in result.found[7].sources] == [(edge, 1)]


def test_by_the_paper_the_barrier_is_blamed_and_its_own_stalls_are_its_own() -> None:
    graph = graph_of(STRAIGHT)
    assert by_barrier(graph, 2, 7, SYNC).found[7] == UNATTRIBUTED
    assert by_barrier(graph, 3, 7, SYNC).found[7] == ((), Role.SELF, SYNC)
    (source,) = by_barrier(graph, 5, 7, SYNC).found[7].sources
    assert (source.edge.definition, source.distance, source.edge.alive) == (3, 2, True)
