# SPDX-License-Identifier: Apache-2.0
"""Memory Transaction Reduction: accesses that move more than they need (GPA Table II).

## What it finds

Stalls because the queue of the load/store unit is full (`lg_throttle`, `tex_throttle`), and, where the
report counted sectors and wavefronts for each instruction, what fills it: global accesses of a warp that
are spread over more 32-byte sectors than their bytes need, stores of that kind that are still in flight
when the warp exits (`drain`), stores that each pass of a loop makes to the same elements, and shared memory
accesses that conflict on banks. Without a profile, global accesses in the innermost loops whose neighbouring
threads go along a row each, from its start to its end, or that only `threadIdx.y` goes along; and those apart
by a plane (a product of arguments), a row and an element, or a struct that is hardly used and has no pointer.

## Why warps stall

One instruction of a warp becomes as many memory transactions as it touches sectors (or conflicting
banks). The unit works them off one after the other, its queue fills, and no warp can hand in the next
access.

## What to try

- Let neighbouring threads access neighbouring addresses: swap indices or loops, or change an array of
  structures to a structure of arrays. Where one side of a copy must be strided, go through shared memory.
- Bank conflicts between rows: pad the row of a shared array by as many bytes as are told, of all paddings up
  to the 32 banks the smallest with the fewest turns over all accesses of that array that can be followed, as
  what parts one may bring another together. Into an array of one dimension insert bytes after every so many.
  Where no one padding helps most, swizzle the index. Within a row padding does not help: let neighbouring
  threads take neighbouring elements.
- Where a thread takes values that follow each other, one access of 8 or 16 bytes for them (`float4`), or
  elements padded to such a size.

## Example

```cuda
int row = blockIdx.x * blockDim.x + threadIdx.x;    // threads of a warp read 32 different rows
int col = blockIdx.y * blockDim.y + threadIdx.y;
sum += a[row * n + k] * b[k * n + col];

int col = blockIdx.x * blockDim.x + threadIdx.x;    // one row, 32 neighbours
int row = blockIdx.y * blockDim.y + threadIdx.y;

__shared__ float tile[32][33];                      // 33 instead of 32: columns without bank conflicts
```

## When this advice is wrong

If the sectors are as few as the bytes allow, there is nothing to coalesce: then the rule is silent and
names the unit that is full. Gathers through an index array have no better order unless the data can be
sorted, also where a called function is handed the index, and rows that begin between two sectors cost one
more for each warp: neither is counted as waste.
Of a search, whose last load decides where it goes next, the order of what is looked for can be
changed: sorting it takes time of its own, which the figure does not hold.
Nor is what a library's own loop accesses, which its callers cannot change. A distance that is an argument is
taken for a row's length only if as many sectors were counted, and values of a thread are only joined where
distance or sectors show that a wider access stays aligned. Where nothing of this is known, it is a note.
Without a profile warps are taken to run along `threadIdx.x`; of short rows, which L1 keeps, less is gained.

## How the gain is estimated

The paper's value is GPA Eq. 2 with the throttle stalls. Where sectors were counted, the units that they load
lose the share that is waste, and the time that units work falls until the next one limits, which
can be more than the throttle stalls alone; the matched stalls go by the same share. What fills the way from
L1 to L2 are sectors that are written, and a request for each line that is read. Without counters, none to all
of the stalls that are due to accesses which the machine code shows to be apart: in the paper's Table
III the one kernel of this kind gained 0.6. Without samples counters say how many passes of L1 a request took
and how many sectors it brought from L2 and DRAM, the machine code how many it needs and which accesses take
more: the load of the busiest unit then, and the time that none filled, are the estimate. Bank conflicts that
were counted to make most passes need few samples: at the low end nobody waited for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.access_cures import (
    LOOKED,
    THROTTLE,
    Cures,
    are_followed,
    cure_of_shape,
    cures_of,
    places_without_cure,
)
from gpadvisor.estimators.conflict_words import cure_of_conflict
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.counted_accesses import accesses_cured, conflicts_cured
from gpadvisor.estimators.latency import waits_for_dram
from gpadvisor.estimators.passes import passes, scattered_stores
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.traffic_loads import (
    fewest_words,
    full_unit,
    limit_words,
    load_words,
    loads_left,
    millions,
    nothing_words,
    transactions_gone,
)
from gpadvisor.estimators.uncounted_accesses import uncounted_accesses
from gpadvisor.estimators.utilisation import DRAM, L2
from gpadvisor.evidence.accesses import is_atomic, is_local
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    by_stall,
    causes,
    kernel_function,
    line_text,
    regions,
    samples,
    share,
    static_match,
)
from gpadvisor.evidence.repeated_stores import traffic_with_repeats
from gpadvisor.evidence.traffic import Traffic
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, StaticSite
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.figures import percent
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.machine import WARP
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import capitalised
from gpadvisor.model.stalls import StallClass
from gpadvisor.model.thread_use import CodePlace
from gpadvisor.source.edits import SiteKind

_CODE: Final = "GPA106"

_SCATTERED: Final = "global accesses of a warp are scattered over too many sectors"
_REPEATED: Final = "a loop stores to the same elements in every pass"
_CONFLICTS: Final = "shared memory accesses conflict on banks"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matched:
    """Rows by what they show."""

    throttle: Mask  # the paper's: global memory throttling
    scattered: Mask  # waits for, and drains of, accesses with wasted sectors
    conflicts: Mask  # waits for shared memory accesses with bank conflicts

    @property
    def all(self) -> Mask:
        return self.throttle | self.scattered | self.conflicts


def _match(context: KernelContext) -> Match | Rejection:
    blame, profile = context.blame, context.profile
    threads = 0 if profile is None else profile.launch.threads_per_block
    if 0 < threads < WARP:
        return Rejection(
            code=_CODE,
            reason=f"blocks of {threads} threads are no whole warp: their shape scatters the accesses, and "
            "comes first",
        )
    if profile is None:
        return _by_code(context)
    if blame is None:
        return _by_counters(context, profile) or Rejection(
            code=_CODE,
            reason="needs samples, or counters of L1: how many sectors accesses take is not known",
            looked=False,
        )
    counted, repeated = traffic_with_repeats(context.program, context.kernel, profile)
    cures = {**cures_of(context, profile, blame, counted), **repeated}
    traffic = None if counted is None else counted.without(places_without_cure(counted, cures))
    matched = _matched(context, blame, traffic, cures)
    if blame.total_samples < constants.FEW_SAMPLES and traffic is not None and traffic.conflicting:
        counted_alone = _counted_conflicts(context, traffic, cures)
        if counted_alone is not None:
            return counted_alone
    if not samples(blame, matched.all):
        return Rejection(code=_CODE, reason=nothing_words(traffic))
    atomic = share(blame, by_instruction(blame, context.program, causes(blame), is_atomic))
    if atomic > constants.MAJORITY:
        why = f"{percent(atomic)} of the samples are due to atomic operations, which come first"
        return Rejection(code=_CODE, reason=why)
    full = full_unit(profile)
    wasteful = traffic is not None and (
        traffic.sectors > constants.ABOUT * traffic.ideal_sectors or bool(matched.conflicts.any())
    )
    if traffic is not None and not wasteful and full is not None:
        return Rejection(
            code=_CODE,
            reason=f"nothing to coalesce: {millions(traffic.sectors)} sectors, {fewest_words(counted)}; the "
            f"limit is {limit_words(full)}, so only fewer {load_words(full)} help",
        )
    if full is not None and full.name in {L2, DRAM} and _mostly_conflicts(blame, matched):
        return Rejection(
            code=_CODE, reason=f"the limit is {limit_words(full)}: bank conflicts are hidden behind it"
        )
    place = _main_place(blame, matched, traffic, cures)
    return Match(
        title=_REPEATED if place in repeated else _title(blame, matched, wasteful=place is not None),
        cure="" if place is None else cures[place],
        advice=_advice(context, matched, traffic, cures, place) or _no_cure(counted),
        place=place,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(matched.all)),
        adjustments=_adjustments(matched, traffic),
        reduced_loads=() if traffic is None else loads_left(profile, traffic),
        from_dram=0.0 if traffic is None else waits_for_dram(context, profile, traffic),
        actionable=place is not None,
        remedies=(Remedy.KEEP_ELEMENT,) if place in repeated else (),
        replaced_by="GPA301",  # whose warps each take a row that a thread goes along now
    )


def _by_code(context: KernelContext) -> Match | Rejection:
    """What the machine code alone shows."""
    sites, cure = uncounted_accesses(context)
    missing = "no access of the innermost loops is seen to put neighbouring threads into different rows"
    advice = f"{capitalised(cure)}."
    return static_match(_CODE, title=_SCATTERED, advice=advice, cure=cure, sites=sites, missing=missing)


def _by_counters(context: KernelContext, profile: KernelProfile) -> Match | None:
    """A full L1 with few requests, or many sectors for a store: as the machine code shows."""
    many_passes = passes(context) or scattered_stores(context)
    function = kernel_function(context.program, context.kernel)
    if many_passes is None or function is None:
        return None
    if many_passes.banks:
        cures = {
            position: cure_of_conflict(context, profile, (function.id, position))
            for position in many_passes.conflicting[:LOOKED]
        }
    else:
        followed = are_followed(context, profile, function)
        cures = {
            position: cure_of_shape(context, profile, function, position, followed=followed)
            for position in many_passes.scattered[:LOOKED]
        }
    first = next((place for place, cure in cures.items() if cure), None)
    if first is None:
        return None
    cure, loop = cures[first], function.innermost_loop(first)
    sites = [
        StaticSite(function=function.id, index=position, detail=function.instructions[position].opcode)
        for position in cures
        if cures[position] and function.innermost_loop(position) == loop
    ]
    bound, reduced_loads = accesses_cured(context, profile, function, many_passes)
    return Match(
        title=f"{_CONFLICTS if many_passes.banks else _SCATTERED}: {many_passes.words}",
        cure=cure,
        advice=f"{capitalised(cure)}. {many_passes.words}.",
        regions=(),
        static_sites=tuple(sites),
        measured_bound=bound,
        reduced_loads=reduced_loads,
        counted=True,
    )


def _counted_conflicts(context: KernelContext, traffic: Traffic, cures: Cures) -> Match | None:
    """Bank conflicts by the report's counts alone, where they make most of the passes through L1."""
    after = traffic.ideal_l1_wavefronts / traffic.l1_wavefronts if traffic.l1_wavefronts else 1.0
    place = _first(cures, traffic.conflicting)
    if after > constants.MAJORITY or place is None:
        return None
    ratio = traffic.wavefronts_shared / max(1.0, traffic.ideal_wavefronts_shared)
    text = f"shared memory accesses take {ratio:.1f} times the wavefronts they need"
    bound, reduced_loads = conflicts_cured(context, after, text)
    if bound is None:
        return None
    return Match(
        title=_CONFLICTS,
        cure=cures[place],
        advice=f"{capitalised(text)}: {cures[place]}.",
        regions=(),
        measured_bound=bound,
        reduced_loads=reduced_loads,
        static_sites=tuple(
            StaticSite(function=function, index=index, detail="conflicts on banks")
            for function, index in traffic.conflicting
        ),
    )


def _matched(context: KernelContext, blame: Blame, traffic: Traffic | None, cures: Cures) -> _Matched:
    program = context.program
    local = by_instruction(blame, program, causes(blame), is_local)
    double = by_instruction(
        blame, program, causes(blame), lambda instruction: instruction.info.pipe is Pipe.FP64
    )
    atomic = by_instruction(blame, program, causes(blame), is_atomic)
    # Slow double precision queues like accesses; atomics wait for each other, and have a rule of their own.
    throttle = by_stall(blame, THROTTLE) & ~local & ~double & ~atomic
    drain = by_class(blame, {DependencyClass.STORE_IN_FLIGHT}) & ~local & ~atomic
    nothing = np.zeros(len(blame.rows), dtype=bool)
    if traffic is None:
        proven = [place for place in cures if cures[place]]
        if proven:
            throttle &= by_place(blame, causes(blame), proven)
        return _Matched(throttle=throttle, scattered=nothing if proven else drain, conflicts=nothing)
    waste = by_place(blame, causes(blame), traffic.scattered)
    scattered = drain & waste
    if share(blame, throttle) < constants.SMALL:
        # With an empty queue the cost of scattered loads shows as longer waits for their data.
        scattered |= by_class(blame, {DependencyClass.GLOBAL_MEMORY}) & waste
    if share(blame, scattered) < constants.SMALL:
        scattered = nothing  # the paper's value stands on the throttle stalls alone
    at_conflict = by_place(blame, causes(blame), traffic.conflicting)
    waits = by_class(blame, {DependencyClass.SHARED_MEMORY}) | by_stall(blame, {StallClass.SHARED_THROTTLE})
    return _Matched(throttle=throttle, scattered=scattered & ~throttle, conflicts=at_conflict & waits)


def _title(blame: Blame, matched: _Matched, *, wasteful: bool) -> str:
    if _mostly_conflicts(blame, matched):
        return _CONFLICTS
    if wasteful:
        return _SCATTERED
    if samples(blame, matched.scattered) > samples(blame, matched.throttle):
        return "stores still in flight at exit"
    return "too many memory requests for the load/store queue"


def _mostly_conflicts(blame: Blame, matched: _Matched) -> bool:
    return samples(blame, matched.conflicts) > samples(blame, matched.throttle | matched.scattered)


def _main_place(blame: Blame, matched: _Matched, traffic: Traffic | None, cures: Cures) -> CodePlace | None:
    """Where most of what the title names stands; None where nothing is known that would help."""
    places: Iterable[CodePlace] = cures
    if traffic is not None and _mostly_conflicts(blame, matched):
        places = traffic.conflicting
    elif traffic is not None:
        places = traffic.scattered if traffic.sectors > constants.ABOUT * traffic.ideal_sectors else ()
    return _first(cures, places)


def _first(cures: Cures, places: Iterable[CodePlace]) -> CodePlace | None:
    """The first place with a cure."""
    return next((place for place in places if cures.get(place)), None)


def _advice(
    context: KernelContext, matched: _Matched, traffic: Traffic | None, cures: Cures, place: CodePlace | None
) -> str:
    """What was counted, and the change; empty where there is none."""
    parts = []
    if place is not None and (traffic is None or place in traffic.scattered):
        function, index = context.program.functions[place[0]], place[1]
        where = f"{function.instructions[index].opcode} {line_text(function, index)}"
        parts.append(
            f"Nobody counted sectors; the addresses of {where} show it: {cures[place]}."
            if traffic is None
            else f"Global accesses take {traffic.sectors / max(1.0, traffic.ideal_sectors):.1f} times the "
            f"sectors they need ({millions(traffic.sectors)} against {millions(traffic.ideal_sectors)}), "
            f"most of them at {where}: {cures[place]}."
        )
    first = None if traffic is None else _first(cures, traffic.conflicting)
    if traffic is not None and first is not None and matched.conflicts.any():
        ratio = traffic.wavefronts_shared / max(1.0, traffic.ideal_wavefronts_shared)
        parts.append(
            f"Shared memory accesses take {ratio:.1f} times the wavefronts they need: {cures[first]}."
        )
    return " ".join(parts)


def _no_cure(counted: Traffic | None) -> str:
    if counted is None:
        return "Nobody counted sectors, and no addresses in the machine code are apart."
    return f"Nothing to coalesce: {millions(counted.sectors)} sectors, {fewest_words(counted)}."


def _adjustments(matched: _Matched, traffic: Traffic | None) -> tuple[Adjustment, ...]:
    if traffic is None or traffic.sectors <= constants.ABOUT * traffic.ideal_sectors:
        waste = None if traffic is None or not matched.conflicts.any() else traffic.conflict_waste
    else:
        waste = traffic.waste
    return (transactions_gone(waste),)


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="memory-transaction-reduction",
    name="Memory Transaction Reduction",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.SCATTERED_GAVE,
    document=__doc__ or "",
    edits=(SiteKind.KEEP_ELEMENT,),
    twins=(
        "UncoalescedGlobalAccess",
        "UncoalescedSharedAccess",
        "SharedMemoryConflicts",
        "MemoryCacheAccessPattern",
    ),
)
