# SPDX-License-Identifier: Apache-2.0
"""Warp Balance: warps that wait for slower ones at a barrier (GPA Table II).

## What it finds

Synchronization stalls: samples of warps that wait at `__syncthreads()` (`BAR`), or for the other warps of
a warpgroup or cluster. It says which instructions the slow side spends its time on before the barrier,
whether the work there is divided unevenly (by executed counts), and what the barrier is there for.
Without samples it names a thread that alone adds up, in a loop, what its block stored in shared memory, and
barriers that need not be: those that order no access of one thread before one of another, those of a block
that is one warp by its launch bounds, and those that hold the whole block at every level of a tree, up or
down (not beside a loop with a longer pass), or in each step of a sort whose partners are of one warp. Where
the report shows neither such a barrier nor uneven work, it is a note. Where threads may come to barriers on
different ways, or another instantiation of the line needs it, it names none.

## Why warps stall

A barrier lets nobody through before the last warp has come. The wait of the others is the difference in
their work, or the latency of whatever the last one waits for just before.

## What to try

- Remove a barrier that protects nothing, and merge two that can be one.
- Divide the work before it evenly over warps, or give the few busy warps less to do alone.
- Where only the threads of one warp exchange data, use `__syncwarp()` or a shuffle.
- On sm_80 and newer, split arrive and wait (`cuda::barrier`), and do independent work in between.
- Where each thread reads back from shared memory only what it wrote itself, keep that in registers: the
  array and its barrier only cost.

## Example

```cuda
for (int s = blockDim.x / 2; s > 0; s /= 2) {      // a barrier in each of the last six steps, too
    if (t < s) sum[t] += sum[t + s];
    __syncthreads();
}

// the last 32 elements stay inside one warp
for (int s = 16; s > 0; s /= 2) v += __shfl_down_sync(~0u, v, s);
```

## When this advice is wrong

If all warps wait alike for a load just before the barrier, the stall is that latency and balancing does
nothing: such samples are left out. Where the loads differ from warp to warp, look at Code Reordering and
Loop Unrolling as well. Never remove a barrier that separates a write of shared memory from a read by another
warp. Where doubles are slow, shuffles add more of them than a tree, and none are told. A tree whose threads
take part by a remainder keeps every warp at work in every level; where a branch skips it, or it takes a
division, Thread Divergence has the change to make. So it has where few warps work, with idle threads.

## How the gain is estimated

GPA Eq. 2 with the synchronization stalls. Of staging that only its own thread reads, every stall of its
stores, loads and barriers counts, and goes. In the paper's Table III the four kernels of this kind gained
0.22 to 1.06 times what was matched, 0.63 on average. Of a tree in a loop, every stall of its instructions
counts, and their load on the units: five of its levels fit in a warp, which one warp runs then instead of
all; at the high end shuffles replace all of it, and the expected value lies between.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2, sqrt
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.barrier_words import (
    SHOWN,
    is_scattered,
    needless_sites,
    one_warp_advice,
    redundant_advice,
    redundant_title,
    serial_advice,
    serial_sites,
    site_text,
    stages_own,
    static_tree_advice,
    tree_advice,
    trees_for_shuffles,
    waited_barriers,
)
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.own_staging import staging_advice, staging_match
from gpadvisor.estimators.reduced_loads import freed_with_passes
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.uneven_work import uneven_work
from gpadvisor.evidence.accesses import is_memory, is_ordered
from gpadvisor.evidence.barriers import is_barrier
from gpadvisor.evidence.common_loads import common_loads, last_barrier
from gpadvisor.evidence.queries import (
    Mask,
    RowIndices,
    by_place,
    by_role,
    by_stall,
    causes,
    heaviest,
    kernel_functions,
    line_text,
    loop_indices,
    regions,
    samples,
    share,
    static_match,
)
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, StaticSite
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.figures import percent
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA105"
_TREE: Final = "a barrier of the whole block at a level of a tree"
_TREE_TITLE: Final = "tree reduction or scan with a barrier of the block at every level"
_WARP_LEVELS: Final = WARP.bit_length() - 1  # of a tree
_SINGLE: Final = "barrier of a block that is a single warp by its launch bounds"


def _match(context: KernelContext) -> Match | Rejection:
    functions = kernel_functions(context.program, context.kernel)
    redundant = needless_sites(context, functions)
    trees = _sites(functions, lambda code: trees_for_shuffles(context, code), _TREE)
    if context.blame is None:
        single = _single_warp(context, functions)
        serial = serial_sites(context, functions)
        words = _static_advice(context, serial, redundant, trees, single)
        return static_match(
            _CODE,
            title=_static_title(redundant, trees, serial),
            advice=words,
            cure=words,
            sites=tuple(dict.fromkeys((*serial, *redundant, *trees, *single))),
            missing=_nothing(functions),
        )
    blame = context.blame
    waits = by_stall(blame, {StallClass.SYNCHRONIZATION}) & by_role(blame, Role.BLAMED, Role.SELF)
    alike = np.zeros(len(waits), dtype=bool)
    if context.profile is not None and not redundant:
        alike = waits & common_loads(blame, context.program, context.profile)
    rows = np.flatnonzero(waits & ~alike)
    if stages_own(redundant):
        staged = staging_match(context, blame, rows, redundant)
        return staged or Rejection(code=_CODE, reason=_NO_STAGING)
    if not samples(blame, rows):
        return Rejection(code=_CODE, reason=_no_imbalance(context, blame, alike, functions))
    held = () if redundant else _held(context, blame, rows, trees)
    scattered = next((site for site in held if is_scattered(context, site.function, site.index)), None)
    if scattered is not None:
        where = site_text(context, scattered)
        return Rejection(code=_CODE, reason=f"threads leave the tree at {where} by a remainder, {_FIRST}")
    tree = _tree_match(context, blame, held)
    if tree is not None:
        return tree
    waited = waited_barriers(context, blame, rows) - {(tree.function, tree.index) for tree in trees}
    slow = _slow_instruction(context, blame, rows)
    if slow is not None and is_ordered(slow[0].instructions[slow[1]]):
        waited = set()  # for other blocks: no division of work shortens that
    uneven, shared, place = uneven_work(context, functions, waited)
    cure = _barrier_advice(context, blame, rows, redundant, trees) or shared
    of_work = bool(shared) and cure == shared
    uneven = "" if of_work else uneven  # which is in it
    static_site = next(iter(redundant or held), None)
    return Match(
        title=_ONE_WARP_TITLE if _is_one_warp(context) else "warps wait for slower ones at a barrier",
        cure=cure,
        advice=" ".join(
            part for part in (_slow_side(context, blame, rows), uneven, cure or _NO_CURE) if part
        ),
        actionable=bool(cure),  # that warps wait is no fault that the code shows
        place=(static_site.function, static_site.index) if static_site else place if of_work else None,
        replaced_by="GPA109" if of_work else "",  # which gives the idle threads of that work something to do
        regions=regions(blame, context.program, context.kernel, rows),
        adjustments=_adjustments(context, blame, rows, redundant=bool(redundant)),
        static_sites=redundant,
        remedies=(Remedy.NO_BARRIER,) if redundant else (),
    )


def _no_imbalance(context: KernelContext, blame: Blame, alike: Mask, functions: tuple[Function, ...]) -> str:
    """Why there is nothing to balance."""
    if not samples(blame, alike):
        return f"no sample waits at a barrier ({_count_text(functions)})"
    row = heaviest(blame, np.flatnonzero(alike))
    function = context.program.functions[int(blame.rows.function[row])]
    load = int(blame.rows.def_index[row])
    return (
        f"no imbalance: the warps at the barrier ({percent(share(blame, alike))} of samples) wait alike for "
        f"{function.instructions[load].opcode} at {line_text(function, load)}"
    )


def _sites(
    functions: tuple[Function, ...], find: Callable[[Function], tuple[int, ...]], detail: str
) -> tuple[StaticSite, ...]:
    return tuple(
        StaticSite(function=function.id, index=index, detail=detail)
        for function in functions
        for index in find(function)
    )


def _single_warp(context: KernelContext, functions: tuple[Function, ...]) -> tuple[StaticSite, ...]:
    """Every barrier, where no block has more than one warp."""
    facts = context.program.facts.get(context.kernel)
    if facts is None or not facts.max_threads_per_block or facts.max_threads_per_block > WARP:
        return ()
    return _sites(
        functions, lambda code: tuple(index for index in _indices(code) if is_barrier(code, index)), _SINGLE
    )


def _static_title(
    redundant: tuple[StaticSite, ...], trees: tuple[StaticSite, ...], serial: tuple[StaticSite, ...]
) -> str:
    if serial:
        return "one thread adds up the values of its block"
    if redundant:
        return redundant_title(redundant)
    if trees:
        return _TREE_TITLE
    return _ONE_WARP_TITLE


def _static_advice(
    context: KernelContext,
    serial: tuple[StaticSite, ...],
    redundant: tuple[StaticSite, ...],
    trees: tuple[StaticSite, ...],
    single: tuple[StaticSite, ...],
) -> str:
    parts = [serial_advice(context, serial)] if serial else []
    if redundant:
        says = staging_advice if stages_own(redundant) else redundant_advice
        parts.append(says(context, redundant))
    if trees:
        parts.append(static_tree_advice(context, trees))
    if single and not parts:
        places = list(dict.fromkeys(site_text(context, site) for site in single))
        more = " ..." if len(places) > SHOWN else ""
        parts.append(f"{one_warp_advice(context)[:-1]} ({', '.join(places[:SHOWN])}{more}).")
    return " ".join(parts)


_NO_STAGING: Final = "no sample is due to the values that each thread stages for itself"
_NO_CURE: Final = "No uneven work is counted before it, and the code shows no barrier too many."
_ONE_WARP_TITLE: Final = "barriers in a block of one warp"


def _nothing(functions: tuple[Function, ...]) -> str:
    return (
        f"without samples only barriers that protect nothing, single-warp blocks and trees over the whole "
        f"block are told ({_count_text(functions)})"
    )


def _count_text(functions: tuple[Function, ...]) -> str:
    count = sum(is_barrier(function, index) for function in functions for index in _indices(function))
    return f"{count} barrier instruction{'' if count == 1 else 's'} in the code"


def _indices(function: Function) -> range:
    return range(len(function.instructions))


def _slow_instruction(context: KernelContext, blame: Blame, rows: RowIndices) -> tuple[Function, int] | None:
    """What most of the waiting is due to, where it is something else than the barrier itself."""
    row = heaviest(blame, rows)
    index = int(causes(blame)[row])
    function_id = int(blame.rows.function[row])
    if index == NO_INDEX or function_id >= len(context.program.functions):
        return None
    function = context.program.functions[function_id]
    return None if is_barrier(function, index) else (function, index)


def _slow_side(context: KernelContext, blame: Blame, rows: RowIndices) -> str:
    slow = _slow_instruction(context, blame, rows)
    if slow is None:
        return ""
    function, index = slow
    waiting = int(blame.rows.use_index[heaviest(blame, rows)])
    barrier = None if waiting == NO_INDEX else last_barrier(function, waiting)
    at = "" if barrier is None else f" at {line_text(function, barrier)}"
    return (
        f"The slow side is held up by {function.instructions[index].opcode} at {line_text(function, index)} "
        f"before the barrier{at}."
    )


def _barrier_advice(
    context: KernelContext,
    blame: Blame,
    rows: RowIndices,
    redundant: tuple[StaticSite, ...],
    trees: tuple[StaticSite, ...],
) -> str:
    if redundant:
        return redundant_advice(context, redundant)
    if _is_one_warp(context):
        return one_warp_advice(context)
    held = _held(context, blame, rows, trees)
    if held:
        return tree_advice(context, held)
    return ""


def _is_one_warp(context: KernelContext) -> bool:
    return context.profile is not None and context.profile.has_blocks_of_one_warp


def _held(
    context: KernelContext, blame: Blame, rows: RowIndices, trees: tuple[StaticSite, ...]
) -> tuple[StaticSite, ...]:
    """The barriers of trees that warps wait at."""
    waited = waited_barriers(context, blame, rows)
    return tuple(site for site in trees if (site.function, site.index) in waited)


_FIRST: Final = "some of every warp in every level: which threads take part comes first (Thread Divergence)"


def _tree_match(context: KernelContext, blame: Blame, held: tuple[StaticSite, ...]) -> Match | None:
    """A tree in a loop: its levels within a warp go for all warps but one, and their accesses with them."""
    threads = 0 if context.profile is None else context.profile.launch.threads_per_block
    places = {
        (site.function, index)
        for site in held
        for loop in (context.program.functions[site.function].innermost_loop(site.index),)
        if loop is not None
        for index in loop_indices(context.program.functions[site.function], loop)
    }
    if threads <= WARP or not places:
        return None
    warps = ceil(threads / WARP)
    levels = log2(warps)
    levels_left = (levels + _WARP_LEVELS / warps) / (levels + _WARP_LEVELS)
    shuffled = constants.SHUFFLED_LEVELS / (levels + _WARP_LEVELS)
    gone, best = 1 - sqrt(levels_left * shuffled), 1 - shuffled
    inside = by_place(blame, causes(blame), places) | by_place(blame, blame.rows.use_index, places)
    return Match(
        title=_TREE_TITLE,
        advice=tree_advice(context, held),
        cure=tree_advice(context, held),
        place=(held[0].function, held[0].index),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(inside)),
        adjustments=(
            Adjustment(
                low=1 - levels_left,
                expected=gone,
                high=best,
                reason=f"of {levels + _WARP_LEVELS:.0f} levels of the tree {_WARP_LEVELS} fit in a warp, and "
                f"one of {warps} warps runs them then; by shuffles alone all but {percent(shuffled)} goes",
            ),
        ),
        reduced_loads=freed_with_passes(context, dict.fromkeys(places, gone), dict.fromkeys(places, best)),
        static_sites=held,
    )


def _adjustments(
    context: KernelContext, blame: Blame, rows: RowIndices, *, redundant: bool
) -> tuple[Adjustment, ...]:
    slow = _slow_instruction(context, blame, rows)
    if slow is not None and is_memory(slow[0].instructions[slow[1]]) and not redundant:
        return (
            Adjustment(
                low=0.0,
                expected=constants.BALANCED_LEAST,
                high=1.0,
                reason="the slow side waits for memory before the barrier, which balancing alone does not "
                "shorten: as the least of four kernels in the paper's Table III",
            ),
        )
    return (
        Adjustment(
            low=constants.BALANCED_LEAST,
            expected=constants.BALANCED,
            high=constants.BALANCED_MOST,
            reason="in the paper's Table III this change removed 22 to 106 % of the matched stalls, 63 % on "
            "average over four kernels",
        ),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="warp-balance",
    name="Warp Balance",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    twins=("WorkloadImbalance",),
    what_if=WhatIf.NO_BARRIERS,
)
