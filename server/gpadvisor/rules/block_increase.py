# SPDX-License-Identifier: Apache-2.0
"""Block Increase: a grid that leaves SMs without work (GPA Table II).

## What it finds

Fewer blocks than SMs, or blocks that are all there at once, of kernels with a loop whose passes could be
blocks of their own: each stores results, and nothing but counters goes from one to the next. Loops that only
add up, or keep the largest, which threads could share: a warp for each row that a thread goes along now, else
as many as fill the GPU. Blocks of one warp that leave an SM nearly empty. Other grids with fewer blocks than
SMs; grids that fit on the GPU at once with room to spare, of kernels whose threads loop with the size of the
grid as step; a fullest SM that has more blocks than the mean, while the others wait; and a last wave that
fills a part of the GPU. It names a launch: how many blocks of how many threads, and how many SMs get work
then. Few blocks that take no longer than a launch does are told as that. Grids of several waves of which most
warps were counted to leave at their first test, by their place in the grid: fewer blocks then, as many as
have work. And grids of which a few blocks run long while most SMs have nothing left. Of a launch of which one
warp works while all others have left, the rows that its threads go along, each for a warp.

## Why warps stall

A block stays on one SM. With 20 blocks on an 80-SM GPU, 60 SMs do nothing while the warps of the other 20
compete for their schedulers.

## What to try

Where passes need nothing of each other, take the loop's counter from ``blockIdx.z``. Where a loop steps by
``gridDim.x * blockDim.x``, launch as many blocks as fit: the same work is done by more threads. Where each
thread has its own element, make blocks smaller and launch more of them, with the same number of threads in
all; one warp for each scheduler (128 threads) is enough to issue. Where a block cannot be split because its
threads work together, divide the problem along another dimension (the inner loop of a reduction, split-k), or
run independent kernels at once.

## Example

```cuda
const int threads = 512;                       // 40 blocks on 108 SMs
const int threads = 128;                       // 160 blocks
kernel<<<(n + threads - 1) / threads, threads>>>(...);
```

## When this advice is wrong

What may change is read from the machine code. Passes that are made blocks repeat what stands before the loop;
that one writes what another reads of the same array is told from the parameters that addresses are made of,
and pointers may point anywhere. A kernel that keeps one result per block needs as many places for them. If
threads of a block share data through caches, smaller blocks share less and read more. If the kernel takes a
few microseconds, the launch costs as much. Warps that hardly wait for each other gain nothing from an SM of
their own: then more threads are missing, not more SMs; without samples that is told where no unit of the
SMs that have work is full. Sums of floating-point numbers that threads share are added in another order,
which changes their last digits.

## How the gain is estimated

Blocks that are only split: the samples that waited for other warps of the SM (throttled, not selected, pipe
busy) go as far as warps leave the scheduler, at most what GPA Eq. 10 gives; the fullest SM bounds the gain.
Where a unit of the SM is at its limit, or its L1 is busy for 60 % of the time, whose queue shows as waits for
data, the unit's time falls with the warps that share it. How a kernel's own work is divided nobody knows:
where its warps do not wait for one another, that is told without a figure, and first where half of the SMs or
more have nothing. Of a simulated run with a loop whose passes may be divided it has one, as of blocks that
are all there at once and leave each SM a third of its warps or less: half of the time at the least, three
quarters expected, and all at most go as warps on all SMs share them, as many as now at the low end, else as
many as there is room for. Of blocks that leave at once the samples and the work before their test go, by Eq.
2; where they hardly have any, what such blocks cost has no figure. More warps at once, by more threads, by
passes that become blocks or are shared (rows then take the fewest sectors, too), or by two warps for one: the
waits of a warp are hidden as the issue rate of Eqs. 8 and 9 rises from the warps counted now, the time of the
units stays, and both overlap. A fuller fullest SM: the blocks of the fullest SM over the mean, at most what
was idle; of threads that loop over the grid the waves, rounded up, over the waves, as far as warps were
missing.
"""

from __future__ import annotations

from typing import Final

from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.divided_work import (
    divided,
    lone_warp,
    long_blocks,
    one_thread,
    one_warp,
    shared_loops,
    wider_blocks,
)
from gpadvisor.estimators.idle_blocks import blocks_without_work, launch_or_samples
from gpadvisor.estimators.idle_sms import crowded_share, divided_part, nearly_empty, spread_target
from gpadvisor.estimators.launches import (
    ONE_THREAD,
    LaunchShape,
    best_split,
    held_warps,
    is_as_short_as_a_launch,
    shape,
    sizes,
)
from gpadvisor.estimators.parallel import issue_ratio, shared_unit
from gpadvisor.estimators.shared_passes import rows_of_a_lone_warp, shared_passes
from gpadvisor.estimators.uneven_grids import fullest_sm, here, is_even, last_wave, overfull, tail
from gpadvisor.evidence.launches import Freedom, freedom
from gpadvisor.evidence.queries import counted, kernel_functions
from gpadvisor.model.advice import Category, Match, ParallelTarget, Rejection
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.sentence import uncapitalised
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_launch

_CODE: Final = "GPA301"
_PLACES: Final = " What each block keeps for itself needs as many places."


def _match(context: KernelContext) -> Match | Rejection:
    profile = context.profile
    if profile is None or profile.launch.failed:
        reason = f"needs a launch{': machine code has no grid' if profile is None else ' that was measured'}"
        return Rejection(code=_CODE, reason=reason, looked=False)
    if not (sms := profile.device.sms):
        return Rejection(code=_CODE, reason="the profile does not say how many SMs the GPU has")
    launch = profile.launch
    launch_shape = shape(context, profile, launch.blocks, launch.threads_per_block)
    if launch_shape is None or not launch_shape.fits:
        return Rejection(code=_CODE, reason="the profile does not say the block size or the registers")
    if launch_shape.blocks * launch_shape.threads == 1:
        return one_thread(context, profile) or Rejection(code=_CODE, reason=ONE_THREAD)
    for idle in (rows_of_a_lone_warp, lone_warp, long_blocks, blocks_without_work):
        if match := idle(context, profile, launch_shape):
            return match
    ratio = issue_ratio(context)
    ratio = 0.0 if ratio is None and context.blame is None else ratio  # nothing is estimated then
    if ratio is None:
        return Rejection(code=_CODE, reason="the profile does not count issued samples")
    waves = launch_shape.waves(sms)
    if waves > 1:
        return _waves(context, profile, launch_shape, ratio)
    work = _all_work(context, launch_shape)
    if launch_shape.blocks < sms and work:
        return Rejection(code=_CODE, reason=f"{here(launch_shape, sms)}: {work}")
    free = freedom(context.program, context.kernel, profile, thread_use(context.program, context.kernel))
    if launch_shape.blocks < sms and is_as_short_as_a_launch(profile):
        return _short(context, profile, launch_shape, ratio)
    if free.any_total and waves < 1:
        return _more_blocks(context, profile, launch_shape, free, ratio)
    return _at_once(context, profile, launch_shape, free, ratio)


def _waves(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, ratio: float
) -> Match | Rejection:
    """Blocks that come after others: SMs may wait for the fullest, or for the last ones."""
    sms = profile.sms
    even = is_even(profile, launch_shape, sms)
    if even and tail(context, profile, launch_shape) < constants.SHOWN:
        over = percent(overfull(launch_shape.blocks, sms) - 1)
        reason = f"{here(launch_shape, sms)}: every SM has work, the fullest {over} over the mean"
        return Rejection(code=_CODE, reason=reason)
    free = freedom(context.program, context.kernel, profile, thread_use(context.program, context.kernel))
    if even and not free.any_total:
        return Rejection(code=_CODE, reason=f"{last_wave(launch_shape, sms)}; {free.grid}")
    result = fullest_sm(context, profile, launch_shape, free, ratio)
    return result if isinstance(result, Match) else Rejection(code=_CODE, reason=result)


def _at_once(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, free: Freedom, ratio: float
) -> Match | Rejection:
    """All blocks are there at once: what each does may be divided among more of them, or among more warps."""
    sms = profile.sms
    match = divided(context, profile, launch_shape, ratio)
    if match is None and free.block is None and launch_shape.blocks < sms:
        match = shared_passes(context, profile, launch_shape, ratio)
    if match is None and launch_shape.blocks < sms:
        return _fewer_than_sms(context, profile, launch_shape, free, ratio)
    why = "" if free.grid is None else f"; {free.grid}"
    uneven = (
        None
        if is_even(profile, launch_shape, sms)
        else fullest_sm(context, profile, launch_shape, free, ratio)
    )
    return (
        match
        or one_warp(context, profile, launch_shape, ratio)
        or (uneven if isinstance(uneven, Match) else None)
        or nearly_empty(context, profile, launch_shape, ratio)
        or Rejection(
            code=_CODE,
            reason=f"{here(launch_shape, sms)}: every SM has work, and all blocks are there at once{why}",
        )
    )


def _all_work(context: KernelContext, launch_shape: LaunchShape) -> str:
    """Why nothing is left to divide: as many threads as an SM has lanes, none of which repeats anything."""
    threads, sm = launch_shape.blocks * launch_shape.threads, context.machine.sm
    functions = kernel_functions(context.program, context.kernel)
    if not functions or threads > sm.schedulers.value * sm.warp_size.value or _loops(context):
        return ""
    return f"its {counted(threads, 'thread')} without a loop are all the work there is"


def _loops(context: KernelContext) -> bool:
    return any(function.loops for function in kernel_functions(context.program, context.kernel))


def _short(context: KernelContext, profile: KernelProfile, old: LaunchShape, ratio: float) -> Match:
    """Few blocks that are done as soon as a launch is: other blocks give nothing, fewer launches do."""
    sms, time = profile.sms, (profile.launch.duration_ns or 0.0) / 1000
    return Match(
        title=f"{counted(old.blocks, 'block')}, done in {time:.1f} us: about what a launch itself takes",
        advice="Give each launch more work (a larger batch), or join launches that follow each other in one "
        f"kernel or a CUDA graph: {counted(old.blocks, 'block')} of {counted(old.threads, 'thread')} take "
        f"{time:.1f} us, about what a launch takes, and leave {sms - old.blocks} of {sms} SMs without work.",
        cure="Give each launch more work (a larger batch), or join launches that follow each other in one "
        "kernel or a CUDA graph",
        regions=(),
        # Samples tell what warps wait for; between launches there are none.
        parallel=spread_target(context, old, None, sms, ratio) if context.blame is None else None,
    )


def _more_blocks(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, free: Freedom, ratio: float
) -> Match | Rejection:
    """More threads in all, where they share the elements by a loop."""
    sms = profile.sms
    new = shape(context, profile, launch_shape.fits * sms, launch_shape.threads)
    if new is None or new.warps * new.busy_sms <= launch_shape.warps * launch_shape.busy_sms:
        return Rejection(
            code=_CODE, reason=f"{counted(launch_shape.blocks, 'block')} fill the {sms} SMs already"
        )
    held = held_warps(context, profile)
    change = f"Launch {new.blocks} blocks instead of {launch_shape.blocks}"
    places = _PLACES if free.per_block else ""
    return Match(
        title=f"{counted(launch_shape.blocks, 'block')} for {sms} SMs that hold {new.blocks}",
        cure=f"{change}.{places}",
        advice=f"{change}, {counted(new.fits, 'block')} for each "
        f"of the {sms} SMs: its threads loop by the size of the grid, so more of them share the elements."
        + (
            f" The {launch_shape.blocks} blocks reach {launch_shape.busy_sms} of {sms} SMs."
            if launch_shape.busy_sms < sms
            else ""
        )
        + places,
        regions=(),
        parallel=ParallelTarget(
            **sizes(launch_shape, new),
            warps_new=new.warps,
            issue_ratio=ratio,
            factor=new.warps / launch_shape.warps * new.busy_sms / launch_shape.busy_sms,
            factor_reason="the same elements are shared by more threads at once",
            limiter="grid",
            held_now=held,
            held_low=None if held is None else new.warps * min(1.0, held / launch_shape.warps),
        ),
    )


def _fewer_than_sms(
    context: KernelContext, profile: KernelProfile, launch_shape: LaunchShape, free: Freedom, ratio: float
) -> Match | Rejection:
    """Fewer blocks than SMs, with threads that each have their own elements."""
    sms, sm = profile.sms, context.machine.sm
    # A warp for each scheduler may issue all the time; of a unit that they share each SM has one.
    enough = sm.warp_size.value * (1 if shared_unit(context) else sm.schedulers.value)
    new = None
    if free.split is None and launch_shape.threads > enough:
        new = shape(context, profile, *best_split(launch_shape.blocks, launch_shape.threads, sms, enough))
    if new is None or new.blocks <= launch_shape.blocks:
        new = launch_shape
    crowded = crowded_share(context) > constants.NOTABLE
    if new is not launch_shape and _loops(context):
        spread = spread_target(context, launch_shape, None, sms, ratio)
        if match := shared_loops(context, profile, launch_shape, new, spread, crowded=crowded):
            return match
    cure, facts = _split_words(context, launch_shape, new, sms, free)
    # What a division of the kernel's own work gives is up to how it is done, but for warps that wait in turn.
    mostly_idle = 2 * launch_shape.blocks <= sms
    unknown = context.blame is not None and new is launch_shape and mostly_idle and not crowded
    part = divided_part(context) if unknown else ()
    more_threads, few_warps = _missing_threads(context, launch_shape)
    wider = wider_blocks(context, profile, new) if more_threads and new is launch_shape else ""
    if wider:
        cure, more_threads = f"{wider}Or {uncapitalised(cure)}", ""
    return Match(
        title=f"{counted(launch_shape.blocks, 'block')} for {counted(sms, 'SM')}",
        cure=cure + more_threads,
        advice=f"{facts} {cure}{few_warps}{more_threads}",
        regions=(),
        adjustments=part,
        parallel=None
        if unknown and not part
        else spread_target(
            context, launch_shape, new if new is not launch_shape else None, sms, ratio, divided=bool(part)
        ),
        leads=mostly_idle and (unknown or context.blame is None),
    )


def _split_words(
    context: KernelContext, old: LaunchShape, new: LaunchShape, sms: int, free: Freedom
) -> tuple[str, str]:
    """The change with its conditions, and what is known of the launch."""
    if new is not old:
        unknown = " Without machine code nothing tells whether its threads work together."
        places = _PLACES if free.per_block else ""
        cure = (
            f"Launch {new.blocks} blocks of {new.threads} threads instead of {old.blocks} of {old.threads}."
            + ("" if free.code else unknown)
            + places
            + (" The kernel has the block's size as a constant: change it, too." if free.compiled else "")
        )
        facts = f"{old.busy_sms} of {sms} SMs have work, {new.busy_sms} would."
        return cure, facts + _gain_note(old, new, sms)
    if free.split is not None:
        why = f"Its blocks cannot be split ({free.split})"
    else:
        why = (
            f"Its blocks of {counted(old.threads, 'thread')} are too small to split: that is no more than "
            f"one warp{'' if shared_unit(context) else ' for each of the schedulers'}"
        )
    cure = (
        "Divide what a block does along another dimension (its loop, its tile), or run independent kernels "
        "at the same time."
    )
    return cure, f"{sms - old.blocks} of {sms} SMs have no work. {why}."


def _missing_threads(context: KernelContext, launch_shape: LaunchShape) -> tuple[str, str]:
    """What else to do where warps do not stand in each other's way, and how it shows."""
    if context.blame is None:
        return "", ""
    crowded = crowded_share(context)
    if crowded > constants.NOTABLE or shared_unit(context):
        return "", ""
    warps = launch_shape.blocks * -(-launch_shape.threads // context.machine.sm.warp_size.value)
    alone = f"hardly wait for one another ({percent(crowded)} of the samples)"
    return (
        " Let several threads share what one does now in its loop.",
        f" Its warps {alone}, so SMs of their own give them little: {counted(warps, 'warp')} are too few.",
    )


def _gain_note(old: LaunchShape, new: LaunchShape, sms: int) -> str:
    if -(-new.blocks // sms) * new.threads < old.threads:
        return ""
    return (
        f" The fullest SM keeps {old.threads} threads, so little is gained: {old.blocks} blocks nearly fill "
        "the GPU."
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="block-increase",
    name="Block Increase",
    category=Category.PARALLEL,
    match=_match,
    estimate=launch_or_samples,
    usual_gain=constants.BLOCKS_GAVE,
    document=__doc__ or "",
    edits=(SiteKind.LAUNCH_BOUNDS, SiteKind.BLOCK_SIZE),
    naming=name_launch,
    twins=("LaunchConfiguration", "WorkloadImbalance"),
)
