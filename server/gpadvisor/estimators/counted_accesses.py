# SPDX-License-Identifier: Apache-2.0
"""What a kernel gains when its scattered accesses move what they need, by counters and machine code alone.

Differs from GPA: Eq. 2 needs samples. Of reports without them, loads of units say how many sectors a request
of a warp brought from L2 and from DRAM, and the machine code how many sectors its loads and stores touch and
need. The rest of the time, in which no unit works, is taken to stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.passes import WORD_BYTES, ManyPasses
from gpadvisor.estimators.unit_bounds import Left, as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import (
    DRAM,
    L1,
    L1_DATA,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    measured_loads,
    utilisations,
)
from gpadvisor.evidence.access_shapes import sectors_of_a_warp
from gpadvisor.evidence.accesses import is_global, is_memory
from gpadvisor.evidence.measured import RUN_CLOCK, specified_dram
from gpadvisor.machine import every_gpu
from gpadvisor.model.advice import MeasuredBound, ReducedLoad
from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.model.machine import SECTOR_BYTES, WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_READS: Final = "l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True, slots=True)
class Sectors:
    """Mean sectors for each request of a warp, of the accesses in the loop where most are wasted."""

    loads_need: float
    stores_take: float
    stores_need: float


def accesses_cured(
    context: KernelContext, profile: KernelProfile, function: Function, many_passes: ManyPasses
) -> tuple[MeasuredBound | None, tuple[ReducedLoad, ...]]:
    """The range where accesses take as few passes, and move as few sectors, as they need; and what they free.

    At the low end nobody waits for conflicts on banks, and of scattered accesses half of the waste behind L1
    goes and none of DRAM's. At the high end the time that no unit fills shrinks as the busiest unit's does.
    """
    at_l1: Left = _at_l1(profile, many_passes.needed / many_passes.counted) if many_passes.passes else {}
    least: Left = {}
    gone = at_l1
    if not many_passes.banks:
        sectors, requests = (
            _sectors(context, profile, function, many_passes),
            requests_per_cycle(context, profile),
        )
        behind, dram = behind_l1(profile, sectors, requests), in_dram(profile, sectors, requests)
        half = 1 - constants.LEAST_PART * (1 - behind)
        least = {**at_l1, L1_TO_L2: half, L2: half}
        gone = {**at_l1, L1_TO_L2: behind, L2: behind, DRAM: dram}
    bound = unit_bound(measured_loads(context), least, gone, gone, many_passes.words)
    return bound, as_reduced_loads(gone, gone)


def conflicts_cured(
    context: KernelContext, through: float, text: str
) -> tuple[MeasuredBound | None, tuple[ReducedLoad, ...]]:
    """The range where shared memory takes as few passes as it needs, ``through`` of those of now."""
    gone = {L1_DATA: through}
    # Nobody saw a warp wait for them: at the low end nobody does.
    return unit_bound(measured_loads(context), {}, gone, gone, text), as_reduced_loads(gone, gone)


def _at_l1(profile: KernelProfile, through: float) -> Left:
    """L1's data stage; where that was not counted L1 as a whole, which takes its requests as before."""
    if _load(profile, L1_DATA):
        return {L1_DATA: through}
    return {L1: max(through, _load(profile, L1_REQUESTS) / max(_load(profile, L1), constants.ANY_LOAD))}


def _sectors(
    context: KernelContext, profile: KernelProfile, function: Function, passes: ManyPasses
) -> Sectors:
    loop, form = function.innermost_loop(passes.scattered[0]), context.program.form
    loads_need = stores_take = stores_need = 0.0
    total = 0
    for index, instruction in enumerate(function.instructions):
        if not is_memory(instruction) or instruction.info.space is MemorySpace.CONSTANT:
            continue
        if function.innermost_loop(index) != loop:
            continue
        total += 1
        if not is_global(instruction):
            continue
        fewest = WARP * (instruction.width_bytes or WORD_BYTES) / SECTOR_BYTES
        takes, needs = sectors_of_a_warp(function, index, form, profile.launch) or (fewest, fewest)
        if instruction.info.opclass is OpcodeClass.STORE:
            stores_take += takes
            stores_need += needs
        else:
            loads_need += needs
    return Sectors(loads_need / total, stores_take / total, stores_need / total)


def requests_per_cycle(context: KernelContext, profile: KernelProfile) -> float:
    """Requests of warps for each SM and cycle; at the peak one in as many cycles as the lanes need."""
    lanes = context.machine.sm.load_store_lanes.value
    return _load(profile, L1_REQUESTS) * lanes / WARP


def _load(profile: KernelProfile, unit: str) -> float:
    """Of its peak; 0 where nobody counted it."""
    return next(
        (utilisation.percent / 100 for utilisation in utilisations(profile) if utilisation.name == unit), 0.0
    )


def behind_l1(profile: KernelProfile, sectors: Sectors, requests: float) -> float:
    """The share of the sectors between L1 and L2 that stays: those read there, and those of all stores.

    Args:
        profile: what was counted.
        sectors: what a request takes and needs.
        requests: of warps, for each SM and cycle.
    """
    percent, read = profile.metric(_READS), sectors.loads_need
    if percent is not None and requests:
        read = percent / 100 * every_gpu().l1_sectors_per_cycle / requests
    moved = read + sectors.stores_take
    return min(1.0, (min(read, sectors.loads_need) + sectors.stores_need) / moved) if moved else 1.0


def in_dram(profile: KernelProfile, sectors: Sectors, requests: float) -> float:
    """The share of DRAM's sectors that stays: those that requests need, if no two share one.

    Args:
        profile: what was counted.
        sectors: what a request needs.
        requests: of warps, for each SM and cycle.
    """
    moved, peak, sms = _load(profile, DRAM), specified_dram(profile), profile.device.sms
    clock = next((rate for name in RUN_CLOCK if (rate := profile.metric(name))), None)
    if not moved or not peak or not sms or not clock or not requests:
        return 1.0
    sectors_moved = moved * peak / SECTOR_BYTES / (sms * clock) / requests
    return min(1.0, (sectors.loads_need + sectors.stores_need) / sectors_moved)
