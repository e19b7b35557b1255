# SPDX-License-Identifier: Apache-2.0
"""What is left of the time when a cure takes load off units."""

from __future__ import annotations

import pytest
from tests import hand_made as made

from gpadvisor.estimators.unit_bounds import unit_bound
from gpadvisor.estimators.utilisation import utilisations, while_active
from gpadvisor.model.profile import KernelProfile

PCT = ".avg.pct_of_peak_sustained_elapsed"
REQUESTS = f"l1tex__lsuin_requests{PCT}"
TO_L2 = f"l1tex__m_xbar2l1tex_read_sectors{PCT}"
WHOLE = "l1tex__throughput.avg.pct_of_peak_sustained_active"


def _expected(profile: KernelProfile, left: float) -> float:
    measured = while_active(profile, utilisations(profile))
    bound = unit_bound(measured, *[{"L1 requests": left}] * 3, "fewer loads")
    assert bound is not None
    return bound.expected


def test_the_part_of_l1_that_a_cure_leaves_is_the_next_limit() -> None:
    profile = made.profile({REQUESTS: 90.0, TO_L2: 60.0, WHOLE: 90.5})
    assert _expected(profile, 0.3) == pytest.approx(1 / (0.6 + 0.1))


def test_l1_as_a_whole_follows_its_parts() -> None:
    profile = made.profile({REQUESTS: 45.0, WHOLE: 90.0})
    assert _expected(profile, 0.5) == pytest.approx(1 / (0.45 + 0.1))


def test_time_without_warps_is_none_that_a_unit_does_not_fill() -> None:
    # Requests fill the unit while warps are there, which is half of the time.
    profile = made.profile({REQUESTS: 50.0, "sm__cycles_active.avg": 500.0, "sm__cycles_elapsed.max": 1000.0})
    assert _expected(profile, 0.5) == pytest.approx(2.0)
