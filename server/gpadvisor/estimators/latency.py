# SPDX-License-Identifier: Apache-2.0
"""The time that the loads of a warp take one after the other: fewer sectors for each do not shorten it."""

from __future__ import annotations

import math

from gpadvisor.errors import GpadvisorError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import elapsed_cycles
from gpadvisor.estimators.launches import shape
from gpadvisor.evidence.lanes import threads_per_warp
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import kernel_functions
from gpadvisor.evidence.round_trips import round_trips
from gpadvisor.evidence.traffic import Traffic
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.machine import SECTORS_PER_LINE
from gpadvisor.model.profile import KernelProfile


def loads_in_turn(
    context: KernelContext, profile: KernelProfile, from_dram: float = 0.0
) -> tuple[float, float, float]:
    """What a warp's loads take one after the other, at best, on average and at their slowest.

    Args:
        context: the kernel.
        profile: of it.
        from_dram: share of the waits that is known to end with a sector from there; L2 may answer the others.
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
    turns = _round_trips(context, profile) / warps * max(1.0, held.waves(sms)) / cycles
    dram, slowest = timing.dram_cycles
    best = timing.l2_cycles[0] + from_dram * (dram - timing.l2_cycles[0])
    return turns * best, turns * (dram + from_dram * (slowest - dram)), turns * slowest


def waits_for_dram(context: KernelContext, profile: KernelProfile, traffic: Traffic) -> float:
    """Of the waits for fewest sectors the share that ends with one from DRAM; 0 where nobody counted those.

    A wait ends with the last of its sectors; those of a line come from the same place.
    """
    sectors = traffic.ideal_sectors - traffic.ideal_stored
    trips = _round_trips(context, profile)
    sent = traffic.sent_by_dram(profile)
    if sent is None or sectors <= 0 or not trips:
        return 0.0
    return 1 - math.pow(1 - min(1.0, sent / sectors), max(1.0, sectors / SECTORS_PER_LINE / trips))


def _round_trips(context: KernelContext, profile: KernelProfile) -> float:
    return sum(
        round_trips(function, executed)
        for function in kernel_functions(context.program, context.kernel)
        if (executed := executed_warps(profile, function)) is not None
    )
