# SPDX-License-Identifier: Apache-2.0
"""Register Reuse: values that live in local memory because registers ran out (GPA Table II).

## What it finds

Stalls that loads and stores of local memory cause. Different things live there: *spills*, registers that
the compiler had to store to fixed places of the stack frame; *indexed arrays*, arrays of a thread that are
indexed with a value known only at run time; *arrays of constants*, which each thread fills with the same
numbers; and *copied parameters*, structs passed to the kernel by value whose arrays are indexed so. The
machine code tells them apart: a cubin of CUDA 13 lists its spills, in older ones the address of a spill is
the stack pointer and a constant, and the place is both written and read; into a copy goes nothing but
parameters, or constants. Of several arrays the largest is told, as far as their addresses tell them apart.
What a library indexes, and a struct whose address is passed on and that the compiler copies word by word, is
no array of the source. Without samples only those in loops are named, where there are loops, and in functions
that are called in one; of a kernel without loops spills, where they are a notable part of its code.

## Why warps stall

Local memory is memory. A spilled value is written through the L1 cache and comes back with the latency of
a load, and every spill takes a place in the load/store queue, although the program asked for a register.

## What to try

For spills: make fewer values live at once. Split a large loop or kernel, load a value where it is used
instead of long before, recompute what is cheap, narrow what is wide. If the compiler was given fewer
registers than the hardware allows (`__launch_bounds__`, `-maxrregcount`), raise that limit as far as the
occupancy that the kernel needs permits; the advice names the numbers. For indexed arrays: unroll the loop
over the index completely, so that each element becomes a register, or move the array to shared memory. An
index that comes from a table in `__constant__` memory is unknown to the compiler, which keeps that memory for
the host to write: as `static __device__ const` the table tells it. An array of constants is best outside of
the kernel: `__constant__` where the threads of a warp read the same element; else, as constant memory gives
different elements one after the other, `static __device__ const` (global memory, through L1) or shared. One
that data index (a histogram of each thread), or whose index conditions move (a stack, a buffer that fills),
has no such loop: shared memory, where the block's fit. A parameter that the kernel does not change needs no
copy: `const __grid_constant__` (CUDA 11.7, sm_70) lets it be read where it is passed, in constant memory.

## Example

```cuda
__global__ void __launch_bounds__(1024) kernel(...)   // 64 registers at most: spills
__global__ void __launch_bounds__(512)  kernel(...)   // 128 registers: no spills

float a[8];
for (int i = 0; i < n; ++i) s += a[index[i] & 7];     // indexed at run time: local memory
#pragma unroll
for (int i = 0; i < 8; ++i) s += a[i] * w[i];         // constant indices: registers

struct Tables { float sigma[16]; };
__global__ void pairs(Tables t, ...)                             // t.sigma[k]: each thread copies t first
__global__ void pairs(const __grid_constant__ Tables t, ...)     // read in constant memory
```

## When this advice is wrong

More registers for each thread can mean fewer warps on an SM. Where those warps hid latency, a few spills
that hit the L1 cache cost less. At 255 registers there is no limit left to raise. In a device function
that is called, some stores and loads of the frame keep the caller's registers, as the calling convention
asks: inlining it removes them.

## How the gain is estimated

GPA Eq. 2 with the samples of local memory accesses: stalls for their data, and stalls because their queue
was full. In the paper's Table III the one kernel of this kind gained half of what was matched. What has
another place goes as a whole, with its traffic in L1, L2 and DRAM: spills that registers hold with as many
warps on an SM as now, an array that fits in the registers of a thread, or, where data index it, in the shared
memory of its block. L1 writes local memory through to L2, store by store, as reports count it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.local_memory import (
    LOCAL_WORDS,
    LocalKind,
    LocalPlaces,
    fits_shared,
    frame_bytes,
    kinds_of_accesses,
    largest_of,
    passes_to_own,
)
from gpadvisor.estimators.local_memory_words import local_advice, local_cure
from gpadvisor.estimators.local_traffic import cured, gone_adjustment, traffic_gone
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.evidence.accesses import is_local, is_stack_slot
from gpadvisor.evidence.queries import (
    Mask,
    by_class,
    by_instruction,
    by_place,
    causes,
    kernel_functions,
    regions,
    samples,
    stalled,
    static_match,
)
from gpadvisor.model.advice import Category, Match, Rejection, StaticSite
from gpadvisor.model.blame import Blame, DependencyClass
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.model.remedy import Remedy
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_parameter

_CODE: Final = "GPA101"


def _match(context: KernelContext) -> Match | Rejection:
    kinds = kinds_of_accesses(context)
    sites = _sites(context, kinds)
    if context.blame is None:
        looped = {
            place: kind
            for place, kind in kinds.items()
            if _runs_often(context, kinds, place) and (kind is not LocalKind.BY_DATA or fits_shared(context))
        }
        counts = Counter(looped.values())
        match = static_match(
            _CODE,
            title=_heaviest(counts).value,
            advice=local_advice(context, looped),
            cure=local_cure(context, looped),
            remedies=_remedies(counts),
            sites=_sites(context, looped),
            missing=_nothing(context, len(kinds)),
        )
        return match if isinstance(match, Rejection) else replace(match, place=_deepest(context, looped))
    blame = context.blame
    local = _local_rows(context, blame, kinds)
    if not samples(blame, local):
        where = f"{len(sites)} in the code, none with samples" if sites else "none in the code"
        return Rejection(code=_CODE, reason=f"no stall due to local memory accesses: {where}")
    weights = Counter({kind: samples(blame, local & _rows_of(blame, kinds, kind)) for kind in LocalKind})
    weighty = {place: kind for place, kind in kinds.items() if weights[kind]}
    cure = cured(context)
    return Match(
        title=_heaviest(weights).value,
        advice=local_advice(context, weighty),
        cure=local_cure(context, weighty),
        remedies=_remedies(weights),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(local)),
        adjustments=(gone_adjustment(context, blame, weights, kinds),),
        static_sites=sites,
        # As many accesses go as the expected share of the stalls, at best all.
        reduced_loads=(
            *freed(
                context,
                {place: cure.issued(kind) for place, kind in kinds.items()},
                {place: float(cure.issued(kind) > 0) for place, kind in kinds.items()},
            ),
            *traffic_gone(context, kinds),
        ),
        # Whoever calls printf and nothing else through the stack wants what it prints.
        actionable=bool(local_cure(context, weighty)) and not _prints(context, weighty),
    )


def _remedies(weights: Counter[LocalKind]) -> tuple[Remedy, ...]:
    return (Remedy.GRID_CONSTANT,) if weights[LocalKind.PARAMETER] else ()


def _runs_often(context: KernelContext, kinds: LocalPlaces, place: tuple[FunctionId, int]) -> bool:
    """Whether an instruction runs more than once by the code alone, or the kernel has no loop to run in.

    There a few spills are those around what was unrolled, each of which runs once.
    """
    kind, function = kinds[place], context.program.functions[place[0]]
    if kind is LocalKind.PASSED and not passes_to_own(context, function):
        return False
    if function.innermost_loop(place[1]) is not None:
        return True
    if function.kind is not FunctionKind.KERNEL:
        return _called_often(context, function)
    if kind is LocalKind.SPILL:
        spills = sum(one is kind and number == function.id for (number, _), one in kinds.items())
        return not function.loops and spills >= constants.FEW_SPILLS * len(function.instructions)
    return not function.loops and kind is not LocalKind.PASSED


@lru_cache(maxsize=64)
def _called_often(context: KernelContext, function: Function) -> bool:
    """Whether a function is called in a loop or by itself, or there is no loop that could run instead."""
    callers: defaultdict[FunctionId | None, set[tuple[FunctionId, bool]]] = defaultdict(set)
    for caller in kernel_functions(context.program, context.kernel):
        for call in caller.calls:
            callers[call.callee].add((caller.id, caller.innermost_loop(call.index) is not None))
    pending, visited = [function], {function.id}
    while pending:
        called = pending.pop()
        for number, in_loop in callers[called.id]:
            caller = context.program.functions[number]
            if in_loop or number in {called.id, function.id}:
                return True
            if caller.kind is FunctionKind.KERNEL:
                if not caller.loops and not called.loops:
                    return True
            elif number not in visited:
                visited.add(number)
                pending.append(caller)
    return False


def _prints(context: KernelContext, places: LocalPlaces) -> bool:
    """Whether local memory has nothing but what printf or an assertion is given."""
    return {*places.values()} == {LocalKind.PASSED} and not any(
        passes_to_own(context, context.program.functions[number]) for number, _ in places
    )


def _nothing(context: KernelContext, outside: int) -> str:
    frame = f"stack frame: {frame_bytes(context)} bytes"
    if outside:
        return f"{outside} local memory accesses, none of them in a loop ({frame})"
    return f"no local memory access outside of library math ({frame})"


def _deepest(context: KernelContext, kinds: LocalPlaces) -> tuple[FunctionId, int]:
    """Of the places of the leading kind the first that most loops are around: it runs most often.

    Of several arrays those of the largest, whose bytes the words tell.
    """
    leading = _heaviest(Counter(kinds.values()))
    functions = context.program.functions
    of_kind = [place for place, kind in kinds.items() if kind is leading]
    indexed = [place for place in of_kind if not is_stack_slot(functions[place[0]].instructions[place[1]])]
    places, _ = largest_of(context, indexed or of_kind)

    def depth(place: tuple[FunctionId, int]) -> int:
        return len(functions[place[0]].enclosing_loops(place[1]))

    return max(sorted(places), key=depth)


def _heaviest(weights: Counter[LocalKind]) -> LocalKind:
    return max(LocalKind, key=lambda kind: weights[kind])


def _rows_of(blame: Blame, kinds: LocalPlaces, kind: LocalKind) -> Mask:
    return by_place(
        blame, causes(blame), [place for place, local_kind in kinds.items() if local_kind is kind]
    )


def _local_rows(context: KernelContext, blame: Blame, kinds: LocalPlaces) -> Mask:
    """Stalls for local data, and stalls that a local load or store has or causes in other ways."""
    mask = by_place(blame, causes(blame), list(kinds))
    elsewhere = by_instruction(blame, context.program, causes(blame), is_local) & ~mask
    local = by_class(blame, {DependencyClass.LOCAL_MEMORY}) & ~elsewhere
    return local | (mask & stalled(blame))


def _sites(context: KernelContext, kinds: LocalPlaces) -> tuple[StaticSite, ...]:
    sites = []
    for (function, index), kind in kinds.items():
        instruction = context.program.functions[function].instructions[index]
        verb = "stores" if instruction.info.opclass is OpcodeClass.STORE else "loads"
        sites.append(StaticSite(function=function, index=index, detail=f"{verb} {LOCAL_WORDS[kind]}"))
    return tuple(sites)


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="register-reuse",
    name="Register Reuse",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.REGISTERS_GAVE,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.GRID_CONSTANT, SiteKind.LAUNCH_BOUNDS),
    naming=name_parameter,
    twins=("LocalMemoryUsage", "RegisterSpilling"),
    what_if=WhatIf.EDITED,
)
