# SPDX-License-Identifier: Apache-2.0
"""How long each instruction keeps the unit behind its queue, or its pipe, busy: counted, else by its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpadvisor.evidence.measured import Floats, executed_threads, metric
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.machine import LINE_BYTES, SECTOR_BYTES, SECTORS_PER_LINE, WARP, MachineModel
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

# Nsight Compute's names; 2020 had no "theoretical".
_SECTORS: Final = ("memory_l2_theoretical_sectors_global", "memory_l2_sectors_global")
_TAGS: Final = "memory_l1_tag_requests_global"
_SHARED: Final = "memory_l1_wavefronts_shared"
_BEHIND_L1: Final = (
    "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
_L1: Final = "l1tex__throughput.avg.pct_of_peak_sustained_active"

_DEVICE: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.LOCAL})
_ATOMICS: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
_ACCESSES: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ASYNC_COPY, *_ATOMICS})


def is_device_access(instruction: Instruction) -> bool:
    """Whether an instruction goes through the load/store unit to global or local memory."""
    info = instruction.info
    return info.opclass in _ACCESSES and info.space in _DEVICE and info.pipe is Pipe.LSU


def occupied(profile: KernelProfile, function: Function, issues: Floats, machine: MachineModel) -> Floats:
    """By instruction, the passes that all its executions take through their unit.

    Global accesses take a pass of the L1 data stage for each line and each tag that they touch, by the
    report's tags and sectors, else by their width; where L2 or DRAM is busier than L1, what they ask of them:
    sectors. Threads that add to one word are served one by one. Shared memory accesses take their counted
    wavefronts.

    Args:
        profile: with counters, or without.
        function: the code.
        issues: executions of each instruction by warps.
        machine: whose lanes the special functions and queued doubles have.
    """
    lanes = {
        Pipe.XU: machine.sm.special_function_lanes.value,
        Pipe.FP64: machine.sm.queued_double_lanes.value,
    }
    result = issues * np.array([_by_code(instruction, lanes) for instruction in function.instructions])
    sectors = next(
        (counted for name in _SECTORS if (counted := metric(profile, name, function)) is not None), None
    )
    if sectors is not None:
        tags = metric(profile, _TAGS, function)
        lines = sectors / SECTORS_PER_LINE
        passes = lines if tags is None else np.maximum(lines, tags)
        busy = lines if _is_behind_l1(profile) else np.maximum(passes, issues)
        result = np.where(sectors > 0, np.maximum(busy, _one_by_one(profile, function, sectors)), result)
    shared = metric(profile, _SHARED, function)
    return result if shared is None else np.where(shared > 0, shared, result)


def _by_code(instruction: Instruction, lanes: Mapping[Pipe, int]) -> float:
    """Passes of one execution, by width alone: neighbouring threads at neighbouring addresses."""
    if instruction.info.opclass in _ACCESSES:
        return max(1.0, WARP * (instruction.width_bytes or 4) / LINE_BYTES)
    return WARP / lanes.get(instruction.info.pipe, WARP)


def _is_behind_l1(profile: KernelProfile) -> bool:
    """Whether L2 or DRAM is what an access waits for rather than L1."""
    behind = [value for name in _BEHIND_L1 if (value := profile.metric(name)) is not None]
    return max(behind, default=0.0) > (profile.metric(_L1) or 0.0)


def _one_by_one(profile: KernelProfile, function: Function, sectors: Floats) -> Floats:
    """Operations of atomics some of which share a word: more threads than there are words in the sectors."""
    threads = executed_threads(profile, function)
    if threads is None:
        return np.zeros(len(sectors))
    atomic = np.array(
        [instruction.info.opclass in _ATOMICS for instruction in function.instructions], dtype=bool
    )
    return np.where(atomic & (threads > SECTOR_BYTES // 4 * sectors), threads, 0.0)
