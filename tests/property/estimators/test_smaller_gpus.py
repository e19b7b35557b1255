# SPDX-License-Identifier: Apache-2.0
"""What holds for every estimate of a kernel that was simulated for a stated number of SMs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import hand_made as made

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.smaller_gpus import with_less_dram
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.advice import Estimate, ReducedLoad
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import sentences

DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
WHOLE = timing_of("sm_80")[1].sms
PERCENT = st.floats(0.5, 100)
SMS = st.integers(1, WHOLE)
SPEEDUPS = st.lists(st.floats(0.5, 200), min_size=3, max_size=3).map(sorted)


def _context(sms: int, dram: float, evidence: Evidence = Evidence.MODELLED) -> KernelContext:
    profile = made.profile({DRAM: dram})
    context = made.context(made.blame(made.selected(100)), measured=profile)
    device = replace(profile.device, sms=sms)
    program = replace(context.program, arch="sm_80")
    return replace(context, program=program, profile=replace(profile, device=device), evidence=evidence)


def _estimate(low: float, expected: float, high: float) -> Estimate:
    return Estimate(
        low=low, expected=expected, high=high, paper=expected, equation="", reasons=sentences("r")
    )


@given(SPEEDUPS, SMS, PERCENT)
def test_ends_stay_in_order_and_none_rises(speedups: list[float], sms: int, dram: float) -> None:
    before = _estimate(*speedups)
    after = with_less_dram(_context(sms, dram), before, ())
    assert 0 < after.low <= before.low
    assert after.expected <= before.expected
    assert after.high == before.high
    assert after.low <= after.expected * (1 + 1e-9)


@given(SPEEDUPS, SMS, PERCENT)
def test_more_sms_never_give_less(speedups: list[float], sms: int, dram: float) -> None:
    before = _estimate(*speedups)
    fewer, more = (with_less_dram(_context(count, dram), before, ()) for count in (sms, WHOLE))
    assert fewer.expected <= more.expected
    assert more == before


@given(SPEEDUPS, SMS, PERCENT)
def test_a_measured_gpu_has_its_own_dram(speedups: list[float], sms: int, dram: float) -> None:
    before = _estimate(*speedups)
    assert with_less_dram(_context(sms, dram, Evidence.MEASURED), before, ()) == before


@given(SPEEDUPS, SMS, PERCENT, st.floats(0.05, 1))
def test_fewer_bytes_never_give_less(speedups: list[float], sms: int, dram: float, left: float) -> None:
    before = _estimate(*speedups)
    load = (ReducedLoad(resource="DRAM", remaining=left, remaining_best=left),)
    context = _context(sms, dram)
    assert with_less_dram(context, before, ()).expected <= with_less_dram(context, before, load).expected


def test_dram_of_a_third_of_the_sms_limits_what_is_gained() -> None:
    """A matrix times a vector at 10 % of DRAM, on a third of the SMs: 30 % there, so 3.2x at most."""
    after = with_less_dram(_context(WHOLE // 3, 10.0), _estimate(4.0, 8.0, 9.0), ())
    there = 0.95 / (3 * 0.10)
    assert after.expected == pytest.approx((8.0 * there) ** 0.5)
    assert 0.9 * there < after.low < there
