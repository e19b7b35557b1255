# SPDX-License-Identifier: Apache-2.0
"""Thread Increase: blocks whose size keeps an SM from holding more warps at work (GPA Table II).

## What it finds

Blocks that are no whole number of warps; blocks so small that the number of blocks per SM is the limit, or
that end before the next ones are there; blocks so large that one of them fits on an SM, which is empty
between two of them; sizes that leave part of the SM unused; and blocks of which the registers of an SM hold
so few that smaller ones would be more warps. It names a block size with what an SM then holds, and says why
where the kernel's own code forbids another one. Where a few registers less per thread make room for one more
block, it says how many; else what one more block per SM needs.

## Why warps stall

A scheduler hides the latency of one warp by issuing from others. An SM holds 16 to 32 blocks: with 32
threads in each, most of its warp slots stay empty. A block of 16 threads still takes a whole warp, half
of it idle. A warp of 3 by 3 threads reads three short rows, where 32 threads in a row read one line.

## What to try

Launch the block size that the advice names, with as many blocks as keep the threads in all the same; where
the threads loop with the size of the grid as step, as many as fit. Sizes of 128 to 256 threads suit most
kernels; a multiple of 32 suits all, with 32 threads along the elements that lie side by side.

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
stays (less what full warps and coalesced rows relieve), and both overlap. Time without a warp on any SM
stays, except between blocks that had an SM for themselves. At the low end new blocks are as often between
two blocks as now. A report without samples has the same counters, so the launch is estimated there, too; what
longer rows take off L1 is then not counted per access, and the range holds both ends of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.analyzer.occupancy import BLOCKS, REGISTERS, WARPS
from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators import constants
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
)
from gpadvisor.estimators.parallel import issue_ratio, parallel
from gpadvisor.estimators.passes import passes
from gpadvisor.estimators.reliefs import fewer_warps
from gpadvisor.estimators.relieved import as_reliefs
from gpadvisor.estimators.utilisation import DRAM, L1, L1_DATA, L1_TO_L2, L2, utilisations
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.launches import Freedom, freedom, row_width
from gpadvisor.evidence.measured import executed_threads, registers_per_thread, shared_bytes
from gpadvisor.evidence.queries import counted, kernel_functions, percent
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.model.advice import Category, Match, ParallelTarget, Rejection, Relief
from gpadvisor.model.instruction import MemorySpace
from gpadvisor.model.machine import SECTOR_BYTES, SECTORS_PER_LINE, WARP
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_launch

_CODE: Final = "GPA302"
_NEAR: Final = 8
"""Registers of a thread that may be spared: one step of their allocation, 256 for a warp."""
_USUAL: Final = 256
"""Of sizes that give as many warps the one nearest to this: few blocks to launch, and several per SM."""
_WORDS: Final = 8
"""Values of four bytes in a sector."""
_GLOBAL: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
Size = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """A block's shape, the grid that covers the elements with it, and what an SM holds."""

    block: Size
    grid: Size | None  # None: any number of blocks covers them
    held: LaunchShape

    @property
    def warps(self) -> float:
        """Resident for each scheduler, over all SMs."""
        return self.held.warps


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or profile.launch.failed:
        reason = (
            f"needs a launch{': machine code has no block size' if profile is None else ' that was measured'}"
        )
        return Rejection(code=_CODE, reason=reason, looked=False)
    launch, sms = profile.launch, profile.device.sms
    now = shape(context, profile, launch.blocks, launch.threads_per_block)
    if now is None or not sms:
        return Rejection(
            code=_CODE, reason="the profile does not say the block size, the registers or the SMs of the GPU"
        )
    if not now.fits:
        return Rejection(code=_CODE, reason="the launch does not fit the limits of this architecture's table")
    if now.blocks * now.threads == 1:
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
    crowded = _held_by_registers(profile, now)
    if not crowded and _why(context, profile, now, sms, any_total=True) is None:  # whatever the code allows
        return Rejection(code=_CODE, reason=_not_limited(context, profile, now, sms))
    free = freedom(context.program, context.kernel, profile, thread_use(context.program, context.kernel))
    fills = any(one.percent >= constants.HIGH_PERCENT for one in utilisations(profile))
    fills = fills and free.any_total and not launch.block[0] % WARP  # full rows leave nothing to relieve
    why = None if fills else _why(context, profile, now, sms, any_total=free.any_total)
    if why is None:
        fewer = _with_registers(context, profile, now, free, ratio) if crowded else None
        return fewer or Rejection(code=_CODE, reason=_not_limited(context, profile, now, sms))
    return _with_other_blocks(context, profile, now, free, ratio, why)


def _with_other_blocks(
    context: KernelContext, profile: KernelProfile, now: LaunchShape, free: Freedom, ratio: float, why: str
) -> Match | Rejection:
    """Larger blocks, or smaller ones, as far as the code allows them."""
    if free.tile:
        new = _larger_tile(context, profile, now)
    elif free.block is not None:
        new = None
    else:
        new = _best(context, profile, now, free, _sizes(context))
    if new is None and free.block is not None:
        return Rejection(code=_CODE, reason=f"{why}, but another block is not possible: {free.block}")
    if new is None:
        return Rejection(code=_CODE, reason=f"{why}, but no other size holds more and reaches as many SMs")
    return _found(context, profile, now, new, why, free, ratio)


def _why(
    context: KernelContext, profile: KernelProfile, now: LaunchShape, sms: int, *, any_total: bool
) -> str | None:
    """What is wrong with the block; None where nothing is."""
    threads = now.threads
    small = now.waves(sms) < 1 and not any_total
    if _lanes(threads) >= constants.UNSURE:
        idle = percent(1 - 1 / _lanes(threads))
        return f"blocks of {counted(threads, 'thread')} leave {idle} of their lanes idle"
    if small:
        return None  # all blocks are there at once: their size does not make them more
    most = context.machine.sm.max_warps.value / context.machine.sm.schedulers.value
    fits = now.fits * -(-threads // WARP) / context.machine.sm.schedulers.value
    if fits * constants.UNSURE <= most and now.limiter is not None and now.limiter in {BLOCKS, WARPS}:
        return f"blocks of {threads} threads allow {percent(fits / most)} of an SM's warps"
    held = held_warps(context, profile)
    if now.fits == 1 and threads > context.machine.sm.max_threads_per_block.value // 2:
        gaps = outside_share(profile)
        if 1 / (1 - gaps) > constants.SHOWN or (held is not None and held * constants.UNSURE < fits):
            return (
                f"one block of {threads} threads has an SM for itself, which runs empty between two of them"
            )
    if held is not None and threads < _USUAL // 2 and now.waves(sms) >= 2 and held < fits / 2:
        return (
            f"blocks of {threads} threads end before the next ones are there: {held / most:.0%} of an SM's "
            f"warps are resident where {fits / most:.0%} fit"
        )
    return None


def _held_by_registers(profile: KernelProfile, now: LaunchShape) -> bool:
    """Whether registers keep blocks of the grid from an SM."""
    return now.limiter is not None and REGISTERS in now.limiter and now.waves(profile.device.sms or 1) > 1


def _with_registers(
    context: KernelContext, profile: KernelProfile, now: LaunchShape, free: Freedom, ratio: float
) -> Match | Rejection | None:
    """Smaller blocks leave fewer registers over; a few registers less make room for one block more."""
    if context.program.debug_build:
        reason = (
            f"{_holds(context, now)}, limited by registers, of which a release build takes another number"
        )
        return Rejection(code=_CODE, reason=reason)
    sizes = [size for size in _sizes(context) if size < now.threads]
    new = _best(context, profile, now, free, sizes)
    if new is not None and new.warps < now.warps * constants.UNSURE:
        new = None
    step = _near_step(context, profile, now)
    tile = not free.code and shared_bytes(context.program, context.kernel, profile)
    bound = "its shared memory may be a tile of the block's size" if tile else free.block
    if new is not None and bound is None:
        return _found(context, profile, now, new, _few(context, profile, now), free, ratio, step=step)
    smaller = ""
    if new is not None:
        held = round(new.warps * context.machine.sm.schedulers.value)
        smaller = f"blocks of {new.held.threads} would be {held}, but another block is not possible: {bound}"
    if step is not None:
        return _bounded(context, profile, now, step, ratio, smaller)
    reason = f"{_holds(context, now)}, limited by registers; {smaller}"
    return Rejection(code=_CODE, reason=reason) if smaller else None


def _few(context: KernelContext, profile: KernelProfile, now: LaunchShape) -> str:
    """How many blocks the registers of an SM hold."""
    sm, registers = context.machine.sm, registers_per_thread(context.program, context.kernel, profile)
    return (
        f"with {registers} registers per thread an SM holds {counted(now.fits, 'block')} of {now.threads}, "
        f"{round(now.warps * sm.schedulers.value)} of {sm.max_warps.value} warps"
    )


def _near_step(context: KernelContext, profile: KernelProfile, now: LaunchShape) -> Step | None:
    """One more block on an SM for a few registers; None where it takes more, or the grid has none."""
    step = next_block(context, profile)
    registers = registers_per_thread(context.program, context.kernel, profile)
    if step is None or step.registers is None or registers is None or step.shared_bytes is not None:
        return None
    near = registers - step.registers <= _NEAR
    return step if near and step.blocks >= now.resident * constants.UNSURE else None


def _spared(context: KernelContext, profile: KernelProfile, threads: int, step: Step) -> str:
    registers = registers_per_thread(context.program, context.kernel, profile) or 0
    return (
        f"__launch_bounds__({threads}, {step.blocks}): {step.blocks} blocks fit with at most "
        f"{step.registers} registers per thread, {registers - (step.registers or 0)} fewer, if nothing spills"
    )


def _bounded(
    context: KernelContext, profile: KernelProfile, now: LaunchShape, step: Step, ratio: float, smaller: str
) -> Match:
    """The same launch of a kernel with fewer registers; at the low end what is spilled costs what is won."""
    change, held = step.blocks / now.resident, held_warps(context, profile)
    share = 1.0 if held is None else min(1.0, held / now.warps)
    return Match(
        title="registers keep a block from each SM",
        advice=f"Declare {_spared(context, profile, now.threads, step)}. Now {_few(context, profile, now)}"
        + (f"; {smaller}" if smaller else "")
        + "; compile and look for spills (-Xptxas -v) first.",
        cure=f"Declare {_spared(context, profile, now.threads, step)} (-Xptxas -v tells)",
        regions=(),
        parallel=ParallelTarget(
            warps_now=now.warps,
            warps_new=now.warps * change * (1 + share) / 2,
            issue_ratio=ratio,
            factor=change,
            factor_reason=f"the same work in all is spread over {change:.2f} times the warps at once",
            blocks_now=now.blocks,
            blocks_new=now.blocks,
            threads_now=now.threads,
            threads_new=now.threads,
            limiter=now.limiter,
            busy_sms_now=now.busy_sms,
            busy_sms_new=now.busy_sms,
            held_now=held,
            held_low=held or now.warps,
        ),
    )


def _lanes(threads: int) -> float:
    """Lanes of the warps of a block for each thread."""
    return -(-threads // WARP) * WARP / threads


def _best(
    context: KernelContext, profile: KernelProfile, now: LaunchShape, free: Freedom, sizes: Sequence[int]
) -> _Launch | None:
    """The shape with the most warps; of equals a power of two, then the one nearest to the usual size."""
    found, width = [], row_width(context.program, context.kernel, profile, free.axes)
    for threads in sizes:
        launch = _launch(context, profile, free, threads, width)
        if launch is None or not launch.held.resident or launch.block == profile.launch.block:
            continue
        if launch.held.busy_sms >= now.busy_sms:  # fuller blocks must not leave SMs without one
            found.append(launch)
    lanes = _lanes(now.threads)
    best = max(
        found,
        key=lambda one: (
            round(one.warps * one.held.busy_sms, 6),
            one.held.threads.bit_count() == 1,
            -abs(math.log2(one.held.threads / _USUAL)),
        ),
        default=None,
    )
    if best is None or (best.held.threads == now.threads and lanes == 1):
        return None
    gains = best.warps * best.held.busy_sms * lanes >= now.warps * now.busy_sms
    return best if gains or now.fits == 1 else None


def _larger_tile(context: KernelContext, profile: KernelProfile, now: LaunchShape) -> _Launch | None:
    """A block and its tile grown together in the source, each axis alike, up to the usual size."""
    launch, sms = profile.launch, profile.device.sms or 1
    most = context.program.facts.get(context.kernel)
    bound = None if most is None else most.max_threads_per_block
    x, y, z = launch.block
    scale = math.isqrt(_USUAL // now.threads) if y > 1 else _USUAL // now.threads
    if z > 1 or scale < 2 or (bound is not None and not _bounded_to_now(context)):
        return None
    block = (x * scale, y * scale if y > 1 else 1, 1)
    growth = math.prod(block) / now.threads
    tile = math.ceil((launch.static_shared_bytes or 0) * growth)
    grown = replace(profile, launch=replace(launch, static_shared_bytes=tile))
    grid = tuple(
        -(-many // (scale if own > 1 else 1)) for many, own in zip(launch.grid, launch.block, strict=True)
    )
    held = shape(context, grown, math.prod(grid), math.prod(block))
    if held is None or not held.fits or held.blocks < sms:
        return None
    return _Launch(block=block, grid=(grid[0], grid[1], grid[2]), held=held)


def _sizes(context: KernelContext) -> list[int]:
    facts = context.program.facts.get(context.kernel)
    most = context.machine.sm.max_threads_per_block.value
    if facts is not None and facts.max_threads_per_block and not _bounded_to_now(context):
        most = min(most, facts.max_threads_per_block)
    return [threads for threads in range(WARP, most + 1, WARP) if not threads % 64 or threads == WARP]


def _bounded_to_now(context: KernelContext) -> bool:
    """Whether __launch_bounds__ only repeats the block size of today: then it grows with the block."""
    facts = context.program.facts.get(context.kernel)
    launch = None if context.profile is None else context.profile.launch
    return (
        facts is not None and launch is not None and facts.max_threads_per_block == launch.threads_per_block
    )


def _launch(
    context: KernelContext, profile: KernelProfile, free: Freedom, threads: int, width: int
) -> _Launch | None:
    """A launch with blocks of a size over the same elements; None where they do not divide them."""
    launch, sms = profile.launch, profile.device.sms or 1
    elements = tuple(grid * block for grid, block in zip(launch.grid, launch.block, strict=True))
    flat = free.axes == "x" or launch.block[1] * launch.block[2] == 1
    block = (threads, 1, 1) if flat else (width, threads // width, 1)
    if free.any_total:
        one = shape(context, profile, 1, threads)
        # Where units are busy the threads of today have work, and fewer would each take a longer share of it.
        busy = any(entry.percent >= constants.BUSY_PERCENT for entry in utilisations(profile))
        least = -(-math.prod(elements) // threads) if busy else 0
        held = None if one is None else shape(context, profile, max(one.fits * sms, least), threads)
        return None if held is None else _Launch(block=block, grid=None, held=held)
    if not free.guarded and any(total % size for total, size in zip(elements, block, strict=True)):
        return None  # a last block that is not full would write beyond the last element
    grid = tuple(-(-total // size) for total, size in zip(elements, block, strict=True))
    held = shape(context, profile, math.prod(grid), threads)
    return None if held is None else _Launch(block=block, grid=(grid[0], grid[1], grid[2]), held=held)


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


def _holds(context: KernelContext, now: LaunchShape) -> str:
    sm = context.machine.sm
    return f"an SM holds {int(now.warps * sm.schedulers.value)} of {sm.max_warps.value} warps"


def _not_limited(context: KernelContext, profile: KernelProfile, now: LaunchShape, sms: int) -> str:
    holds = _holds(context, now)
    if now.warps * context.machine.sm.schedulers.value >= context.machine.sm.max_warps.value:
        return f"{holds} with blocks of {now.threads} threads: all of them"
    if now.waves(sms) < 1:
        return f"{holds} because the grid is small, not because of blocks of {now.threads} threads"
    if now.limiter in {BLOCKS, WARPS}:
        return f"{holds} with blocks of {now.threads} threads: no other size gives notably more"
    tried = ": no smaller block gives notably more" if _held_by_registers(profile, now) else ""
    return f"{holds}, limited by {now.limiter}{tried}{_step_words(context, profile)}"


def _found(
    context: KernelContext,
    profile: KernelProfile,
    now: LaunchShape,
    new: _Launch,
    why: str,
    free: Freedom,
    ratio: float,
    *,
    step: Step | None = None,
) -> Match:
    sm, lanes, held = context.machine.sm, _lanes(now.threads), held_warps(context, profile)
    spread = new.held.busy_sms / now.busy_sms
    growth = new.warps / now.warps
    reached, low = _reached(now, new, held)
    alone = now.fits == 1 and new.held.fits > 1 and now.blocks > (profile.device.sms or 1)
    change = (
        f"Launch {_words(profile, new)} instead of {_shape_text(profile.launch.grid)} of "
        f"{_shape_text(profile.launch.block)}"
    )
    conditions = _conditions(context, new, free)
    spared = (
        "" if step is None else f" Or keep it and declare {_spared(context, profile, now.threads, step)}."
    )
    return Match(
        title=f"blocks of {counted(now.threads, 'thread')} keep warps from an SM",
        cure=f"{change}.{conditions}{spared}",
        advice=f"{change}: {why}; the new size allows {new.warps * sm.schedulers.value:.0f} of "
        f"{sm.max_warps.value} warps per SM.{conditions}{spared}",
        regions=(),
        relieves=_reliefs(context, profile, new, lanes),
        parallel=ParallelTarget(
            warps_now=now.warps,
            warps_new=reached if held is not None else new.warps,
            issue_ratio=ratio,
            # The work in all stays, so C_W times as many warps at once take 1 / C_W as many rounds.
            factor=growth * lanes * spread,
            factor_reason=f"the same work in all is spread over {growth:.2f} times the warps at once"
            + ("" if lanes == 1 else f", and full warps do {lanes:.2f} times the work of partial ones"),
            blocks_now=now.blocks,
            blocks_new=new.held.blocks,
            threads_now=now.threads,
            # A tile is changed in the source: there is no number to put in place of the block's alone.
            threads_new=now.threads if free.tile else new.held.threads,
            block_new=None if free.tile else new.block,
            limiter=now.limiter,
            busy_sms_now=now.busy_sms,
            busy_sms_new=new.held.busy_sms,
            held_now=held,
            held_low=low,
            lanes=lanes,
            outside_new=0.0 if alone else None,
        ),
    )


def _reached(now: LaunchShape, new: _Launch, held: float | None) -> tuple[float, float | None]:
    """Warps that a scheduler is expected to hold, and those at the low end, from those counted now.

    Blocks are launched at some rate and live for some time; larger ones bring as many more warps each.
    """
    if held is None:
        return new.warps, None
    share = min(1.0, held / now.warps)
    if new.held.threads > now.threads:
        return min(
            new.warps, max(held * new.held.threads / now.threads, new.warps * share)
        ), new.warps * share
    return new.warps * (1 + share) / 2, new.warps * share


def _reliefs(
    context: KernelContext, profile: KernelProfile, new: _Launch, lanes: float
) -> tuple[Relief, ...]:
    """What full warps and longer rows take off the units; the bytes that are asked for stay."""
    left = dict.fromkeys((one.resource for one in fewer_warps(1.0)), 1 / lanes) if lanes > 1 else {}
    traffic = kernel_traffic(context.program, context.kernel, profile)
    if traffic is None and lanes > 1:
        return (*as_reliefs(left, left), *_uncounted(profile.launch.block, new.block, lanes))
    longer = new.block[0] > profile.launch.block[0] or _is_along_y(new)
    if longer and traffic is not None and traffic.sectors:
        fewest = min(traffic.ideal_sectors, _asked_sectors(context, profile) or traffic.ideal_sectors)
        left |= dict.fromkeys((L1_TO_L2, L2, DRAM), fewest / traffic.sectors)
        if traffic.requests and traffic.l1_wavefronts:
            passes = max(traffic.requests / lanes, fewest / SECTORS_PER_LINE) + traffic.wavefronts_shared
            left |= dict.fromkeys((L1, L1_DATA), min(1.0, passes / traffic.l1_wavefronts))
    return as_reliefs(left, left)


def _is_along_y(new: _Launch) -> bool:
    return new.block[1] > 1 and new.block[0] < WARP


def _uncounted(block: Size, new: Size, lanes: float) -> tuple[Relief, ...]:
    """What full warps and longer rows take off the memory where nobody counted it by access.

    A request takes a pass of L1 at least, however many of its lanes are there, and at most one for each row
    of the block that is in its warp. Behind L1, rows of four-byte values share sectors, or a cache has
    joined them already. Between these ends the mean of their logarithms is expected.
    """
    rows_now, rows = (max(1.0, min(size[1] * size[2], WARP / size[0])) for size in (block, new))
    sectors_now, sectors = (math.ceil(size[0] / _WORDS) / size[0] for size in (block, new))
    passes, traffic = min(1.0, rows / rows_now), min(1.0, sectors / sectors_now)
    best = dict.fromkeys((L1, L1_DATA), passes / lanes) | dict.fromkeys((L1_TO_L2, L2, DRAM), traffic)
    worst = dict.fromkeys((L1, L1_DATA), 1 / lanes)
    expected = {name: math.sqrt(share * worst.get(name, 1.0)) for name, share in best.items()}
    return as_reliefs(expected, best)


def _asked_sectors(context: KernelContext, profile: KernelProfile) -> float | None:
    """Sectors of the bytes that all threads ask of global memory; None where threads are not counted."""
    total = 0.0
    for function in kernel_functions(context.program, context.kernel):
        threads = executed_threads(profile, function)
        if threads is None:
            return None
        total += sum(
            float(threads[index]) * (instruction.width_bytes or 0)
            for index, instruction in enumerate(function.instructions)
            if instruction.info.space in _GLOBAL and is_memory(instruction)
        )
    return total / SECTOR_BYTES


def _words(profile: KernelProfile, new: _Launch) -> str:
    block = _shape_text(new.block)
    if new.grid is not None:
        return f"{_shape_text(new.grid)} blocks of {block} threads"
    sms = profile.device.sms or 1
    many = f"{new.held.blocks} of them ({new.held.blocks // sms} for each SM) or more"
    return f"blocks of {block} threads, {many},"


def _shape_text(size: Size) -> str:
    """``125 x 125``; trailing ones are left out."""
    shown = list(size)
    while len(shown) > 1 and shown[-1] == 1:
        shown.pop()
    return " x ".join(map(str, shown))


def _conditions(context: KernelContext, new: _Launch, free: Freedom) -> str:
    text = " Neighbours in memory differ in threadIdx.y." if _is_along_y(new) else ""
    if free.single:
        text += (
            " A block's number is its thread's element today: take it from blockIdx.x * blockDim.x + "
            "threadIdx.x instead, and return where it is beyond the last."
        )
    now = 0 if context.profile is None else context.profile.launch.threads_per_block
    if free.tile:
        text += f" Make the tile as large in the source, not the launch alone: {free.block}."
    if free.compiled and not free.tile:
        text += " The kernel has the block's size as a constant: change it, too."
    if new.held.threads > now and _bounded_to_now(context):
        text += " Raise __launch_bounds__ with it."
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
    document=__doc__ or "",
    edits=(SiteKind.LAUNCH_BOUNDS, SiteKind.BLOCK_SIZE),
    naming=name_launch,
    twins=("LaunchConfiguration", "Occupancy"),
)
