# SPDX-License-Identifier: Apache-2.0
"""The paper's equations as printed, and the ranges around them."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Final

import pytest
from tests import hand_made as made

from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.latency_hiding import ScopeSamples, hidden_samples, hiding_equation, latency_hiding
from gpadvisor.estimators.parallel import issue_ratio, parallel, parallel_equation
from gpadvisor.estimators.ranges import factors
from gpadvisor.estimators.stall_elimination import elimination_equation, stall_elimination
from gpadvisor.model.advice import Adjustment, Estimate, Match, MeasuredBound, ParallelTarget, ReducedLoad
from gpadvisor.model.blame import Blame

LOW, HIGH = 1 - RUN_TO_RUN, 1 + RUN_TO_RUN  # both ends allow for times that differ
FULL_L1 = {
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 98.54,
    "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 11.94,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 0.2,
}


def match(*regions: object, **changes: object) -> Match:
    return Match(title="t", advice="a", regions=regions, **changes)  # type: ignore[arg-type]  # keywords by name


def thousand(matched: int = 200, latency: int = 150) -> Blame:
    """A thousand samples of which the first row matches; 400 are latency samples."""
    return made.blame(
        made.Row(samples=matched, latency=latency),
        made.Row(samples=400, latency=400 - latency, definition=2, use=3),
        made.selected(600 - matched),
    )


def evaluated(text: str) -> float:
    """The value of ``a / (b - c)`` as an equation prints it."""
    found = re.search(r"= (\d+) / \((\d+) - (\d+)\)", text)
    assert found is not None, text
    total, again, removed = map(int, found.groups())
    assert total == again
    return total / (total - removed)


def test_eq_2() -> None:
    assert elimination_equation(1000, 200) == 1.25
    estimate = stall_elimination(made.context(thousand()), match(made.region([0])))
    assert estimate.paper == 1.25
    assert evaluated(estimate.equation) == estimate.paper


@pytest.mark.parametrize("samples", [14, 48, 333, 7_777, 1_000_003])
def test_the_expected_value_comes_out_of_the_numbers_beside_it(samples: int) -> None:
    blamed = made.blame(
        made.Row(samples=samples // 3, latency=samples // 4), made.selected(samples - samples // 3)
    )
    part = Adjustment(low=0.0, expected=0.37, high=1.0, reason="it may")
    estimate = stall_elimination(made.context(blamed), match(made.region([0]), adjustments=(part,)))
    found = re.search(r"by the samples: (\d+) / \(\d+ - ([\d.]+)\) = ([\d.]+)", estimate.reason)
    assert found is not None
    total, removed, said = (float(text) for text in found.groups())
    assert f"{total / (total - removed):.3f}" == f"{said:.3f}"
    found = re.search(
        r"([\d.]+) \+ \(1 - ([\d.]+)\) x ([\d.]+) = ([\d.]+) .* not overlap, ([\d.]+) if they do; "
        r"expected is 1 / sqrt\(([\d.]+) x ([\d.]+)\) = ([\d.]+)",
        estimate.reason,
    )
    assert found is not None
    after, now, left, apart, overlapped, *factors_said, result = (float(text) for text in found.groups())
    assert left == pytest.approx((total - removed) / total, abs=1e-3)
    assert apart == pytest.approx(after + (1 - now) * left, abs=2e-3)
    assert overlapped == pytest.approx(max(after, min(left, apart)), abs=1e-3)
    assert factors_said == [apart, overlapped]
    assert result == pytest.approx(1 / math.sqrt(apart * overlapped), abs=2e-3)
    assert result == pytest.approx(estimate.expected, abs=1e-3)


def test_eq_2_has_an_answer_where_everything_matches() -> None:
    everything = made.blame(made.Row(samples=50, latency=50))
    estimate = stall_elimination(made.context(everything), match(made.region([0])))
    assert estimate.paper == 50
    assert "one sample kept" in estimate.equation
    assert elimination_equation(0, 0) == 1.0


def test_eq_4_fills_no_more_than_there_is_work() -> None:
    assert hiding_equation(1000, 150, 300) == pytest.approx(1000 / 850)
    assert hiding_equation(1000, 400, 100) == pytest.approx(1000 / 900)
    assert hiding_equation(1000, 500, 500) == 2.0


def test_eq_5_regions_and_their_sum() -> None:
    scopes = [
        ScopeSamples(active=150, latency=300, parent=None),
        ScopeSamples(active=400, latency=100, parent=None),
    ]
    assert hidden_samples(scopes, active=450) == 250
    assert pytest.approx(1.333, abs=5e-4) == 1000 / (1000 - 250)


def test_eq_5_an_outer_loop_does_not_use_the_work_of_its_inner_loop_twice() -> None:
    inner = ScopeSamples(active=100, latency=300, parent=1)
    outer = ScopeSamples(active=120, latency=300, parent=None)
    assert hidden_samples([inner, outer], active=1000) == 120


def test_latency_hiding_finds_nested_scopes_in_the_program() -> None:
    blamed = made.blame(
        made.Row(samples=300, latency=300, use=9),
        made.Row(samples=300, latency=300, use=5),
        made.selected(400),
    )
    nested = match(made.region([0], active=100, loop=1), made.region([1], active=120, loop=0))
    estimate = latency_hiding(made.context(blamed), nested)
    assert estimate.paper == pytest.approx(1000 / 880)
    assert evaluated(estimate.equation) == pytest.approx(estimate.paper)
    assert "min(100, 300), min(120, 300)" in estimate.equation


def test_a_called_function_is_not_nested_in_its_caller() -> None:
    blamed = made.blame(
        made.Row(samples=300, latency=300, function=1, use=9),
        made.Row(samples=300, latency=300, use=5),
        made.selected(400),
    )
    functions = made.program(made.function(), made.function(number=1, name="_Z1f"))
    regions = match(made.region([0], active=200, loop=0, function=1), made.region([1], active=50))
    estimate = latency_hiding(made.context(blamed, of=functions), regions)
    assert estimate.paper == pytest.approx(1000 / 750)


def test_samples_outside_of_the_program_hide_nothing_and_hinder_nothing() -> None:
    blamed = made.blame(
        made.Row(samples=300, latency=300, use=9), made.external(300, latency=300), made.selected(400)
    )
    regions = match(
        made.region([1], active=0), made.region([0], active=100, loop=1), made.region([], active=300)
    )
    estimate = latency_hiding(made.context(blamed), regions)
    assert estimate.paper == pytest.approx(1000 / 900)


def test_eqs_6_to_10_by_hand() -> None:
    terms = parallel_equation(warps_now=4, warps_new=1, issue_ratio=0.05, factor=1 / 0.9)
    assert terms.warp_change == 0.25
    assert terms.issue_now == pytest.approx(0.18549, abs=5e-6)
    assert terms.issue_new == pytest.approx(0.05)
    assert terms.speedup == pytest.approx(1.198, abs=5e-4)
    assert parallel_equation(warps_now=4, warps_new=1, issue_ratio=0.3).speedup == pytest.approx(
        1.579, abs=5e-4
    )


def test_a_kernel_that_never_or_always_issues_has_an_answer() -> None:
    assert parallel_equation(warps_now=4, warps_new=1, issue_ratio=0.0).speedup == 1.0
    assert parallel_equation(warps_now=4, warps_new=8, issue_ratio=1.0).issue_change == 1.0


def target(**changes: object) -> ParallelTarget:
    values: dict[str, object] = {
        "warps_now": 4.0, "warps_new": 1.0, "issue_ratio": 0.05, "factor": 1.0, "factor_reason": "f",
        "blocks_now": 2, "blocks_new": 8, "threads_now": 512, "threads_new": 128, "limiter": "grid",
        "busy_sms_now": 2, "busy_sms_new": 8,
    }  # fmt: skip
    return ParallelTarget(**{**values, **changes})  # type: ignore[arg-type]  # keywords by name


def test_block_increase_gains_what_the_fullest_sm_loses() -> None:
    context = made.context(thousand(), measured=made.profile())
    spread = parallel(context, match(parallel=target()))
    assert spread.paper == pytest.approx(4 * 0.05 / 0.18549, abs=1e-3)
    # No sample waited for another warp, and what a warp waits for itself it waits anywhere.
    assert (spread.low, spread.expected, spread.high) == (LOW, 1.0, HIGH * spread.paper)
    # 81 blocks on 82 SMs split in two: some SM still holds as many threads.
    full = target(
        blocks_now=81, blocks_new=162, threads_now=512, threads_new=256, busy_sms_now=81, busy_sms_new=82
    )
    split = parallel(context, match(parallel=full))
    assert split.expected == 1.0
    assert "the fullest SM goes from 512 to 512 threads" in split.reason


def test_more_warps_on_full_schedulers_gain_nothing() -> None:
    busy = made.blame(made.selected(900), made.Row(samples=100, latency=100))
    more = target(
        warps_now=4.0, warps_new=12.0, factor=3.0, issue_ratio=0.1, busy_sms_now=82, busy_sms_new=82,
        blocks_now=4096, blocks_new=1365, threads_now=256, threads_new=768,
    )  # fmt: skip
    estimate = parallel(made.context(busy), match(parallel=more))
    assert estimate.paper is not None
    assert estimate.paper > 1.5
    assert estimate.expected == pytest.approx(0.95 / 0.9)
    assert estimate.high <= HIGH / 0.9
    assert "issue is at 90 % of its peak" in estimate.reason


SHARED: Final = {
    "smsp__warps_active.avg.per_cycle_active": 2.0,
    "sm__cycles_active.avg": 865.0,
    "gpc__cycles_elapsed.max": 1000.0,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 43.25,
}


def _filled(**changes: object) -> Estimate:
    values: dict[str, object] = {
        "warps_now": 8.0, "warps_new": 8.0, "issue_ratio": 0.02, "factor": 1.0, "held_now": 2.0,
        "held_low": 4.0, "blocks_now": 32768, "blocks_new": 4096, "threads_now": 32, "threads_new": 256,
        "busy_sms_now": 82, "busy_sms_new": 82, **changes,
    }  # fmt: skip
    blame = made.blame(made.Row(samples=980, latency=980), made.selected(20))
    return parallel(made.context(blame, measured=made.profile(SHARED)), match(parallel=target(**values)))


def test_more_warps_hide_their_own_waits_beside_the_units_that_stay() -> None:
    found = _filled()
    rate = (1 - 0.98**8) / (1 - 0.98**2)  # Eqs. 8 and 9 from the warps counted
    units = 0.4325 / 0.865  # of the time in which warps are there
    own = (1 - units**3) ** (1 / 3)
    value = 1 / (0.135 + 0.865 * ((own / rate) ** 3 + units**3) ** (1 / 3))
    assert found.expected == pytest.approx(value, rel=1e-3)
    assert found.low < found.expected < found.high
    assert "a scheduler holds 2.00 warps as counted, then 8.00" in found.reason
    assert "13.5 % of the elapsed time passes without a warp, which stays" in found.reason
    # With an eighth of the blocks the time between them may go with them.
    value = 1 / (0.135 / 8 + 0.865 * ((own / 4) ** 3 + units**3) ** (1 / 3))
    assert found.high == pytest.approx(HIGH * value, rel=1e-3)


def test_time_between_blocks_goes_where_others_fill_it() -> None:
    found = _filled(outside_new=0.0)
    assert found.expected > _filled().expected
    assert "which goes" in found.reason


def test_full_warps_do_the_work_of_partial_ones_until_a_unit_is_full() -> None:
    assert _filled(lanes=2.0).expected > _filled().expected
    assert _filled(lanes=2.0).expected < 1 / 0.4325
    assert "with 2.00 times the lanes at work" in _filled(lanes=2.0).reason


def test_units_of_an_sm_thin_out_over_more_sms_and_those_of_the_gpu_do_not() -> None:
    spread = _filled(busy_sms_now=41, blocks_now=41, blocks_new=656)
    assert "on 2.00 times the SMs" in spread.reason
    assert spread.expected < 1 / 0.4325  # DRAM is one for all


def test_the_launch_of_now_gains_nothing() -> None:
    same = _filled(warps_new=2.0 + 1e-9, held_low=2.0, blocks_new=32768)
    assert same.expected == pytest.approx(1.0, rel=1e-3)
    assert same.high == pytest.approx(HIGH, rel=1e-3)


def test_issue_ratio() -> None:
    assert issue_ratio(made.context(thousand())) == pytest.approx(0.4)
    assert issue_ratio(made.context()) is None
    assert issue_ratio(made.context(made.blame(made.Row(samples=3)))) is None


def test_an_adjustment_moves_the_range_and_says_why() -> None:
    half = Adjustment(low=0.0, expected=0.5, high=1.0, reason="a barrier stands between load and use")
    estimate = stall_elimination(made.context(thousand()), match(made.region([0]), adjustments=(half,)))
    assert estimate.paper == 1.25
    assert estimate.low == pytest.approx(LOW)  # nothing is removed
    # Schedulers issue in 60 % of the samples: 0.6 + 0.4 x 0.9 without overlap, 0.9 with it.
    assert estimate.expected == pytest.approx(1 / math.sqrt(0.96 * 0.9))
    assert estimate.high == pytest.approx(HIGH / (1 - wilson(200, 1000).high))
    assert "a barrier stands between load and use" in estimate.reason


def test_time_without_warps_stays_whatever_a_stall_cure_removes() -> None:
    context = made.context(thousand())
    counted = made.profile({"sm__cycles_active.max": 800.0, "sm__cycles_elapsed.max": 1000.0})
    cure = match(made.region([0]))
    alone = stall_elimination(context, cure)
    estimate = stall_elimination(replace(context, profile=counted), cure)
    # 0.8 of the elapsed cycles have warps, and shrink as all of them would.
    assert estimate.expected == pytest.approx(1 / (0.2 + 0.8 / alone.expected))
    assert "warps are there for 80 % of the elapsed cycles" in estimate.reason
    assert "warps are there" not in alone.reason


def test_a_cure_that_may_cost_work_reaches_below_one() -> None:
    costs = Adjustment(low=-0.5, expected=0.2, high=1.0, reason="the unrolled loop may spill")
    for estimate in (
        stall_elimination(made.context(thousand()), match(made.region([0]), adjustments=(costs,))),
        latency_hiding(made.context(thousand()), match(made.region([0], active=600), adjustments=(costs,))),
    ):
        assert estimate.low < 1.0 < estimate.expected < estimate.high
        assert estimate.paper is not None
        assert estimate.paper > 1.0


def test_adjustments_multiply_whatever_their_signs() -> None:
    found = factors(
        [
            Adjustment(low=-0.5, expected=0.5, high=1.0, reason="a"),
            Adjustment(low=0.5, expected=0.5, high=2.0, reason="b"),
        ]
    )
    assert (found.low, found.expected, found.high) == (-1.0, 0.25, 2.0)


def test_few_samples_widen_the_range() -> None:
    few = made.blame(made.Row(samples=20, latency=10), made.Row(samples=60, latency=60), made.selected(20))
    many = made.blame(
        made.Row(samples=20_000, latency=10_000),
        made.Row(samples=60_000, latency=60_000),
        made.selected(20_000),
    )
    narrow = stall_elimination(made.context(many), match(made.region([0])))
    wide = stall_elimination(made.context(few), match(made.region([0])))
    assert wide.paper == narrow.paper == 1.25
    assert wide.low <= narrow.low < narrow.expected < narrow.high < wide.high
    assert "95 % Wilson interval" in wide.reason
    assert "Wilson" not in narrow.reason


def test_wilson_by_hand() -> None:
    # The interval of 20 of 100, from the formula with z = 1.96.
    found = wilson(20, 100)
    assert (found.low, found.high) == (pytest.approx(0.1334, abs=1e-4), pytest.approx(0.2888, abs=1e-4))
    assert (wilson(0, 10).low, wilson(10, 10).high) == (0.0, 1.0)
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)


def test_a_full_unit_caps_what_leaves_its_load_alone() -> None:
    context = made.context(thousand(matched=400, latency=300), measured=made.profile(FULL_L1))
    estimate = stall_elimination(context, match(made.region([0])))
    assert estimate.paper == pytest.approx(1000 / 600)
    assert estimate.high <= HIGH / 0.9854
    assert estimate.expected == pytest.approx(1.0, abs=0.011)  # as full as it gets
    assert "L1 data is at 99 % of its peak" in estimate.reason


def test_a_cure_that_reduces_the_load_of_the_full_unit_is_capped_by_the_next_one() -> None:
    reduced = ReducedLoad(resource="L1 data", remaining=0.5, remaining_best=0.25)
    stalled = made.blame(
        made.Row(samples=400, latency=390), made.Row(samples=400, latency=400), made.selected(200)
    )
    context = made.context(stalled, measured=made.profile(FULL_L1))
    estimate = stall_elimination(context, match(made.region([0]), reduced_loads=(reduced,)))
    assert estimate.expected == pytest.approx(1 / (0.9854 * 0.5 + 0.0146 * 0.6), rel=0.03)
    assert estimate.expected < estimate.high < HIGH / (0.9854 * 0.25)
    small = ReducedLoad(resource="L1 data", remaining=0.8, remaining_best=0.5)
    cut = stall_elimination(context, match(made.region([0]), reduced_loads=(small,)))
    assert cut.expected == pytest.approx(1 / (0.9854 * 0.8 + 0.0146 * 0.6), rel=0.01)
    assert "then units work 79 % of the present time" in cut.reason


def test_what_counters_measured_is_the_range() -> None:
    reduced = ReducedLoad(resource="L1 data", remaining=168 / 1109, remaining_best=168 / 1109)
    bound = MeasuredBound(low=4.0, expected=6.6, high=8.37, reason="1109 M sectors against an ideal of 168 M")
    throttled = made.blame(
        made.Row(samples=780, latency=770), made.Row(samples=180, latency=170), made.selected(40)
    )
    context = made.context(throttled, measured=made.profile(FULL_L1))
    estimate = stall_elimination(
        context, match(made.region([0]), measured_bound=bound, reduced_loads=(reduced,))
    )
    assert estimate.paper == pytest.approx(1000 / 220)
    assert (estimate.low, estimate.expected, estimate.high) == pytest.approx((LOW * 4.0, 6.6, HIGH * 8.37))
    assert estimate.reason == "measured: 1109 M sectors against an ideal of 168 M"  # and no second sum


def test_what_counters_measured_is_of_the_time_in_which_warps_are_there() -> None:
    bound = MeasuredBound(low=1.5, expected=2.0, high=3.0, reason="half of the work")
    half = made.profile({"sm__cycles_active.max": 500.0, "sm__cycles_elapsed.max": 1000.0})
    context = made.context(thousand(), measured=half)
    estimate = stall_elimination(context, match(made.region([0]), measured_bound=bound))
    assert estimate.expected == pytest.approx(1 / 0.75)


def test_matched_instructions_take_their_issue_slots_with_them() -> None:
    busy = made.blame(made.Row(samples=300, latency=100), made.selected(500), made.selected(200, use=2))
    stalls = stall_elimination(made.context(busy), match(made.region([0])))
    assert stalls.high == pytest.approx(HIGH * 1000 / 900)
    with_issue = stall_elimination(made.context(busy), match(made.region([0, 1])))
    assert with_issue.paper == pytest.approx(5.0)
    left = 0.9 * (1 - 500 / 700)
    apart = left + 0.1 * 0.2
    assert with_issue.expected == pytest.approx(1 / math.sqrt(apart * max(left, 0.2)))
    assert "then units work 26 % of the present time" in with_issue.reason


def test_a_full_sample_buffer_is_said() -> None:
    context = made.context(thousand(), measured=made.profile(truncated=True))
    assert "first part of the run" in stall_elimination(context, match(made.region([0]))).reason


def test_estimates_need_what_they_stand_on() -> None:
    for estimate in (stall_elimination, latency_hiding):
        with pytest.raises(ValueError, match="needs samples"):
            estimate(made.context(), match(made.region([0])))
    with pytest.raises(ValueError, match="target launch"):
        parallel(made.context(thousand()), match())
    with pytest.raises(ValueError, match="without warps"):
        parallel_equation(warps_now=0, warps_new=1, issue_ratio=0.1)


@pytest.mark.parametrize(
    ("metric", "gains"),
    [
        ("l1tex__data_pipe_lsu_wavefronts", True),  # its queue shows as a wait for data, of any warp
        ("sm__inst_executed_pipe_fp64", False),  # its queue shows as a wait for the pipe, and there is none
    ],
)
def test_blocks_spread_over_more_sms_share_a_busy_l1_no_longer(metric: str, gains: bool) -> None:
    name = f"{metric}.avg.pct_of_peak_sustained_active"
    context = made.context(thousand(), measured=made.profile(metrics={name: 71.0}))
    estimate = parallel(context, match(parallel=target()))
    assert (estimate.expected > 1.1) is gains
    assert ("busiest unit of an SM" in estimate.reason) is gains
    idle = made.context(thousand(), measured=made.profile(metrics={name: 40.0}))
    assert parallel(idle, match(parallel=target())).expected == 1.0
