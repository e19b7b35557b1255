# SPDX-License-Identifier: Apache-2.0
"""Loop Unrolling: latency inside a loop that the next passes could hide (GPA Table II).

## What it finds

Latency samples of memory and execution dependencies whose def and use are in the same loop. For each loop
it looks at what decides whether unrolling helps: how many passes there are (from constants in the code,
or from executed counts), whether the compiler has unrolled it already, whether a value is carried from
pass to pass, whether a barrier divides the passes, and whether registers and the instruction cache have
room.

## Why warps stall

In a rolled loop a warp loads, waits, computes, and only then starts the next pass. The load of the next
pass does not depend on this one, but it stands behind it in program order.

## What to try

`#pragma unroll 4` (or 2, or 8) above the loop: the compiler can then start the loads of several passes
before it uses the first. Where it cannot tell that stores do not touch what is loaded, mark pointers
`__restrict__`. Where addresses are consecutive, load `float4`. Sums in floating point keep their order:
use several accumulators.

## Example

```cuda
#pragma unroll 4
for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
```

## When this advice is wrong

If most threads run only a few passes (the paper's example is bfs, estimated 1.59 and achieved 1.12), if
each pass needs the value the last one loaded (a linked list), if the loop is unrolled already, or if more
registers cost warps. Large unrolled bodies may not fit the instruction cache: see Function Split.

## How the gain is estimated

GPA Eqs. 4 and 5: a loop's latency samples can be filled only with active samples of that loop and of
loops in it. The expected value lowers the matched latency by what stands in the way, and to the 0.8 that
the kernels without such an obstacle in the paper's Table III gained on average.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.blamer.loops import LoopFacts, divergence, is_recurrence, loop_facts, measured_trips
from gpadvisor.blamer.measured import executed_threads, executed_warps, registers_per_thread, shared_bytes
from gpadvisor.blamer.patterns import math_sequences
from gpadvisor.blamer.queries import (
    Rows,
    by_class,
    by_role,
    by_stall,
    common_loop,
    kernel_functions,
    latency,
    percent,
    regions,
    static_match,
)
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.model.advice import Adjustment, Category, Match, Region, Rejection, StaticSite
from gpadvisor.model.blame import NO_INDEX, Blame, DependencyClass, Role
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind, Loop
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA201"
_UNROLL: Final = 4
"""The factor that room for registers and code is checked for."""
_CLEAR: Final = 0.8
"""Share of the matched latency that goes where nothing stands in the way (Table III without bfs)."""
_LOSS: Final = -0.1
"""Low end where unrolling takes registers from other warps or code from the cache: slower by a tenth of M."""
_FEW_TRIPS: Final = 4.0
_DIVERGED_THREADS: Final = 24.0
_RECURRENCE_LIMIT: Final = 128
"""Heaviest defs of a kernel that are checked for a loop-carried chain; the rest count as their mean."""
_STALLS: Final = frozenset({StallClass.MEMORY, StallClass.EXECUTION, StallClass.FIXED_LATENCY})
_CLASSES: Final = frozenset(
    {
        DependencyClass.GLOBAL_MEMORY,
        DependencyClass.TEXTURE,
        DependencyClass.CONSTANT_MEMORY,
        DependencyClass.SHARED_MEMORY,
        DependencyClass.ARITHMETIC,
        DependencyClass.WRITE_AFTER_READ,
        DependencyClass.ASYNC_COPY,
        DependencyClass.TENSOR,
    }
)


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What unrolling a loop can be expected to do, as a share of its latency."""

    share: float
    reasons: tuple[str, ...]
    may_cost: bool = False  # more code or fewer warps can cost more than is gained


def _match(context: KernelContext) -> Match | Rejection:
    if context.blame is None:
        return static_match(
            _CODE,
            title="loop with memory loads that is not unrolled",
            advice=f"Try #pragma unroll {_UNROLL}, so that loads of several passes are in flight together.",
            sites=_rolled_loops(context),
            missing="no innermost loop with a memory load that is not unrolled already",
        )
    blame = context.blame
    rows, loops = _in_same_loop(context, blame)
    if not latency(blame, rows):
        return Rejection(
            code=_CODE,
            reason=f"no latency sample whose def and use are in the same loop ({_loop_count(context)} loops)",
        )
    found = regions(blame, context.program, context.kernel, rows, loops)
    outlooks = {
        (region.scope.function, region.scope.loop): _outlook(context, blame, region) for region in found
    }
    heaviest = max(found, key=lambda region: latency(blame, region.rows))
    return Match(
        title="latency inside a loop that later passes could hide",
        advice=_advice(context, heaviest, outlooks[heaviest.scope.function, heaviest.scope.loop]),
        regions=found,
        adjustments=_adjustments(blame, found, [outlooks[r.scope.function, r.scope.loop] for r in found]),
        static_sites=_rolled_loops(context),
    )


def _in_same_loop(context: KernelContext, blame: Blame) -> tuple[Rows, list[LoopId | None]]:
    """Dependency stalls inside a loop, each with the innermost loop around its def and its use."""
    table = blame.rows
    mask = by_role(blame, Role.BLAMED) & by_stall(blame, _STALLS) & by_class(blame, _CLASSES)
    mask &= (table.def_index != NO_INDEX) & (table.use_index != NO_INDEX)
    mask &= table.function < len(context.program.functions)
    rows: list[int] = []
    loops: list[LoopId | None] = []
    for row in np.flatnonzero(mask).tolist():
        function = context.program.functions[int(table.function[row])]
        loop = common_loop(function, int(table.def_index[row]), int(table.use_index[row]))
        if loop is not None:
            rows.append(row)
            loops.append(loop)
    return np.array(rows, dtype=np.intp), loops


def _loop_count(context: KernelContext) -> int:
    return sum(len(function.loops) for function in kernel_functions(context.program, context.kernel))


def _rolled_loops(context: KernelContext) -> tuple[StaticSite, ...]:
    found = []
    for function in kernel_functions(context.program, context.kernel):
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        for loop in function.loops if function.kind is not FunctionKind.MATH_HELPER else ():
            facts = loop_facts(function, loop.id)
            rolled = facts.copies == 1 and not _remainder(function, loop)
            rolled &= function.blocks[loop.header].start not in library
            if rolled and facts.loads and not facts.has_inner and not facts.barriers:
                detail = f"loop of {len(facts.indices)} instructions with {facts.loads} loads, not unrolled"
                start = function.blocks[loop.header].start
                found.append(StaticSite(function=function.id, index=start, detail=detail))
    return tuple(found)


def _remainder(function: Function, loop: Loop) -> bool:
    """Whether a loop does the last passes of an unrolled one: the compiler gives both the same line."""
    return loop.location is not None and any(
        other.location == loop.location and loop_facts(function, other.id).copies > 1
        for other in function.loops
        if other.id != loop.id
    )


def _outlook(context: KernelContext, blame: Blame, region: Region) -> _Outlook:
    """Differs from GPA: it looks at none of this, which the paper names as the cause of its largest error."""
    if region.scope.function is None or region.scope.loop is None:
        return _Outlook(0.0, ("the loop is not known",))
    function = context.program.functions[region.scope.function]
    loop = region.scope.loop
    facts = loop_facts(function, loop)
    checks = (
        _carried(blame, function, loop, region.rows),
        _passes(context, function, loop, facts),
        _threads(context, function, facts),
        _already(facts),
        _barrier(facts),
    )
    costs = (
        () if facts.copies >= _UNROLL else (_code_size(context, facts), _registers(context, function, facts))
    )
    share = 1.0
    reasons = []
    for check in (*checks, *costs):
        if check is not None:
            share *= check[0]
            reasons.append(check[1])
    return _Outlook(share, tuple(reasons), may_cost=any(cost is not None for cost in costs))


_Check = tuple[float, str] | None


def _carried(blame: Blame, function: Function, loop: LoopId, rows: Rows) -> _Check:
    weights: Counter[int] = Counter()
    for row in rows.tolist():
        weights[int(blame.rows.def_index[row])] += int(blame.rows.latency[row])
    heaviest = weights.most_common(_RECURRENCE_LIMIT)
    seen = sum(weight for _, weight in heaviest)
    carried = sum(weight for index, weight in heaviest if is_recurrence(function, loop, index))
    if not carried:
        return None
    part = carried / seen
    return 1 - part, f"{percent(part)} of its latency is on values carried from pass to pass"


def _passes(context: KernelContext, function: Function, loop: LoopId, facts: LoopFacts) -> _Check:
    executed = executed_warps(context.profile, function)
    trips = None if executed is None else measured_trips(function, loop, executed)
    source = "by executed counts"
    if trips is None and facts.trips is not None:
        trips, source = float(facts.trips), "by its constants"
    if trips is None or trips > _FEW_TRIPS:
        return None
    return max(0.0, trips - 1) / _FEW_TRIPS, f"it runs only {trips:.1f} passes per entry {source}"


def _threads(context: KernelContext, function: Function, facts: LoopFacts) -> _Check:
    mean = divergence(
        executed_warps(context.profile, function), executed_threads(context.profile, function), facts.indices
    )
    if mean is None or mean >= _DIVERGED_THREADS:
        return None
    return mean / 32, f"only {mean:.0f} of 32 threads are active in it: passes differ between threads"


def _already(facts: LoopFacts) -> _Check:
    if facts.copies < 2 or facts.copies_reason is None:
        return None
    return (0.3 if facts.copies >= _UNROLL else 0.6), f"it is unrolled already: {facts.copies_reason}"


def _barrier(facts: LoopFacts) -> _Check:
    if not facts.barriers:
        return None
    return 0.4, f"{facts.barriers} barriers in each pass keep its loads from starting earlier"


def _code_size(context: KernelContext, facts: LoopFacts) -> _Check:
    cache = context.machine.sm.instruction_cache_l0_bytes.value
    if facts.size_bytes * 2 <= cache:
        return None
    return 0.5, (
        f"its code has {facts.size_bytes / 1024:.1f} KiB: two copies do not fit the {cache // 1024} KiB "
        "instruction cache of a scheduler"
    )


def _registers(context: KernelContext, function: Function, facts: LoopFacts) -> _Check:
    """Each load in flight needs its destination: whether that fits, and what it costs in warps."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return None
    loaded = sum(
        max(1, (function.instructions[index].width_bytes or 4) // 4)
        for index in facts.indices
        if function.instructions[index].info.opclass is OpcodeClass.LOAD
    )
    wanted = registers + (_UNROLL - 1) * loaded
    cap = context.machine.sm.max_registers_per_thread.value
    if wanted > cap:
        return 0.5, f"{_UNROLL} passes in flight want about {wanted} of {cap} registers"
    if context.profile is None or not context.occupancy.warps_per_sm:
        return None
    after = occupancy(
        context.machine.sm,
        threads_per_block=max(1, context.profile.launch.threads_per_block),
        registers_per_thread=wanted,
        shared_bytes=shared_bytes(context.program, context.kernel, context.profile) or 0,
    ).warps_per_sm
    now = context.occupancy.warps_per_sm
    if after is None or after >= now:
        return None
    return max(0.5, after / now), (
        f"{_UNROLL} passes in flight want about {wanted} registers, which leaves {after} of {now} warps per "
        "SM"
    )


def _adjustments(blame: Blame, found: tuple[Region, ...], outlooks: list[_Outlook]) -> tuple[Adjustment, ...]:
    weights = [latency(blame, region.rows) for region in found]
    total = sum(weights)
    mean = sum(weight * outlook.share for weight, outlook in zip(weights, outlooks, strict=True)) / total
    said = [
        f"{_place(region)}: {reason}"
        for region, outlook in list(zip(found, outlooks, strict=True))[:3]
        for reason in outlook.reasons
    ]
    if not said:
        return (
            Adjustment(
                low=0.29,
                expected=_CLEAR,
                high=1.0,
                reason="in the paper's Table III this change removed 29 to 95 % of the matched stalls, 69 % "
                "on "
                "average over four kernels and 82 % over the three without an obstacle that is checked here",
            ),
        )
    low = _LOSS if any(outlook.may_cost for outlook in outlooks) else 0.0
    return (Adjustment(low=low, expected=_CLEAR * mean, high=1.0, reason="; ".join(said)),)


def _place(region: Region) -> str:
    location = region.scope.location
    return "the loop" if location is None else f"the loop at line {location.line}"


def _advice(context: KernelContext, region: Region, outlook: _Outlook) -> str:
    if region.scope.function is None or region.scope.loop is None:
        return f"Unroll the loop (#pragma unroll {_UNROLL})."
    facts = loop_facts(context.program.functions[region.scope.function], region.scope.loop)
    where = _place(region)
    if facts.copies > 1:
        text = (
            f"{where[0].upper()}{where[1:]} is unrolled {facts.copies} times already; see whether loads can "
            "start earlier."
        )
    elif facts.trips is not None and facts.trips <= 32:
        text = f"Unroll {where} completely (#pragma unroll): it runs {facts.trips} passes."
    else:
        text = (
            f"Unroll {where} (#pragma unroll {_UNROLL}), so that the loads of several passes are in flight "
            "together."
        )
    if outlook.share < 0.5 and outlook.reasons:
        text += f" Little may come of it: {outlook.reasons[0]}."
    return text


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="loop-unrolling",
    name="Loop Unrolling",
    category=Category.LATENCY_HIDING,
    match=_match,
    estimate=latency_hiding,
    document=__doc__ or "",
)
