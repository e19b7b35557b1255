# SPDX-License-Identifier: Apache-2.0
"""Code Reordering: work that could stand between a def and its use (GPA Table II).

## What it finds

Latency samples of memory and execution dependencies, by loop or function. For each def and use it looks
at how far the def could move up: to the instructions that make its address, to a barrier or call, to a
store that may write what it reads, or to the start of its basic block; and at how much independent work
follows the use. Suggested is only what a programmer can do and the compiler may not: to say that a store
does not write what is loaded, to load before a barrier or a pass ahead, to load both neighbours of a
condition `x[i] <= v && x[i + 1] > v` before it, to aggregate an atomic, to keep an element in a register that
each pass of a loop writes to memory, to store what is loaded for the next
pass to its buffer in shared memory behind the arithmetic of this one. All else is the compiler's schedule,
and a note.

## Why warps stall

An instruction is issued in program order. If a value is used right after the load that brings it, the
warp waits the whole latency; twenty other instructions in between would have hidden part of it.

## What to try

Load earlier: read the next element before working on this one, move loads to the top of the block, fetch
before the barrier what is needed after it. If a store stands in the way, mark pointers `const
__restrict__`, so that the compiler may move loads across it. Keep an array element in a scalar while a
loop works on it, unless the loop also reads it under another index.

## Example

```cuda
for (int i = 0; i < n; ++i) {                 float next = a[0];
    __syncthreads();                          for (int i = 0; i < n; ++i) {
    work(a[i]);                                   float now = next;
}                                                 if (i + 1 < n) next = a[i + 1];
                                                  __syncthreads();
                                                  work(now);
                                              }
```

## When this advice is wrong

If everything before the def depends on the results of the last barrier, there is nothing to put in
between (the paper's example is pathfinder: estimated 1.31, achieved 1.04). A distance that is long
already cannot be stretched much. Values that live longer take registers.

## How the gain is estimated

GPA Eqs. 4 and 5. Of what they hide, the expected value keeps the share that could move: each pair counts
by the instructions that could stand between def and use, against the number that would cover the latency,
times 0.8, the average of the kernels of the paper's Table III in which nothing stood in the way. Of an
element that each pass writes to memory, all waits behind its stores count, whatever work there is: without
the stores these loads wait at the same time, as neighbours do that are loaded before the condition on one of
them. Of a load between two barriers, the waits at the second that are due to it shrink by the share that
could move, too. Without samples only one pattern is named: a load in a
loop, used at once, that a store which may alias holds back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.kept_elements import in_register
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.estimators.reordering_words import held_sites, kept_sites, static_advice, static_remedies
from gpadvisor.evidence.accumulators import kept_in_memory
from gpadvisor.evidence.launches import runs_once
from gpadvisor.evidence.queries import (
    RowIndices,
    by_place,
    by_stall,
    latency,
    line_text,
    regions,
    samples,
    static_match,
    waits_to_hide,
)
from gpadvisor.evidence.reordering import (
    COVERING,
    Cure,
    Room,
    cure_of,
    neighbour_that_decides,
    room_to_move,
    store_behind,
)
from gpadvisor.model.advice import Adjustment, Category, Estimate, Match, Rejection
from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, DependencyClass
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import WARP
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.stalls import StallClass
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_pointers

_CODE: Final = "GPA202"
_CHECKED_ROWS: Final = 256
"""Heaviest pairs looked at one by one; the rest count as their mean."""
_WAITED_FOR_AT_BARRIERS: Final = frozenset({Cure.BEFORE_BARRIER, Cure.BEFORE_CONDITION})
"""Of these the waits of other warps at the next barrier shrink as well."""
_REMEDIES: Final = {
    Cure.NO_ALIAS: Remedy.RESTRICT,
    Cure.IN_REGISTER: Remedy.KEEP_ELEMENT,
    Cure.BEFORE_CONDITION: Remedy.BOTH_SIDES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    row: int
    weight: int
    room: Room
    wanted: int
    cure: Cure | None

    @property
    def goes(self) -> float:
        """The share of its latency that other work can stand in for, or that is not waited for any more."""
        # With its stores gone the loads behind them start with those before them, and its own are not needed.
        # A late store has all of the arithmetic in front of it, which is as much as is wanted.
        # A load before the condition starts with the one that decides it, which is waited for anyway.
        whole = self.cure in {Cure.IN_REGISTER, Cure.LATE_STORE, Cure.BEFORE_CONDITION}
        return 1.0 if whole else min(1.0, self.room.slots / self.wanted)


def _heaviest_cure(pairs: list[_Pair]) -> Cure | None:
    weights: Counter[Cure] = Counter()
    for pair in pairs:
        if pair.cure is not None and pair.weight:
            weights[pair.cure] += pair.weight
    return weights.most_common(1)[0][0] if weights else None


def _match(context: KernelContext) -> Match | Rejection:
    if _threads(context) == 1:
        return Rejection(code=_CODE, reason="one thread does all of it: others would hide its latency")
    if context.blame is None:
        return static_match(
            _CODE,
            title="load held back by a store that may alias"
            if held_sites(context)
            else "element of memory written in every pass of a loop",
            advice=static_advice(context),
            cure=static_advice(context),
            sites=(*held_sites(context), *kept_sites(context)),
            missing="no global load in a loop is used at once and held back by nothing but a store that may "
            "alias, and no loop writes one element in every pass",
            remedies=static_remedies(context),
        )
    blame = context.blame
    candidates = np.flatnonzero(waits_to_hide(blame, context.program))
    if not latency(blame, candidates):
        return Rejection(code=_CODE, reason="no latency sample on a memory or execution dependency")
    kept, far = _without_distant(blame, candidates)
    if not latency(blame, kept):
        return Rejection(
            code=_CODE,
            reason=f"all {latency(blame, far)} latency samples on dependencies have a def far enough from "
            "its use "
            "already (40 instructions for memory, 12 for shared memory and slow arithmetic, 4 else)",
        )
    pairs = _pairs(context, blame, kept)
    cure = _heaviest_cure(pairs)
    if cure is not None:
        # The number is of the pairs that the words are about.
        pairs = [pair for pair in pairs if pair.cure is cure]
        kept = np.array(sorted(pair.row for pair in pairs), dtype=np.intp)
    facts, change = _words(context, blame, pairs)
    return Match(
        title="value used too soon after it is asked for",
        advice=f"{facts} {change}" if change else facts,
        cure=change,
        regions=regions(blame, context.program, context.kernel, kept),
        adjustments=(_adjustment(pairs),),
        static_sites=(),
        actionable=cure is not None,
        replaced_by="GPA204" if cure is Cure.LATE_STORE else "",  # whose copies need no registers
        remedies=tuple(remedy for by, remedy in _REMEDIES.items() if by is cure),
    )


def _wanted(blame: Blame, row: int) -> int:
    return COVERING[blame.reasons[int(blame.rows.reason[row])].stall_class]


def _without_distant(blame: Blame, rows: RowIndices) -> tuple[RowIndices, RowIndices]:
    """Differs from GPA: its code declares a limit on the distance and does not use it."""
    distances = np.array([_wanted(blame, row) for row in rows.tolist()], dtype=np.int64)
    near = blame.rows.distance[rows] < distances
    return rows[near], rows[~near]


def _pairs(context: KernelContext, blame: Blame, rows: RowIndices) -> list[_Pair]:
    order = np.argsort(-blame.rows.latency[rows], kind="stable")
    pairs = []
    for row in rows[order][:_CHECKED_ROWS].tolist():
        function = context.program.functions[int(blame.rows.function[row])]
        definition, use = int(blame.rows.def_index[row]), int(blame.rows.use_index[row])
        distance = _wanted(blame, row)
        room = room_to_move(function, definition, use, distance)
        cure = cure_of(function, definition, use, room, distance, context.program.form)
        if cure is Cure.ONE_AHEAD and (
            runs_once(context.program, (function.id, definition), context.profile) or _is_short(context)
        ):
            cure = None  # there is no next pass to load for; or full warps hide it, and come first
        weight = int(blame.rows.latency[row])
        pairs.append(_Pair(row=row, weight=weight, room=room, wanted=distance, cure=cure))
    return pairs


def _threads(context: KernelContext) -> int:
    """Threads of the launch; 0 where it is not known."""
    launch = None if context.profile is None else context.profile.launch
    return 0 if launch is None else launch.blocks * launch.threads_per_block


def _is_short(context: KernelContext) -> bool:
    """Whether blocks have fewer threads than a warp."""
    threads = 0 if context.profile is None else context.profile.launch.threads_per_block
    return 0 < threads < WARP


def _room(pairs: list[_Pair]) -> float:
    """The share of the matched latency that other work can stand in for."""
    return sum(pair.weight * pair.goes for pair in pairs) / sum(pair.weight for pair in pairs)


def _adjustment(pairs: list[_Pair]) -> Adjustment:
    total = sum(pair.weight for pair in pairs)
    expected = _room(pairs)
    obstacles: Counter[str] = Counter()
    for pair in pairs:
        if pair.goes < 1 and pair.room.obstacle is not None:
            obstacles[pair.room.obstacle] += pair.weight
    if not obstacles:
        return Adjustment(
            low=constants.REORDERED_LEAST,
            expected=constants.REORDERED * expected,
            high=1.0,
            reason="in the paper's Table III this change removed 16 to 90 % of what Eq. 4 says, 78 % on "
            "average over the three kernels without an obstacle that is checked here",
        )
    sentence = ", ".join(
        f"{percent(weight / total)} by {obstacle}" for obstacle, weight in obstacles.most_common(3)
    )
    return Adjustment(
        low=0.0,
        expected=constants.REORDERED * expected,
        high=1.0,
        reason=f"room to move covers {percent(expected)} of the matched latency; in part or whole it is "
        f"held: {sentence}",
    )


def _words(context: KernelContext, blame: Blame, pairs: list[_Pair]) -> tuple[str, str]:
    """Who waits for what, and the change where there is one."""
    top = pairs[0]
    function = context.program.functions[int(blame.rows.function[top.row])]
    definition, use = int(blame.rows.def_index[top.row]), int(blame.rows.use_index[top.row])
    distance = int(blame.rows.distance[top.row])
    apart = "" if distance == NO_INDEX else f", {distance} instruction{'s' if distance != 1 else ''} later"
    if function.instructions[definition].info.opclass is OpcodeClass.ATOMIC:
        result, reader = function.instructions[definition].opcode, function.instructions[use].opcode
        return (
            f"The result of {result} at {line_text(function, definition)} is used by {reader} at "
            f"{line_text(function, use)}{apart}. An atomic stays where it is:"
        ), (
            "put independent work behind the atomic, or, where the threads of a warp add to one address, let "
            f"one thread do it for all{terms.COUNTED_IN_WARP.of(context.language)}."
        )
    text = (
        f"{function.instructions[definition].opcode} at {line_text(function, definition)} "
        f"{_relation(blame, top)} {function.instructions[use].opcode} at {line_text(function, use)}{apart}:"
    )
    room_index = top.room.obstacle_index
    if top.cure is Cure.ONE_AHEAD:
        return text, "load for the next pass of the loop before the work of this one."
    if top.cure is Cure.IN_REGISTER:
        store = definition if room_index is None or definition in kept_in_memory(function) else room_index
        return text, in_register(function, store)
    late = store_behind(function, definition, use, top.wanted) if top.cure is Cure.LATE_STORE else None
    if late is not None:
        work, barrier = (line_text(function, index) for index in late)
        return text, (
            f"keep the values of {line_text(function, definition)} in registers and store them behind the "
            f"arithmetic that ends at {work}, before the barrier at {barrier} (not if a thread reads its own "
            "ones before): the compiler may not, as that reads the same shared array."
        )
    first = neighbour_that_decides(function, definition) if top.cure is Cure.BEFORE_CONDITION else None
    if first is not None:
        return text, (
            f"load it together with the value of {line_text(function, first)}, before the condition on that "
            "(not if there may be no such element): the compiler reads only what the condition asks for."
        )
    if top.cure is Cure.BEFORE_BARRIER and top.room.obstacle_index is not None:
        place = line_text(function, top.room.obstacle_index)
        return text, f"load the value before the barrier at {place}, which the compiler may not do."
    if top.cure is None:
        return f"{text} the compiler has put what it can between them.", ""
    if top.room.slots:
        several = top.room.slots > 1
        text += (
            f" About {top.room.slots} instruction{'s' if several else ''} nearby "
            f"{'are' if several else 'is'} independent of both."
        )
    if room_index is None:
        return f"{text} It is held by {top.room.obstacle}.", ""
    place = line_text(function, room_index)
    mark = terms.MARK_POINTERS.of(context.language, too="")
    held = f"{text} It is held by {top.room.obstacle} at {place}:"
    return held, f"{mark}, so that the load may pass {place}."


def _relation(blame: Blame, pair: _Pair) -> str:
    """What the use does to the def; one that overwrites an operand uses no result."""
    overwrites = CLASSES[int(blame.rows.dependency_class[pair.row])] is DependencyClass.WRITE_AFTER_READ
    return "still reads a register that is overwritten by" if overwrites else "is used by"


def _estimate(context: KernelContext, match: Match) -> Estimate:
    """Eq. 4; loads that stores to one element keep apart wait together without them, whatever else there is.

    Differs from GPA: Eq. 4 fills a wait with work alone, not with other waits, and no access goes.
    """
    if context.blame is None:
        raise ValueError("waits for loads need samples")
    blame, rows = context.blame, matched_rows(match)
    pairs = _pairs(context, blame, rows)
    cure = _heaviest_cure(pairs)
    if cure in _WAITED_FOR_AT_BARRIERS:
        loads = {
            (FunctionId(number), index)
            for number, index in zip(
                blame.rows.function[rows].tolist(), blame.rows.def_index[rows].tolist(), strict=True
            )
        }
        behind = by_stall(blame, {StallClass.SYNCHRONIZATION}) & by_place(blame, blame.rows.def_index, loads)
        beside = [latency(blame, rows)] * len(match.regions) if cure is Cure.BEFORE_CONDITION else []
        return latency_hiding(context, match, beside, delayed=samples(blame, behind), room=_room(pairs))
    if cure is not Cure.IN_REGISTER:
        return latency_hiding(context, match)
    places = [(code.id, index) for code in context.program.functions for index in kept_in_memory(code)]
    gone = by_place(blame, blame.rows.use_index, places)
    gone[rows] = False
    beside = [latency(blame, rows)] * len(match.regions)
    return latency_hiding(context, match, beside, gone=samples(blame, gone))


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="code-reordering",
    name="Code Reordering",
    category=Category.LATENCY_HIDING,
    match=_match,
    estimate=_estimate,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.KEEP_ELEMENT, SiteKind.BOTH_SIDES, SiteKind.RESTRICT),
    naming=name_pointers,
    what_if=WhatIf.ITS_EDIT,
)
