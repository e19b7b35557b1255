# SPDX-License-Identifier: Apache-2.0
"""What the potential says, in sentences: what limits, what changes could save, where samples differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.model.estimate import EstimateCap
from gpadvisor.model.figures import factor, gain, percent
from gpadvisor.views.potential.model import Benefit, Potential, Promise, ShownPotential

_NOTABLE: Final = 0.05
"""Of the cycles: a smaller part needs no sentence."""
_APART: Final = 0.25
"""Of the cycles, between model and samples: twice the median error of the model (docs/potential.md)."""
_FULL: Final = constants.BUSY_PERCENT / 100
GPUPERF: Final = "GPUPerf"
"""The limit of suggestions that the model has lowered."""

WHAT: Final = {
    Benefit.MEMLP: "more loads in flight, fewer or better ones",
    Benefit.ITILP: "more independent instructions or warps",
    Benefit.SERIAL: "less waiting at barriers and fences",
    Benefit.FP: "fewer instructions beside the essential ones",
}


def sentences(kernel: ShownPotential) -> tuple[str, ...]:
    """Most important first."""
    potential = kernel.potential
    return (
        *_limits(potential),
        *_benefits(potential, kernel.promises),
        *_unexplained(potential),
        *_differing(potential),
        *_capped(kernel.promises),
    )


def at_most(value: float) -> str:
    """A bound as it is told."""
    return f"{factor(max(1.0, value))} at most"


def _limits(of: Potential) -> Iterator[str]:
    full = of.inputs.pipe_cycles / of.cycles
    memory = of.parts.memory / of.cycles
    if memory > full and memory >= _FULL:
        yield f"Memory requests take {percent(min(1.0, memory))} of the cycles."
    elif full >= _FULL:
        yield (
            f"The {of.inputs.pipe} is busy for {percent(full)} of the cycles: "
            f"{at_most(of.cycles / of.inputs.pipe_cycles)} while as many instructions go through it."
        )


def _benefits(of: Potential, promises: tuple[Promise, ...]) -> Iterator[str]:
    for benefit in sorted(Benefit, key=lambda benefit: -of.parts.benefits[benefit]):
        share = of.share(benefit)
        if share < _NOTABLE:
            continue
        promised = promise_of(benefit, promises)
        promise = "" if promised is None or promised.speedup is None else f", {gain(promised.speedup)}"
        if (
            promised is not None
            and promised.speedup is not None
            and promised.speedup.expected > of.bound(benefit)
        ):
            promise += ", as it saves more than this part"
        suggested = "" if promised is None else f" Suggested: {promised.name} ({promised.code}){promise}."
        yield (
            f"{WHAT[benefit].capitalize()} ({benefit.value}): {percent(share)} of the cycles, "
            f"{at_most(of.bound(benefit))}.{suggested}"
        )


def promise_of(benefit: Benefit, promises: tuple[Promise, ...]) -> Promise | None:
    """The first suggestion that saves a benefit."""
    return next((promise for promise in promises if benefit in promise.benefits), None)


def _unexplained(of: Potential) -> Iterator[str]:
    share = of.unexplained / of.cycles
    if share >= _NOTABLE:
        yield f"{percent(share)} of the cycles are not explained by this model."
    elif share <= -_NOTABLE:
        yield f"The model's parts are {percent(-share)} more than was measured: some overlap."


def _differing(of: Potential) -> Iterator[str]:
    """Where model and samples say different things, which is a finding of its own."""
    if of.samples is None:
        return
    full = of.inputs.pipe_cycles / of.cycles >= _FULL
    for benefit in Benefit:
        model, samples = of.share(benefit), of.samples[benefit]
        if abs(model - samples) < _APART:
            continue
        why = ""
        if samples > model and full:
            why = f": warps wait behind the {of.inputs.pipe}, which is full"
        elif samples > model:
            why = ": the model does not know of chains of dependent instructions, tails and uneven work"
        elif benefit is Benefit.MEMLP:
            why = ": warps wait less than the latencies of the tables would have them"
        yield (
            f"Model and samples differ on {benefit.value}: {percent(model, 0)} of the cycles by the model, "
            f"{percent(samples, 0)} by samples{why}."
        )


def _capped(promises: tuple[Promise, ...]) -> Iterator[str]:
    for promise, cap in lowered(promises):
        yield f"{promise.name} ({promise.code}) is held to {at_most(cap.speedup)}: {cap.reason}."


def lowered(promises: tuple[Promise, ...]) -> Iterator[tuple[Promise, EstimateCap]]:
    """The suggestions that would promise more than the bound of what they save, and do not."""
    for promise in promises:
        cap = None if promise.speedup is None else promise.speedup.cap
        if cap is not None and cap.limit == GPUPERF:
            yield promise, cap


def bound_reason(of: Potential, saved: Sequence[Benefit]) -> str:
    """Why a change that saves these benefits gives no more than their bound."""
    kinds = " and ".join(benefit.value for benefit in saved)
    share = sum(of.share(benefit) for benefit in saved)
    off = max(abs(of.unexplained) / of.cycles, constants.MODEL_OFF)
    return (
        f"all that it saves ({kinds}) is {percent(share)} of the cycles by the model, which is off by "
        f"{percent(off)}"
    )
