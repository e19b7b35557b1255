# SPDX-License-Identifier: Apache-2.0
"""Laws of the estimators: speedup >= 1, Theorem V.1, monotony, scope <= kernel, ends of a range in order."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from tests import hand_made as made

from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.latency_hiding import ScopeSamples, hidden_samples, latency_hiding
from gpadvisor.estimators.parallel import parallel, parallel_equation
from gpadvisor.estimators.stall_elimination import elimination_equation, stall_elimination
from gpadvisor.model.advice import Adjustment, Estimate, Match, ParallelTarget, ReducedLoad, Region
from gpadvisor.model.blame import Blame

ROWS = st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1), st.integers(0, 15)), min_size=1, max_size=12)
FACTORS = st.floats(-1, 3, allow_nan=False)
PERCENT = st.floats(0.5, 105)


@st.composite
def blames(draw: st.DrawFn) -> Blame:
    """Rows with any share of latency samples, and some issued ones."""
    rows = [
        made.Row(samples=samples, latency=int(samples * share), use=use) for samples, share, use in draw(ROWS)
    ]
    return made.blame(*rows, made.selected(draw(st.integers(1, 2000))))


@st.composite
def adjustments(draw: st.DrawFn) -> tuple[Adjustment, ...]:
    """Up to two, each with its ends in order."""
    triples = draw(st.lists(st.tuples(FACTORS, FACTORS, FACTORS).map(sorted), max_size=2))
    return tuple(Adjustment(low=low, expected=mid, high=high, reason="r") for low, mid, high in triples)


def matched(blame: Blame, count: int) -> tuple[Region, ...]:
    """The first rows, as one region with all the active samples of the kernel."""
    active = blame.total_samples - blame.latency_samples
    return (made.region(list(range(min(count, len(blame.rows)))), active=active),)


def ordered(estimate: Estimate) -> bool:
    return (
        estimate.low <= estimate.expected <= estimate.high
        and estimate.low > 0
        and math.isfinite(estimate.high)
    )


@given(blames(), st.integers(1, 12), adjustments(), PERCENT)
def test_ranges_are_in_order_and_the_paper_never_promises_a_loss(
    blame: Blame, count: int, moves: tuple[Adjustment, ...], dram: float
) -> None:
    measured = made.profile({"dram__throughput.avg.pct_of_peak_sustained_elapsed": dram})
    context = made.context(blame, measured=measured)
    match = Match(title="t", advice="a", regions=matched(blame, count), adjustments=moves)
    for estimate in (stall_elimination(context, match), latency_hiding(context, match)):
        assert ordered(estimate)
        assert estimate.paper is not None
        assert estimate.paper >= 1
        assert estimate.high <= max(1.0, 100 / dram) * (1 + RUN_TO_RUN) * (1 + 1e-12)


@given(blames(), st.integers(1, 12))
def test_latency_hiding_gives_at_most_two(blame: Blame, count: int) -> None:
    """Theorem V.1."""
    match = Match(title="t", advice="a", regions=matched(blame, count))
    paper = latency_hiding(made.context(blame), match).paper
    assert paper is not None
    assert paper <= 2


@given(blames(), st.integers(1, 11))
def test_more_matched_samples_never_give_less(blame: Blame, count: int) -> None:
    context = made.context(blame)
    for estimate in (stall_elimination, latency_hiding):
        few = estimate(context, Match(title="t", advice="a", regions=matched(blame, count)))
        more = estimate(context, Match(title="t", advice="a", regions=matched(blame, count + 1)))
        assert few.paper is not None
        assert more.paper is not None
        assert few.paper <= more.paper


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_eq_2_is_monotone_and_finite(total: int, one: int, other: int) -> None:
    low, high = sorted((min(one, total), min(other, total)))
    assert 1 <= elimination_equation(total, low) <= elimination_equation(total, high) <= max(1, total)


SCOPES = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(-1, 9)), min_size=1, max_size=8
)


@given(SCOPES, st.integers(0, 2000))
def test_a_scope_hides_no_more_than_the_kernel(rows: list[tuple[int, int, int]], active: int) -> None:
    scopes = [
        ScopeSamples(active=min(one, active), latency=latency, parent=parent if 0 <= parent < at else None)
        for at, (one, latency, parent) in enumerate(rows)
    ]
    whole = hidden_samples(scopes, active)
    assert 0 <= whole <= min(active, sum(scope.latency for scope in scopes))
    for scope in scopes:
        alone = hidden_samples(
            [ScopeSamples(active=scope.active, latency=scope.latency, parent=None)], active
        )
        assert alone <= whole or scope.parent is not None
    assert hidden_samples(scopes[::-1] if all(s.parent is None for s in scopes) else scopes, active) == whole


@given(
    st.floats(0.25, 16), st.floats(0.25, 16), st.floats(0, 1), st.floats(1, 3)
)  # fmt: skip
def test_fewer_warps_per_scheduler_never_lose_in_eq_10(
    now: float, new: float, ratio: float, factor: float
) -> None:
    low, high = sorted((now, new))
    found = parallel_equation(warps_now=high, warps_new=low, issue_ratio=ratio, factor=factor)
    assert found.speedup >= 1 - 1e-9
    assert 0 <= found.issue_new <= 1


@given(blames(), st.integers(1, 400), st.integers(1, 32), st.floats(0, 1), adjustments())
def test_parallel_ranges_are_in_order(
    blame: Blame, blocks: int, split: int, ratio: float, moves: tuple[Adjustment, ...]
) -> None:
    target = ParallelTarget(
        warps_now=4.0, warps_new=4.0 / split, issue_ratio=ratio, factor=1.0, factor_reason="r",
        blocks_now=blocks, blocks_new=blocks * split, threads_now=1024, threads_new=1024 // split,
        limiter=None, busy_sms_now=min(82, blocks), busy_sms_new=min(82, blocks * split),
    )  # fmt: skip
    positive = tuple(move for move in moves if move.low >= 0)
    match = Match(title="t", advice="a", regions=(), parallel=target, adjustments=positive)
    estimate = parallel(made.context(blame, measured=made.profile()), match)
    assert ordered(estimate)
    assert estimate.paper is not None
    assert estimate.paper >= 1


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_wilson_holds_the_share(matched_samples: int, total: int) -> None:
    share = min(1.0, matched_samples / total)
    found = wilson(matched_samples, total)
    assert 0 <= found.low <= share <= found.high <= 1


@given(blames(), PERCENT, st.floats(0.01, 1))
def test_a_reduced_load_never_lowers_an_estimate(blame: Blame, percent: float, left: float) -> None:
    measured = made.profile({"lts__throughput.avg.pct_of_peak_sustained_elapsed": percent})
    context = made.context(blame, measured=measured)
    regions = matched(blame, 2)
    reduced = (ReducedLoad(resource="L2", remaining=left, remaining_best=left / 2),)
    plain = stall_elimination(context, Match(title="t", advice="a", regions=regions))
    reduced = stall_elimination(context, Match(title="t", advice="a", regions=regions, reduced_loads=reduced))
    assert plain.expected <= reduced.expected
    assert plain.high <= reduced.high
