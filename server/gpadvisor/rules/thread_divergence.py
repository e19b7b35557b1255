# SPDX-License-Identifier: Apache-2.0
"""Thread Divergence: instructions that few threads of a warp have work in (beyond GPA Table II).

## What it finds

Instructions in which the report counted fewer active threads than the warp has: both sides of a branch that
the threads of a warp take differently, loops that some of them leave early, and predicated code that a warp
goes through although the condition holds for few of its threads or for none. Also what all threads compute
and few of them store: the others fail a condition, before or after the loop, and nothing of it reaches memory
or another thread. And grids of many more threads than elements. Warps that are short because of the block's
size are not meant: see Thread Increase.

## Why warps stall

A warp executes what any of its threads needs, one side after the other, and a predicated instruction takes
its issue slot and its turn in the pipe even if no thread is left for it.

## What to try

- Let whole warps agree: index by `threadIdx.x` so that the active threads are neighbours, and let warps
  without work leave or skip the code by a branch on the warp.
- In reductions: several elements per thread before the tree, the last 32 elements by warp shuffles.
- Where blocks overhang the results (34 columns, blocks of 16 x 16): block sides that divide them, or one
  index over all results; the condition of the store around the loop, too.
- Where most threads have no element: a grid of `(n + threads - 1) / threads` blocks.
- Where the edge of a tile is read from global memory: load it with the tile.
- Sort or bin work items by the side they take or by how long they take.
- Loops that a comparison of the data ends: test every n-th pass, with the loads of n passes in flight
  (where passes write, only load ahead); or let a thread that is done take its next item.
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
four expected, half of them at the low end; of results that are not stored at least the warps that store none;
of threads that need not be launched all, and three in four at the low end. Of instructions under a
predicate nothing goes before the high end where the cure is that whole warps skip the code: the compiler
puts predicates on a few instructions whatever the warps do, and these are issued for no thread, too. Where
a unit is busy for 60 % of the time or more, its load falls by what these instructions put on it, until
another unit limits. Where none is, the samples of the divergent branches shrink by the idle share (Eq. 2); of
threads that their numbers keep out of code with no other side only those that waited for other warps, as
warps that wait at the same time are done no earlier where they are fewer.
Of a loop that the data end, the waits for its loads count as those of bfs in the paper's Table III did.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.barrier_words import waits_for_levels
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.idle_executions import without
from gpadvisor.estimators.matched import waiting_for_others
from gpadvisor.estimators.reduced_loads import executions
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import measured_loads
from gpadvisor.evidence.discarded import Discarded, KeptOut, discarded
from gpadvisor.evidence.idle_threads import Idle, has_another_side, idle_threads
from gpadvisor.evidence.lanes import (
    Choice,
    are_neighbours,
    choice_of,
    exit_by_data,
    has_rows,
    loads_in_loop,
    passes_are_alike,
    passes_differ,
    stands_in_for_shared,
    threads_per_warp,
    writes_in_loop,
)
from gpadvisor.evidence.oversized_grids import edge_by_chance, oversized
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_place,
    causes,
    kernel_function,
    line_text,
    regions,
    share,
)
from gpadvisor.evidence.trees import in_level_loop, tree_barriers
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile, Launch
from gpadvisor.model.sentence import capitalised

_CODE: Final = "GPA109"
_ENDS: Final = (constants.LEAST_PART, constants.MOST_OF, 1.0)
"""Shares of the idle threads' instructions that go: at the low end, expected, and at the high end."""
_SPARED: Final = (constants.MOST_OF, 1.0, 1.0)
"""The same where these threads need not be launched."""


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and counts of active threads", looked=False)
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    is_busy = full is not None and full.unit.percent >= constants.BUSY_PERCENT
    result = idle_threads(context.program, context.kernel, profile, edge=constants.EDGE, guarded=is_busy)
    thrown = _thrown_away(context, profile, blame, 0.0 if result is None else result.lost)
    spared = thrown or (_beyond_the_end(context, profile, blame) if is_busy else None)
    if spared is not None:
        return spared
    if result is None:
        return Rejection(
            code=_CODE,
            reason="no instruction has idle threads by a condition of its own, or they were not counted",
        )
    rows = by_place(blame, causes(blame), list(result.shares))
    part = share(blame, rows)
    if result.lost < constants.NOTABLE or part < constants.NOTABLE:
        return Rejection(
            code=_CODE,
            reason=f"idle threads of warps take {percent(result.lost)} of the executed instructions, and "
            f"{percent(part)} of the samples are there",
        )
    text = f"{percent(result.lost)} of what warps execute is for threads without work"
    choice = _choice(context, profile, result)
    by_chance = edge_by_chance(profile, context.evidence)
    if choice is Choice.BOUND and (by_chance or not has_rows(profile.launch)):
        return Rejection(code=_CODE, reason="threads beyond the last element: one row of blocks is too many")
    if _NEIGHBOURS in _CURES[choice] and profile.has_blocks_of_one_warp:
        return Rejection(code=_CODE, reason="a block is one warp: there is no other to skip the code")
    if choice is Choice.EXIT and not is_busy and loads_in_loop(result.function, result.worst):
        return _early_exit(context, blame, result, rows, text)
    only = None
    if choice is Choice.SPREAD and not is_busy and not has_another_side(result):
        only = waiting_for_others(blame)
        turns = share(blame, rows & only)
        if turns < constants.NOTABLE:
            return Rejection(
                code=_CODE,
                reason="warps wait there at the same time: with fewer of them none is done earlier, and "
                f"{percent(turns)} of the samples waited for other warps",
            )
    cure = _cure(context, blame, result, choice)
    return without(
        context,
        blame,
        _gone(context, result, choice),
        only=only,
        title="warps execute code that few of their threads need",
        cure=cure,
        advice=_advice(result, cure, threads_per_warp(profile), text),
        what=text,
    )


def _thrown_away(context: KernelContext, profile: KernelProfile, blame: Blame, idle: float) -> Match | None:
    """Results that are computed and not stored, where they are as much as most of what idle threads take."""
    function, executed = kernel_function(context.program, context.kernel), executions(context)
    results = (
        None if function is None or executed is None else discarded(profile, function, edge=constants.EDGE)
    )
    if results is None or function is None or executed is None:
        return None
    if results.keeps_out is KeptOut.BEYOND and edge_by_chance(profile, context.evidence):
        return None
    warps = executed[function.id]
    every = sum(float(counts.sum()) for counts in executed.values())
    lost = sum(part * float(warps[index]) for index, part in results.shares.items()) / every
    places = {(function.id, index): part for index, part in results.shares.items()}
    if lost < max(constants.NOTABLE, constants.MAJORITY * idle):
        return None
    if share(blame, by_place(blame, causes(blame), list(places))) < constants.NOTABLE:
        return None
    least = {
        (function.id, index): max(constants.LEAST_PART * part, results.warps[index])
        for index, part in results.shares.items()
    }
    between = {place: constants.MIDDLE * (least[place] + part) for place, part in places.items()}
    text = f"{percent(lost)} of what warps execute is for results that no thread stores"
    saves_warps = sum(part * float(warps[index]) for index, part in results.warps.items()) >= (
        constants.NOTABLE * every
    )
    if not saves_warps and (results.keeps_out is KeptOut.OTHERS or not has_rows(profile.launch)):
        return None
    cure = _cure_of_results(results, profile.launch, whole_warps=saves_warps)
    return without(
        context,
        blame,
        [least, between, places],
        title="threads compute results that they do not store",
        cure=cure,
        advice=f"{text}: they are computed at {line_text(function, results.worst)}, and the store is at "
        f"{line_text(function, results.stores[0])}. {cure}",
        what=text,
    )


def _beyond_the_end(context: KernelContext, profile: KernelProfile, blame: Blame) -> Match | None:
    """A grid of many more threads than elements: the others find that there is nothing for them."""
    function = kernel_function(context.program, context.kernel)
    oversize = None if function is None else oversized(profile, function, edge=constants.EDGE)
    if function is None or oversize is None:
        return None
    gone = [{(function.id, index): end * idle for index, idle in oversize.idle.items()} for end in _SPARED]
    launched = profile.launch.blocks * profile.launch.threads_per_block
    part = percentage(max(1, round(oversize.working * 100)))
    cure = f"Launch no more threads than there are elements: {part} of {launched:,} threads store anything."
    where = line_text(function, oversize.condition)
    text = f"{percent(1 - oversize.working)} of the threads are beyond the end at {where}"
    match = without(
        context,
        blame,
        gone,
        title="most threads of the grid have no element",
        cure=cure,
        advice=f"{text}, before the store at {line_text(function, oversize.store)}. {cure}",
        what=text,
    )
    return replace(match, place=(function.id, oversize.condition), leads=True)


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
_ONE_WARP: Final = "Let several threads share one item: threads of the warp run different numbers of passes."
"""Where no other warp is there for items of another length."""
_SKIPPING: Final = frozenset({Choice.DATA, Choice.SPREAD, Choice.UNKNOWN})
"""Whose cure saves warps nothing but a branch around the code."""
_MORE: Final = "give each thread more elements"
_LAST_STEPS: Final = "leave the last steps to one warp and its shuffles"


def _choice(context: KernelContext, profile: KernelProfile, idle: Idle) -> Choice:
    """What parts the threads, by the code; where that does not tell, by how many warps have them."""
    function, index = idle.function, idle.worst
    if stands_in_for_shared(function, idle.group):
        return Choice.EDGE
    alike = passes_are_alike(function, index, context.program.form, profile.launch)
    if not alike and passes_differ(function, index, idle.shares_of_function):
        return Choice.PASSES if exit_by_data(function, index) is None else Choice.EXIT
    choice = choice_of(function, idle.condition, context.program.form, profile.launch)
    if choice is not Choice.UNKNOWN or idle.condition is None:
        return choice
    return Choice.FIRST if are_neighbours(profile, function, idle.condition, index) else choice


def _early_exit(context: KernelContext, blame: Blame, idle: Idle, rows: Mask, text: str) -> Match:
    """A loop that each thread leaves by its data: until they have come, no later pass may load."""
    where = exit_by_data(idle.function, idle.worst)
    ahead = "the loads of n passes in flight"
    cure = f"Test every n-th pass only, with {ahead}."
    if writes_in_loop(idle.function, idle.worst):
        cure = f"Have {ahead} before the first of them is tested."
    return Match(
        title="a loop that threads leave early waits in every pass for what it tests",
        cure=cure,
        advice=f"{text}: threads of a warp leave the loop in different passes, by the comparison at "
        f"{line_text(idle.function, idle.worst if where is None else where)}, before which no load of the "
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


def _gone(context: KernelContext, idle: Idle, choice: Choice) -> list[dict[tuple[FunctionId, int], float]]:
    """What goes at each end: of instructions under a predicate nothing before the high end, where warps skip.

    A compiler puts a predicate on a few instructions whether all threads of a warp agree or not; and a warp
    without a thread issues them all the same.
    """
    functions = context.program.functions
    kept = {
        (function, index)
        for function, index in idle.shares
        if choice in _SKIPPING and functions[function].instructions[index].guard is not None
    }
    return [
        {
            place: 0.0 if place in kept and end is not _ENDS[-1] else end * share
            for place, share in idle.shares.items()
        }
        for end in _ENDS
    ]


def _cure(context: KernelContext, blame: Blame, idle: Idle, choice: Choice) -> str:
    """A tree's last steps have few threads by themselves; elsewhere it counts what parts them."""
    function, index = idle.function, idle.worst
    if context.profile is None:
        return ""
    if not tree_barriers(function) and not in_level_loop(function, index):
        launch = context.profile.launch
        one_warp = launch.blocks == 1 and launch.threads_per_block <= WARP
        cure = _ONE_WARP if one_warp and choice is Choice.PASSES else _CURES[choice]
        return cure.format(blocks=_blocks(launch))
    tree = _MORE if waits_for_levels(context, blame, function) else f"{_MORE}, and {_LAST_STEPS}"
    if choice is Choice.FIRST:
        return f"{capitalised(tree)}."
    return f"{_NEIGHBOURS} (the estimate is of this alone); then {tree}."


def _blocks(launch: Launch) -> str:
    sides = [*launch.block]
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return f"blocks of {' x '.join(map(str, sides))}"


def _advice(idle: Idle, cure: str, full: float, text: str) -> str:
    where = line_text(idle.function, idle.worst if idle.condition is None else idle.condition)
    by = "at" if idle.condition is None else "behind the condition at"
    return (
        f"{text}: {by} {where}, {idle.active * full:.1f} of {full:.0f} threads of a warp are active. {cure}"
    )


_TEST_FIRST: Final = "put the condition of the store around the loop, too"


def _cure_of_results(discarded: Discarded, launch: Launch, *, whole_warps: bool) -> str:
    stored = f"{percent(discarded.stored, 0)} of the threads store a result"
    test = f"{_TEST_FIRST}{', without the barriers' if discarded.has_barriers else ''}"
    if discarded.keeps_out is KeptOut.OTHERS or not has_rows(launch):
        return f"{capitalised(test)}, so that whole warps skip it: {stored}."
    cure, why = _RESULTS[discarded.keeps_out]
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


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="thread-divergence",
    name="Thread Divergence",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.DIVERGENCE_GAVE,
    document=__doc__ or "",
    twins=("ThreadDivergence",),
)
