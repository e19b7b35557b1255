# SPDX-License-Identifier: Apache-2.0
"""No estimate beyond what its change leaves as it is: ceilings of the roofline, and the bound of GPUPerf.

A ceiling bounds a change that leaves the load below it as it is; the bound of the model, one whose samples
and units are all of the benefits that it has a part in. Neither says anything of other changes: a tile moves
less, a cure of scattered accesses moves the wall itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from gpadvisor.advice.evaluate import EstimatedMatch, Evaluated
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.smaller_gpus import with_less_dram
from gpadvisor.estimators.stall_elimination import reduced_issue
from gpadvisor.model.advice import Estimate
from gpadvisor.model.estimate import EstimateCap
from gpadvisor.model.figures import factor, percent
from gpadvisor.model.sentence import Sentence
from gpadvisor.views.potential.build import potential
from gpadvisor.views.potential.model import Potential
from gpadvisor.views.potential.saved import bounding
from gpadvisor.views.potential.words import GPUPERF, bound_reason
from gpadvisor.views.roofline.advice import left_alone
from gpadvisor.views.roofline.build import MeasuredRoofline, measured_roofline
from gpadvisor.views.roofline.model import Ceiling


class EstimateLimits:
    """What limits the estimates of a kernel, each made when first asked for; views start from the same."""

    def __init__(self, context: KernelContext, name: str) -> None:
        self.context = context
        self._name = name  # demangled

    @cached_property
    def roofline(self) -> MeasuredRoofline:
        """Its points and ceilings; raises ProfileMismatchError without counts or a time."""
        return measured_roofline(self.context, self._name)

    @cached_property
    def potential(self) -> Potential:
        """The model of GPUPerf; raises ProfileMismatchError where the profile lacks what it takes."""
        return potential(self.context, self._name)


def within_limits(limits: EstimateLimits, evaluated: Evaluated) -> Evaluated:
    """What the optimizers answered, each estimate lowered to the nearest limit of its kind."""
    findings, rejected = evaluated
    findings = tuple(_on_any_gpu(limits.context, finding) for finding in findings)
    evaluated = findings, rejected
    if all(finding.estimate is None or finding.estimate.high <= 1 for finding in findings):
        return evaluated
    ceilings: Sequence[Ceiling] = ()
    model: Potential | None = None
    with suppress(ProfileMismatchError):  # of what was not counted nothing is known
        ceilings = limits.roofline.ceilings
        model = limits.potential
    return tuple(_within(limits.context, match, ceilings, model) for match in findings), rejected


def _on_any_gpu(context: KernelContext, finding: EstimatedMatch) -> EstimatedMatch:
    if finding.estimate is None:
        return finding
    estimate = with_less_dram(context, finding.estimate, finding.match.reduced_loads)
    return replace(finding, estimate=estimate)


def _within(
    context: KernelContext, estimated: EstimatedMatch, ceilings: Sequence[Ceiling], model: Potential | None
) -> EstimatedMatch:
    if estimated.estimate is None:
        return estimated
    match, blame = estimated.match, context.blame
    reduced_loads = (*match.reduced_loads, *(() if blame is None else reduced_issue(blame, match)))
    limits: list[tuple[float, str, str]] = []
    limiting = left_alone(ceilings, reduced_loads, relaunched=match.parallel is not None)
    if limiting is not None:
        reason = (
            f"{limiting.name} is at {percent(limiting.use)} of its peak, which it leaves as it"
            f" is ({limiting.source})"
        )
        limits.append((limiting.factor, limiting.name, reason))
    saved = bounding(match, reduced_loads, blame)
    if model is not None and saved:
        bound = model.bound(*saved, off=constants.MODEL_OFF)
        limits.append((bound, GPUPERF, bound_reason(model, saved)))
    if not limits:
        return estimated
    return replace(estimated, estimate=_lowered(estimated.estimate, *min(limits)))


def _lowered(estimate: Estimate, most: float, limit: str, reason: str) -> Estimate:
    """An estimate no higher than a limit; its ends allow for how times differ from run to run."""
    most = max(1.0, most)
    high = most * (1 + constants.RUN_TO_RUN)
    if estimate.expected <= most and estimate.high <= high:
        return estimate
    expected = min(estimate.expected, most)
    cap = EstimateCap(limit=limit, speedup=most, before=estimate.expected, reason=Sentence(reason))
    return replace(
        estimate,
        low=min(estimate.low, expected * (1 - constants.RUN_TO_RUN)),
        expected=expected,
        high=min(estimate.high, high),
        reasons=(*estimate.reasons, Sentence(f"at most {factor(most)}: {reason}")),
        cap=cap,
    )
