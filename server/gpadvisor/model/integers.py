# SPDX-License-Identifier: Apache-2.0
"""What an integer instruction makes of its operands, for all who follow values through machine code.

Most are sums of products, such as moves, ``IADD3``, ``IMAD``, ``LEA`` and shifts to the left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.model.halves import half_constant
from gpadvisor.model.instruction import Instruction, Register, RegisterFile, register
from gpadvisor.model.kind import Kind

BITS: Final = 32
MASK: Final = (1 << BITS) - 1
AND: Final = 0xC0
OR: Final = 0xFC
"""Tables of LOP3."""
_REGISTER: Final = re.compile(r"(U?R)(\d+)(?:\.64)?\Z")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+\Z")
_CONSTANT: Final = re.compile(r"c\[(0x[0-9a-f]+)\]\[(?:(0x[0-9a-f]+)|U?RZ)\](?:\.64)?\Z")
_PREDICATE: Final = re.compile(r"!?U?P(?:\d|T)\Z")
_ADDRESS: Final = re.compile(r"(?<!c)(?<!cx)\[([^\[\]]*)\](?!\[)")
"""Brackets, but those of a constant or a descriptor."""
_SCALES: Final = {"X4": 4, "X8": 8, "X16": 16}
_NARROW: Final = frozenset({"U8", "S8", "U16", "S16"})


def signed(value: int) -> int:
    """The low word of a number, with its sign."""
    low = value & MASK
    return low - (1 << BITS) if low >> (BITS - 1) else low


class IntegerOperand(NamedTuple):
    """What an instruction reads: ``sign`` times the value of that name, plus ``offset``."""

    name: str
    sign: int = 1
    offset: int = 0  # -1 where all bits are inverted
    register: Register | None = None
    number: int | None = None  # with its sign
    constant: tuple[int, int] | None = None  # bank and offset

    @property
    def bits(self) -> int | None:
        """The number, as one of bits in a word."""
        return self.number if self.number is not None and 0 <= self.number < BITS else None


class Addend(NamedTuple):
    """A part of a sum: an operand times a number, times another operand or two to its power."""

    operand: IntegerOperand
    factor: int = 1
    times: IntegerOperand | None = None
    shift: IntegerOperand | None = None


class IntegerOperation(Kind):
    """What is done with the operands; of two words the low one is told."""

    SUM = "the sum of the terms"
    CHOICE = "one of two"
    MINIMUM = "the sum of all but the last, or the last if that is smaller"
    MAXIMUM = "the sum of all but the last, or the last if that is larger"
    HIGH_PRODUCT = "the high word of a product"
    HIGH_SUM = "(high: low << count) >> 32, plus another; low, other, high, count"
    RIGHT = "the first shifted to the right by the second"
    FUNNEL = "the low word of (high: low) >> count; low, count, high"
    LOGIC = "bit by bit of three by the table in the fourth"
    FIELD = "the lowest bits, as many as the second says"
    BYTES = "bytes of the first and third, as the second selects"
    ABSOLUTE = "without its sign"


class Computation(NamedTuple):
    """The result of an instruction."""

    operation: IntegerOperation
    operands: tuple[IntegerOperand, ...]  # of a sum those of its terms, in their order
    terms: tuple[Addend, ...] = ()
    signed: bool = True  # what is compared, multiplied, shifted or extended


def computation(instruction: Instruction, word: int = 0) -> Computation | None:
    """What stands in a word of the result afterwards; None where that is not followed, as of carries."""
    return _computation(instruction.opcode, instruction.modifiers, instruction.operands, word)


@lru_cache(maxsize=1 << 13)
def sources(operands: str) -> tuple[IntegerOperand, ...]:
    """What an instruction computes with, without predicates."""
    texts = [text.strip() for text in operands.split(",")[1:]]
    return tuple(operand(text) for text in texts if not _PREDICATE.match(text))


@lru_cache(maxsize=1 << 13)
def operand(text: str) -> IntegerOperand:
    """An operand by its text; what is not understood has a name alone."""
    text = text.removesuffix(".reuse")
    name = text.lstrip("-~")
    signs = text[: len(text) - len(name)]
    sign, offset = (-1, -1) if signs == "~" else (-1 if signs == "-" else 1, 0)
    match = _REGISTER.match(name)
    if match is not None:
        file = RegisterFile.GPR if match[1] == "R" else RegisterFile.UNIFORM
        return IntegerOperand(f"{match[1]}{match[2]}", sign, offset, register=register(file, int(match[2])))
    if name in {"RZ", "URZ", "SRZ"} or _NUMBER.match(name):
        value = int(name, 16) if name.startswith("0") else 0
        return IntegerOperand(name, number=signed(sign * value + offset))
    match = _CONSTANT.match(name)
    constant = None if match is None else (int(match[1], 16), int(match[2] or "0", 16))
    return IntegerOperand(name.removesuffix(".64"), sign, offset, constant=constant)


@lru_cache(maxsize=1 << 12)
def address(operands: str, *, first: bool = False) -> tuple[Addend, ...] | None:
    """What is added to an access's address, in its last brackets or its first; None without any."""
    brackets = _ADDRESS.findall(operands)
    if not brackets:
        return None
    parts = (
        part.strip().partition(".") for part in brackets[0 if first else -1].replace("+-", "+ -").split("+")
    )
    return tuple(Addend(operand(name), _SCALES.get(suffix, 1)) for name, _, suffix in parts)


@lru_cache(maxsize=1 << 13)
def _computation(opcode: str, modifiers: tuple[str, ...], operands: str, word: int) -> Computation | None:
    values = sources(operands)
    if opcode in _CONSTANTS:
        return _constant(modifiers, values, word)
    rule = _RULES.get(opcode) or _RULES.get(opcode.removeprefix("U"))
    if rule is None or not values or word or "X" in modifiers:
        return None
    return rule(modifiers, values, operands)


Modifiers = tuple[str, ...]
IntegerOperands = tuple[IntegerOperand, ...]
Rule = Callable[[Modifiers, IntegerOperands, str], Computation | None]


def _sum(*terms: Addend | None) -> Computation | None:
    """The sum of terms, without zeroes; None where one of them is not known."""
    added: list[Addend] = []
    reads: list[IntegerOperand] = []
    for term in terms:
        if term is None:
            return None
        if term.operand.number != 0 and term.factor:
            added.append(term)
            reads += [one for one in (term.operand, term.times, term.shift) if one is not None]
    return Computation(IntegerOperation.SUM, tuple(reads), tuple(added))


def _constant(modifiers: Modifiers, values: IntegerOperands, word: int) -> Computation | None:
    """A constant of the launch that is loaded, or a register that is set to zero."""
    if len(values) != 1 or not _NARROW.isdisjoint(modifiers):
        return None
    (value,) = values
    if value.number == 0:
        return _sum()
    if value.constant is None:
        return None
    bank, offset = value.constant
    return _sum(Addend(operand(f"c[{bank:#x}][{offset + 4 * word:#x}]")))


def _copy(_: Modifiers, values: IntegerOperands, __: str) -> Computation | None:
    return _sum(Addend(values[0])) if len(values) == 1 else None


def _addition(_: Modifiers, values: IntegerOperands, __: str) -> Computation | None:
    return _sum(*map(Addend, values))


def _half(_: Modifiers, __: IntegerOperands, operands: str) -> Computation | None:
    """A number that is set in the FP16 pipe."""
    word = half_constant([text.strip() for text in operands.split(",")[1:]])
    return None if word is None else _sum(Addend(operand(f"{word:#x}")))


def _product(modifiers: Modifiers, values: IntegerOperands, _: str) -> Computation | None:
    if len(values) < 3:
        return None
    left, right, more = values[:3]
    if "HI" in modifiers:
        if more.number != 0:  # the low words' carry
            return None
        return Computation(IntegerOperation.HIGH_PRODUCT, (left, right), signed="U32" not in modifiers)
    if left.number is not None:
        left, right = right, left
    product = Addend(left, times=right) if right.number is None else Addend(left, right.number)
    return _sum(product, Addend(more))


def _shifted(value: IntegerOperand, count: IntegerOperand) -> Addend | None:
    if count.number is None:
        return Addend(value, shift=count)
    return None if count.bits is None else Addend(value, 1 << count.bits)


def _scaled_sum(modifiers: Modifiers, values: IntegerOperands, _: str) -> Computation | None:
    if "HI" in modifiers:
        return Computation(IntegerOperation.HIGH_SUM, values) if len(values) == 4 else None
    if len(values) < 3:
        return _sum(*map(Addend, values)) if len(values) == 2 else None
    return _sum(_shifted(values[0], values[-1]), Addend(values[1]))


def _shift(modifiers: Modifiers, values: IntegerOperands, operands: str) -> Computation | None:
    if "L" in modifiers:
        return _left(modifiers, values, operands)
    if "R" not in modifiers or len(values) < 3:
        return None
    low, count, high = values[:3]
    if "HI" in modifiers:
        return Computation(
            IntegerOperation.RIGHT, (high, count), signed="U32" not in modifiers and "U64" not in modifiers
        )
    if high.number == 0:
        return Computation(IntegerOperation.RIGHT, (low, count), signed=False)
    return Computation(IntegerOperation.FUNNEL, (low, count, high))


def _left(modifiers: Modifiers, values: IntegerOperands, _: str) -> Computation | None:
    return _sum(_shifted(values[0], values[1])) if len(values) > 1 and "HI" not in modifiers else None


def _right(modifiers: Modifiers, values: IntegerOperands, _: str) -> Computation | None:
    return (
        Computation(IntegerOperation.RIGHT, values, signed="U32" not in modifiers)
        if len(values) == 2
        else None
    )


def _logic(_: Modifiers, values: IntegerOperands, __: str) -> Computation | None:
    known = len(values) >= 4 and values[-1].number is not None
    return Computation(IntegerOperation.LOGIC, values[-4:]) if known else None


def _of(operation: IntegerOperation, count: int) -> Rule:
    """An operation with so many operands."""

    def rule(modifiers: Modifiers, values: IntegerOperands, _: str) -> Computation | None:
        if len(values) != count:
            return None
        return Computation(operation, values, signed="U32" not in modifiers)

    return rule


def _extreme(count: int) -> Rule:
    """The smaller or larger of two, the first perhaps a sum; which one, a predicate at the end tells."""

    def rule(modifiers: Modifiers, values: IntegerOperands, operands: str) -> Computation | None:
        kind = {"PT": IntegerOperation.MINIMUM, "!PT": IntegerOperation.MAXIMUM}.get(
            operands.rpartition(",")[2].strip()
        )
        packed = any("16" in modifier for modifier in modifiers)
        if kind is None or packed or len(values) != count:
            return None
        return Computation(kind, values, signed="U32" not in modifiers)

    return rule


_CONSTANTS: Final = frozenset({"LDC", "ULDC", "LDCU", "CS2R"})
_RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("MOV", "MOV32I", "R2UR"), _copy),
    **dict.fromkeys(("IADD3", "IADD", "VIADD", "IADD32I"), _addition),
    **dict.fromkeys(("IMNMX", "VIMNMX"), _extreme(2)),
    "HFMA2": _half,
    "IABS": _of(IntegerOperation.ABSOLUTE, 1),
    "IMAD": _product,
    "LEA": _scaled_sum,
    "LOP3": _logic,
    "PRMT": _of(IntegerOperation.BYTES, 3),
    "SEL": _of(IntegerOperation.CHOICE, 2),
    "SGXT": _of(IntegerOperation.FIELD, 2),
    "SHF": _shift,
    "SHL": _left,
    "SHR": _right,
    "VIADDMNMX": _extreme(3),
}
