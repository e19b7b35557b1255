# SPDX-License-Identifier: Apache-2.0
"""Strength Reduction: long-latency arithmetic that a cheaper form replaces (GPA Table II).

## What it finds

Stalls on the result of a slow arithmetic instruction: the special-function unit (`MUFU`), conversions between
types (`F2F`, `F2I`, `I2F`), bit counts, double precision on GPUs that have little of it, and stalls because
their pipe is full. It names what the instruction belongs to: an integer division or remainder by a value that
the compiler does not know, with all its steps, wherever they were moved to, or single precision that becomes
double and comes back. Divisions that the compiler adds to count the passes of a loop, or to divide a
collapsed loop of OpenACC or OpenMP, are none of the source's. Without samples none is told in kernels that
load nothing and store in each pass, nor where a pass takes DRAM longer than it takes to issue. Slow
instructions that belong to neither are a note, but for double precision on a GPU that has little of it.
Where that pipe is busy for a fifth of the time or more in a kernel that also computes in floats, every line
that loads it is named. Before all of that, random states of cuRAND that skip ahead to a sequence of each
thread's own, where this takes most of the samples.

## Why warps stall

These units take tens of cycles and accept a new warp only every few cycles. An integer division has no
instruction of its own: it is a conversion to floating point, a reciprocal, a conversion back, and
corrections, each waiting for the one before. On most GPUs other than the data-center ones, double
precision runs at 1/32 or 1/64 of the single-precision rate.

## What to try

- Division and remainder by the same value over and over: use a shift and a mask if it is a power of two,
  compute the reciprocal once and multiply, or make the divisor a template parameter, so that the compiler
  does it. Where a loop steps the number that it divides, carry quotient and remainder along. A divisor that
  changes from pass to pass has no such form and is not told, unless it doubles or halves. Divide in 32 bits
  where the numbers fit.
- A literal without `f` (`2.0 * x`) is a double and makes the whole expression double: write `2.0f`.
- `curand_init(seed, i, 0, &state)` computes where sequence `i` begins; `curand_init(seed + i, 0, 0, &state)`,
  whose sequences may overlap, and Philox states do not.
- `pow(x, 2)` is `x * x`; count in `int` instead of converting in a loop; hoist conversions out of loops.

## Example

```cuda
y[i] = 2.0 * x[i];              // float to double, multiply, double to float
y[i] = 2.0f * x[i];

int row = i / width;            // width is a kernel parameter: about 20 instructions with three slow ones
int row = __umulhi(i, magic);   // magic computed on the host for this width
```

## When this advice is wrong

If the result needs double precision or an exact quotient, keep it. A slow instruction whose result is
used much later costs nothing: then there are no samples here.

## How the gain is estimated

GPA Eq. 2 with the dependency stalls that slow arithmetic causes and the throttle stalls of its pipes; of
integer divisions with all samples that their steps have or cause, for whatever reason. In the paper's
Table III the three kernels of this kind gained 0.9 to 1.75 times what was matched, since the instructions
themselves went too, which also frees their issue slots and pipes; slow instructions that belong to no
known pattern count for a fifth. Of states that skip ahead all is taken to go, three in four instructions
expected, and half of them at the low end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.busy_doubles import busy_advice, busy_doubles, double_advice, told_doubles
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.division_words import division_advice, same_for_the_grid, sites_of, told_divisions
from gpadvisor.estimators.random_states import skips_ahead
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.streams import paced_by_memory
from gpadvisor.evidence.conversions import halved_factors
from gpadvisor.evidence.fills import only_fills
from gpadvisor.evidence.loops import versions_without_inner
from gpadvisor.evidence.patterns import CodeSequence, is_slow_on, math_sequences
from gpadvisor.evidence.queries import (
    Mask,
    by_instruction,
    by_place,
    by_role,
    by_stall,
    causes,
    heaviest,
    kernel_functions,
    regions,
    samples,
    static_match,
)
from gpadvisor.evidence.trees import go_with_remainders_of_trees
from gpadvisor.model.advice import Adjustment, Category, Match, ReducedLoad, Rejection, StaticSite
from gpadvisor.model.blame import Blame, Role
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.program import Function, FunctionKind
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import capitalised
from gpadvisor.model.stalls import StallClass
from gpadvisor.source.edits import SiteKind
from gpadvisor.source.naming import name_arithmetic

_CODE: Final = "GPA102"
_NOTABLE_PART: Final = 10
"""Less than a tenth of the matched samples is not worth a sentence."""
_WAITS: Final = frozenset({StallClass.EXECUTION, StallClass.FIXED_LATENCY})
_PIPE_FULL: Final = frozenset(
    {
        StallClass.PIPE_THROTTLE,
        StallClass.SHARED_THROTTLE,  # the queue before the special-function unit
        StallClass.MEMORY_THROTTLE,  # those before double precision where it is slow
        StallClass.TEXTURE_THROTTLE,
    }
)
_TITLES: Final = {
    "division": "integer division or remainder by a value the compiler does not know",
    "double": "single precision computed in double precision",
    "rate": "double precision, of which the GPU does little at once",
    "library": "slow arithmetic of library math",
    "other": "dependence on slow arithmetic",
}
_IN_FLOAT: Final = (Remedy.IN_FLOAT,)


def _match(context: KernelContext) -> Match | Rejection:
    random = skips_ahead(context)
    if random is not None:
        return random
    functions = kernel_functions(context.program, context.kernel)
    divisions, other_divisions = told_divisions(functions)
    doubles = told_doubles(context, functions)
    kinds = {"division": sites_of(functions, divisions), "double": sites_of(functions, doubles)}
    sites = (*kinds["division"], *kinds["double"])
    if context.blame is None:
        busy = busy_doubles(context, functions)
        hidden = paced_by_memory(context, functions) | same_for_the_grid(functions, divisions)
        sites = _worth_naming(
            functions, tuple(one for one in sites if (one.function, one.index) not in hidden)
        )
        if busy is not None:
            sites = tuple(dict.fromkeys((*busy.sites, *sites)))
        advice, cure = _words(context, functions, divisions, doubles, Counter())
        match = static_match(
            _CODE,
            title=_TITLES["division" if busy is None and any(divisions.values()) else "double"],
            advice=advice,
            cure=cure,
            sites=sites,
            missing="no integer division by an unknown value and no float-double-float conversion in a "
            "loop or more than once that takes longer than the elements of its pass from DRAM",
            remedies=_IN_FLOAT if any(doubles.values()) or busy is not None else (),
        )
        kinds["double"] = (*kinds["double"], *(() if busy is None else busy.sites))
        titles = {(site.function, site.index): _TITLES[kind] for kind in kinds for site in kinds[kind]}
        by = "GPA105" if go_with_remainders_of_trees(functions, sites) else ""
        return match if isinstance(match, Rejection) else replace(match, titles=titles, replaced_by=by)
    blame = context.blame
    in_division, in_double = (_rows_of(blame, sequences) for sequences in (divisions, doubles))
    slow = _slow_rows(context, blame, in_double) & ~_rows_of(blame, other_divisions)
    # The whole sequence goes: what it issues, and what waits on any of its steps.
    of_division = in_division & by_role(blame, Role.BLAMED, Role.SELF)
    slow |= of_division
    if not samples(blame, slow):
        return Rejection(code=_CODE, reason="no stall on arithmetic of 10 or more cycles, nor on its pipes")
    masks = _masks(context, blame, slow, of_division, in_double)
    weights = Counter({kind: samples(blame, mask) for kind, mask in masks.items()})
    leading = max(weights, key=lambda kind: weights[kind])
    worst = heaviest(blame, np.flatnonzero(masks[leading]))
    advice, cure = _words(context, functions, divisions, doubles, weights)
    return Match(
        title=_TITLES[leading],
        advice=advice,
        cure=cure,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(slow)),
        adjustments=_adjustments(weights),
        static_sites=sites,
        reduced_loads=_reduced_loads(context, functions, divisions, doubles),
        titles=_titles(blame, masks),
        remedies=_IN_FLOAT if weights["double"] or weights["rate"] else (),
        place=(FunctionId(int(blame.rows.function[worst])), int(causes(blame)[worst])),
        # Of the rest nothing but the program itself tells whether there is a cheaper form.
        actionable=weights["library"] + weights["other"] <= (1 - 1 / _NOTABLE_PART) * sum(weights.values()),
    )


def _masks(
    context: KernelContext, blame: Blame, slow: Mask, of_division: Mask, in_double: Mask
) -> dict[str, Mask]:
    """The rows of each kind of slow arithmetic."""
    functions = kernel_functions(context.program, context.kernel)
    of_double = in_double & slow
    of_library = _rows_of(blame, {function.id: math_sequences(function) for function in functions})
    of_library |= np.isin(
        blame.rows.function,
        [function.id for function in functions if function.kind is FunctionKind.MATH_HELPER],
    )
    of_doubles = by_instruction(
        blame, context.program, causes(blame), lambda code: code.info.opclass is OpcodeClass.FLOAT64
    )
    masks = {
        "division": of_division,
        "double": of_double & ~of_division,
        "library": slow & of_library & ~of_division & ~of_double,
        "rate": slow & ~of_library & ~of_division & ~of_double & of_doubles,
    }
    masks["other"] = slow & ~np.any([*masks.values()], axis=0)
    return masks


def _titles(blame: Blame, masks: Mapping[str, Mask]) -> dict[tuple[FunctionId, int], str]:
    """What each instruction is part of."""
    places = causes(blame)
    return {
        (FunctionId(int(blame.rows.function[row])), int(places[row])): _TITLES[kind]
        for kind, mask in masks.items()
        for row in np.flatnonzero(mask)
    }


def _worth_naming(functions: tuple[Function, ...], sites: tuple[StaticSite, ...]) -> tuple[StaticSite, ...]:
    """Without samples: those in innermost loops, or all of several without loops; none that sets data up."""
    if only_fills(functions):
        return ()
    by_id = {function.id: function for function in functions}
    looped = tuple(site for site in sites if _is_innermost(by_id[site.function], site.index))
    if any(function.loops for function in functions):
        return looped
    return sites if len(sites) > 1 else ()


def _is_innermost(function: Function, index: int) -> bool:
    loop = function.innermost_loop(index)
    around = {one.parent for one in function.loops} | versions_without_inner(function)
    return loop is not None and loop not in around


_DIVISION_LEFT: Final = 2  # of its instructions, those that multiplying by a known reciprocal needs


def _reduced_loads(
    context: KernelContext,
    functions: tuple[Function, ...],
    divisions: dict[FunctionId, tuple[CodeSequence, ...]],
    doubles: dict[FunctionId, tuple[CodeSequence, ...]],
) -> tuple[ReducedLoad, ...]:
    """Conversions and reciprocals go; double arithmetic becomes as much single-precision arithmetic."""
    gone: dict[tuple[FunctionId, int], float] = {}
    elsewhere = set()
    for function in functions:
        code = function.instructions
        for sequence in divisions[function.id]:
            plain = [index for index in sequence.indices if code[index].info.pipe is not Pipe.XU]
            left = min(1.0, _DIVISION_LEFT / len(plain)) if plain else 0.0
            gone.update({(function.id, index): 1.0 for index in sequence.indices})
            gone.update({(function.id, index): 1 - left for index in plain})
        for sequence in doubles[function.id]:
            for index in sequence.indices:
                if code[index].info.opclass is OpcodeClass.FLOAT64:
                    elsewhere.add((function.id, index))
                else:
                    gone[function.id, index] = 1.0
    return freed(context, gone, elsewhere=elsewhere)


def _slow_rows(context: KernelContext, blame: Blame, patterned: Mask) -> Mask:
    """Dependency stalls on slow arithmetic, and slow arithmetic that finds its pipe full.

    Arithmetic of a known pattern counts as slow on every GPU.

    Differs from GPA: its code counts every sample of such an instruction, issued ones too, and its table
    leaves double precision out; the paper says execution dependency stalls of long-latency arithmetic.
    """
    slow = by_instruction(
        blame, context.program, causes(blame), lambda instruction: is_slow_on(context.machine, instruction)
    )
    waited = by_role(blame, Role.BLAMED) & by_stall(blame, _WAITS)
    full = by_stall(blame, _PIPE_FULL)
    functions = kernel_functions(context.program, context.kernel)
    halved = {
        (function.id, factor) for function in functions for factor in halved_factors(function)
    }  # GPA112's
    return (slow | patterned) & (waited | full) & ~by_place(blame, causes(blame), halved)


def _rows_of(blame: Blame, sequences: dict[FunctionId, tuple[CodeSequence, ...]]) -> Mask:
    return by_place(blame, causes(blame), _places(sequences))


def _places(sequences: dict[FunctionId, tuple[CodeSequence, ...]]) -> set[tuple[FunctionId, int]]:
    return {
        (function, index) for function, parts in sequences.items() for part in parts for index in part.indices
    }


def _words(
    context: KernelContext,
    functions: tuple[Function, ...],
    divisions: dict[FunctionId, tuple[CodeSequence, ...]],
    doubles: dict[FunctionId, tuple[CodeSequence, ...]],
    weights: Counter[str],
) -> tuple[str, str]:
    """What was found with what to change, and the changes alone."""
    parts: list[tuple[str, str]] = []
    if any(divisions.values()) and (not weights or weights["division"]):
        parts.append(division_advice(functions, divisions, context.language))
    busy = busy_doubles(context, functions)
    if busy is not None:
        parts.insert(0, busy_advice(functions, busy, context.language))
    elif any(doubles.values()) and (not weights or weights["double"]):
        parts.append(double_advice(functions, doubles, context.language))
    if busy is None and weights["rate"] > sum(weights.values()) / _NOTABLE_PART:
        parts.append(
            (
                f"This GPU is slow in double precision ({_common(context, functions)}): ",
                "compute in float what bears it.",
            )
        )
    if weights["library"] > sum(weights.values()) / _NOTABLE_PART:
        parts.append(("Those in library math are the subject of Fast Math (GPA104).", ""))
    if weights["other"] > sum(weights.values()) / _NOTABLE_PART or not parts:
        slow = _common(context, functions, _places(divisions) | _places(doubles))
        parts.append(
            ("", f"use fewer of the slow instructions ({slow}), hoist them, or use their results later.")
        )
    changes = " ".join(capitalised(change) for _, change in parts if change)
    return " ".join(f"{text}{change}" if text else capitalised(change) for text, change in parts), changes


def _common(
    context: KernelContext, functions: tuple[Function, ...], known: Collection[tuple[FunctionId, int]] = ()
) -> str:
    """The slow opcodes of the code that are part of nothing known, most frequent first."""
    counts = Counter(
        instruction.opcode
        for function in functions
        for index, instruction in enumerate(function.instructions)
        if is_slow_on(context.machine, instruction) and (function.id, index) not in known
    )
    return ", ".join(opcode for opcode, _ in counts.most_common(3)) or "see the hot spots"


def _adjustments(weights: Counter[str]) -> tuple[Adjustment, ...]:
    total = sum(weights.values())
    other = (weights["rate"] + weights["library"] + weights["other"]) / total
    adjustments = [
        Adjustment(
            low=constants.CHEAPER_LEAST,
            expected=1.0,
            high=constants.CHEAPER_MOST,
            reason="in the paper's Table III the three kernels of this kind removed 90 to 175 % of the "
            "matched "
            "stalls, as instructions went too",
        )
    ]
    if other > 0:
        adjustments.append(
            Adjustment(
                low=1 - other,
                expected=1 - other,
                high=1.0,
                reason=f"{percent(other)} of the matched samples belong to no pattern with a known cheaper "
                "form, as those of the paper's kernels did",
            )
        )
    return tuple(adjustments)


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="strength-reduction",
    name="Strength Reduction",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    usual_gain=constants.CHEAPER_GAVE,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.FLOAT_LITERALS, SiteKind.RECIPROCAL),
    naming=name_arithmetic,
    twins=("SlowPipeLimiter",),
    what_if=WhatIf.EDITED,
)
