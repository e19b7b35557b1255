# SPDX-License-Identifier: Apache-2.0
"""Parallelism: more or fewer warps per scheduler change its issue rate (GPA Eqs. 6 to 10)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators.caps import Cap, cap_speedup, loads
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import whole
from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.matched import waiting_in_turn
from gpadvisor.estimators.ranges import (
    NOTABLE,
    Range,
    allow_for_model,
    apply_measured_bound,
    cut_by,
    ends_text,
    factors,
    say_truncated,
    speedup,
)
from gpadvisor.model.advice import Estimate, Match, ParallelTarget
from gpadvisor.model.profile import CONFIGURATION_SHARE, CONFIGURATIONS
from gpadvisor.model.stalls import StallClass

_NEVER_ISSUES: Final = 1e-12
"""Below this the quotient of Eq. 7 is its limit, and rounding is all that is left of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelTerms:
    """Eqs. 6 to 10 with every step, so that they can be checked by hand."""

    warp_change: float  # C_W, Eq. 6
    issue_now: float  # I, Eq. 8
    issue_new: float  # I_new, Eq. 9
    issue_change: float  # C_I, Eq. 7
    speedup: float  # S^p, Eq. 10


def parallel_equation(
    *, warps_now: float, warps_new: float, issue_ratio: float, factor: float = 1.0
) -> ParallelTerms:
    """GPA Eqs. 6 to 10; a kernel that never issues has C_I = C_W, the limit of Eq. 7."""
    if warps_now <= 0 or warps_new <= 0:
        raise ValueError("a scheduler without warps has no issue rate")
    ratio = min(max(issue_ratio, 0.0), 1.0)
    warp_change = warps_new / warps_now  # Eq. 6
    now = -math.expm1(warps_now * math.log1p(-ratio)) if ratio < 1 else 1.0  # Eq. 8
    new = -math.expm1(warps_new * math.log1p(-ratio)) if ratio < 1 else 1.0  # Eq. 9
    issue_change = new / now if ratio > _NEVER_ISSUES else warp_change  # Eq. 7
    return ParallelTerms(
        warp_change=warp_change,
        issue_now=now,
        issue_new=new,
        issue_change=issue_change,
        speedup=issue_change / warp_change * factor,  # Eq. 10
    )


def parallel(context: KernelContext, match: Match) -> Estimate:
    """The estimate of an optimizer that changes the launch; the match carries its target."""
    target = match.parallel
    if target is None:
        raise ValueError("a parallel estimate needs a target launch")
    terms = _terms(target, target.issue_ratio)
    paper = max(1.0, terms.speedup)
    result = _range(context, match, target, terms.speedup)
    apply_measured_bound(result, context, match)
    _bound_by_spread(result, context, target)
    _share_between_configurations(result, context)
    _apply_caps(result, context, match, target)
    allow_for_model(result, context, gain=1.0)
    say_truncated(result, context)
    return result.ordered(paper, _text(target, terms))


def _terms(target: ParallelTarget, issue_ratio: float) -> ParallelTerms:
    return parallel_equation(
        warps_now=target.warps_now,
        warps_new=target.warps_new,
        issue_ratio=issue_ratio,
        factor=target.factor,
    )


def _range(context: KernelContext, match: Match, target: ParallelTarget, value: float) -> Range:
    """Sampling error of R_I, then the adjustments, which scale the gain over 1."""
    ends = [value]
    reasons = [f"factor f = {target.factor:.3f}: {target.factor_reason}"]
    if context.blame is not None:
        total = context.blame.total_samples
        chance = wilson(target.issue_ratio * total, total)
        ends += [_terms(target, chance.low).speedup, _terms(target, chance.high).speedup]
    factor = factors(match.adjustments)
    scaled = [1 + (end - 1) * value for end in ends for value in (factor.low, factor.high)]
    if context.blame is not None and _spreads(target):
        # Warps of a small grid that wait for memory alone wait as long on another SM: all that is sure to go
        # is what they waited for each other.
        crowded = int(context.blame.rows.samples[waiting_in_turn(context.blame)].sum())
        scaled.append(min(value, speedup(context.blame.total_samples, crowded)))
        if scaled[-1] < value * (1 - NOTABLE):
            reasons.append(f"{crowded} samples waited for other warps; the rest may stay as it is")
    reasons += [f"{entry.reason} ({ends_text(entry)} of the gain)" for entry in match.adjustments]
    return Range(
        low=min(scaled), expected=1 + (value - 1) * factor.expected, high=max(scaled), reasons=reasons
    )


def _spreads(target: ParallelTarget) -> bool:
    """Whether the target gives work to SMs that have none now."""
    now, new = target.busy_sms_now, target.busy_sms_new
    return now is not None and new is not None and new > now


def _bound_by_spread(result: Range, context: KernelContext, target: ParallelTarget) -> None:
    """A grid spread over more SMs is as fast as the fullest of them: whole blocks, not shares.

    Differs from GPA: its estimate is the same for 1 block and for 79 blocks on 80 SMs.
    """
    sms = context.profile.device.sms if context.profile is not None else None
    if not _spreads(target) or not sms:
        return
    fullest_now = -(-target.blocks_now // sms) * target.threads_now
    fullest_new = -(-target.blocks_new // sms) * target.threads_new
    if fullest_new <= 0:
        return
    bound = max(1.0, fullest_now / fullest_new)
    reason = (
        f"the fullest SM goes from {fullest_now} to {fullest_new} threads "
        f"({target.blocks_now} x {target.threads_now} to {target.blocks_new} x {target.threads_new} "
        f"on {sms} SMs)"
    )
    said = cut_by(result, Cap(bound, reason), Cap(bound, reason))
    if said is not None:
        result.reasons.append(said)


def _share_between_configurations(result: Range, context: KernelContext) -> None:
    """Samples of launches that differ and cannot be told apart: the target is for one configuration.

    Differs from GPA: its samples always belonged to one launch, since its kernels were serialized.
    """
    profile = context.profile
    count = None if profile is None else profile.metric(CONFIGURATIONS)
    share = None if profile is None else profile.metric(CONFIGURATION_SHARE)
    if count is None or count <= 1 or share is None or result.expected <= 0:
        return
    share = min(max(share, 0.0), 1.0)
    result.expected = whole(result.expected, share)
    result.low = min(result.low, 1.0)
    result.reasons.append(
        f"samples of {count:.0f} launch configurations that cannot be told apart: the change is for one of"
        f" them, with {100 * share:.0f} % of the launches' time, and may be none for the others"
    )


def _apply_caps(result: Range, context: KernelContext, match: Match, target: ParallelTarget) -> None:
    measured = loads(context)
    if _spreads(target):  # a share of the busy SMs' peak says nothing about the idle ones
        measured = tuple(entry for entry in measured if entry.metric.endswith("_elapsed"))
    middle = cap_speedup(measured, match.relieves, best=False)
    top = cap_speedup(measured, match.relieves, best=True)
    said = cut_by(result, middle, top)
    if said is not None:
        result.reasons.append(said)


def _text(target: ParallelTarget, terms: ParallelTerms) -> str:
    return (
        f"GPA Eq. 10: S = 1/C_W x C_I x f = {1 / terms.warp_change:.3f} x {terms.issue_change:.3f} x "
        f"{target.factor:.3f} = {terms.speedup:.3f} with W = {target.warps_now:g}, "
        f"W_new = {target.warps_new:g}, R_I = {target.issue_ratio:.4f}, I = {terms.issue_now:.4f}, "
        f"I_new = {terms.issue_new:.4f}"
    )


def issue_ratio(context: KernelContext) -> float | None:
    """R_I: issued samples among all; None without samples or without a reason for issuing."""
    if context.blame is None or not context.blame.total_samples:
        return None
    rows = context.blame.rows
    issued = [
        index for index, reason in enumerate(context.blame.reasons) if reason.stall_class is StallClass.ISSUED
    ]
    if not issued:
        return None
    found = sum(int(rows.samples[rows.reason == index].sum()) for index in issued)
    return found / context.blame.total_samples
