# SPDX-License-Identifier: Apache-2.0
"""Strength Reduction: long-latency arithmetic that a cheaper form replaces (GPA Table II).

## What it finds

Stalls on the result of a slow arithmetic instruction: the special-function unit (`MUFU`), conversions
between types (`F2F`, `F2I`, `I2F`), bit counts, double precision on GPUs that have little of it, and
stalls because their pipe is full. It names what the instruction belongs to: an integer division or
remainder by a value that the compiler does not know, with all its steps, wherever they were moved to, or
single precision that becomes double and comes back. Divisions that the compiler adds to count the passes
of a loop, or to divide a collapsed loop of OpenACC or OpenMP, are none of the source's. Slow instructions
that belong to neither are a note, but for double precision on a GPU that has little of it. Where that
pipe is busy for a fifth of the time or more in a kernel that also computes in floats, every line that loads
it is named.

## Why warps stall

These units take tens of cycles and accept a new warp only every few cycles. An integer division has no
instruction of its own: it is a conversion to floating point, a reciprocal, a conversion back, and
corrections, each waiting for the one before. On most GPUs other than the data-center ones, double
precision runs at 1/32 or 1/64 of the single-precision rate.

## What to try

- Division and remainder by the same value over and over: use a shift and a mask if it is a power of two,
  compute the reciprocal once and multiply, or make the divisor a template parameter, so that the compiler
  does it. A divisor that changes from pass to pass has no reciprocal to keep: carry quotient and remainder
  along. Divide in 32 bits where the numbers fit.
- A literal without `f` (`2.0 * x`) is a double and makes the whole expression double: write `2.0f`.
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
known pattern count for a fifth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext, Optimizer, WhatIf
from gpadvisor.estimators.reliefs import executions, freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.estimators.utilisation import PIPES, measured_loads
from gpadvisor.evidence.divisions import division_calls, written_divisions
from gpadvisor.evidence.double_excursions import DOUBLE_SUM, double_excursions, mixes_precision
from gpadvisor.evidence.patterns import CodeSequence, is_slow_on, math_sequences
from gpadvisor.evidence.queries import (
    Mask,
    by_instruction,
    by_place,
    by_role,
    by_stall,
    causes,
    counted,
    kernel_functions,
    line_text,
    loop_indices,
    percent,
    regions,
    samples,
    static_match,
)
from gpadvisor.model.advice import Adjustment, Category, Match, Rejection, Relief, StaticSite
from gpadvisor.model.blame import Blame, Role
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, OpcodeClass, Pipe
from gpadvisor.model.program import Function, FunctionKind
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


def _match(context: KernelContext) -> Match | Rejection:
    functions = kernel_functions(context.program, context.kernel)
    divisions = {
        function.id: tuple(one for one in written_divisions(function) if _places(functions, function, one))
        for function in functions
    }
    doubles = {function.id: double_excursions(function) for function in functions}
    kinds = {"division": _sites(functions, divisions), "double": _sites(functions, doubles)}
    sites = (*kinds["division"], *kinds["double"])
    if context.blame is None:
        busy = _busy_doubles(context, functions)
        sites = _worth_naming(functions, sites)
        if busy is not None:
            sites = tuple(dict.fromkeys((*busy.sites, *sites)))
        advice, cure = _words(context, functions, divisions, doubles, Counter())
        found = static_match(
            _CODE,
            title=_TITLES["division" if busy is None and any(divisions.values()) else "double"],
            advice=advice,
            cure=cure,
            sites=sites,
            missing="no integer division by an unknown value and no float-double-float conversion in a "
            "loop or more than once",
        )
        if busy is not None:
            kinds["double"] = (*kinds["double"], *busy.sites)
        titles = {(one.function, one.index): _TITLES[kind] for kind, own in kinds.items() for one in own}
        return found if isinstance(found, Rejection) else replace(found, titles=titles)
    blame = context.blame
    in_division, in_double = (_rows_of(blame, found) for found in (divisions, doubles))
    slow = _slow_rows(context, blame, in_double)
    # The whole sequence goes: what it issues, and what waits on any of its steps.
    of_division = in_division & by_role(blame, Role.BLAMED, Role.SELF)
    slow |= of_division
    if not samples(blame, slow):
        return Rejection(
            code=_CODE,
            reason="no stall on arithmetic of 10 or more cycles, nor on its pipes",
        )
    of_double = in_double & slow
    of_library = _rows_of(blame, {function.id: math_sequences(function) for function in functions})
    of_library |= np.isin(
        blame.rows.function, [one.id for one in functions if one.kind is FunctionKind.MATH_HELPER]
    )
    of_doubles = by_instruction(
        blame, context.program, causes(blame), lambda one: one.info.opclass is OpcodeClass.FLOAT64
    )
    masks = {
        "division": of_division,
        "double": of_double & ~of_division,
        "library": slow & of_library & ~of_division & ~of_double,
        "rate": slow & ~of_library & ~of_division & ~of_double & of_doubles,
    }
    masks["other"] = slow & ~np.any([*masks.values()], axis=0)
    weights = Counter({kind: samples(blame, mask) for kind, mask in masks.items()})
    advice, cure = _words(context, functions, divisions, doubles, weights)
    return Match(
        title=_TITLES[weights.most_common(1)[0][0]],
        advice=advice,
        cure=cure,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(slow)),
        adjustments=_adjustments(weights),
        static_sites=sites,
        relieves=_reliefs(context, functions, divisions, doubles),
        titles=_titles(blame, masks),
        # Of the rest nothing but the program itself tells whether there is a cheaper form.
        actionable=weights["library"] + weights["other"] <= (1 - 1 / _NOTABLE_PART) * sum(weights.values()),
    )


def _titles(blame: Blame, masks: Mapping[str, Mask]) -> dict[tuple[FunctionId, int], str]:
    """What each instruction is part of."""
    places = causes(blame)
    return {
        (FunctionId(int(blame.rows.function[row])), int(places[row])): _TITLES[kind]
        for kind, mask in masks.items()
        for row in np.flatnonzero(mask)
    }


def _worth_naming(functions: tuple[Function, ...], sites: tuple[StaticSite, ...]) -> tuple[StaticSite, ...]:
    """Without samples: those in innermost loops; of code without loops all of several.

    What runs once per thread, or once per pass of a loop around others, is little of what is executed.
    """
    by_id = {function.id: function for function in functions}
    around = {
        (function.id, loop.parent)
        for function in functions
        for loop in function.loops
        if loop.parent is not None
    }
    looped = [
        site
        for site in sites
        for loop in (by_id[site.function].innermost_loop(site.index),)
        if loop is not None and (site.function, loop) not in around
    ]
    if any(function.loops for function in functions):
        return tuple(looped)
    return sites if len(sites) > 1 else ()


_DIVISION_LEFT: Final = 2
"""Of a division's instructions, those that multiplying by a known reciprocal still needs."""


def _reliefs(
    context: KernelContext,
    functions: tuple[Function, ...],
    divisions: dict[FunctionId, tuple[CodeSequence, ...]],
    doubles: dict[FunctionId, tuple[CodeSequence, ...]],
) -> tuple[Relief, ...]:
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
    return (slow | patterned) & (waited | full)


def _rows_of(blame: Blame, found: dict[FunctionId, tuple[CodeSequence, ...]]) -> Mask:
    places = {
        (function, index)
        for function, sequences in found.items()
        for sequence in sequences
        for index in sequence.indices
    }
    return by_place(blame, causes(blame), places)


def _sites(
    functions: tuple[Function, ...], found: dict[FunctionId, tuple[CodeSequence, ...]]
) -> tuple[StaticSite, ...]:
    """Where the sequences start; for those in a routine of the compiler's, where that is called."""
    return tuple(
        StaticSite(function=caller.id, index=index, detail=_detail(sequence))
        for function in functions
        for sequence in found[function.id]
        for caller, index in _places(functions, function, sequence)
    )


def _places(
    functions: tuple[Function, ...], function: Function, sequence: CodeSequence
) -> list[tuple[Function, int]]:
    """Where a sequence is written: that of a routine of the compiler's where it is called for the source."""
    if function.kind is not FunctionKind.MATH_HELPER:
        return [(function, sequence.start)]
    called = [
        (caller, call.index) for caller in functions for call in caller.calls if call.callee == function.id
    ]
    if not called:
        return [(function, sequence.start)]
    return [(caller, index) for caller, index in called if index in division_calls(caller)]


def _detail(sequence: CodeSequence) -> str:
    if sequence.operand is None:
        return sequence.kind
    if sequence.operand.startswith("c["):
        return f"{sequence.kind} by a kernel parameter or constant, {sequence.operand}"
    if sequence.operand.startswith("UR"):
        return f"{sequence.kind} by a value that is the same for the whole warp, {sequence.operand}"
    if sequence.operand.startswith("0x"):
        return f"{sequence.kind} by {int(sequence.operand, 16)}"
    return f"{sequence.kind} by {sequence.operand}"


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
        parts.append(_division_advice(functions, divisions))
    busy = _busy_doubles(context, functions)
    if busy is not None:
        parts.insert(0, _busy_advice(functions, busy))
    elif any(doubles.values()) and (not weights or weights["double"]):
        parts.append(_double_advice(functions, doubles))
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
        slow = (
            f"use fewer of the slow instructions ({_common(context, functions)}), hoist them out of loops, "
        )
        parts.append(("", f"{slow}or use their results later."))
    changes = [f"{change[:1].upper()}{change[1:]}" for _, change in parts if change]
    return " ".join(
        f"{what}{change}" if what else f"{change[:1].upper()}{change[1:]}" for what, change in parts
    ), " ".join(changes)


_LITERAL: Final = re.compile(r"c\[0x[1-9a-f]\w*\]|, -?\d")
"""A number in an operand: of a constant bank that holds no parameters, or in the instruction."""
_POW: Final = "__internal_accurate_pow"
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class _Doubles:
    """Double precision in a kernel that also computes in floats, where its pipe is busy."""

    percent: float  # of the pipe's peak
    sites: tuple[StaticSite, ...]  # one for each line, the most executed first
    literals: tuple[str, ...]  # lines with a number in double precision
    powers: tuple[str, ...]  # lines that call pow()


def _busy_doubles(context: KernelContext, functions: tuple[Function, ...]) -> _Doubles | None:
    """What loads the pipe of double precision; None where it is fast, has little to do, or all is double."""
    busy = next((one for one in measured_loads(context) if one.name == PIPES[Pipe.FP64]), None)
    if busy is None or busy.percent < constants.DOUBLES_PERCENT:
        return None
    weights: Counter[str] = Counter()
    first: dict[str, StaticSite] = {}
    literals, powers = dict[str, None](), dict[str, None]()
    mixed = slow = False
    counts = executions(context) or {}
    for function in functions:
        if function.kind is FunctionKind.MATH_HELPER:
            continue
        routines = {
            call.index: context.program.functions[call.callee]
            for call in function.calls
            if call.callee is not None
        }
        library = {index for sequence in math_sequences(function) for index in sequence.indices}
        for index, one in enumerate(function.instructions):
            routine = routines.get(index)
            work = sum(map(_is_double, (one,) if routine is None else routine.instructions))
            if not work or (function.lines[index] is None and context.program.has_line_info):
                continue
            place = line_text(function, index)
            depth = len(function.enclosing_loops(index))
            own = counts.get(function.id)
            weights[place] += work * (int(own[index]) if own is not None else _PASSES**depth)
            first.setdefault(place, StaticSite(function=function.id, index=index, detail="double precision"))
            mixed |= mixes_precision(one)
            slow |= one.info.opclass is OpcodeClass.FLOAT64 and is_slow_on(context.machine, one)
            if routine is not None and _POW in routine.name:
                powers[place] = None
            elif index not in library and _has_literal(one):
                literals[line_text(function, _converted(function, index))] = None
    if not mixed or not slow:
        return None
    order = [place for place, _ in weights.most_common()]
    return _Doubles(
        percent=busy.percent,
        sites=tuple(first[place] for place in order),
        literals=tuple(place for place in order if place in literals and place not in powers),
        powers=tuple(place for place in order if place in powers),
    )


_PASSES: Final = 10
"""What a loop is taken to multiply executions by where nobody counted them: it only orders the lines."""


def _is_double(instruction: Instruction) -> bool:
    """Whether an instruction computes in double precision, or converts to or from it."""
    converts = instruction.info.opclass is OpcodeClass.CONVERSION and "F64" in instruction.modifiers
    return converts or instruction.info.opclass is OpcodeClass.FLOAT64


def _has_literal(instruction: Instruction) -> bool:
    computes = instruction.info.opclass is OpcodeClass.FLOAT64
    return computes and _LITERAL.search(instruction.operands) is not None


def _converted(function: Function, index: int) -> int:
    """Where a float becomes the double that an instruction computes with, else the instruction."""
    made = sorted(
        at for used in function.instructions[index].uses for at in function.reaching.definitions(index, used)
    )
    lined = (at for at in made if function.lines[at] is not None or function.lines[index] is None)
    return next((at for at in lined if function.instructions[at].opcode == "F2F"), index)


def _busy_advice(functions: tuple[Function, ...], found: _Doubles) -> tuple[str, str]:
    by_id = {function.id: function for function in functions}
    places = [line_text(by_id[site.function], site.index) for site in found.sites]
    changes = []
    if found.literals:
        changes.append(f"add the suffix f to the literals at {_list(found.literals)}")
    if found.powers:
        changes.append(f"write pow() at {_list(found.powers)} as a product, or powf()")
    changes.append("call the float form of math functions")
    what = (
        f"The pipe of double precision, which is slow on this GPU, is busy for {found.percent:.0f} % of the "
        f"time in a kernel of floats, most of it at {_list(places)}: "
    )
    return what, f"{', '.join(changes[:-1])}{' and ' if changes[:-1] else ''}{changes[-1]}."


def _list(places: Sequence[str]) -> str:
    more = f" and {counted(len(places) - _NAMED, 'more line')}" if len(places) > _NAMED else ""
    return f"{', '.join(places[:_NAMED])}{more}"


def _double_advice(
    functions: tuple[Function, ...], doubles: dict[FunctionId, tuple[CodeSequence, ...]]
) -> tuple[str, str]:
    found = [one for sequences in doubles.values() for one in sequences]
    place = _first_place(functions, doubles)
    if all(one.kind == DOUBLE_SUM for one in found):
        return (
            f"Floats are added up in a double ({place}): ",
            "add them up in a float if the sum may lose digits, or in several that are added up at the end.",
        )
    lines = {line_text(function, one.start) for function in functions for one in doubles[function.id]}
    return (
        (
            f"{counted(len(lines), 'line')} convert{'' if len(lines) > 1 else 's'} float to double and back "
            f"({place}): "
        ),
        "add the suffix f to literals and call the float form of math functions.",
    )


def _first_place(functions: tuple[Function, ...], found: dict[FunctionId, tuple[CodeSequence, ...]]) -> str:
    """Where most of the sequences stand, in loops first."""
    lines = Counter(
        (line_text(caller, index), caller.innermost_loop(index) is not None)
        for function in functions
        for sequence in found[function.id]
        for caller, index in _places(functions, function, sequence)
    )
    (place, _), _ = max(lines.items(), key=lambda entry: (entry[0][1], entry[1]))
    return f"most at {place}" if len(lines) > 1 else f"at {place}"


def _division_advice(
    functions: tuple[Function, ...], divisions: dict[FunctionId, tuple[CodeSequence, ...]]
) -> tuple[str, str]:
    lines: dict[str, Counter[_Divisor]] = {}  # by place: copies of a loop's body are one division
    numbers = set()
    wide = False
    for function in functions:
        for sequence in divisions[function.id]:
            for caller, index in _places(functions, function, sequence):
                kind = _divisor(function, sequence)
                lines.setdefault(line_text(caller, index), Counter())[kind] += 1
                numbers.add(sequence.operand)
                wide |= sequence.kind.startswith("64")
    kinds = Counter(max(of_line, key=lambda kind: kind.value) for of_line in lines.values())
    several = len(lines) > 1
    text = "integer divisions or remainders" if several else "integer division or remainder"
    text = f"{len(lines)} {text} by a run-time value ({_first_place(functions, divisions)})"
    shift = "a shift and a mask where the divisor is a power of two"
    narrow = " Divide in 32 bits where the numbers fit." if wide else ""
    if kinds.keys() == {_Divisor.NUMBER} and len(numbers) == 1:
        number = int(numbers.pop() or "0", 16)
        return (
            f"{text}: the divisor is {number}, but not as a constant of the source (as warpSize is 32): ",
            f"write {number} as the divisor {_first_place(functions, divisions)}.{narrow}",
        )
    if uniform := kinds[_Divisor.UNIFORM]:
        which = "each of them" if uniform == len(lines) else f"{uniform} of them"
        return (
            f"{text}; {f'in {which} ' if several else ''}all threads divide by the same value: ",
            (
                f"use {shift}, else pass a precomputed reciprocal (__umulhi) or make the divisor a template "
                f"parameter.{narrow}"
            ),
        )
    if kinds[_Divisor.CHANGES] == len(lines):
        return (
            f"{text}, which changes from pass to pass: ",
            f"use {shift}, or carry quotient and remainder along.{narrow}",
        )
    return (
        f"{text}: ",
        f"use {shift}, and one reciprocal for all numbers that are divided by the same value.{narrow}",
    )


class _Divisor(Enum):
    """What is known of a divisor; of copies of one line the last kind that any has."""

    NUMBER = 0
    UNIFORM = 1  # the same for all threads
    CHANGES = 2  # computed anew in each pass of the loop around the division
    OWN = 3


def _divisor(function: Function, sequence: CodeSequence) -> _Divisor:
    operand = sequence.operand or ""
    if operand.startswith("0x"):
        return _Divisor.NUMBER
    if operand.startswith(("c[", "UR")):
        return _Divisor.UNIFORM
    first = min(sequence.indices)
    loop = function.innermost_loop(first)
    made = {
        at for used in function.instructions[first].uses for at in function.reaching.definitions(first, used)
    }
    if made and all(_is_parameter(function.instructions[at]) for at in made):
        return _Divisor.UNIFORM
    inside = set() if loop is None else {*loop_indices(function, loop)}
    return _Divisor.CHANGES if made & inside else _Divisor.OWN


def _is_parameter(instruction: Instruction) -> bool:
    """Whether an instruction only fetches a parameter or a size of the launch."""
    return "c[" in instruction.operands and not instruction.uses


def _common(context: KernelContext, functions: tuple[Function, ...]) -> str:
    """The slow opcodes of the code, most frequent first."""
    counts = Counter(
        instruction.opcode
        for function in functions
        for instruction in function.instructions
        if is_slow_on(context.machine, instruction)
    )
    return ", ".join(opcode for opcode, _ in counts.most_common(3)) or "see the hot spots"


def _adjustments(weights: Counter[str]) -> tuple[Adjustment, ...]:
    total = sum(weights.values())
    other = (weights["rate"] + weights["library"] + weights["other"]) / total
    found = [
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
        found.append(
            Adjustment(
                low=1 - other,
                expected=1 - other,
                high=1.0,
                reason=f"{percent(other)} of the matched samples belong to no pattern with a known cheaper "
                "form, as those of the paper's kernels did",
            )
        )
    return tuple(found)


OPTIMIZER: Final = Optimizer(
    code=_CODE,
    slug="strength-reduction",
    name="Strength Reduction",
    category=Category.STALL_ELIMINATION,
    match=_match,
    estimate=stall_elimination,
    document=__doc__ or "",
    optimized_only=True,
    edits=(SiteKind.FLOAT_LITERALS, SiteKind.RECIPROCAL),
    naming=name_arithmetic,
    twins=("SlowPipeLimiter",),
    what_if=WhatIf.EDITED,
)
