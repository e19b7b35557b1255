# SPDX-License-Identifier: Apache-2.0
"""Parallelism: more or fewer warps per scheduler change its issue rate (GPA Eqs. 6 to 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import Cap, cap_speedup, together
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import whole
from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.launches import held_warps, outside_share
from gpadvisor.estimators.matched import waiting_for_others, waiting_in_turn
from gpadvisor.estimators.ranges import (
    Range,
    allow_for_model,
    cut_by,
    ends_text,
    factors,
    say_truncated,
    speedup,
)
from gpadvisor.estimators.utilisation import (
    DRAM,
    ISSUE,
    L2,
    MEMORY,
    MEMORY_RESOURCES,
    active_loads,
    loads,
    measured_loads,
)
from gpadvisor.model.advice import Estimate, Match, ParallelTarget, ReducedLoad, Utilisation
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import CONFIGURATION_SHARE, CONFIGURATIONS, KernelProfile
from gpadvisor.model.stalls import StallClass

_SHARED_BY_SMS: Final = frozenset({DRAM, L2, MEMORY})
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
    issue_now = -math.expm1(warps_now * math.log1p(-ratio)) if ratio < 1 else 1.0  # Eq. 8
    new = -math.expm1(warps_new * math.log1p(-ratio)) if ratio < 1 else 1.0  # Eq. 9
    issue_change = new / issue_now if ratio > _NEVER_ISSUES else warp_change  # Eq. 7
    return ParallelTerms(
        warp_change=warp_change,
        issue_now=issue_now,
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
    if _fills(target):
        result = _filled(context, match, target)
        if target.blocks_new == target.blocks_now and target.threads_new == target.threads_now:
            _of_what_divides(result, match)
    elif _spreads(target):
        result = _spread(context, target, terms.speedup)
        _bound_by_spread(result, context, target)
    else:
        result = _range(context, match, target, terms.speedup)
    if context.blame is None:
        result.reasons.append("there are no samples: issue rate and loads are counters of the run")
    _share_between_configurations(result, context)
    _apply_caps(result, context, match, target)
    allow_for_model(result, context)
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
    reasons += [f"{entry.reason} ({ends_text(entry)} of the gain)" for entry in match.adjustments]
    return Range(
        low=min(scaled), expected=1 + (value - 1) * factor.expected, high=max(scaled), reasons=reasons
    )


def _spread(context: KernelContext, target: ParallelTarget, value: float) -> Range:
    """The same warps on more SMs: each has its own work to do, and waits less for the others.

    Differs from GPA: Eq. 10 takes a warp's stalls for independent of the others, so that eight warps on one
    scheduler take eight turns. Real warps that wait for memory wait as long on another SM: of three measured
    pairs of 8 blocks made 64, none gained more than 1.03x, where Eq. 10 gives 1.12x to 1.17x.
    """
    if context.blame is None or not context.blame.total_samples:
        return Range(low=1.0, expected=value, high=value, reasons=[])
    total = context.blame.total_samples
    units, most = _spread_units(context, target)
    crowded = int(context.blame.rows.samples[waiting_for_others(context.blame)].sum())
    # As many of those waits go as others leave the scheduler.
    gone = min(1.0, (target.warps_now - target.warps_new) / max(target.warps_now - 1, 1e-9))
    expected = max(speedup(total, crowded * max(0.0, gone)), units)
    in_turn = int(context.blame.rows.samples[waiting_in_turn(context.blame)].sum())
    reason = (
        f"{percent(crowded / total)} of the samples waited for other warps of the SM; what a warp waits for "
        "its own data and results it waits on another SM, too"
    )
    if units > speedup(total, crowded * max(0.0, gone)):
        reason = (
            "the busiest unit of an SM is shared by its warps: with fewer of them it is busy for less time"
        )
    return Range(
        low=min(expected, speedup(total, in_turn * max(0.0, gone))),
        expected=expected,
        high=max(expected, value, most),
        reasons=[reason],
    )


def of_an_sm(measured: Sequence[Utilisation]) -> tuple[Utilisation, ...]:
    """The units that each SM has for itself."""
    return tuple(entry for entry in measured if entry.name not in _SHARED_BY_SMS)


def shared_unit(context: KernelContext) -> float:
    """How full the unit of an SM is that its warps wait for in turn, in percent; 0 where they wait for none.

    The queue of a pipe shows in the samples as a wait for it, so that a pipe below its limit is not what they
    wait for: 8 blocks at 69 % of the FP64 pipe, made 64, gained 1.03x. The queues of L1, and of what it asks
    of L2, show as waits for data: 16 blocks at 71 % of those, made 128, gained 1.36x.
    """
    full = [
        entry.percent
        for entry in of_an_sm(measured_loads(context))
        if entry.percent
        >= (constants.BUSY_PERCENT if entry.name in MEMORY_RESOURCES else constants.HIGH_PERCENT)
    ]
    return max(full, default=0.0)


def _spread_units(context: KernelContext, target: ParallelTarget) -> tuple[float, float]:
    """What warps gain that share the busiest unit of an SM now, and those of several SMs then; and at most.

    The unit's time falls with the warps that an SM has, the rest stays, and both overlap; at the high end
    they do so the least.
    """
    unit = min(1.0, shared_unit(context) / constants.PEAK_PERCENT)
    fewer = min(1.0, target.warps_new / target.warps_now)

    def faster(overlap: float) -> float:
        left: float = (1 - unit**overlap + (unit * fewer) ** overlap) ** (1 / overlap)
        return 1 / max(left, constants.LEAST_TIME)

    return faster(constants.OVERLAP), faster(constants.LEAST_OVERLAP)


def _fills(target: ParallelTarget) -> bool:
    """Whether the target holds more warps at once, has more lanes of them work, or as many on more SMs.

    Blocks that are split put fewer warps on each SM; a kernel's own work, divided, leaves as many there.
    """
    divided = _spreads(target) and target.blocks_new == target.blocks_now
    return (
        target.lanes > 1
        or target.warps_new > (target.held_now or target.warps_now)
        or (divided and target.warps_new >= target.warps_now)
    )


def _filled(context: KernelContext, match: Match, target: ParallelTarget) -> Range:
    """More warps at once, in which more lanes may work: they hide latency until a unit is full.

    Differs from GPA: Eqs. 8 and 9 know the issue slots as the only unit that warps share. Here the time of
    the units, as counted, stays (less what the launch takes away), the rest of the time falls as the issue
    rate of Eqs. 8 and 9 rises, and both overlap as the stages of a kernel do (``constants.OVERLAP``). What
    passes without a warp is neither.
    """
    held = target.held_now or target.warps_now
    spread = 1.0 if not _spreads(target) else (target.busy_sms_new or 1) / (target.busy_sms_now or 1)
    outside = 0.0 if context.profile is None else outside_share(context.profile)
    outside_left = outside if target.outside_new is None else min(outside, target.outside_new)
    measured = active_loads(context)
    units_now = min(1.0, together(measured, ()))
    units = together(_thinned(measured, spread), match.reduced_loads)
    fullest = _fullest(_thinned(measured, spread), match.reduced_loads)
    own: float = (1 - units_now**constants.OVERLAP) ** (
        1 / constants.OVERLAP
    )  # of the active time what more warps hide

    def gain(warps: float, issue_ratio: float) -> float:
        terms = parallel_equation(warps_now=held, warps_new=warps, issue_ratio=issue_ratio)
        return max(target.lanes * spread * terms.issue_change, 1e-9)

    def faster(rate: float, units: float, overlap: float, outside_left: float) -> float:
        active: float = ((own / rate) ** overlap + units**overlap) ** (1 / overlap)
        return 1 / max(outside_left + (1 - outside) * active, 1e-9)

    rate = gain(target.warps_new, target.issue_ratio)
    slow = min(gain(target.held_low or target.warps_new, target.issue_ratio), rate)
    fast = target.lanes * spread * max(target.warps_new / held, 1.0)
    fewer = min(1.0, target.blocks_now and target.blocks_new / target.blocks_now)
    expected = faster(rate, units, constants.OVERLAP, outside_left)
    low = min(expected, faster(slow, units, constants.LEAST_OVERLAP, outside_left))
    if target.blocks_new == target.blocks_now and target.threads_new == target.threads_now:
        low = min(low, expected**constants.SPREAD)  # a change of the kernel may add work of its own
    result = Range(
        low=low,
        expected=expected,
        high=max(expected, faster(max(fast, rate), fullest, constants.OVERLAP, outside_left * fewer)),
        reasons=[
            f"a scheduler holds {held:.2f} warps{'' if target.held_now is None else ' as counted'}, then "
            f"{target.warps_new:.2f}"
            + (f", with {target.lanes:.2f} times the lanes at work" if target.lanes > 1 else "")
            + (f", on {spread:.2f} times the SMs" if spread > 1 else "")
            + f": by Eqs. 8 and 9 their own waits take {1 / rate:.2f} of the time"
        ],
    )
    if measured:
        result.reasons.append(f"the units they share then take {percent(units, 0)} of the active time of now")
    if outside > constants.ANY_END:
        stays = (
            "stays"
            if outside_left == outside
            else "goes"
            if outside_left == 0
            else f"falls to {percent(outside_left)}"
        )
        result.reasons.append(f"{percent(outside)} of the elapsed time passes without a warp, which {stays}")
    return result


def _of_what_divides(result: Range, match: Match) -> None:
    """The same where a part of the time alone goes with what is divided (Amdahl)."""
    part = factors(match.adjustments)
    result.low, result.expected = whole(result.low, part.low), whole(result.expected, part.expected)
    result.high = whole(result.high, part.high)
    result.reasons += [f"{entry.reason} ({ends_text(entry)} of it)" for entry in match.adjustments]


def _thinned(measured: Sequence[Utilisation], spread: float) -> tuple[Utilisation, ...]:
    """Loads per busy SM once there are more of those; what all SMs share is as full as before."""
    return tuple(
        entry if entry.name in _SHARED_BY_SMS else replace(entry, percent=entry.percent / spread)
        for entry in measured
    )


def _fullest(measured: Sequence[Utilisation], reduced_loads: Sequence[ReducedLoad]) -> float:
    """The load of the busiest unit after the change."""
    cap = cap_speedup(measured, reduced_loads, best=True)
    return 0.0 if cap is None else 1 / cap.speedup


def _spreads(target: ParallelTarget) -> bool:
    """Whether the target gives work to SMs that have none now."""
    busy_now, new = target.busy_sms_now, target.busy_sms_new
    return busy_now is not None and new is not None and new > busy_now


def _bound_by_spread(result: Range, context: KernelContext, target: ParallelTarget) -> None:
    """A grid spread over more SMs is as fast as the fullest of them: whole blocks, not shares.

    Differs from GPA: its estimate is the same for 1 block and for 79 blocks on 80 SMs.
    """
    sms = context.profile.device.sms if context.profile is not None else None
    if not _spreads(target) or not sms or target.blocks_new == target.blocks_now:
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
    sentence = cut_by(result, Cap(bound, reason), Cap(bound, reason))
    if sentence is not None:
        result.reasons.append(sentence)


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
        f" them, with {percent(share, 0)} of the launches' time, and may be none for the others"
    )


def _apply_caps(result: Range, context: KernelContext, match: Match, target: ParallelTarget) -> None:
    measured = loads(context)
    if _spreads(target):  # a share of the busy SMs' peak says nothing about the idle ones
        measured = tuple(entry for entry in measured if entry.metric.endswith("_elapsed"))
    middle = cap_speedup(measured, match.reduced_loads, best=False)
    top = cap_speedup(measured, match.reduced_loads, best=True)
    sentence = cut_by(result, middle, top)
    if sentence is not None:
        result.reasons.append(sentence)


def _text(target: ParallelTarget, terms: ParallelTerms) -> str:
    return (
        f"GPA Eq. 10: S = 1/C_W x C_I x f = {1 / terms.warp_change:.3f} x {terms.issue_change:.3f} x "
        f"{target.factor:.3f} = {terms.speedup:.3f} with W = {target.warps_now:g}, "
        f"W_new = {target.warps_new:g}, R_I = {target.issue_ratio:.4f}, I = {terms.issue_now:.4f}, "
        f"I_new = {terms.issue_new:.4f}"
    )


def is_estimable(context: KernelContext, target: ParallelTarget) -> bool:
    """Whether samples, or counters in their place, support an estimate of another launch.

    What blocks gain by being spread is up to what their warps wait for, which counters do not tell.
    """
    if context.blame is not None:
        return context.blame.total_samples > 0
    return issue_ratio(context) is not None and (_fills(target) or not _spreads(target))


def issue_ratio(context: KernelContext) -> float | None:
    """R_I: how often a warp issues, of the samples, or of the cycles as counted where there are none.

    Returns:
        None where samples have no reason for issuing, or neither they nor counters are there.
    """
    if context.blame is None:
        return None if context.profile is None else _issue_ratio_counted(context, context.profile)
    if not context.blame.total_samples:
        return None
    rows = context.blame.rows
    issued = [
        index for index, reason in enumerate(context.blame.reasons) if reason.stall_class is StallClass.ISSUED
    ]
    if not issued:
        return None
    issued_samples = sum(int(rows.samples[rows.reason == index].sum()) for index in issued)
    return issued_samples / context.blame.total_samples


def _issue_ratio_counted(context: KernelContext, profile: KernelProfile) -> float | None:
    """Instructions that a scheduler issues per cycle with warps, for each warp that it holds then."""
    held = held_warps(context, profile)
    busy = next((entry.percent for entry in active_loads(context) if entry.name == ISSUE), None)
    return None if held is None or busy is None else min(1.0, busy / 100 / held)
