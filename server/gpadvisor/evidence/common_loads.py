# SPDX-License-Identifier: Apache-2.0
"""Waits at a barrier that are no imbalance: all warps wait alike for a load in front of it (GPA Table II)."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.evidence.accesses import is_global, is_local
from gpadvisor.evidence.barriers import is_barrier
from gpadvisor.evidence.measured import executed_warps, metric
from gpadvisor.evidence.queries import Mask, by_stall
from gpadvisor.model.blame import NO_INDEX, Blame
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import StallClass

_ALIKE: Final = 0.8
"""Of the warps at the barrier, or the threads of a warp, those that must load for a common wait."""
_ACTIVE: Final = "derived__avg_thread_executed_true"
_LOADS: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.ASYNC_COPY})
_MAX_BEHIND: Final = 256


def last_barrier(function: Function, index: int) -> int | None:
    """The barrier at which a sampled warp waits: there, or the last one on a way to it."""
    pending, visited = [index], {index}
    while pending and len(visited) < _MAX_BEHIND:
        position = pending.pop(0)
        if is_barrier(function, position):
            return position
        block = function.blocks[function.block_of[position]]
        before = (
            [position - 1]
            if position > block.start
            else [function.blocks[predecessor].end - 1 for predecessor in block.predecessors]
        )
        pending += [predecessor for predecessor in before if predecessor not in visited]
        visited.update(before)
    return None


def common_loads(blame: Blame, program: Program, profile: KernelProfile) -> Mask:
    """Rows of barrier stalls that are due to a load from memory which every warp at the barrier waits for.

    Balancing does nothing for them: their cure is that of the load, or there is none but less traffic. A load
    counts as common if it stands on every way to the barrier and as many warps, or under a predicate as many
    threads, run it.
    """
    rows = blame.rows
    result = np.zeros(len(rows), dtype=bool)
    waits = by_stall(blame, {StallClass.SYNCHRONIZATION}) & (rows.def_index != NO_INDEX)
    for number in np.unique(rows.function[waits]).tolist():
        function = program.functions[number]
        of_function = np.flatnonzero(waits & (rows.function == number))
        pairs = np.stack([rows.def_index[of_function], rows.use_index[of_function]])
        unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
        common = [_is_common(function, profile, cause, use) for cause, use in unique.T.tolist()]
        result[of_function] = np.array(common, dtype=bool)[inverse.reshape(-1)]
    return result


def _is_common(function: Function, profile: KernelProfile, cause: int, use: int) -> bool:
    load = function.instructions[cause]
    barrier = None if use == NO_INDEX else last_barrier(function, use)
    if barrier is None or load.info.opclass not in _LOADS or not (is_global(load) or is_local(load)):
        return False
    if not _always_before(function, cause, barrier):
        return False
    active = metric(profile, _ACTIVE, function)
    if load.guard is not None and (active is None or active[cause] < _ALIKE * WARP):
        return False
    executed = executed_warps(profile, function)
    return executed is None or bool(executed[cause] >= _ALIKE * executed[barrier])


def _always_before(function: Function, cause: int, barrier: int) -> bool:
    """Whether every way to a barrier passes an instruction."""
    cause_block, index = function.block_of[cause], function.block_of[barrier]
    if cause_block == index:
        return cause < barrier
    above: int | None = index
    visited: set[int] = set()
    while above is not None and above not in visited and above != cause_block:
        visited.add(above)
        above = function.idom[above]
    return above == cause_block
