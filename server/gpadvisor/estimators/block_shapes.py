# SPDX-License-Identifier: Apache-2.0
"""Blocks of another shape over the same elements: which are possible, and how many warps an SM then holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape, handed_out_share, shape
from gpadvisor.estimators.utilisation import utilisations
from gpadvisor.evidence.launches import Freedom, row_width
from gpadvisor.evidence.queries import counted
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile

USUAL: Final = 256
"""Of sizes that give as many warps the one nearest to this: few blocks to launch, and several per SM."""
Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    """A block's shape, the grid that covers the elements with it, and what an SM holds."""

    block: Size
    grid: Size | None  # None: any number of blocks covers them
    held: LaunchShape

    @property
    def warps(self) -> float:
        """Resident for each scheduler, over all SMs."""
        return self.held.warps


def lanes_taken(threads: int) -> float:
    """Lanes of the warps of a block for each thread."""
    return -(-threads // WARP) * WARP / threads


def best_shape(
    context: KernelContext,
    profile: KernelProfile,
    launch_shape: LaunchShape,
    free: Freedom,
    sizes: Sequence[int],
) -> BlockShape | None:
    """The shape with the most warps; of equals a power of two, then the one nearest to the usual size."""
    shapes, width = [], row_width(context.program, context.kernel, profile, free.axes)
    for threads in sizes:
        launch = _launch(context, profile, free, threads, width)
        if launch is None or not launch.held.resident or launch.block == profile.launch.block:
            continue
        if launch.held.busy_sms >= launch_shape.busy_sms:  # fuller blocks must not leave SMs without one
            shapes.append(launch)
    lanes = lanes_taken(launch_shape.threads)
    best = max(
        shapes,
        key=lambda block_shape: (
            round(block_shape.warps * block_shape.held.busy_sms, 6),
            block_shape.held.threads.bit_count() == 1,
            -abs(math.log2(block_shape.held.threads / USUAL)),
        ),
        default=None,
    )
    if best is None or (best.held.threads == launch_shape.threads and lanes == 1):
        return None
    gains = best.warps * best.held.busy_sms * lanes >= launch_shape.warps * launch_shape.busy_sms
    return best if gains or launch_shape.fits == 1 else None


def larger_tile(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape
) -> BlockShape | None:
    """A block and its tile grown together in the source, each axis alike, up to the usual size."""
    launch, sms = profile.launch, profile.sms
    most = context.program.facts.get(context.kernel)
    bound = None if most is None else most.max_threads_per_block
    x, y, z = launch.block
    scale = math.isqrt(USUAL // launch_shape.threads) if y > 1 else USUAL // launch_shape.threads
    if z > 1 or scale < 2 or (bound is not None and not is_bounded_to_now(context)):
        return None
    block = (x * scale, y * scale if y > 1 else 1, 1)
    growth = math.prod(block) / launch_shape.threads
    tile = math.ceil((launch.static_shared_bytes or 0) * growth)
    grown = replace(profile, launch=replace(launch, static_shared_bytes=tile))
    grid = tuple(
        -(-many // (scale if threads > 1 else 1))
        for many, threads in zip(launch.grid, launch.block, strict=True)
    )
    held = shape(context, grown, math.prod(grid), math.prod(block))
    if held is None or not held.fits or held.blocks < sms:
        return None
    return BlockShape(block=block, grid=(grid[0], grid[1], grid[2]), held=held)


def block_sizes(context: KernelContext) -> list[int]:
    """Threads of a block that may be tried: what the kernel was compiled for, in whole warps."""
    facts = context.program.facts.get(context.kernel)
    most = context.machine.sm.max_threads_per_block.value
    if facts is not None and facts.max_threads_per_block and not is_bounded_to_now(context):
        most = min(most, facts.max_threads_per_block)
    return [threads for threads in range(WARP, most + 1, WARP) if not threads % 64 or threads == WARP]


def is_bounded_to_now(context: KernelContext) -> bool:
    """Whether __launch_bounds__ only repeats the block size of today: then it grows with the block."""
    facts = context.program.facts.get(context.kernel)
    launch = None if context.profile is None else context.profile.launch
    return (
        facts is not None and launch is not None and facts.max_threads_per_block == launch.threads_per_block
    )


def _launch(
    context: KernelContext, profile: KernelProfile, free: Freedom, threads: int, width: int
) -> BlockShape | None:
    """A launch with blocks of a size over the same elements; None where they do not divide them."""
    launch, sms = profile.launch, profile.sms
    elements = tuple(grid * block for grid, block in zip(launch.grid, launch.block, strict=True))
    flat = free.axes == "x" or launch.block[1] * launch.block[2] == 1
    block = (threads, 1, 1) if flat else (width, threads // width, 1)
    if free.any_total:
        launch_shape = shape(context, profile, 1, threads)
        # Where units are busy the threads of today have work, and fewer would each take a longer share of it.
        busy = any(entry.percent >= constants.BUSY_PERCENT for entry in utilisations(profile))
        least = -(-math.prod(elements) // threads) if busy else 0
        held = (
            None
            if launch_shape is None
            else shape(context, profile, max(launch_shape.fits * sms, least), threads)
        )
        return None if held is None else BlockShape(block=block, grid=None, held=held)
    if not free.guarded and any(total % size for total, size in zip(elements, block, strict=True)):
        return None  # a last block that is not full would write beyond the last element
    grid = tuple(-(-total // size) for total, size in zip(elements, block, strict=True))
    held = shape(context, profile, math.prod(grid), threads)
    return None if held is None else BlockShape(block=block, grid=(grid[0], grid[1], grid[2]), held=held)


def warps_reached(
    launch_shape: LaunchShape, new: BlockShape, held: float | None
) -> tuple[float, float | None]:
    """Warps that a scheduler is expected to hold, and those at the low end, from those counted now.

    Blocks are launched at some rate and live for some time; larger ones bring as many more warps each.
    """
    if held is None:
        return new.warps, None
    share = min(1.0, held / launch_shape.warps)
    if new.held.threads > launch_shape.threads:
        return min(
            new.warps, max(held * new.held.threads / launch_shape.threads, new.warps * share)
        ), new.warps * share
    return new.warps * (1 + share) / 2, new.warps * share


def launch_text(profile: KernelProfile, new: BlockShape) -> str:
    """Blocks and threads of a launch in words."""
    block = shape_text(new.block)
    if new.grid is not None:
        return f"{shape_text(new.grid)} blocks of {block} threads"
    sms = profile.sms
    many = f"{new.held.blocks} of them ({new.held.blocks // sms} for each SM) or more"
    return f"blocks of {block} threads, {many},"


def shape_text(size: Size) -> str:
    """``125 x 125``; trailing ones are left out."""
    sizes = list(size)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return " x ".join(map(str, sizes))


def ends_early(profile: KernelProfile, launch_shape: LaunchShape, new: BlockShape, held: float) -> bool:
    """Whether a block of the only row of them has more rows than work: most of its warps are gone soon."""
    launch = profile.launch
    return (
        held < constants.MAJORITY * launch_shape.warps
        and launch_shape.fits == 1
        and launch.grid[1] == 1
        and launch.block[0] == new.block[0] == WARP
        and launch.block[1] > new.block[1]
    )


def handed_out(profile: KernelProfile, old: LaunchShape) -> str | None:
    """That SMs wait for their next small blocks; None where they do not."""
    share = handed_out_share(profile)
    if share is None or share * constants.PEAK_PERCENT < constants.HIGH_PERCENT or old.threads >= USUAL:
        return None
    blocks = counted(old.blocks, "block")
    return f"{blocks} are handed out one by one, which takes {percent(share, 0)} of the time"
