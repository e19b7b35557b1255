# SPDX-License-Identifier: Apache-2.0
"""Constant Divergence: threads of a warp that read different constants (beyond GPA Table II).

## What it finds

Loads from constant memory (`LDC`) whose address differs between the threads of a warp, where warps wait for
them, or where the constant cache is the unit at its limit. The addresses are followed through the machine
code: how many different words a warp reads is computed from thread indices; where data decides it, the
constant cache has to be busy, too.

## Why warps stall

The constant cache serves one word at a time, for all threads that want it. A warp that wants 32 different
words takes 32 turns, one after the other, and everything else that reads constants waits behind it.

## What to try

- Read the array from global memory (`const T* __restrict__`), where the words of neighbouring threads come
  together, or copy it to shared memory once.
- Let all threads of a warp read the same constant: another loop order, one filter for each warp.

## Example

```cuda
__constant__ float mask[256];
tile[threadIdx.x] = in[i] * mask[threadIdx.x];      // 32 words: 32 turns of the constant cache

const float* __restrict__ mask;                     // from global memory: 4 sectors, one request
tile[threadIdx.x] = in[i] * mask[threadIdx.x];
```

## When this advice is wrong

Where the index is the same in nearly every warp, although the code does not show it, constant memory is the
best place. Where L1 is as full as the constant cache, its loads would wait there instead: then the rule is
silent.

## How the gain is estimated

GPA Eq. 2 with the waits that are due to these loads. Their turns leave the constant cache and the pipe that
feeds it, in proportion to the words that they read; what else is read there stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import ADU_PIPE, CONSTANT_CACHE, L1_DATA, L1_REQUESTS, measured_loads
from gpadvisor.evidence.access_shapes import Lie, words_of_a_warp
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import by_place, causes, kernel_functions, line_text, regions, share, stalled
from gpadvisor.model.advice import Adjustment, Category, Match, ReducedLoad, Region, Rejection, StaticSite
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import MemorySpace, Pipe
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function
from gpadvisor.model.sentence import capitalised

_CODE: Final = "GPA111"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """One load from constant memory by an address that differs between threads."""

    function: Function
    index: int
    words: int | None  # different ones that a warp reads; None where data decides
    warps: float  # executions; 1 where not counted

    @property
    def place(self) -> tuple[FunctionId, int]:
        """Where it is."""
        return self.function.id, self.index

    @property
    def turns(self) -> float:
        """Of the constant cache, in all; where data decides, as if half of the threads wanted the same."""
        return self.warps * (constants.MIDDLE * WARP if self.words is None else self.words)


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    if profile is None:
        return Rejection(code=_CODE, reason="needs a launch, which decides what threads are in a warp")
    loads = _loads(context, profile)
    if not loads:
        return Rejection(code=_CODE, reason="no load from constant memory differs between threads")
    units = {load.name: load.percent for load in measured_loads(context)}
    busy = max(units.get(CONSTANT_CACHE, 0.0), units.get(ADU_PIPE, 0.0))
    if busy < constants.BUSY_PERCENT:
        loads = [load for load in loads if load.words is not None]
    where: tuple[Region, ...] = ()
    if blame is None:
        if busy < constants.HIGH_PERCENT:
            return Rejection(
                code=_CODE, reason=f"without samples: the constant cache is at {percentage(busy)}"
            )
    else:
        places = [load.place for load in loads]
        rows = by_place(blame, causes(blame), places) & stalled(blame)
        part = share(blame, rows)
        if part < constants.NOTABLE:
            return Rejection(code=_CODE, reason=f"waits for such loads have {percent(part)} of the samples")
        where = regions(blame, context.program, context.kernel, np.flatnonzero(rows))
    instead = _l1_with(context, profile, loads, units)
    if instead > max(busy, constants.BUSY_PERCENT):
        return Rejection(code=_CODE, reason=f"L1 would be as full with these loads, at {percentage(instead)}")
    worst = max(loads, key=lambda load: load.turns)
    cure = (
        f"load these constants from global{terms.FROM_GLOBAL.of(context.language)} or shared memory, or let "
        "all threads of a warp read the same one"
    )
    return Match(
        title=f"threads of a warp read {_many(worst)}different constants, one after the other",
        cure=cure,
        advice=f"{capitalised(cure)}: the threads of a warp read {_many(worst)}different ones at "
        f"{line_text(worst.function, worst.index)}, one after the other.",
        regions=where,
        adjustments=(
            Adjustment(
                low=constants.LEAST_PART,
                expected=constants.MOST_OF,
                high=1.0,
                reason="loads from elsewhere have a latency, too",
            ),
        ),
        reduced_loads=_reduced_loads(context, profile, loads),
        static_sites=tuple(
            StaticSite(
                function=load.function.id, index=load.index, detail=f"{_many(load)}different constants"
            )
            for load in loads
        ),
    )


def _loads(context: KernelContext, profile: KernelProfile) -> list[_Load]:
    loads = []
    for function in kernel_functions(context.program, context.kernel):
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            times = 1.0 if executed is None else float(executed[index])
            if instruction.opcode != "LDC" or not times:
                continue
            words = words_of_a_warp(function, index, context.program.form, profile.launch)
            if words is Lie.BY_DATA or (isinstance(words, int) and words > 1):
                distinct_words = words if isinstance(words, int) else None
                loads.append(_Load(function=function, index=index, words=distinct_words, warps=times))
    return loads


def _many(load: _Load) -> str:
    return "" if load.words is None else f"{load.words} "


def _l1_with(
    context: KernelContext, profile: KernelProfile, loads: list[_Load], units: dict[str, float]
) -> float:
    """How full L1 would be, in percent, if the loads went through it as those that go there now."""
    turns_now = sum(
        float(executed[index])
        for function in kernel_functions(context.program, context.kernel)
        if (executed := executed_warps(profile, function)) is not None
        for index, instruction in enumerate(function.instructions)
        if is_memory(instruction) and instruction.info.pipe is Pipe.LSU
    )
    full = max(units.get(L1_DATA, 0.0), units.get(L1_REQUESTS, 0.0))
    return full * (1 + sum(load.warps for load in loads) / turns_now) if turns_now else full


def _reduced_loads(
    context: KernelContext, profile: KernelProfile, loads: list[_Load]
) -> tuple[ReducedLoad, ...]:
    """Other loads from constant memory stay, and on the pipe whatever else it does, a turn each."""
    gone, stay = sum(load.turns for load in loads), dict.fromkeys((CONSTANT_CACHE, ADU_PIPE), 0.0)
    places = {load.place for load in loads}
    for function in kernel_functions(context.program, context.kernel):
        executed = executed_warps(profile, function)
        for index, instruction in enumerate(function.instructions):
            if executed is None or instruction.info.pipe is not Pipe.ADU or (function.id, index) in places:
                continue
            stay[ADU_PIPE] += float(executed[index])
            if instruction.info.space is MemorySpace.CONSTANT:
                stay[CONSTANT_CACHE] += float(executed[index])
    return tuple(
        ReducedLoad(
            resource=unit,
            remaining=turns_left / (turns_left + gone),
            remaining_best=turns_left / (turns_left + gone),
        )
        for unit, turns_left in stay.items()
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="constant-divergence",
    name="Constant Divergence",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
)
