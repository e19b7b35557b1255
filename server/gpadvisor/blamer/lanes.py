# SPDX-License-Identifier: Apache-2.0
"""Threads of a warp that have nothing to do in an instruction, and the condition that keeps them out."""

from __future__ import annotations

from math import ceil
from typing import Final

import numpy as np

from gpadvisor.blamer.measured import Values, executed_threads, executed_warps, metric
from gpadvisor.model.instruction import OpcodeClass, Register
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

WARP: Final = 32
_PREDICATED: Final = "thread_inst_executed_true"
_CONTROL: Final = frozenset(
    {
        OpcodeClass.BRANCH,
        OpcodeClass.INDIRECT_BRANCH,
        OpcodeClass.CALL,
        OpcodeClass.RETURN,
        OpcodeClass.EXIT,
        OpcodeClass.BARRIER,
        OpcodeClass.WARP_SYNC,
        OpcodeClass.NOP,
    }
)
"""Guards of these choose a way; they do not idle."""
_PASSES: Final = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
_SHARED_PASSES: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_OF_PEAK: Final = ".pct_of_peak_sustained_elapsed"
_DROP: Final = 0.9
"""A branch behind which fewer than nine in ten of its threads go on is where they part."""


def threads_per_warp(profile: KernelProfile) -> float:
    """Threads of a warp as launched; fewer than 32 where blocks are no multiple of it."""
    threads = max(1, profile.launch.threads_per_block)  # a damaged report may say 0
    return threads / ceil(threads / WARP)


def wavefronts(profile: KernelProfile) -> float | None:
    """Passes through the L1 data stage: those of shared memory, by its share of all."""
    shared = profile.metric(_SHARED_PASSES)
    part, every = profile.metric(f"{_SHARED_PASSES}{_OF_PEAK}"), profile.metric(_PASSES)
    return shared * every / part if shared and part and every else None


def active_share(profile: KernelProfile, function: Function) -> Values | None:
    """Per instruction the share of a warp's threads that do something in it; NaN where it is not executed.

    Threads that a predicate switches off do not count where the report tells them apart. Control flow is left
    out. None where the report did not count threads.
    """
    warps = executed_warps(profile, function)
    threads = metric(profile, _PREDICATED, function)
    if threads is None:
        threads = executed_threads(profile, function)
    if warps is None or threads is None:
        return None
    skipped = [one.info.opclass in _CONTROL for one in function.instructions]
    found = np.full(len(function.instructions), np.nan)
    at = (warps > 0) & ~np.array(skipped, dtype=bool)
    found[at] = np.minimum(1.0, threads[at] / warps[at] / threads_per_warp(profile))
    return found


def condition(function: Function, index: int, shares: Values) -> int | None:
    """The instruction that decides which threads do something at ``index``: a comparison, else a branch.

    Its own predicate's, or that of the nearest branch above it that more threads reach than it.
    """
    guard = function.instructions[index].guard
    if guard is not None:
        found = _writer(function, guard.register, index)
        if found is not None:
            return found
    block = function.idom[int(function.block_of[index])]
    while block is not None:
        last = function.blocks[block].end - 1
        branch = function.instructions[last]
        if branch.info.opclass is OpcodeClass.BRANCH and branch.guard is not None:
            reached = shares[function.blocks[block].start : last]
            if not np.isnan(reached).all() and shares[index] < _DROP * float(np.nanmax(reached)):
                found = _writer(function, branch.guard.register, last)
                return last if found is None else found
        block = function.idom[block]
    return None


def _writer(function: Function, predicate: Register, before: int) -> int | None:
    """The last instruction above ``before`` in program order that writes a predicate."""
    return next(
        (index for index in range(before - 1, -1, -1) if predicate in function.instructions[index].defs),
        None,
    )
