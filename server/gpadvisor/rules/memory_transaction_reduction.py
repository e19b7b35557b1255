# SPDX-License-Identifier: Apache-2.0
"""Memory Transaction Reduction: accesses that move more than they need (GPA Table II).

## What it finds

Stalls because the queue of the load/store unit is full (`lg_throttle`, `tex_throttle`), and, where the
report counted sectors and wavefronts for each instruction, what fills it: global accesses of a warp that
are spread over more 32-byte sectors than their bytes need, stores of that kind that are still in flight
when the warp exits (`drain`), and shared memory accesses that conflict on banks.

## Why warps stall

One instruction of a warp becomes as many memory transactions as it touches sectors (or conflicting
banks). The unit works them off one after the other, its queue fills, and no warp can hand in the next
access.

## What to try

- Let neighbouring threads access neighbouring addresses: swap indices or loops, or change an array of
  structures to a structure of arrays. Where one side of a copy must be strided, go through shared memory.
- Bank conflicts between rows: pad the row of a shared array by one element, or by as much as its widest
  access, or swizzle the index. Within a row padding does not help: let neighbouring threads take neighbouring
  elements.
- Fewer, wider accesses: `float4` loads, values kept in registers, read-only data in constant memory.

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
sorted, and rows that begin between two sectors cost one more for each warp: neither is counted as waste.

## How the gain is estimated

The paper's value is GPA Eq. 2 with the throttle stalls. Where sectors were counted, the units that they load
are relieved by the share that is waste, and the time that units work falls until the next one limits, which
can be more than the throttle stalls alone; the matched stalls go by the same share. Without counters, half
to all of the matched stalls: in the paper's Table III the one kernel of this kind gained 0.6. Without samples
there is no figure: counters say how many passes of L1 a request took, the addresses in the machine code how
many it needs and which take more. Bank conflicts that were counted to make most of the passes through L1 need
few samples: their share of that unit's load goes, and at the low end nobody waited for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Final

import numpy as np

from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer
from gpadvisor.estimators.passes import passes, scattered_stores
from gpadvisor.estimators.relieved import as_reliefs, relieved_bound
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import (
    DRAM,
    L1,
    L1_DATA,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    MEMORY_RESOURCES,
    measured_loads,
    utilisations,
)
from gpadvisor.evidence.access_shapes import (
    AccessShape,
    Lie,
    access_shape,
    conflict,
    distance_of_runs,
    feeds_tensor_cores,
    scattered_by_swap,
    widest_aligned,
    widest_shared,
)
from gpadvisor.evidence.accesses import is_global, is_local, is_shared
from gpadvisor.evidence.addresses import WIDEST_BYTES, Neighbours, neighbours
from gpadvisor.evidence.measured import Values, executed_warps, shared_bytes
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    by_stall,
    causes,
    counted,
    kernel_function,
    line_text,
    percent,
    regions,
    samples,
    share,
)
from gpadvisor.evidence.traffic import Place, Traffic, kernel_traffic
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, Relief, StaticSite, Utilisation
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.instruction import Instruction, OpcodeClass, Pipe
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass

_CODE: Final = "GPA106"
_SECTOR_BYTES: Final = 32
_WORD_BYTES: Final = 4
_BANK_ROW_BYTES: Final = 128
_WARP: Final = 32
_LOOKED: Final = 24
"""Places that waste most whose addresses are followed."""
_SPREAD: Final = _WARP / 2
"""Sectors of a warp's access from which its threads have nearly one each, whatever their addresses are."""
_THROTTLE: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.TEXTURE_THROTTLE})

_SCATTERED: Final = "global accesses of a warp are scattered over too many sectors"
_CONFLICTS: Final = "shared memory accesses conflict on banks"


def _is_atomic(instruction: Instruction) -> bool:
    return instruction.info.opclass in {OpcodeClass.ATOMIC, OpcodeClass.REDUCTION}


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
    if blame is None and profile is not None:
        proven = _by_counters(context, profile)
        if proven is not None:
            return proven
    if blame is None or profile is None:
        return Rejection(
            code=_CODE,
            reason="needs samples: machine code does not show which addresses the threads of a warp access",
            looked=False,
        )
    threads = profile.launch.threads_per_block
    if 0 < threads < _WARP:
        return Rejection(
            code=_CODE,
            reason=f"blocks of {threads} threads are no whole warp: their shape scatters the accesses, and "
            "comes first",
        )
    found = kernel_traffic(context.program, context.kernel, profile)
    cures = {} if found is None else _cures(context, profile, found)
    traffic = None if found is None else found.without({place for place in cures if not cures[place]})
    matched = _matched(context, blame, traffic)
    if blame.total_samples < constants.FEW_SAMPLES and traffic is not None and traffic.conflicting:
        counted_alone = _counted_conflicts(context, traffic, cures)
        if counted_alone is not None:
            return counted_alone
    if not samples(blame, matched.all):
        return Rejection(code=_CODE, reason=_nothing(traffic))
    atomic = share(blame, by_instruction(blame, context.program, causes(blame), _is_atomic))
    if atomic > constants.MAJORITY:
        return Rejection(
            code=_CODE,
            reason=f"{percent(atomic)} of the samples are due to atomic operations, which come first",
        )
    full = _full_unit(profile)
    wasteful = traffic is not None and (
        traffic.sectors > constants.ABOUT * traffic.ideal_sectors or bool(matched.conflicts.any())
    )
    if traffic is not None and not wasteful and full is not None:
        return Rejection(
            code=_CODE,
            reason=f"nothing to coalesce: {_millions(traffic.sectors)} sectors, {_fewest(found)}; the limit "
            f"is {_limit(full)}, so only fewer {_load(full)} help",
        )
    if full is not None and full.name in {L2, DRAM} and _mostly_conflicts(blame, matched):
        return Rejection(
            code=_CODE, reason=f"the limit is {_limit(full)}: bank conflicts are hidden behind it"
        )
    return Match(
        title=_title(blame, matched, wasteful=wasteful),
        cure=_main_cure(blame, matched, traffic, cures),
        advice=_advice(context, blame, matched, traffic, cures),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(matched.all)),
        adjustments=_adjustments(matched, traffic),
        relieves=() if traffic is None else _reliefs(profile, traffic),
        actionable=traffic is None or wasteful,
    )


def _by_counters(context: KernelContext, profile: KernelProfile) -> Match | None:
    """A full L1 with few requests, or many sectors for a store: as the machine code shows."""
    found = passes(context) or scattered_stores(context)
    function = kernel_function(context.program, context.kernel)
    if found is None or function is None:
        return None
    if found.banks:
        cures = {
            at: _cure_of_conflict(context, profile, (function.id, at)) for at in found.conflicting[:_LOOKED]
        }
    else:
        cures = {at: _cure_of_shape(context, profile, function, at) for at in found.scattered[:_LOOKED]}
    first = next((at for at, cure in cures.items() if cure), None)
    if first is None:
        return None
    cure, form, loop = cures[first], context.program.form, function.innermost_loop(first)
    sites = [
        StaticSite(function=function.id, index=at, detail=function.instructions[at].opcode)
        for at in cures
        if cures[at] and function.innermost_loop(at) == loop
    ]
    loads = (at for at, one in enumerate(function.instructions) if is_global(one))
    if cure == _BY_ROWS and any(
        access_shape(function, at, form, profile.launch).lie is Lie.UNKNOWN for at in loads
    ):
        cure = _BY_TILES  # swapped indices may scatter what could not be followed
    return Match(
        title=f"{_CONFLICTS if found.banks else _SCATTERED}: {found.words}",
        cure=cure,
        advice=f"{cure[:1].upper()}{cure[1:]}. {found.words}.",
        regions=(),
        static_sites=tuple(sites),
    )


def _counted_conflicts(context: KernelContext, traffic: Traffic, cures: _Cures) -> Match | None:
    """Bank conflicts by the report's counts alone, where they make most of the passes through L1."""
    after = traffic.ideal_l1_wavefronts / traffic.l1_wavefronts if traffic.l1_wavefronts else 1.0
    if after > constants.MAJORITY:
        return None
    ratio = traffic.wavefronts_shared / max(1.0, traffic.ideal_wavefronts_shared)
    what = f"shared memory accesses take {ratio:.1f} times the wavefronts they need"
    gone = {L1_DATA: after}
    # Nobody saw a warp wait for them: at the low end nobody does.
    bound = relieved_bound(measured_loads(context), {}, gone, gone, what)
    if bound is None:
        return None
    cure = _first(cures, traffic.conflicting)
    return Match(
        title=_CONFLICTS,
        cure=cure,
        advice=f"{what[0].upper()}{what[1:]}: {cure}.",
        regions=(),
        measured_bound=bound,
        relieves=as_reliefs(gone, gone),
        static_sites=tuple(
            StaticSite(function=function, index=index, detail="conflicts on banks")
            for function, index in traffic.conflicting
        ),
    )


def _matched(context: KernelContext, blame: Blame, traffic: Traffic | None) -> _Matched:
    program = context.program
    local = by_instruction(blame, program, causes(blame), is_local)
    double = by_instruction(blame, program, causes(blame), lambda one: one.info.pipe is Pipe.FP64)
    atomic = by_instruction(blame, program, causes(blame), _is_atomic)
    # Slow double precision queues like accesses; atomics wait for each other, and have a rule of their own.
    throttle = by_stall(blame, _THROTTLE) & ~local & ~double & ~atomic
    drain = by_class(blame, {DependencyClass.STORE_IN_FLIGHT}) & ~local & ~atomic
    nothing = np.zeros(len(blame.rows), dtype=bool)
    if traffic is None:
        return _Matched(throttle=throttle, scattered=drain, conflicts=nothing)
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


def _fewest(counted: Traffic | None) -> str:
    if counted is not None and counted.sectors > constants.ABOUT * counted.ideal_sectors:
        return "as few as the places of the data allow"
    return "the fewest for the bytes accessed"


def _nothing(traffic: Traffic | None) -> str:
    if traffic is None:
        return "no sample waits for the load/store queue (lg_throttle) or for stores at exit (drain)"
    return (
        f"no sample waits for the load/store queue (lg_throttle); {_millions(traffic.sectors)} sectors "
        "against "
        f"an ideal of {_millions(traffic.ideal_sectors)}"
    )


def _full_unit(profile: KernelProfile) -> Utilisation | None:
    """The busiest memory unit, if it is at its limit."""
    found = [entry for entry in utilisations(profile) if entry.name in MEMORY_RESOURCES]
    if any(entry.name in {L1_DATA, L1_REQUESTS, L1_TO_L2} for entry in found):
        found = [entry for entry in found if entry.name != L1]  # its parts say more
    busiest = max(found, key=lambda entry: entry.percent, default=None)
    return busiest if busiest is not None and busiest.percent >= constants.HIGH_PERCENT else None


def _limit(unit: Utilisation) -> str:
    name = "L1 throughput" if unit.name.startswith("L1") else f"{unit.name} throughput"
    return f"{name}, at {unit.percent:.0f} % of its peak ({unit.metric})"


def _load(unit: Utilisation) -> str:
    return (
        "and wider requests"
        if unit.name == L1_REQUESTS
        else "bytes"
        if unit.name in {L2, DRAM}
        else "accesses"
    )


def _millions(count: float) -> str:
    return f"{count / 1e6:,.1f} M" if count >= 1e5 else f"{count:,.0f}"


def _reliefs(profile: KernelProfile, traffic: Traffic) -> tuple[Relief, ...]:
    """How much of each unit's load is left when every access takes its fewest transactions.

    Behind L1, at worst each sector that is still asked for gets through to it; at best caches keep the share
    that they hold back today, but what moved no more than the fewest sectors has no waste in it. A modelled
    profile says that caches do: its hit rates are told, not found.
    """
    found = []
    now, after = traffic.l1_wavefronts, traffic.ideal_l1_wavefronts
    if now > after * constants.ABOUT and after > 0:
        found.append(Relief(resource=L1_DATA, remaining=after / now, remaining_best=after / now))
    kept = traffic.ideal_sectors / traffic.sectors if traffic.sectors else 1.0
    behind_l1, dram = traffic.l2_sectors(profile), traffic.dram_sectors(profile)
    for resource, moved in ((L1_TO_L2, behind_l1), (L2, behind_l1), (DRAM, dram)):
        if moved and 0 < kept < 1 / constants.ABOUT:
            modelled = profile.evidence is Evidence.MODELLED
            left = kept if modelled else min(1.0, traffic.ideal_sectors / moved)
            best = left if moved <= constants.ABOUT * traffic.ideal_sectors else min(left, kept)
            found.append(Relief(resource=resource, remaining=left, remaining_best=best))
    return tuple(found)


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


_Cures = Mapping[Place, str]
"""What to change by instruction; empty where nothing in the source would bring its threads together."""


def _cures(context: KernelContext, profile: KernelProfile, traffic: Traffic) -> _Cures:
    """Look at the places that waste most."""
    found = {}
    for place in islice(traffic.scattered, _LOOKED):
        found[place] = _cure_of_scattered(context, profile, traffic, place)
    for place in islice(traffic.conflicting, _LOOKED):
        found[place] = _cure_of_conflict(context, profile, place)
    return found


_BY_ROWS: Final = (
    "let threadIdx.x run along a row (swap the indices), or go through shared memory: neighbouring threads "
    "access different rows"
)
_BY_TILES: Final = (
    "fill tiles in shared memory with whole rows, or let each thread load 16 bytes of its row at a time: "
    "neighbouring threads access different rows"
)
_BY_TILE_READ: Final = (
    "read the tile in shared memory the other way around, so that threadIdx.x runs along the row that is "
    "stored: neighbouring threads store to different rows"
)
_FEWER_REQUESTS: Final = (
    "Make fewer and wider requests: vector loads and stores (float4), values kept in registers or shared "
    "memory, read-only parameters in constant memory."
)
_GENERAL: Final = "let neighbouring threads access neighbouring addresses, or go through shared memory"


def _cure_of_scattered(context: KernelContext, profile: KernelProfile, traffic: Traffic, place: Place) -> str:
    function, index = context.program.functions[place[0]], place[1]
    executed = executed_warps(profile, function)
    each = None if executed is None or not executed[index] else traffic.scattered[place] / executed[index]
    shape = access_shape(function, index, context.program.form, profile.launch)
    found = _cure_of_rows(context, profile, function, index, shape)
    if found:
        return found
    run = next((one for one in neighbours(function) if index in one.indices), None)
    if run is not None:
        found = _cure_of_run(function, index, run, shape, traffic.requested[place], executed)
        if found:
            return found
    if shape.lie is Lie.BY_DATA:
        return ""
    if each is not None and each <= constants.ABOUT * _WARP / shape.run and shape.lie is not Lie.APART:
        return ""  # one sector more: a row seldom begins on one
    if shape.lie is Lie.SAME and shape.run < _WARP:
        return ""  # rows of a block read one value each
    found = _cure_of_distance(shape)
    if found:
        return found
    known = shape.lie is not Lie.UNKNOWN
    spread = executed is None or traffic.requested[place] > _SPREAD * executed[index]
    return _GENERAL if known or spread else ""


def _cure_of_rows(
    context: KernelContext, profile: KernelProfile, function: Function, index: int, shape: AccessShape
) -> str:
    """What to do where a warp's threads are in different rows; empty where they are not."""
    if feeds_tensor_cores(function, index):
        alone = (
            " for several warps of a block (it has one now)"
            if profile.launch.threads_per_block <= _WARP
            else ""
        )
        return (
            f"fill tiles in shared memory with whole rows{alone}, and load the fragments from there: "
            "fragments of a matrix come straight from device memory"
        )
    if shape.lie is Lie.ROWS and any(is_shared(function.instructions[at]) for at in _stored(function, index)):
        return _BY_TILE_READ
    if shape.lie is Lie.ROWS:
        other = scattered_by_swap(function, index, context.program.form, profile.launch)
        if other is None:
            return _BY_ROWS
        return (
            "fill tiles in shared memory with whole rows, or let each thread load 16 bytes of its row at a "
            "time: neighbouring threads access different rows of one operand, and with the indices swapped "
            f"of another ({line_text(function, other)})"
        )
    return ""


def _stored(function: Function, index: int) -> frozenset[int]:
    """What may have written the value that a store stores; nothing of other accesses."""
    if function.instructions[index].info.opclass is not OpcodeClass.STORE:
        return frozenset()
    value = function.instructions[index].operands.rpartition(",")[2]
    wanted = [one for one in function.instructions[index].uses if f"R{int(one)}" == value.strip()]
    return frozenset().union(*(function.reaching.definitions(index, one) for one in wanted))


def _cure_of_distance(shape: AccessShape) -> str:
    """What to do where a constant distance, or a narrow block, keeps threads apart; empty where none does."""
    if shape.lie is Lie.NEIGHBOURS and shape.run * shape.distance < _SECTOR_BYTES:
        return (
            f"make the block wider in x: a row of it is {counted(shape.run, 'thread')} wide, which access "
            f"{shape.run * shape.distance} bytes side by side"
        )
    if shape.lie is Lie.APART:
        return (
            "let what neighbouring threads access follow each other (a structure of arrays, or each thread "
            f"every n-th element), or go through shared memory: they are {shape.distance} bytes apart"
        )
    return ""


def _cure_of_shape(context: KernelContext, profile: KernelProfile, function: Function, index: int) -> str:
    """What to do by the addresses alone, where nobody counted an access."""
    shape = access_shape(function, index, context.program.form, profile.launch)
    return _cure_of_rows(context, profile, function, index, shape) or _cure_of_distance(shape)


def _cure_of_run(
    function: Function,
    index: int,
    run: Neighbours,
    shape: AccessShape,
    sectors: float,
    executed: Values | None,
) -> str:
    """What to do where each thread accesses several values that follow each other; empty for nothing."""
    if executed is None or shape.lie is Lie.NEIGHBOURS:
        return ""  # a run of neighbouring threads overlaps the next one's: rows begin between sectors
    several = f"each thread accesses {len(run.indices)} values that follow each other there"
    wide = widest_aligned(run, shape)
    if wide == run.width_bytes:
        distance = distance_of_runs(run, shape)
        padded = 1 << (distance - 1).bit_length()
        if padded > WIDEST_BYTES:
            return ""
        return (
            f"move whole rows through shared memory by {WIDEST_BYTES} bytes a thread, or pad the elements of "
            f"{distance} bytes to {padded}, which moves {percent(padded / distance - 1)} more, "
            f"and access each at once: {several}, one by one"
        )
    if any(
        is_global(one) and (one.width_bytes or 0) >= wide
        for one in function.instructions
        if one.info.opclass in {OpcodeClass.LOAD, OpcodeClass.STORE}
    ):
        return f"use accesses of {wide} bytes, as elsewhere in the kernel: {several}, one by one"
    span = len(run.indices) * run.width_bytes
    # As many sectors as runs side by side take; where there are fewer, runs overlap; from a whole sector on,
    # all distances look alike.
    fewest = _WARP * min(1.0, span / _SECTOR_BYTES) * executed[index]
    looped = span >= _SECTOR_BYTES and function.innermost_loop(index) is not None
    if sectors > constants.ABOUT * fewest or constants.TWICE * sectors < fewest or looped:
        return ""
    return (
        "give each thread one value, or every n-th with n the number of threads, so that neighbouring "
        f"threads access neighbouring values, or use accesses of {wide} bytes: {several}"
    )


def _cure_of_conflict(context: KernelContext, profile: KernelProfile, place: Place) -> str:
    function, index = context.program.functions[place[0]], place[1]
    if _is_atomic(function.instructions[index]):
        return ""  # the data decide
    found = conflict(function, index, context.program.form, profile.launch)
    if found is Lie.BY_DATA:
        return ""
    where = line_text(function, index)
    widest = widest_shared(function)
    if found is None or isinstance(found, Lie):
        lost = _lost_blocks(context, profile, widest / _BANK_ROW_BYTES)
        return f"pad the rows of the array at {where} by {widest} bytes or swizzle the index{lost}"
    if found.pad is not None and found.row is None:
        return (
            f"pad the rows of the array at {where} by {found.pad} bytes or swizzle the index: neighbouring "
            "threads are in different rows"
        )
    if found.pad is not None:
        lost = _lost_blocks(context, profile, found.pad / (found.row or _BANK_ROW_BYTES))
        return (
            f"pad each row of {found.row} bytes of the array at {where} by {found.pad} bytes or swizzle the "
            f"index, so that {found.turns} turns of a warp become {found.after}{lost}"
        )
    width = function.instructions[index].width_bytes or _WORD_BYTES
    if found.distance is None:
        return f"swizzle the index at {where}: padding its rows does not part the banks"
    return (
        f"let neighbouring threads take neighbouring elements of {width} bytes at {where}: they are "
        f"{found.distance} bytes apart within a row, where padding does not help"
    )


def _lost_blocks(context: KernelContext, profile: KernelProfile, share: float) -> str:
    """What padding all of shared memory by a share would cost; empty where as many blocks fit on an SM."""
    now = shared_bytes(context.program, context.kernel, profile)
    facts = context.program.facts.get(context.kernel)
    if not now:
        return ""
    before, after = (
        kernel_occupancy(context.machine, facts, profile, more_shared_bytes=more).blocks_per_sm or 0
        for more in (0, ceil(now * share))
    )
    if after >= before:
        return ""
    return f"; with all of shared memory padded, {after} of {counted(before, 'block')} still fit on an SM"


def _main_cure(blame: Blame, matched: _Matched, traffic: Traffic | None, cures: _Cures) -> str:
    """The cure of what the title names."""
    if traffic is None:
        return _FEWER_REQUESTS
    if _mostly_conflicts(blame, matched):
        return _first(cures, traffic.conflicting)
    wasteful = traffic.sectors > constants.ABOUT * traffic.ideal_sectors
    return _first(cures, traffic.scattered) if wasteful else _FEWER_REQUESTS


def _first(cures: _Cures, places: Mapping[Place, float]) -> str:
    return next((cures[place] for place in places if place in cures), _GENERAL)


def _advice(
    context: KernelContext, blame: Blame, matched: _Matched, traffic: Traffic | None, cures: _Cures
) -> str:
    scattered = traffic is not None and traffic.sectors > constants.ABOUT * traffic.ideal_sectors
    conflicts = traffic is not None and samples(blame, matched.conflicts)
    mostly = _mostly_conflicts(blame, matched)
    parts = []
    if traffic is not None and scattered and not mostly:
        parts.append(
            f"Global accesses take {traffic.sectors / max(1.0, traffic.ideal_sectors):.1f} times the sectors "
            f"they need ({_millions(traffic.sectors)} against {_millions(traffic.ideal_sectors)}), most of "
            f"them at {traffic.worst(context.program)}: {_first(cures, traffic.scattered)}."
        )
    elif samples(blame, matched.throttle | matched.scattered) and not mostly:
        parts.append(_FEWER_REQUESTS)
    if traffic is not None and conflicts:
        ratio = traffic.wavefronts_shared / max(1.0, traffic.ideal_wavefronts_shared)
        parts.append(
            f"Shared memory accesses take {ratio:.1f} times the wavefronts they need: "
            f"{_first(cures, traffic.conflicting)}."
        )
    return " ".join(parts)


def _adjustments(matched: _Matched, traffic: Traffic | None) -> tuple[Adjustment, ...]:
    if traffic is None or traffic.sectors <= constants.ABOUT * traffic.ideal_sectors:
        waste = None if traffic is None or not matched.conflicts.any() else traffic.conflict_waste
    else:
        waste = traffic.waste
    if waste is None:
        return (
            Adjustment(
                low=0.0,
                expected=constants.REQUESTS,
                high=1.0,
                reason="no waste was counted; in the paper's Table III this change removed 61 % of the "
                "matched "
                "stalls (one kernel, ExaTENSOR)",
            ),
        )
    return (
        Adjustment(
            low=constants.MIDDLE * waste,
            expected=waste,
            high=1.0,
            reason=f"{percent(waste)} of the transactions are waste by the report's counts",
        ),
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="memory-transaction-reduction",
    name="Memory Transaction Reduction",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    twins=(
        "UncoalescedGlobalAccess",
        "UncoalescedSharedAccess",
        "SharedMemoryConflicts",
        "MemoryCacheAccessPattern",
    ),
)
