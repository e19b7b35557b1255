# SPDX-License-Identifier: Apache-2.0
"""GPA111: which constants a warp's threads read, and what stays when they come from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.utilisation import utilisations
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.rules.constant_divergence import OPTIMIZER

CACHE = "idc__request_cycles_active.avg.pct_of_peak_sustained_elapsed"
ADU = "sm__inst_executed_pipe_adu.avg.pct_of_peak_sustained_elapsed"
L1 = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"
ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"


def _context(index: str, metrics: dict[str, float], waiting: int = 500) -> KernelContext:
    code = listing(
        f"number| S2R R0, SR_TID.X // 16\n{index} // 17\nconstant| LDC.U16 R3, c[0x3][R1] // 17\n"
        "use| FMUL R2, R2, R3 // 18\nload| LDG.E R6, [R8.64] // 19\nEXIT"
    )
    kind = DependencyClass.CONSTANT_MEMORY
    rows = [
        Row("selected", "use", 1000 - waiting),
        Row("short_scoreboard", "use", waiting, waiting, due_to="constant", kind=kind),
    ]
    counts = {"constant": (1000, 32000), "load": (1000, 32000), "use": (1000, 32000)}
    return context_of(code, rows, counts=counts, metrics=metrics)


BY_THREAD = "SHF.L.U32 R1, R0, 0x1, RZ"
BY_DATA = "LDG.E R1, [R0]"


def test_two_halves_are_in_one_word() -> None:
    found = OPTIMIZER.match(_context(BY_THREAD, {}))
    assert isinstance(found, Match)
    assert "16 different constants" in found.title


def test_rows_whose_length_is_a_product_are_different_ones() -> None:
    """As in a filter of (channels, rows, columns) read by blocks of 16 x 16: a warp reads of two rows."""
    product = (
        "S2R R5, SR_TID.Y\nMOV R6, c[0x0][0x160]\nIMAD R6, R6, c[0x0][0x164], RZ\n"
        "IMAD R6, R6, c[0x0][0x168], RZ\nIMAD R1, R5, R6, R0\nSHF.L.U32 R1, R1, 0x2, RZ"
    )
    context = _context(product, {})
    assert context.profile is not None
    launch = replace(context.profile.launch, block=(16, 16, 1))
    found = OPTIMIZER.match(replace(context, profile=replace(context.profile, launch=launch)))
    assert isinstance(found, Match)
    assert "32 different constants" in found.title


def test_the_time_left_is_that_of_the_next_unit() -> None:
    context = _context(BY_THREAD, {CACHE: 88.0, ADU: 88.5, ISSUE: 54.0, L1: 30.0})
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match)
    estimate = OPTIMIZER.estimate(context, found)
    assert 1.2 < estimate.expected < estimate.high < 2.0


@pytest.mark.parametrize(("waiting", "told"), [(50, True), (49, False)])
def test_waits_of_less_than_a_twentieth_are_not_told(waiting: int, told: bool) -> None:
    assert isinstance(OPTIMIZER.match(_context(BY_THREAD, {}, waiting)), Match) is told


def test_what_data_decides_needs_a_busy_constant_cache() -> None:
    assert isinstance(OPTIMIZER.match(_context(BY_DATA, {CACHE: 88.0})), Match)
    assert isinstance(OPTIMIZER.match(_context(BY_DATA, {CACHE: 20.0})), Rejection)


def test_a_full_l1_is_no_better_place() -> None:
    found = OPTIMIZER.match(_context(BY_THREAD, {CACHE: 70.0, L1: 60.0}))
    assert isinstance(found, Rejection)
    assert "L1 would be as full" in found.reason


@pytest.mark.parametrize(
    ("full", "told"),
    # A load of constants for each other access doubles what goes through L1.
    [(29.9, True), (35.0, True), (36.0, False)],
)
def test_l1_may_become_as_full_as_the_constant_cache_is(full: float, told: bool) -> None:
    assert isinstance(OPTIMIZER.match(_context(BY_THREAD, {CACHE: 70.0, L1: full})), Match) is told


@pytest.mark.parametrize(("full", "told"), [(30.0, True), (31.0, False)])
def test_l1_may_become_busy_where_the_constant_cache_is_not(full: float, told: bool) -> None:
    assert isinstance(OPTIMIZER.match(_context(BY_THREAD, {CACHE: 20.0, L1: full})), Match) is told


@pytest.mark.parametrize(("warps", "different"), [(7_000, 16), (9_000, 2)])
def test_the_load_with_most_turns_of_the_cache_is_told(warps: int, different: int) -> None:
    """A thousand warps read 16 words each: 16,000 turns, against two words of so many warps."""
    code = listing(
        "S2R R0, SR_TID.X // 16\nSHF.L.U32 R1, R0, 0x1, RZ // 17\nmany| LDC.U16 R3, c[0x3][R1] // 17\n"
        "SHF.R.U32.HI R4, RZ, 0x4, R0 // 18\nSHF.L.U32 R4, R4, 0x2, RZ // 18\ntwo| LDC R5, c[0x3][R4] // 18\n"
        "use| FMUL R2, R5, R3 // 19\nEXIT"
    )
    rows = [Row("short_scoreboard", "use", 500, 500, due_to="many", kind=DependencyClass.CONSTANT_MEMORY)]
    counts = {"many": (1000, 32_000), "two": (warps, 32 * warps), "use": (1000, 32_000)}
    found = OPTIMIZER.match(context_of(code, rows, counts=counts))
    assert isinstance(found, Match)
    assert f"read {different} different constants" in found.title
    (adjustment,) = found.adjustments
    assert (adjustment.low, adjustment.expected, adjustment.high) == (
        0.5,
        0.75,
        1.0,
    )  # half to all, the middle


@pytest.mark.parametrize(("adu", "first"), [(88.5, "constant cache"), (95.0, "ADU pipe")])
def test_the_unit_that_is_named_is_the_constant_cache(adu: float, first: str) -> None:
    profile = _context(BY_THREAD, {CACHE: 88.0, ADU: adu, ISSUE: 54.0}).profile
    assert profile is not None
    assert utilisations(profile)[0].name == first
