# SPDX-License-Identifier: Apache-2.0
"""Between which numbers a register lies for all threads of the grid, as the machine code shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from gpadvisor.evidence.loops import dominates
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register, register_name
from gpadvisor.model.integers import (
    AND,
    BITS,
    MASK,
    Addend,
    Computation,
    IntegerOperand,
    IntegerOperation,
    address,
    computation,
    sources,
)
from gpadvisor.model.program import Function

_DEEPEST: Final = 24
"""Instructions behind each other that are followed."""
_LOADED: Final = {"U8": (0, 0xFF), "S8": (-0x80, 0x7F), "U16": (0, 0xFFFF), "S16": (-0x8000, 0x7FFF)}
_BYTE_OF: Final = re.compile(r"777[0-3]|888[08]|999[19]|aaa[2a]|bbb[3b]")
"""Selectors of PRMT that take one byte of the first operand: beside zeroes of RZ, or with its sign."""


@dataclass(frozen=True, slots=True)
class NumberRange:
    """What a 32-bit register holds, as a signed number where that is known; both ends may occur."""

    low: int
    high: int
    bases: tuple[str, ...] = ()  # what the launch decides and is added: arguments, addresses of arrays

    @property
    def width(self) -> int:
        """From the lowest to the highest."""
        return self.high - self.low

    @property
    def number(self) -> int | None:
        """The one number that it is."""
        return self.low if self.low == self.high and not self.bases else None

    def plus(self, other: NumberRange) -> NumberRange:
        """The range of a sum."""
        bases = tuple(sorted((*self.bases, *other.bases)))
        return NumberRange(self.low + other.low, self.high + other.high, bases)

    def times(self, factor: int) -> NumberRange:
        """The range of a multiple."""
        low, high = sorted((self.low * factor, self.high * factor))
        names = self.bases if factor == 1 else tuple(f"{factor} * {name}" for name in self.bases)
        return NumberRange(low, high, names)

    def joined(self, other: NumberRange) -> NumberRange | None:
        """The range of a register that holds one value or the other."""
        if self.bases or other.bases:
            return self if self == other else None
        return NumberRange(min(self.low, other.low), max(self.high, other.high))


_ANY: Final = NumberRange(-(1 << (BITS - 1)), MASK)
"""Whatever is not known; signed or not."""


class ValueRanges:
    """The ranges of one function's registers."""

    def __init__(self, function: Function) -> None:
        """Look nothing up yet."""
        self._function = function
        self._reaching = function.reaching
        self._pending: set[tuple[int, Register]] = set()
        self._known: dict[tuple[int, Register, int], NumberRange] = {}  # of one question, by depth

    def address(self, index: int) -> NumberRange | None:
        """The low words of an access's addresses; None where nothing bounds them."""
        terms = address(self._function.instructions[index].operands)
        if terms is None:
            return None
        total = self._total(index, terms)
        return total if total is not None and total.width < _ANY.high // 2 else None

    def _total(self, index: int, terms: Iterable[Addend]) -> NumberRange | None:
        """The range of a sum; None where it has a product of two that vary."""
        total = NumberRange(0, 0)
        for term in terms:
            value = self._operand(index, term.operand)
            if term.times is not None:
                other = self._operand(index, term.times)
                if value.number is not None:
                    value, other = other, value
                if other.number is None:
                    return None
                value = value.times(other.number)
            if term.shift is not None:
                return None
            total = total.plus(value.times(term.factor))
        return total

    def _operand(self, index: int, operand: IntegerOperand) -> NumberRange:
        if operand.number is not None:
            return NumberRange(operand.number, operand.number)
        if operand.constant is not None:
            value = NumberRange(0, 0, (operand.name,))
        elif operand.register is not None:
            value = self._register(index, operand.register)
        else:
            return _ANY
        return value.times(operand.sign).plus(NumberRange(operand.offset, operand.offset))

    def _register(self, index: int, target: Register) -> NumberRange:
        """The range of a register where an instruction reads it, found once for each depth."""
        depth = len(self._pending)
        if depth == 0:
            self._known.clear()
        key = index, target, depth
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._followed(index, target)
        return known

    def _followed(self, index: int, target: Register) -> NumberRange:
        key = index, target
        definitions = self._reaching.definitions(index, target)
        if key in self._pending or len(self._pending) > _DEEPEST or not definitions:
            return _ANY
        self._pending.add(key)
        result: NumberRange | None = None
        for definition in definitions:
            value = self._written(definition, target)
            result = value if result is None else result.joined(value)
            if result is None:
                break
        self._pending.discard(key)
        return self._compared(index, target, result or _ANY)

    def _compared(self, index: int, target: Register, known: NumberRange) -> NumberRange:
        """The range that comparisons on the way leave."""
        definitions = self._reaching.definitions(index, target)
        for compare, holds in conditions(self._function, index):
            limits = _limits(self._function.instructions[compare], target, holds=holds)
            if limits is not None and self._reaching.definitions(compare, target) == definitions:
                low, high = max(known.low, limits[0]), min(known.high, limits[1])
                known = NumberRange(low, high) if low <= high and not known.bases else known
        return known

    def _written(self, index: int, target: Register) -> NumberRange:
        instruction = self._function.instructions[index]
        if instruction.guard is not None:
            return _ANY
        for modifier, ends in _LOADED.items() if instruction.info.opclass is OpcodeClass.LOAD else ():
            if modifier in instruction.modifiers:
                return NumberRange(*ends)
        computed = computation(instruction, target - min(instruction.defs))
        if computed is None:
            return _ANY
        if computed.operation is IntegerOperation.SUM:
            return self._total(index, computed.terms) or _ANY
        compute = _COMPUTE.get(computed.operation)
        result = None if compute is None else compute(computed, partial(self._operand, index))
        if result is not None and "RELU" in instruction.modifiers:
            return NumberRange(max(0, result.low), max(0, result.high))
        return result or _ANY


def conditions(function: Function, index: int) -> list[tuple[int, bool]]:
    """Comparisons that decide whether an instruction is reached, and whether they hold where it is."""
    return [
        (compare, holds)
        for guarded, holds in deciding(function, index)
        if (compare := comparison(function, guarded, holds=holds)) is not None
    ]


def deciding(function: Function, index: int) -> list[tuple[int, bool]]:
    """Guarded instructions that decide whether another is reached: itself, and branches in front of it.

    And whether the guard's register is true where it is reached.
    """
    guard = function.instructions[index].guard
    guards = [] if guard is None else [(index, not guard.negated)]
    block = function.block_of[index]
    while (above := function.idom[block]) is not None:
        last = function.blocks[above].end - 1
        guard = function.instructions[last].guard
        ways = {int(successor) for successor, _ in function.blocks[above].successors}
        other_predecessors = {int(predecessor) for predecessor in function.blocks[block].predecessors} - {
            above
        }
        if (
            guard is not None
            and block in ways
            and all(dominates(function, block, predecessor) for predecessor in other_predecessors)
        ):
            passed = block == above + 1  # the branch, or the exit, was not taken
            guards.append((last, guard.negated is passed))
        block = above
    return guards


def comparison(function: Function, guarded: int, *, holds: bool) -> int | None:
    """The comparison of whole numbers behind a guard that is true, or false; None where it is no such."""
    guard = function.instructions[guarded].guard
    definitions = set() if guard is None else function.reaching.definitions(guarded, guard.register)
    if guard is None or len(definitions) != 1:
        return None
    (index,) = definitions
    compare = function.instructions[index]
    texts = compare.operand_texts
    if compare.opcode != "ISETP" or "EX" in compare.modifiers or compare.guard is not None:
        return None
    if texts[0] != register_name(guard.register):
        return None  # its second result
    alone = texts[-1] == "PT" and "AND" in compare.modifiers
    return index if alone or ("AND" if holds else "OR") in compare.modifiers else None


_HOLDS: Final = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT", "EQ": "NE"}
_FAILS: Final = {**_HOLDS, **{value: key for key, value in _HOLDS.items()}}


def _limits(compare: Instruction, target: Register, *, holds: bool) -> tuple[int, int] | None:
    """Between which numbers a comparison with a constant leaves a register."""
    operands = sources(compare.operands)
    if len(operands) < 2 or operands[0].register != target or operands[0].sign != 1:
        return None
    value = operands[1].number
    if value is None:
        return None
    kind = next((modifier for modifier in _FAILS if modifier in compare.modifiers), None)
    kind = kind if holds or kind is None else _FAILS[kind]
    unsigned = "U32" in compare.modifiers
    if unsigned:
        value &= MASK
    least = 0 if unsigned else _ANY.low
    return (
        {
            "LT": (least, value - 1),
            "LE": (least, value),
            "EQ": (value, value),
            "GT": (value + 1, _ANY.high),
            "GE": (value, _ANY.high),
        }.get(kind or "")
        if not (unsigned and kind in {"GT", "GE"})
        else None
    )


_Of = Callable[[IntegerOperand], NumberRange]


def _choice(computed: Computation, of: _Of) -> NumberRange | None:
    return of(computed.operands[0]).joined(of(computed.operands[1]))


def _high_sum(computed: Computation, of: _Of) -> NumberRange | None:
    """With the bits that leave the first word."""
    _, more, high, count = computed.operands
    if high.number != 0 or count.bits is None:
        return None
    return of(more).plus(NumberRange(0, (1 << count.bits) - 1))


def _right(computed: Computation, of: _Of) -> NumberRange | None:
    value, count = of(computed.operands[0]), computed.operands[1].bits
    if value.bases or count is None:
        return None
    low, high = _as_compared(value, is_signed=computed.signed)
    return NumberRange(low >> count, high >> count)


def _logic(computed: Computation, of: _Of) -> NumberRange | None:
    if computed.operands[3].number != AND:
        return None
    mask = next((value.number for value in map(of, computed.operands[:2]) if value.number is not None), -1)
    return NumberRange(0, mask) if mask >= 0 else None


def _field(computed: Computation, _: _Of) -> NumberRange | None:
    count = computed.operands[1].bits
    if count is None:
        return None
    size = 1 << count
    return NumberRange(-size // 2, size // 2 - 1) if computed.signed else NumberRange(0, size - 1)


def _byte(computed: Computation, _: _Of) -> NumberRange | None:
    """One byte of a word."""
    digits = f"{computed.operands[1].number or 0:x}"
    if not _BYTE_OF.fullmatch(digits) or computed.operands[2].number != 0:
        return None
    return NumberRange(0, 0xFF) if digits.startswith("777") else NumberRange(-0x80, 0x7F)


def _extreme(computed: Computation, of: _Of) -> NumberRange | None:
    *added, limit = map(of, computed.operands)
    value = added[0]
    for more in added[1:]:
        value = value.plus(more)
    if value.bases or limit.bases:
        return None
    choose = max if computed.operation is IntegerOperation.MAXIMUM else min
    (low, high), (other_low, other_high) = (
        _as_compared(one, is_signed=computed.signed) for one in (value, limit)
    )
    return NumberRange(choose(low, other_low), choose(high, other_high))


def _as_compared(value: NumberRange, *, is_signed: bool) -> tuple[int, int]:
    """The ends as an instruction takes them; all numbers where they go beyond its first or last one."""
    first, last = (_ANY.low, -_ANY.low - 1) if is_signed else (0, _ANY.high)
    inside = first <= value.low and value.high <= last
    return (value.low, value.high) if inside else (first, last)


_COMPUTE: Final[dict[IntegerOperation, Callable[[Computation, _Of], NumberRange | None]]] = {
    IntegerOperation.CHOICE: _choice,
    IntegerOperation.HIGH_SUM: _high_sum,
    IntegerOperation.RIGHT: _right,
    IntegerOperation.LOGIC: _logic,
    IntegerOperation.FIELD: _field,
    IntegerOperation.BYTES: _byte,
    IntegerOperation.MINIMUM: _extreme,
    IntegerOperation.MAXIMUM: _extreme,
}
