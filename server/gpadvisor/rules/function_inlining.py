# SPDX-License-Identifier: Apache-2.0
"""Function Inlining: small device functions that are called instead of inlined (GPA Table II).

## What it finds

Latency samples inside device functions that are called, and at the calls, where the function is small
next to the instruction cache. The compiler's own math routines are left to Fast Math; functions that call
themselves or are called through a pointer are rejected. Without samples only calls in loops are named.

## Why warps stall

A call is a wall for the compiler's scheduler: loads of the caller cannot be moved across it, arguments go
through fixed registers, and registers in use are saved around it. The latency before and after the call
stays exposed.

## What to try

Put `__forceinline__` on the function, and its definition in a header if it is in another file (or compile
with link-time optimization, `-dlto`). Remove `__noinline__`. If only one hot call matters, write its body
there.

## Example

```cuda
// other.cu
__device__ double cross_section(const Data* d, int group) { return d->values[group] * d->density; }

// header
__device__ __forceinline__ double cross_section(const Data* d, int group) { ... }
```

## When this advice is wrong

Large functions with many call sites multiply the code: where warps wait for instruction fetch, inlining
makes it worse (the rule is silent above 30 % of latency samples). More live values may spill. Recursion
cannot be inlined.

## How the gain is estimated

GPA Eqs. 4 and 5 for each function with its calls: its latency samples can be filled with the active
samples of the function. In the paper's Table III the one kernel of this kind (Quicksilver) gained 0.8 of
what was matched.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from gpadvisor.cubin import demangle
from gpadvisor.estimators import constants, terms
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.latency_hiding import latency_hiding
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.evidence.queries import (
    by_role,
    counted,
    fetch_share,
    function_location,
    is_recursive,
    kernel_functions,
    latency,
    samples,
    static_match,
)
from gpadvisor.model.advice import (
    Adjustment,
    Category,
    Match,
    Region,
    Rejection,
    Scope,
    ScopeKind,
    StaticSite,
)
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import INSTRUCTION_BYTES, FunctionId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.language import Language
from gpadvisor.model.program import CallSite, Function, FunctionKind, Program
from gpadvisor.source.edits import SiteKind

_CODE: Final = "GPA203"
_TITLE: Final = "small device function called, not inlined"
_CACHE_PART: Final = 4
"""A function is small if it fills at most this part of a scheduler's instruction cache.

A quarter of the V100's 12 KiB is the 3000 bytes of the released GPA code.
"""


def _match(context: KernelContext) -> Match | Rejection:
    functions = kernel_functions(context.program, context.kernel)
    callees = [function for function in functions if function.kind is FunctionKind.DEVICE]
    limit = context.machine.sm.instruction_cache_l0_bytes.value // _CACHE_PART
    usable = [
        function
        for function in callees
        if _size(function) <= limit and not is_recursive(context.program, function)
    ]
    if not usable:
        return Rejection(code=_CODE, reason=_nothing(context, functions, callees, limit))
    sites = _call_sites(functions, {function.id for function in usable})
    if context.blame is None:
        looped = _in_loops(context.program, sites)
        called = {call.callee for site in looped for call in _call_at(context.program, site)}
        called_functions = [function for function in usable if function.id in called]
        return static_match(
            _CODE,
            title=_TITLE,
            advice=_advice(called_functions, len(looped), context.language),
            cure=_cure(called_functions, context.language),
            sites=looped,
            missing="the small device functions are called outside of loops only, or not directly",
        )
    blame = context.blame
    fetch = fetch_share(blame)
    if fetch > constants.MOST_FETCHES:
        return Rejection(
            code=_CODE,
            reason=f"{percent(fetch)} of latency samples wait for instruction fetch, more than "
            f"{percent(constants.MOST_FETCHES)}: more code would not help",
        )
    result = _regions(blame, functions, usable)
    if not result:
        names = ", ".join(function.demangled for function in usable[:3])
        return Rejection(code=_CODE, reason=f"no latency sample in {names} or at calls of it")
    hot = [function for function in usable if any(r.scope.function == function.id for r in result)]
    return Match(
        title=_TITLE,
        advice=_advice(hot, len(sites), context.language),
        cure=_cure(hot, context.language),
        regions=result,
        adjustments=(
            Adjustment(
                low=0.0,
                expected=constants.INLINED,
                high=1.0,
                reason="in the paper's Table III this change removed 81 % of the matched stalls (one kernel, "
                "Quicksilver)",
            ),
        ),
        static_sites=sites,
        reduced_loads=freed(context, _calls_and_returns(functions, {function.id for function in hot})),
    )


def _calls_and_returns(
    functions: tuple[Function, ...], inlined: set[FunctionId]
) -> dict[tuple[FunctionId, int], float]:
    """What inlining removes for certain; moves of arguments and saved registers go beyond that."""
    gone = {
        (function.id, call.index): 1.0
        for function in functions
        for call in function.calls
        if call.callee in inlined
    }
    for function in functions:
        if function.id in inlined:
            for index, instruction in enumerate(function.instructions):
                if instruction.info.opclass is OpcodeClass.RETURN:
                    gone[function.id, index] = 1.0
    return gone


def _size(function: Function) -> int:
    return len(function.instructions) * INSTRUCTION_BYTES


def _nothing(
    context: KernelContext, functions: tuple[Function, ...], callees: list[Function], limit: int
) -> str:
    unknown = [call for function in functions for call in function.calls if call.callee is None]
    indirect = sum(1 for call in unknown if call.symbol is None)
    through = f"; {indirect} calls through pointers cannot be inlined" if indirect else ""
    elsewhere = sorted({call.symbol for call in unknown if call.symbol is not None})
    if elsewhere:
        names = ", ".join(demangle(name) for name in elsewhere[:3])
        through += (
            f"; {counted(len(elsewhere), 'function')} of other files ({names}) joined by the linker"
            f"{terms.BY_LINKER.of(context.language)}"
        )
    if not callees:
        inlined = (
            "no device function of this file is called directly" if unknown else "all are inlined already"
        )
        return f"{inlined}{through}"
    recursive = [function for function in callees if is_recursive(context.program, function)]
    large = [function for function in callees if function not in recursive]
    parts = []
    if large:
        smallest = min(large, key=_size)
        parts.append(
            f"{smallest.demangled} has {_size(smallest)} bytes, more than the {limit} that count as small"
        )
    if recursive:
        parts.append(f"{recursive[0].demangled} calls itself")
    return f"{' and '.join(parts)}{through}"


def _call_sites(functions: tuple[Function, ...], function_ids: set[FunctionId]) -> tuple[StaticSite, ...]:
    names = {function.id: function.demangled for function in functions}
    return tuple(
        StaticSite(function=function.id, index=call.index, detail=f"call of {names[call.callee]}")
        for function in functions
        for call in function.calls
        if call.callee is not None and call.callee in function_ids
    )


def _in_loops(program: Program, sites: tuple[StaticSite, ...]) -> tuple[StaticSite, ...]:
    """Calls that run often by the code alone: in a loop, or in a function that is called."""
    return tuple(
        site
        for site in sites
        if program.functions[site.function].innermost_loop(site.index) is not None
        or program.functions[site.function].kind is FunctionKind.DEVICE
    )


def _call_at(program: Program, site: StaticSite) -> tuple[CallSite, ...]:
    return tuple(call for call in program.functions[site.function].calls if call.index == site.index)


def _callers(functions: tuple[Function, ...]) -> dict[int, list[tuple[Function, list[int]]]]:
    """By callee: the functions that call it, and where."""
    callers: dict[int, list[tuple[Function, list[int]]]] = defaultdict(list)
    for caller in functions:
        calls: dict[int, list[int]] = defaultdict(list)
        for call in caller.calls:
            if call.callee is not None:
                calls[call.callee].append(call.index)
        for callee, places in calls.items():
            callers[callee].append((caller, places))
    return callers


def _regions(blame: Blame, functions: tuple[Function, ...], usable: list[Function]) -> tuple[Region, ...]:
    """For each callee its own samples and those of the blocks that call it; a row goes to one callee only.

    Differs from GPA: its code adds a call site only where the caller is a small device function itself, and
    so misses calls from the kernel; the paper says device functions and their call sites.
    """
    table = blame.rows
    regions = []
    claimed = np.zeros(len(table), dtype=bool)
    stalled = by_role(blame, Role.BLAMED, Role.SELF) & (table.latency > 0)
    callers = _callers(functions)
    for callee in sorted(usable, key=lambda candidate: -samples(blame, table.function == candidate.id)):
        mask = table.function == callee.id
        for caller, calls in callers[callee.id]:
            around = {caller.block_of[call] for call in calls}
            blocks = np.array([block in around for block in caller.block_of])
            in_caller = table.function == caller.id
            mask |= (
                in_caller & (table.use_index != NO_INDEX) & blocks[np.maximum(table.use_index, 0) * in_caller]
            )
        rows = np.flatnonzero(mask & stalled & ~claimed)
        if len(rows):
            claimed[rows] = True
            inside = np.flatnonzero(mask)
            regions.append(
                Region(
                    scope=Scope(
                        kind=ScopeKind.FUNCTION,
                        name=callee.demangled,
                        location=function_location(callee),
                        function=callee.id,
                    ),
                    rows=rows,
                    active_samples=samples(blame, inside) - latency(blame, inside),
                )
            )
    return tuple(regions)


def _advice(usable: list[Function], calls: int, language: Language) -> str:
    sizes = ", ".join(f"{function.demangled} ({_size(function)} bytes)" for function in usable[:3])
    return f"{counted(calls, 'call')} of small functions, {sizes}. {_cure(usable, language)}"


def _cure(usable: list[Function], language: Language) -> str:
    names = ", ".join(function.demangled for function in usable[:3])
    return f"Let the compiler inline {names}. {terms.INLINE.of(language)}."


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="function-inlining",
    name="Function Inlining",
    category=Category.LATENCY_HIDING,
    match=_match,
    estimate=latency_hiding,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.FORCE_INLINE,),
    what_if=WhatIf.EDITED,
)
