# SPDX-License-Identifier: Apache-2.0
"""Thread Increase: blocks whose size keeps an SM from holding more warps (GPA Table II).

## What it finds

Launches in which the number of threads per block, and nothing else, limits how many warps an SM holds:
blocks so small that the number of blocks per SM is the limit, blocks of a size that leaves part of the SM
unused, and blocks that are no whole number of warps. It names a block size with the occupancy it gives.

## Why warps stall

A scheduler hides the latency of one warp by issuing from others. An SM holds 16 to 32 blocks: with 32
threads in each, most of its warp slots stay empty. A block of 16 threads still takes a whole warp, half
of it idle.

## What to try

Launch the block size that the advice names, with fewer blocks, so that the threads in all stay the same.
Sizes of 128 to 256 threads suit most kernels; a multiple of 32 suits all.

## Example

```cuda
dim3 block(4, 4);       // 16 threads: half a warp, and 16 blocks are 16 warps
dim3 block(16, 16);     // 256 threads
```

## When this advice is wrong

If the kernel uses its occupancy of today well (few samples without an issue), more warps only share the
same slots. Larger blocks wait longer at barriers. Where registers or shared memory set the limit, the
block size does not matter: see Register Reuse.

## How the gain is estimated

GPA Eq. 10: the issue rate with the new number of warps over that of now, times the share of lanes that
partial warps leave idle. The schedulers' issue rate and measured use of memory cap it; full warps do the
work of partial ones in fewer instructions, which frees issue slots and pipes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpadvisor.analyzer.occupancy import BLOCKS, GRID, WARPS, occupancy
from gpadvisor.blamer.measured import registers_per_thread
from gpadvisor.blamer.queries import counted
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.parallel import issue_ratio, parallel
from gpadvisor.estimators.reliefs import fewer_warps
from gpadvisor.model.advice import Category, Match, ParallelTarget, Rejection
from gpadvisor.model.profile import KernelProfile

_CODE: Final = "GPA302"
_WORTHWHILE: Final = 1.1
"""A gain of less than a tenth in warps is within what schedulers even out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """A block size and what an SM holds of it."""

    threads: int
    blocks: int
    warps: int  # per SM
    limiter: str | None


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or context.blame is None:
        reason = "needs a launch with samples: machine code has no block size"
        return Rejection(code=_CODE, reason=reason, looked=False)
    registers = registers_per_thread(context.program, context.kernel, profile)
    if registers is None or profile.launch.threads_per_block < 1:
        return Rejection(code=_CODE, reason="the profile does not say the block size or the registers")
    now = _shape(context, profile, registers, profile.launch.threads_per_block)
    if now.warps < 1:
        return Rejection(code=_CODE, reason=_empty(profile))
    balance = -(-now.threads // 32) * 32 / now.threads
    best = max(
        (_shape(context, profile, registers, threads) for threads in _sizes(context)),
        key=lambda shape: (shape.warps, -abs(shape.threads - now.threads)),
    )
    if best.warps < _WORTHWHILE * now.warps and balance < _WORTHWHILE:
        return Rejection(code=_CODE, reason=_not_limited(context, now, best))
    if best.warps < now.warps * _WORTHWHILE:  # only the idle lanes are gained
        best = _shape(context, profile, registers, -(-now.threads // 32) * 32)
    if best.warps < 1:  # an SM without a warp has no issue rate
        return Rejection(
            code=_CODE,
            reason=f"full warps would be {best.blocks} blocks of {best.threads} threads, which do not reach "
            f"all {profile.device.sms} SMs",
        )
    ratio = issue_ratio(context)
    if ratio is None:
        return Rejection(code=_CODE, reason="the profile does not count issued samples")
    return _found(context, profile, now, best, balance, ratio)


def _sizes(context: KernelContext) -> range:
    facts = context.program.facts.get(context.kernel)
    most = context.machine.sm.max_threads_per_block.value
    if facts is not None and facts.max_threads_per_block and not _bounded_to_now(context):
        most = min(most, facts.max_threads_per_block)
    return range(32, max(32, most) + 1, 32)


def _bounded_to_now(context: KernelContext) -> bool:
    """Whether __launch_bounds__ only repeats the block size of today: then it grows with the block."""
    facts = context.program.facts.get(context.kernel)
    launch = None if context.profile is None else context.profile.launch
    return (
        facts is not None and launch is not None and facts.max_threads_per_block == launch.threads_per_block
    )


def _shape(context: KernelContext, profile: KernelProfile, registers: int, threads: int) -> _Shape:
    """What an SM would hold of blocks of a size, with the same threads in all.

    Dynamic shared memory is taken to grow with the block, static shared memory to stay.
    """
    launch = profile.launch
    total = launch.blocks * launch.threads_per_block
    blocks = -(-total // threads)
    dynamic = (launch.dynamic_shared_bytes or 0) * threads // launch.threads_per_block
    found = occupancy(
        context.machine.sm,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes=(launch.static_shared_bytes or 0) + dynamic,
        blocks=blocks,
        sms=profile.device.sms,
    )
    warps = found.warps_per_sm or 0
    limiter = found.limiter
    sms = profile.device.sms
    if sms and blocks < (found.blocks_per_sm or 0) * sms:
        # All blocks of a small grid are resident at once, on average so many warps of them in an SM, whatever
        # their size; blocks that are too few leave some SMs empty.
        warps, limiter = blocks * -(-threads // 32) // sms if blocks >= sms else 0, GRID
    return _Shape(threads=threads, blocks=blocks, warps=warps, limiter=limiter)


def _empty(profile: KernelProfile) -> str:
    launch = profile.launch
    if profile.device.sms and launch.blocks < profile.device.sms:
        blocks = counted(launch.blocks, "block")
        return f"{blocks} cannot reach all {profile.device.sms} SMs: larger blocks reach fewer"
    return "the launch does not fit the limits of this architecture's table"


def _not_limited(context: KernelContext, now: _Shape, best: _Shape) -> str:
    most = context.machine.sm.max_warps.value
    held = f"an SM holds {now.warps} of {most} warps"
    if now.limiter is None:
        return f"{held} with blocks of {now.threads} threads: all of them"
    if GRID in now.limiter:
        return f"{held} because the grid is small, not because of blocks of {now.threads} threads"
    if now.limiter in {BLOCKS, WARPS}:
        return f"{held}; the best block size, {best.threads} threads, gives {best.warps}"
    return f"{held}, limited by {now.limiter}: no block size gives more than {best.warps}"


def _found(
    context: KernelContext,
    profile: KernelProfile,
    now: _Shape,
    best: _Shape,
    balance: float,
    ratio: float,
) -> Match:
    schedulers = context.machine.sm.schedulers.value
    most = context.machine.sm.max_warps.value
    # A scheduler with less than one warp is idle part of the time; Eq. 8 needs at least one.
    per_scheduler = now.warps / schedulers
    after = best.warps / schedulers
    change = after / per_scheduler
    sms = profile.device.sms
    held = f"{now.warps} of {most} warps per SM ({now.warps / most:.0%})"
    lanes = (
        "" if balance == 1 else f", and {now.threads} threads leave {1 - 1 / balance:.0%} of their lanes idle"
    )
    return Match(
        title=f"blocks of {now.threads} threads limit occupancy",
        advice=f"Launch {best.blocks} blocks of {best.threads} threads instead of {now.blocks} of "
        f"{now.threads}: "
        f"blocks of this size allow {held}{lanes}; the new size allows {best.warps} "
        f"({best.warps / most:.0%})."
        + (
            " Raise __launch_bounds__ with it."
            if best.threads > now.threads and _bounded_to_now(context)
            else ""
        ),
        regions=(),
        # Full warps do the same work in fewer warp instructions; the bytes moved stay.
        relieves=() if balance == 1 else fewer_warps(1 / balance),
        parallel=ParallelTarget(
            warps_now=per_scheduler,
            warps_new=after,
            issue_ratio=ratio,
            # The work in all stays, so C_W times as many warps at once take 1 / C_W as many rounds.
            factor=change * balance,
            factor_reason=f"the same work in all is spread over {change:.2f} times the warps at once"
            + ("" if balance == 1 else f", and full warps do {balance:.2f} times the work of partial ones"),
            blocks_now=now.blocks,
            blocks_new=best.blocks,
            threads_now=now.threads,
            threads_new=best.threads,
            limiter=now.limiter,
            busy_sms_now=None if sms is None else min(now.blocks, sms),
            busy_sms_new=None if sms is None else min(best.blocks, sms),
        ),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="thread-increase",
    name="Thread Increase",
    category=Category.PARALLEL,
    match=_match,
    estimate=parallel,
    document=__doc__ or "",
)
