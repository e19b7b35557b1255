# SPDX-License-Identifier: Apache-2.0
"""Which of the findings about a kernel are told, where, and in which order (GPA section III)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpadvisor.advice.amdahl import program_estimate
from gpadvisor.advice.evaluate import EstimatedMatch, Evaluated
from gpadvisor.advice.hotspots import hotspots, static_hotspots
from gpadvisor.advice.scopes import executed_by_place
from gpadvisor.advice.standing import NO_THRESHOLDS, Standing, Thresholds, as_told, standing
from gpadvisor.advice.verdict import unit_words
from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.estimators.utilisation import active_loads
from gpadvisor.evidence.queries import function_scope, kernel_scope
from gpadvisor.model.advice import Rejection, Scope, Suggestion
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import FunctionKind
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import capitalised, marked


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is told of a kernel, best first, and what is only counted."""

    suggestions: tuple[Suggestion, ...]
    notes: tuple[Suggestion, ...]
    shown: tuple[EstimatedMatch, ...]  # what the suggestions are made of, before the best are taken
    hidden: tuple[EstimatedMatch, ...]
    rejected: tuple[Rejection, ...]

    @property
    def kept(self) -> list[EstimatedMatch]:
        """The findings behind the suggestions."""
        codes = {suggestion.code for suggestion in self.suggestions}
        return [match for match in self.shown if match.code in codes]


def choose(
    context: KernelContext,
    evaluated: Evaluated,
    limits: Thresholds,
    *,
    time_share: float | None = None,
    top: int | None = None,
) -> Selection:
    """Sort what was found into suggestions, notes and what is hidden.

    Args:
        context: the kernel that was asked about.
        evaluated: what its optimizers answered.
        limits: below them a finding is hidden; without any, nothing gives way to another finding either.
        time_share: the kernel's, of all kernel time in the report.
        top: keep this many suggestions; None for all.
    """
    findings, rejected = evaluated
    if limits != NO_THRESHOLDS:
        findings, rejected = _one_block_size(findings, rejected)
    piles: dict[Standing, list[EstimatedMatch]] = {kind: [] for kind in Standing}
    for match in findings:
        piles[standing(context, match, limits)].append(as_told(context, match))
    for match in () if limits == NO_THRESHOLDS else _replaced(context, piles[Standing.SUGGESTION]):
        piles[Standing.SUGGESTION].remove(match)
        piles[Standing.HIDDEN].append(match)
    executed = executed_by_place(context.program, context.profile) if context.blame is None else {}
    suggestions, notes = (
        tuple(_suggestion(context, pile, time_share, executed) for pile in sorted(piles[kind], key=_rank))
        for kind in (Standing.SUGGESTION, Standing.NOTE)
    )
    better = _other_launches(piles[Standing.SUGGESTION])
    suggestions = tuple(
        replace(suggestion, instead_of=better.get(suggestion.code, "")) for suggestion in suggestions
    )
    return Selection(
        suggestions=suggestions[:top],
        notes=notes,
        shown=tuple(piles[Standing.SUGGESTION]),
        hidden=tuple(piles[Standing.HIDDEN]),
        rejected=tuple(rejected),
    )


def _one_block_size(findings: Sequence[EstimatedMatch], rejected: Sequence[Rejection]) -> Evaluated:
    """Of several block sizes that are proposed the one that gives most: a launch has one.

    More blocks of the same size stay beside another size: that is the smaller edit.
    """
    sizes = [
        finding
        for finding in findings
        if finding.match.parallel is not None
        and finding.match.parallel.threads_new != finding.match.parallel.threads_now
    ]
    best = max(
        sizes, key=lambda size: (size.estimate.expected if size.estimate else 0.0, size.code), default=None
    )
    if best is None or len(sizes) == 1:
        return tuple(findings), tuple(rejected)
    matches = [match for match in sizes if match is not best]
    reason = f"{best.optimizer.name} ({best.code}) proposes another block size, which gives more"
    more = (Rejection(code=match.code, reason=reason) for match in matches)
    return (
        tuple(finding for finding in findings if finding not in matches),
        tuple(sorted((*rejected, *more), key=lambda rejection: rejection.code)),
    )


def _other_launches(matches: Sequence[EstimatedMatch]) -> Mapping[str, str]:
    """By code of a change of the launch's numbers, the code of another one that gives more."""
    changes = [
        match
        for match in matches
        if match.estimate is not None
        and (target := match.match.parallel) is not None
        and (target.blocks_new, target.threads_new) != (target.blocks_now, target.threads_now)
    ]
    best = max(changes, key=lambda change: change.estimate.expected if change.estimate else 0.0, default=None)
    return {change.code: best.code for change in changes if best is not None and change is not best}


def _replaced(context: KernelContext, candidates: Sequence[EstimatedMatch]) -> list[EstimatedMatch]:
    """Findings most of whose samples another one takes with the accesses themselves, and with no less gain.

    Gains that differ by less than times do from run to run are the same.
    """
    if any(candidate.match.alone for candidate in candidates):
        return [candidate for candidate in candidates if not candidate.match.alone]
    blame, matches = context.blame, []
    for candidate in candidates:
        replacement = candidate.match.replaced_by or candidate.optimizer.replaced_by
        replacing = next((by for by in candidates if by.code == replacement), None)
        if replacing is not None and candidate.estimate is None and replacing.estimate is None:
            matches.append(candidate)  # by the code alone: the change that makes the other needless
        if blame is None or replacing is None or candidate.estimate is None or replacing.estimate is None:
            continue
        common = np.intersect1d(matched_rows(candidate.match), matched_rows(replacing.match))
        mostly_common = (
            Remedy.SHARED_ROWS in replacing.match.remedies  # of the loop with most samples
            or 2 * int(blame.rows.samples[common].sum()) >= candidate.matched_samples
        )
        if (
            mostly_common
            and replacing.estimate.expected * (1 + constants.RUN_TO_RUN) >= candidate.estimate.expected
        ):
            matches.append(candidate)
    return matches


def _rank(finding: EstimatedMatch) -> tuple[bool, bool, float, bool, int, float, str]:
    """What leads, estimated ones by what they are expected to give, what was counted, what the code shows.

    Where nothing else tells findings apart, those lead whose rule gave more where its changes were measured.
    """
    estimate = finding.estimate
    return (
        not finding.match.leads,
        estimate is None,
        0.0 if estimate is None else -estimate.expected,
        not finding.match.counted,
        -finding.matched_samples,
        -finding.optimizer.usual_gain,
        finding.code,
    )


def _suggestion(
    context: KernelContext,
    finding: EstimatedMatch,
    time_share: float | None,
    executed: Mapping[tuple[int, int], int],
) -> Suggestion:
    optimizer, match, blame = finding.optimizer, finding.match, context.blame
    total = 0 if blame is None else blame.total_samples
    slowest = None if context.profile is None else context.profile.slowest
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
        slowest_speedup=None
        if slowest is None
        else program_estimate(finding.estimate, slowest.time_share, f"of {slowest.name}"),
        scope=_scope(context, finding),
        advice=_sentence(match.advice),
        hotspots=spots,
        next_limit=_next_limit(context, finding),
        cure=_sentence(match.cure),
        leads=match.leads,
        remedies=match.remedies,
    )


def _sentence(text: str) -> str:
    words = marked(text)
    return f"{capitalised(words).rstrip('.')}." if words else ""


def _evidence(context: KernelContext, finding: EstimatedMatch) -> Evidence:
    """Counters of units say nothing of a place in the machine code: it is shown by the code alone."""
    counted = context.evidence is Evidence.COUNTED
    weighed = (
        finding.match.counted
        or finding.estimate is not None
        or (context.profile is not None and context.profile.counts is not None)
    )
    return Evidence.STATIC if counted and not weighed else context.evidence


def _next_limit(context: KernelContext, finding: EstimatedMatch) -> str:
    """The unit that gets busy as the kernel gets faster; empty where none does."""
    estimate = finding.estimate
    after = busiest_after(active_loads(context), finding.match.reduced_loads, best=False)
    if estimate is None or after is None or 100 * after.load * estimate.expected < constants.BUSY_PERCENT:
        return ""
    return unit_words(after.unit)


def _scope(context: KernelContext, finding: EstimatedMatch) -> Scope:
    """The region with the most matched samples, else the function of the first place, else the kernel.

    Of a routine of the compiler's the kernel, whose lines call it.
    """
    match, blame = finding.match, context.blame
    routines = {
        function.demangled
        for function in context.program.functions
        if function.kind is FunctionKind.MATH_HELPER
    }
    if match.regions and blame is not None:
        samples = blame.rows.samples
        scope = max(match.regions, key=lambda region: int(samples[region.rows].sum())).scope
        return kernel_scope(context.program, context.kernel) if scope.name in routines else scope
    functions = {site.function for site in match.static_sites}
    if len(functions) == 1:
        return function_scope(context.program, context.program.functions[functions.pop()])
    return kernel_scope(context.program, context.kernel)
