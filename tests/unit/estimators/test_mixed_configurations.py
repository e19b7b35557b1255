# SPDX-License-Identifier: Apache-2.0
"""Estimates that change the launch, from samples of launches that cannot be told apart."""

from __future__ import annotations

import pytest
from tests import hand_made as made

from gpadvisor.estimators.parallel import parallel
from gpadvisor.model.advice import Estimate, Match, ParallelTarget
from gpadvisor.model.profile import CONFIGURATION_SHARE, CONFIGURATIONS, KernelProfile

TARGET = ParallelTarget(
    warps_now=1.0,
    warps_new=4.0,
    issue_ratio=0.05,
    factor=4.0,
    factor_reason="f",
    blocks_now=8,
    blocks_new=8,
    threads_now=128,
    threads_new=512,
    limiter="grid",
    busy_sms_now=8,
    busy_sms_new=8,
)
BLAME = made.blame(made.Row(samples=950, latency=950, definition=2, use=3), made.selected(50))


def _estimate(measured: KernelProfile) -> Estimate:
    match = Match(title="t", advice="a", regions=(), parallel=TARGET)
    return parallel(made.context(BLAME, measured=measured), match)


def _of(count: int, share: float) -> Estimate:
    return _estimate(made.profile({CONFIGURATIONS: count, CONFIGURATION_SHARE: share}))


def test_one_configuration_is_as_ever() -> None:
    assert _of(1, 1.0) == _estimate(made.profile())


def test_several_give_a_range_down_to_no_gain_that_says_so() -> None:
    plain, mixed = _of(1, 1.0), _of(3, 0.25)
    assert plain.expected > 1.5
    assert mixed.paper == plain.paper
    assert mixed.expected == pytest.approx(1 / (0.75 + 0.25 / plain.expected))
    assert mixed.low <= 1.0
    assert mixed.high == plain.high
    assert "3 launch configurations that cannot be told apart" in mixed.reason
    assert "25 %" in mixed.reason
