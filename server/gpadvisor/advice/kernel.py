# SPDX-License-Identifier: Apache-2.0
"""Everything said about one kernel: ranked suggestions, evidence, groups, rejections (GPA section III)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gpadvisor.advice.amdahl import program_estimate
from gpadvisor.advice.evaluate import EstimatedMatch, Evaluated, evaluate
from gpadvisor.advice.groups import groups
from gpadvisor.advice.hotspots import hotspots, static_hotspots
from gpadvisor.advice.nvidia_rules import OurSide, compare_rules, twins
from gpadvisor.advice.quality import evidence_reason, problems
from gpadvisor.advice.samples import sample_summary, stall_summaries
from gpadvisor.advice.scopes import executed_by_place, scope_summaries
from gpadvisor.advice.shown import (
    MIN_IMPORTANCE,
    MIN_SPEEDUP,
    NO_THRESHOLDS,
    Standing,
    Thresholds,
    as_told,
    standing,
)
from gpadvisor.advice.verdict import beside_the_launch, limiting, limiting_words, unit_words, verdict
from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.estimators.launches import is_as_short_as_a_launch
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.estimators.utilisation import active_loads, utilisations
from gpadvisor.evidence.measured import registers_per_thread, shared_bytes
from gpadvisor.evidence.queries import function_scope, kernel_function, kernel_scope
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import (
    KernelAdvice,
    Rejection,
    SampleSummary,
    Scope,
    StallSummary,
    Suggestion,
    Utilisation,
)
from gpadvisor.model.blame import Coverage
from gpadvisor.model.figures import part_of_run
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import LITTLE_OF_RUN, Device, Evidence
from gpadvisor.model.stalls import StallClass


def advise_kernel(
    context: KernelContext,
    optimizers: Sequence[Optimizer],
    *,
    min_importance: float = MIN_IMPORTANCE,
    min_speedup: float = MIN_SPEEDUP,
    top: int | None = None,
    show_all: bool = False,
    demangled: str | None = None,
    time_share: float | None = None,
    merged_launches: int = 1,
    more_problems: Sequence[Problem] = (),
    evaluated: Evaluated | None = None,
) -> KernelAdvice:
    """Ask every optimizer about one kernel and put the answers in order.

    Args:
        context: the kernel with all that is known about it.
        optimizers: in any order, which makes no difference.
        min_importance: share of samples below which a suggestion is hidden and counted.
        min_speedup: expected speedup below which a suggestion is hidden and counted.
        top: keep this many suggestions; None for all.
        show_all: hide nothing.
        demangled: the kernel's name, where neither launch nor code has it.
        time_share: of all kernel time in the report.
        merged_launches: how many launches the profile adds up.
        more_problems: found by the stages before.
        evaluated: what the optimizers answered, where they were asked already.
    """
    least = NO_THRESHOLDS if show_all else Thresholds(importance=min_importance, speedup=min_speedup)
    findings, rejected = evaluate(context, optimizers) if evaluated is None else evaluated
    if not show_all:
        findings, rejected = _one_block_size(findings, rejected)
    told: dict[Standing, list[EstimatedMatch]] = {standing: [] for standing in Standing}
    for one in findings:
        told[standing(context, one, least)].append(as_told(context, one))
    for one in () if show_all else _replaced(context, told[Standing.SUGGESTION]):
        told[Standing.SUGGESTION].remove(one)
        told[Standing.HIDDEN].append(one)
    shown, hidden = told[Standing.SUGGESTION], told[Standing.HIDDEN]
    executed = executed_by_place(context.program, context.profile) if context.blame is None else {}
    suggestions, notes = (
        sorted((_suggestion(context, one, time_share, executed) for one in told[kind]), key=_rank)
        for kind in (Standing.SUGGESTION, Standing.NOTE)
    )
    suggestions = suggestions[:top]
    kept = {one.code for one in suggestions}
    profile, blame = context.profile, context.blame
    stalls = stall_summaries(profile, blame)
    samples = sample_summary(profile, blame, stalls)
    measured = () if profile is None else at_half_rate(utilisations(profile), context.program, profile)
    has_code = bool(context.program.functions) or context.blame is not None
    ours = OurSide(
        suggestions=[*suggestions, *notes],
        rejected=rejected,
        hidden={one.code: _hidden_text(context, one) for one in hidden},
        stalls=stalls,
        samples=samples,
        occupancy=context.occupancy,
        utilisations=measured,
        twins=twins(optimizers),
        sectors=_sectors(context),
    )
    launch = None if profile is None else profile.launch
    limited_by = _limited_by(context, samples, stalls, measured, shown)
    return KernelAdvice(
        name=_name(context, demangled),
        mangled=context.kernel,
        evidence=context.evidence,
        evidence_reason=evidence_reason(context, samples),
        device=_device(context),
        launch=launch,
        merged_launches=merged_launches,
        duration_ns=None if launch is None else launch.duration_ns,
        time_share=time_share,
        registers_per_thread=registers_per_thread(context.program, context.kernel, profile),
        shared_bytes=shared_bytes(context.program, context.kernel, profile),
        occupancy=context.occupancy,
        utilisations=measured,
        samples=samples,
        stalls=stalls,
        coverage=Coverage(before=None, after=None) if blame is None else blame.coverage,
        scopes=scope_summaries(context),
        suggestions=tuple(suggestions),
        notes=tuple(notes),
        hidden=len(hidden),
        groups=groups(context, [one for one in shown if one.code in kept]),
        rejected=rejected,
        limited_by=limited_by,
        verdict=verdict(
            context.evidence,
            limited_by,
            full=limiting(measured) is not None,
            suggestions=suggestions,
            rejected=rejected,
            hidden=len(hidden),
            has_code=has_code,
        ),
        rules=() if profile is None else compare_rules(profile.rules, ours),
        problems=problems(context, samples, more_problems),
    )


def _one_block_size(findings: Sequence[EstimatedMatch], rejected: Sequence[Rejection]) -> Evaluated:
    """Of several block sizes that are proposed the one that gives most: a launch has one.

    More blocks of the same size stay beside another size: that is the smaller edit.
    """
    sizes = [
        one
        for one in findings
        if one.match.parallel is not None and one.match.parallel.threads_new != one.match.parallel.threads_now
    ]
    best = max(
        sizes, key=lambda one: (one.estimate.expected if one.estimate else 0.0, one.code), default=None
    )
    if best is None or len(sizes) == 1:
        return tuple(findings), tuple(rejected)
    others = [one for one in sizes if one is not best]
    reason = f"{best.optimizer.name} ({best.code}) proposes another block size, which gives more"
    more = (Rejection(code=one.code, reason=reason) for one in others)
    return (
        tuple(one for one in findings if one not in others),
        tuple(sorted((*rejected, *more), key=lambda one: one.code)),
    )


_SYMPTOMS: Final = frozenset(
    {
        StallClass.DRAIN,
        StallClass.MEMORY_BARRIER,
        StallClass.MEMORY_THROTTLE,
        StallClass.SHARED_THROTTLE,
        StallClass.TEXTURE_THROTTLE,
    }
)
"""Waits for a queue, or for all that is under way: what fills it is the cause."""


def _behind(context: KernelContext, stalls: Sequence[StallSummary], shown: Sequence[EstimatedMatch]) -> str:
    """What is suggested for most of the samples of the commonest stall, where that is a symptom."""
    blame = context.blame
    first = next((row for row in stalls if row.reason not in {"selected", "not_selected"}), None)
    if blame is None or first is None or not first.samples:
        return ""
    indices = [at for at, one in enumerate(blame.reasons) if one.name == first.reason]
    if not any(blame.reasons[at].stall_class in _SYMPTOMS for at in indices):
        return ""
    rows, told = blame.rows, np.isin(blame.rows.reason, indices)
    for one in shown:
        matched = np.zeros(len(rows), dtype=bool)
        for region in one.match.regions:
            matched[region.rows] = True
        if 2 * int(rows.samples[matched & told].sum()) >= first.samples:
            return one.match.title
    return ""


def _limited_by(
    context: KernelContext,
    samples: SampleSummary,
    stalls: Sequence[StallSummary],
    measured: Sequence[Utilisation],
    shown: Sequence[EstimatedMatch],
) -> str:
    words = limiting_words(
        context.evidence,
        samples,
        stalls,
        measured,
        context.occupancy,
        _behind(context, stalls, shown),
    )
    full = limiting(measured) is not None
    if samples.first_share is not None and samples.first_share <= LITTLE_OF_RUN and "of the samples" in words:
        words += f", in {part_of_run(samples.first_share)} of the run"
    profile = context.profile
    if (
        profile is not None
        and not full
        and context.evidence is not Evidence.MODELLED
        and is_as_short_as_a_launch(profile)
    ):
        return f"its launch: {(profile.launch.duration_ns or 0.0) / 1000:.1f} us are about what one takes"
    return beside_the_launch(words, context.evidence, profile, full=full)


def _replaced(context: KernelContext, shown: Sequence[EstimatedMatch]) -> list[EstimatedMatch]:
    """Findings most of whose samples another one takes with the accesses themselves, and with more gain."""
    blame, found = context.blame, []
    for one in shown:
        other = next((by for by in shown if by.code == one.optimizer.replaced_by), None)
        if other is not None and one.estimate is None and other.estimate is None:
            found.append(one)  # by the code alone: the change that makes the other needless
        if blame is None or other is None or one.estimate is None or other.estimate is None:
            continue
        common = np.intersect1d(matched_rows(one.match), matched_rows(other.match))
        taken = 2 * int(blame.rows.samples[common].sum()) >= one.matched_samples
        if taken and other.estimate.expected >= one.estimate.expected:
            found.append(one)
    return found


def _hidden_text(context: KernelContext, finding: EstimatedMatch) -> str:
    """What a finding below the thresholds stands on."""
    total = 0 if context.blame is None else context.blame.total_samples
    part = f"{100 * finding.matched_samples / total:.1f} % of samples" if total else "no samples"
    return part if finding.estimate is None else f"{part}, expected {finding.estimate.expected:.3f}x"


def _sectors(context: KernelContext) -> str | None:
    """All global sectors against the fewest for the same bytes, and the share of the worst place."""
    profile = context.profile
    traffic = None if profile is None else kernel_traffic(context.program, context.kernel, profile)
    if traffic is None or not traffic.sectors:
        return None
    text = (
        f"all global accesses take {traffic.sectors / 1e6:,.1f} M sectors against an ideal of "
        f"{traffic.ideal_sectors / 1e6:,.1f} M ({100 * traffic.waste:.1f} % too many)"
    )
    if traffic.worst_place is None:
        return text
    share = 100 * traffic.worst_sectors / traffic.sectors
    return f"{text}, of which the worst place, {traffic.worst(context.program)}, requests {share:.1f} %"


def _rank(suggestion: Suggestion) -> tuple[bool, float, float, str]:
    """Estimated ones by what they are expected to give, then those without an estimate."""
    estimate = suggestion.speedup
    return (
        estimate is None,
        0.0 if estimate is None else -estimate.expected,
        -suggestion.importance,
        suggestion.code,
    )


def _suggestion(
    context: KernelContext,
    finding: EstimatedMatch,
    time_share: float | None,
    executed: Mapping[tuple[int, int], int],
) -> Suggestion:
    optimizer, match, blame = finding.optimizer, finding.match, context.blame
    total = 0 if blame is None else blame.total_samples
    spots = (
        static_hotspots(context, match, executed)
        if blame is None
        else hotspots(context, match, optimizer.category)
    )
    return Suggestion(
        code=optimizer.code,
        slug=optimizer.slug,
        name=optimizer.name,
        title=match.title,
        category=optimizer.category,
        evidence=_evidence(context, finding),
        importance=finding.matched_samples / total if total else 0.0,
        matched_samples=finding.matched_samples,
        matched_latency=finding.matched_latency,
        speedup=finding.estimate,
        program_speedup=program_estimate(finding.estimate, time_share),
        scope=_scope(context, finding),
        advice=_sentence(match.advice),
        hotspots=spots,
        next_limit=_next_limit(context, finding),
        cure=_sentence(match.cure),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _evidence(context: KernelContext, finding: EstimatedMatch) -> Evidence:
    """Counters of units say nothing of a place in the machine code: it is shown by the code alone."""
    counted = context.evidence is Evidence.COUNTED
    weighed = finding.estimate is not None or (
        context.profile is not None and context.profile.counts is not None
    )
    return Evidence.STATIC if counted and not weighed else context.evidence


def _next_limit(context: KernelContext, finding: EstimatedMatch) -> str:
    """The unit that gets busy as the kernel gets faster; empty where none does."""
    estimate = finding.estimate
    after = busiest_after(active_loads(context), finding.match.relieves, best=False)
    if estimate is None or after is None or 100 * after.load * estimate.expected < constants.BUSY_PERCENT:
        return ""
    return unit_words(after.unit)


def _scope(context: KernelContext, finding: EstimatedMatch) -> Scope:
    """The region with the most matched samples, else the function of the first place, else the kernel."""
    match, blame = finding.match, context.blame
    if match.regions and blame is not None:
        samples = blame.rows.samples
        return max(match.regions, key=lambda region: int(samples[region.rows].sum())).scope
    functions = {site.function for site in match.static_sites}
    if len(functions) == 1:
        return function_scope(context.program, context.program.functions[functions.pop()])
    return kernel_scope(context.program, context.kernel)


def _name(context: KernelContext, demangled: str | None) -> str:
    if demangled is not None:
        return demangled
    if context.profile is not None:
        return context.profile.launch.demangled
    function = kernel_function(context.program, context.kernel)
    return context.kernel if function is None else function.demangled


def _device(context: KernelContext) -> Device:
    if context.profile is not None:
        return context.profile.device
    return Device(
        name=None,
        arch=context.program.arch,
        sms=None,
        clock_hz=None,
        max_warps_per_sm=None,
        schedulers_per_sm=None,
        registers_per_sm=None,
        shared_bytes_per_sm=None,
        l2_bytes=None,
    )
