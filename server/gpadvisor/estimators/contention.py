# SPDX-License-Identifier: Apache-2.0
"""Atomic operations that fill one slice of L2 while nothing else is busy, and the time without them.

Differs from GPA: it knows what waits for each instruction. Loads wait behind a full slice as well, so that
Eq. 2 of the operations' own waits says too little, and the equations for more in flight say too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import elapsed_cycles
from gpadvisor.estimators.latency import loads_in_turn
from gpadvisor.estimators.utilisation import L1, L1_DATA, L1_REQUESTS, L1_TO_L2, L2, measured_loads
from gpadvisor.evidence.atomics import Atomic, atomics_of
from gpadvisor.model.advice import MeasuredBound
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import SECTOR_BYTES
from gpadvisor.model.profile import KernelProfile

_SLICE: Final = "lts__d_atomic_input_cycles_active"
_OF_PEAK: Final = "pct_of_peak_sustained_elapsed"
MEETING: Final = "atomic operations meet at few addresses"
ON_THE_WAY: Final = frozenset({L1, L1_DATA, L1_REQUESTS, L1_TO_L2, L2})
"""What atomic operations themselves load on their way to L2."""
_WORDS_PER_SECTOR: Final = SECTOR_BYTES // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """The fullest slice of L2."""

    atomics: tuple[Atomic, ...]
    per_cycle: float  # operations that it takes in a cycle
    mean: float  # that a slice takes on average
    load: float  # share of the time that it works for them

    @property
    def words(self) -> str:
        """How full it is, as counted."""
        return (
            f"atomic operations meet in one slice of L2, which takes {self.per_cycle:.2f} of them a cycle "
            f"({_SLICE}.max; a slice on average {self.mean:.3f})"
        )


def contention(context: KernelContext) -> Contention | None:
    """The slice whose work the kernel waits for; None where none is full, or another unit is busy, too."""
    profile = context.profile
    most, mean = (
        None if profile is None else profile.metric(f"{_SLICE}.{which}.{_OF_PEAK}")
        for which in ("max", "avg")
    )
    if profile is None or most is None or mean is None or most < constants.TWICE * mean:
        return None
    full = busiest_after(measured_loads(context), ())
    atomics = tuple(atomics_of(context.program, context.kernel, profile))
    operations = sum(_operations(atomic) for atomic in atomics)
    if not operations or full is None or full.load > constants.SERIAL:
        return None
    floats = sum(_operations(atomic) for atomic in atomics if "F32" in atomic.modifiers) / operations
    load = min(1.0, most / 100 * (1 + floats * (constants.FLOAT_ATOMIC - 1)))
    if 100 * load < constants.BUSY_PERCENT:
        return None
    return Contention(atomics=atomics, per_cycle=most / 100, mean=mean / 100, load=load)


def _operations(atomic: Atomic) -> float:
    return atomic.warps * (atomic.threads or 1.0)


def without_contention(context: KernelContext, profile: KernelProfile, held: Contention) -> MeasuredBound:
    """The time once they are added up first: what is left of them, of other units, and of the loads' latency.

    The low end adds up in the warp alone and lets nothing overlap; the high end adds up in the block.
    """
    operations = sum(_operations(atomic) for atomic in held.atomics)
    ends = [_left(profile, atomic) for atomic in held.atomics]
    weights = [_operations(atomic) / operations for atomic in held.atomics]
    least, middle, most = (
        held.load * sum(weight * end[at] for weight, end in zip(weights, ends, strict=True))
        for at in range(3)
    )
    loads = measured_loads(context)
    full = busiest_after(loads, ())
    elsewhere = busiest_after([load for load in loads if load.name not in ON_THE_WAY], ())
    busy, beside = (0.0 if entry is None else entry.load for entry in (full, elsewhere))
    short, mean, long = loads_in_turn(context, profile)
    shared = _in_shared_memory(profile, held.atomics)
    expected = float(np.linalg.norm([middle, beside, mean], constants.OVERLAP))
    return MeasuredBound(
        low=1 / (least + busy + long + shared),
        expected=1 / max(expected, constants.LEAST_TIME),
        high=1 / max(most, beside, short, constants.LEAST_TIME),
        reason=f"{held.words}, while no unit is busier than {percent(busy, 0)} on average; added up first, "
        f"they keep the slice for {100 * middle:.2g} % of the present time ({100 * most:.2g} to "
        f"{100 * least:.2g} %), the busiest other unit works for {100 * beside:.2g} %, and the loads of a "
        f"warp, one after the other, take {100 * mean:.2g} %",
        elapsed=True,
    )


def _left(profile: KernelProfile, atomic: Atomic) -> tuple[float, float, float]:
    """Of the slice's work for an instruction the share that stays: at most, expected, and at least."""
    if not atomic.combines:
        return 1.0, 1.0, 1.0
    if atomic.words is not None and _operations(atomic):
        remaining = min(1.0, atomic.words * profile.launch.blocks / _operations(atomic))
        return (
            remaining,
            remaining / _WORDS_PER_SECTOR,
            remaining / _WORDS_PER_SECTOR,
        )  # neighbours go in one request
    in_warp = min(1.0, 1 / (atomic.meeting or 1.0))
    in_block = in_warp / atomic.warps_of_block(profile) / atomic.passes
    if atomic.by_data or atomic.returns:  # other warps of the block may go elsewhere
        return in_warp, in_warp, in_block
    if atomic.threads is not None and atomic.threads < constants.MEETING:  # the warp has added up already
        return in_block, in_block, in_block
    return in_warp, math.sqrt(in_warp * in_block), in_block


def _in_shared_memory(profile: KernelProfile, atomics: Sequence[Atomic]) -> float:
    """The time of an SM for the same operations on a copy in shared memory, each thread in turn."""
    sms, cycles = profile.device.sms, elapsed_cycles(profile)
    turns = sum(atomic.warps * (atomic.meeting or 1.0) for atomic in atomics if atomic.words is not None)
    return turns / (sms * cycles) if sms and cycles else 0.0
