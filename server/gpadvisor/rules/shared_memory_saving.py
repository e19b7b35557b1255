# SPDX-License-Identifier: Apache-2.0
"""Shared Memory Saving: blocks that keep each other from an SM by shared memory (beyond GPA Table II).

## What it finds

Launches of which an SM holds less than half of the warps it could, because blocks reserve its shared memory,
where no unit is full and more blocks wait for a place. It speaks where there is a step to take: a block that
reserves more than twice the bytes that its threads write (arrays sized for the largest case), blocks smaller
than their arrays have room for, or a few bytes that keep one more block from each SM.

## Why warps stall

An SM has 64 to 228 KB of shared memory, and a block takes all that it reserves, used or not. With two warps
on each scheduler nobody is there to issue while they wait, for memory or for their own last instruction.

## What to try

- Size the arrays by what the launch needs: `extern __shared__` with the size as third launch argument, or a
  template parameter.
- Launch larger blocks where an array has room for the values of more threads: the same bytes then carry more
  warps.
- Take the few bytes off that keep the next block out: a narrower type, a flag that could stand in a register.

## Example

```cuda
__shared__ float tile[4 * 34 * 34];                  // for the widest filter: 18 KB, 4 blocks on an SM

extern __shared__ float tile[];                      // what this filter needs: 3 KB
convolve<<<grid, block, channels * width * width * sizeof(float)>>>(...);
```

## When this advice is wrong

Bytes are counted as an average over the blocks: where some need much more than others, the launch needs the
most. Tiles that are deep on purpose, for tensor cores or copies in flight, hide latency by themselves; they
write what they reserve, and the rule is silent. An array whose size the compiler does not know costs an
addition where it was free.

## How the gain is estimated

As for Thread Increase (GPA302): the paper's value is GPA Eq. 10 with the warps that fit then, the expected
one starts from the warps counted, keeps the time of the units and lets what warps wait for themselves fall as
the issue rate of Eqs. 8 and 9 rises. At the low end new blocks are as often missing as now.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.analyzer.occupancy import SHARED_MEMORY
from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.launches import (
    LaunchShape,
    held_warps,
    is_as_short_as_a_launch,
    next_block,
    shape,
    sizes,
)
from gpadvisor.estimators.parallel import issue_ratio, parallel
from gpadvisor.estimators.passes import passes
from gpadvisor.estimators.utilisation import utilisations
from gpadvisor.evidence.launches import freedom
from gpadvisor.evidence.measured import shared_bytes
from gpadvisor.evidence.queries import counted
from gpadvisor.evidence.shared_use import WrittenBytes, written_bytes
from gpadvisor.model.advice import Category, Match, ParallelTarget, Rejection
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.source.naming import name_launch

_CODE: Final = "GPA303"
_USUAL: Final = 256
"""Threads of a larger block, where its arrays have room for as many."""


_FEW_BLOCKS: Final = 4
"""On an SM: beside more of them one more block is less than a quarter more warps."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What to do, and what an SM holds then."""

    new: LaunchShape
    cure: str
    facts: str


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or profile.launch.failed:
        reason = f"needs a launch{': machine code has none' if profile is None else ' that was measured'}"
        return Rejection(code=_CODE, reason=reason, looked=False)
    launch, sms = profile.launch, profile.device.sms
    launch_shape = shape(context, profile, launch.blocks, launch.threads_per_block)
    reserved = shared_bytes(context.program, context.kernel, profile)
    if launch_shape is None or not launch_shape.fits or not sms or not reserved:
        return Rejection(
            code=_CODE, reason="blocks reserve no shared memory, or the profile does not say how much"
        )
    why = _not_held(context, profile, launch_shape)
    if why:
        return Rejection(code=_CODE, reason=why)
    ratio = issue_ratio(context)
    if ratio is None and context.blame is not None:
        return Rejection(code=_CODE, reason="the profile does not count issued samples")
    written = written_bytes(context.program, context.kernel, profile)
    change = None if written is None else _unused(context, profile, launch_shape, reserved, written)
    change = change or _near(context, profile, launch_shape, reserved)
    if change is None:
        has = "" if written is None else f", of which its threads write up to {written.most:,.0f}"
        reason = f"{_holds(context, launch_shape, reserved)}{has}: no few bytes less let one more block in"
        return Rejection(code=_CODE, reason=reason)
    return _match_of_change(context, profile, launch_shape, change, ratio or 0.0)


def _not_held(context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape) -> str:
    """Why shared memory is not what costs time; empty where it may be."""
    most = context.machine.sm.max_warps.value / context.machine.sm.schedulers.value
    if launch_shape.limiter is None or SHARED_MEMORY not in launch_shape.limiter:
        return "shared memory is not what limits the blocks of an SM"
    if (held_warps(context, profile) or launch_shape.warps) >= constants.MAJORITY * most:
        return f"an SM holds {percent(launch_shape.warps / most)} of its warps, whatever limits them"
    if launch_shape.waves(profile.sms) <= 1:
        return "all blocks of the grid are on the SMs at once: there is none for a place that would be free"
    full = max(utilisations(profile), key=lambda utilisation: utilisation.percent, default=None)
    if full is not None and full.percent >= constants.HIGH_PERCENT:
        return f"{full.name} is at {percentage(full.percent)} of its peak: more warps would wait for it"
    if context.evidence is not Evidence.MODELLED and is_as_short_as_a_launch(profile):
        return "the kernel is done as soon as a launch is, whatever an SM holds"
    if context.blame is None and passes(context) is not None:
        return "its accesses take more passes of L1 than they need: that is first"
    return ""


def _unused(
    context: KernelContext, profile: KernelProfile, old: LaunchShape, reserved: int, written: WrittenBytes
) -> _Change | None:
    """Blocks that reserve much more than they write: larger ones in the same bytes, or fewer bytes."""
    if written.most > constants.MAJORITY * reserved or not written.most:
        return None
    launch = profile.launch
    wrote = f"of {reserved:,} bytes that a block of {old.threads} threads reserves, {written.most:,.0f} are"
    use = thread_use(context.program, context.kernel)
    free = freedom(context.program, context.kernel, profile, use)
    room = min(_USUAL, int(reserved / written.most) * old.threads)
    grows = written.by_thread and use.sized and use.roles is None and (free.any_total or free.block is None)
    if (
        not launch.dynamic_shared_bytes
        and room >= 2 * old.threads
        and (grows or (free.tile and free.any_total))
    ):
        larger = shape(context, profile, launch.blocks, room)
        if larger is not None and larger.warps >= old.warps * constants.UNSURE:
            return _Change(
                larger,
                f"Launch blocks of {room} threads instead of {old.threads}: the {reserved:,} bytes of shared "
                f"memory that each reserves have room for the values of "
                f"{int(reserved / written.most) * old.threads:,}",
                f"{wrote} written",
            )
    bytes_new = -(-int(written.most) // 4) * 4
    smaller = replace(launch, static_shared_bytes=bytes_new, dynamic_shared_bytes=0)
    new = shape(context, replace(profile, launch=smaller), old.blocks, old.threads)
    if new is None or new.warps < old.warps * constants.UNSURE:
        return None
    how = (
        "pass that size at the launch"
        if launch.dynamic_shared_bytes
        else terms.SIZED_ARRAYS.of(context.language)
    )
    return _Change(
        new,
        f"Reserve the shared memory that this launch uses, about {bytes_new:,} of {reserved:,} bytes for "
        f"each block: {how}, and an SM holds {counted(new.fits, 'block')} instead of {old.fits}",
        f"{wrote} written, on average",
    )


def _near(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, reserved: int
) -> _Change | None:
    """A few bytes less per block, and one more of them fits."""
    step = next_block(context, profile)
    if step is None or step.shared_bytes is None or step.registers is not None:
        return None
    if launch_shape.fits > _FEW_BLOCKS or step.shared_bytes * constants.UNSURE < reserved:
        return None
    smaller = replace(profile.launch, static_shared_bytes=step.shared_bytes, dynamic_shared_bytes=0)
    new = shape(context, replace(profile, launch=smaller), launch_shape.blocks, launch_shape.threads)
    if new is None or new.resident <= launch_shape.resident:
        return None
    return _Change(
        new,
        f"Take {reserved - step.shared_bytes:,} bytes off the shared memory of each block: with at most "
        f"{step.shared_bytes:,} of {reserved:,} an SM holds {counted(new.fits, 'block')} instead of "
        f"{launch_shape.fits}",
        "that is all one more block needs",
    )


def _holds(context: KernelContext, old: LaunchShape, reserved: int) -> str:
    sm = context.machine.sm
    return (
        f"an SM holds {round(old.warps * sm.schedulers.value)} of {sm.max_warps.value} warps, as each block "
        f"reserves {reserved:,} bytes of shared memory"
    )


def _match_of_change(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, change: _Change, ratio: float
) -> Match:
    new, held = change.new, held_warps(context, profile)
    schedulers, most = context.machine.sm.schedulers.value, context.machine.sm.max_warps.value
    share = 1.0 if held is None else min(1.0, held / launch_shape.warps)
    growth = new.warps / launch_shape.warps
    return Match(
        title=f"shared memory keeps an SM at {round(launch_shape.warps * schedulers)} of {most} warps",
        advice=f"{change.cure} ({round(new.warps * schedulers)} of {most} warps): {change.facts}.",
        cure=f"{change.cure}.",
        regions=(),
        parallel=ParallelTarget(
            **sizes(launch_shape, new),
            warps_new=new.warps * (1 + share) / 2,
            issue_ratio=ratio,
            factor=growth,
            factor_reason=f"the same work in all is spread over {growth:.2f} times the warps at once",
            limiter=launch_shape.limiter,
            held_now=held,
            held_low=new.warps * share,
        ),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="shared-memory-saving",
    name="Shared Memory Saving",
    category=Category.PARALLEL,
    match=_match,
    estimate=parallel,
    document=__doc__ or "",
    naming=name_launch,
    twins=("Occupancy",),
)
