# SPDX-License-Identifier: Apache-2.0
"""The scores of blame mean something: a perfect answer is perfect, the blamer beats the trivial baseline."""

from __future__ import annotations

import pytest
from tests.validation.blame import (
    TUNING,
    WAYS,
    Scores,
    accuracy,
    as_blamed,
    case_of,
    evaluate,
    nearest_def,
    overlap,
    score,
    score_filled,
    split,
)

from gpadvisor.blamer import blame
from gpadvisor.blamer.queues import THROTTLES

pytestmark = [pytest.mark.nvdisasm]


def test_the_truth_scores_as_well_as_any_single_answer() -> None:
    case = case_of("kmeans_assign", "before", "sm_80", TUNING)
    perfect = Scores()
    score(case, case.truth, case.truth, perfect)
    assert perfect.total.samples > 0
    assert perfect.total.top == perfect.total.ceiling <= perfect.total.alike_ceiling
    assert perfect.total.main == perfect.total.samples
    assert perfect.total.overlap == pytest.approx(perfect.total.samples)


def test_the_truth_of_throttles_is_agreed_with_by_itself_alone() -> None:
    case = case_of("gemm_strided", "before", "sm_80", TUNING)
    perfect, none, built = Scores(), Scores(), Scores()
    score_filled(case, case.truth, perfect)
    score_filled(case, {}, none)
    blamed = blame(case.program, case.simulation.profile, case.table)
    score_filled(case, as_blamed(case, blamed), built)
    samples, agreed = perfect.filled["memory_throttle"]
    assert samples > 1000
    assert agreed == pytest.approx(samples)
    assert none.filled["memory_throttle"] == (samples, 0.0)
    assert built.filled["memory_throttle"][1] > 0.9 * samples  # its strided loads


def test_no_answer_scores_nothing() -> None:
    case = case_of("kmeans_assign", "before", "sm_80", TUNING)
    nothing = Scores()
    score(case, {}, case.truth, nothing)
    assert nothing.total.top == nothing.total.overlap == 0.0
    assert nothing.total.alike == nothing.total.main == 0.0
    assert sum(nothing.misses.values()) == nothing.total.alike_ceiling


def test_the_baseline_answers_with_a_writer_of_what_is_read() -> None:
    case = case_of("kmeans_assign", "before", "sm_80", TUNING)
    for (function, use, reason), shares in nearest_def(case).items():
        if case.stall_class((function, use, reason)) in THROTTLES:
            continue
        instructions = case.program.functions[function].instructions
        for definition in shares:
            assert set(instructions[definition].defs) & set(instructions[use].uses)


def test_a_third_is_held_back() -> None:
    building, held = split([f"k{at}" for at in range(9)])
    assert len(held) == 3
    assert not set(building) & set(held)


@pytest.mark.slow
def test_the_blamer_beats_the_nearest_def_and_the_paper() -> None:
    found = evaluate(["kmeans_assign", "block_reduce", "thermal_stencil"], ["sm_80"], TUNING)
    assert set(found) == set(WAYS)
    assert overlap(found["as built"]) > overlap(found["nearest def"])
    assert accuracy(found["as built"]) >= accuracy(found["paper"])


def test_equal_operations_are_those_of_the_wait_with_the_opcode_of_the_cause() -> None:
    case = case_of("kmeans_assign", "after", "sm_80", TUNING)
    several = 0
    for (function, use, reason), sets in case.alike.items():
        instructions = case.program.functions[function].instructions
        assert sum(sets.values()) == pytest.approx(sum(case.truth[function, use, reason].values()))
        for equal in sets:
            assert len({instructions[index].opcode for index in equal}) == 1
            assert equal & set(case.truth[function, use, reason])
            several += len(equal) > 1
    assert several
