# SPDX-License-Identifier: Apache-2.0
"""Grids that are too small because each thread, or each warp, does what others could do beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import mean_active_share
from gpadvisor.estimators.launches import (
    LaunchShape,
    held_warps,
    idle_share,
    is_as_short_as_a_launch,
    outside_share,
    shape,
    sizes,
)
from gpadvisor.estimators.parallel import of_an_sm, shared_unit
from gpadvisor.estimators.utilisation import measured_loads, utilisations, where_work_is
from gpadvisor.evidence.divisible_loops import divisible_loop, loop_samples
from gpadvisor.evidence.loops import loop_facts, measured_trips
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import counted, kernel_function, location_text
from gpadvisor.model.advice import Match, ParallelTarget, StaticSite
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import LoopId
from gpadvisor.model.machine import GRID_LIMITS
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_COUNTS_THREADS: Final = ("launch__thread_count", "smsp__thread_inst_executed_per_inst_executed.ratio")


def divided(
    context: KernelContext, profile: KernelProfile, current: LaunchShape, ratio: float
) -> Match | None:
    """The passes of a loop as blocks of their own, where passes need nothing of each other."""
    function, sms = kernel_function(context.program, context.kernel), profile.sms
    divisible = None if function is None else divisible_loop(function, profile, context.blame)
    if function is None or divisible is None or divisible.trips is None:
        return None
    if _share_of_others(context, function, divisible.loop) > constants.NOTABLE:
        return None  # which every block would repeat
    trips = min(int(divisible.trips), GRID_LIMITS[1])
    new = shape(context, profile, current.blocks * trips, current.threads)
    if (
        trips < 2
        or new is None
        or new.warps * new.busy_sms < current.warps * current.busy_sms * constants.UNSURE
    ):
        return None
    where = loop_place(function, divisible.loop)
    passes = trips * loop_facts(function, divisible.loop).copies  # those of the source, if it is unrolled
    free = next((axis for axis, size in zip("zy", profile.launch.grid[:0:-1], strict=True) if size == 1), "")
    size = terms.GRID_SIZE.of(context.language, axis=free)
    dimension = f"a dimension of the grid ({size})" if free else "the grid"
    cure = f"Make the loop at {where}, {passes:,} passes in each thread, {dimension}"
    why = "no pass needs what another one computes"
    blocks = counted(current.blocks, "block")
    holds = f"{blocks} are on {current.busy_sms} of {sms} SMs, which hold {current.fits * sms}"
    return Match(
        title=f"{counted(current.blocks, 'block')} for {sms} SMs, and a loop whose passes could be blocks",
        cure=f"{cure}: {why}.",
        advice=f"{cure}: {holds}, and {why}: registers hand on nothing but its counters.",
        regions=(),
        parallel=same_work(context, profile, current, new, ratio),
    )


def _share_of_others(context: KernelContext, function: Function, loop: LoopId) -> float:
    """The share of the samples in loops beside that one."""
    if context.blame is None:
        return 0.0
    inside = function.loops[loop].blocks
    others = [one.id for one in function.loops if one.parent is None and not one.blocks & inside]
    return sum(loop_samples(function, one, context.blame) for one in others) / max(
        1, context.blame.total_samples
    )


def one_warp(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, ratio: float
) -> Match | None:
    """Blocks of one warp, all of which are there at once and leave the SMs to wait."""
    sm, held = context.machine.sm, held_warps(context, profile)
    most = sm.max_warps.value / sm.schedulers.value
    full = busiest_after(measured_loads(context), ())
    if (
        launch_shape.threads > sm.warp_size.value
        or held is None
        or held >= constants.FEW_WARPS * most
        or full is None
        or full.unit.percent >= constants.BUSY_PERCENT
        or is_as_short_as_a_launch(profile)
    ):
        return None
    share = min(1.0, held / launch_shape.warps)
    new = shape(context, profile, launch_shape.blocks, 2 * sm.warp_size.value)
    if new is None or new.resident < launch_shape.resident:
        return None
    cure = "Let two or more warps of a block share what its one warp does"
    blocks = counted(launch_shape.blocks, "block")
    holds = (
        f"{blocks} of one warp are {held * sm.schedulers.value:.1f} warps on an SM "
        f"that has room for {sm.max_warps.value}, and no more blocks are there to come"
    )
    return Match(
        title=f"{blocks} of one warp keep an SM at {percent(held / most, 0)} of its warps",
        cure=f"{cure}: the rows or passes that it does one after the other.",
        advice=f"{cure}: {holds}.",
        regions=(),
        parallel=same_work(context, profile, launch_shape, new, ratio, reached=new.warps * share),
    )


def one_thread(context: KernelContext, profile: KernelProfile) -> Match | None:
    """One thread that loops over what any number of them could do; a question where its passes may be linked.

    Nothing of how long it waits tells what others would do, so nothing is estimated; None where it is over at
    once, has no loop, or the report may only not say how many threads there were.
    """
    function = kernel_function(context.program, context.kernel)
    counts_threads = any(profile.metric(name) == 1 for name in _COUNTS_THREADS)
    if function is None or not function.loops or not counts_threads or is_as_short_as_a_launch(profile):
        return None
    divisible = divisible_loop(function, profile, context.blame)
    loop = _longest_loop(function) if divisible is None else divisible.loop
    change = (
        f"ive each thread its own elements (begin at {terms.ELEMENT.of(context.language)}, step by "
        f"{terms.ALL_THREADS.of(context.language)}) and launch blocks of 256 threads, as many as elements "
        "need or the GPU holds"
    )
    if divisible is not None:
        cure = (
            f"G{change}: no pass of the loop at {loop_place(function, loop)} needs what another one computes."
        )
    else:
        cure = f"Where no pass of its loops needs what another one computes, g{change}."
    return Match(
        title="one thread does all of it",
        cure=cure,
        advice=cure,
        regions=(),
        static_sites=(_site(function, loop),),
        leads=True,
        alone=True,
    )


def warps_at_once(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape) -> float | None:
    """Warps on the whole GPU at once; None of one warp, of what is over at once, or where nobody counted."""
    held, share = held_warps(context, profile), mean_active_share(profile)
    warps = launch_shape.blocks * -(-launch_shape.threads // context.machine.sm.warp_size.value)
    if held is None or share is None or warps < 2 or is_as_short_as_a_launch(profile):
        return None
    return held * context.machine.sm.schedulers.value * share * profile.sms


def lone_warp(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape) -> Match | None:
    """One warp that works while all others of the launch have left, as the warps counted at once tell."""
    at_once = warps_at_once(context, profile, launch_shape)
    function = kernel_function(context.program, context.kernel)
    if at_once is None or at_once > constants.ABOUT or function is None or not function.loops:
        return None
    warps = launch_shape.blocks * -(-launch_shape.threads // context.machine.sm.warp_size.value)
    loop = _longest_loop(function)
    cure = (
        f"Divide the work of the loop at {loop_place(function, loop)} among more threads: passes that need "
        "nothing of each other, or parts of each pass"
    )
    return Match(
        title=f"one of {warps:,} warps does all of it: the others leave at once",
        cure=f"{cure}.",
        advice=f"{cure}. {at_once:.2f} warps are on the whole GPU at once, as counted.",
        regions=(),
        static_sites=(_site(function, loop),),
        leads=True,
        alone=True,
    )


def long_blocks(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape) -> Match | None:
    """A few blocks that work on long after the others: most of the time most SMs have nothing left."""
    idle, sms = idle_share(profile), profile.sms
    function = kernel_function(context.program, context.kernel)
    if idle is None or launch_shape.blocks < sms or idle - outside_share(profile) < constants.MAJORITY:
        return None
    if function is None or not function.loops or is_as_short_as_a_launch(profile):
        return None
    loop = _longest_loop(function)
    cure = (
        f"Give the blocks equal shares of the work of the loop at {loop_place(function, loop)}, smaller ones "
        "where few take it all, or let blocks take the next piece from a counter until none is left"
    )
    busy = percent(1 - idle)
    return Match(
        title=f"a few blocks run long: an SM has work for {busy} of the time on average",
        cure=f"{cure}.",
        advice=f"{cure}. The busiest SM works {percent(1 - outside_share(profile))} of the time, an SM on "
        f"average {busy}.",
        regions=(),
        static_sites=(_site(function, loop),),
        leads=True,
    )


def wider_blocks(context: KernelContext, profile: KernelProfile, current: LaunchShape) -> str:
    """More threads for each block, where these share a loop by the block's size; empty where none do."""
    place = thread_use(context.program, context.kernel).block_stride
    function = kernel_function(context.program, context.kernel)
    if place is None or function is None or place[0] != function.id:
        return ""
    loop, executed = function.innermost_loop(place[1]), executed_warps(profile, function)
    trips = None if loop is None or executed is None else measured_trips(function, loop, executed)
    facts = context.program.facts.get(context.kernel)
    most = context.machine.sm.max_threads_per_block.value
    if facts is not None and facts.max_threads_per_block:
        most = min(most, facts.max_threads_per_block)
    threads = current.threads
    while trips is not None and 2 * threads <= most and trips * current.threads >= 2 * threads:
        threads *= 2
    new = None if loop is None else shape(context, profile, current.blocks, threads)
    if loop is None or new is None or not new.fits or threads == current.threads:
        return ""
    return (
        f"Launch blocks of {threads:,} threads instead of {current.threads:,}: the loop at "
        f"{loop_place(function, loop)} steps by the block's size, so more threads share its {trips:.0f} "
        "passes. "
    )


def _longest_loop(function: Function) -> LoopId:
    return max(function.loops, key=lambda candidate: len(candidate.blocks)).id


def _site(function: Function, loop: LoopId) -> StaticSite:
    return StaticSite(function=function.id, index=_first(function, loop), detail="the loop")


def _first(function: Function, loop: LoopId) -> int:
    return loop_facts(function, loop).indices[0]


def loop_place(function: Function, loop: LoopId) -> str:
    """Where a loop stands, in words."""
    location = function.loops[loop].location
    return (
        f"{function.instructions[_first(function, loop)].pc:#x}"
        if location is None
        else location_text(location)
    )


def same_work(
    context: KernelContext,
    profile: KernelProfile,
    current: LaunchShape,
    new: LaunchShape,
    ratio: float,
    *,
    reached: float | None = None,
) -> ParallelTarget:
    """The same work in all by more warps; at the low end as many of them are missing as now.

    Args:
        context: The kernel.
        profile: With the warps that were counted.
        current: What an SM holds of the launch.
        new: What it would hold.
        ratio: R_I.
        reached: Warps that a scheduler then holds; between those at the low end and all where blocks come
            after others.
    """
    held = held_warps(context, profile)
    share = 1.0 if held is None else min(1.0, held / current.warps)
    # Whole blocks: the fullest SM has more of them than the mean, and the others wait for it.
    busy_sms = round(new.blocks / -(-new.blocks // new.busy_sms))
    return ParallelTarget(
        # A change of the kernel: there is no number of blocks or threads to put in place.
        **sizes(current, replace(current, busy_sms=busy_sms)),
        warps_new=new.warps * (1 + share) / 2 if reached is None else reached,
        issue_ratio=ratio,
        factor=new.warps / current.warps * new.busy_sms / current.busy_sms,
        factor_reason="the same work in all is divided among more warps at once",
        limiter="grid",
        held_now=held,
        held_low=None if held is None else new.warps * share,
    )


def shared_loops(
    context: KernelContext,
    profile: KernelProfile,
    old: LaunchShape,
    new: LaunchShape,
    spread: ParallelTarget,
    *,
    crowded: bool,
) -> Match | None:
    """Loops to share, where smaller blocks would leave most SMs without work, too, or give warps little.

    They give little to warps that wait for no unit of theirs: without samples counters tell, if they were
    taken, of the SMs that have work. What dividing the loops gives is up to how.
    """
    sms = profile.sms
    if context.blame is not None:
        why = f"{new.blocks} blocks of {new.threads} threads would leave {sms - new.blocks}"
        return None if crowded or 2 * new.blocks > sms else _shared_loops(old, sms, why, None)
    units = where_work_is(profile, of_an_sm(utilisations(profile)))
    if not units or shared_unit(context) or any(unit.percent >= constants.HIGH_PERCENT for unit in units):
        return None
    why = "no unit of the others is full, so that smaller blocks on more SMs gain little"
    return _shared_loops(old, sms, why, spread)


def _shared_loops(old: LaunchShape, sms: int, why: str, spread: ParallelTarget | None) -> Match:
    cure = (
        "Let several threads share what one does now in its loop, or run independent kernels at the same time"
    )
    return Match(
        title=f"{counted(old.blocks, 'block')} for {counted(sms, 'SM')}",
        cure=cure,
        advice=f"{cure}: {sms - old.blocks} of {sms} SMs have no work, and {why}.",
        regions=(),
        parallel=spread,
        leads=True,
    )
