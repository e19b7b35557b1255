# SPDX-License-Identifier: Apache-2.0
"""Block Increase: a grid that leaves SMs without work (GPA Table II).

## What it finds

Fewer blocks than SMs while the blocks are large enough to be split; and a last wave of blocks that leaves
most of the GPU idle. It names a launch: how many blocks of how many threads, and how many SMs get work
then.

## Why warps stall

A block stays on one SM. With 20 blocks on an 80-SM GPU, 60 SMs do nothing while the warps of the other 20
compete for their schedulers.

## What to try

Make blocks smaller and launch more of them, with the same number of threads in all; one warp for each
scheduler (128 threads) is enough to issue. Where a block cannot be split because its threads work
together, divide the problem along another dimension (the inner loop of a reduction, split-k), or run
independent kernels at once.

## Example

```cuda
const int threads = 512;                       // 40 blocks on 108 SMs
const int threads = 128;                       // 160 blocks
kernel<<<(n + threads - 1) / threads, threads>>>(...);
```

## When this advice is wrong

If threads of a block share data through shared memory, smaller blocks share less and read more. If the
kernel takes a few microseconds, the launch costs as much. Blocks of unequal length need a finer split
than shown.

## How the gain is estimated

GPA Eq. 10 with the warps of a scheduler before and after; f takes out the stalls that few warps do not
have (memory throttle, not selected, pipe busy) once a scheduler has at most one warp. The fullest SM
bounds the gain, so that a grid one block short of the SMs promises next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.blamer.measured import registers_per_thread, shared_bytes
from gpadvisor.blamer.queries import by_stall, counted, percent, share
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.parallel import issue_ratio, parallel
from gpadvisor.model.advice import Adjustment, Category, Match, ParallelTarget, Rejection
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA301"
_CROWDED: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.NOT_SELECTED, StallClass.PIPE_THROTTLE})
_TAIL: Final = 1.1
"""A last wave that adds less than a tenth to the run is not worth another launch shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """The same threads in other blocks."""

    blocks: int
    threads: int
    waves: float


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or context.blame is None:
        reason = "needs a launch with samples: machine code has no grid"
        return Rejection(code=_CODE, reason=reason, looked=False)
    sms = profile.device.sms
    if not sms:
        return Rejection(code=_CODE, reason="the profile does not say how many SMs the GPU has")
    blocks, threads = profile.launch.blocks, profile.launch.threads_per_block
    if blocks < sms:
        return _fewer_than_sms(context, profile, sms)
    now = _waves(context, blocks, threads, sms)
    if now is None or now <= 1 or math.ceil(now) / now < _TAIL:
        waves = "" if now is None else f" ({now:.2f} waves)"
        return Rejection(
            code=_CODE, reason=f"{counted(blocks, 'block')} on {counted(sms, 'SM')}{waves}: every SM has work"
        )
    return _tail(context, profile, sms, now)


def _fewer_than_sms(context: KernelContext, profile: KernelProfile, sms: int) -> Match | Rejection:
    blocks, threads = profile.launch.blocks, profile.launch.threads_per_block
    schedulers = context.machine.sm.schedulers.value
    enough = schedulers * context.machine.sm.warp_size.value
    if threads <= enough:
        return Rejection(
            code=_CODE,
            reason=f"{counted(blocks, 'block')} on {sms} SMs, but {counted(threads, 'thread')} per block are "
            f"no more than one warp for each of the {schedulers} schedulers: splitting blocks leaves "
            "schedulers "
            "idle instead",
        )
    target = _best_split(blocks, threads, sms, enough)
    warps_now = _warps_per_scheduler(context, blocks, threads, sms)
    warps_new = _warps_per_scheduler(context, target.blocks, target.threads, sms)
    ratio = issue_ratio(context)
    if ratio is None or context.blame is None:
        return Rejection(code=_CODE, reason="the profile does not count issued samples")
    factor, reason = _factor(context, warps_new)
    return Match(
        title=f"{blocks} blocks for {sms} SMs",
        advice=f"Launch {target.blocks} blocks of {target.threads} threads instead of {blocks} of {threads}: "
        f"{min(target.blocks, sms)} of {sms} SMs get work instead of {blocks}."
        + _gain_note(blocks, threads, target, sms),
        regions=(),
        parallel=ParallelTarget(
            warps_now=warps_now,
            warps_new=warps_new,
            issue_ratio=ratio,
            factor=factor,
            factor_reason=reason,
            blocks_now=blocks,
            blocks_new=target.blocks,
            threads_now=threads,
            threads_new=target.threads,
            limiter="grid",
            busy_sms_now=min(blocks, sms),
            busy_sms_new=min(target.blocks, sms),
        ),
    )


def _best_split(blocks: int, threads: int, sms: int, enough: int) -> _Split:
    """The split whose fullest SM has the fewest threads; of equals the one with the largest blocks."""
    warps = -(-threads // 32)
    best = _Split(blocks=blocks, threads=threads, waves=1.0)
    fullest = threads
    for parts in range(2, warps + 1):
        if warps % parts or warps // parts * 32 < enough:
            continue
        size, count = warps // parts * 32, blocks * parts
        load = -(-count // sms) * size
        if load < fullest or best.blocks == blocks:
            best, fullest = _Split(blocks=count, threads=size, waves=1.0), load
    if best.blocks == blocks:  # an odd number of warps: one warp per scheduler, rounded up
        best = _Split(blocks=-(-blocks * threads // enough), threads=enough, waves=1.0)
    return best


def _warps_per_scheduler(context: KernelContext, blocks: int, threads: int, sms: int) -> float:
    """Warps that a scheduler of the fullest SM has at once."""
    sm = context.machine.sm
    fits = _blocks_per_sm(context, threads)
    resident = min(-(-blocks // sms), fits or sm.max_blocks.value)
    return max(1, resident) * -(-threads // sm.warp_size.value) / sm.schedulers.value


def _blocks_per_sm(context: KernelContext, threads: int) -> int | None:
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return None
    return occupancy(
        context.machine.sm,
        threads_per_block=max(1, threads),
        registers_per_thread=registers,
        shared_bytes=shared_bytes(context.program, context.kernel, context.profile) or 0,
    ).blocks_per_sm


def _factor(context: KernelContext, warps_new: float) -> tuple[float, str]:
    """The factor of Eq. 10 for this optimizer, and why."""
    if context.blame is None or warps_new > 1:
        return 1.0, f"a scheduler keeps {warps_new:g} warps, which still get in each other's way"
    crowded = share(context.blame, by_stall(context.blame, _CROWDED))
    reason = (
        f"with at most one warp per scheduler the {percent(crowded)} of samples that are throttled, not "
        "selected or wait for a busy pipe go away"
    )
    return 1 / max(1e-3, 1 - crowded), reason


def _gain_note(blocks: int, threads: int, target: _Split, sms: int) -> str:
    if -(-target.blocks // sms) * target.threads < threads:
        return ""
    return (
        f" The fullest SM keeps {threads} threads, so little is gained: {blocks} blocks nearly fill the GPU."
    )


def _waves(context: KernelContext, blocks: int, threads: int, sms: int) -> float | None:
    fits = _blocks_per_sm(context, threads)
    return blocks / (fits * sms) if fits else None


def _tail(context: KernelContext, profile: KernelProfile, sms: int, now: float) -> Match | Rejection:
    """Smaller blocks fill the last wave better.

    Differs from GPA: it looks at grids smaller than the SMs only.
    """
    blocks, threads = profile.launch.blocks, profile.launch.threads_per_block
    loss_now = math.ceil(now) / now
    ratio = issue_ratio(context)
    half = threads // 2
    waves = None if half < 64 or half % 32 else _waves(context, blocks * 2, half, sms)
    if ratio is None or waves is None or math.ceil(waves) / waves > loss_now - 0.05:
        smaller = f"blocks of {half} threads would not fill the last wave better"
        if waves is None:
            smaller = f"blocks of {threads} threads have no half that is full warps, and two at least"
        return Rejection(code=_CODE, reason=f"{blocks} blocks make {now:.2f} waves on {sms} SMs; {smaller}")
    loss_new = math.ceil(waves) / waves
    per_scheduler = _warps_per_scheduler(context, blocks, threads, sms)
    return Match(
        title="last wave of blocks leaves SMs idle",
        advice=f"{blocks} blocks make {now:.2f} waves on {sms} SMs. Launch {blocks * 2} blocks of {half} "
        "threads "
        f"({waves:.2f} waves), or let a fixed number of blocks loop over the work.",
        regions=(),
        adjustments=(
            Adjustment(
                low=0.0,
                expected=0.5,
                high=1.0,
                reason="blocks that differ in length fill the gaps of the last wave already",
            ),
        ),
        parallel=ParallelTarget(
            warps_now=per_scheduler,
            warps_new=per_scheduler,
            issue_ratio=ratio,
            factor=loss_now / loss_new,
            factor_reason=f"whole waves take {loss_now:.2f} times the work they hold now, {loss_new:.2f} "
            "times then",
            blocks_now=blocks,
            blocks_new=blocks * 2,
            threads_now=threads,
            threads_new=half,
            limiter="grid",
            busy_sms_now=sms,
            busy_sms_new=sms,
        ),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="block-increase",
    name="Block Increase",
    category=Category.PARALLEL,
    match=_match,
    estimate=parallel,
    document=__doc__ or "",
)
