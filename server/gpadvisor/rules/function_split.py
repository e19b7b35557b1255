# SPDX-License-Identifier: Apache-2.0
"""Function Split: code too large for the instruction caches (GPA Table II).

## What it finds

Samples in which a warp had no instruction to issue because it was still being fetched
(`no_instructions`), grouped by the inlined function they are in, else by the loop. It compares the code
that runs again and again with the sizes of the caches; without samples, only functions that repeat in it.

## Why warps stall

Each scheduler has a small instruction cache and the SM a larger one. A loop larger than the cache evicts
itself on every pass. Inlining and unrolling make code larger, and each inlined copy of a function is
fetched by itself.

## What to try

Where a large function is inlined into many places of a loop, mark it `__noinline__`, so that one copy serves
all. Where a loop is unrolled far, lower the factor (`#pragma unroll 2`, `#pragma unroll 1`). Else split the
loop into several that fit, and rare paths off into a function of their own.

## Example

```cuda
__device__ __noinline__ float rare_case(float x) { ... }   // out of the hot loop's code

#pragma unroll 4        // instead of the full unrolling of 64 passes
for (int i = 0; i < 64; ++i) { ... }
```

## When this advice is wrong

Short kernels fetch their code once, and no change of size helps against that: there the stalls stand in
code outside of loops, and the rule is a note. Where a loop is too large by its library math alone, Fast Math
is the cure, and the rule is silent. Very divergent or jumpy code may wait for fetches in a small loop, too. A
call costs instructions for moving arguments and keeping registers; the estimate does not know them.

## How the gain is estimated

GPA Eq. 2 with the instruction fetch stalls. The expected value counts those in code that is larger than a
cache in full and the others less, since making small code smaller gains little; where the whole code fits
into a scheduler's cache, nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import active_loads
from gpadvisor.evidence.inlined import by_inlined
from gpadvisor.evidence.large_loops import NOTABLE_PART, carries_memory, is_inlining, repeated, unrolled
from gpadvisor.evidence.loops import loop_facts
from gpadvisor.evidence.patterns import math_sequences
from gpadvisor.evidence.products import product_loops
from gpadvisor.evidence.queries import (
    RowIndices,
    by_stall,
    causes,
    kernel_functions,
    line_text,
    location_text,
    samples,
    static_match,
    weighted,
)
from gpadvisor.model.advice import (
    Adjustment,
    Category,
    Match,
    Rejection,
    StaticSite,
)
from gpadvisor.model.blame import NO_INDEX, Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import INSTRUCTION_BYTES, LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function, FunctionKind, Program
from gpadvisor.model.stalls import StallClass
from gpadvisor.source.edits import SiteKind

_CODE: Final = "GPA103"
_TITLE: Final = "instructions fetched too late"


def _match(context: KernelContext) -> Match | Rejection:
    near, far = _caches(context)
    if context.blame is None:
        loops = _large_loops(context, near)
        unknown = _unknown(context, loops)
        if unknown:
            return Rejection(code=_CODE, reason=f"needs samples: {unknown}", looked=False)
        cure = _cure(_loop_of(context.program, loops), context.language)
        return static_match(
            _CODE,
            title="loop larger than the instruction cache",
            advice=f"{cure}: a scheduler's instruction cache holds {near // 1024} KiB, "
            f"{_named(context.program, loops)}.",
            cure=cure,
            sites=loops if cure else (),
            missing=f"{_named(context.program, loops)}, and its passes may read what earlier ones wrote: it "
            "cannot be split"
            if loops
            else f"no loop is larger than the {near // 1024} KiB instruction cache of a scheduler, without "
            "the loops in it",
        )
    blame = context.blame
    fetch = np.flatnonzero(by_stall(blame, {StallClass.INSTRUCTION_FETCH}))
    if not samples(blame, fetch):
        return Rejection(code=_CODE, reason="no sample waits for instruction fetch (no_instructions)")
    sizes = _footprints(context.program, blame, fetch)
    hot = _hot_loop(context.program, blame, fetch, sizes)
    largest = max(sizes)
    math = 0 if hot is None else _math_bytes(context, *hot)
    if largest > near >= largest - math:
        return Rejection(
            code=_CODE,
            reason=f"of the {largest / 1024:.1f} KiB of the hot loop {math / 1024:.1f} KiB are library math, "
            "the subject of Fast Math (GPA104)",
        )
    cure = _cure(hot, context.language) if largest > near else ""
    return Match(
        title=_TITLE,
        cure=cure,
        advice=_advice(context, hot, largest, near, far),
        actionable=bool(cure),
        regions=by_inlined(blame, context.program, context.kernel, fetch),
        adjustments=_adjustments(context, blame, fetch, sizes),
        static_sites=_large_loops(context, near),
    )


def _unknown(context: KernelContext, loops: Sequence[StaticSite]) -> str:
    """Why a large loop tells nothing without samples: in a run, or of a product, which is long on purpose."""
    busiest = busiest_after(active_loads(context), ())
    if busiest is not None and 100 * busiest.load >= constants.BUSY_PERCENT:
        return f"{busiest.unit.name} is busy, which hides late instructions"
    if not loops:
        return ""
    if busiest is None and context.profile is not None:
        return f"{_named(context.program, loops)}, and no unit is counted, busy or not"
    large = _loop_of(context.program, loops)
    if large is None:
        return ""
    inside = set(loop_facts(*large).indices)
    product_loops_found = product_loops(context.program, context.kernel)
    products = {
        index
        for product_loop in product_loops_found
        if product_loop.function is large[0]
        for index in product_loop.products
    }
    # A fragment of tensor cores is as much as hundreds of products of one thread.
    fragments = any(large[0].instructions[index].info.opclass is OpcodeClass.TENSOR for index in inside)
    if fragments or len(inside & products) * NOTABLE_PART >= len(inside):
        return f"{_named(context.program, loops)}, and is a product, which is unrolled on purpose"
    if context.profile is None and not is_inlining(*large, inside):
        return f"{_named(context.program, loops)}, and no function alone makes it large"
    return ""


def _caches(context: KernelContext) -> tuple[int, int]:
    """Bytes of a scheduler's instruction cache and of the SM's."""
    sm = context.machine.sm
    return sm.instruction_cache_l0_bytes.value, sm.instruction_cache_l1_bytes.value


def _large_loops(context: KernelContext, limit: int) -> tuple[StaticSite, ...]:
    sites = []
    for function in kernel_functions(context.program, context.kernel):
        for loop in function.loops:
            facts = loop_facts(function, loop.id)
            size = facts.size_bytes
            # Passes of the loops in it run from the cache: only what is run once per pass is fetched for it.
            once = (
                sum(function.innermost_loop(index) == loop.id for index in facts.indices)
                if size > limit
                else 0
            )
            # Less its library math, which Fast Math replaces.
            if once * INSTRUCTION_BYTES - _math_bytes(context, function, loop.id) > limit:
                index = function.blocks[loop.header].start
                detail = f"loop of {size // 1024} KiB"
                sites.append(StaticSite(function=function.id, index=index, detail=detail))
    return tuple(sites)


def _named(program: Program, loops: Sequence[StaticSite]) -> str:
    """Which loop it is, the first of several, and how large."""
    if not loops:
        return ""
    first = loops[0]
    function = program.functions[first.function]
    loop = function.innermost_loop(first.index)
    place = None if loop is None else function.loops[loop].location
    where = line_text(function, first.index) if place is None else location_text(place)
    text = f"the {first.detail} at {where} does not fit"
    return text if len(loops) == 1 else f"{text}, nor do {len(loops) - 1} more"


def _outermost(function: Function, index: int) -> LoopId | None:
    loops = function.enclosing_loops(index)
    return loops[-1] if loops else None


def _footprints(program: Program, blame: Blame, rows: RowIndices) -> list[int]:
    """Per row the bytes of code that are run again before the sampled instruction is; 0 outside of loops."""
    indices = causes(blame)
    result = []
    for row in rows.tolist():
        function_id = int(blame.rows.function[row])
        if function_id >= len(program.functions) or indices[row] == NO_INDEX:
            result.append(0)
            continue
        function = program.functions[function_id]
        loop = _outermost(function, int(indices[row]))
        result.append(0 if loop is None else _with_callees(program, function, loop))
    return result


def _hot_loop(
    program: Program, blame: Blame, rows: RowIndices, sizes: Sequence[int]
) -> tuple[Function, LoopId] | None:
    """The largest loop that fetch stalls are in."""
    index = int(np.argmax(sizes))
    if not sizes[index]:
        return None
    function = program.functions[int(blame.rows.function[rows[index]])]
    loop = _outermost(function, int(causes(blame)[rows[index]]))
    return None if loop is None else (function, loop)


def _loop_of(program: Program, loops: Sequence[StaticSite]) -> tuple[Function, LoopId] | None:
    function = None if not loops else program.functions[loops[0].function]
    loop = None if function is None else function.innermost_loop(loops[0].index)
    return None if function is None or loop is None else (function, loop)


def _math_bytes(context: KernelContext, function: Function, loop: LoopId) -> int:
    """Of a loop, library math expanded in place, and the library's routines that it calls."""
    inside = set(loop_facts(function, loop).indices)
    own_indices = inside & {index for sequence in math_sequences(function) for index in sequence.indices}
    called = {call.callee for call in function.calls if call.index in inside and call.callee is not None}
    routines = [context.program.functions[callee] for callee in called]
    return INSTRUCTION_BYTES * (
        len(own_indices)
        + sum(len(routine.instructions) for routine in routines if routine.kind is FunctionKind.MATH_HELPER)
    )


def _cure(hot: tuple[Function, LoopId] | None, language: Language) -> str:
    """What makes a loop smaller: what stands in it several times, else its parts in loops of their own.

    Nothing where its passes may need what earlier ones wrote, so that it cannot be split.
    """
    if hot is not None:
        function, loop = hot
        inside = set(loop_facts(function, loop).indices)
        if copied := unrolled(function, loop):
            header = line_text(function, copied.indices[0])
            return f"Lower the unroll factor ({copied.copies} copies of the body at {header})"
        function_inlined = repeated(function, inside)
        if function_inlined is not None:
            name, copies = function_inlined
            return f"{terms.KEEP_CALLED.of(language, name=name)}, which is inlined {copies} times"
        if carries_memory(function, inside):
            return ""  # it cannot be split
    return (
        f"Split the loop into several that fit, or move rare paths into {terms.CALLED_FUNCTION.of(language)}"
    )


def _with_callees(program: Program, function: Function, loop: LoopId) -> int:
    """Bytes of a loop and of the functions it calls directly."""
    facts = loop_facts(function, loop)
    inside = set(facts.indices)
    called = {call.callee for call in function.calls if call.index in inside and call.callee is not None}
    return facts.size_bytes + sum(
        len(program.functions[callee].instructions) * INSTRUCTION_BYTES for callee in called
    )


def _adjustments(
    context: KernelContext, blame: Blame, rows: RowIndices, sizes: list[int]
) -> tuple[Adjustment, ...]:
    """Differs from GPA: it takes any fetch stall in inlined code; size decides whether a split helps."""
    near, far = _caches(context)
    expected = weighted(
        blame, rows, [1.0 if size > far else constants.MIDDLE if size > near else 0.0 for size in sizes]
    )
    possible = weighted(blame, rows, [1.0 if size > near else constants.MIDDLE for size in sizes])
    large = weighted(blame, rows, [float(size > near) for size in sizes])
    return (
        Adjustment(
            low=0.0,
            expected=expected,
            high=possible,
            reason=f"{percent(large)} of the fetch stalls are in loops larger than the {near // 1024} KiB "
            f"instruction cache of a scheduler (SM: {far // 1024} KiB)",
        ),
    )


def _code_bytes(context: KernelContext) -> int:
    """Of a kernel and of all that it calls."""
    return sum(
        len(function.instructions) * INSTRUCTION_BYTES
        for function in kernel_functions(context.program, context.kernel)
    )


def _advice(
    context: KernelContext, hot: tuple[Function, LoopId] | None, largest: int, near: int, far: int
) -> str:
    whole = _code_bytes(context)
    caches = f"caches hold {near // 1024} KiB per scheduler and {far // 1024} KiB per SM"
    if largest > near:
        cure = _cure(hot, context.language)
        size = f"the hot loop has {largest / 1024:.1f} KiB of code ({caches})"
        return f"{cure}: {size}." if cure else f"Its passes may read what earlier ones wrote: {size}."
    return (
        f"The hot code is small ({largest / 1024:.1f} KiB in loops, {whole / 1024:.1f} KiB in all; "
        f"{caches}): these are first fetches and jumps."
    )


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="function-split",
    name="Function Split",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.NO_INLINE,),
    what_if=WhatIf.EDITED,
)
