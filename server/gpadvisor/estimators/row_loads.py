# SPDX-License-Identifier: Apache-2.0
"""What full warps and longer rows of another block take off the memory's units."""

from __future__ import annotations

import math
from typing import Final

from gpadvisor.estimators.block_shapes import BlockShape, Size
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.counted_accesses import Sectors, behind_l1, in_dram, requests_per_cycle
from gpadvisor.estimators.passes import passes_of_a_request
from gpadvisor.estimators.reduced_loads import fewer_warps
from gpadvisor.estimators.unit_bounds import as_reduced_loads
from gpadvisor.estimators.utilisation import DRAM, L1, L1_DATA, L1_TO_L2, L2
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.measured import executed_threads
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import ReducedLoad
from gpadvisor.model.instruction import MemorySpace
from gpadvisor.model.machine import SECTOR_BYTES, SECTORS_PER_LINE, WARP
from gpadvisor.model.profile import KernelProfile

_WORDS: Final = 8
"""Values of four bytes in a sector."""
_GLOBAL: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})


def reduced_by_rows(
    context: KernelContext, profile: KernelProfile, new: BlockShape, lanes: float
) -> tuple[ReducedLoad, ...]:
    """What full warps and longer rows take off the units; the bytes that are asked for stay."""
    remaining = dict.fromkeys((warp.resource for warp in fewer_warps(1.0)), 1 / lanes) if lanes > 1 else {}
    traffic = kernel_traffic(context.program, context.kernel, profile)
    if traffic is None and lanes > 1:
        return (*as_reduced_loads(remaining, remaining), *_uncounted(context, profile, new.block, lanes))
    longer = new.block[0] > profile.launch.block[0] or is_along_y(new)
    if longer and traffic is not None and traffic.sectors:
        fewest = min(traffic.ideal_sectors, _asked_sectors(context, profile) or traffic.ideal_sectors)
        remaining |= dict.fromkeys((L1_TO_L2, L2, DRAM), fewest / traffic.sectors)
        moved = traffic.dram_sectors(profile)
        if moved and lanes == 1:  # L2 may have joined what full warps ask for several times
            remaining[DRAM] = max(remaining[DRAM], min(1.0, fewest / moved))
        if traffic.requests and traffic.l1_wavefronts:
            passes = max(traffic.requests / lanes, fewest / SECTORS_PER_LINE) + traffic.wavefronts_shared
            remaining |= dict.fromkeys((L1, L1_DATA), min(1.0, passes / traffic.l1_wavefronts))
    return as_reduced_loads(remaining, remaining)


def is_along_y(new: BlockShape) -> bool:
    """Whether neighbours in memory differ in threadIdx.y, as the proposed block lies."""
    return new.block[1] > 1 and new.block[0] < WARP


def _uncounted(
    context: KernelContext, profile: KernelProfile, new: Size, lanes: float
) -> tuple[ReducedLoad, ...]:
    """What full warps and longer rows take off the memory where nobody counted it by access.

    A request takes a pass of L1 for each row of the block that is in its warp, unless the loads of units say
    that it takes fewer. Behind L1, rows of four-byte values share sectors, or a cache has joined them
    already: the mean of the logarithms of both ends is expected, and no more than a full warp's words need of
    what a request brings as counted, which is all of it where several requests share what they bring.
    """
    block = profile.launch.block
    rows_now, rows = (max(1.0, min(size[1] * size[2], WARP / size[0])) for size in (block, new))
    sectors_now, sectors = (math.ceil(size[0] / _WORDS) / size[0] for size in (block, new))
    passes, traffic = min(1.0, rows / rows_now), min(1.0, sectors / sectors_now)
    best = dict.fromkeys((L1, L1_DATA), passes / lanes) | dict.fromkeys((L1_TO_L2, L2, DRAM), traffic)
    worst = dict.fromkeys((L1, L1_DATA), 1 / lanes)
    expected = {name: math.sqrt(share * worst.get(name, 1.0)) for name, share in best.items()}
    counted = passes_of_a_request(profile, context.machine.sm.load_store_lanes.value)
    requests = requests_per_cycle(context, profile)
    if counted and requests:
        expected |= dict.fromkeys((L1, L1_DATA), min(1.0, max(passes, 1 / counted)) / lanes)
        needed = Sectors(WARP / _WORDS / lanes, 0.0, 0.0)
        behind = behind_l1(profile, needed, requests)
        counted_left = {L1_TO_L2: behind, L2: behind, DRAM: in_dram(profile, needed, requests)}
        expected |= {name: min(share, expected[name]) for name, share in counted_left.items()}
    return as_reduced_loads(expected, {name: min(share, expected[name]) for name, share in best.items()})


def _asked_sectors(context: KernelContext, profile: KernelProfile) -> float | None:
    """Sectors of the bytes that all threads ask of global memory; None where threads are not counted."""
    total = 0.0
    for function in kernel_functions(context.program, context.kernel):
        threads = executed_threads(profile, function)
        if threads is None:
            return None
        total += sum(
            float(threads[index]) * (instruction.width_bytes or 0)
            for index, instruction in enumerate(function.instructions)
            if instruction.info.space in _GLOBAL and is_memory(instruction)
        )
    return total / SECTOR_BYTES
