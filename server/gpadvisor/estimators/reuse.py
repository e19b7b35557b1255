# SPDX-License-Identifier: Apache-2.0
"""What more results per thread, or a tile in shared memory, leave of the work of a loop of multiply-adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import sqrt
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.relieved import L1_UNITS, LSU_PIPE
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
from gpadvisor.evidence.measured import Values, executed_warps, metric
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

    def between(self, other: ReuseStep) -> ReuseStep:
        """The geometric mean of two outcomes."""
        return ReuseStep(
            requests=sqrt(self.requests * other.requests),
            bytes_moved=sqrt(self.bytes_moved * other.bytes_moved),
            overhead=sqrt(self.overhead * other.overhead),
            constants=sqrt(self.constants * other.constants),
        )


def units_of(found: ProductLoop) -> tuple[str, ...]:
    """The units that a loop's loads fill; results that share what L1 has share its addresses, too."""
    shared = (ISSUE,) if found.keeps_in_registers and not found.from_shared else ()
    of_constants = (CONSTANT_CACHE, ADU_PIPE) if found.shares_constants else ()
    return (L1, *L1_UNITS, L1_TO_L2, L2, *shared, *of_constants)


def steps(found: ProductLoop, profile: KernelProfile) -> tuple[ReuseStep, ReuseStep]:
    """The least and the most that one step takes off.

    From shared memory: a tile doubled in one direction loads 3/4 of the values, in both half of them, by
    loads that are up to as much wider. From global memory: a tile in shared memory is filled by a load and a
    store for each of its edge's steps, and what follows itself in it comes with 16 bytes at a time, for one
    operand or for both; its addresses are constants. Two results that share a constant load it once for both,
    four also what they multiply it with.
    """
    if found.shares_constants:
        half = constants.BOTH_SIDES
        return (
            ReuseStep(requests=1.0, bytes_moved=1.0, overhead=constants.ONE_SIDE, constants=half),
            ReuseStep(requests=half, bytes_moved=half, overhead=half, constants=half),
        )
    if found.keeps_in_registers:
        wider = 1.0 if found.windows else WIDEST_BYTES / (found.values_per_load * found.factor_bytes)
        one, both = _kept(found)
        return (
            ReuseStep(
                requests=one / min(constants.WIDER_ONE, max(1.0, wider)), bytes_moved=one, overhead=one
            ),
            ReuseStep(
                requests=both / min(constants.WIDER_BOTH, max(1.0, wider)),
                bytes_moved=both,
                overhead=both,
            ),
        )
    edge = tile_edge(profile)
    width = WIDEST_BYTES / found.factor_bytes
    one, both = (1 + 1 / width) / 2 + 2 / edge, 1 / width + 2 / edge
    return (
        ReuseStep(requests=min(1.0, one), bytes_moved=min(1.0, one), overhead=2 / edge),
        ReuseStep(requests=sqrt(one * both), bytes_moved=sqrt(one * both), overhead=1 / edge),
    )


def larger(tile: tuple[int, int]) -> tuple[int, int]:
    """Four times the results, as square as doubling makes them."""
    less, more = tile
    for _ in range(2):
        less, more = sorted((2 * less, more))
    return less, more


def _kept(found: ProductLoop) -> tuple[float, float]:
    """The share of the values still loaded with the shorter edge of the tile doubled, and with both."""
    if found.tile is None:
        return constants.ONE_SIDE, constants.BOTH_SIDES
    now, then, values = found.tile, larger(found.tile), found.values_per_product
    return (
        (1 / (2 * now[0]) + 1 / now[1]) / values,
        (1 / then[0] + 1 / then[1]) / values,
    )


def tile_edge(profile: KernelProfile) -> int:
    """The edge of a square tile with an element for each thread of the block."""
    return max(4, int(sqrt(profile.launch.threads_per_block)))


def left_after(
    context: KernelContext, profile: KernelProfile, found: ProductLoop, step: ReuseStep
) -> dict[str, float]:
    """What a step leaves of each unit's load; what does not come from the loop stays."""
    inside = _share_of_accesses(context, profile, found)
    needed = 1.0 if found.keeps_in_registers else _needed(context, profile, found)
    left = dict.fromkeys(L1_UNITS, 1 - inside * (1 - step.bytes_moved * needed))
    left[L1_REQUESTS] = left[LSU_PIPE] = 1 - inside * (1 - step.requests)
    if found.from_shared:  # the block's tile grows with its threads' tiles
        left[L1_TO_L2] = left[L2] = left[DRAM] = 1 - inside * (1 - step.bytes_moved)
    executed = executed_warps(profile, found.function)
    if executed is None:
        return left
    left |= _arithmetic(found, executed, step)
    return left | ({CONSTANT_CACHE: left[ADU_PIPE]} if ADU_PIPE in left else {})


def _needed(context: KernelContext, profile: KernelProfile, found: ProductLoop) -> float:
    """The share of a loop's sectors that it needs: rows in shared memory do not begin between two of them."""
    traffic = kernel_traffic(context.program, context.kernel, profile)
    sectors = metric(profile, "memory_l2_theoretical_sectors_global", found.function)
    if traffic is None or sectors is None:
        return 1.0
    asked = float(sectors[list(found.loads)].sum())
    wasted = sum(traffic.scattered.get((found.function.id, index), 0.0) for index in found.loads)
    return 1 - wasted / asked if asked else 1.0


def _share_of_accesses(context: KernelContext, profile: KernelProfile, found: ProductLoop) -> float:
    """Of all accesses through the load/store unit, those of a loop, its copies and loops around it."""
    fills = set(found.indices)
    if found.copies > 1:
        fills.update(range(min(fills), max(fills)))
    for outermost in found.function.enclosing_loops(found.indices[0])[-1:]:
        fills.update(loop_facts(found.function, outermost).indices)
    inside = every = 0.0
    for function in context.program.functions:
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            if executed is not None and instruction.info.pipe is Pipe.LSU:
                every += float(executed[index])
                inside += float(executed[index]) if function is found.function and index in fills else 0.0
    return inside / every if every else 1.0


def _arithmetic(found: ProductLoop, executed: Values, step: ReuseStep) -> dict[str, float]:
    """Issue slots and integer work that go with the loads: the loop's own, against all of the function."""
    every, gone = Counter[str](), Counter[str]()
    left = (
        dict.fromkeys(found.products, 1.0)
        | dict.fromkeys(found.loads, step.requests)
        | dict.fromkeys(found.constants, step.constants)
    )
    inside = set(found.indices)
    for index, instruction in enumerate(found.function.instructions):
        for unit in {ISSUE, _PIPES.get(instruction.info.pipe, ISSUE)} - {LSU_PIPE}:
            every[unit] += executed[index]
            if index in inside:
                gone[unit] += executed[index] * (1 - left.get(index, step.overhead))
    return {unit: 1 - gone[unit] / total for unit, total in every.items() if total}
