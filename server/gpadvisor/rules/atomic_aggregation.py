# SPDX-License-Identifier: Apache-2.0
"""Atomic Aggregation: atomic operations that could be added up first (beyond GPA Table II).

## What it finds

Waits due to atomic operations and reductions: on device memory where the threads of a warp go to the same
few addresses, so that they could be added up in the warp or the block and sent once; and on device or shared
memory where they are spread, but so many that they set the pace. Without samples: loops in which all threads
of a warp go to one address in every pass, as the machine code shows, and one word to which each thread of a
kernel without loops adds a float.

## Why warps stall

Operations on one address are done one after the other where the data is: in the L2 cache, or in the SM for
shared memory. The queues in front of it fill, loads and stores wait behind them, and blocks cannot end before
their operations have left. A small array lies in few slices of L2, which then do the work of all.

## What to try

- Add up in registers over a loop, then in the warp (`__shfl_down_sync`, `__reduce_add_sync`, or
  `cooperative_groups::reduce`), then in the block, and let one thread send the result.
- Histograms: one copy for each block in shared memory, added to the array in device memory once at the
  block's end, of blocks that loop over the data; or one for each warp where a block's threads collide.
- An order of the data in which neighbouring threads do not meet at one address.

## Example

```cuda
atomicAdd(sum, value);                              // 32 operations on one address for each warp

for (int i = 16; i > 0; i /= 2) value += __shfl_down_sync(~0u, value, i);
if (threadIdx.x % 32 == 0) atomicAdd(sum, value);   // one
```

## When this advice is wrong

Floating-point sums change in their last bits with the order. Where the result of the operation is used (a
ticket, a slot in a queue), the warp's threads need their own shares of it; where one thread of a block takes
it, and for exchanges and counts that wrap (`atomicInc`), the rule is silent. The compiler aggregates integer
additions to one address in a warp by itself; then only the block is left. Copies of a histogram gain nothing
where a block has hardly more elements than the array has words.

## How the gain is estimated

GPA Eq. 2 with the waits that are due to these operations, as far as aggregation removes operations: all but
one in as many as the report shows to meet in a sector, of a histogram all but one for each word and block,
and half of them at the low end. Other waits behind the same queue are not counted: the gain may be larger.
Where the threads of each warp go to one address, the waits for it are most of all, and no unit is busy, the
time falls as the operations do, until the next unit is busy: the low end keeps the other waits if the address
is not the whole grid's. What the operations themselves load on the way to L2 goes with them at the high end;
expected is the geometric mean.

Where the report counted what each slice of L2 took, and the fullest is busy with atomic operations while no
other unit is (one for each cycle is its peak, a float takes three), the waits do not count: whatever waits,
waits behind it, and rules that have more warps or loads wait are silent. The time is then the largest of what
is left of the slice's work, of the next unit, and of the latency of a warp's loads one after the other. Left
is one operation for as many threads as were counted to meet at a word when the warp adds up, one for the
block at the high end; of a histogram the copies that blocks add at their end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.contention import MEETING, ON_THE_WAY, Contention, contention, without_contention
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import measured_loads
from gpadvisor.evidence.access_shapes import AccessShape, Lie, access_shape
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.addresses import is_same_for_all
from gpadvisor.evidence.atomics import FLOATS, Atomic, atomics_of, has_address_from_before, met_by_code
from gpadvisor.evidence.histograms import counters
from gpadvisor.evidence.lanes import threads_per_warp
from gpadvisor.evidence.own_rows import usual_launch
from gpadvisor.evidence.queries import (
    by_place,
    causes,
    kernel_function,
    line_text,
    regions,
    samples,
    share,
    stalled,
)
from gpadvisor.model.advice import (
    Adjustment,
    Category,
    Match,
    MeasuredBound,
    ReducedLoad,
    Rejection,
    StaticSite,
)
from gpadvisor.model.figures import percent
from gpadvisor.model.language import Language
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.sentence import capitalised
from gpadvisor.model.thread_use import CodePlace

_CODE: Final = "GPA110"
_CYCLES: Final = ("lts__cycles_elapsed.max", "gpc__cycles_elapsed.max", "sm__cycles_elapsed.max")
_OVER_LOOP: Final = "add up in a register over the loop, then "


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        reason = "needs samples: machine code does not show how often threads collide"
        return _shown_by_code(context) or Rejection(code=_CODE, reason=reason)
    executed = atomics_of(context.program, context.kernel, profile)
    atomics = [atomic for atomic in executed if atomic.combines]
    if not atomics:
        reason = (
            "exchanges and counts that wrap, done one by one"
            if executed
            else "no atomic operation in the code"
        )
        return Rejection(code=_CODE, reason=reason)
    indices = causes(blame)
    rows = by_place(blame, indices, [atomic.place for atomic in atomics]) & stalled(blame)
    held = contention(context)
    part = share(blame, rows)
    if part < constants.NOTABLE and held is None:
        reason = f"waits due to atomic operations have {percent(part)} of the samples"
        return Rejection(code=_CODE, reason=reason)
    rows_of = {atomic.place: rows & by_place(blame, indices, [atomic.place]) for atomic in atomics}
    weights = {place: samples(blame, of_place) for place, of_place in rows_of.items()}
    if not any(weights.values()):
        weights = {atomic.place: round(atomic.warps) for atomic in atomics}
    worst = max(atomics, key=lambda atomic: weights[atomic.place])
    if worst.returns and _once_a_block(profile, worst):
        reason = "one thread of each block takes a number, which is as few as can be"
        return Rejection(code=_CODE, reason=f"{line_text(worst.function, worst.index)}: {reason}")
    gone = {atomic.place: _gone(profile, atomic) for atomic in atomics}
    mean = sum(weights[place] * gone[place] for place in gone) / sum(weights.values())
    bound = (
        without_contention(context, profile, held) if held else _serial(context, profile, atomics, mean, part)
    )
    return Match(
        title=MEETING if held is not None or _meets(worst) else "atomic operations set the pace",
        cure=_cure(profile, worst, context.language),
        advice=_advice(context, profile, worst, part, held),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(mean, worst),),
        measured_bound=bound,
        reduced_loads=_reduced_loads(context, gone, mean, held),
    )


def _reduced_loads(
    context: KernelContext, gone: Mapping[CodePlace, float], mean: float, held: Contention | None
) -> tuple[ReducedLoad, ...]:
    """The instructions that go; of the load on the way to L2 none may go with them, or all."""
    instructions = freed(context, gone)
    on_the_way = (
        ReducedLoad(resource=name, remaining=1.0 if held is None else 1 - mean, remaining_best=1 - mean)
        for name in sorted(ON_THE_WAY - {load.resource for load in instructions})
    )
    return (*instructions, *on_the_way)


def _shown_by_code(context: KernelContext) -> Match | None:
    """Without samples: an address to which all threads of a warp go, in every pass of a loop or once."""
    function, profile = kernel_function(context.program, context.kernel), context.profile
    if function is None or (profile and profile.launch.threads_per_block < threads_per_warp(profile)):
        return None
    launch = usual_launch(context.kernel, None) if profile is None else profile.launch
    atomic = met_by_code(function, context.program.form, launch)
    if atomic is None:
        return _histogram(context)
    loop = function.innermost_loop(atomic.index)
    over_loop = loop is not None and has_address_from_before(function, atomic.index, loop)
    first = _OVER_LOOP if over_loop else ""
    cure = f"{first}{_in_warp(atomic, context.language)}, then those of the block, and send one"
    whose = "of the grid" if loop is None else "of a warp"
    passes = "" if loop is None else ", in every pass of a loop"
    where = line_text(function, atomic.index)
    return Match(
        title=f"all threads {whose} go to one address{passes}",
        cure=cure,
        advice=f"{capitalised(cure)}: all threads {whose} go to one address at {where}.",
        regions=(),
        static_sites=(
            StaticSite(
                function=function.id, index=atomic.index, detail=function.instructions[atomic.index].opcode
            ),
        ),
    )


def _histogram(context: KernelContext) -> Match | None:
    """Without samples: an array of few words to which all elements are added."""
    function = kernel_function(context.program, context.kernel)
    bins = None if function is None else counters(function)
    if function is None or bins is None:
        return None
    launch = None if context.profile is None else context.profile.launch
    if (
        launch is not None
        and not bins.in_loop
        and launch.blocks * launch.threads_per_block < (constants.FEW_PER_WORD * bins.words)
    ):
        return None
    where = line_text(function, bins.indices[0])
    cure = _privately(bins.words, in_loop=bins.in_loop)
    return Match(
        title="all blocks add to the same few words",
        cure=cure,
        advice=f"{capitalised(cure)}: what was loaded chooses one of at most {bins.words} words in "
        f"device memory, to which all blocks add at {where}.",
        regions=(),
        static_sites=tuple(
            StaticSite(function=function.id, index=index, detail=function.instructions[index].opcode)
            for index in bins.indices
        ),
    )


def _privately(words: int, *, in_loop: bool) -> str:
    cure = (
        f"count in a copy for each block in shared memory ({words} words), and add that to the array once at "
        "the block's end"
    )
    return cure if in_loop else f"{cure}; launch fewer blocks, whose threads loop over the elements"


def _meets(atomic: Atomic) -> bool:
    return atomic.meeting is not None and atomic.meeting >= constants.MEETING


def _once_a_block(profile: KernelProfile, atomic: Atomic) -> bool:
    return (
        atomic.threads is not None
        and atomic.threads <= constants.ABOUT
        and 0 < atomic.warps <= constants.ABOUT * max(1, profile.launch.blocks)
    )


def _gone(profile: KernelProfile, atomic: Atomic) -> float:
    """The share of an instruction's operations that need not be sent when a block sends one."""
    warps = max(1.0, profile.launch.threads_per_block / threads_per_warp(profile))
    if atomic.words is not None and atomic.warps:
        left = atomic.words * profile.launch.blocks / (atomic.warps * (atomic.threads or 1.0))
        return max(constants.LEAST_PART, 1 - left)  # of fewer blocks where they have few elements each
    if _meets(atomic):
        return 1 - 1 / ((atomic.threads or 1.0) * (1.0 if atomic.returns else warps))
    if atomic.threads is not None and atomic.threads < constants.MEETING:  # the warp has added up already
        return 1 - 1 / warps
    return constants.MIDDLE


def _serial(
    context: KernelContext, profile: KernelProfile, atomics: list[Atomic], gone: float, part: float
) -> MeasuredBound | None:
    """What is left where the warps' threads meet, and that alone takes the time.

    The whole grid's operations on one word are done one after the other. Where each warp or block has a word
    of its own, the waits that are due to its operations go at least (``part`` of the samples, Eq. 2), and
    what waits behind the same queue besides.
    """
    cycles = next((value for name in _CYCLES if (value := profile.metric(name))), None)
    shared = [atomic for atomic in atomics if is_same_for_all(atomic.function, atomic.index)]
    alike = shared or [
        atomic
        for atomic in atomics
        if _meets(atomic)
        and not is_shared(atomic.function.instructions[atomic.index])
        and access_shape(atomic.function, atomic.index, context.program.form, profile.launch)
        == AccessShape(Lie.SAME)
    ]
    operations = sum(atomic.warps * (atomic.threads or 1.0) for atomic in alike)
    loads = measured_loads(context)
    full = busiest_after(loads, ())
    if (
        full is None
        or cycles is None
        or operations < constants.SERIAL * cycles
        or full.load > constants.SERIAL
        or (not shared and part < constants.MAJORITY)
    ):
        return None
    after = 1 - gone
    by_warp = max((1 / (atomic.threads or 1.0) for atomic in atomics if _meets(atomic)), default=0.0)
    # The operations load the way to L2, too: of that load none may go with them, or all.
    busiest = busiest_after([utilisation for utilisation in loads if utilisation.name not in ON_THE_WAY], ())
    least = max(after, full.load if busiest is None else busiest.load, constants.LEAST_TIME)
    low = 1 / (max(2 * after, by_warp) + full.load)
    words = "the whole grid shares" if shared else "all threads of a warp share"
    return MeasuredBound(
        low=low if shared else min(low, 1 / (1 - part * gone)),
        expected=float(1 / np.sqrt((after + full.load) * least)),
        high=1 / least,
        reason=f"{operations / 1e6:,.1f} M operations on words that {words} take {cycles / 1e6:,.1f} M "
        f"cycles, while no unit is busier than {percent(full.load, 0)} ({full.unit.metric}), which may be "
        f"their work, too; {percent(after)} of them are left"
        + ("" if shared else "; at least their own waits go, else what waits behind them, too"),
        elapsed=True,
    )


def _advice(
    context: KernelContext, profile: KernelProfile, worst: Atomic, part: float, held: Contention | None
) -> str:
    instruction = worst.function.instructions[worst.index]
    where = f"{instruction.opcode} {line_text(worst.function, worst.index)}"
    sentence = f"{percent(part)} of the samples wait for atomic operations, most of them for {where}"
    if part < constants.NOTABLE:
        sentence = f"Most of the atomic operations are {where}"
    if _meets(worst):
        sentence += f", where {worst.threads:.0f} threads of a warp go to the same few words"
    elif worst.threads is not None and worst.threads < constants.MEETING:
        sentence += ", which one thread of each warp does"
    if held is not None:
        sentence += f"; {held.words}, and loads wait behind them"
    return f"{sentence}: {_cure(profile, worst, context.language)}."


def _cure(profile: KernelProfile, worst: Atomic, language: Language) -> str:
    shared = is_shared(worst.function.instructions[worst.index])
    if worst.repeats:
        then = "or give each warp a copy of its own" if shared else "then those of the block, and send one"
        return f"combine the values of a warp first, {then}: threads that meet repeat a compare-and-swap"
    if worst.returns:
        return (
            "count in the warp or the block, add once for all of them, and pass the base on"
            f"{terms.BALLOT.of(language)}: the result is used, perhaps as a place to write to"
        )
    if worst.words is not None:
        return _privately(worst.words, in_loop=worst.in_loop)
    if _meets(worst) and worst.by_data:
        return (
            "add up what meets first: in a copy of the array for each block in shared memory, if it fits, or "
            "over neighbouring threads that go to one address"
        )
    if _meets(worst):
        first = _OVER_LOOP if worst.passes >= constants.TWICE else ""
        return f"{first}{_in_warp(worst, language)}, then those of the block, and send one"
    if worst.threads is not None and worst.threads < constants.MEETING:
        if _once_a_block(profile, worst):
            return (
                "give each thread more elements (fewer blocks, a loop over the grid), so that fewer are sent"
            )
        return "combine in the block, or over several elements of a thread, and send less often"
    if shared:
        return "give each warp a copy of its own, or combine what meets before it is sent"
    return (
        "keep a copy for each block in shared memory, if it fits, and combine it at the end, or sort what "
        "goes to the same address"
    )


def _in_warp(worst: Atomic, language: Language) -> str:
    modifiers = worst.modifiers
    intrinsic = next(
        (name.lower() for name in ("MIN", "MAX", "AND", "OR", "XOR") if name in modifiers), "add"
    )
    how = "by shuffles"
    if FLOATS.isdisjoint(modifiers):
        how += terms.WARP_REDUCTION.of(language, operation=intrinsic)
    if intrinsic == "add":
        return f"add the values of a warp up {how}"
    return f"combine the values of a warp {how}"


def _adjustment(gone: float, worst: Atomic) -> Adjustment:
    counted = "counted" if worst.meeting is not None else "not counted"
    return Adjustment(
        low=constants.LEAST_PART * gone,
        expected=gone,
        high=1.0,
        reason=f"{percent(gone)} of the operations need not be sent (how many meet was {counted})",
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="atomic-aggregation",
    name="Atomic Aggregation",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.ATOMICS_GAVE,
    document=__doc__ or "",
)
