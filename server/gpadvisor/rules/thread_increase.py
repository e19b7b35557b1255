# SPDX-License-Identifier: Apache-2.0
"""Thread Increase: blocks whose size keeps an SM from holding more warps at work (GPA Table II).

## What it finds

Blocks that are no whole number of warps; blocks so small that the number of blocks per SM is the limit, that
end before the next ones are there, or that are handed out one by one for most of the time (about one a
cycle, to all SMs together); blocks so large that one fits on an SM, which is empty between two of them; sizes
that leave part of the SM unused; and blocks of which an SM's registers hold so few that smaller ones would be
more warps. It names a block size with what an SM then holds, or why the kernel's code forbids another one.
Where a few registers less per thread make room for one more block, it says how many; else what that needs.

## Why warps stall

A scheduler hides the latency of one warp by issuing from others. An SM holds 16 to 32 blocks: with 32
threads in each, most of its warp slots stay empty. A block of 16 threads still takes a whole warp, half
of it idle. A warp of 3 by 3 threads reads three short rows, where 32 threads in a row read one line.

## What to try

Launch the block size that is named, with as many blocks as keep the threads in all the same, or as fit where
they loop with the grid's size as step: mostly 128 to 256, 32 of them along elements that lie side by side.

## Example

```cuda
dim3 block(4, 4);       // 16 threads: half a warp, and 16 blocks are 16 warps
dim3 block(32, 8);      // 256 threads
```

## When this advice is wrong

If the kernel uses its occupancy of today well (few samples without an issue), more warps only share the
same slots. Larger blocks wait longer at barriers. Registers that ``__launch_bounds__`` takes away may go to
local memory instead, which costs more than the warps give: compile both and compare. A tile that is indexed
by threadIdx has the block's size in the source as well: both change together or not at all.

## How the gain is estimated

The paper's value is GPA Eq. 10 with the warps that the limits allow. The expected value starts from the warps
counted: what they wait for themselves falls as the issue rate of Eqs. 8 and 9 rises, the time of the units
stays (less what full warps and coalesced rows take away), and both overlap. Time without a warp on any SM
stays, except between blocks that had an SM for themselves. At the low end new blocks are as often between
two blocks as now. A report without samples has the same counters, so the launch is estimated there, too; what
longer rows take off L1 is then not counted per access, and the range holds both ends of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpadvisor.analyzer.occupancy import BLOCKS, REGISTERS, WARPS
from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.block_shapes import (
    USUAL,
    BlockShape,
    best_shape,
    block_sizes,
    ends_early,
    handed_out,
    is_bounded_to_now,
    lanes_taken,
    larger_tile,
    launch_text,
    shape_text,
    warps_reached,
)
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.launches import (
    ONE_THREAD,
    LaunchShape,
    Step,
    held_warps,
    is_as_short_as_a_launch,
    next_block,
    outside_share,
    shape,
    sizes,
)
from gpadvisor.estimators.parallel import issue_ratio, parallel
from gpadvisor.estimators.passes import passes
from gpadvisor.estimators.register_steps import held_by_registers, near_step, spared_registers
from gpadvisor.estimators.row_loads import is_along_y, reduced_by_rows
from gpadvisor.estimators.utilisation import L1_TO_L2, utilisations
from gpadvisor.evidence.launches import Freedom, freedom
from gpadvisor.evidence.measured import shared_bytes
from gpadvisor.evidence.queries import counted
from gpadvisor.model.advice import Category, Match, ParallelTarget, ReducedLoad, Rejection
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_launch

_CODE: Final = "GPA302"


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or profile.launch.failed:
        reason = (
            f"needs a launch{': machine code has no block size' if profile is None else ' that was measured'}"
        )
        return Rejection(code=_CODE, reason=reason, looked=False)
    launch, sms = profile.launch, profile.device.sms
    old = shape(context, profile, launch.blocks, launch.threads_per_block)
    if old is None or not sms:
        return Rejection(
            code=_CODE, reason="the profile does not say the block size, the registers or the SMs of the GPU"
        )
    if not old.fits:
        return Rejection(code=_CODE, reason="the launch does not fit the limits of this architecture's table")
    if old.blocks * old.threads == 1:
        return Rejection(code=_CODE, reason=ONE_THREAD)
    if context.evidence is not Evidence.MODELLED and is_as_short_as_a_launch(profile):
        return Rejection(code=_CODE, reason="the kernel is done as soon as a launch is, whatever its blocks")
    if context.blame is None and launch.threads_per_block >= WARP and passes(context) is not None:
        return Rejection(
            code=_CODE, reason="its accesses take more passes of L1 than they need: that is first"
        )
    ratio = issue_ratio(context)
    if ratio is None and context.blame is None:
        ratio = 0.0  # nothing is estimated
    if ratio is None:
        return Rejection(code=_CODE, reason="the profile does not count issued samples")
    crowded = _held_by_registers(profile, old)
    if not crowded and _why(context, profile, old, sms, any_total=True) is None:  # whatever the code allows
        return Rejection(code=_CODE, reason=_not_limited(context, profile, old, sms))
    free = freedom(context.program, context.kernel, profile, thread_use(context.program, context.kernel))
    fills = any(utilisation.percent >= constants.HIGH_PERCENT for utilisation in utilisations(profile))
    fills = fills and free.any_total and not launch.block[0] % WARP  # full rows leave no load to reduce
    why = None if fills else _why(context, profile, old, sms, any_total=free.any_total)
    if why is None:
        fewer = _with_registers(context, profile, old, free, ratio) if crowded else None
        return fewer or Rejection(code=_CODE, reason=_not_limited(context, profile, old, sms))
    return _with_other_blocks(context, profile, old, free, ratio, why)


def _with_other_blocks(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, free: Freedom, ratio: float, why: str
) -> Match | Rejection:
    """Larger blocks, or smaller ones, as far as the code allows them."""
    if free.tile:
        new = larger_tile(context, profile, old)
    elif free.block is not None:
        new = None
    else:
        new = best_shape(context, profile, old, free, block_sizes(context))
    if new is None and free.block is not None:
        return Rejection(code=_CODE, reason=f"{why}, but another block is not possible: {free.block}")
    if new is None:
        return Rejection(code=_CODE, reason=f"{why}, but no other size holds more and reaches as many SMs")
    return _other_block(context, profile, old, new, why, free, ratio)


def _why(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, sms: int, *, any_total: bool
) -> str | None:
    """What is wrong with the block; None where nothing is."""
    threads = old.threads
    if lanes_taken(threads) >= constants.UNSURE:
        idle = percent(1 - 1 / lanes_taken(threads))
        return f"blocks of {counted(threads, 'thread')} leave {idle} of their lanes idle"
    waits = handed_out(profile, old)
    if waits or (old.waves(sms) < 1 and not any_total):
        return waits  # where all blocks are there at once, their size does not make them more
    most = context.machine.sm.max_warps.value / context.machine.sm.schedulers.value
    fits = old.fits * -(-threads // WARP) / context.machine.sm.schedulers.value
    if fits * constants.UNSURE <= most and old.limiter is not None and old.limiter in {BLOCKS, WARPS}:
        return f"blocks of {threads} threads allow {percent(fits / most)} of an SM's warps"
    held = held_warps(context, profile)
    if old.fits == 1 and threads > context.machine.sm.max_threads_per_block.value // 2:
        gaps = outside_share(profile)
        if 1 / (1 - gaps) > constants.SHOWN or (held is not None and held * constants.UNSURE < fits):
            return (
                f"one block of {threads} threads has an SM for itself, which runs empty between two of them"
            )
    if held is not None and threads < USUAL // 2 and old.waves(sms) >= 2 and held < fits / 2:
        return (
            f"blocks of {threads} threads end before the next ones are there: {percent(held / most, 0)} of "
            f"an SM's warps are resident where {percent(fits / most, 0)} fit"
        )
    return None


def _held_by_registers(profile: KernelProfile, old: LaunchShape) -> bool:
    """Whether registers keep blocks of the grid from an SM."""
    return old.limiter is not None and REGISTERS in old.limiter and old.waves(profile.sms) > 1


def _with_registers(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, free: Freedom, ratio: float
) -> Match | Rejection | None:
    """Smaller blocks leave fewer registers over; a few registers less make room for one block more."""
    if context.program.debug_build:
        reason = (
            f"{_holds(context, old)}, limited by registers, of which a release build takes another number"
        )
        return Rejection(code=_CODE, reason=reason)
    sizes = [size for size in block_sizes(context) if size < old.threads]
    new = best_shape(context, profile, old, free, sizes)
    if new is not None and new.warps < old.warps * constants.UNSURE:
        new = None
    step = near_step(context, profile, old)
    tile = not free.code and shared_bytes(context.program, context.kernel, profile)
    bound = "its shared memory may be a tile of the block's size" if tile else free.block
    if new is not None and bound is None:
        return _other_block(
            context, profile, old, new, held_by_registers(context, profile, old), free, ratio, step=step
        )
    smaller = ""
    if new is not None:
        held = round(new.warps * context.machine.sm.schedulers.value)
        smaller = f"blocks of {new.held.threads} would be {held}, but another block is not possible: {bound}"
    if step is not None:
        return _bounded(context, profile, old, step, ratio, smaller)
    reason = f"{_holds(context, old)}, limited by registers; {smaller}"
    return Rejection(code=_CODE, reason=reason) if smaller else None


def _bounded(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, step: Step, ratio: float, smaller: str
) -> Match:
    """The same launch of a kernel with fewer registers; at the low end what is spilled costs what is won."""
    few = held_by_registers(context, profile, old)
    spared = spared_registers(context, profile, old.threads, step)
    change, held = step.blocks / old.resident, held_warps(context, profile)
    share = 1.0 if held is None else min(1.0, held / old.warps)
    return Match(
        title="registers keep a block from each SM",
        advice=f"Declare {spared}. Now {few}"
        + (f"; {smaller}" if smaller else "")
        + "; compile and look for spills (-Xptxas -v) first.",
        cure=f"Declare {spared} (-Xptxas -v tells)",
        regions=(),
        parallel=ParallelTarget(
            **sizes(old, old),
            warps_new=old.warps * change * (1 + share) / 2,
            issue_ratio=ratio,
            factor=change,
            factor_reason=f"the same work in all is spread over {change:.2f} times the warps at once",
            limiter=old.limiter,
            held_now=held,
            held_low=held or old.warps,
        ),
    )


def _step_words(context: KernelContext, profile: KernelProfile) -> str:
    """What would let one more block onto an SM."""
    step = next_block(context, profile)
    if step is None:
        return ""
    needs = [
        *([] if step.registers is None else [f"{step.registers} registers per thread"]),
        *([] if step.shared_bytes is None else [f"{step.shared_bytes} bytes of shared memory per block"]),
    ]
    return f"; {step.blocks} blocks need at most {' and '.join(needs)}"


def _holds(context: KernelContext, launch_shape: LaunchShape) -> str:
    sm = context.machine.sm
    return f"an SM holds {int(launch_shape.warps * sm.schedulers.value)} of {sm.max_warps.value} warps"


def _not_limited(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, sms: int) -> str:
    holds = _holds(context, launch_shape)
    if launch_shape.warps * context.machine.sm.schedulers.value >= context.machine.sm.max_warps.value:
        return f"{holds} with blocks of {launch_shape.threads} threads: all of them"
    if launch_shape.waves(sms) < 1:
        return f"{holds} because the grid is small, not because of blocks of {launch_shape.threads} threads"
    if launch_shape.limiter in {BLOCKS, WARPS}:
        return f"{holds} with blocks of {launch_shape.threads} threads: no other size gives notably more"
    tried = ": no smaller block gives notably more" if _held_by_registers(profile, launch_shape) else ""
    return f"{holds}, limited by {launch_shape.limiter}{tried}{_step_words(context, profile)}"


def _other_block(
    context: KernelContext,
    profile: KernelProfile,
    launch_shape: LaunchShape,
    new: BlockShape,
    why: str,
    free: Freedom,
    ratio: float,
    *,
    step: Step | None = None,
) -> Match:
    sm, lanes, held = context.machine.sm, lanes_taken(launch_shape.threads), held_warps(context, profile)
    spread = new.held.busy_sms / launch_shape.busy_sms
    growth = new.warps / launch_shape.warps
    reached, low = warps_reached(launch_shape, new, held)
    alone = launch_shape.fits == 1 and new.held.fits > 1 and launch_shape.blocks > profile.sms
    title, change = _change(context, profile, launch_shape, new, held)
    reduced_loads = reduced_by_rows(context, profile, new, lanes)
    by_sectors = _by_sectors(profile, reduced_loads, growth) if lanes == 1 else ""
    conditions = _conditions(context, new, free)
    spared = (
        ""
        if step is None
        else f" Or keep it and declare {spared_registers(context, profile, launch_shape.threads, step)}."
    )
    return Match(
        title=by_sectors or title,
        cure=f"{change}.{conditions}{spared}",
        advice=f"{change}: {why}; the new size allows {new.warps * sm.schedulers.value:.0f} of "
        f"{sm.max_warps.value} warps per SM.{conditions}{spared}",
        regions=(),
        replaced_by="GPA106" if by_sectors else "",  # whose cure keeps the block
        reduced_loads=reduced_loads,
        parallel=ParallelTarget(
            # A tile is changed in the source: there is no number to put in place of the block's alone.
            **sizes(launch_shape, replace(new.held, threads=launch_shape.threads) if free.tile else new.held),
            warps_new=reached if held is not None else new.warps,
            issue_ratio=ratio,
            # The work in all stays, so C_W times as many warps at once take 1 / C_W as many rounds.
            factor=growth * lanes * spread,
            factor_reason=f"the same work in all is spread over {growth:.2f} times the warps at once"
            + ("" if lanes == 1 else f", and full warps do {lanes:.2f} times the work of partial ones"),
            block_new=None if free.tile else new.block,
            limiter=launch_shape.limiter,
            held_now=held,
            held_low=low,
            lanes=lanes,
            outside_new=0.0 if alone else None,
        ),
    )


def _by_sectors(profile: KernelProfile, reduced_loads: tuple[ReducedLoad, ...], growth: float) -> str:
    """What is wrong with the block where fewer sectors gain more than the warps that come; else empty."""
    left = next((reduced.remaining for reduced in reduced_loads if reduced.resource == L1_TO_L2), 1.0)
    if left * growth >= 1:
        return ""
    block = shape_text(profile.launch.block)
    return f"a warp of a block of {block} threads takes {1 / left:.1f} times the sectors that it needs"


def _change(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, new: BlockShape, held: float | None
) -> tuple[str, str]:
    """What is wrong with the launch, and which one to make of it."""
    many = f"{shape_text(profile.launch.grid)} of {shape_text(profile.launch.block)}"
    if held is None or not ends_early(profile, old, new, held):
        title = f"blocks of {counted(old.threads, 'thread')} keep warps from an SM"
        return handed_out(profile, old) or title, f"Launch {launch_text(profile, new)} instead of {many}"
    there, warps = held * context.machine.sm.schedulers.value, -(-old.threads // WARP)
    return f"most warps of a block end early: {there:.0f} of {warps} are there on average", (
        f"Launch blocks of {shape_text(new.block)} threads instead of {many}, as many as there are elements "
        f"({profile.launch.grid[0]} if {new.block[1]} rows are enough)"
    )


def _conditions(context: KernelContext, new: BlockShape, free: Freedom) -> str:
    language = context.language
    text = f" Neighbours in memory differ in {terms.ALONG_Y.of(language)}." if is_along_y(new) else ""
    if free.single:
        text += (
            " A block's number is its thread's element today: take it from "
            f"{terms.ELEMENT.of(language)} instead, and return where it is beyond the last."
        )
    threads_now = 0 if context.profile is None else context.profile.launch.threads_per_block
    if free.tile:
        text += f" Make the tile as large in the source, not the launch alone: {free.block}."
    if free.compiled and not free.tile:
        text += " The kernel has the block's size as a constant: change it, too."
    if new.held.threads > threads_now and is_bounded_to_now(context):
        text += f" Raise {terms.LAUNCH_BOUNDS.of(language)} with it."
    if not free.code:
        text += (
            " Without machine code nothing tells whether its threads work together in a tile of this size."
        )
    return text


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="thread-increase",
    name="Thread Increase",
    category=Category.PARALLEL,
    match=_match,
    estimate=parallel,
    usual_gain=constants.THREADS_GAVE,
    document=__doc__ or "",
    edits=(SiteKind.LAUNCH_BOUNDS, SiteKind.BLOCK_SIZE),
    naming=name_launch,
    twins=("LaunchConfiguration", "Occupancy"),
)
