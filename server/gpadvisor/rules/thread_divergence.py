# SPDX-License-Identifier: Apache-2.0
"""Thread Divergence: instructions that few threads of a warp have work in (beyond GPA Table II).

## What it finds

Instructions in which the report counted fewer active threads than the warp has: both sides of a branch that
the threads of a warp take differently, loops that some of them leave early, and predicated code that a warp
goes through although the condition holds for few of its threads or for none. Also what all threads compute
and few of them store: the others fail a condition, before or after the loop, and nothing of it reaches memory
or another thread. Warps that are short because of the block's size are not meant: see Thread Increase.

## Why warps stall

A warp executes what any of its threads needs, one side after the other, and a predicated instruction takes
its issue slot and its turn in the pipe even if no thread is left for it.

## What to try

- Let whole warps agree: index by `threadIdx.x` so that the active threads are neighbours, and let warps
  without work leave or skip the code by a branch on the warp.
- In reductions: several elements per thread before the tree, the last 32 elements by warp shuffles.
- Where blocks overhang the results (34 columns, blocks of 16 x 16): block sides that divide them, or one
  index over all results; the condition of the store around the loop, too.
- Where the edge of a tile is read from global memory: load it with the tile.
- Sort or bin work items by the side they take or by how long they take.
- Loops that a comparison of the data ends: test every n-th pass, with the loads of n passes in flight; or let
  a thread that is done take its next item.
- Short sides: compute both and select.

## Example

```cuda
if (tid % (2 * i) == 0) tile[tid] += tile[tid + i];     // every warp, few threads of each

if (tid < 32) {                                         // one warp, and no barrier
    float value = tile[tid] + tile[tid + 32];
    for (int i = 16; i > 0; i /= 2) value += __shfl_down_sync(~0u, value, i);
}
```

## When this advice is wrong

Predicated instructions cost nothing while no unit is full: then only real branches count here. Where the data
decides which thread does what and cannot be sorted, the loss stays.

## How the gain is estimated

Idle threads are turned into instructions that need not be executed: all of them at the high end, three in
four expected, half of them at the low end; of results that are not stored at least the warps that store none.
Where a unit is busy for 60 % of the time or more, its load falls
by what these instructions put on it, until another unit limits. Where none is, the samples of the divergent
branches shrink by the idle share (Eq. 2). Of a loop that the data end, the waits for its loads count as those
of bfs in the paper's Table III did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reliefs import executions, freed
from gpadvisor.estimators.relieved import as_reliefs, relieved_bound
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import ADU_PIPE, CONSTANT_CACHE, L1_DATA, measured_loads
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.discarded import Discarded, KeptOut, discarded
from gpadvisor.evidence.idle_threads import Idle, idle_threads
from gpadvisor.evidence.lanes import (
    WARP,
    Choice,
    are_neighbours,
    choice_of,
    exit_by_data,
    has_rows,
    loads_in_loop,
    passes_differ,
    stands_in_for_shared,
    threads_per_warp,
    wavefronts,
)
from gpadvisor.evidence.measured import Values
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_place,
    causes,
    kernel_function,
    line_text,
    percent,
    regions,
    samples,
    share,
)
from gpadvisor.evidence.trees import in_level_loop, tree_barriers
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import MemorySpace, Pipe
from gpadvisor.model.profile import KernelProfile, Launch
from gpadvisor.model.program import Program

_CODE: Final = "GPA109"
_ENDS: Final = (constants.MIDDLE, constants.MOST_OF, 1.0)
"""Shares of the idle threads' instructions that go: at the low end, expected, and at the high end."""


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and counts of active threads", looked=False)
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    is_busy = full is not None and full.unit.percent >= constants.BUSY_PERCENT
    found = idle_threads(context.program, context.kernel, profile, edge=constants.EDGE, guarded=is_busy)
    thrown = _thrown_away(context, profile, blame, 0.0 if found is None else found.lost)
    if thrown is not None:
        return thrown
    if found is None:
        return Rejection(
            code=_CODE,
            reason="no instruction has idle threads by a condition of its own, or they were not counted",
        )
    rows = by_place(blame, causes(blame), list(found.shares))
    part = share(blame, rows)
    if found.lost < constants.NOTABLE or part < constants.NOTABLE:
        return Rejection(
            code=_CODE,
            reason=f"idle threads of warps take {percent(found.lost)} of the executed instructions, and "
            f"{percent(part)} of the samples are there",
        )
    what = f"{percent(found.lost)} of what warps execute is for threads without work"
    choice = _choice(context, profile, found)
    if choice is Choice.BOUND and not has_rows(profile.launch):
        return Rejection(code=_CODE, reason="threads beyond the last element: one row of blocks is too many")
    if _NEIGHBOURS in _CURES[choice] and profile.launch.threads_per_block <= WARP:
        return Rejection(code=_CODE, reason="a block is one warp: there is no other to skip the code")
    if choice is Choice.EXIT and not is_busy and loads_in_loop(found.function, found.worst):
        return _early_exit(context, blame, found, rows, what)
    gone = [{place: end * idle for place, idle in found.shares.items()} for end in _ENDS]
    cure = _cure(found, choice, profile.launch)
    return _without(
        context,
        blame,
        gone,
        title="warps execute code that few of their threads need",
        cure=cure,
        advice=_advice(found, cure, threads_per_warp(profile), what),
        what=what,
    )


Gone = Mapping[tuple[FunctionId, int], float]
"""By instruction the share of its executions that a cure saves."""


def _without(
    context: KernelContext,
    blame: Blame,
    gone: Sequence[Gone],
    *,
    title: str,
    cure: str,
    advice: str,
    what: str,
) -> Match:
    """The match of a cure that saves these at the low end, expected, and at the high end."""
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    rows = by_place(blame, causes(blame), list(gone[-1]))
    left = [_left(context, one) for one in gone]
    is_busy = full is not None and full.unit.percent >= constants.BUSY_PERCENT
    bound = relieved_bound(measured, left[0], left[1], left[2], what) if is_busy else None
    return Match(
        title=title,
        cure=cure,
        advice=advice,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(blame, gone),),
        measured_bound=bound,
        relieves=as_reliefs(left[1], left[2]),
    )


def _left(context: KernelContext, gone: Gone) -> dict[str, float]:
    """What stays of each unit's load.

    Accesses to shared memory without a thread take their turn in the data stage, too.
    """
    left = {one.resource: one.remaining for one in freed(context, gone)}
    passes = None if context.profile is None else wavefronts(context.profile)
    executed = executions(context)
    if passes and executed:
        accesses = sum(
            saved * float(executed[function][index])
            for (function, index), saved in gone.items()
            if is_shared(context.program.functions[function].instructions[index])
        )
        left[L1_DATA] = 1 - min(1.0, accesses / passes)
    if executed:
        left |= _left_of_constants(context.program, executed, gone)
    return left


def _left_of_constants(
    program: Program, executed: Mapping[FunctionId, Values], gone: Gone
) -> dict[str, float]:
    """What stays of the loads that take an address into constant memory, and of their pipe."""
    every, saved = Counter[str](), Counter[str]()
    for number, counts in executed.items():
        for index, one in enumerate(program.functions[number].instructions):
            if one.info.pipe is Pipe.ADU:
                units = (ADU_PIPE, CONSTANT_CACHE) if one.info.space is MemorySpace.CONSTANT else (ADU_PIPE,)
                for unit in units:
                    every[unit] += counts[index]
                    saved[unit] += counts[index] * gone.get((number, index), 0.0)
    return {unit: 1 - saved[unit] / load for unit, load in every.items() if load}


def _thrown_away(context: KernelContext, profile: KernelProfile, blame: Blame, idle: float) -> Match | None:
    """Results that are computed and not stored, where they are as much as most of what idle threads take."""
    function, executed = kernel_function(context.program, context.kernel), executions(context)
    found = (
        None if function is None or executed is None else discarded(profile, function, edge=constants.EDGE)
    )
    if found is None or function is None or executed is None:
        return None
    warps = executed[function.id]
    every = sum(float(one.sum()) for one in executed.values())
    lost = sum(part * float(warps[index]) for index, part in found.shares.items()) / every
    places = {(function.id, index): part for index, part in found.shares.items()}
    if lost < max(constants.NOTABLE, constants.MAJORITY * idle):
        return None
    if share(blame, by_place(blame, causes(blame), list(places))) < constants.NOTABLE:
        return None
    least = {
        (function.id, index): max(constants.MIDDLE * part, found.warps[index])
        for index, part in found.shares.items()
    }
    between = {place: constants.MIDDLE * (least[place] + part) for place, part in places.items()}
    what = f"{percent(lost)} of what warps execute is for results that no thread stores"
    saves_warps = sum(part * float(warps[index]) for index, part in found.warps.items()) >= (
        constants.NOTABLE * every
    )
    if not saves_warps and (found.keeps_out is KeptOut.OTHERS or not has_rows(profile.launch)):
        return None
    cure = _cure_of_results(found, profile.launch, whole_warps=saves_warps)
    return _without(
        context,
        blame,
        [least, between, places],
        title="threads compute results that they do not store",
        cure=cure,
        advice=f"{what}: they are computed at {line_text(function, found.worst)}, and the store is at "
        f"{line_text(function, found.stores[0])}. {cure}",
        what=what,
    )


_NEIGHBOURS: Final = "Let the active threads be neighbours, so that whole warps skip the code"
_CURES: Final = {
    Choice.DATA: "Sort or queue what is left to do, so that whole warps have work or skip the code: the data "
    "decide which threads go on.",
    Choice.BOUND: "Let the sides of the blocks divide what these work on, or number that along one index: "
    "{blocks} overhang it.",
    Choice.EDGE: "Load the edge of the tile with it: threads there read global memory where the others read "
    "shared memory.",
    Choice.SPREAD: f"{_NEIGHBOURS}.",
    Choice.FIRST: "Share the work there among all threads of the block: only some side by side have any.",
    Choice.PASSES: "Sort the threads' items by length, or let several threads share one: threads of a warp "
    "run different numbers of passes.",
    Choice.EXIT: "Let a thread that is done take its next item, instead of waiting for the others: the data "
    "decide in which pass it leaves the loop.",
    Choice.UNKNOWN: f"{_NEIGHBOURS}.",
}
_TREE: Final = (
    "give each thread more than one element, and leave the last steps to one warp and its shuffles."
)


def _choice(context: KernelContext, profile: KernelProfile, found: Idle) -> Choice:
    """What parts the threads, by the code; where that does not tell, by how many warps have them."""
    function, index = found.function, found.worst
    if stands_in_for_shared(function, found.group):
        return Choice.EDGE
    if passes_differ(function, index, found.shares_of_function):
        return Choice.PASSES if exit_by_data(function, index) is None else Choice.EXIT
    choice = choice_of(function, found.condition, context.program.form, profile.launch)
    if choice is not Choice.UNKNOWN or found.condition is None:
        return choice
    return Choice.FIRST if are_neighbours(profile, function, found.condition, index) else choice


def _early_exit(context: KernelContext, blame: Blame, found: Idle, rows: Mask, what: str) -> Match:
    """A loop that each thread leaves by its data: until they have come, no later pass may load."""
    where = exit_by_data(found.function, found.worst)
    cure = "Test every n-th pass only, with the loads of n passes in flight."
    return Match(
        title="a loop that threads leave early waits in every pass for what it tests",
        cure=cure,
        advice=f"{what}: threads of a warp leave the loop in different passes, by the comparison at "
        f"{line_text(found.function, found.worst if where is None else where)}, before which no load of the "
        f"next pass starts. {cure}",
        regions=regions(
            blame,
            context.program,
            context.kernel,
            np.flatnonzero(rows & by_class(blame, {DependencyClass.GLOBAL_MEMORY})),
        ),
        adjustments=(_EARLY_EXIT,),
    )


_EARLY_EXIT: Final = Adjustment(
    low=0.0,
    expected=constants.UNROLLED_LEAST,
    high=constants.UNROLLED,
    reason="as of the one kernel of the paper's Table III whose loop could not simply be unrolled (bfs), at "
    "the high end as of the others",
)


def _cure(found: Idle, choice: Choice, launch: Launch) -> str:
    """A tree's last steps have few threads by themselves; elsewhere it counts what parts them."""
    function, index = found.function, found.worst
    if tree_barriers(function) or in_level_loop(function, index):
        if choice is Choice.FIRST:
            return f"{_TREE[0].upper()}{_TREE[1:]}"
        return f"{_NEIGHBOURS}; then {_TREE}"
    return _CURES[choice].format(blocks=_blocks(launch))


def _blocks(launch: Launch) -> str:
    sides = [*launch.block]
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return f"blocks of {' x '.join(map(str, sides))}"


def _advice(found: Idle, cure: str, full: float, what: str) -> str:
    where = line_text(found.function, found.worst if found.condition is None else found.condition)
    by = "at" if found.condition is None else "behind the condition at"
    return (
        f"{what}: {by} {where}, {found.active * full:.1f} of {full:.0f} threads of a warp are active. {cure}"
    )


_TEST_FIRST: Final = "put the condition of the store around the loop, too"


def _cure_of_results(found: Discarded, launch: Launch, *, whole_warps: bool) -> str:
    stored = f"{100 * found.stored:.0f} % of the threads store a result"
    test = f"{_TEST_FIRST}{', without the barriers' if found.has_barriers else ''}"
    if found.keeps_out is KeptOut.OTHERS or not has_rows(launch):
        return f"{test[0].upper()}{test[1:]}, so that whole warps skip it: {stored}."
    cure, why = _RESULTS[found.keeps_out]
    return f"{cure}{f'; {test}' if whole_warps else ''}. {stored}: {_blocks(launch)} {why}."


_RESULTS: Final = {
    KeptOut.BEYOND: (
        "Let the sides of the blocks divide the results, or number these along one index",
        "overhang",
    ),
    KeptOut.LOADERS: (
        "Let a block have as many threads as results, each of which loads several values of its tile",
        "have some for loading alone",
    ),
}


def _adjustment(blame: Blame, gone: Sequence[Gone]) -> Adjustment:
    """The idle share of the matched samples."""
    at = causes(blame)
    weights = [samples(blame, by_place(blame, at, [place])) for place in gone[-1]]
    low, middle, high = (float(np.average([*one.values()], weights=weights)) for one in gone)
    return Adjustment(
        low=low,
        expected=middle,
        high=high,
        reason=f"{percent(high)} of the threads are idle where these samples are",
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="thread-divergence",
    name="Thread Divergence",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    twins=("ThreadDivergence",),
)
