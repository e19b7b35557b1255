# SPDX-License-Identifier: Apache-2.0
"""Fast Math: library math whose exact form the kernel may not need (GPA Table II).

## What it finds

Samples in the CUDA math library: in the compiler's out-of-line routines (names with `__cuda_sm`, called for
division, square root and double precision), in the calls to them, and in what the compiler expands in place:
IEEE division (`FCHK` and refinement) and reciprocal, square root, `expf`, `logf`, `log2f`, `powf`, `tanhf`,
and the argument reduction of `sinf` and `cosf` with its slow path for large arguments. Without samples only
what stands in innermost loops, or, where none is left, on one line three times and more as in an unrolled
loop, or is most of the code, is named; nothing in kernels that load nothing and store in each pass, which set
data up, nor what one thread of a block does, nor where a pass takes DRAM longer than it takes to issue; and
no reciprocal: `__frcp_rn()`, which asks for the exact one, compiles to the same.

## Why warps stall

An exact function is a chain of dependent instructions around one approximation, with checks and rare
paths. The fast form is that approximation alone: one or two instructions.

## What to try

Call the fast form where its error is acceptable: `__fdividef`, `__expf`, `__logf`, `__sinf`, `__cosf`,
`__powf`, `rsqrtf`; write `powf` with a small whole exponent as a product, which takes any base; or compile
with `--use_fast_math`, which does so everywhere and flushes denormals (or with
`-prec-div=false -prec-sqrt=false -ftz=true` only). Use the `f` functions for floats. Where a divisor
stays the same in a loop, one reciprocal before it is nearly exact and better than any form of division.

## Example

```cuda
y = sinf(x) / z;
y = __fdividef(__sinf(x), z);   // large |x| loses accuracy: __sinf is exact to 2^-21 only within [-pi, pi]
```

## When this advice is wrong

Where results must be reproducible or accurate to the last bits, or arguments are large: fast forms have
absolute rather than relative error there, and `__powf` of a negative base is a NaN, which `powf` with a whole
exponent is not. Double precision has no fast forms: reduce precision or the number of calls. A quotient that
is cut or rounded to a whole number, such as an index, may miss it by one, which the advice says where it is
so: divide whole numbers there. Where more than 30 % of latency samples wait for instruction fetch, code size
is the problem first.

## How the gain is estimated

GPA Eq. 2 with all samples in library math, since issued instructions go as well: the refinement, a sine's
polynomials, and the tests and branches around the paths for rare arguments. The fast form keeps one to four
of them, its special function among them, and the issue slots and pipes of the others no longer cap the
estimate. In the paper's Table III the three kernels of this kind gained 0.35 to 1.6 times what was matched,
0.95 on average.

Of doubles only divisions count that become products, and what else shares a reciprocal: the rest is at the
high end alone. Where that is next to nothing, single precision is told first and the estimate is of it: the
instructions that floats do without, by the compiler's code of both, and the waits for the pipe of doubles.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.busy_doubles import busy_doubles, need_doubles
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.fast_forms import (
    FoundMath,
    gone_with_fast_forms,
)
from gpadvisor.estimators.fast_math_gains import (
    freed_in_floats,
    in_floats,
    part_as_floats,
    part_to_go,
    samples_of_sequences,
    waits_for_doubles,
    with_fast_forms,
)
from gpadvisor.estimators.fast_math_words import concrete_cures, first_place, math_advice, math_cure
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.streams import paced_by_memory
from gpadvisor.evidence.access_shapes import is_for_one_thread
from gpadvisor.evidence.divisions import integer_divisions
from gpadvisor.evidence.fills import only_fills
from gpadvisor.evidence.library_code import is_curands
from gpadvisor.evidence.library_math import (
    is_behind_sequence,
    is_by_counter,
    is_float_math,
    is_of_doubles,
    is_whole_quotient,
    routine_name,
)
from gpadvisor.evidence.loops import versions_without_inner
from gpadvisor.evidence.own_rows import usual_launch, width_of_blocks
from gpadvisor.evidence.patterns import (
    DIVISION_BY_CONSTANT,
    FLOAT_BY_CONSTANT,
    RECIPROCAL,
    TANH,
    CodeSequence,
    math_sequences,
    opcode_index,
)
from gpadvisor.evidence.queries import (
    Mask,
    by_place,
    causes,
    counted,
    fetch_share,
    kernel_functions,
    loop_indices,
    regions,
    samples,
    share,
    static_match,
)
from gpadvisor.machine import code_form
from gpadvisor.model.advice import Category, Match, Rejection, StaticSite
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.machine import Feature
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.source.edits import SiteKind

_CODE: Final = "GPA104"
_TITLE: Final = "exact library math"
_COPIES: Final = 3
"""Where no loop is left, so many operations of one kind on one line are one that the compiler wrote out."""
_BY_CONSTANT: Final = frozenset({DIVISION_BY_CONSTANT, FLOAT_BY_CONSTANT})


def _match(context: KernelContext) -> Match | Rejection:
    functions = kernel_functions(context.program, context.kernel)
    helpers = tuple(function for function in functions if is_float_math(function))
    inline = {
        function.id: _with_fast_form(context, math_sequences(function))
        for function in functions
        if function.kind is not FunctionKind.MATH_HELPER
    }
    sites = (*_inline_sites(inline), *_call_sites(functions, helpers))
    if not sites and not helpers:
        return Rejection(code=_CODE, reason=_nothing(functions))
    if context.blame is None:
        return _without_samples(context, functions, helpers, inline)
    exact = need_doubles(context) if _all_doubles(inline, helpers) else None
    if exact is not None:
        return Rejection(code=_CODE, reason=exact)
    blame = context.blame
    fetch = fetch_share(blame)
    if fetch > constants.MOST_FETCHES:
        return Rejection(
            code=_CODE,
            reason=f"{percent(fetch)} of latency samples wait for instruction fetch, more than "
            f"{percent(constants.MOST_FETCHES)}: code size comes first",
        )
    matched = _matched_rows(blame, inline, helpers, sites)
    math = FoundMath(functions, inline, helpers, context.language, samples_of_sequences(blame, inline))
    if not samples(blame, matched):
        return Rejection(
            code=_CODE, reason=f"no sample in the {len(sites)} places of library math in the code"
        )
    told = part_to_go(context, math, matched)
    single = (
        told * share(blame, matched) < constants.NOTABLE and part_as_floats(context, math, matched) > told
    )
    if single:
        matched |= waits_for_doubles(context)
    return Match(
        title=_TITLE,
        cure=math_cure(math, single=single),
        advice=math_advice(math, single=single),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(matched)),
        adjustments=(in_floats(context, math, matched) if single else with_fast_forms(told),),
        static_sites=sites,
        place=None if single else first_place(math),
        reduced_loads=freed_in_floats(context, math)
        if single
        else freed(
            context,
            gone_with_fast_forms(context, math),
            gone_with_fast_forms(context, math, most=True),
        ),
    )


def _with_fast_form(context: KernelContext, sequences: tuple[CodeSequence, ...]) -> tuple[CodeSequence, ...]:
    """Without what this architecture has no instruction for."""
    if Feature.TANH in code_form(context.machine.arch).features:
        return sequences
    return tuple(sequence for sequence in sequences if sequence.kind != TANH)


def _all_doubles(inline: dict[FunctionId, tuple[CodeSequence, ...]], helpers: tuple[Function, ...]) -> bool:
    """Whether all library math is of doubles, which have no fast forms."""
    kinds = {sequence.kind for sequences in inline.values() for sequence in sequences}
    return all("double" in kind for kind in kinds - _BY_CONSTANT) and all(map(is_of_doubles, helpers))


def _innermost_passes(function: Function) -> frozenset[int]:
    """What innermost loops of the source repeat; those of slow paths in library math are none of it."""
    library = {index for sequence in math_sequences(function) for index in sequence.indices}
    without = versions_without_inner(function)
    bodies = {loop.id: frozenset(loop_indices(function, loop.id)) for loop in function.loops}
    own = {loop: body for loop, body in bodies.items() if body - library}
    innermost = [body for body in own.values() if not any(other < body for other in own.values())]
    return frozenset().union(*innermost) - frozenset().union(*(bodies[loop] for loop in without))


def _without_samples(
    context: KernelContext,
    functions: tuple[Function, ...],
    helpers: tuple[Function, ...],
    inline: dict[FunctionId, tuple[CodeSequence, ...]],
) -> Match | Rejection:
    """Library math that runs often by the code alone: in a loop, copied from one, or as most of the code.

    The correctly rounded reciprocal is left out: its common path is five instructions, and __frcp_rn(), which
    asks for it, compiles to the same code.
    """
    if only_fills(functions) and any(function.loops for function in functions):
        return Rejection(code=_CODE, reason="the kernel stores in each pass and loads nothing")
    often = {function.id: _innermost_passes(function) for function in functions}
    hot = _hot(context, functions, inline, often)
    calls = tuple(
        site
        for site, helper in _calls(functions, helpers)
        if "rcp_rn_f32" not in helper.name
        and site.index in often[site.function]
        and not _is_one_threads(context, context.program.functions[site.function], site.index)
    )
    called = {helper.id for site, helper in _calls(functions, helpers) if site in calls}
    used = tuple(helper for helper in helpers if helper.id in called)
    math = FoundMath(functions, hot, used, context.language)
    if (any(hot.values()) or used) and not concrete_cures(math):
        return Rejection(
            code=_CODE,
            reason="library math of doubles has no fast forms, and only the program tells whether single "
            "precision would do",
        )
    match = static_match(
        _CODE,
        title=_TITLE,
        advice=math_advice(math),
        cure=math_cure(math),
        sites=(*_inline_sites(hot), *calls),
        missing="library math stands outside of loops only, where it runs once for each thread, or is done "
        "sooner than the elements of its pass come from DRAM",
    )
    if isinstance(match, Rejection):
        return match
    become_floats = _all_doubles(hot, used) and busy_doubles(context, functions) is not None
    return replace(match, place=first_place(math), replaced_by="GPA102" if become_floats else "")


def _hot(
    context: KernelContext,
    functions: tuple[Function, ...],
    inline: dict[FunctionId, tuple[CodeSequence, ...]],
    often: dict[FunctionId, frozenset[int]],
) -> dict[FunctionId, tuple[CodeSequence, ...]]:
    """What of the math that is expanded in place runs often, and sets the pace."""
    hot: dict[FunctionId, tuple[CodeSequence, ...]] = {}
    hidden = paced_by_memory(context, functions)
    for function in functions:
        sequences = tuple(
            one
            for one in inline.get(function.id, ())
            if one.kind != RECIPROCAL
            and ((function.id, one.start) not in hidden or is_whole_quotient(function, one))
            and not is_curands(function, one.start)
            and not is_by_counter(function, one)
        )
        covered = {index for sequence in sequences for index in sequence.indices}
        if 2 * len(covered) < len(function.instructions):
            copies = Counter((sequence.kind, function.lines[sequence.start]) for sequence in sequences)
            sequences = tuple(
                sequence
                for sequence in sequences
                if (
                    copies[sequence.kind, function.lines[sequence.start]] >= _COPIES
                    and not often[function.id]
                )
                or not often[function.id].isdisjoint(sequence.indices)
            )
        hot[function.id] = tuple(
            one for one in sequences if not _is_one_threads(context, function, one.start)
        )
    return hot


def _is_one_threads(context: KernelContext, function: Function, index: int) -> bool:
    """Whether one thread of a block does what all others wait for, or do not."""
    launch = usual_launch(context.kernel, None, width_of_blocks(function))
    return is_for_one_thread(function, index, context.program.form, launch)


def _matched_rows(
    blame: Blame,
    inline: dict[FunctionId, tuple[CodeSequence, ...]],
    helpers: tuple[Function, ...],
    sites: tuple[StaticSite, ...],
) -> Mask:
    """Samples due to code of the library and to calls of it."""
    places = {(site.function, site.index) for site in sites}
    places.update(
        (function, index)
        for function, sequences in inline.items()
        for sequence in sequences
        for index in sequence.whole
    )
    in_helper = np.isin(blame.rows.function, [helper.id for helper in helpers])
    return in_helper | by_place(blame, causes(blame), places)


def _inline_sites(inline: dict[FunctionId, tuple[CodeSequence, ...]]) -> tuple[StaticSite, ...]:
    return tuple(
        StaticSite(function=function, index=sequence.start, detail=f"{sequence.kind}, expanded in place")
        for function, sequences in inline.items()
        for sequence in sequences
    )


def _calls(
    functions: tuple[Function, ...], helpers: tuple[Function, ...]
) -> tuple[tuple[StaticSite, Function], ...]:
    """Calls of routines of the library, with the routine."""
    by_id = {helper.id: helper for helper in helpers}
    return tuple(
        (
            StaticSite(
                function=function.id, index=call.index, detail=f"call of {routine_name(by_id[call.callee])}"
            ),
            by_id[call.callee],
        )
        for function in functions
        for call in function.calls
        if call.callee in by_id and not is_behind_sequence(function, call.index)
    )


def _call_sites(functions: tuple[Function, ...], helpers: tuple[Function, ...]) -> tuple[StaticSite, ...]:
    return tuple(site for site, _ in _calls(functions, helpers))


def _nothing(functions: tuple[Function, ...]) -> str:
    bare = sum(
        len(set(opcode_index(function).get("MUFU", ())) - _in_integer_divisions(function))
        for function in functions
    )
    if bare:
        return (
            f"the {counted(bare, 'special-function instruction')} (MUFU) {'is' if bare == 1 else 'are'} used "
            "without corrections: fast math is in use already"
        )
    return "no library math in the code: no __cuda_sm routine, no expanded division, root, exp, log or sine"


def _in_integer_divisions(function: Function) -> set[int]:
    """Their reciprocal is no math of the program's."""
    return {index for sequence in integer_divisions(function) for index in sequence.indices}


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="fast-math",
    name="Fast Math",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.FAST_GAVE,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.RECIPROCAL,),
    flag="--use_fast_math",
    twins=("SlowPipeLimiter",),
    what_if=WhatIf.EDITED,
    replaced_by="GPA113",  # floats are no exact library math of doubles any more
)
