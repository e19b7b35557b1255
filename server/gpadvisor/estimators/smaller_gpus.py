# SPDX-License-Identifier: Apache-2.0
"""A stated number of SMs: what a modelled kernel gains where DRAM is as much smaller as the GPU.

Differs from GPA: it measured, and the GPU was what it was. The simulated one has the DRAM of the GPU that
stands for its architecture, and as many SMs as are stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from gpadvisor.errors import UnknownArchitectureError
from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import remaining
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.utilisation import DRAM, measured_loads
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.advice import Estimate, ReducedLoad
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import sentences


def with_less_dram(
    context: KernelContext, estimate: Estimate, reduced_loads: Sequence[ReducedLoad]
) -> Estimate:
    """An estimate whose low end holds for a DRAM of the SMs' share, too; expected is between both GPUs."""
    less, load = _smaller(context), _dram(context)
    now = max(1.0, less * load)
    then = less * load * remaining(DRAM, reduced_loads, best=False) / constants.PRACTICAL_PEAK

    def there(speedup: float) -> float:
        return min(speedup, max(1.0, now / max(1 / speedup, then)))

    if less <= constants.ABOUT or there(estimate.high) >= estimate.high:
        return estimate
    return replace(
        estimate,
        low=min(
            estimate.low, there(estimate.expected) * constants.MODELLED_LOSS * (1 - constants.RUN_TO_RUN)
        ),
        expected=math.sqrt(estimate.expected * there(estimate.expected)),
        reasons=(
            *estimate.reasons,
            *sentences(
                f"DRAM is at {percent(load)} of the peak of the GPU that stands for the architecture, which "
                f"has {less:.2g} times the SMs: with as much less of it {there(estimate.expected):.2f}x; "
                "expected is the geometric mean"
            ),
        ),
    )


def _smaller(context: KernelContext) -> float:
    """How many times the SMs the simulated DRAM is made for; 1 where the GPU is a measured one."""
    profile = context.profile
    if context.evidence is not Evidence.MODELLED or profile is None or not profile.device.sms:
        return 1.0
    try:
        _, device = timing_of(context.program.arch)
    except UnknownArchitectureError:
        return 1.0
    return device.sms / profile.device.sms


def _dram(context: KernelContext) -> float:
    """The share of the time that the simulated DRAM works."""
    return next((load.percent for load in measured_loads(context) if load.name == DRAM), 0.0) / 100
