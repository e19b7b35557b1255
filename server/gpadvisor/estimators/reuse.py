# SPDX-License-Identifier: Apache-2.0
"""What more results per thread, or a tile in shared memory, leave of the work of a loop of multiply-adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.unit_bounds import L1_UNITS, LSU_PIPE
from gpadvisor.estimators.utilisation import (
    ADU_PIPE,
    CONSTANT_CACHE,
    DRAM,
    ISSUE,
    L1,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    PIPES,
)
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.evidence.measured import Floats, executed_warps, metric
from gpadvisor.evidence.products import ProductLoop
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.machine import WIDEST_BYTES
from gpadvisor.model.profile import KernelProfile

_PIPES: Final = {**PIPES, Pipe.ADU: ADU_PIPE}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseStep:
    """What one step leaves of a loop's loads: the instructions, and the bytes that they move."""

    requests: float
    bytes_moved: float
    overhead: float  # of the loop's other instructions
    constants: float = 1.0  # of loads from constant memory

    def between(self, step: ReuseStep) -> ReuseStep:
        """The geometric mean of two outcomes."""
        return ReuseStep(
            requests=sqrt(self.requests * step.requests),
            bytes_moved=sqrt(self.bytes_moved * step.bytes_moved),
            overhead=sqrt(self.overhead * step.overhead),
            constants=sqrt(self.constants * step.constants),
        )


def units_of(loop: ProductLoop) -> tuple[str, ...]:
    """The units that a loop's loads fill; results that share what L1 has share its addresses, too."""
    shared = (ISSUE,) if loop.keeps_in_registers and not loop.from_shared else ()
    of_constants = (CONSTANT_CACHE, ADU_PIPE) if loop.shares_constants else ()
    return (L1, *L1_UNITS, L1_TO_L2, L2, *shared, *of_constants)


def steps(loop: ProductLoop, profile: KernelProfile) -> tuple[ReuseStep, ReuseStep, ReuseStep]:
    """What one step takes off at the low end, expected, and at the high end.

    From shared memory: a tile doubled in one direction loads 3/4 of the values, at the least by loads as wide
    as now, since results further apart do not follow each other in memory; in both directions half of them,
    by loads that are up to as much wider. From global memory: a tile in shared memory has loads of its own.
    One operand lies along the sum and comes with 16 bytes at a time where the compiler sees that, the other
    across it, one value for each of a thread's results in a row; both are brought by a load and a store for
    as many steps as the tile has. At the high end each thread has 2 x 2 times the results, too. Two results
    that share a constant load it once for both, four also what they multiply it with.
    """
    if loop.shares_constants:
        half = constants.BOTH_SIDES
        least = ReuseStep(requests=1.0, bytes_moved=1.0, overhead=constants.ONE_SIDE, constants=half)
        most = ReuseStep(requests=half, bytes_moved=half, overhead=half, constants=half)
        return least, least.between(most), most
    if loop.keeps_in_registers:
        wider = 1.0 if loop.windows else WIDEST_BYTES / (loop.values_per_load * loop.factor_bytes)
        one_side, both = _kept(loop)
        least = ReuseStep(requests=one_side, bytes_moved=one_side, overhead=one_side)
        fewer = both / min(constants.WIDER_BOTH, max(1.0, wider))
        most = ReuseStep(requests=fewer, bytes_moved=both, overhead=both)
        return least, least.between(most), most
    results = sqrt(loop.sums or 1)
    edge, operands = tile_edge(profile) * results, loop.values_per_product / 2  # operands
    along = loop.factor_bytes / WIDEST_BYTES  # loads for a value that comes with its neighbours
    across = max(along, 1 / results)
    loads_per_product = len(loop.loads) / len(loop.products)
    seen, unseen, several = (
        min(1.0, then / loads_per_product)
        for then in (
            operands * (along + across) + 4 / edge,
            operands * (1 + across) + 4 / edge,
            operands * (along + across) / 2 + 2 / edge,
        )
    )
    expected = ReuseStep(requests=seen, bytes_moved=seen, overhead=2 / edge)
    none = ReuseStep(requests=unseen, bytes_moved=unseen, overhead=2 / edge)
    most = ReuseStep(requests=several, bytes_moved=several, overhead=1 / edge)
    return none.between(expected), expected, most


def larger(tile: tuple[int, int]) -> tuple[int, int]:
    """Four times the results, as square as doubling makes them."""
    less, more = tile
    for _ in range(2):
        less, more = sorted((2 * less, more))
    return less, more


def _kept(loop: ProductLoop) -> tuple[float, float]:
    """The share of the values still loaded with the shorter edge of the tile doubled, and with both."""
    if loop.tile is None:
        return constants.ONE_SIDE, constants.BOTH_SIDES
    current, then, values = loop.tile, larger(loop.tile), loop.values_per_product
    return (
        (1 / (2 * current[0]) + 1 / current[1]) / values,
        (1 / then[0] + 1 / then[1]) / values,
    )


def tile_edge(profile: KernelProfile) -> int:
    """The edge of a square tile with an element for each thread of the block."""
    return max(4, int(sqrt(profile.launch.threads_per_block)))


def left_after(
    context: KernelContext, profile: KernelProfile, loop: ProductLoop, step: ReuseStep
) -> dict[str, float]:
    """What a step leaves of each unit's load; what does not come from the loop stays."""
    inside = _share_of_accesses(context, profile, loop)
    needed = 1.0 if loop.keeps_in_registers else _needed(context, profile, loop)
    remaining = dict.fromkeys(L1_UNITS, 1 - inside * (1 - step.bytes_moved * needed))
    remaining[L1_REQUESTS] = remaining[LSU_PIPE] = 1 - inside * (1 - step.requests)
    if loop.from_shared:  # the block's tile grows with its threads' tiles
        remaining[L1_TO_L2] = remaining[L2] = remaining[DRAM] = 1 - inside * (1 - step.bytes_moved)
    executed = executed_warps(profile, loop.function)
    if executed is None:  # nobody counted: the loop is taken for all that there is, as its accesses are
        executed = np.isin(np.arange(len(loop.function.instructions)), loop.indices).astype(float)
    remaining |= _arithmetic(loop, executed, step)
    return remaining | ({CONSTANT_CACHE: remaining[ADU_PIPE]} if ADU_PIPE in remaining else {})


def _needed(context: KernelContext, profile: KernelProfile, loop: ProductLoop) -> float:
    """The share of a loop's sectors that it needs: rows in shared memory do not begin between two of them."""
    traffic = kernel_traffic(context.program, context.kernel, profile)
    sectors = metric(profile, "memory_l2_theoretical_sectors_global", loop.function)
    if traffic is None or sectors is None:
        return 1.0
    requested = float(sectors[list(loop.loads)].sum())
    wasted = sum(traffic.scattered.get((loop.function.id, index), 0.0) for index in loop.loads)
    return 1 - wasted / requested if requested else 1.0


def _share_of_accesses(context: KernelContext, profile: KernelProfile, loop: ProductLoop) -> float:
    """Of all accesses through the load/store unit, those of a loop, its copies and loops around it."""
    fills = set(loop.indices)
    if loop.copies > 1:
        fills.update(range(min(fills), max(fills)))
    for outermost in loop.function.enclosing_loops(loop.indices[0])[-1:]:
        fills.update(loop_facts(loop.function, outermost).indices)
    inside = total = 0.0
    for function in context.program.functions:
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            if executed is not None and instruction.info.pipe is Pipe.LSU:
                total += float(executed[index])
                if function is loop.function and index in fills:
                    inside += float(executed[index])
    return inside / total if total else 1.0


def _arithmetic(loop: ProductLoop, executed: Floats, step: ReuseStep) -> dict[str, float]:
    """Issue slots and integer work that go with the loads: the loop's own, against all of the function."""
    counts, gone = Counter[str](), Counter[str]()
    remaining = (
        dict.fromkeys(loop.products, 1.0)
        | dict.fromkeys(loop.loads, step.requests)
        | dict.fromkeys(loop.constants, step.constants)
    )
    inside = set(loop.indices)
    for index, instruction in enumerate(loop.function.instructions):
        for unit in {ISSUE, _PIPES.get(instruction.info.pipe, ISSUE)} - {LSU_PIPE}:
            counts[unit] += executed[index]
            if index in inside:
                gone[unit] += executed[index] * (1 - remaining.get(index, step.overhead))
    return {unit: 1 - gone[unit] / total for unit, total in counts.items() if total}
