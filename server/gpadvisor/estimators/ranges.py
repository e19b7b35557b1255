# SPDX-License-Identifier: Apache-2.0
"""From the paper's single value to a range: adjustments, sampling error, measured bounds and caps.

Differs from GPA: the paper gives one number. Its estimates were above the achieved speedup in 18 of its 26
published rows, and they say nothing about the chance in few samples or about a memory system that is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import Cap, TimeLeft, busiest_after, time_left, unit_text
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import active_share, whole
from gpadvisor.estimators.interval import wilson
from gpadvisor.estimators.latency import loads_in_turn
from gpadvisor.estimators.matched import own_execution
from gpadvisor.estimators.utilisation import active_loads
from gpadvisor.model.advice import Adjustment, Estimate, Match, MeasuredBound, ReducedLoad, Utilisation
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What all adjustments together do to the matched samples."""

    low: float
    expected: float
    high: float


@dataclass(slots=True, kw_only=True)
class Range:
    """A range on its way, with the reasons that moved it."""

    low: float
    expected: float
    high: float
    reasons: list[str]

    def ordered(self, paper: float | None, equation: str) -> Estimate:
        """The finished estimate; the ends never cross the expected value, and allow for how times differ."""
        if self.expected > constants.MOST_MEASURED:
            self.reasons.append(f"no change that was measured gave more than {constants.MOST_MEASURED:g}x")
        return Estimate(
            low=min(self.low, self.expected, self.high) * (1 - constants.RUN_TO_RUN),
            expected=self.expected,
            high=max(self.low, self.expected, self.high) * (1 + constants.RUN_TO_RUN),
            paper=paper,
            equation=equation,
            reasons=sentences(*self.reasons),
        )


def factors(adjustments: Sequence[Adjustment]) -> Factors:
    """The product of all adjustments, in order of size whatever their signs."""
    low = expected = high = 1.0
    for adjustment in adjustments:
        ends = [end * factor for end in (low, high) for factor in (adjustment.low, adjustment.high)]
        low, expected, high = min(ends), expected * adjustment.expected, max(ends)
    return Factors(low=low, expected=expected, high=high)


def speedup(total: float, removed: float) -> float:
    """T / (T - removed), with one sample left at least, so that removing all of them has an answer."""
    if total <= 0:
        return 1.0
    return total / max(total - removed, min(1.0, total))


def sampled_range(
    context: KernelContext,
    match: Match,
    total: int,
    removable: Callable[[float], float],
    reduced_loads: Sequence[ReducedLoad] = (),
) -> Range:
    """The range of a cure that removes samples.

    Args:
        context: the kernel.
        match: its adjustments and reduced loads are applied.
        total: T.
        removable: samples that go when the matched ones are multiplied by a factor.
        reduced_loads: loads that go with the samples, beside those that the match names.
    """
    factor = factors(match.adjustments)
    measured, reduced = active_loads(context), (*match.reduced_loads, *reduced_loads)

    in_turn = (0.0, 0.0)
    if match.from_dram is not None and context.profile is not None:
        first, last, _ = loads_in_turn(context, context.profile, match.from_dram)
        own = 0.0 if context.blame is None else own_execution(context.blame)
        in_turn = (first + own, last + own) if first else in_turn

    def left(value: float, *, best: bool = False) -> TimeLeft:
        return time_left(measured, reduced, 1 / value, best=best, in_turn=in_turn)

    ends = [value for end in (factor.low, factor.high) for value in _with_chance(total, removable(end))]
    middle = left(speedup(total, removable(factor.expected)))
    result = Range(
        low=1 / max(left(value).apart for value in ends),
        expected=1 / middle.expected,
        high=1 / min(left(value, best=True).overlapped for value in ends),
        reasons=[_adjustment_reason(entry) for entry in match.adjustments],
    )
    _say_removed(result, total, removable(factor.expected))
    _say_chance(result, total, removable(factor.expected))
    _say_units(result, measured, reduced, middle, match.from_dram)
    _over_elapsed(result, context)
    _as_outcomes_spread(result)
    say_truncated(result, context)
    return result


def measured_range(context: KernelContext, bound: MeasuredBound) -> Range:
    """The range that counters give, or the model in their place; samples have no part in it."""
    source = "modelled" if context.evidence is Evidence.MODELLED else "measured"
    result = Range(
        low=bound.low, expected=bound.expected, high=bound.high, reasons=[f"{source}: {bound.reason}"]
    )
    if not bound.elapsed:
        _over_elapsed(result, context)
    return result


def _say_units(
    result: Range,
    measured: Sequence[Utilisation],
    reduced_loads: Sequence[ReducedLoad],
    time_left: TimeLeft,
    from_dram: float | None,
) -> None:
    """How the work of the units enters the expected value."""
    busiest, after = (busiest_after(measured, entries) for entries in ((), reduced_loads))
    if busiest is None or after is None or time_left.busy_now < constants.ANY_END:
        return
    text = unit_text(busiest.unit)
    if time_left.busy < time_left.busy_now:
        text += f", then units work {percent(time_left.busy, 0)} of the present time"
        if after.unit is not busiest.unit:
            text += f" ({unit_text(after.unit)})"
    if time_left.busy < min(time_left.in_turn[0], time_left.apart):
        first, last = time_left.in_turn
        text += (
            f", and a warp's own instructions and its loads, one after the other, take {percent(first, 0)} "
            f"to {percent(last, 0)}, of whose waits {percent(from_dram or 0.0, 0)} are known to be for DRAM"
        )
    result.reasons.append(
        f"{text}: time left is {time_left.busy:.3f} + (1 - {time_left.busy_now:.3f}) x "
        f"{time_left.waiting:.3f} = {time_left.apart:.3f} if waits and work do not overlap, "
        f"{time_left.overlapped:.3f} if they do; expected is 1 / sqrt({time_left.apart:.3f} x "
        f"{time_left.overlapped:.3f}) = {1 / time_left.expected:.3f}"
    )


def _over_elapsed(result: Range, context: KernelContext) -> None:
    """Samples are of the time in which warps are there; the rest of the launch takes as long as before."""
    share = None if context.profile is None else active_share(context.profile)
    if share is None or share > 1 - constants.ANY_END:
        return
    result.low, result.expected, result.high = (
        whole(value, share) for value in (result.low, result.expected, result.high)
    )
    result.reasons.append(
        f"warps are there for {percent(share, 0)} of the elapsed cycles, so the kernel gains "
        f"1 / ({1 - share:.3f} + {share:.3f} / S) = {result.expected:.3f}"
    )


def _as_outcomes_spread(result: Range) -> None:
    """No narrower at its low end than outcomes were; at the high end no unit works beyond its peak.

    Differs from GPA, which gives no range.
    """
    result.low = min(result.low, result.expected**constants.SPREAD)


def _with_chance(total: int, removed: float) -> tuple[float, float]:
    """Speedups at both ends of the 95 % interval of the share removed; a loss keeps its sign."""
    chance = wilson(abs(removed), total)
    sign = -1.0 if removed < 0 else 1.0
    return speedup(total, sign * chance.low * total), speedup(total, sign * chance.high * total)


def _adjustment_reason(entry: Adjustment) -> str:
    return f"{entry.reason} ({ends_text(entry)} of what the equation removes)"


def ends_text(entry: Adjustment) -> str:
    """The factors of an adjustment in percent: ``expected 63 %, at least 22 %, at most 106 %``."""
    low, expected, high = (f"{percent(value, 0)}" for value in (entry.low, entry.expected, entry.high))
    return f"expected {expected}, at least {low}, at most {high}"


def _say_removed(result: Range, total: int, removed: float) -> None:
    """What stalls leave of the run time, with its numbers."""
    if removed:
        result.reasons.append(
            f"by the samples: {total} / ({total} - {_digits(total, removed)}) = {speedup(total, removed):.3f}"
        )


def _digits(total: int, removed: float) -> str:
    """As many digits as the factor needs to come out when it is computed from them."""
    rounded = f"{speedup(total, removed):.3f}"
    texts = [f"{removed:.{places}f}" for places in range(4)]
    return next((text for text in texts if f"{speedup(total, float(text)):.3f}" == rounded), texts[-1])


def _say_chance(result: Range, total: int, removed: float) -> None:
    chance = wilson(abs(removed), total)
    if (chance.high - chance.low) * total > constants.ANY_END * total:
        result.reasons.append(
            f"{total} samples put the share removed between {100 * chance.low:.1f} and "
            f"{percent(chance.high)} (95 % Wilson interval)"
        )


def cut_by(result: Range, middle: Cap | None, top: Cap | None) -> str | None:
    """Lower the expected value to ``middle`` and the high end to ``top``; returns what to say about it."""
    sentence: str | None = None
    if top is not None and result.high > top.speedup:
        result.high = top.speedup
        sentence = f"at most {top.speedup:.2f}x: {top.reason}"
    if middle is not None and result.expected > middle.speedup:
        result.expected = middle.speedup
        best = "" if top is None else f", at best {top.speedup:.2f}x"
        sentence = f"expected at most {middle.speedup:.2f}x{best}: {middle.reason}"
    result.expected = min(result.expected, result.high)
    result.low = min(result.low, result.expected)
    return sentence


def allow_for_model(result: Range, context: KernelContext) -> None:
    """Lower the low end of a range that stands on a modelled profile by how far others were off."""
    if context.evidence is Evidence.MODELLED:
        result.low *= constants.MODELLED_LOSS
        result.reasons.append(
            f"modelled: the low end times {constants.MODELLED_LOSS:g}, by pairs with known outcome"
        )


def say_truncated(result: Range, context: KernelContext) -> None:
    """Samples of a full buffer speak for the first part of the run only."""
    if context.profile is not None and context.profile.sampling.truncated:
        result.reasons.append("the sample buffer was full: this holds for the first part of the run only")
