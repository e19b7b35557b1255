# SPDX-License-Identifier: Apache-2.0
"""Advice on one kernel: ranking, thresholds, hotspots, evidence, verdict and what was rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from tests import hand_made as made

from gpadvisor.advice.compose import advise
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.standing import NO_THRESHOLDS, Thresholds
from gpadvisor.advice.suppressed import without_suppressed
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.parallel import parallel
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.model.advice import (
    Adjustment,
    Category,
    Estimate,
    KernelAdvice,
    Match,
    ParallelTarget,
    ReducedLoad,
    Rejection,
    ScopeKind,
    StaticSite,
    Suppression,
)
from gpadvisor.model.blame import Blame, CodeArea, DependencyClass, Role
from gpadvisor.model.ids import FunctionId, SourceLocation
from gpadvisor.model.instruction import MemorySpace, OpcodeClass, OpcodeInfo, Pipe
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    SLOWEST,
    SLOWEST_SHARE,
    Evidence,
    KernelProfile,
    RuleResult,
    SlowestRank,
)
from gpadvisor.model.program import KernelFacts
from gpadvisor.rules import OPTIMIZERS

PCT = ".avg.pct_of_peak_sustained_elapsed"


def optimizer(
    code: str,
    answer: Match | Rejection,
    category: Category = Category.STALL_ELIMINATION,
    estimate: Callable[[KernelContext, Match], Estimate] | None = None,
) -> Optimizer:
    """An optimizer that always answers the same."""
    by_category = latency_hiding if category is Category.LATENCY_HIDING else stall_elimination
    return Optimizer(
        code=code, slug=code.lower(), name=f"Name of {code}", category=category, match=lambda _: answer,
        estimate=estimate or by_category, document="page",
    )  # fmt: skip


def match(*rows: int, active: int = 0, loop: int | None = 0, **changes: object) -> Match:
    regions = (made.region(list(rows), active=active, loop=loop),) if rows else ()
    return Match(title="title", advice="do this", regions=regions, **changes)  # type: ignore[arg-type] # any field of Match


def thousand() -> Blame:
    """A thousand samples: loads, arithmetic, throttle, issued, driver code and drain behind the end."""
    return made.blame(
        made.Row(samples=400, latency=390, definition=0, use=9, distance=8),
        made.Row(samples=200, latency=190, reason="wait", dependency=DependencyClass.ARITHMETIC, use=5),
        made.Row(
            samples=100, latency=90, reason="lg_throttle", role=Role.SELF, dependency=DependencyClass.SELF,
            definition=-1, use=9, distance=-1,
        ),
        made.selected(240, use=9),
        made.external(40, 30),
        made.Row(
            samples=15, latency=15, reason="drain", dependency=DependencyClass.STORE_IN_FLIGHT, use=-1,
            definition=12, place=CodeArea.AFTER_EXIT, function=0,
        ),
        made.Row(
            samples=5, latency=5, role=Role.UNATTRIBUTED, dependency=DependencyClass.NONE, definition=-1,
            use=3, distance=-1,
        ),
    )  # fmt: skip


def advice(*optimizers: Optimizer, **changes: object) -> KernelAdvice:
    context = made.context(thousand(), measured=made.profile())
    return advise_kernel(context, optimizers, **changes)  # type: ignore[arg-type] # any field of Match  # keywords by name


def test_suggestions_are_ranked_by_what_they_are_expected_to_give() -> None:
    found = advice(
        optimizer("GPA102", match(1)),
        optimizer("GPA106", match(0)),
        optimizer("GPA105", Rejection(code="GPA105", reason="no barrier")),
        optimizer("GPA901", match(0), Category.NOTE),
    )
    assert [one.code for one in found.suggestions] == ["GPA106", "GPA102"]
    assert found.rejected == (Rejection(code="GPA105", reason="no barrier"),)
    (note,) = found.notes
    assert (note.code, note.speedup) == ("GPA901", None)  # a note promises nothing
    assert [spot.speedup for spot in note.hotspots] == [None]
    first = found.suggestions[0]
    assert first.speedup is not None
    assert first.speedup.paper == pytest.approx(1000 / 600)
    assert (first.importance, first.matched_samples, first.matched_latency) == (0.4, 400, 390)
    assert first.scope.kind is ScopeKind.LOOP


def test_without_samples_rules_lead_whose_changes_gave_more() -> None:
    """As rows of a warp's own before fast math: 1.7x and 1.3x in the median of what was measured."""
    found = match(static_sites=(StaticSite(function=FunctionId(0), index=3, detail="LDG"),))
    usual = [
        replace(optimizer(code, found), usual_gain=gain) for code, gain in (("GPA104", 1.3), ("GPA106", 1.7))
    ]
    context = replace(made.context(thousand(), measured=made.profile()), blame=None, profile=None)
    told = advise_kernel(context, usual).suggestions
    assert [one.code for one in told] == ["GPA106", "GPA104"]


def test_the_order_of_optimizers_makes_no_difference() -> None:
    asked = [
        optimizer("GPA102", match(1)),
        optimizer("GPA106", match(0, 1)),
        optimizer("GPA201", match(0, active=300), Category.LATENCY_HIDING),
        optimizer("GPA105", Rejection(code="GPA105", reason="no barrier")),
        optimizer("GPA104", Rejection(code="GPA104", reason="no math")),
    ]
    assert advice(*asked) == advice(*asked[::-1]) == advice(*asked[2:], *asked[:2])


def test_small_ones_are_hidden_and_counted_unless_asked_for() -> None:
    small = [optimizer("GPA101", match(6)), optimizer("GPA102", match(1, adjustments=(nothing(),)))]
    found = advice(*small, optimizer("GPA106", match(0)))
    assert [one.code for one in found.suggestions] == ["GPA106"]
    assert found.hidden == 2
    everything = advice(*small, optimizer("GPA106", match(0)), limits=NO_THRESHOLDS)
    assert len(everything.suggestions) == 3
    assert everything.hidden == 0
    assert [one.code for one in advice(*small, limits=Thresholds(speedup=1.0)).suggestions] == ["GPA102"]
    assert len(advice(*small, optimizer("GPA106", match(0)), limits=NO_THRESHOLDS, top=1).suggestions) == 1


def nothing() -> Adjustment:
    return Adjustment(low=0.0, expected=0.0, high=0.0, reason="it is already so")


def test_what_no_programmer_can_change_is_a_note() -> None:
    found = advice(optimizer("GPA202", match(0, actionable=False)), optimizer("GPA106", match(0)))
    assert [one.code for one in found.suggestions] == ["GPA106"]
    assert [one.code for one in found.notes] == ["GPA202"]
    assert found.hidden == 0


@pytest.mark.parametrize(("samples", "shown"), [(19, 0), (20, 1)])
def test_what_rests_on_few_samples_is_not_shown(samples: int, shown: int) -> None:
    few = made.blame(
        made.Row(samples=samples, latency=samples, definition=0, use=9, distance=8),
        made.selected(100, use=9),
    )
    context = made.context(few, measured=made.profile())
    found = advise_kernel(context, [optimizer("GPA106", match(0))])
    assert (len(found.suggestions), found.hidden) == (shown, 1 - shown)


@pytest.mark.parametrize(("gain", "shown"), [(1.029, 0), (1.03, 1)])
def test_what_promises_little_is_not_shown_unless_asked_for(gain: float, shown: int) -> None:
    promise = Estimate(low=1.0, expected=gain, high=1.1, paper=None, equation="", reasons=())
    one = optimizer("GPA106", match(0), estimate=lambda *_: promise)
    assert len(advice(one).suggestions) == shown
    assert len(advice(one, limits=NO_THRESHOLDS).suggestions) == 1


TARGET: Final = ParallelTarget(
    warps_now=8, warps_new=12, issue_ratio=0.5, factor=1.0, factor_reason="", blocks_now=80, blocks_new=320,
    threads_now=256, threads_new=128, limiter="registers", busy_sms_now=80, busy_sms_new=80,
)  # fmt: skip


@pytest.mark.parametrize(("low", "gain", "shown"), [(0.97, 1.06, 0), (1.0, 1.06, 1), (0.97, 1.2, 1)])
def test_a_launch_that_gains_little_or_nothing_is_not_shown_unless_asked_for(
    low: float, gain: float, shown: int
) -> None:
    promise = Estimate(low=low, expected=gain, high=1.3, paper=None, equation="", reasons=())
    other = optimizer("GPA106", match(0), estimate=lambda *_: promise)
    assert len(advice(other).suggestions) == 1
    one = optimizer("GPA301", match(parallel=TARGET), Category.PARALLEL, lambda *_: promise)
    assert len(advice(one).suggestions) == shown
    assert len(advice(one, limits=Thresholds(speedup=1.01)).suggestions) == 1
    assert len(advice(one, limits=NO_THRESHOLDS).suggestions) == 1


@pytest.mark.parametrize(("low", "gain", "shown"), [(0.98, 1.04, 0), (1.0, 1.04, 1), (0.98, 1.05, 1)])
def test_a_small_gain_that_may_be_a_loss_is_not_shown_unless_asked_for(
    low: float, gain: float, shown: int
) -> None:
    """After a division once for each thread: 1.03x (0.98-1.11) of a kernel that other things limit."""
    promise = Estimate(low=low, expected=gain, high=1.11, paper=None, equation="", reasons=())
    one = optimizer("GPA102", match(0), estimate=lambda *_: promise)
    assert len(advice(one).suggestions) == shown
    assert len(advice(one, limits=NO_THRESHOLDS).suggestions) == 1


@pytest.mark.parametrize(
    ("low", "nanoseconds", "shown"), [(0.97, 4400.0, 0), (1.1, 4400.0, 1), (0.97, 9e5, 1)]
)
def test_a_kernel_as_short_as_a_launch_is_promised_what_is_sure(
    low: float, nanoseconds: float, shown: int
) -> None:
    """After padding that gave 1.00x and 1.16x of two kernels of 4 us with the same conflicts."""
    promise = Estimate(low=low, expected=1.12, high=1.5, paper=None, equation="", reasons=())
    measured = made.profile()
    launch = replace(measured.launch, duration_ns=nanoseconds)
    context = made.context(thousand(), measured=replace(measured, launch=launch))
    one = optimizer("GPA106", match(0), estimate=lambda *_: promise)
    assert len(advise_kernel(context, [one]).suggestions) == shown
    assert len(advise_kernel(context, [one], limits=NO_THRESHOLDS).suggestions) == 1


@pytest.mark.parametrize(("busy", "left", "shown"), [(89.0, 1.0, 0), (89.0, 0.6, 1), (70.0, 1.0, 1)])
def test_what_leaves_the_load_of_a_full_unit_alone_is_not_shown(busy: float, left: float, shown: int) -> None:
    context = made.context(thousand(), measured=made.profile({f"dram__throughput{PCT}": busy}))
    reduced = ReducedLoad(resource="DRAM", remaining=left, remaining_best=left)
    promise = Estimate(low=1.0, expected=1.15, high=1.3, paper=None, equation="", reasons=())
    one = optimizer("GPA104", match(0, reduced_loads=(reduced,)), estimate=lambda *_: promise)
    found = advise_kernel(context, [one])
    assert (len(found.suggestions), found.hidden) == (shown, 1 - shown)


@pytest.mark.parametrize(("tiled", "shown"), [(1.6, ["GPA107"]), (1.2, ["GPA108", "GPA107"])])
def test_loads_that_a_tile_replaces_are_not_to_be_widened_first(tiled: float, shown: list[str]) -> None:
    def promising(gain: float) -> Callable[[KernelContext, Match], Estimate]:
        return lambda *_: Estimate(low=1.1, expected=gain, high=2.0, paper=None, equation="", reasons=())

    asked = [
        optimizer("GPA107", match(0), estimate=promising(tiled)),
        replace(optimizer("GPA108", match(0), estimate=promising(1.4)), replaced_by="GPA107"),
    ]
    assert [one.code for one in advice(*asked).suggestions] == shown
    assert len(advice(*asked, limits=NO_THRESHOLDS).suggestions) == 2


@pytest.mark.parametrize(("by", "shown"), [("GPA109", ["GPA109"]), ("", ["GPA109", "GPA105"])])
def test_waits_for_work_that_idle_threads_could_share_are_told_once(by: str, shown: list[str]) -> None:
    """Of warps that wait for work of few others; a barrier that is not needed can go all the same."""

    def promising(gain: float) -> Callable[[KernelContext, Match], Estimate]:
        return lambda *_: Estimate(low=1.1, expected=gain, high=2.0, paper=None, equation="", reasons=())

    asked = [
        optimizer("GPA105", match(0, replaced_by=by), estimate=promising(1.1)),
        optimizer("GPA109", match(0), estimate=promising(1.3)),
    ]
    assert [one.code for one in advice(*asked).suggestions] == shown


def test_without_samples_what_counters_prove_comes_before_what_the_code_alone_shows() -> None:
    """As of a kernel whose scattered stores cost 3.3x and whose needless barriers nearly nothing."""
    sites = (StaticSite(function=FunctionId(0), index=3, detail=""),)
    asked = [
        optimizer("GPA105", match(static_sites=sites)),
        optimizer("GPA106", match(static_sites=sites, counted=True)),
    ]
    found = advise_kernel(made.context(evidence=Evidence.COUNTED), asked)
    assert [(one.code, one.evidence) for one in found.suggestions] == [
        ("GPA106", Evidence.COUNTED),
        ("GPA105", Evidence.STATIC),
    ]


def test_the_place_is_what_the_words_speak_of_with_or_without_samples_there() -> None:
    for index in range(4):
        (told,) = advice(optimizer("GPA105", match(0, place=(FunctionId(0), index)))).suggestions
        first = told.hotspots[0]
        end = first.definition or first.use
        assert end is not None
        assert end.pc == 16 * index
        assert sum(spot.samples for spot in told.hotspots) == told.matched_samples


def test_only_the_first_hotspot_is_of_the_place_and_the_others_are_the_heaviest() -> None:
    rows = [made.Row(samples=10 * (9 - at), latency=0, definition=at // 4, use=9) for at in range(8)]
    context = made.context(made.blame(*rows))
    answer = match(*range(8), place=(FunctionId(0), 1))
    (told,) = advise_kernel(context, [optimizer("GPA105", answer)], limits=NO_THRESHOLDS).suggestions
    assert [spot.samples for spot in told.hotspots] == [50, 90, 80, 70, 60]


def test_without_samples_one_change_is_told_once_too() -> None:
    context = made.context(evidence=Evidence.STATIC)
    sites = (StaticSite(function=FunctionId(0), index=3, detail="DADD"),)
    asked = [
        optimizer("GPA113", match(static_sites=sites)),
        replace(optimizer("GPA104", match(static_sites=sites)), replaced_by="GPA113"),
    ]
    found = advise_kernel(context, asked)
    assert [one.code for one in found.suggestions] == ["GPA113"]
    assert found.hidden == 1
    assert len(advise_kernel(context, asked, limits=NO_THRESHOLDS).suggestions) == 2


def test_what_limits_next_is_the_unit_that_the_cure_leaves_busiest() -> None:
    busy = made.profile({f"dram__throughput{PCT}": 70.0, f"lts__throughput{PCT}": 50.0})
    context = made.context(thousand(), measured=busy)
    reduced = ReducedLoad(resource="DRAM", remaining=0.2, remaining_best=0.2)

    def limit(*reduced_loads: ReducedLoad, expected: float = 1.3) -> str:
        promise = Estimate(low=1.0, expected=expected, high=2.0, paper=None, equation="", reasons=())
        one = optimizer("GPA106", match(0, reduced_loads=reduced_loads), estimate=lambda *_: promise)
        (suggestion,) = advise_kernel(context, [one]).suggestions
        return suggestion.next_limit

    assert limit() == "DRAM throughput"
    assert limit(reduced) == "L2 throughput"
    assert limit(reduced, expected=1.1) == ""  # 55 % is no limit


def test_a_match_without_samples_is_a_rejection() -> None:
    found = advice(optimizer("GPA101", match()))
    assert found.suggestions == ()
    assert found.rejected == (Rejection(code="GPA101", reason="it matches no sample of this kernel"),)


def test_hotspots_name_def_use_distance_and_their_own_speedup() -> None:
    found = advice(optimizer("GPA106", match(0, 1, 2)))
    spots = found.suggestions[0].hotspots
    assert [spot.samples for spot in spots] == [400, 200, 100]
    load = spots[0]
    assert load.definition is not None
    assert load.use is not None
    assert (load.definition.pc, load.use.pc, load.distance_instructions) == (0, 9 * 16, 8)
    assert (load.reason, load.dependency_class) == ("long_scoreboard", DependencyClass.GLOBAL_MEMORY)
    assert load.speedup == pytest.approx(1000 / 600)
    throttle = spots[2]
    assert (throttle.definition, throttle.distance_instructions) == (None, None)


def test_hotspots_of_latency_hiding_have_eq_5s_speedup() -> None:
    found = advice(optimizer("GPA201", match(0, 1, active=250), Category.LATENCY_HIDING))
    assert [spot.speedup for spot in found.suggestions[0].hotspots] == [
        pytest.approx(1000 / 750), pytest.approx(1000 / 810),
    ]  # fmt: skip


def test_samples_add_up_for_every_reason() -> None:
    found = advice()
    total = found.samples
    assert (total.total, total.blamed, total.self, total.unattributed) == (1000, 615, 340, 45)
    assert (total.external, total.after_exit, total.latency, total.active) == (40, 15, 720, 280)
    assert total.blamed + total.self + total.unattributed == total.total
    for row in found.stalls:
        assert row.blamed + row.self + row.unattributed == row.samples
        assert row.blamed_latency + row.self_latency + row.unattributed_latency == row.latency
    assert [row.reason for row in found.stalls][:2] == ["long_scoreboard", "selected"]
    assert sum(row.samples for row in found.stalls) == 1000


def test_samples_without_an_analysis_are_kept() -> None:
    measured = made.profile(rows=[(0, 0, 0, 70, 60), (0xFFFF, 999, 0, 5, 5), (0, 16, 1, 25, 0)])
    found = advise_kernel(made.context(measured=measured, evidence=Evidence.STATIC), ())
    total = found.samples
    assert (total.total, total.self, total.unattributed, total.external) == (100, 25, 75, 5)


def test_what_it_means_for_the_whole_report() -> None:
    found = advice(optimizer("GPA106", match(0)), time_share=0.5)
    program = found.suggestions[0].program_speedup
    kernel = found.suggestions[0].speedup
    assert program is not None
    assert kernel is not None
    assert program.expected == pytest.approx(1 / (0.5 + 0.5 / kernel.expected))
    assert program.paper == pytest.approx(1 / (0.5 + 0.5 / (1000 / 600)))
    assert "p = 0.5000" in program.equation
    assert advice(optimizer("GPA106", match(0))).suggestions[0].program_speedup is None


@pytest.mark.parametrize(("name", "share"), [("rank 18", 0.8), ("rank\x1b[31m", 0.8), ("rank 18", 1.5)])
def test_what_it_means_for_the_slowest_rank(name: str, share: float) -> None:
    profile = made.profile()
    metrics = {**profile.metrics, SLOWEST: name, SLOWEST_SHARE: share}
    context = made.context(thousand(), measured=replace(profile, metrics=metrics))
    found = advise_kernel(context, [optimizer("GPA106", match(0))], time_share=0.5)
    (suggestion,) = found.suggestions
    if (name, share) != ("rank 18", 0.8):  # not of ours
        assert (found.slowest, suggestion.slowest_speedup) == (None, None)
        return
    assert found.slowest == SlowestRank(name="rank 18", time_share=0.8)
    assert suggestion.speedup is not None
    assert suggestion.slowest_speedup is not None
    assert suggestion.slowest_speedup.expected == pytest.approx(1 / (0.2 + 0.8 / suggestion.speedup.expected))
    assert suggestion.slowest_speedup.reason == "the kernel's share of all kernel time of rank 18"


def test_suggestions_that_share_samples_are_grouped() -> None:
    found = advice(
        optimizer("GPA201", match(0, active=280), Category.LATENCY_HIDING),
        optimizer("GPA202", match(0, 1, active=280, loop=None), Category.LATENCY_HIDING),
        optimizer("GPA106", match(2)),
    )
    (group,) = found.groups
    assert group.suggestions == ("GPA201", "GPA202")
    assert (group.samples, group.shared_samples) == (600, 400)
    single = {one.code: one.speedup for one in found.suggestions}
    best = max(single[code].expected for code in group.suggestions)  # type: ignore[union-attr]  # both have one
    assert best <= group.speedup.expected <= 2
    assert group.speedup.low <= group.speedup.expected <= group.speedup.high


def test_all_hiding_together_is_capped_at_the_active_samples() -> None:
    busy = made.blame(
        made.Row(samples=450, latency=450), made.Row(samples=450, latency=450, use=2), made.selected(100)
    )
    context = made.context(busy, measured=made.profile())
    found = advise_kernel(
        context,
        [
            optimizer("GPA201", match(0, active=100), Category.LATENCY_HIDING),
            optimizer("GPA202", match(0, 1, active=100), Category.LATENCY_HIDING),
        ],
    )
    assert found.groups[0].speedup.expected == pytest.approx(1000 / 900)


def test_no_group_where_nothing_is_shared() -> None:
    assert advice(optimizer("GPA102", match(1)), optimizer("GPA106", match(0))).groups == ()


def test_machine_code_alone_gives_findings_without_estimates() -> None:
    sites = (
        StaticSite(function=FunctionId(0), index=3, detail="F2F.F64.F32"),
        StaticSite(function=FunctionId(0), index=1, detail=""),
    )
    facts = KernelFacts(
        registers_per_thread=40, static_shared_bytes=512, stack_bytes=0, max_threads_per_block=256,
        required_block=None, min_blocks_per_sm=None, uses_barriers=1,
    )  # fmt: skip
    context = made.context(of=made.program(facts=facts), evidence=Evidence.STATIC)
    found = advise_kernel(
        context, [optimizer("GPA102", match(static_sites=sites)), optimizer("GPA101", match())]
    )
    (one,) = found.suggestions
    assert (one.evidence, one.speedup, one.importance) == (Evidence.STATIC, None, 0.0)
    assert [spot.use.pc for spot in one.hotspots if spot.use is not None] == [16, 48]
    assert [spot.reason for spot in one.hotspots] == ["static", "F2F.F64.F32"]
    assert (found.registers_per_thread, found.shared_bytes, found.launch) == (40, 512, None)
    assert "machine code alone" in found.evidence_reason
    assert found.verdict.startswith("Without samples nothing is said about time")
    assert (found.limit, found.limited_by) == ("", "")
    assert found.device.arch == "sm_86"


def test_executed_counts_rank_the_places() -> None:
    sites = tuple(StaticSite(function=FunctionId(0), index=index, detail="LDL") for index in (1, 3))
    measured = made.profile(counted=made.counts([(0, 16, 10), (0, 48, 900)]), evidence=Evidence.COUNTED)
    context = made.context(measured=measured, evidence=Evidence.COUNTED)
    found = advise_kernel(context, [optimizer("GPA101", match(static_sites=sites))])
    (one,) = found.suggestions
    assert (one.evidence, one.speedup) == (Evidence.COUNTED, None)
    assert [spot.reason for spot in one.hotspots] == [
        "LDL, executed by 900 warps",
        "LDL, executed by 10 warps",
    ]
    assert "executed counts" in found.evidence_reason


def test_the_verdict_names_the_full_unit_and_that_nothing_helps() -> None:
    full = made.profile({f"l1tex__lsuin_requests{PCT}": 98.2})
    rejected = Rejection(code="GPA106", reason="nothing to coalesce")
    context = made.context(thousand(), measured=full)
    found = advise_kernel(
        context,
        [optimizer("GPA106", rejected), optimizer("GPA201", match(0))],
        limits=Thresholds(speedup=1.05),
    )
    assert found.suggestions == ()
    assert found.verdict == (
        "Limited by L1 throughput (requests) at 98 % of its peak; no rule helps (1 rejected, 1 "
        "below the thresholds): only less work for that unit would make the kernel faster"
    )


def test_the_verdict_names_the_wait_and_the_best_cure() -> None:
    found = advice(optimizer("GPA106", match(0)))
    assert found.verdict == (
        "Limited by latency: waiting for data from global, local or texture memory (44 % of the samples); "
        "1.5x (1.3-1.8) is expected of GPA106 Name of GPA106"
    )
    nothing_left = advice(optimizer("GPA901", match(0), Category.NOTE))
    assert "no rule helps (0 rejected)" in nothing_left.verdict


@pytest.mark.parametrize(("covered", "told"), [(0.004, False), (0.05, False), (0.4, True)])
def test_samples_of_the_first_part_of_a_run_give_no_figures(covered: float, told: bool) -> None:
    measured = made.profile(truncated=True)
    sampling = replace(measured.sampling, expected_samples=1000 / covered)
    context = made.context(thousand(), measured=replace(measured, sampling=sampling))
    found = advise_kernel(context, [optimizer("GPA106", match(0))])
    assert (found.suggestions[0].speedup is not None) == told
    part = "less than the first 1 %" if covered < 0.01 else "the first 5 %"
    assert (f"(44 % of the samples), in {part} of the run" in found.verdict) is not told


def test_what_a_comment_suppresses_is_neither_in_the_verdict_nor_in_groups() -> None:
    asked = [
        optimizer("GPA201", match(0, active=280), Category.LATENCY_HIDING),
        optimizer("GPA202", match(0, 1, active=280, loop=None), Category.LATENCY_HIDING),
        optimizer("GPA106", match(0)),
    ]
    context = made.context(thousand(), measured=made.profile())
    before = advise_kernel(context, asked)
    assert "expected of GPA106 Name of GPA106" in before.verdict
    assert [group.suggestions for group in before.groups] == [("GPA106", "GPA201", "GPA202")]

    def suppressed(*codes: str) -> KernelAdvice:
        comment = Suppression(location=SourceLocation("a.cu", 1), reason="measured")
        marked = tuple(
            replace(one, suppressed=comment) if one.code in codes else one for one in before.suggestions
        )
        return without_suppressed(replace(before, suggestions=marked), context, asked)

    assert without_suppressed(before, context, asked) is before
    left = suppressed("GPA106")
    assert [one.code for one in left.suggestions] == [one.code for one in before.suggestions]
    assert "GPA106" not in left.verdict
    assert "expected of GPA202 Name of GPA202" in left.verdict
    assert left.groups == advise_kernel(context, asked[:2]).groups
    nothing_left = suppressed("GPA106", "GPA201", "GPA202")
    assert nothing_left.verdict.endswith("no other rule helps (0 rejected, 3 suppressed in the source)")
    assert nothing_left.groups == ()


def test_problems_are_said_once() -> None:
    noted = Problem(ProblemCode.UNKNOWN_OPCODE, "XYZ is not known")
    blamed = replace(thousand(), problems=(noted,))
    measured = made.profile(truncated=True)
    found = advise_kernel(made.context(blamed, measured=measured), (), more_problems=(noted,))
    codes = [problem.code for problem in found.problems]
    assert codes.count(ProblemCode.UNKNOWN_OPCODE) == 1
    assert ProblemCode.TRUNCATED_SAMPLES in codes
    assert ProblemCode.EXTERNAL_SAMPLES in codes  # 4 % lie outside the cubin
    assert found.samples.truncated
    again = advise_kernel(
        made.context(thousand(), measured=measured), (),
        more_problems=(Problem(ProblemCode.TRUNCATED_SAMPLES, "said before"),),
    )  # fmt: skip
    assert [p.message for p in again.problems if p.code is ProblemCode.TRUNCATED_SAMPLES] == ["said before"]


def test_without_machine_code_nothing_is_said_about_it() -> None:
    empty = replace(made.program(), functions=())
    rule = RuleResult(
        identifier="UncoalescedGlobalAccess", name="Uncoalesced Global Accesses", section="SourceCounters",
        kind="warning", message="uncoalesced", estimated_speedup=1.4,
    )  # fmt: skip
    measured = made.profile(rows=((0, 0, 0, 100, 90),), rules=(rule,))
    found = advise_kernel(made.context(of=empty, measured=measured, evidence=Evidence.STATIC), OPTIMIZERS)
    blind = {entry.code: entry.reason for entry in found.rejected if not entry.looked}
    assert blind.keys() == {one.code for one in OPTIMIZERS} - {"GPA301", "GPA302", "GPA303"}  # the launch
    assert set(blind.values()) == {"no machine code of this kernel could be read"}
    assert len(found.rejected) == len(OPTIMIZERS)
    assert [(one.agreement, one.ours) for one in found.rules] == [("not comparable", ())]
    assert found.verdict.startswith("No machine code of this kernel could be read")
    assert found.evidence_reason == "100 PC samples, but no machine code could be read that they belong to"


def test_without_machine_code_and_samples_the_launch_is_looked_at_all_the_same() -> None:
    empty = replace(made.program(), functions=())
    few = made.profile(of=made.launch(grid=(8, 1, 1), block=(256, 1, 1)))
    found = advise_kernel(made.context(of=empty, measured=few, evidence=Evidence.STATIC), OPTIMIZERS)
    (blocks,) = [one for one in found.suggestions if one.code == "GPA301"]
    assert blocks.speedup is None
    assert "8 blocks" in blocks.title
    assert found.verdict.endswith("its launch alone is looked at")
    failed = replace(few, launch=replace(few.launch, failed=True))
    nothing = advise_kernel(made.context(of=empty, measured=failed, evidence=Evidence.STATIC), OPTIMIZERS)
    assert nothing.suggestions == ()


def test_few_samples_are_a_problem() -> None:
    few = made.blame(made.Row(samples=30, latency=20), made.selected(30))
    found = advise_kernel(made.context(few, measured=made.profile()), ())
    assert [problem.code for problem in found.problems] == [ProblemCode.FEW_SAMPLES]
    assert "only 60 samples" in found.problems[0].message


@pytest.mark.parametrize(
    ("collector", "evidence", "interval", "next_step"),
    [
        ("ncu", Evidence.MEASURED, 1024, "ncu --sampling-interval 0,"),
        (
            "ncu",
            Evidence.MEASURED,
            65536,
            "--warp-sampling-interval: every 2048 cycles) or add launches of it",
        ),
        ("cupti", Evidence.MEASURED, 65536, "(gpadvisor profile --period 11: every 2048 cycles) or add"),
        ("cupti", Evidence.MEASURED, None, "(gpadvisor profile --period) or add launches of it up (--merge)"),
        ("ncu", Evidence.MEASURED, 32, "no shorter interval than these 32 cycles can be set: add launches"),
        ("simulator", Evidence.MODELLED, 512, "model a larger launch (--grid) or more passes of its loops"),
    ],
)
def test_few_samples_come_with_the_next_step_of_their_collector(
    collector: str, evidence: Evidence, interval: int | None, next_step: str
) -> None:
    few = made.blame(made.Row(samples=20, latency=15), made.selected(20))
    measured = made.profile(evidence=evidence)
    measured = replace(measured, sampling=replace(measured.sampling, interval_cycles=interval))
    context = replace(made.context(few, measured=measured, evidence=evidence), collector=collector)
    assert next_step in advise_kernel(context, ()).problems[0].message


def test_rules_stand_beside_ours() -> None:
    rule = RuleResult(
        identifier="UncoalescedGlobalAccess", name="Uncoalesced Global Accesses", section="SourceCounters",
        kind="warning", message="uncoalesced", estimated_speedup=1.4,
    )  # fmt: skip
    context = made.context(thousand(), measured=made.profile(rules=(rule,)))
    one = replace(optimizer("GPA106", match(0)), twins=("UncoalescedGlobalAccess",))
    (found,) = advise_kernel(context, [one]).rules
    assert (found.agreement, found.ours) == ("agrees", ("GPA106",))
    assert "NVIDIA estimates 1.40x" in found.explanation


def test_kernels_are_ranked_by_gpu_time() -> None:
    small, large = advice(time_share=0.2), advice(time_share=0.8)
    whole = advise([small, large], path="a.ncu-rep", sha256="0" * 64)
    assert [kernel.time_share for kernel in whole.kernels] == [0.8, 0.2]
    assert (whole.collector, whole.launches) == (None, ())


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        (1, "a grid of 1 block, which leaves 81 of 82 SMs without work; where there is work, by "),
        (8, "a grid of 8 blocks, which leaves 74 of 82 SMs without work; where there is work, by "),
        (82, ""),
    ],
)
def test_fewer_blocks_than_sms_are_said_first(blocks: int, said: str) -> None:
    measured = made.profile()
    measured = replace(
        measured,
        launch=replace(measured.launch, grid=(blocks, 1, 1)),
        device=replace(measured.device, sms=82),
    )
    plain = advise_kernel(made.context(thousand()), ())
    found = advise_kernel(made.context(thousand(), measured=measured), ())
    assert plain.limited_by
    assert found.limited_by == said + plain.limited_by
    assert found.verdict.startswith(f"Limited by {said}")


@pytest.mark.parametrize(("lanes", "stated"), [(1.0, True), (31.9, False)])
def test_one_thread_that_stands_for_a_launch_of_no_size_is_no_grid_of_one_block(
    lanes: float, stated: bool
) -> None:
    """As a report whose launch has a grid and a block of (0, 0, 0) beside full warps."""
    measured = made.profile({"smsp__thread_inst_executed_per_inst_executed.ratio": lanes}, sms=82)
    measured = replace(measured, launch=replace(measured.launch, grid=(1, 1, 1), block=(1, 1, 1)))
    assert (measured.states_launch, measured.has_blocks_of_one_warp) == (stated, stated)
    found = advise_kernel(made.context(thousand(), measured=measured), ())
    assert ("a grid of 1 block" in found.limited_by) is stated


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (82.0, "L1 throughput at 87 % of its peak where there is work, with 4 of 68 SMs without work"),
        (40.0, "; one block of 8 warps is all that an SM has, with 4 of 68 SMs without work"),
    ],
)
def test_a_full_unit_comes_before_a_few_idle_sms(busy: float, said: str) -> None:
    """As a product of matrices with L1 at 82 %, of which 64 blocks on 68 SMs were told first."""
    measured = made.profile({f"l1tex__throughput{PCT}": busy}, sms=68)
    measured = replace(measured, launch=replace(measured.launch, grid=(64, 1, 1), block=(256, 1, 1)))
    assert advise_kernel(made.context(thousand(), measured=measured), ()).limited_by.endswith(said)


def test_a_busy_pipe_comes_before_the_waits_behind_it() -> None:
    """As a reduction with the ALU at 77 % that was told to wait for fixed latencies."""
    measured = made.profile({f"sm__pipe_alu_cycles_active{PCT}": 77.0})
    found = advise_kernel(made.context(thousand(), measured=measured), ())
    assert found.limited_by.startswith("several things: ALU pipe throughput at 77 % of its peak, waiting for")
    assert found.limit == "several things"


@pytest.mark.parametrize(("busy", "name"), [(93.0, "L1 throughput"), (20.0, "latency")])
def test_what_limits_a_kernel_has_a_name_that_its_words_begin_with(busy: float, name: str) -> None:
    measured = made.profile({f"l1tex__throughput{PCT}": busy})
    found = advise_kernel(made.context(thousand(), measured=measured), ())
    assert found.limit == name
    assert found.limited_by.startswith(name)
    assert len(found.limited_by) > len(name)


def test_what_fills_a_queue_is_named_beside_the_wait_for_it() -> None:
    """As atomic operations on one address, of which the stores in flight at exit were told."""
    waits = (made.Row(samples=60, latency=60, reason="drain", dependency=DependencyClass.STORE_IN_FLIGHT),)
    blamed = made.blame(*waits, made.selected(40))
    behind = optimizer("GPA110", match(0))
    said = "latency: title; waiting at exit for stores in flight (60 % of the samples)"
    assert advise_kernel(made.context(blamed), [behind]).limited_by == said
    assert "title" not in advise_kernel(made.context(blamed), ()).limited_by
    loads = made.blame(made.Row(samples=60, latency=60), made.selected(40))
    assert "title" not in advise_kernel(made.context(loads), [behind]).limited_by  # says what it waits for


@pytest.mark.parametrize(
    ("achieved", "theoretical", "limiter", "said"),
    [
        (0.12, 0.125, "shared memory", "an SM holds 12 % of the warps it could (shared memory); "),
        (0.12, 0.5, "shared memory", "an SM holds 12 % of the warps it could; "),  # not what was reserved
        (0.15, 0.1875, "grid", "an SM holds 15 % of the warps it could (the grid is small); "),
        (0.2, 0.25, "blocks", "an SM holds 20 % of the warps it could (the size of its blocks); "),
        (0.35, 0.375, "registers", ""),
    ],
)
def test_few_warps_come_before_what_they_wait_for(
    achieved: float, theoretical: float, limiter: str, said: str
) -> None:
    """As a kernel with two warps on a scheduler that was said to wait out fixed latencies."""
    context = made.context(thousand())
    few = replace(
        context.occupancy, achieved=achieved, theoretical=theoretical, limiter=limiter, blocks_per_sm=2
    )
    words = advise_kernel(replace(context, occupancy=few), ()).limited_by
    assert words.startswith(f"latency: {said}waiting for data from global")
    busy = made.profile({f"sm__pipe_alu_cycles_active{PCT}": 77.0})
    words = advise_kernel(replace(made.context(thousand(), measured=busy), occupancy=few), ()).limited_by
    assert "warps it could" not in words


@pytest.mark.parametrize(
    ("block", "lanes", "said"),
    [(1, None, "31 of the 32"), (256, 4.0, "28 of the 32"), (256, 30.0, ""), (256, None, ""), (96, None, "")],
)
def test_idle_lanes_are_told(block: int, lanes: float | None, said: str) -> None:
    metrics = {} if lanes is None else {"smsp__thread_inst_executed_per_inst_executed.ratio": lanes}
    measured = made.profile(metrics)
    measured = replace(measured, launch=replace(measured.launch, grid=(4000, 1, 1), block=(block, 1, 1)))
    words = advise_kernel(made.context(thousand(), measured=measured), ()).limited_by
    assert (f", with {said} lanes of each warp idle" in words) == bool(said)
    assert ("idle" in words) == bool(said)


_HELD = "sm__warps_active.avg.per_cycle_active"


def counters(**metrics: float) -> KernelProfile:
    """A launch as ncu's default set has it: loads of units, no samples, no executed counts."""
    names = {"busy": f"l1tex__throughput{PCT}", "issue": f"sm__issue_active{PCT}", "held": _HELD}
    metrics = {"l2": 1.0, **metrics}
    names["l2"] = f"lts__t_sectors{PCT}"
    return made.profile({names[name]: value for name, value in metrics.items()}, sms=6)


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (91.0, "L1 throughput at 91 % of its peak"),
        (70.0, "several things: the busiest unit is at 70 % of its peak (L1 throughput)"),
        (40.0, "latency: no unit is above 40 % of its peak (L1 throughput)"),
    ],
)
def test_counters_tell_what_limits_a_kernel_without_samples(busy: float, said: str) -> None:
    found = advise_kernel(made.context(measured=counters(busy=busy), evidence=Evidence.COUNTED), ())
    assert found.limited_by == said
    assert found.verdict == (
        f"Limited by {said}, as counted; without samples no line is blamed; "
        "the machine code shows none of the known patterns"
    )


@pytest.mark.parametrize(
    ("busy", "said"), [("DRAM", "36 % of the warps it could (shared memory)"), ("L1", "")]
)
def test_few_warps_are_told_beside_a_busy_memory(busy: str, said: str) -> None:
    """As a sum with DRAM at 70 % in blocks of one warp, which larger ones did in 1/1.43 of the time."""
    unit = {"DRAM": f"gpu__dram_throughput{PCT}", "L1": f"l1tex__throughput{PCT}"}[busy]
    context = made.context(measured=made.profile({unit: 70.0}, sms=6), evidence=Evidence.COUNTED)
    few = replace(
        context.occupancy, achieved=0.36, theoretical=0.375, limiter="shared memory", blocks_per_sm=24
    )
    words = advise_kernel(replace(context, occupancy=few), ()).limited_by
    assert words == f"several things: the busiest unit is at 70 % of its peak ({busy} throughput)" + (
        f", and an SM holds {said}" if said else ""
    )


def test_nothing_is_called_latency_where_memory_was_not_counted() -> None:
    counted = made.profile({f"sm__issue_active{PCT}": 1.0}, sms=6)
    found = advise_kernel(made.context(measured=counted, evidence=Evidence.COUNTED), ())
    assert "latency" not in found.limited_by
    assert found.limited_by.startswith("what the report did not count: no unit is above 1 %")


def test_few_samples_make_no_headline() -> None:
    """As a kernel said to wait for the constant cache by one of its three samples."""
    words = made.Row(samples=1, latency=1, reason="imc_miss"), made.selected(2)
    context = made.context(made.blame(*words), measured=counters(busy=40.0))
    assert advise_kernel(context, ()).limited_by.startswith("latency: no unit is above 40 % of its peak")


@pytest.mark.parametrize(
    ("busy", "said"), [(40.0, "its launch: 3.3 us are about what one takes"), (91.0, "L1")]
)
def test_a_kernel_as_short_as_a_launch_is_limited_by_it(busy: float, said: str) -> None:
    """As kernels of 3 us whose headline was a cold cache."""
    measured = counters(busy=busy)
    measured = replace(measured, launch=replace(measured.launch, duration_ns=3_300.0))
    found = advise_kernel(made.context(thousand(), measured=measured), ())
    assert found.limited_by.startswith(said)


def test_another_launch_is_estimated_by_counters_and_a_place_in_the_code_is_not() -> None:
    target = ParallelTarget(
        warps_now=1,
        warps_new=4,
        issue_ratio=0.1,
        factor=1.0,
        factor_reason="",
        blocks_now=6,
        blocks_new=24,
        threads_now=32,
        threads_new=32,
        limiter="grid",
        busy_sms_now=6,
        busy_sms_new=6,
        held_now=1.0,
    )
    launch = optimizer("GPA301", match(parallel=target), Category.PARALLEL, parallel)
    place = optimizer(
        "GPA106", match(static_sites=(StaticSite(function=FunctionId(0), index=1, detail="here"),))
    )
    measured = counters(busy=40.0, held=4.0, issue=10.0)
    context = made.context(measured=measured, evidence=Evidence.COUNTED)
    told = {one.code: one for one in advise_kernel(context, [launch, place]).suggestions}
    assert told["GPA301"].evidence is Evidence.COUNTED
    assert told["GPA301"].speedup is not None
    assert "counters of the run" in told["GPA301"].speedup.reason
    assert (told["GPA106"].evidence, told["GPA106"].speedup) == (Evidence.STATIC, None)
    without = advise_kernel(made.context(measured=counters(busy=40.0), evidence=Evidence.COUNTED), [launch])
    assert [one.speedup for one in without.suggestions] == [None]


def test_rules_that_could_not_look_are_named_and_notes_are_not() -> None:
    blind = Rejection(code="GPA109", reason="needs samples", looked=False)
    rules = [
        optimizer("GPA109", blind),
        optimizer("GPA401", replace(blind, code="GPA401"), Category.NOTE),
        optimizer("GPA110", Rejection(code="GPA110", reason="no atomic operation")),
    ]
    found = advise_kernel(made.context(measured=counters(busy=40.0), evidence=Evidence.COUNTED), rules)
    assert [(one.code, one.name) for one in found.rejected] == [
        ("GPA109", "Name of GPA109"), ("GPA110", ""), ("GPA401", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ampere_sgemm_128x64_nn", False),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x256_8x4_tt_align1>(T1::Params)", False),
        ("void at::native::vectorized_elementwise_kernel<(int)4>(int)", False),
        ("void cutlass::Kernel<cutlass::gemm::kernel::Gemm<float>>(T1::Params)", True),
        ("sgemm_128x128x8_kernel(const float *)", True),
        ("my_ampere_sgemm(float *)", True),
        ("__pgi_uacc_cuda_fill", False),  # an OpenACC compiler's own
        ("__nv_static_28__file_cpp1_ii__Z6kernelPf", True),  # a static kernel of the source
        ("nvkernel_main_F1L30_2", True),  # a target region of the source
    ],
)
def test_a_kernel_that_comes_compiled_with_a_library_has_notes_only(name: str, ours: bool) -> None:
    measured = made.profile()
    context = made.context(
        thousand(), measured=replace(measured, launch=replace(measured.launch, demangled=name))
    )
    context = replace(context, program=replace(context.program, has_line_info=False))
    found = advise_kernel(context, [optimizer("GPA106", match(0))])
    assert (len(found.suggestions), len(found.notes)) == ((1, 0) if ours else (0, 1))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("void cub::CUB_200300_89_NS::DeviceScanKernel<int>(int *)", False),
        ("void thrust::THRUST_200300_89_NS::cuda_cub::core::_kernel_agent<F>(F)", False),
        ("void scan<cub::Sum>(int *)", True),
    ],
)
def test_a_launch_that_a_library_chooses_is_not_told_to_be_changed(name: str, ours: bool) -> None:
    measured = made.profile()
    context = made.context(
        thousand(), measured=replace(measured, launch=replace(measured.launch, demangled=name))
    )
    promise = Estimate(low=1.2, expected=1.4, high=1.5, paper=None, equation="", reasons=())
    rules = [
        optimizer("GPA106", match(0)),  # of the user's function in it
        optimizer("GPA301", match(parallel=TARGET), Category.PARALLEL, lambda *_: promise),
    ]
    found = advise_kernel(context, rules)
    assert [one.code for one in found.suggestions] == (["GPA106", "GPA301"] if ours else ["GPA106"])
    assert len(found.notes) == (0 if ours else 1)


@pytest.mark.parametrize(("nanoseconds", "shown"), [(2200.0, ["GPA301"]), (9e4, ["GPA105", "GPA301"])])
def test_what_the_code_of_a_kernel_as_short_as_a_launch_shows_is_hidden(
    nanoseconds: float, shown: list[str]
) -> None:
    """As a barrier too many in a kernel of 1.8 us."""
    measured = made.profile()
    launch = replace(measured.launch, duration_ns=nanoseconds)
    context = made.context(measured=replace(measured, launch=launch), evidence=Evidence.STATIC)
    rules = [
        optimizer("GPA105", match(static_sites=(StaticSite(function=FunctionId(0), index=3, detail=""),))),
        optimizer("GPA301", match(parallel=TARGET), Category.PARALLEL),
    ]
    found = advise_kernel(context, rules)
    assert sorted(one.code for one in found.suggestions) == shown


def test_of_two_block_sizes_the_better_one_is_proposed() -> None:
    """After a transposition: 512 threads for an even tail beside 256 for full SMs."""

    def launch(code: str, threads: int, speedup: float) -> Optimizer:
        target = ParallelTarget(
            warps_now=8, warps_new=12, issue_ratio=0.5, factor=speedup, factor_reason="said", blocks_now=80,
            blocks_new=320, threads_now=1024, threads_new=threads, limiter="grid", busy_sms_now=80,
            busy_sms_new=80,
        )  # fmt: skip
        estimate = Estimate(
            low=speedup, expected=speedup, high=speedup, paper=speedup, equation="10", reasons=("said",)
        )
        answer = replace(match(0), parallel=target)
        return optimizer(code, answer, Category.PARALLEL, lambda _context, _match: estimate)

    others = optimizer("GPA106", match(0))
    found = advice(launch("GPA301", 512, 1.2), launch("GPA302", 256, 1.9), others)
    assert [one.code for one in found.suggestions] == ["GPA302", "GPA106"]
    (less,) = found.rejected
    assert less.code == "GPA301"
    assert less.reason == "Name of GPA302 (GPA302) proposes another block size, which gives more"
    more_blocks = advice(launch("GPA301", 1024, 1.2), launch("GPA302", 256, 1.9))
    assert [one.code for one in more_blocks.suggestions] == ["GPA302", "GPA301"]
    assert [one.instead_of for one in more_blocks.suggestions] == ["", "GPA302"]


@pytest.mark.parametrize(("busy", "shown"), [(99.0, 0), (60.0, 0), (59.0, 1)])
def test_arithmetic_is_no_suggestion_where_memory_was_counted_to_be_busy(busy: float, shown: int) -> None:
    division = optimizer(
        "GPA102", match(static_sites=(StaticSite(function=FunctionId(0), index=5, detail="here"),))
    )
    context = made.context(measured=counters(busy=busy), evidence=Evidence.COUNTED)
    assert len(advise_kernel(context, [division]).suggestions) == shown


@pytest.mark.parametrize(("busy", "shown"), [(60.0, 0), (59.0, 1)])
def test_latency_is_no_suggestion_where_any_unit_was_counted_to_be_busy(busy: float, shown: int) -> None:
    """As a loop over bits with the XU pipe at 73 %, which was told to unroll: its place is no access."""
    hides = replace(
        optimizer(
            "GPA201", match(static_sites=(StaticSite(function=FunctionId(0), index=5, detail="here"),))
        ),
        category=Category.LATENCY_HIDING,
    )
    measured = made.profile({f"sm__inst_executed_pipe_xu{PCT}": busy}, sms=6)
    context = made.context(measured=measured, evidence=Evidence.COUNTED)
    assert len(advise_kernel(context, [hides]).suggestions) == shown


def test_loads_are_no_suggestion_where_a_pipe_was_counted_to_be_busy() -> None:
    unrolled = optimizer(
        "GPA201", match(static_sites=(StaticSite(function=FunctionId(0), index=5, detail="here"),))
    )
    for busy, shown in ((75.0, 0), (40.0, 1)):
        measured = made.profile({f"sm__inst_executed_pipe_xu{PCT}": busy}, sms=6)
        context = made.context(measured=measured, evidence=Evidence.COUNTED)
        (function,) = context.program.functions
        load = replace(
            function.instructions[5],
            info=OpcodeInfo(
                OpcodeClass.LOAD, Pipe.LSU, MemorySpace.GLOBAL, variable_latency=True, queue=None, known=True
            ),
        )
        code = (*function.instructions[:5], load, *function.instructions[6:])
        program = replace(context.program, functions=(replace(function, instructions=code),))
        assert len(advise_kernel(replace(context, program=program), [unrolled]).suggestions) == shown


def _few_blocks(blocks: int, **metrics: float) -> KernelProfile:
    measured = made.profile(metrics)
    return replace(measured, launch=replace(measured.launch, grid=(blocks, 1, 1), duration_ns=1e6))


@pytest.mark.parametrize(
    ("blocks", "name", "said"),
    [
        # As 40 blocks on 56 SMs, whose FP64 pipes were at 49 % as a mean and at 86 % where there was work.
        (
            60,
            "max",
            "FP64 pipe throughput at 86 % of its peak where there is work, with 22 of 82 SMs without work",
        ),
        (
            60,
            "",
            "FP64 pipe throughput at 82 % of its peak where there is work, with 22 of 82 SMs without work",
        ),
        (
            30,
            "max",
            "a grid of 30 blocks, which leaves 52 of 82 SMs without work; where there is work, by FP64",
        ),
        (100, "max", "several things: the busiest unit is at 60 % of its peak"),
    ],
)
def test_a_unit_is_full_where_there_is_work(blocks: int, name: str, said: str) -> None:
    pipe = "sm__pipe_fp64_cycles_active"
    most = {f"{pipe}.max.pct_of_peak_sustained_elapsed": 86.0} if name else {}
    measured = _few_blocks(blocks, **{f"{pipe}.avg.pct_of_peak_sustained_elapsed": 60.0, **most})
    context = made.context(None, measured=measured, evidence=Evidence.COUNTED)
    assert advise_kernel(context, ()).limited_by.startswith(said)


def test_what_leads_comes_first_and_is_shown_without_a_figure() -> None:
    """As one block of 16 warps, of which another change was told first."""
    first = optimizer("GPA301", replace(match(), leads=True, regions=()), Category.PARALLEL)
    found = advice(first, optimizer("GPA106", match(0)))
    assert [one.code for one in found.suggestions] == ["GPA301", "GPA106"]
    assert found.suggestions[0].speedup is None
    alone = optimizer("GPA301", replace(match(), leads=True, alone=True, regions=()), Category.PARALLEL)
    assert [one.code for one in advice(alone, optimizer("GPA106", match(0))).suggestions] == ["GPA301"]
