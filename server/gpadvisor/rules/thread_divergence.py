# SPDX-License-Identifier: Apache-2.0
"""Thread Divergence: instructions that few threads of a warp have work in (beyond GPA Table II).

## What it finds

Instructions in which the report counted fewer active threads than the warp has: both sides of a branch that
the threads of a warp take differently, loops that some of them leave early, and predicated code that a warp
goes through although the condition holds for few of its threads or for none. Warps that are short because of
the block's size are not meant: see Thread Increase.

## Why warps stall

A warp executes what any of its threads needs, one side after the other, and a predicated instruction takes
its issue slot and its turn in the pipe even if no thread is left for it.

## What to try

- Let whole warps agree: index by `threadIdx.x` so that the active threads are neighbours, and let warps
  without work leave or skip the code by a branch on the warp.
- In reductions: several elements per thread before the tree, the last 32 elements by warp shuffles.
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
four expected, half of them at the low end. Where a unit is busy for 60 % of the time or more, its load falls
by what these instructions put on it, until another unit limits. Where none is, the samples of the divergent
branches shrink by the idle share (Eq. 2). Of a loop that the data end, the waits for its loads count as those
of bfs in the paper's Table III did.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.reliefs import freed
from gpadvisor.estimators.relieved import as_reliefs, relieved_bound
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import L1_DATA, measured_loads
from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.lanes import (
    Choice,
    active_share,
    are_neighbours,
    choice_of,
    condition,
    exit_by_data,
    passes_differ,
    threads_per_warp,
    wavefronts,
)
from gpadvisor.evidence.measured import Values, executed_warps
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_place,
    causes,
    kernel_functions,
    line_text,
    loop_indices,
    percent,
    regions,
    samples,
    share,
)
from gpadvisor.evidence.trees import in_level_loop, tree_barriers
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, FunctionKind, Program

_CODE: Final = "GPA109"
_ATOMIC: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
_ENDS: Final = (constants.MIDDLE, constants.MOST_OF, 1.0)
"""Shares of the idle threads' instructions that go: at the low end, expected, and at the high end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Idle:
    """Instructions with idle threads."""

    shares: dict[tuple[FunctionId, int], float]  # of their threads
    lost: float  # of all executed instructions of the kernel, as a share
    idle_accesses: float  # to shared memory: without a thread they take their turn in the data stage, too
    function: Function  # where most of it is lost
    worst: int  # and at which instruction
    condition: int | None  # that keeps the others out
    active: float  # mean share of a warp's threads behind that condition
    shares_of_function: Values  # of active threads, by instruction of that function


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if blame is None or profile is None:
        return Rejection(code=_CODE, reason="needs samples and counts of active threads", looked=False)
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    is_busy = full is not None and full.unit.percent >= constants.BUSY_PERCENT
    found = _idle(context, guarded=is_busy)
    if found is None:
        return Rejection(
            code=_CODE, reason="no instruction has idle threads, or the report did not count them"
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
    left = [_left(context, profile, found, end) for end in _ENDS]
    bound = relieved_bound(measured, left[0], left[1], left[2], what) if is_busy else None
    choice = _choice(context, profile, found)
    if choice is Choice.EXIT and not is_busy and _loads_in_loop(found):
        return _early_exit(context, blame, found, rows, what)
    return Match(
        title="warps execute code that few of their threads need",
        cure=_cure(found, choice),
        advice=_advice(found, choice, threads_per_warp(profile), what),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(blame, found),),
        measured_bound=bound,
        relieves=as_reliefs(left[1], left[2]),
    )


def _left(context: KernelContext, profile: KernelProfile, found: _Idle, end: float) -> dict[str, float]:
    """What stays of each unit's load once a share of the idle threads' instructions is gone."""
    gone = {place: end * idle for place, idle in found.shares.items()}
    left = {one.resource: one.remaining for one in freed(context, gone)}
    passes = wavefronts(profile)
    if passes:
        left[L1_DATA] = 1 - min(1.0, end * found.idle_accesses / passes)
    return left


def _idle(context: KernelContext, *, guarded: bool) -> _Idle | None:
    """Instructions with idle threads; those that only a predicate idles, where wanted."""
    profile = context.profile
    shares: dict[tuple[FunctionId, int], float] = {}
    every = lost = idle_accesses = 0.0
    by_condition: dict[tuple[FunctionId, int | None], float] = defaultdict(float)
    members: dict[tuple[FunctionId, int | None], list[int]] = defaultdict(list)
    known: dict[FunctionId, tuple[Function, Values, Values]] = {}
    for function in kernel_functions(context.program, context.kernel):
        executed = executed_warps(profile, function)
        active = None if profile is None else active_share(profile, function)
        if executed is None or active is None:
            continue
        every += float(executed.sum())
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        rare = _around_helpers(context.program, function)
        known[function.id] = function, executed, active
        for index in np.flatnonzero(active < constants.EDGE).tolist():
            if index in rare or (function.instructions[index].guard is not None and not guarded):
                continue
            if function.instructions[index].info.opclass in _ATOMIC:
                continue  # waits for its address, however many threads there are
            idle = 1 - float(active[index])
            shares[function.id, index] = idle
            lost += idle * float(executed[index])
            if is_shared(function.instructions[index]):
                idle_accesses += idle * float(executed[index])
            key = function.id, condition(function, index, active)
            by_condition[key] += idle * float(executed[index])
            members[key].append(index)
    if not shares:
        return None
    key = max(by_condition, key=lambda one: by_condition[one])
    function, executed, active = known[key[0]]
    at = members[key]
    return _Idle(
        shares=shares,
        lost=lost / every,
        idle_accesses=idle_accesses,
        function=function,
        worst=max(at, key=lambda index: (1 - active[index]) * executed[index]),
        condition=key[1],
        active=float(np.average(active[at], weights=executed[at])),
        shares_of_function=active,
    )


def _around_helpers(program: Program, function: Function) -> set[int]:
    """Where the compiler's routines are called: rare arguments of a division are nobody's to arrange."""
    calls = [
        call.index
        for call in function.calls
        if call.callee is not None and program.functions[call.callee].kind is FunctionKind.MATH_HELPER
    ]
    blocks = {
        int(function.block_of[at]) for call in calls for at in (call, call + 1) if at < len(function.block_of)
    }
    return {at for block in blocks for at in range(function.blocks[block].start, function.blocks[block].end)}


_NEIGHBOURS: Final = "Let the active threads be neighbours, so that whole warps skip the code"
_CURES: Final = {
    Choice.DATA: "Sort or queue what is left to do, so that whole warps have work or skip the code: the data "
    "decide which threads go on.",
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


def _choice(context: KernelContext, profile: KernelProfile, found: _Idle) -> Choice:
    """What parts the threads, by the code; where that does not tell, by how many warps have them."""
    function, index = found.function, found.worst
    if passes_differ(function, index, found.shares_of_function):
        return Choice.PASSES if exit_by_data(function, index) is None else Choice.EXIT
    choice = choice_of(function, found.condition, context.program.form, profile.launch)
    if choice is not Choice.UNKNOWN or found.condition is None:
        return choice
    return Choice.FIRST if are_neighbours(profile, function, found.condition, index) else choice


def _loads_in_loop(found: _Idle) -> bool:
    """Whether the loop that threads leave reads memory."""
    loop = found.function.innermost_loop(found.worst)
    return loop is not None and any(
        is_global(one) and one.info.opclass is OpcodeClass.LOAD
        for index in loop_indices(found.function, loop)
        for one in (found.function.instructions[index],)
    )


def _early_exit(context: KernelContext, blame: Blame, found: _Idle, rows: Mask, what: str) -> Match:
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


def _cure(found: _Idle, choice: Choice) -> str:
    """A tree's last steps have few threads by themselves; elsewhere it counts what parts them."""
    function, index = found.function, found.worst
    if tree_barriers(function) or in_level_loop(function, index):
        if choice is Choice.FIRST:
            return f"{_TREE[0].upper()}{_TREE[1:]}"
        return f"{_NEIGHBOURS}; then {_TREE}"
    return _CURES[choice]


def _advice(found: _Idle, choice: Choice, full: float, what: str) -> str:
    where = line_text(found.function, found.worst if found.condition is None else found.condition)
    by = "at" if found.condition is None else "behind the condition at"
    return (
        f"{what}: {by} {where}, {found.active * full:.1f} of {full:.0f} threads of a warp are active. "
        f"{_cure(found, choice)}"
    )


def _adjustment(blame: Blame, found: _Idle) -> Adjustment:
    """The idle share of the matched samples."""
    at = causes(blame)
    weights = [samples(blame, by_place(blame, at, [place])) for place in found.shares]
    mean = float(np.average(list(found.shares.values()), weights=weights))
    low, middle, high = (end * mean for end in _ENDS)
    return Adjustment(
        low=low,
        expected=middle,
        high=high,
        reason=f"{percent(mean)} of the threads are idle where these samples are",
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
