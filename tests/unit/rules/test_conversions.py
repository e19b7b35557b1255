# SPDX-License-Identifier: Apache-2.0
"""GPA112: what spares the conversions that fill the pipe of special functions."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.conversions import conversions
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import strength_reduction
from gpadvisor.rules.conversions import OPTIMIZER

XU = "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"
ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"

# Two pixels at an image's edge, each there or not, and a mean that is taken off another pixel.
GUARDED = """
    init| CS2R R10, SRZ // 10
    one| @!P0 I2F.U16 R10, R2 // 11
    two| @!P1 I2F.U16 R12, R3 // 11
    @!P1 FADD R10, R10, R12 // 11
    alone| I2F.U16 R14, R4 // 12
    FADD R14, R14, -R20 // 12
    use| FMUL R10, R10, R21 // 13
    STG.E [R8.64], R10 // 14
    STG.E [R8.64+0x4], R14 // 14
    EXIT
"""
# A filter over a tile of 16-bit numbers in shared memory.
FILTER = """
    fill| STS.U16 [R20], R2 // 10
    load| LDS.64 R2, [R20] // 11
    one| I2F.U16 R4, R2 // 12
    two| I2F.U16 R5, R2.H1 // 12
    three| I2F.U16 R6, R3 // 12
    four| I2F.U16 R7, R3.H1 // 12
    use| FFMA R8, R4, c[0x3][0x0], R8 // 12
    FFMA R8, R5, c[0x3][0x4], R8 // 12
    FFMA R8, R6, c[0x3][0x8], R8 // 12
    FFMA R8, R7, c[0x3][0xc], R8 // 12
    STG.E [R10.64], R8 // 13
    EXIT
"""
# A product in half of floats that are made half for it, of which the pipe of special functions does two.
HALVES = """
    load| LDG.E.CONSTANT.SYS R2, [R20] // 10
    LDG.E.CONSTANT.SYS R4, [R22] // 10
    one| F2F.F16.F32 R3, R2 // 10
    two| F2F.F16.F32 R5, R4 // 10
    use| HFMA2 R0, R3.H0_H0, R5.H0_H0, R0.H0_H0 // 10
    STG.E [R8.64], R0 // 14
    EXIT
"""


def _context(text: str, metrics: dict[str, float]) -> KernelContext:
    code = listing(text)
    tags = dict.fromkeys(code.tags, (1000, 32000))
    rows = [Row("mio_throttle", "one", 500, 500), Row("selected", "use", 500)]
    return context_of(code, rows, counts=tags, metrics=metrics)


def _cure(text: str, metrics: dict[str, float]) -> str:
    found = OPTIMIZER.match(_context(text, metrics))
    assert isinstance(found, Match), found
    return found.cure


def test_conversions_that_are_little_of_the_pipes_load_are_not_told() -> None:
    roots = "\n".join(f"root{at}| MUFU.RSQ R30, R31 // 9" for at in range(8))
    context = _context(f"{roots}\n{FILTER}", {XU: 90.0, ISSUE: 30.0, L1: 30.0})
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection)
    assert found.reason == "conversions are 33.3 % of the load of XU"


@pytest.mark.parametrize(("store", "once"), [("STS.U16 [R20], R2", True), ("STS.64 [R20], R2", False)])
def test_a_store_fills_as_many_elements_as_it_is_wide(store: str, once: bool) -> None:
    """Of four that each pass converts one is filled, or all four: then converting them there spares none."""
    text = FILTER.replace("STS.U16 [R20], R2", store)
    assert ("convert each element once" in _cure(text, {XU: 90.0, ISSUE: 30.0, L1: 30.0})) is once


def test_a_sum_of_what_may_not_be_there_is_a_sum() -> None:
    (function,) = listing(GUARDED).program.functions
    found = conversions(function)
    lines = [function.lines[at] for at in found.summed]
    assert [line.location.line for line in lines if line is not None] == [11, 11]
    assert len(found.sums) == 1


def test_a_mean_that_is_taken_off_a_number_is_no_sum() -> None:
    (function,) = listing(GUARDED).program.functions
    assert [function.instructions[at].operands for at in conversions(function).short] == ["R14, R4"]


def test_sums_are_added_as_integers() -> None:
    assert "add the integers as integers, if the sums fit, and convert the sum" in _cure(GUARDED, {XU: 90.0})


def test_a_tile_is_converted_as_it_is_filled_where_l1_has_room() -> None:
    assert "keep floats in shared memory" in _cure(FILTER, {XU: 90.0, L1: 40.0, ISSUE: 40.0})


def test_where_l1_has_no_room_bits_make_floats() -> None:
    assert "0x4b000000" in _cure(FILTER, {XU: 90.0, L1: 70.0, ISSUE: 40.0})


def test_bits_take_issue_slots() -> None:
    found = OPTIMIZER.match(_context(FILTER, {XU: 90.0, L1: 70.0, ISSUE: 75.0}))
    assert isinstance(found, Rejection)
    assert "would issue" in found.reason


@pytest.mark.parametrize(
    ("xu", "cache", "told"), [(62.0, 70.0, True), (55.0, 50.0, True), (55.0, 58.0, False)]
)
def test_a_pipe_below_the_line_is_looked_at_where_no_unit_is_busier(
    xu: float, cache: float, *, told: bool
) -> None:
    found = OPTIMIZER.match(_context(GUARDED, {XU: xu, L1: cache}))
    assert isinstance(found, Match) is told


def test_a_pipe_that_has_room_needs_nothing() -> None:
    assert isinstance(OPTIMIZER.match(_context(GUARDED, {XU: 45.0})), Rejection)


def test_factors_are_multiplied_as_they_were_loaded() -> None:
    found = OPTIMIZER.match(_context(HALVES, {XU: 90.0, ISSUE: 60.0}))
    assert isinstance(found, Match), found
    assert found.title.startswith("2 conversions from float to half at ")
    assert "multiply and add in float" in found.cure


def test_halves_that_are_stored_are_what_was_asked_for() -> None:
    stored = HALVES.replace("[R8.64], R0", "[R8.64], R3")
    assert isinstance(OPTIMIZER.match(_context(stored, {XU: 90.0, ISSUE: 60.0})), Rejection)


def test_factors_made_half_for_a_product_are_no_slow_arithmetic_of_another_rule() -> None:
    """After a product in half that was told twice: to make no halves, and to use fewer of them."""
    busy = {XU: 90.0, ISSUE: 60.0}
    assert isinstance(strength_reduction.OPTIMIZER.match(_context(HALVES, busy)), Rejection)
    stored = HALVES.replace("[R8.64], R0", "[R8.64], R3")  # a half that is wanted is slow all the same
    assert isinstance(strength_reduction.OPTIMIZER.match(_context(stored, busy)), Match)


@pytest.mark.parametrize(
    ("text", "l1", "left"),
    [
        (GUARDED, 30.0, {"XU pipe": 2 / 3, "issue": 4 / 5}),  # of two one stays, and one that is not summed
        (FILTER, 30.0, {"XU pipe": 1 / 4, "issue": 4 / 7}),  # an element is converted once, not four times
        (FILTER, 70.0, {"XU pipe": 0.0}),  # bits take issue slots
    ],
)
def test_what_is_left_of_the_pipe_and_of_the_issue_slots(
    text: str, l1: float, left: dict[str, float]
) -> None:
    found = OPTIMIZER.match(_context(text, {XU: 90.0, ISSUE: 30.0, L1: l1}))
    assert isinstance(found, Match)
    remaining = {reduced.resource: reduced.remaining for reduced in found.reduced_loads}
    assert remaining == pytest.approx(left, abs=0.002)
    assert [len(region.rows) for region in found.regions] == [1]


@pytest.mark.parametrize(("issue", "told"), [(93.0, True), (94.0, False)])
def test_fewer_instructions_leave_room_to_issue(issue: float, told: bool) -> None:
    found = OPTIMIZER.match(_context(GUARDED, {XU: 75.0, ISSUE: issue}))
    assert isinstance(found, Match) is told
