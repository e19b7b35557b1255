# SPDX-License-Identifier: Apache-2.0
"""The time that the loads of a warp take one after the other: fewer sectors for each do not shorten it."""

from __future__ import annotations

import math

from gpadvisor.errors import GpadvisorError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import elapsed_cycles
from gpadvisor.estimators.launches import shape
from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.lanes import threads_per_warp
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import KernelProfile


def loads_in_turn(context: KernelContext, profile: KernelProfile) -> tuple[float, float, float]:
    """What a warp's loads take one after the other: from L2, from DRAM, and from DRAM at its slowest.

    Loads of one pass of a loop are on their way together, so those count that a warp executes most often.
    """
    launch, sms, cycles = profile.launch, profile.device.sms, elapsed_cycles(profile)
    held = shape(context, profile, launch.blocks, launch.threads_per_block)
    warps = launch.blocks * math.ceil(launch.threads_per_block / threads_per_warp(profile))
    try:
        timing, _ = timing_of(context.program.arch)
    except GpadvisorError:
        return 0.0, 0.0, 0.0
    if held is None or not held.fits or not sms or not cycles or not warps:
        return 0.0, 0.0, 0.0
    passes = max(
        (
            float(executed[index])
            for function in kernel_functions(context.program, context.kernel)
            if (executed := executed_warps(profile, function)) is not None
            for index, instruction in enumerate(function.instructions)
            if is_global(instruction) and instruction.info.opclass is OpcodeClass.LOAD
        ),
        default=0.0,
    )
    turns = passes / warps * max(1.0, held.waves(sms)) / cycles
    return turns * timing.l2_cycles[0], turns * timing.dram_cycles[0], turns * timing.dram_cycles[1]
