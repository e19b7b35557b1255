# SPDX-License-Identifier: Apache-2.0
"""Atomic operations that meet in one slice of L2: when they are the cause, and what adding them up leaves."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators import constants
from gpadvisor.estimators.contention import Contention, contention, without_contention
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.atomics import Atomic
from gpadvisor.model.advice import MeasuredBound

MOST = "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"
MEAN = "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"
CODE = "add| {} R2, [R4.64], R6 // 3\nuse| FADD R3, R2, R2 // 4\nEXIT"


def _context(
    opcode: str = "ATOMG.E.ADD.STRONG.GPU PT,", most: float = 90, mean: float = 4, **more: Any
) -> KernelContext:
    metrics = {MOST: most, MEAN: mean, "l1tex__throughput.avg.pct_of_peak_sustained_active": 10.0}
    values = {"counts": {"add": (1000, 32_000), "use": (1000, 32_000)}, "grid": 125, **more}
    values["metrics"] = metrics | values.get("metrics", {})
    return context_of(listing(CODE.format(opcode)), [Row("selected", "use", 10)], **values)


def test_a_slice_is_full_if_it_is_far_above_the_mean_and_nothing_else_is_busy() -> None:
    found = contention(_context())
    assert found is not None
    assert (found.per_cycle, found.mean, found.load) == (0.9, 0.04, 0.9)
    assert "takes 0.90 of them a cycle" in found.words
    assert "a slice on average 0.040" in found.words
    assert contention(_context(most=60)) is not None
    assert contention(_context(most=59)) is None
    assert contention(_context(most=90, mean=46)) is None  # all slices
    assert contention(_context(most=90, mean=45)) is not None
    for percent, waits in ((20.0, True), (21.0, False)):
        busy = {"dram__throughput.avg.pct_of_peak_sustained_elapsed": percent}
        assert (contention(_context(metrics=busy)) is not None) == waits
    assert contention(_context(counts={"use": (1000, 32_000)})) is None  # nobody executed one
    assert contention(replace(_context(), profile=None)) is None


def test_floats_take_a_slice_longer() -> None:
    found = contention(_context("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", most=55))
    assert found is not None
    assert found.load == pytest.approx(min(1.0, 0.55 * constants.FLOAT_ATOMIC))
    assert contention(_context("REDG.E.ADD.STRONG.GPU", most=55)) is None
    full = contention(_context("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", most=95))
    assert full is not None
    assert full.load == 1


def _bound(load: float = 1.0, *, opcode: str = "REDG.E.ADD.STRONG.GPU", **atomic: Any) -> MeasuredBound:
    """One atomic instruction, no loads and no unit that anybody counted."""
    context = context_of(listing(CODE.format(opcode)), [Row("selected", "use", 10)], grid=125)
    assert context.profile is not None
    function = context.program.functions[0]
    values = {"warps": 1000.0, "threads": 32.0, "meeting": 32.0, **atomic}
    one = Atomic(function=function, index=0, **values)
    held = Contention(atomics=(one,), per_cycle=load, mean=0.0, load=load)
    return without_contention(context, context.profile, held)


def test_what_is_added_up_in_a_warp_or_in_a_block() -> None:
    """32 threads of a warp meet, 8 warps of a block: 1/32 or 1/256 of the operations are left."""
    bound = _bound()
    assert bound.elapsed
    assert 1 / bound.low == pytest.approx(1 / 32)
    assert 1 / bound.expected == pytest.approx(1 / sqrt(32 * 256))
    assert 1 / bound.high == pytest.approx(1 / 256)
    assert "they keep the slice for 1.1 % of the present time (0.39 to 3.1 %)" in bound.reason


def test_threads_that_add_up_first_pass_less_on() -> None:
    assert 1 / _bound(passes=2.0, meeting=8.0).high == pytest.approx(1 / (8 * 8 * 2))
    assert 1 / _bound(passes=2.0, meeting=8.0).low == pytest.approx(1 / 8)


@pytest.mark.parametrize("what", [{"by_data": True}, {"opcode": "ATOMG.E.ADD.STRONG.GPU PT,"}])
def test_other_warps_may_go_elsewhere(what: dict[str, Any]) -> None:
    """Where data chooses the word, or the old value is used, only the warp is sure to meet."""
    bound = _bound(meeting=16.0, **what)
    assert 1 / bound.expected == pytest.approx(1 / 16) == pytest.approx(1 / bound.low)
    assert 1 / bound.high == pytest.approx(1 / (16 * 8))


def test_a_warp_that_has_added_up_already_leaves_the_block() -> None:
    bound = _bound(threads=1.0, meeting=1.0)
    assert bound.low == pytest.approx(8) == pytest.approx(bound.expected) == pytest.approx(bound.high)


def test_one_thread_that_sends_for_its_block_has_nothing_to_add_up() -> None:
    bound = _bound(warps=125.0, threads=1.0, meeting=1.0)
    assert (bound.low, bound.expected, bound.high) == (1.0, 1.0, 1.0)
    twice = _bound(warps=250.0, threads=1.0, meeting=1.0)  # of two warps, or in two passes
    assert 1 / twice.expected == pytest.approx(1 / 2)


def test_an_operation_that_cannot_be_added_up_stays() -> None:
    bound = _bound(opcode="ATOMG.E.EXCH.STRONG.GPU PT,")
    assert (bound.low, bound.expected, bound.high) == (1, 1, 1)


def test_a_small_array_is_added_up_in_shared_memory_and_written_once_by_each_block() -> None:
    """64 words of 125 blocks for 32,000 operations: a quarter; neighbours go in one request of 8 words."""
    bound = _bound(words=64)
    assert 1 / bound.low == pytest.approx(64 * 125 / 32_000)
    assert 1 / bound.expected == pytest.approx(64 * 125 / 32_000 / 8)
    assert 1 / bound.high == pytest.approx(64 * 125 / 32_000 / 8)
    assert _bound(words=1 << 20).low == 1  # more words than operations: nothing is gained


def test_copies_in_shared_memory_take_their_turns() -> None:
    def low(meeting: float | None) -> float:
        code = listing(CODE.format("REDG.E.ADD.STRONG.GPU"))
        context = context_of(code, [Row("selected", "use", 10)], grid=125,
            metrics={"sm__cycles_elapsed.max": 1000.0})  # fmt: skip
        assert context.profile is not None
        one = Atomic(
            function=context.program.functions[0],
            index=0,
            warps=4000.0,
            threads=32.0,
            meeting=meeting,
            words=64,
        )
        held = Contention(atomics=(one,), per_cycle=1.0, mean=0.0, load=1.0)
        return 1 / without_contention(context, context.profile, held).low

    left = 64 * 125 / (4000 * 32)
    assert low(8.0) == pytest.approx(left + 4000 * 8 / (80 * 1000))
    assert low(None) == pytest.approx(left + 4000 / (80 * 1000))


def test_a_busy_unit_elsewhere_keeps_its_time() -> None:
    context = _context(metrics={"dram__throughput.avg.pct_of_peak_sustained_elapsed": 15.0})
    held = contention(context)
    assert held is not None
    assert context.profile is not None
    bound = without_contention(context, context.profile, held)
    assert bound.high == pytest.approx(1 / 0.15)
    assert 1 / bound.low > 0.15 + 0.9 / 32
    assert bound.low < bound.expected < bound.high
    assert "the busiest other unit works for 15 %" in bound.reason
