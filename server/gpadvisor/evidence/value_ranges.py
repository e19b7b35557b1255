# SPDX-License-Identifier: Apache-2.0
"""Between which numbers a register lies for all threads of the grid, as the machine code shows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.evidence.loops import dominates
from gpadvisor.model.halves import half_constant
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
    register_name,
)
from gpadvisor.model.program import Function

_BITS: Final = 32
_DEEPEST: Final = 24
"""Instructions behind each other that are followed."""
_REGISTER: Final = re.compile(r"(-?)(U?R)(\d+)(?:\.64)?(?:\.reuse)?\Z")
_NUMBER: Final = re.compile(r"(-?)0x([0-9a-f]+)\Z")
_CONSTANT: Final = re.compile(r"-?c\[0x\w+\]\[\w+\](?:\.64)?\Z")
_PREDICATE: Final = re.compile(r"!?U?P(\d|T)\Z")
_ADDRESS: Final = re.compile(r"(?<!c)(?<!desc)\[([^\[\]]*)\](?!\[)")
_ADDRESS_SCALES: Final = {"X4": 4, "X8": 8, "X16": 16}
_LOADED: Final = {"U8": (0, 0xFF), "S8": (-0x80, 0x7F), "U16": (0, 0xFFFF), "S16": (-0x8000, 0x7FFF)}
_AND: Final = "0xc0"
_BYTE_OF: Final = re.compile(r"0x(?:777[0-3]|888[08]|999[19]|aaa[2a]|bbb[3b])\Z")
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


_ANY: Final = NumberRange(-(1 << (_BITS - 1)), (1 << _BITS) - 1)
"""Whatever is not known; signed or not."""


class ValueRanges:
    """The ranges of one function's registers."""

    def __init__(self, function: Function) -> None:
        """Look nothing up yet."""
        self._function = function
        self._reaching = function.reaching
        self._pending: set[tuple[int, Register]] = set()

    def address(self, index: int) -> NumberRange | None:
        """The low words of an access's addresses; None where nothing bounds them."""
        match = _ADDRESS.search(self._function.instructions[index].operands)
        if match is None:
            return None
        total = NumberRange(0, 0)
        for part in match[1].replace("+-", "+ -").split("+"):
            name, _, suffix = part.strip().partition(".")
            total = total.plus(self._operand(index, name).times(_ADDRESS_SCALES.get(suffix, 1)))
        return total if total.width < _ANY.high // 2 else None

    def _operand(self, index: int, text: str) -> NumberRange:
        text = text.strip().removesuffix(".reuse")
        number = _NUMBER.match(text)
        if number is not None:
            value = int(number[2], 16)
            value = value - (1 << _BITS) if value >> (_BITS - 1) else value
            return NumberRange(value, value).times(-1 if number[1] else 1)
        if text in {"RZ", "URZ", "-RZ"}:
            return NumberRange(0, 0)
        if _CONSTANT.match(text):
            return NumberRange(0, 0, (text.removesuffix(".64"),))
        match = _REGISTER.match(text)
        if match is None:
            return _ANY
        file = RegisterFile.UNIFORM if match[2] == "UR" else RegisterFile.GPR
        return self._register(index, register(file, int(match[3]))).times(-1 if match[1] else 1)

    def _register(self, index: int, target: Register) -> NumberRange:
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
        word = target - min(instruction.defs)
        if instruction.guard is not None:
            return _ANY
        if instruction.info.opclass is OpcodeClass.LOAD:
            return _loaded(instruction, word)
        if word:
            return _ANY
        sources = instruction.operand_texts[1:]
        sources = [text for text in sources if not _PREDICATE.match(text)]
        if instruction.opcode == "HFMA2":
            constant = half_constant(sources)
            return _ANY if constant is None else NumberRange(constant, constant)
        compute = _COMPUTE.get(instruction.opcode)
        if compute is None or "X" in instruction.modifiers:
            return _ANY
        result = compute(instruction, sources, lambda text: self._operand(index, text))
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
    texts = [text.removesuffix(".reuse") for text in compare.operand_texts]
    name, number = texts[2:4]
    match, value = _REGISTER.match(name), 0 if number == "RZ" else None
    parsed = _NUMBER.match(number)
    if parsed is not None:
        value = int(parsed[2], 16) * (-1 if parsed[1] else 1)
    if match is None or match[1] or value is None or register(RegisterFile.GPR, int(match[3])) != target:
        return None
    kind = next((modifier for modifier in _FAILS if modifier in compare.modifiers), None)
    kind = kind if holds or kind is None else _FAILS[kind]
    unsigned = "U32" in compare.modifiers
    if unsigned and value < 0:
        return None
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


def _loaded(instruction: Instruction, word: int) -> NumberRange:
    if instruction.info.space is MemorySpace.CONSTANT:
        text = instruction.operands.rpartition(",")[2].strip()
        return NumberRange(0, 0, (f"{text}+{word}" if word else text,)) if _CONSTANT.match(text) else _ANY
    for modifier, ends in _LOADED.items():
        if modifier in instruction.modifiers:
            return NumberRange(*ends)
    return _ANY


_Of = Callable[[str], NumberRange]


def _copy(_: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    return of(sources[0])


def _choice(_: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    return of(sources[0]).joined(of(sources[1]))


def _sum(_: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    result = NumberRange(0, 0)
    for text in sources:
        result = result.plus(of(text))
    return result


def _product(instruction: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    if "HI" in instruction.modifiers or len(sources) < 3:
        return None
    left, right, more = (of(text) for text in sources[:3])
    for value, factor in ((left, right), (right, left)):
        if factor.width == 0 and not factor.bases:
            return value.times(factor.low).plus(more)
    return None


def _scaled_sum(instruction: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    by = _NUMBER.match(sources[-1])
    if by is None:
        return None
    if "HI" not in instruction.modifiers:
        return of(sources[0]).times(1 << int(by[2], 16)).plus(of(sources[1]))
    alone = len(sources) == 4 and sources[2] == "RZ"  # the bits that leave the first word
    return of(sources[1]).plus(NumberRange(0, (1 << int(by[2], 16)) - 1)) if alone else None


def _shift(instruction: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    right = "R" in instruction.modifiers or instruction.opcode == "SHR"
    high = "HI" in instruction.modifiers
    if high and sources[0] not in {"RZ", "URZ"}:
        return None
    by = _NUMBER.match(sources[1])
    if by is None:
        return None
    count = int(by[2], 16)
    if not right:
        return None if high else of(sources[0]).times(1 << count)
    value = of(sources[2] if high else sources[0])
    if value.bases or not 0 <= count < _BITS:
        return None
    low, high_end = _as_compared(value, unsigned="U32" in instruction.modifiers)
    return NumberRange(low >> count, high_end >> count)


def _logic(_: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    if len(sources) < 4 or sources[3] != _AND:
        return None
    masks = [value.low for value in map(of, sources[:2]) if not value.bases and value.width == 0]
    return NumberRange(0, masks[0]) if masks and masks[0] >= 0 else None


def _field(instruction: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    """A number of a few bits, with a sign or without (SGXT)."""
    del of
    bits = _NUMBER.match(sources[1])
    if bits is None:
        return None
    size = 1 << int(bits[2], 16)
    return (
        NumberRange(0, size - 1) if "U32" in instruction.modifiers else NumberRange(-size // 2, size // 2 - 1)
    )


def _byte(_: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    """One byte of a word (PRMT)."""
    del of
    if not _BYTE_OF.match(sources[1]) or sources[2] != "RZ":
        return None
    return NumberRange(0, 0xFF) if sources[1].startswith("0x777") else NumberRange(-0x80, 0x7F)


def _extreme(instruction: Instruction, sources: Sequence[str], of: _Of) -> NumberRange | None:
    """The smaller or larger of two, the first perhaps a sum; which one, a predicate at the end tells."""
    *terms, limit = (of(text) for text in sources)
    value = terms[0]
    for term in terms[1:]:
        value = value.plus(term)
    if value.bases or limit.bases or len(sources) > 2 + ("ADD" in instruction.opcode):
        return None
    choose = max if instruction.operands.rstrip().endswith("!PT") else min
    (low, high), (other_low, other_high) = (
        _as_compared(operand, unsigned="U32" in instruction.modifiers) for operand in (value, limit)
    )
    result = NumberRange(choose(low, other_low), choose(high, other_high))
    return NumberRange(max(0, result.low), max(0, result.high)) if "RELU" in instruction.modifiers else result


def _as_compared(value: NumberRange, *, unsigned: bool) -> tuple[int, int]:
    """The ends as an instruction takes them; all numbers where they go beyond its first or last one."""
    first, last = (0, _ANY.high) if unsigned else (_ANY.low, -_ANY.low - 1)
    inside = first <= value.low and value.high <= last
    return (value.low, value.high) if inside else (first, last)


_COMPUTE: Final[dict[str, Callable[[Instruction, Sequence[str], _Of], NumberRange | None]]] = {
    **dict.fromkeys(("MOV", "UMOV", "R2UR"), _copy),
    **dict.fromkeys(("SEL", "USEL"), _choice),
    **dict.fromkeys(("IADD3", "IADD", "UIADD3", "VIADD", "IADD64"), _sum),
    **dict.fromkeys(("IMAD", "UIMAD"), _product),
    **dict.fromkeys(("LEA", "ULEA"), _scaled_sum),
    **dict.fromkeys(("SHF", "USHF", "SHL", "SHR"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    "SGXT": _field,
    "PRMT": _byte,
    **dict.fromkeys(("IMNMX", "VIMNMX", "VIADDMNMX"), _extreme),
}
