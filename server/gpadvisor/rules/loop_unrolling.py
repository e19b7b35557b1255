# SPDX-License-Identifier: Apache-2.0
"""Loop Unrolling: latency inside a loop that the next passes could hide (GPA Table II).

## What it finds

Latency samples of memory and execution dependencies whose def and use are in the same loop. For each loop
it looks at what decides whether unrolling helps: how many passes there are (from constants in the code,
or from executed counts), whether the compiler has unrolled it already, whether a value is carried from
pass to pass, comes from an atomic or stands behind a condition inside the pass, whether a barrier divides
the passes, and whether registers and the instruction cache have room. Without samples it names short
counted loops whose global loads could start a pass ahead and that nobody has unrolled.

## Why warps stall

In a rolled loop a warp loads, waits, computes, and only then starts the next pass. The load of the next
pass does not depend on this one, but it stands behind it in program order.

## What to try

`#pragma unroll 4` (or 2, or 8) above the loop: the compiler can then start the loads of several passes
before it uses the first. Where it cannot tell that stores do not touch what is loaded, mark pointers
`__restrict__`. Where addresses are consecutive, load `float4`. Sums in floating point keep their order:
use several accumulators. The compiler unrolls four times by itself; where the grid is so small that an SM
holds fewer warps than it could, four times more keep more loads in flight.

## Example

```cuda
#pragma unroll 4
for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i] * b[i];
```

## When this advice is wrong

If most threads run only a few passes (the paper's example is bfs, estimated 1.59 and achieved 1.12), if
each pass needs the value the last one loaded (a linked list) or waits for an atomic, if the loop is
unrolled already, if a barrier stands in each pass, or if more registers cost warps: where half or more of the
latency stays for such reasons, the suggestion is a note. Large unrolled bodies may not fit the instruction
cache: see Function Split.

## How the gain is estimated

GPA Eqs. 4 and 5: a loop's latency samples can be filled only with active samples of that loop and of
loops in it. The expected value lowers what the equations hide by what stands in the way, and to the 0.8
that the kernels without such an obstacle in the paper's Table III gained on average. What no order of
instructions can overlap (carried values, atomics) is left out of the high end, too. Counting and jumping
less often frees issue slots, so that a kernel whose schedulers are busy is capped less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.launches import lacks_warps
from gpadvisor.estimators.reliefs import freed
from gpadvisor.evidence.accesses import DEVICE_SPACES, is_memory, is_ordered
from gpadvisor.evidence.accumulators import is_recurrence
from gpadvisor.evidence.arrays import same_array
from gpadvisor.evidence.loops import (
    LoopFacts,
    divergence,
    every_pass,
    is_counted,
    loop_facts,
    loop_overhead,
    loops_of_same_loads,
    measured_trips,
)
from gpadvisor.evidence.measured import (
    Values,
    executed_threads,
    executed_warps,
    registers_per_thread,
    shared_bytes,
)
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.queries import (
    Rows,
    common_loop,
    kernel_functions,
    latency,
    line_text,
    location_text,
    percent,
    regions,
    static_match,
    waits_to_hide,
)
from gpadvisor.evidence.reordering import may_write
from gpadvisor.model.advice import Adjustment, Category, Match, Region, Rejection, Relief, StaticSite
from gpadvisor.model.blame import Blame
from gpadvisor.model.ids import FunctionId, LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind, Loop
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_pragma

_CODE: Final = "GPA201"
_UNROLL: Final = 4
"""The factor that room for registers and code is checked for."""
_SAID_LOOPS: Final = 2
_EXPOSED: Final = 32
"""A loop of more instructions covers much of a load's latency by itself."""
_WARP: Final = 32
_RECURRENCE_LIMIT: Final = 128
"""Heaviest defs of a kernel that are checked for a loop-carried chain; the rest count as their mean."""


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What unrolling a loop can be expected to do, as a share of its latency."""

    share: float
    possible: float  # at the high end: what no order of instructions can overlap is left out
    reasons: tuple[str, ...]
    store: int | None = None  # that may write what its loads read


def _match(context: KernelContext) -> Match | Rejection:
    if context.blame is None:
        return static_match(
            _CODE,
            title="loop with global loads that is not unrolled",
            advice=_static_advice(context),
            cure=_static_advice(context),
            sites=_rolled_loops(context),
            missing=f"no innermost counted loop of up to {_EXPOSED} instructions whose global loads could "
            "start a pass ahead and that is not unrolled",
        )
    blame = context.blame
    rows, loops = _in_same_loop(context, blame)
    if not latency(blame, rows):
        return Rejection(
            code=_CODE,
            reason=f"no latency sample whose def and use are in the same loop ({_loop_count(context)} loops)",
        )
    found = regions(blame, context.program, context.kernel, rows, loops)
    counts = _counts(context, found)
    outlooks = {_loop(region): _outlook(context, blame, region, counts) for region in found}
    best = max(found, key=lambda region: latency(blame, region.rows) * outlooks[_loop(region)].share)
    advice = _advice(context, best, outlooks[_loop(best)])
    return Match(
        title="latency inside a loop that later passes could hide",
        advice=advice,
        cure=advice,
        regions=found,
        adjustments=_adjustments(context, blame, found, [outlooks[_loop(region)] for region in found]),
        static_sites=_rolled_loops(context),
        relieves=_reliefs(context, found),
        actionable=_lanes(context) == _WARP  # full warps come first
        and not _is_unrolled(context, best)
        and outlooks[_loop(best)].share >= constants.MAJORITY,
    )


def _loop(region: Region) -> tuple[FunctionId | None, LoopId | None]:
    return region.scope.function, region.scope.loop


def _is_unrolled(context: KernelContext, region: Region) -> bool:
    """Whether a loop's body stands in the code as often as this rule would have it."""
    function, loop = region.scope.function, region.scope.loop
    if function is None or loop is None:
        return False
    copies = loop_facts(context.program.functions[function], loop).copies
    return copies >= _UNROLL and not lacks_warps(context)


def _static_advice(context: KernelContext) -> str:
    places = []
    for site in _rolled_loops(context):
        function = context.program.functions[site.function]
        loop = function.innermost_loop(site.index)
        location = None if loop is None else function.loops[loop].location
        place = line_text(function, site.index) if location is None else location_text(location)
        places.append(place)
    unique = list(dict.fromkeys(places))
    loops = f"loop{'s' if len(unique) > 1 else ''} at {', '.join(unique[:3])}"
    return (
        f"Unroll the {loops} (#pragma unroll {_UNROLL}), so that loads of several passes are in flight "
        "together."
    )


def _reliefs(context: KernelContext, found: tuple[Region, ...]) -> tuple[Relief, ...]:
    """A body that stands four times counts, compares and jumps once for four passes."""
    gone = {}
    for region in found:
        function, loop = region.scope.function, region.scope.loop
        if function is None or loop is None:
            continue
        code = context.program.functions[function]
        if loop_facts(code, loop).copies == 1:
            gone.update({(function, index): 1 - 1 / _UNROLL for index in loop_overhead(code, loop)})
    return freed(context, gone)


def _in_same_loop(context: KernelContext, blame: Blame) -> tuple[Rows, list[LoopId | None]]:
    """Dependency stalls inside a loop, each with the innermost loop around its def and its use."""
    table = blame.rows
    rows: list[int] = []
    loops: list[LoopId | None] = []
    for row in np.flatnonzero(waits_to_hide(blame, context.program)).tolist():
        function = context.program.functions[int(table.function[row])]
        loop = common_loop(function, int(table.def_index[row]), int(table.use_index[row]))
        if loop is not None:
            rows.append(row)
            loops.append(loop)
    return np.array(rows, dtype=np.intp), loops


def _loop_count(context: KernelContext) -> int:
    return sum(len(function.loops) for function in kernel_functions(context.program, context.kernel))


def _rolled_loops(context: KernelContext) -> tuple[StaticSite, ...]:
    """Short counted loops whose global loads could be in flight for several passes, and are not."""
    found = []
    for function in kernel_functions(context.program, context.kernel):
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        for loop in function.loops if function.kind is not FunctionKind.MATH_HELPER else ():
            start = function.blocks[loop.header].start
            if start in library or not _could_overlap(function, loop.id):
                continue
            facts = loop_facts(function, loop.id)
            if facts.copies == 1 and not _remainder(function, loop):
                count = sum(_is_global_load(function, index) for index in facts.indices)
                loads = "a global load" if count == 1 else f"{count} global loads"
                detail = f"loop of {len(facts.indices)} instructions with {loads}, not unrolled"
                found.append(StaticSite(function=function.id, index=start, detail=detail))
    return tuple(found)


def _is_global_load(function: Function, index: int) -> bool:
    info = function.instructions[index].info
    return info.opclass is OpcodeClass.LOAD and info.space in DEVICE_SPACES


def _could_overlap(function: Function, loop: LoopId) -> bool:
    """Whether loads of a later pass may start before this pass ends, by its code alone."""
    facts = loop_facts(function, loop)
    loads = [index for index in facts.indices if _is_global_load(function, index)]
    if not loads or facts.has_inner or facts.barriers or len(facts.indices) > _EXPOSED:
        return False
    if (facts.trips is not None and facts.trips < _UNROLL) or not is_counted(function, loop):
        return False
    if len(function.loops[loop].blocks) > 1:
        return False  # what a pass does depends on conditions, and so may how many passes there are
    lines = Counter(function.lines[index] for index in loads)
    if any(entry is not None and count > 1 for entry, count in lines.items()):
        return False  # one source line that loads several times: several passes, or several elements of one
    code = [function.instructions[index] for index in facts.indices]
    if any(one.guard is not None and is_memory(one) for one in code):
        return False  # accesses under a condition, without a branch around them
    infos = [one.info for one in code]
    if any(info.opclass in _HOLDS_ORDER for info in infos) or any(is_ordered(one) for one in code):
        return False
    stores = any(info.opclass is OpcodeClass.STORE and info.space in DEVICE_SPACES for info in infos)
    return any(
        every_pass(function, loop, index)
        and not is_recurrence(function, loop, index)
        and (not stores or "CONSTANT" in function.instructions[index].modifiers)
        for index in loads
    )


_HOLDS_ORDER: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.CALL})


def _remainder(function: Function, loop: Loop) -> bool:
    """Whether a loop does the last passes of an unrolled one: the compiler gives both the same lines."""
    same = set(loops_of_same_loads(function, loop.id))
    if loop.location is not None:
        same.update(one.id for one in function.loops if one.location == loop.location)
    else:
        same.update(one.id for one in function.loops if _is_multiple(function, one.id, loop.id))
    return any(loop_facts(function, other).copies > 1 for other in same - {loop.id})


def _is_multiple(function: Function, larger: LoopId, loop: LoopId) -> bool:
    """Whether a loop has each kind of load of another several times: all there is without lines."""
    several, once = (
        Counter(
            (function.instructions[index].opcode, function.instructions[index].modifiers)
            for index in loop_facts(function, one).indices
            if _is_global_load(function, index)
        )
        for one in (larger, loop)
    )
    times = {several[kind] / count for kind, count in once.items()}
    return several.keys() == once.keys() and len(times) == 1 and min(times) > 1


_Counts = Mapping[FunctionId, tuple[Values | None, Values | None]]
"""Executions of each instruction by warps and by threads, of each function that has a loop in question."""


def _counts(context: KernelContext, found: Collection[Region]) -> _Counts:
    return {
        function.id: (executed_warps(context.profile, function), executed_threads(context.profile, function))
        for function in context.program.functions
        if any(region.scope.function == function.id for region in found)
    }


def _outlook(context: KernelContext, blame: Blame, region: Region, counts: _Counts) -> _Outlook:
    """Differs from GPA: it looks at none of this, which the paper names as the cause of its largest error."""
    if region.scope.function is None or region.scope.loop is None:
        return _Outlook(0.0, 1.0, ("the loop is not known",))
    function = context.program.functions[region.scope.function]
    loop = region.scope.loop
    facts = loop_facts(function, loop)
    warps, threads = counts[function.id]
    few = lacks_warps(context)
    overlap, possible = _overlap(blame, function, loop, region.rows)
    load, store = _store_in_the_way(blame, function, facts, region.rows)
    checks = (
        overlap,
        _passes(warps, function, loop, facts),
        _threads(warps, threads, facts, _lanes(context)),
        None if few else _already(facts),
        _barrier(facts),
        _held(function, load, store),
    )
    costs = (
        ()
        if facts.copies >= _UNROLL and not few
        else (_code_size(context, facts), _registers(context, function, loop, facts))
    )
    share = 1.0
    found = sorted((check for check in (*checks, *costs) if check is not None), key=lambda check: check[0])
    for part, _ in found:
        share *= part
    return _Outlook(
        share,
        possible,
        tuple(reason for _, reason in found),
        store=store,
    )


_Check = tuple[float, str] | None


def _overlap(blame: Blame, function: Function, loop: LoopId, rows: Rows) -> tuple[_Check, float]:
    """The latency that a later pass could overlap at all, and what is left of it at the high end.

    Values carried from pass to pass come one after the other, whatever the order of instructions; so do
    results of atomics, which the compiler neither moves nor doubles; and a load behind a condition inside the
    pass waits for that condition.
    """
    weights: Counter[int] = Counter()
    for row in rows.tolist():
        weights[int(blame.rows.def_index[row])] += int(blame.rows.latency[row])
    heaviest = weights.most_common(_RECURRENCE_LIMIT)
    seen = sum(weight for _, weight in heaviest)
    if not seen:
        return None, 1.0
    parts: Counter[str] = Counter()
    for index, weight in heaviest:
        parts[_hindrance(function, loop, index)] += weight
    said = [f"{percent(parts[kind] / seen)} of its latency {kind}" for kind in _HINDRANCES if parts[kind]]
    never = (parts[_CARRIED] + parts[_ATOMIC]) / seen
    if not said:
        return None, 1.0
    return (
        1 - sum(parts[kind] for kind in _HINDRANCES) / seen,
        " and ".join(said),
    ), 1 - never


_CARRIED: Final = "is on values carried from pass to pass"
_ATOMIC: Final = "is on results of atomics and volatile loads, which stay one after the other"
_CONDITIONAL: Final = "is on loads behind a condition inside the pass"
_HINDRANCES: Final = (_CARRIED, _ATOMIC, _CONDITIONAL)


def _hindrance(function: Function, loop: LoopId, index: int) -> str:
    opclass = function.instructions[index].info.opclass
    if opclass is OpcodeClass.ATOMIC or is_ordered(function.instructions[index]):
        return _ATOMIC
    if is_recurrence(function, loop, index):
        return _CARRIED
    if opclass is OpcodeClass.LOAD and not every_pass(function, loop, index):
        return _CONDITIONAL
    return ""


def _passes(executed: Values | None, function: Function, loop: LoopId, facts: LoopFacts) -> _Check:
    trips = None if executed is None else measured_trips(function, loop, executed)
    source = "by executed counts"
    if trips is None and facts.trips is not None:
        trips, source = float(facts.trips), "by its constants"
    if trips is None or trips > _UNROLL:
        return None
    if trips < _UNROLL and facts.trips is None:
        return _in_whole_bodies(trips), (
            f"it runs only {trips:.1f} passes per entry {source}, and not always as many: the {_UNROLL} "
            "passes of an unrolled body are seldom there"
        )
    return max(0.0, trips - 1) / _UNROLL, f"it runs only {trips:.1f} passes per entry {source}"


def _in_whole_bodies(trips: float) -> float:
    """The share of passes that an unrolled body takes, where each may be the last with the same chance."""
    goes_on = 1 - 1 / max(1.0, trips)
    whole = _UNROLL * goes_on ** (_UNROLL - 1) / (1 - goes_on**_UNROLL)
    return whole / max(1.0, trips)


def _lanes(context: KernelContext) -> int:
    """Threads of a full warp of the launch; blocks may be smaller than a warp."""
    block = 0 if context.profile is None else context.profile.launch.threads_per_block
    return min(_WARP, block) or _WARP


def _threads(warps: Values | None, threads: Values | None, facts: LoopFacts, lanes: int) -> _Check:
    mean = divergence(warps, threads, facts.indices)
    if mean is None or mean >= constants.EDGE * lanes:
        return None
    return mean / lanes, (
        f"only {mean:.0f} of {lanes} threads of a warp are active in it: passes differ between threads"
    )


def _already(facts: LoopFacts) -> _Check:
    if facts.copies < 2 or facts.copies_reason is None:
        return None
    # The wait for one pass is shared by those in flight: of 1 - 1 / 4, so many copies have had their part.
    left = max(0.0, 1 - facts.copies / _UNROLL) / (1 - 1 / _UNROLL)
    return left, f"it is unrolled already: {facts.copies_reason}"


def _barrier(facts: LoopFacts) -> _Check:
    if not facts.barriers:
        return None
    keep = "barrier in each pass keeps" if facts.barriers == 1 else "barriers in each pass keep"
    return constants.HELD, f"{facts.barriers} {keep} its loads from starting earlier"


def _store_in_the_way(
    blame: Blame, function: Function, facts: LoopFacts, rows: Rows
) -> tuple[int | None, int | None]:
    """The load that a loop waits for most, and a store of the loop that may write what it reads."""
    weights: Counter[int] = Counter()
    for row in rows.tolist():
        weights[int(blame.rows.def_index[row])] += int(blame.rows.latency[row])
    load = next(
        (at for at, _ in weights.most_common() if function.instructions[at].info.opclass is OpcodeClass.LOAD),
        None,
    )
    if load is None:
        return None, None
    moved = function.instructions[load]
    return load, next((at for at in facts.indices if may_write(moved, function.instructions[at])), None)


def _held(function: Function, load: int | None, store: int | None) -> _Check:
    if load is None or store is None:
        return None
    if function.instructions[load].info.space not in DEVICE_SPACES or same_array(function, load, store):
        return (
            constants.HELD,
            f"each pass stores at {line_text(function, store)} to the array that it loads from",
        )
    # __restrict__, which the change names, takes this one away.
    return 1.0, f"its store at {line_text(function, store)} may write what the next pass loads"


def _code_size(context: KernelContext, facts: LoopFacts) -> _Check:
    cache = context.machine.sm.instruction_cache_l0_bytes.value
    if facts.size_bytes * 2 <= cache:
        return None
    return constants.HELD, (
        f"its code has {facts.size_bytes / 1024:.1f} KiB: two copies do not fit the {cache // 1024} KiB "
        "instruction cache of a scheduler"
    )


def _registers(context: KernelContext, function: Function, loop: LoopId, facts: LoopFacts) -> _Check:
    """Each load in flight needs its destination: whether that fits, and what it costs in warps."""
    registers = registers_per_thread(context.program, context.kernel, context.profile)
    if registers is None:
        return None
    loaded = sum(
        max(1, (function.instructions[index].width_bytes or 4) // 4)
        for index in facts.indices
        if function.instructions[index].info.opclass is OpcodeClass.LOAD and every_pass(function, loop, index)
    )
    wanted = registers + (_UNROLL - 1) * loaded
    cap = context.machine.sm.max_registers_per_thread.value
    if wanted > cap:
        return constants.HELD, f"{_UNROLL} passes in flight want about {wanted} of {cap} registers"
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
    return after / now, (
        f"{_UNROLL} passes in flight want about {wanted} registers, which leaves {after} of {now} warps per "
        "SM"
    )


def _adjustments(
    context: KernelContext, blame: Blame, found: tuple[Region, ...], outlooks: list[_Outlook]
) -> tuple[Adjustment, ...]:
    weights = [latency(blame, region.rows) for region in found]
    total = sum(weights)
    mean = sum(weight * outlook.share for weight, outlook in zip(weights, outlooks, strict=True)) / total
    most = sum(weight * outlook.possible for weight, outlook in zip(weights, outlooks, strict=True)) / total
    said = [
        f"{_place(context, region)}: {'; '.join(outlook.reasons)}"
        for region, outlook in list(zip(found, outlooks, strict=True))[:_SAID_LOOPS]
        if outlook.reasons
    ]
    if not said:
        return (
            Adjustment(
                low=constants.UNROLLED_LEAST,
                expected=constants.UNROLLED,
                high=1.0,
                reason="in the paper's Table III this change removed 29 to 95 % of what Eq. 4 says, 69 % on "
                "average over four kernels and 82 % over the three without an obstacle that is checked here",
            ),
        )
    together = _overlapping(found, outlooks, blame)
    high = max(most, constants.UNROLLED * mean)
    if together > high:
        said.append(f"loads of {_UNROLL} passes in flight wait together, not only behind work of their own")
        high = together
    return (Adjustment(low=0.0, expected=constants.UNROLLED * mean, high=high, reason="; ".join(said)),)


def _overlapping(found: tuple[Region, ...], outlooks: list[_Outlook], blame: Blame) -> float:
    """What all but one of the passes in flight would not wait any more, as a multiple of what Eq. 4 hides.

    Differs from GPA: Eq. 4 fills latency with work of the scope, at most as much as there is. Loads of
    several passes in flight also wait at the same time, whatever work there is.
    """
    weights = [latency(blame, region.rows) for region in found]
    filled = sum(min(region.active_samples, weight) for region, weight in zip(found, weights, strict=True))
    kept = sum(
        weight * outlook.possible * outlook.share for weight, outlook in zip(weights, outlooks, strict=True)
    )
    return (1 - 1 / _UNROLL) * kept / filled if filled else 0.0


def _place(context: KernelContext, region: Region) -> str:
    scope = region.scope
    if scope.location is not None:
        return f"the loop at {location_text(scope.location)}"
    if scope.function is None or scope.loop is None:
        return "the loop"
    function = context.program.functions[scope.function]
    header = function.blocks[function.loops[scope.loop].header]
    return f"the loop at 0x{function.instructions[header.start].pc:x}"


def _advice(context: KernelContext, region: Region, outlook: _Outlook) -> str:
    if region.scope.function is None or region.scope.loop is None:
        return f"Unroll the loop (#pragma unroll {_UNROLL})."
    facts = loop_facts(context.program.functions[region.scope.function], region.scope.loop)
    where = _place(context, region)
    if facts.copies > 1 and lacks_warps(context):
        text = (
            f"Unroll {where} further (#pragma unroll {_UNROLL * facts.copies}, {facts.copies} now), so that "
            "more loads are in flight: the grid gives an SM no other warps that would fill their wait."
        )
    elif facts.copies > 1:
        text = (
            f"Start loads of {where} earlier if nothing they need is in the way: it is unrolled "
            f"{facts.copies} times already."
        )
    elif facts.trips is not None and facts.trips <= 32:
        text = f"Unroll {where} completely (#pragma unroll): it runs {facts.trips} passes."
    else:
        text = (
            f"Unroll {where} (#pragma unroll {_UNROLL}), so that the loads of several passes are in flight "
            "together."
        )
    if outlook.store is not None and outlook.share >= constants.MAJORITY:
        place = line_text(context.program.functions[region.scope.function], outlook.store)
        restrict = "mark the pointers const __restrict__, too, if they never overlap"
        text = f"{text[:-1]}; {restrict}, so that loads may pass the store at {place}."
    if outlook.share < constants.MAJORITY and outlook.reasons:
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
    optimized_only=True,
    edits=(SiteKind.UNROLL, SiteKind.RESTRICT),
    naming=name_pragma,
    what_if=WhatIf.EDITED,
)
