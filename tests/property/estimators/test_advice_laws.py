# SPDX-License-Identifier: Apache-2.0
"""Advice knows no order of optimizers, loses no sample, and a group gives no less than its best member."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import hand_made as made

from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.standing import NO_THRESHOLDS
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.blame import NO_INDEX, DependencyClass, Role
from gpadvisor.model.profile import MetricValue
from gpadvisor.rules import OPTIMIZERS

REASONS = (
    "long_scoreboard",
    "short_scoreboard",
    "wait",
    "lg_throttle",
    "barrier",
    "no_instructions",
    "drain",
    "new_one",
)
CLASSES = (DependencyClass.GLOBAL_MEMORY, DependencyClass.ARITHMETIC, DependencyClass.LOCAL_MEMORY)


@st.composite
def rows(draw: st.DrawFn) -> made.Row:
    """A row of any reason and role."""
    role = draw(st.sampled_from(Role))
    blamed = role is Role.BLAMED
    none = DependencyClass.SELF if role is Role.SELF else DependencyClass.NONE
    samples = draw(st.integers(1, 4000))
    return made.Row(
        samples=samples,
        latency=draw(st.integers(0, samples)),
        reason=draw(st.sampled_from(REASONS)),
        role=role,
        dependency=draw(st.sampled_from(CLASSES)) if blamed else none,
        definition=draw(st.integers(0, 15)) if blamed else NO_INDEX,
        use=draw(st.integers(0, 15)),
        distance=draw(st.integers(1, 9)) if blamed else NO_INDEX,
    )


@st.composite
def contexts(draw: st.DrawFn) -> KernelContext:
    """A kernel with random blame, with or without utilisations."""
    some = draw(st.lists(rows(), min_size=1, max_size=12))
    metrics: dict[str, MetricValue] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "dram__throughput.avg.pct_of_peak_sustained_elapsed": st.floats(0, 100),
                "smsp__issue_active.avg.per_cycle_active": st.floats(0, 1),
            },
        )
    )
    return made.context(
        made.blame(*some, made.selected(draw(st.integers(1, 500)))), measured=made.profile(metrics)
    )


@settings(max_examples=25)
@given(contexts(), st.permutations(OPTIMIZERS))
def test_the_order_of_optimizers_makes_no_difference(context: KernelContext, order: list[object]) -> None:
    assert advise_kernel(context, order) == advise_kernel(context, OPTIMIZERS)  # type: ignore[arg-type]  # the same ones


@settings(max_examples=25)
@given(contexts())
def test_no_sample_is_lost_and_ranges_are_in_order(context: KernelContext) -> None:
    found = advise_kernel(context, OPTIMIZERS, limits=NO_THRESHOLDS, time_share=0.5)
    total = found.samples
    assert context.blame is not None
    assert total.total == context.blame.total_samples == sum(row.samples for row in found.stalls)
    assert total.blamed + total.self + total.unattributed == total.total
    assert found.scopes[0].samples == total.total
    by_code = {}
    for one in found.suggestions:
        assert one.matched_latency <= one.matched_samples <= total.total
        for estimate in (one.speedup, one.program_speedup):
            if estimate is not None:
                assert estimate.low <= estimate.expected <= estimate.high
        if one.speedup is not None:
            assert one.speedup.paper is None or one.speedup.paper >= 1
            by_code[one.code] = one.speedup
    for group in found.groups:
        assert group.shared_samples <= group.samples <= total.total
        assert group.speedup.low <= group.speedup.expected <= group.speedup.high
        assert group.speedup.expected >= max(by_code[code].expected for code in group.suggestions)
