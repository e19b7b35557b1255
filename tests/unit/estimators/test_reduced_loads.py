# SPDX-License-Identifier: Apache-2.0
"""Issue slots and pipes that a cure frees, by executed counts or by the samples of issue."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.reduced_loads import fewer_warps, freed, freed_with_passes
from gpadvisor.estimators.utilisation import ISSUE, L1_DATA, L1_REQUESTS
from gpadvisor.model.advice import Match, ReducedLoad
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.rules import loop_unrolling, strength_reduction, thread_increase

KERNEL = FunctionId(0)
EXCURSION = (
    "wide| F2F.F64.F32 R4, R2 // 3\nmul| DMUL R4, R4, 2 // 3\nnarrow| F2F.F32.F64 R6, R4 // 3\n"
    "add| FADD R8, R6, R9 // 3\nput| STG.E [R10.64], R8 // 4\nend| EXIT"
)
TAGS = ("wide", "mul", "narrow", "add", "put", "end")
WAITS = (
    Row("short_scoreboard", "mul", 300, 200, "wide", DependencyClass.ARITHMETIC),
    Row("short_scoreboard", "add", 300, 200, "narrow", DependencyClass.ARITHMETIC),
)
ISSUED = tuple(Row("selected", tag, 100) for tag in TAGS)


def _by_name(loads_left: tuple[ReducedLoad, ...]) -> dict[str, float]:
    return {reduced.resource: pytest.approx(reduced.remaining) for reduced in loads_left}


def test_shares_are_of_executed_instructions() -> None:
    counts = dict.fromkeys(TAGS, (100, 3200)) | {"end": (500, 16000)}
    context = context_of(listing(EXCURSION), ISSUED, counts=counts)
    found = _by_name(freed(context, {(KERNEL, 0): 1.0, (KERNEL, 2): 0.5}, elsewhere=[(KERNEL, 1)]))
    assert found[ISSUE] == 1 - 150 / 1000  # what another pipe does keeps its issue slot
    assert found["FP64 pipe"] == pytest.approx(0.001)
    assert found["XU pipe"] == 1 - 150 / 200
    assert "LSU pipe" not in found


def test_without_counts_the_samples_of_issue_weigh() -> None:
    rows = (*ISSUED, Row("selected", "wide", 400))
    found = _by_name(freed(context_of(listing(EXCURSION), rows), {(KERNEL, 0): 1.0}))
    assert found[ISSUE] == 1 - 500 / 1000


def test_nothing_is_known_without_either() -> None:
    assert freed(context_of(listing(EXCURSION)), {(KERNEL, 0): 1.0}) == ()


def test_accesses_of_shared_memory_take_their_passes_along() -> None:
    code = listing("load| LDG.E R2, [R6.64]\nput| STS [R4], R2\nget| LDS R3, [R4]\nEXIT")
    counted = {
        "memory_l1_wavefronts_shared": {"put": 100.0, "get": 300.0},
        "memory_l2_theoretical_sectors_global": {"load": 400.0},
    }
    context = context_of(code, ISSUED[:0], pc_metrics=counted)
    gone, best = {(KERNEL, 2): 0.5}, {(KERNEL, 1): 1.0, (KERNEL, 2): 1.0}
    (found,) = [one for one in freed_with_passes(context, gone, best) if one.resource == L1_DATA]
    assert (found.remaining, found.remaining_best) == (1 - 150 / 500, 1 - 400 / 500)
    uncounted = freed_with_passes(context_of(code), gone, best)
    assert L1_DATA not in {one.resource for one in uncounted}


def test_what_moves_to_another_pipe_leaves_the_rest_of_its_own() -> None:
    doubles = "one| DMUL R4, R4, 2\ntwo| DADD R6, R6, R8\nthree| DADD R8, R6, R8\nend| EXIT"
    counts = {"one": (100, 3200), "two": (200, 6400), "three": (100, 3200), "end": (100, 3200)}
    context = context_of(listing(doubles), ISSUED[:0], counts=counts)
    found = _by_name(freed(context, {(KERNEL, 2): 0.5}, elsewhere=[(KERNEL, 0)]))
    assert found["FP64 pipe"] == 1 - (100 + 50) / 400
    assert found[ISSUE] == 1 - 50 / 500


def test_full_warps_are_fewer() -> None:
    found = _by_name(fewer_warps(0.5))
    assert found[ISSUE] == found[L1_REQUESTS] == found["LSU pipe"] == 0.5
    assert "DRAM" not in found


def test_removed_conversions_lift_the_limit_of_the_schedulers() -> None:
    busy = {"sm__issue_active.avg.pct_of_peak_sustained_elapsed": 80.0}
    context = context_of(listing(EXCURSION), (*WAITS, *ISSUED), metrics=busy)
    found = strength_reduction.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert _by_name(found.reduced_loads)[ISSUE] == 1 - 2 / 6
    estimate = strength_reduction.OPTIMIZER.estimate(context, found)
    assert 1 / 0.8 < estimate.expected < 1 / (0.8 * 4 / 6)
    assert "then units work 53 % of the present time" in estimate.reason


def test_an_unrolled_loop_counts_and_jumps_less() -> None:
    text = (
        "again:\nload| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\nstep| IADD3 R4, R4, 0x1, RZ // 4\n"
        "test| ISETP.NE.AND P0, PT, R4, R12, PT // 4\nback| @P0 BRA again // 4\nEXIT"
    )
    tags = ("load", "use", "step", "test", "back")
    rows = [Row("long_scoreboard", "use", 500, 450, "load", DependencyClass.GLOBAL_MEMORY)]
    context = context_of(listing(text), (*rows, *(Row("selected", tag, 100) for tag in tags)))
    found = loop_unrolling.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert _by_name(found.reduced_loads)[ISSUE] == 1 - 0.75 * 3 / 5


def test_partial_warps_become_full_ones() -> None:
    index = "S2R R0, SR_CTAID.X\nS2R R1, SR_TID.X\nIMAD R0, R0, c[0x0][0x0], R1\n"
    guard = "ISETP.GE.AND P0, PT, R0, c[0x0][0x160], PT\n@P0 EXIT\n"
    context = context_of(listing(index + guard + EXCURSION), (*WAITS, *ISSUED), block=16)
    found = thread_increase.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert _by_name(found.reduced_loads)[ISSUE] == 0.5


def test_loads_that_go_free_the_queue_of_requests() -> None:
    text = "a| LDG.E R2, [R6.64]\nb| LDG.E R3, [R8.64]\nc| FADD R4, R2, R3\nd| STG.E [R10.64], R4\nEXIT"
    counts = dict.fromkeys("abcd", (100, 3200))
    context = context_of(listing(text), [Row("selected", "a", 1)], counts=counts)
    found = _by_name(freed(context, {(KERNEL, 0): 1.0}))
    assert found[L1_REQUESTS] == found["LSU pipe"] == 2 / 3
