# SPDX-License-Identifier: Apache-2.0
"""Which of many instructions that fill a queue a wait is shared out among."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from tests.blame_rows import graph_of

from gpadvisor.blamer.queues import _MAX_FILLERS, Queues, _Fillers
from gpadvisor.model.blame import DependencyClass, Role
from gpadvisor.model.stalls import StallClass


@pytest.mark.parametrize("passes", [1, 3])
def test_the_nearest_stand_for_all_that_are_light(passes: float) -> None:
    found = _Fillers(range(200), np.full(200, passes)).near(100)
    assert [at for at, _ in found] == [*range(100 - _MAX_FILLERS // 2, 100 + _MAX_FILLERS // 2)]
    assert sum(weight for _, weight in found) == pytest.approx(200 * passes)


@pytest.mark.parametrize(("use", "first"), [(0, 0), (199, 200 - _MAX_FILLERS)])
def test_at_an_end_they_are_all_on_one_side(use: int, first: int) -> None:
    found = _Fillers(range(200), np.ones(200)).near(use)
    assert [at for at, _ in found] == [*range(first, first + _MAX_FILLERS)]


def test_what_fills_it_most_is_always_among_them() -> None:
    occupied = np.ones(200)
    occupied[0] = 50.0
    found = dict(_Fillers(range(200), occupied).near(199))
    assert found[0] == 50.0
    assert sum(found.values()) == pytest.approx(249)
    assert len(found) == _MAX_FILLERS


def test_as_many_as_are_kept_stand_for_themselves() -> None:
    """Each with its own weight, however light."""
    occupied = np.ones(200)
    occupied[3] = 500.0
    found = _Fillers(range(_MAX_FILLERS), occupied).near(0)
    assert found == [(at, occupied[at]) for at in range(_MAX_FILLERS)]
    assert len(_Fillers(range(_MAX_FILLERS + 1), np.ones(200)).near(0)) == _MAX_FILLERS


def test_of_two_as_near_the_one_before_is_taken() -> None:
    positions = [*range(0, 200, 2)]
    found = [at for at, _ in _Fillers(positions, np.ones(200)).near(99)]
    assert found == [*range(36, 164, 2)]
    assert [at for at, _ in _Fillers(positions, np.ones(200)).near(100)] == [*range(36, 164, 2)]


def test_the_light_ones_that_are_kept_weigh_as_much_as_all_light_ones() -> None:
    occupied = np.ones(300)
    occupied[:2] = 100.0
    found = dict(_Fillers(range(300), occupied).near(150))
    assert (found[0], found[1]) == (100, 100)
    assert {weight for at, weight in found.items() if at > 1} == {298 / (_MAX_FILLERS - 2)}


LOOP = """
    LDG.E R8, [R2.64]
    top: LDG.E R0, [R2.64]
    @P0 BRA top
    LDG.E R1, [R4.64]
    EXIT
    """


def _fillers(samples: Mapping[int, int], use: int, issues: Sequence[int], text: str = LOOP) -> set[int]:
    graph = graph_of(text, issues)
    found = Queues(graph, {StallClass.MEMORY_THROTTLE: samples}).found(use, StallClass.MEMORY_THROTTLE)
    return {source.edge.definition for source in found.sources}


@pytest.mark.parametrize(("turns", "fillers"), [(4, {0, 3}), (3, {0, 1, 3})])
def test_a_loop_of_four_turns_is_a_place_of_its_own(turns: int, fillers: set[int]) -> None:
    issues = [10, 10 * turns, 10 * turns, 10, 7]
    assert _fillers({0: 100}, 0, issues) == fillers
    assert _fillers({0: 100}, 1, issues) == ({1} if turns == 4 else fillers)


def test_a_loop_whose_entry_was_never_seen_is_a_place_of_its_own() -> None:
    assert _fillers({0: 100}, 0, [0, 10, 10, 10, 10]) == {3}
    entry = "top: LDG.E R0, [R2.64]\n@P0 BRA top\nLDG.E R1, [R4.64]\nEXIT"
    assert _fillers({2: 100}, 2, [3, 3, 3, 3], entry) == {2}


@pytest.mark.parametrize(("inside", "fillers"), [(5, {0, 1, 3}), (4, {0, 3})])
def test_a_queue_is_full_in_a_loop_with_a_twentieth_of_the_waits(inside: int, fillers: set[int]) -> None:
    assert _fillers({0: 50, 1: inside, 3: 50 - inside}, 0, [10, 100, 100, 10, 10]) == fillers


def test_what_never_ran_fills_nothing_unless_nothing_ran() -> None:
    assert _fillers({3: 10}, 3, [10, 100, 100, 0, 0]) == {0}
    assert _fillers({3: 10}, 3, [0, 0, 0, 0, 0]) == {0, 3}


def test_an_inner_loop_fills_the_queue_of_the_loop_around_it_and_not_the_other_way() -> None:
    text = """
        outer: LDG.E R8, [R2.64]
        inner: LDG.E R0, [R2.64]
        @P0 BRA inner
        LDG.E R1, [R4.64]
        @P1 BRA outer
        EXIT
        """
    issues = [100, 1000, 1000, 100, 100, 10]
    everywhere = {0: 100, 1: 100, 3: 100}
    assert _fillers(everywhere, 0, issues, text) == {0, 1, 3}
    assert _fillers(everywhere, 1, issues, text) == {1}


@pytest.mark.parametrize(("accesses", "fillers"), [(10, {1}), (11, {0, 1})])
def test_a_full_load_store_queue_backs_up_into_the_one_before_it(accesses: int, fillers: set[int]) -> None:
    graph = graph_of("LDG.E R0, [R2.64]\nLDS R1, [R4]\nEXIT")
    waits = {StallClass.MEMORY_THROTTLE: {0: accesses}, StallClass.SHARED_THROTTLE: {1: 100}}
    found = Queues(graph, waits).found(1, StallClass.SHARED_THROTTLE)
    assert {source.edge.definition for source in found.sources} == fillers


MIXED = """
    LDG.E R0, [R2.64]
    LDS R1, [R4]
    MUFU.RCP R5, R6
    SHFL.IDX PT, R7, R8, R9, 0x1f
    S2R R10, SR_TID.X
    LDC R11, c[0x0][R12]
    FADD R13, R14, R15
    IADD3 R16, R17, R18, RZ
    TEX.SCR.LL RZ, R0, R2, R4, 0x0, 0x5a, 2D, 0x1
    DADD R20, R22, R24
    EXIT
    """


@pytest.mark.parametrize(
    ("use", "stall_class", "fillers"),
    [
        (0, StallClass.MEMORY_THROTTLE, {0}),
        (1, StallClass.SHARED_THROTTLE, {1, 2, 3, 4, 5}),
        (6, StallClass.PIPE_THROTTLE, {6}),
        (7, StallClass.PIPE_THROTTLE, {7}),
        (8, StallClass.TEXTURE_THROTTLE, {8}),
        (9, StallClass.PIPE_THROTTLE, {9}),
        (9, StallClass.SHARED_THROTTLE, set()),
        (1, StallClass.PIPE_THROTTLE, set()),
    ],
)
def test_what_goes_through_which_queue(use: int, stall_class: StallClass, fillers: set[int]) -> None:
    found = Queues(graph_of(MIXED), {stall_class: {10: 5}}).found(use, stall_class)
    assert {source.edge.definition for source in found.sources} == fillers
    assert all(source.edge.alive for source in found.sources)
    assert {(source.distance, source.weight) for source in found.sources} <= {(1, 1.0)}
    behind = [source.edge for source in found.sources if source.edge.definition < use]
    assert [edge.distance for edge in behind] == [use - edge.definition for edge in behind]


def test_each_pipe_that_waits_in_a_queue_has_its_own_fillers() -> None:
    queues = Queues(graph_of(MIXED), {StallClass.MEMORY_THROTTLE: {0: 5, 9: 5}})
    fillers = [
        {source.edge.definition for source in queues.found(use, StallClass.MEMORY_THROTTLE).sources}
        for use in (0, 9, 0)
    ]
    assert fillers == [{0, 9}, {9}, {0, 9}]


def test_a_constant_that_comes_at_once_goes_through_no_queue() -> None:
    text = "LDS R1, [R4]\nULDC UR4, c[0x0][0x118]\nEXIT"
    found = Queues(graph_of(text), {}).found(0, StallClass.SHARED_THROTTLE)
    assert {source.edge.definition for source in found.sources} == {0}


def test_nothing_known_leaves_the_wait_to_itself() -> None:
    found = Queues(graph_of(MIXED), {}).found(1, StallClass.PIPE_THROTTLE)
    assert found == ((), Role.SELF, DependencyClass.SELF)
