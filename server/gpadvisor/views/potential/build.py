# SPDX-License-Identifier: Apache-2.0
"""The potential of one kernel: the model's parts of its measured cycles beside what its samples say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.stalls import StallClass
from gpadvisor.views.potential.adapted import parts
from gpadvisor.views.potential.inputs import SERIAL, gather
from gpadvisor.views.potential.model import Benefit, ModelInputs, Potential

_MEMORY: Final = frozenset(
    {StallClass.MEMORY, StallClass.MEMORY_THROTTLE, StallClass.DRAIN, StallClass.TEXTURE_THROTTLE}
)
_PARALLELISM: Final = frozenset(
    {StallClass.EXECUTION, StallClass.FIXED_LATENCY, StallClass.SHARED_THROTTLE, StallClass.OTHER}
)
_ISSUING: Final = frozenset(
    {StallClass.ISSUED, StallClass.NOT_SELECTED, StallClass.PIPE_THROTTLE, StallClass.NOT_RECORDED}
)
_SHORT_CYCLES: Final = 2000.0
"""Some microseconds, as a launch takes whatever the kernel does."""
_FULL_WAVES: Final = 0.8
"""Of the waves that run: with fewer blocks warps are missing for a fifth of the time and more."""


def benefit_of(stall: StallClass) -> Benefit | None:
    """What a cure of a stall saves; None where it is none of the four."""
    if stall in _MEMORY:
        return Benefit.MEMLP
    if stall in _PARALLELISM:
        return Benefit.ITILP
    if stall in SERIAL:
        return Benefit.SERIAL
    return Benefit.FP if stall in _ISSUING else None


def potential(context: KernelContext, kernel: str, essential: str | None = None) -> Potential:
    """The potential of a kernel.

    Raises:
        ProfileMismatchError: the profile lacks what no table can stand in for.
    """
    inputs, gathered = gather(context, kernel, essential)
    profile = context.profile
    cycle_parts = parts(inputs)
    return Potential(
        kernel=kernel,
        device="" if profile is None else profile.device.name or profile.device.arch,
        cycles=gathered.cycles,
        essential=gathered.essential,
        inputs=inputs,
        sources=gathered.sources,
        missing=tuple(gathered.missing),
        parts=cycle_parts,
        samples=None if profile is None else _samples(profile, inputs, gathered.cycles),
        notes=() if profile is None else _notes(context, profile, inputs, gathered.cycles),
    )


def _samples(profile: KernelProfile, inputs: ModelInputs, cycles: float) -> Mapping[Benefit, float] | None:
    """Shares of time by samples: stalls while nothing issued, and issues beside essential ones."""
    total = profile.total_samples
    if not total:
        return None
    latency = dict.fromkeys(Benefit, 0.0)
    for index, reason in enumerate(profile.reasons):
        benefit = benefit_of(reason.stall_class)
        if benefit is not None and benefit is not Benefit.FP:
            latency[benefit] += float(profile.samples.latency[profile.samples.reason == index].sum())
    shares = {benefit: count / total for benefit, count in latency.items()}
    # What DRAM at its peak would take is no benefit; nor are slots that essential instructions fill.
    shares[Benefit.MEMLP] = max(0.0, shares[Benefit.MEMLP] - inputs.data_cycles / cycles)
    shares[Benefit.FP] = max(0.0, 1 - profile.latency_samples / total - inputs.essential_cycles / cycles)
    return shares


def _notes(
    context: KernelContext, profile: KernelProfile, inputs: ModelInputs, cycles: float
) -> tuple[str, ...]:
    result = []
    if profile.evidence is Evidence.MODELLED:
        result.append("modelled: counts and cycles are of a simulated run")
    if context.program.debug_build:
        result.append(
            f"a debug build: an instruction waits {inputs.stall_cycles:.1f} cycles for the one before, "
            "which the optimizer would change first"
        )
    if profile.sampling.truncated:
        result.append("samples cover only the first part of the run")
    if cycles < _SHORT_CYCLES:
        result.append("a short kernel: the time to start it is no part of the model")
    waves = profile.metric("launch__waves_per_multiprocessor")
    if waves is not None and 0 < waves < 3 and waves < _FULL_WAVES * math.ceil(waves):
        result.append(f"{waves:.2g} waves of blocks: the warps of an SM are not there all the time")
    return tuple(result)
