# SPDX-License-Identifier: Apache-2.0
"""Routines of the library: which are math, of doubles, for rare arguments; and what is done with a result."""

from __future__ import annotations

import re
import struct
from collections import Counter
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.patterns import (
    DIVISION_BY_CONSTANT,
    DOUBLE_DIVISION,
    FLOAT_BY_CONSTANT,
    FLOAT_DIVISION,
    POWF,
    RECIPROCAL,
    ROOT,
    CodeSequence,
    math_sequences,
)
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.instruction import Instruction, OpcodeClass, register_name
from gpadvisor.model.kind import Kind
from gpadvisor.model.program import Function, FunctionKind


def is_float_math(function: Function) -> bool:
    """Whether a routine of the compiler's is floating-point math.

    Differs from GPA: it takes every name with ``cuda_sm`` for math. Shuffles and votes of a mask known at run
    time have such names, too, and so have integer divisions, which are Strength Reduction's.
    """
    floats = any(mark in function.name for mark in ("f32", "f64", POW))
    return function.kind is FunctionKind.MATH_HELPER and floats


POW: Final = "__internal_accurate_pow"
"""What pow() of doubles calls for every argument."""


_RARE: Final = ("slowpath", "mediumpath", "_full")


def is_of_doubles(helper: Function) -> bool:
    """Whether a routine computes in double precision."""
    return "f64" in helper.name or POW in helper.name


def is_for_rare(helper: Function) -> bool:
    """Whether a routine is behind a sequence expanded in place, for arguments that are out of its range."""
    return any(mark in helper.name for mark in _RARE)


def routine_name(helper: Function) -> str:
    """A routine's own name, without the kernel's that it was compiled for."""
    return "pow" if POW in helper.name else helper.demangled.rpartition("$")[2]


def is_behind_sequence(function: Function, call: int) -> bool:
    """Whether a call is the way of rare arguments beside a sequence that is told itself."""
    return any(call in sequence.indices for sequence in math_sequences(function))


def has_no_whole_exponent(function: Function, call: int, routine: Function) -> bool:
    """Whether the exponent that pow() gets is no whole number that the source could write out as a product.

    It is a broken one, an argument or what a routine for one call holds, or computed in whole numbers.

    The high words of doubles tell: low ones may be anywhere, and as a double's high word are no usual number.
    """
    found = [_moved(one) for one in function.instructions[max(call - _ARGUMENTS, 0) : call]]
    for index, product in enumerate(routine.instructions):
        if product.opcode == "DMUL":  # of the logarithm and the exponent
            found += [
                _moved(routine.instructions[at])
                for used in product.uses
                for at in routine.reaching.definitions(index, used)
                if routine.instructions[at].opcode == "UMOV"
            ]
            found.append(_literal(product))
    numbers = [
        value for value in found if value is not None and _LEAST_POWER <= abs(value) <= 1 / _LEAST_POWER
    ]
    if numbers:
        return any(not value.is_integer() for value in numbers)
    return any(one.opcode == "I2F" for one in function.instructions[max(call - _CONVERSION, 0) : call])


def _exponent(function: Function, power: CodeSequence) -> float | None:
    """The exponent of ``powf()`` where the code states it: the logarithm times it is rounded."""
    rounded = (index for index in power.indices if function.instructions[index].opcode == "FRND")
    products = (
        function.instructions[made]
        for index in rounded
        for used in function.instructions[index].uses
        for made in function.reaching.definitions(index, used)
    )
    return next((_literal(product) for product in products if product.opcode == "FMUL"), None)


def is_whole_power(function: Function, sequence: CodeSequence) -> bool:
    """Whether ``powf()`` has a small whole exponent, so that a product is as exact and takes any base."""
    exponent = _exponent(function, sequence) if sequence.kind == POWF else None
    return exponent is not None and exponent.is_integer() and abs(exponent) <= _MOST_FACTORS


def takes_negative_base(function: Function, sequence: CodeSequence) -> bool:
    """Whether math is ``powf()`` with an exponent that is whole, or may be."""
    if sequence.kind != POWF:
        return False
    exponent = _exponent(function, sequence)
    return exponent is None or exponent.is_integer()


_MOST_FACTORS: Final = 16
"""Of a power that someone writes as a product, which takes four multiplications then."""


def _moved(instruction: Instruction) -> float | None:
    """The double whose high word, or whole, a move sets, as far as the high word tells; None of all else."""
    match = _WORD.fullmatch(instruction.operands)
    is_move = instruction.opcode in {"MOV", "UMOV"} or "MOV" in instruction.modifiers
    if match is None or not is_move:
        return None
    word = int(match[1], 16) >> (32 if "64" in instruction.modifiers else 0)
    return float(struct.unpack(">d", struct.pack(">II", word & 0xFFFFFFFF, 0))[0])


def _literal(product: Instruction) -> float | None:
    try:
        return float(product.operand_texts[-1])
    except ValueError:
        return None


_ARGUMENTS: Final = 12
"""Instructions in which the arguments of a call are put in place."""
_CONVERSION: Final = 32
"""Instructions in front of a call in which a counted exponent becomes a double."""
_LEAST_POWER: Final = 2.0**-16
"""Of an exponent that someone writes."""
_WORD: Final = re.compile(r"U?R\d+, (?:RZ, RZ, )?(-?0x[0-9a-f]+)")
"""A register that a number is moved to."""


class Divisor(Kind):
    """What is known of what a double or a float is divided by."""

    NUMBER = "number"  # or a variable in constant memory
    SAME = "same"  # for all threads: a parameter of the kernel
    KEPT = "kept"  # over the passes of the loop around the division
    SHARED = "shared"  # by several divisions
    OWN = "own"  # of each division


@lru_cache(maxsize=1024)
def divisor_of(function: Function, division: CodeSequence) -> Divisor | None:
    """What a division divides by; None of other math."""
    if division.kind == FLOAT_BY_CONSTANT:
        return Divisor.NUMBER
    if division.kind not in {FLOAT_DIVISION, DOUBLE_DIVISION, DIVISION_BY_CONSTANT}:
        return None
    operand = division.operand or ""
    made, loop = _made_at(function, division), function.innermost_loop(_reader(function, division))
    makers = [function.instructions[index] for index in made]
    if makers and all("c[0x3]" in maker.operands and not maker.uses for maker in makers):
        return Divisor.NUMBER
    if "c[0x0]" in operand or _UNIFORM.search(operand):
        return Divisor.SAME
    if division.kind == DIVISION_BY_CONSTANT:
        return Divisor.NUMBER
    if made and loop is not None and made.isdisjoint(loop_indices(function, loop)):
        return Divisor.KEPT
    return Divisor.SHARED if made and divisions_alike(function, division) > 1 else Divisor.OWN


def is_by_counter(function: Function, division: CodeSequence) -> bool:
    """Whether a constant divisor is another one in each copy of its line: the counter of an unrolled loop."""
    if division.kind not in {FLOAT_BY_CONSTANT, DIVISION_BY_CONSTANT}:
        return False
    line = function.lines[division.start]
    divisors = {
        one.operand
        for one in math_sequences(function)
        if one.kind == division.kind and function.lines[one.start] == line
    }
    return line is not None and len(divisors) > _WRITTEN


_WRITTEN: Final = 2
"""Constants by which someone divides in one line."""


def divisions_alike(function: Function, division: CodeSequence) -> int:
    """The divisions of a function that divide by the same value, this one included."""
    return _divisions(function, division.kind)[_made_at(function, division)]


@lru_cache(maxsize=64)
def _divisions(function: Function, kind: str) -> Counter[frozenset[int]]:
    """How many divisions of a kind a function has by each value."""
    return Counter(_made_at(function, one) for one in math_sequences(function) if one.kind == kind)


def roots_divided_by(function: Function) -> tuple[tuple[CodeSequence, CodeSequence], ...]:
    """Square roots in single precision, each with a division by it, or by a product with it."""
    sequences = math_sequences(function)
    roots = [sequence for sequence in sequences if sequence.kind == ROOT]
    return tuple(
        (root, division)
        for division in sequences
        if division.kind in {FLOAT_DIVISION, RECIPROCAL}
        for root in roots
        if not root.indices.isdisjoint(_factors(function, division))
    )


def _factors(function: Function, division: CodeSequence) -> set[int]:
    """What a divisor is a product of, itself included."""
    pending, visited = list(_made_at(function, division)), set[int]()
    while pending:
        index = pending.pop()
        visited.add(index)
        if function.instructions[index].opcode == "FMUL":
            for used in function.instructions[index].uses:
                pending += function.reaching.definitions(index, used) - visited
    return visited


_UNIFORM: Final = re.compile(r"\bUR\d")


def _reader(function: Function, division: CodeSequence) -> int:
    """An instruction that reads the divisor: of a float its check, for the reciprocal may be hoisted."""
    checks = (index for index in division.indices if function.instructions[index].opcode == "FCHK")
    return next(checks, division.start)


@lru_cache(maxsize=1024)
def _made_at(function: Function, division: CodeSequence) -> frozenset[int]:
    """The instructions that a divisor in registers comes from."""
    reader = _reader(function, division)
    return frozenset(
        definition
        for used in function.instructions[reader].uses
        if reader == division.start or register_name(used) in _registers(division.operand or "")
        for definition in function.reaching.definitions(reader, used)
    )


def _registers(operand: str) -> list[str]:
    return re.findall(r"\bU?R\d+", operand)


QUOTIENTS: Final = frozenset({FLOAT_DIVISION, FLOAT_BY_CONSTANT})


_NEAR: Final = 32
"""Instructions around a division in which what it divides and what comes of it are followed."""


def is_whole_quotient(function: Function, division: CodeSequence) -> bool:
    """Whether math is a whole number's quotient that is cut to one: a less exact one may miss it by one."""
    if division.kind not in QUOTIENTS:
        return False
    code = function.instructions
    check = next(index for index in division.indices if code[index].opcode == "FCHK")
    divided = next((used for used in code[check].uses if f"R{used & 255}," in code[check].operands), None)
    maker = next(
        (
            instruction
            for instruction in reversed(code[max(check - _NEAR, 0) : check])
            if divided in instruction.defs
        ),
        None,
    )
    if maker is None or not maker.opcode.startswith("I2F"):
        return False
    cut = _made_whole(function, division)
    return cut is not None and cut.opcode == "F2I" and "TRUNC" in cut.modifiers


def is_made_whole(function: Function, division: CodeSequence) -> bool:
    """Whether a quotient is cut or rounded to a whole number at once: a less exact one may be one off."""
    return division.kind in QUOTIENTS and _made_whole(function, division) is not None


def _made_whole(function: Function, division: CodeSequence) -> Instruction | None:
    """What makes a whole number of a quotient, or of it times a number; not the reduction of a sine."""
    code = function.instructions
    last_product = max((index for index in division.indices if code[index].opcode == "FFMA"), default=None)
    if last_product is None:
        return None
    reached = set(code[last_product].defs)  # the quotient
    end = max(division.indices) + 1
    for index in range(end, min(end + _NEAR, len(code))):
        instruction = code[index]
        moves = instruction.info.opclass is OpcodeClass.MOVE or "MOV" in instruction.modifiers
        if reached.isdisjoint(instruction.uses):
            if not moves:  # a move puts the other way's result there
                reached.difference_update(instruction.defs)
        elif instruction.opcode in {"F2I", "FRND"}:
            return None if any(index in one.indices for one in math_sequences(function)) else instruction
        elif moves or instruction.opcode == "FMUL":
            reached.update(instruction.defs)
        else:
            reached.difference_update(instruction.defs)
    return None
