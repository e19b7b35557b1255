# SPDX-License-Identifier: Apache-2.0
"""The part of a launch's time that a stall cure reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import hand_made as made

from gpadvisor.estimators.caps import Cap
from gpadvisor.estimators.elapsed import active_share, elapsed_cycles, whole
from gpadvisor.estimators.launches import idle_share
from gpadvisor.estimators.ranges import Range, allow_for_model, cut_by
from gpadvisor.model.profile import Evidence, KernelProfile, MetricValue


def _profile(blocks: int = 1000, sms: int | None = 80, **metrics: MetricValue) -> KernelProfile:
    named = {f"{name[:-4]}.{name[-3:]}": value for name, value in metrics.items()}
    found = made.profile(named)
    return replace(
        found,
        launch=replace(found.launch, grid=(blocks, 1, 1)),
        device=replace(found.device, sms=sms),
    )


def test_the_longest_sm_says_what_is_outside_of_every_sm() -> None:
    found = _profile(sm__cycles_active_avg=600.0, sm__cycles_active_max=900.0, sm__cycles_elapsed_max=1000)
    assert active_share(found) == 0.9


def test_the_mean_over_all_sms_is_that_of_the_busy_ones() -> None:
    # 8 blocks on 68 SMs, each active all the time: 8 / 68 on average, and nothing outside of it.
    found = _profile(8, 68, sm__cycles_active_avg=1000 * 8 / 68, gpc__cycles_elapsed_max=1000.0)
    assert active_share(found) == pytest.approx(1.0)
    full = _profile(64, 64, sm__cycles_active_avg=828.0, gpc__cycles_elapsed_max=1000.0)
    assert active_share(full) == pytest.approx(0.828)


def test_replays_that_differ_in_length_give_no_more_than_the_whole() -> None:
    assert active_share(_profile(sm__cycles_active_max=1002.0, sm__cycles_elapsed_max=1000.0)) == 1.0


@pytest.mark.parametrize(
    "found",
    [
        _profile(),
        _profile(sm__cycles_active_avg=900.0),
        _profile(sm__cycles_elapsed_max=1000.0),
        _profile(sms=None, sm__cycles_active_avg=900.0, sm__cycles_elapsed_max=1000.0),
        _profile(blocks=0, sm__cycles_active_avg=900.0, sm__cycles_elapsed_max=1000.0),
        _profile(sm__cycles_active_max=float("nan"), sm__cycles_elapsed_max=1000.0),
        _profile(sm__cycles_active_max=900.0, sm__cycles_elapsed_max=0.0),
    ],
)
def test_what_was_not_counted_is_not_known(found: KernelProfile) -> None:
    assert active_share(found) is None


def test_the_sm_clock_comes_before_another_one() -> None:
    both = _profile(sm__cycles_elapsed_avg=990.0, gpc__cycles_elapsed_max=1000.0)
    assert elapsed_cycles(both) == 990.0


def test_amdahl_keeps_the_rest() -> None:
    assert whole(2.0, 0.8) == pytest.approx(1 / 0.6)
    assert whole(0.5, 0.5) == pytest.approx(1 / 1.5)
    assert whole(3.0, 1.0) == pytest.approx(3.0)


def test_of_one_block_the_share_of_an_sm_without_a_warp_is_known() -> None:
    found = _profile(1, 80, sm__cycles_active_avg=10.0, sm__cycles_elapsed_max=1000.0)
    assert idle_share(found) == pytest.approx(0.2)
    assert idle_share(replace(found, evidence=Evidence.MODELLED)) is None
    assert idle_share(_profile(0, 80, sm__cycles_active_avg=10.0, sm__cycles_elapsed_max=1000.0)) is None


def test_a_cap_at_the_value_itself_lowers_nothing_and_is_not_told() -> None:
    found = Range(low=1.0, expected=2.0, high=3.0, reasons=[])
    assert cut_by(found, Cap(2.0, "as it is"), Cap(3.0, "as it is")) is None
    assert (found.low, found.expected, found.high) == (1.0, 2.0, 3.0)
    assert cut_by(found, Cap(1.5, "less work"), None) == "expected at most 1.50x: less work"
    assert (found.low, found.expected, found.high) == (1.0, 1.5, 3.0)


def test_a_modelled_low_end_is_lower_than_a_measured_one() -> None:
    found = Range(low=2.0, expected=2.0, high=3.0, reasons=[])
    allow_for_model(found, made.context())
    assert (found.low, found.reasons) == (2.0, [])
    allow_for_model(found, made.context(evidence=Evidence.MODELLED))
    assert found.low < 2.0 == found.expected
