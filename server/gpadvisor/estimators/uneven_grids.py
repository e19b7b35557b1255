# SPDX-License-Identifier: Apache-2.0
"""Grids whose fullest SM has more blocks than the mean, or whose last wave has a few blocks."""

from __future__ import annotations

import math

from gpadvisor.analyzer.occupancy import REGISTERS
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape, held_warps, idle_share, shape, sizes
from gpadvisor.evidence.launches import Freedom
from gpadvisor.evidence.queries import counted
from gpadvisor.model.advice import Adjustment, Match, ParallelTarget
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile


def here(launch_shape: LaunchShape, sms: int) -> str:
    """The grid beside the GPU."""
    blocks = counted(launch_shape.blocks, "block")
    return f"{blocks} on {counted(sms, 'SM')} ({launch_shape.waves(sms):.2f} waves)"


def last_wave(current: LaunchShape, sms: int) -> str:
    """What runs at once, and what comes after it."""
    at_once = current.fits * sms
    tail = f"the last {current.blocks % at_once} leave warps missing at the end"
    return f"{here(current, sms)}: {at_once} run at once, and {tail}"


def is_even(profile: KernelProfile, launch_shape: LaunchShape, sms: int) -> bool:
    """Whether no SM waits notably for the fullest, by the number of blocks or as counted."""
    idle = idle_share(profile)
    over = overfull(launch_shape.blocks, sms)
    return min(over, over if idle is None else 1 / max(constants.LEAST_TIME, 1 - idle)) < constants.SHOWN


def tail(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape) -> float:
    """How much longer a partial last wave of blocks makes the kernel; no more than warps were missing.

    It takes as long as a full one where blocks do not get in each other's way. 1.0 without counted warps.
    """
    waves, held = launch_shape.waves(profile.sms), held_warps(context, profile)
    if held is None or waves <= 1:
        return 1.0
    # Waves explain that many warps on average; where far fewer were counted, an SM never held as many.
    if held * constants.AGREES < launch_shape.warps * waves / math.ceil(waves):
        return 1.0
    return max(1.0, min(math.ceil(waves) / waves, launch_shape.warps / held))


def fullest_sm(
    context: KernelContext, profile: KernelProfile, current: LaunchShape, free: Freedom, ratio: float
) -> Match | str:
    """Blocks of one SM more than of the mean: the others wait for it at the end; else why nothing helps.

    Differs from GPA: it looks at grids smaller than the SMs only.
    """
    sms = profile.sms
    late = (
        tail(context, profile, current) if free.any_total else 1.0
    )  # others run their last wave as well then
    loss, idle = max(overfull(current.blocks, sms), late), idle_share(profile)
    counted_loss = None if idle is None else max(late, 1 / max(constants.LEAST_TIME, 1 - idle))
    new = _evener(context, profile, current, free)
    if new is None:
        why = free.block or free.grid
        return f"{here(current, sms)}: the fullest SM has {percent(loss - 1)} more than the mean" + (
            f", but no other launch is possible: {why}" if why else ", and no smaller block evens that out"
        )
    evened = loss / overfull(new.blocks, sms)
    expected = evened if counted_loss is None else min(evened, counted_loss)
    words = (
        f"{new.blocks} blocks, {new.blocks // sms} for each SM, whose threads loop over the rest"
        if new.threads == current.threads
        else f"{new.blocks} blocks of {new.threads} threads"
    )
    return Match(
        title="the last blocks leave SMs idle"
        if current.waves(sms) > 1
        else "some SMs have more blocks than the others",
        cure=f"Launch {words} instead of {current.blocks} of {current.threads}."
        if new.threads != current.threads
        else f"Launch {words}.",
        advice=f"{current.blocks} blocks are {current.blocks / sms:.2f} for each of {sms} SMs, "
        f"{current.fits} at once: some have {-(-current.blocks // sms)} in all, and the others wait for "
        f"them. Launch {words}.",
        regions=(),
        adjustments=(_evens_out((expected - 1) / (evened - 1), idle),),
        parallel=ParallelTarget(
            **sizes(current, new),
            # Registers that larger blocks leave over hold more warps; else the evening out is the gain.
            warps_new=new.warps if REGISTERS in (current.limiter or "") else current.warps,
            issue_ratio=ratio,
            factor=evened,
            factor_reason=f"the fullest SM has {overfull(current.blocks, sms):.2f} times the blocks of the "
            f"mean now, {overfull(new.blocks, sms):.2f} times then"
            + (f", and the last wave takes {late:.2f} times its share" if late > constants.SHOWN else ""),
            limiter="grid",
        ),
    )


def _evens_out(scale: float, idle: float | None) -> Adjustment:
    return Adjustment(
        low=0.0,
        expected=scale,
        high=1.0,
        reason="blocks that differ in length even out by themselves"
        + ("" if idle is None else f", and SMs were idle for {percent(idle)} of the cycles"),
    )


def _evener(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, free: Freedom
) -> LaunchShape | None:
    """A launch whose fullest SM is less over the mean: as many blocks on each SM, or smaller ones."""
    sms = profile.sms
    if free.any_total:
        return shape(context, profile, launch_shape.fits * sms, launch_shape.threads)
    least, parts = overfull(launch_shape.blocks, sms) / constants.SHOWN, 2
    while (
        free.block is None
        and launch_shape.threads % (WARP * parts) == 0
        and launch_shape.threads >= 2 * WARP * parts
    ):
        new = shape(context, profile, launch_shape.blocks * parts, launch_shape.threads // parts)
        if new is not None and overfull(new.blocks, sms) < least:
            return new
        parts *= 2
    return None


def overfull(blocks: int, sms: int) -> float:
    """Blocks of the fullest SM over the mean."""
    return -(-blocks // sms) * sms / blocks
