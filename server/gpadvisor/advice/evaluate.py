# SPDX-License-Identifier: Apache-2.0
"""Every optimizer asked once: what matched, with its estimate, and what did not, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gpadvisor.advice.language import language_of
from gpadvisor.analyzer.places import is_library
from gpadvisor.estimators.contention import contention
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.matched import matched_latency, matched_samples
from gpadvisor.estimators.parallel import is_estimable
from gpadvisor.model.advice import Category, Estimate, Match, Rejection, StaticSite


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimatedMatch:
    """One optimizer's match with what it would give."""

    optimizer: Optimizer
    match: Match
    estimate: Estimate | None  # None where no sample supports one
    matched_samples: int
    matched_latency: int

    @property
    def code(self) -> str:
        """The rule code."""
        return self.optimizer.code


_IN_FLIGHT: Final = frozenset({Category.LATENCY_HIDING, Category.PARALLEL})
"""Rules that have more loads or warps wait at once, which a queue at one place does not shorten."""

Evaluated: TypeAlias = tuple[tuple[EstimatedMatch, ...], tuple[Rejection, ...]]
"""What all optimizers answered about one kernel."""


def evaluate(context: KernelContext, optimizers: Sequence[Optimizer]) -> Evaluated:
    """Findings and rejections, each by code: the order of optimizers makes no difference.

    Without machine code those are asked that look at the launch alone.
    """
    no_code = context.blame is None and not context.program.functions
    context = replace(context, language=language_of(context.program, context.kernel))
    held = contention(context)
    findings: list[EstimatedMatch] = []
    rejections: list[Rejection] = []
    for optimizer in sorted(optimizers, key=_code):
        if no_code and optimizer.category is not Category.PARALLEL:
            reason = "no machine code of this kernel could be read"
            rejections.append(Rejection(code=optimizer.code, reason=reason, looked=False))
            continue
        if context.program.debug_build and optimizer.optimized_only:
            reason = "the code is a debug build (-G), in which the compiler leaves what it would else change"
            rejections.append(Rejection(code=optimizer.code, reason=reason, looked=False))
            continue
        if held is not None and optimizer.category in _IN_FLIGHT:
            reason = f"{held.words}: what is in flight besides waits behind them"
            rejections.append(Rejection(code=optimizer.code, reason=reason))
            continue
        answer = optimizer.match(context)
        if isinstance(answer, Rejection):
            rejections.append(answer)
            continue
        if (
            context.blame is None
            and answer.static_sites
            and all(_is_in_library(context, site) for site in answer.static_sites)
        ):
            reason = "the code that shows it is a library's, from the kernel down"
            rejections.append(Rejection(code=optimizer.code, reason=reason))
            continue
        finding = _finding(context, optimizer, answer)
        if finding is None:
            rejections.append(Rejection(code=optimizer.code, reason="it matches no sample of this kernel"))
        else:
            findings.append(finding)
    names = {
        optimizer.code: optimizer.name for optimizer in optimizers if optimizer.category is not Category.NOTE
    }
    return tuple(findings), tuple(
        rejection if rejection.looked else replace(rejection, name=names.get(rejection.code, ""))
        for rejection in rejections
    )


def _is_in_library(context: KernelContext, site: StaticSite) -> bool:
    entry = context.program.functions[site.function].lines[site.index]
    return entry is not None and is_library(entry.location.file)


def _code(optimizer: Optimizer) -> str:
    return optimizer.code


def _finding(context: KernelContext, optimizer: Optimizer, match: Match) -> EstimatedMatch | None:
    blame = context.blame
    if blame is None:
        if not match.static_sites and match.parallel is None:
            return None
        launch = match.parallel is not None and is_estimable(context, match.parallel)
        estimable = launch or match.measured_bound is not None
        return EstimatedMatch(
            optimizer=optimizer,
            match=match,
            estimate=optimizer.estimate(context, match) if estimable else None,
            matched_samples=0,
            matched_latency=0,
        )
    samples, latency = matched_samples(blame, match), matched_latency(blame, match)
    parallel = optimizer.category is Category.PARALLEL
    if not samples and not parallel and match.measured_bound is None:
        return None
    # A note promises nothing, and a launch without a target cannot be estimated.
    estimated = blame.total_samples and optimizer.category is not Category.NOTE
    if parallel and match.parallel is None and not match.regions:
        estimated = False
    return EstimatedMatch(
        optimizer=optimizer,
        match=match,
        estimate=optimizer.estimate(context, match) if estimated else None,
        matched_samples=samples,
        matched_latency=latency,
    )
