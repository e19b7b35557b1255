# SPDX-License-Identifier: Apache-2.0
"""Everything said about one kernel: ranked suggestions, evidence, groups, rejections (GPA section III)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gpadvisor.advice.evaluate import EstimatedMatch, Evaluated, evaluate
from gpadvisor.advice.groups import groups
from gpadvisor.advice.library_calls import library_call
from gpadvisor.advice.nvidia_rules import OurSide, compare_rules, twins
from gpadvisor.advice.quality import evidence_reason, problems
from gpadvisor.advice.samples import sample_summary, stall_summaries
from gpadvisor.advice.scopes import scope_summaries
from gpadvisor.advice.selection import Selection, choose
from gpadvisor.advice.standing import DEFAULT_THRESHOLDS, Thresholds
from gpadvisor.advice.verdict import UNKNOWN, Limit, beside_the_launch, limit_of, limiting, verdict
from gpadvisor.estimators.contention import MEETING, contention
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.estimators.launches import is_as_short_as_a_launch
from gpadvisor.estimators.utilisation import utilisations, where_work_is
from gpadvisor.evidence.measured import registers_per_thread, shared_bytes
from gpadvisor.evidence.queries import kernel_function, line_text
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import (
    KernelAdvice,
    RuleComparison,
    SampleSummary,
    StallSummary,
    Utilisation,
)
from gpadvisor.model.blame import Coverage
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.problem import Problem
from gpadvisor.model.profile import Device, Evidence
from gpadvisor.model.stalls import NO_WAIT, StallClass


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the run itself shows, whatever is advised."""

    stalls: tuple[StallSummary, ...]
    samples: SampleSummary
    utilisations: tuple[Utilisation, ...]

    working: tuple[Utilisation, ...]  # where SMs have work

    @property
    def full(self) -> bool:
        """Whether a unit is at its limit."""
        return limiting(self.working) is not None


def advise_kernel(
    context: KernelContext,
    optimizers: Sequence[Optimizer],
    *,
    limits: Thresholds = DEFAULT_THRESHOLDS,
    top: int | None = None,
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
        limits: what is below them is hidden and counted.
        top: keep this many suggestions; None for all.
        demangled: the kernel's name, where neither launch nor code has it.
        time_share: of all kernel time in the report.
        merged_launches: how many launches the profile adds up.
        more_problems: found by the stages before.
        evaluated: what the optimizers answered, where they were asked already.
    """
    pick = choose(context, evaluated or evaluate(context, optimizers), limits, time_share=time_share, top=top)
    profile, blame, facts = context.profile, context.blame, _seen(context)
    launch = None if profile is None else profile.launch
    limit = _limit(context, facts, pick.shown)
    return KernelAdvice(
        name=_name(context, demangled),
        mangled=context.kernel,
        evidence=context.evidence,
        evidence_reason=evidence_reason(context, facts.samples),
        device=_device(context),
        launch=launch,
        merged_launches=merged_launches,
        duration_ns=None if launch is None else launch.duration_ns,
        time_share=time_share,
        registers_per_thread=registers_per_thread(context.program, context.kernel, profile),
        shared_bytes=shared_bytes(context.program, context.kernel, profile),
        occupancy=context.occupancy,
        utilisations=facts.utilisations,
        samples=facts.samples,
        stalls=facts.stalls,
        coverage=Coverage(before=None, after=None) if blame is None else blame.coverage,
        scopes=scope_summaries(context),
        suggestions=pick.suggestions,
        notes=pick.notes,
        hidden=len(pick.hidden),
        groups=groups(context, pick.kept),
        rejected=pick.rejected,
        limit=limit.name,
        limited_by=limit.words,
        verdict=_verdict(context, limit.words, pick, full=facts.full),
        has_code=_has_code(context),
        rules=_rules(context, optimizers, pick, facts),
        problems=problems(context, facts.samples, more_problems),
        slowest=None if profile is None else profile.slowest,
    )


def _seen(context: KernelContext) -> _Seen:
    profile = context.profile
    stalls = stall_summaries(context.program, profile, context.blame)
    measured = () if profile is None else at_half_rate(utilisations(profile), context.program, profile)
    return _Seen(
        stalls,
        sample_summary(profile, context.blame, stalls),
        measured,
        measured if profile is None else where_work_is(profile, measured),
    )


def _verdict(context: KernelContext, limited_by: str, pick: Selection, *, full: bool) -> str:
    return verdict(
        context.evidence,
        limited_by,
        full=full,
        suggestions=pick.suggestions,
        rejected=pick.rejected,
        hidden=len(pick.hidden),
        has_code=_has_code(context),
    )


def _has_code(context: KernelContext) -> bool:
    return bool(context.program.functions) or context.blame is not None


def _rules(
    context: KernelContext, optimizers: Sequence[Optimizer], pick: Selection, facts: _Seen
) -> tuple[RuleComparison, ...]:
    """NVIDIA's rules of the report beside what is said here."""
    if context.profile is None:
        return ()
    ours = OurSide(
        suggestions=[*pick.suggestions, *pick.notes],
        rejected=pick.rejected,
        hidden={match.code: _hidden_text(context, match) for match in pick.hidden},
        stalls=facts.stalls,
        samples=facts.samples,
        occupancy=context.occupancy,
        utilisations=facts.utilisations,
        twins=twins(optimizers),
        sectors=_sectors(context),
    )
    return compare_rules(context.profile.rules, ours)


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


def _behind(context: KernelContext, stalls: Sequence[StallSummary], matches: Sequence[EstimatedMatch]) -> str:
    """What is suggested for most of the samples of the commonest stall, where that is a symptom."""
    blame = context.blame
    first = next((row for row in stalls if row.reason not in NO_WAIT), None)
    if blame is None or first is None or not first.samples:
        return ""
    indices = [index for index, stall_reason in enumerate(blame.reasons) if stall_reason.name == first.reason]
    if contention(context) is not None:
        return MEETING
    if not any(blame.reasons[position].stall_class in _SYMPTOMS for position in indices):
        return ""
    rows, mask = blame.rows, np.isin(blame.rows.reason, indices)
    for match in matches:
        matched = np.zeros(len(rows), dtype=bool)
        for region in match.match.regions:
            matched[region.rows] = True
        if 2 * int(rows.samples[matched & mask].sum()) >= first.samples:
            return match.match.title
    return ""


def _limit(context: KernelContext, facts: _Seen, matches: Sequence[EstimatedMatch]) -> Limit:
    limit = limit_of(
        context.evidence,
        facts.samples,
        facts.stalls,
        facts.working,
        context.occupancy,
        _behind(context, facts.stalls, matches),
    )
    profile = context.profile
    if (
        profile is not None
        and not facts.full
        and context.evidence is not Evidence.MODELLED
        and is_as_short_as_a_launch(profile)
    ):
        took = (profile.launch.duration_ns or 0.0) / 1000
        return Limit("its launch", f": {took:.1f} us are about what one takes")
    limit = beside_the_launch(limit, context.evidence, profile, full=limiting(facts.working))
    call = library_call(context)
    return limit if limit is UNKNOWN or not call else replace(limit, more=f"{limit.more}; {call}")


def _hidden_text(context: KernelContext, finding: EstimatedMatch) -> str:
    """What a finding below the thresholds stands on."""
    total = 0 if context.blame is None else context.blame.total_samples
    part = f"{percent(finding.matched_samples / total)} of samples" if total else "no samples"
    return part if finding.estimate is None else f"{part}, expected {finding.estimate.expected:.3f}x"


def _sectors(context: KernelContext) -> str | None:
    """All global sectors against the fewest for the same bytes, and the share of the worst place."""
    profile = context.profile
    traffic = None if profile is None else kernel_traffic(context.program, context.kernel, profile)
    if traffic is None or not traffic.sectors:
        return None
    text = (
        f"all global accesses take {traffic.sectors / 1e6:,.1f} M sectors against an ideal of "
        f"{traffic.ideal_sectors / 1e6:,.1f} M ({percent(traffic.waste)} too many)"
    )
    worst = traffic.worst_place
    if worst is None:
        return text
    function, index = context.program.functions[worst[0]], worst[1]
    share = 100 * traffic.requested[worst] / traffic.sectors
    return (
        f"{text}, of which the worst place, {function.instructions[index].opcode} "
        f"{line_text(function, index)}, requests {percentage(share, 1)}"
    )


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
