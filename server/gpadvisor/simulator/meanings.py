# SPDX-License-Identifier: Apache-2.0
"""What an instruction computes, and of which operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from gpadvisor.model.instruction import (
    Instruction,
)
from gpadvisor.sass.tokens import Operand, OperandKind, parse_operand

PLAIN, NEGATED, INVERTED, MAGNITUDE = 0, 1, 2, 3
"""How a source is read."""

# Kinds of source.
ABSENT, REGISTER, IMMEDIATE, NOT_KNOWN = 0, 1, 2, 3


class Op(IntEnum):
    """Operations of the evaluator."""

    NOTHING = 0
    UNKNOWN = 1  # the results are not known
    ADD = 2  # d = a + b + c + carries; p0 = carry out
    MUL_ADD = 3  # d = low word of a * b + c
    MUL_ADD_WIDE = 4  # d pair = a * b + c pair
    MUL_ADD_HIGH = 5  # d = high word of a * b + c pair
    LOGIC = 6  # d = table of a, b, c; p0 = d is not zero
    SHIFT = 7  # d = a part of {c, a} shifted by b
    SHIFT_ADD = 8  # LEA: d = (a << c) + b
    SHIFT_ADD_HIGH = 9  # LEA.HI: d = ({c, a} << m) >> 32, plus b
    COMPARE = 10  # p0 = (a ? b) with q0
    SELECT = 11  # d = q0 ? a : b
    MINIMUM = 12  # d = q0 ? min : max
    PREDICATE_LOGIC = 13
    SPECIAL = 14  # d = a special register
    ABSOLUTE = 15
    PERMUTE = 16
    BROADCAST = 17  # d = a of the first active lane
    VOTE = 18
    ADD_WIDE = 19  # d pair = a pair + b pair; sources are both low words, then both high ones
    ADD_MINIMUM = 20  # d = q0 ? min : max of a + b and c
    SELECT_WIDE = 21  # d pair = q0 ? a pair : b pair; sources as of ADD_WIDE
    # Integer division by what is known at run time only goes through these, corrected by integer code.
    FLOAT_UP = 22  # d = a pair as a float, rounded up
    RECIPROCAL = 23  # d = 1 / a, of floats
    TRUNCATE = 24  # d pair = the integer part of a, no less than 0; mode = its bits


class Special(IntEnum):
    """Special registers whose value follows from the launch."""

    ZERO = 0
    TID_X = 1
    TID_Y = 2
    TID_Z = 3
    CTAID_X = 4
    CTAID_Y = 5
    CTAID_Z = 6
    LANE = 7
    NTID_X = 8
    NTID_Y = 9
    NTID_Z = 10
    NCTAID_X = 11
    NCTAID_Y = 12
    NCTAID_Z = 13
    WARP = 14


SPECIAL_NAMES: Final = {
    "SR_TID.X": Special.TID_X,
    "SR_TID.Y": Special.TID_Y,
    "SR_TID.Z": Special.TID_Z,
    "SR_CTAID.X": Special.CTAID_X,
    "SR_CTAID.Y": Special.CTAID_Y,
    "SR_CTAID.Z": Special.CTAID_Z,
    "SR_LANEID": Special.LANE,
    "SR_NTID.X": Special.NTID_X,
    "SR_NCTAID.X": Special.NCTAID_X,
    "SR_NCTAID.Y": Special.NCTAID_Y,
    "SR_NCTAID.Z": Special.NCTAID_Z,
    "SR_CgaCtaId": Special.ZERO,
    "SR_VIRTID": Special.WARP,
    "SRZ": Special.ZERO,
}
TRUE: Final = -1
"""Predicate operand that is PT."""


@dataclass(frozen=True, slots=True)
class ValueSource:
    """One source word."""

    kind: int
    value: int = 0  # Register, or the word itself
    how: int = PLAIN


ZERO: Final = ValueSource(IMMEDIATE, 0)
_UNKNOWN: Final = ValueSource(NOT_KNOWN)


@dataclass(slots=True)
class Meaning:
    """One instruction for the evaluator; predicates are ``Register`` values or TRUE."""

    op: Op
    sources: list[ValueSource] = field(default_factory=list)
    predicates: list[tuple[int, bool]] = field(default_factory=list)  # read: which, negated
    results: list[int] = field(default_factory=list)  # low word, high word; -1 = none
    flags: list[int] = field(default_factory=list)  # predicates written; -1 = none
    mode: int = 0
    table: int = 0
    signed: bool = False


Constants = Callable[[int], int | None]
"""The known word at an offset of constant bank 0."""


class OperandReader:
    """The operands of one instruction."""

    def __init__(self, instruction: Instruction, constants: Constants, frame: int | None) -> None:
        self.instruction = instruction
        self.frame = frame
        self.modifiers = instruction.modifiers
        self._constants = constants
        texts = operands_of(instruction.operands)
        self.operands: list[Operand] = [parse_operand(text) for text in texts]

    @property
    def values(self) -> list[Operand]:
        """Operands that are no predicates."""
        return [operand for operand in self.operands if not operand.is_predicate]

    def leading_flags(self, first: int) -> tuple[list[int], int]:
        """Predicates written from operand ``first`` on, and the operand behind them."""
        index = first
        while index < len(self.operands) and self.operands[index].is_predicate:
            index += 1
        return [predicate_of(operand)[0] for operand in self.operands[first:index]], index

    def trailing(self) -> list[tuple[int, bool]]:
        """Predicates read behind the last value."""
        predicates: list[tuple[int, bool]] = []
        for operand in reversed(self.operands):
            if not operand.is_predicate:
                break
            predicates.append(predicate_of(operand))
        return predicates[::-1]

    def source(self, operand: Operand, word: int = 0) -> ValueSource:
        """One word of an operand."""
        text = operand.text
        how = PLAIN
        if text.startswith("-"):
            how = NEGATED
        elif text.startswith("~"):
            how = INVERTED
        elif text.startswith("|"):
            how = MAGNITUDE
        if operand.is_register:
            if any(part in text for part in (".H", ".B", ".U16", ".S16")):
                return _UNKNOWN
            if operand.first is None:
                return ValueSource(IMMEDIATE, 0, how)
            return ValueSource(REGISTER, int(operand.first) + word, how)
        if operand.kind is OperandKind.IMMEDIATE:
            if operand.value is None:
                return _UNKNOWN
            value = operand.value >> 32 * word
            return ValueSource(IMMEDIATE, value & 0xFFFF_FFFF)
        if operand.kind is OperandKind.CONSTANT:
            constant = self.constant(operand, word)
            return _UNKNOWN if constant is None else ValueSource(IMMEDIATE, constant, how)
        return _UNKNOWN

    def constant(self, operand: Operand, word: int = 0) -> int | None:
        """The word of ``c[0x0][0x160]`` where it is known."""
        text = operand.text.lstrip("-~|+!").rstrip("|")
        if not text.startswith("c[0x0][") or any(part.first is not None for part in operand.addresses):
            return None
        offset = 0
        for part in text[len("c[0x0][") :].split("]")[0].split("+"):
            if part not in {"RZ", "URZ"}:
                try:
                    offset += int(part, 16)
                except ValueError:
                    return None
        return self._constants(offset + 4 * word)

    def result(self, operand: Operand, words: int = 1) -> list[int]:
        """The registers written from an operand on."""
        if not operand.is_register or operand.first is None:
            return [-1] * words
        return [int(operand.first) + word for word in range(words)]


def operands_of(text: str) -> list[str]:
    """The operands of an instruction, by its text."""
    return [part.strip() for part in text.split(", ")] if text else []


def predicate_of(operand: Operand) -> tuple[int, bool]:
    """The predicate and whether it is negated; TRUE for PT."""
    negated = operand.text.startswith("!")
    return TRUE if operand.first is None else int(operand.first), negated


def real(flags: list[int]) -> list[int]:
    """Predicates written; PT takes nothing."""
    return [flag if flag != TRUE else -1 for flag in flags]
