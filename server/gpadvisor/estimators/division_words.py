# SPDX-License-Identifier: Apache-2.0
"""Integer divisions in words: where they are written, what is known of the divisor, what to change."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Final

from gpadvisor.estimators import terms
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.arrays import is_loaded, register_makers
from gpadvisor.evidence.divisions import division_calls, written_divisions
from gpadvisor.evidence.patterns import CodeSequence
from gpadvisor.evidence.queries import (
    line_text,
    loop_indices,
)
from gpadvisor.evidence.trees import halved
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.language import Language
from gpadvisor.model.program import Function, FunctionKind


def written_at(
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


Divisions = dict[FunctionId, tuple[CodeSequence, ...]]
"""By function."""


def told_divisions(functions: tuple[Function, ...]) -> tuple[Divisions, Divisions]:
    """The divisions of the source that a change helps, and those that none does.

    Nothing helps those whose divisor changes from pass to pass, as in Euclid's algorithm, and those that
    divide by what each pass loads; of 64-bit ones that change the width can.
    """
    divisions, other_divisions = Divisions(), Divisions()
    for function in functions:
        written = [
            division for division in written_divisions(function) if written_at(functions, function, division)
        ]
        kinds = {division: _divisor(function, division) for division in written}
        others = {
            one
            for one, kind in kinds.items()
            if kind is _Divisor.LOADED or (kind is _Divisor.CHANGES and not one.wide)
        }
        divisions[function.id] = tuple(one for one in written if one not in others)
        other_divisions[function.id] = tuple(one for one in written if one in others)
    return divisions, other_divisions


def same_for_the_grid(
    functions: tuple[Function, ...], divisions: dict[FunctionId, tuple[CodeSequence, ...]]
) -> frozenset[tuple[FunctionId, int]]:
    """Where parameters of a kernel alone are divided, by each other: as often as there are threads."""
    return frozenset(
        (caller.id, index)
        for function in functions
        if function.kind is FunctionKind.KERNEL
        for sequence in divisions[function.id]
        if _is_of_parameters(function, sequence)
        for caller, index in written_at(functions, function, sequence)
    )


def _is_of_parameters(function: Function, sequence: CodeSequence) -> bool:
    """Whether all that a division reads is known, and nothing of it differs between threads or blocks."""
    read = [(index, used) for index in sequence.indices for used in function.instructions[index].uses]
    return all(function.reaching.definitions(index, used) for index, used in read) and not any(
        _is_of_thread(function.instructions[maker])
        for index, used in read
        for maker in register_makers(function, index, used)
    )


def _is_of_thread(maker: Instruction) -> bool:
    """Whether a value is loaded from memory, or one of the numbers of a thread or its block."""
    return is_loaded(maker) or (
        maker.info.opclass is OpcodeClass.SPECIAL_REGISTER and "SR_" in maker.operands
    )


def sites_of(
    functions: tuple[Function, ...], sequences: dict[FunctionId, tuple[CodeSequence, ...]]
) -> tuple[StaticSite, ...]:
    """Where the sequences start; for those in a routine of the compiler's, where that is called."""
    return tuple(
        StaticSite(function=caller.id, index=index, detail=division_detail(sequence))
        for function in functions
        for sequence in sequences[function.id]
        for caller, index in written_at(functions, function, sequence)
    )


def division_detail(sequence: CodeSequence) -> str:
    """The division with its divisor."""
    if sequence.operand is None:
        return sequence.kind
    if sequence.operand.startswith("c["):
        return f"{sequence.kind} by a kernel parameter or constant, {sequence.operand}"
    if sequence.operand.startswith("UR"):
        return f"{sequence.kind} by a value that is the same for the whole warp, {sequence.operand}"
    if sequence.operand.startswith("0x"):
        return f"{sequence.kind} by {int(sequence.operand, 16)}"
    return f"{sequence.kind} by {sequence.operand}"


def first_place(
    functions: tuple[Function, ...], sequences: dict[FunctionId, tuple[CodeSequence, ...]]
) -> str:
    """Where most of the sequences stand, in loops first."""
    lines = Counter(
        (line_text(caller, index), caller.innermost_loop(index) is not None)
        for function in functions
        for sequence in sequences[function.id]
        for caller, index in written_at(functions, function, sequence)
    )
    (place, _), _ = max(lines.items(), key=lambda entry: (entry[0][1], entry[1]))
    return f"most at {place}" if len(lines) > 1 else f"at {place}"


def division_advice(
    functions: tuple[Function, ...],
    divisions: dict[FunctionId, tuple[CodeSequence, ...]],
    language: Language,
) -> tuple[str, str]:
    """What was found, and what to change."""
    lines: dict[str, Counter[_Divisor]] = {}  # by place: copies of a loop's body are one division
    numbers = set()
    wide = False
    for function in functions:
        for sequence in divisions[function.id]:
            for caller, index in written_at(functions, function, sequence):
                kind = _divisor(function, sequence)
                lines.setdefault(line_text(caller, index), Counter())[kind] += 1
                numbers.add(sequence.operand)
                wide |= sequence.wide
    kinds = Counter(max(of_line, key=lambda kind: kind.value) for of_line in lines.values())
    several = len(lines) > 1
    text = "integer divisions or remainders" if several else "integer division or remainder"
    text = f"{len(lines)} {text} by a run-time value ({first_place(functions, divisions)})"
    shift = "a shift and a mask where the divisor is a power of two"
    narrow = " Divide in 32 bits where the numbers fit." if wide else ""
    if kinds.keys() == {_Divisor.NUMBER} and len(numbers) == 1:
        number, unlike = int(numbers.pop() or "0", 16), terms.UNLIKE_WARP_SIZE.of(language)
        return (
            f"{text}: the divisor is {number}, but not as a constant of the source{unlike}: ",
            f"write {number} as the divisor {first_place(functions, divisions)}.{narrow}",
        )
    if uniform := kinds[_Divisor.UNIFORM]:
        which = "each of them" if uniform == len(lines) else f"{uniform} of them"
        return (
            f"{text}; {f'in {which} ' if several else ''}all threads divide by the same value: ",
            (
                f"use {shift}, else pass a precomputed reciprocal{terms.HIGH_PRODUCT.of(language)} or "
                f"{terms.DIVISOR.of(language)}.{narrow}"
            ),
        )
    if kinds[_Divisor.CHANGES] == len(lines):
        return f"{text}, which changes from pass to pass: ", "divide in 32 bits where the numbers fit."
    if kinds[_Divisor.SHIFTS] == len(lines):
        return (
            f"{text}, which doubles or halves from pass to pass: ",
            f"use a shift and a mask if it starts at a power of two.{narrow}",
        )
    return (
        f"{text}: ",
        f"use {shift}, and one reciprocal for all numbers that are divided by the same value.{narrow}",
    )


class _Divisor(Enum):
    """What is known of a divisor; of copies of one line the last kind that any has."""

    NUMBER = 0
    UNIFORM = 1  # the same for all threads
    SHIFTS = 2  # doubled or halved in each pass
    CHANGES = 3  # another one in each pass of the loop around the division
    OWN = 4
    LOADED = 5  # computed anew from what each pass of the loop loads


def _divisor(function: Function, sequence: CodeSequence) -> _Divisor:
    operand = sequence.operand or ""
    if operand.startswith("0x"):
        return _Divisor.NUMBER
    if operand.startswith("c["):
        return _Divisor.UNIFORM
    code = function.instructions
    first = _first_step(function, sequence)
    loop = function.innermost_loop(first)
    definitions = _definitions(function, first)
    if definitions and all(_is_parameter(code[index]) for index in definitions):
        return _Divisor.UNIFORM
    inside = set() if loop is None else {*loop_indices(function, loop)}
    made_of = _made_of(function, first, inside)
    makers = [code[index] for index in made_of if index != first]
    if any(is_memory(one) and one.info.space is not MemorySpace.CONSTANT for one in makers):
        return _Divisor.LOADED
    if all(writer < index for index, writers in made_of.items() for writer in writers):
        return _Divisor.UNIFORM if operand.startswith("UR") else _Divisor.OWN
    shifted = halved([code[index] for index in sorted(inside)])
    return _Divisor.CHANGES if all(shifted.isdisjoint(one.defs) for one in makers) else _Divisor.SHIFTS


_OF_DIVISOR: Final = frozenset({"IABS", "UIABS", "I2F", "UI2F"})


def _first_step(function: Function, sequence: CodeSequence) -> int:
    """The first step that the divisor itself goes into: its absolute value or its conversion."""
    first = (
        index
        for index in sorted(sequence.indices)
        if (step := function.instructions[index]).opcode in _OF_DIVISOR
        and step.operand_texts[1].removesuffix(".reuse") == sequence.operand
    )
    return next(first, min(sequence.indices))


def _made_of(function: Function, first: int, inside: set[int]) -> dict[int, set[int]]:
    """What a pass makes a value of, each with its writers inside: those of the pass before come behind it."""
    pending, made_of = [first], dict[int, set[int]]()
    while pending:
        index = pending.pop()
        if index not in made_of:
            made_of[index] = _definitions(function, index) & inside
            pending += made_of[index]
    return made_of


def _definitions(function: Function, index: int) -> set[int]:
    return {
        definition
        for used in function.instructions[index].uses
        for definition in function.reaching.definitions(index, used)
    }


def _is_parameter(instruction: Instruction) -> bool:
    """Whether an instruction only fetches a parameter or a size of the launch."""
    return "c[" in instruction.operands and not instruction.uses
