# SPDX-License-Identifier: Apache-2.0
"""Grids that are too small because one thread adds up by itself what many could add up together."""

from __future__ import annotations

from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.divided_work import loop_place, same_work, warps_at_once
from gpadvisor.estimators.launches import LaunchShape, is_as_short_as_a_launch, shape
from gpadvisor.estimators.parallel import issue_ratio
from gpadvisor.estimators.traffic_loads import loads_left
from gpadvisor.evidence.combined_loops import CombinedLoop, Sharing, combined_loop
from gpadvisor.evidence.queries import counted, kernel_function
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import Match
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.remedy import Remedy

LEAST_PASSES: Final = 32
"""Of each thread: with fewer, what stands around the loop and combines its results is no small part."""


def rows_of_a_lone_warp(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape
) -> Match | None:
    """The rows that the threads of the one warp at work go along, each by a warp of its own."""
    at_once, ratio = warps_at_once(context, profile, launch_shape), issue_ratio(context)
    alone = shape(context, profile, 1, WARP)
    if at_once is None or at_once > constants.ABOUT or ratio is None or alone is None:
        return None
    match = shared_passes(context, profile, alone, ratio, launched=launch_shape)
    return match if match is not None and Remedy.SHARED_ROWS in match.remedies else None


def shared_passes(
    context: KernelContext,
    profile: KernelProfile,
    current: LaunchShape,
    ratio: float,
    launched: LaunchShape | None = None,
) -> Match | None:
    """The passes of a loop shared by as many threads as fill the GPU, where they are only combined.

    Of a kernel whose threads each have an element of their own.

    Args:
        context: the kernel.
        profile: with the passes that were counted.
        current: the threads that have such passes.
        ratio: R_I.
        launched: what was launched, where that is more.
    """
    now = launched or current
    function, sms = kernel_function(context.program, context.kernel), profile.sms
    loop = None if function is None else combined_loop(function, context.program.form, profile, context.blame)
    if function is None or loop is None or is_as_short_as_a_launch(profile):
        return None
    parts = _parts(context, loop, current, sms)
    new = None if parts < 2 else shape(context, profile, current.blocks * parts, current.threads)
    if new is None or 2 * new.busy_sms < sms:
        return None  # smaller blocks may reach more of them
    if new.warps * new.busy_sms < current.warps * current.busy_sms * constants.UNSURE:
        return None
    traffic = kernel_traffic(context.program, context.kernel, profile)
    rows = loop.sharing is Sharing.ROW
    places = list(dict.fromkeys(loop_place(function, one) for one in sorted(loop.loops)))
    where = (
        f"loop at {places[0]}" if len(places) == 1 else f"loops at {', '.join(places[:-1])} and {places[-1]}"
    )
    passes = f"{loop.passes:,.0f} passes"
    team = f"{parts} threads" if loop.sharing is not Sharing.WARPS else f"{parts} warps"
    how = "as neighbours, and combine what they have by shuffles" if rows else _how(loop, parts)
    launch = f"{new.blocks:,} blocks of {counted(new.threads, 'thread')} instead of {now.blocks:,}"
    cure = f"Let {team} share the {passes} of the {where} {how}: {launch}"
    if rows and parts == WARP:
        cure = f"Let a warp take each row, its threads the {passes} of the {where} {how}: {launch}"
    return Match(
        title=f"{counted(now.blocks, 'block')} for {sms} SMs, and a loop that only combines its passes",
        cure=f"{cure}.",
        advice=f"{cure}. {current.busy_sms} of {sms} SMs have work now; registers hand on nothing from pass "
        "to pass but counters, and sums or extremes."
        + (" Neighbouring threads go along rows of their own." if rows else ""),
        regions=(),
        parallel=same_work(context, profile, current, new, ratio),
        remedies=(Remedy.SHARED_PASSES, *((Remedy.SHARED_ROWS,) if rows else ())),
        reduced_loads=loads_left(profile, traffic) if rows and traffic is not None else (),
    )


def _how(loop: CombinedLoop, parts: int) -> str:
    shared = "in shared memory" if loop.sharing is Sharing.WARPS or parts > WARP else "by shuffles"
    return f"in turn, and combine what they have {shared}"


def _parts(context: KernelContext, loop: CombinedLoop, current: LaunchShape, sms: int) -> int:
    """Threads that share a loop: the largest power of two that the GPU holds, no more than of one block.

    A warp's for rows where that gives every SM a block.
    """
    most = context.machine.sm.max_threads_per_block.value
    if loop.sharing is Sharing.WARPS:
        most //= WARP  # one of each warp
    most = min(most, int(loop.passes) // LEAST_PASSES, current.fits * sms // current.blocks)
    if loop.sharing is Sharing.ROW and most >= WARP and current.blocks * WARP >= sms:
        return WARP
    return 1 << (max(1, most).bit_length() - 1)
