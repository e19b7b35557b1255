# SPDX-License-Identifier: Apache-2.0
"""GPA113: what floats would take of a GPU that is slow in double precision."""

from __future__ import annotations

import pytest
from tests.optimizer_values import DEVICE, Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.rules.double_precision import OPTIMIZER

FP64 = "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_elapsed"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"


def _context(
    metrics: dict[str, float], arch: str = "sm_75", more: str = "", grid: int = 4096, block: int = 256
) -> KernelContext:
    code = listing(f"one| DFMA R2, R2, R2, R4 // 17\ntwo| DADD R2, R2, R6 // 18\n{more}EXIT", arch)
    kind = DependencyClass.ARITHMETIC
    rows = [
        Row("long_scoreboard", "two", 900, 900, due_to="one", kind=kind),
        Row("selected", "one", 100),
    ]
    labels = ("one", "two", "cut") if "cut|" in more else ("one", "two")
    counts = dict.fromkeys(labels, (1000, 32000))
    return context_of(code, rows, grid=grid, block=block, counts=counts, metrics=metrics)


def _speedups(metrics: dict[str, float]) -> tuple[float, float, float]:
    context = _context(metrics)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    estimate = OPTIMIZER.estimate(context, found)
    return estimate.low, estimate.expected, estimate.high


def test_what_the_pipe_does_not_fill_stays() -> None:
    low, expected, high = _speedups({FP64: 84.0})
    assert expected == pytest.approx(1 / (0.16 + 0.84 / 32), rel=0.01)
    assert 1 < low < expected < high


def test_memory_limits_then_and_moves_half_at_best() -> None:
    _, expected, high = _speedups({FP64: 83.0, DRAM: 64.0})
    assert expected == pytest.approx(1 / (0.17 + 0.64), rel=0.01)
    assert high == pytest.approx(0.83 / 0.32, rel=0.04)


def test_a_gpu_that_is_fast_in_double_precision_needs_nothing() -> None:
    assert isinstance(OPTIMIZER.match(_context({FP64: 84.0}, "sm_80")), Rejection)


def test_doubles_among_floats_are_another_rule() -> None:
    found = OPTIMIZER.match(_context({FP64: 84.0}, more="F2F.F32.F64 R8, R2 // 19\n"))
    assert isinstance(found, Rejection)
    assert "GPA102" in found.reason


@pytest.mark.parametrize(("grid", "block", "told"), [(8, 1024, False), (8, 32, True), (64, 1024, True)])
def test_smaller_blocks_share_the_pipes_of_idle_sms_before_digits_are_given_up(
    grid: int, block: int, told: bool
) -> None:
    """Eight blocks of 1024, told 1.4x of float, gained 1.03x as 64 of 128: an eighth of each pipe's work."""
    found = OPTIMIZER.match(_context({FP64: 84.0}, grid=grid, block=block))
    assert isinstance(found, Match) is told, found
    if isinstance(found, Rejection):
        assert f"busy on 8 of {DEVICE.sms} SMs" in found.reason


DIGITS = """\
cut| DMUL R14, R28, 1.1920928955078125e-07 // 20
F2I.F64.TRUNC R7, R14 // 20
I2F.F64 R16, R7 // 20
DFMA R28, R16, {times}, R28 // 20
"""


@pytest.mark.parametrize(
    ("times", "exact"),
    [("-8388608", True), ("-7.03687441776640000000e+13", True), ("-0.6931471805599453", False)],
)
def test_whole_numbers_of_many_digits_stay_doubles(times: str, exact: bool) -> None:
    """As random numbers of 46 bits (NAS EP), for which float was told; exp() cuts by the logarithm of 2."""
    found = OPTIMIZER.match(_context({FP64: 84.0}, more=DIGITS.format(times=times)))
    assert isinstance(found, Rejection) is exact
    if isinstance(found, Rejection):
        assert "for which a float has too few digits" in found.reason
