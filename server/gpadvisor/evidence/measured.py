# SPDX-License-Identifier: Apache-2.0
"""What a profile counted, brought onto the instructions of a function."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program

Floats = NDArray[np.float64]
RUN_CLOCK: Final = ("sm__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second")
"""Names for the cycles per second of the run."""
DRAM_CLOCK: Final = "device__attribute_max_mem_frequency_khz"
DRAM_WIDTH: Final = "device__attribute_fb_bus_width"


@lru_cache(maxsize=64)
def executed_warps(profile: KernelProfile | None, function: Function) -> Floats | None:
    """Warp-level executions per instruction; None where the profile has no counts."""
    if profile is None or profile.counts is None:
        return None
    counts = profile.counts
    return _spread(profile, function, counts.section, counts.pc, counts.warps.astype(np.float64))


@lru_cache(maxsize=64)
def executed_threads(profile: KernelProfile | None, function: Function) -> Floats | None:
    """Thread-level executions per instruction; None where the profile has none."""
    if profile is None or profile.counts is None or not int(profile.counts.threads.sum()):
        return None
    counts = profile.counts
    return _spread(profile, function, counts.section, counts.pc, counts.threads.astype(np.float64))


def metric(profile: KernelProfile | None, name: str, function: Function) -> Floats | None:
    """One per-instruction metric of the report under its own name; None where it was not collected."""
    pc_metric = None if profile is None else profile.pc_metrics.get(name)
    if profile is None or pc_metric is None or not len(pc_metric.value):
        return None
    return _spread(profile, function, pc_metric.section, pc_metric.pc, pc_metric.value)


def _spread(
    profile: KernelProfile,
    function: Function,
    section: NDArray[np.uint16],
    pc: NDArray[np.uint64],
    value: Floats,
) -> Floats:
    """Sum rows onto instructions; rows of other functions, and of driver code, fall away."""
    result = np.zeros(len(function.instructions))
    if function.section in profile.sections:
        here = section == profile.sections.index(function.section)
        index = (pc[here].astype(np.int64) - function.start) // INSTRUCTION_BYTES
        inside = (index >= 0) & (index < len(result))
        np.add.at(result, index[inside], np.nan_to_num(value[here][inside]))
    result.setflags(write=False)  # what many rules ask for is kept
    return result


def registers_per_thread(program: Program, kernel: str, profile: KernelProfile | None) -> int | None:
    """Registers as launched, else as the machine code states them."""
    if profile is not None and profile.launch.registers_per_thread is not None:
        return profile.launch.registers_per_thread
    facts = program.facts.get(kernel)
    return None if facts is None else facts.registers_per_thread


def shared_bytes(program: Program, kernel: str, profile: KernelProfile | None) -> int | None:
    """Shared memory per block as launched, static and dynamic, else the static part of the machine code."""
    if profile is not None:
        parts = (profile.launch.static_shared_bytes, profile.launch.dynamic_shared_bytes)
        if any(part is not None for part in parts):
            return sum(part or 0 for part in parts)
    facts = program.facts.get(kernel)
    return None if facts is None else facts.static_shared_bytes


def specified_dram(profile: KernelProfile) -> float | None:
    """Bytes per second from the memory clock and the width of the bus; None where the report lacks them."""
    khz, bits = profile.metric(DRAM_CLOCK), profile.metric(DRAM_WIDTH)
    return 2e3 * khz * bits / 8 if khz and bits else None
