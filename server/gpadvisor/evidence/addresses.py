# SPDX-License-Identifier: Apache-2.0
"""Addresses as sums over what a basic block starts with, and accesses of a thread that are neighbours."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.loops import dominates
from gpadvisor.model.instruction import Guard, Instruction, OpcodeClass
from gpadvisor.model.machine import WIDEST_BYTES
from gpadvisor.model.program import Block, Function

_BITS: Final = 32
_MASK: Final = (1 << _BITS) - 1
_FOLLOWED: Final = 16
"""Registers of other blocks that an address is followed through."""
_MOST_LETTERS: Final = 1000
"""Of the names in a sum: that of a product is longer than both of its parts, and products have products."""
_SIGN: Final = 1 << 31
_REGISTER: Final = re.compile(r"U?R\d+\Z")
_PART: Final = re.compile(r"U?R\d+(?:@\d+)?")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+\Z")
_IN_BRACKETS: Final = re.compile(r"\[([^\[\]]*)\]\s*\Z")
_OFFSET: Final = re.compile(r"\[(R\d+)(?:\.64)?(?:\+(-?0x[0-9a-fA-F]+))?\]")
_SCALES: Final = {"X4": 4, "X8": 8, "X16": 16}
_COPIES: Final = frozenset({"MOV", "UMOV"})
_CONSTANT_LOADS: Final = frozenset({"LDC", "ULDC", "LDCU"})
_FIXED_CONSTANT: Final = re.compile(r"c\[0x[0-9a-f]+\]\[0x[0-9a-f]+\]$")
_SUMS: Final = frozenset({"IADD3", "IADD", "UIADD3", "VIADD"})
_PRODUCTS: Final = frozenset({"IMAD", "UIMAD"})
_ACCESSES: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE})
_SHIFTS: Final = frozenset({"SHF", "USHF", "SHL"})


class Sum(NamedTuple):
    """Coefficients of unknown values, and a constant, modulo 2^32: the low half of an address."""

    terms: tuple[tuple[str, int], ...]  # sorted, no zero
    constant: int  # signed

    def plus(self, other: Sum) -> Sum:
        """The sum of both."""
        if not other.terms:
            return Sum(self.terms, _signed(self.constant + other.constant))
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + factor
        return _sum(terms, self.constant + other.constant)

    def times(self, factor: int) -> Sum:
        """A multiple."""
        return _sum({name: value * factor for name, value in self.terms}, self.constant * factor)


def _sum(terms: Mapping[str, int], constant: int) -> Sum:
    signed_terms = {name: _signed(factor) for name, factor in terms.items()}
    return Sum(
        tuple(sorted((name, factor) for name, factor in signed_terms.items() if factor)), _signed(constant)
    )


def _signed(value: int) -> int:
    low = value & _MASK
    return low - (_MASK + 1) if low & _SIGN else low


class _Values:
    """What registers hold, instruction by instruction, in terms of what they held at the block's start."""

    def __init__(self) -> None:
        self._known: dict[str, Sum] = {}

    def of(self, text: str) -> Sum:
        """The value of an operand."""
        name, sign, constant = _operand(text)
        if constant is not None:
            return Sum((), constant)
        value = self._known.get(name)
        if value is None:
            return Sum(((name, sign),), 0)
        return value if sign == 1 else value.times(sign)

    def address(self, operands: str) -> Sum | None:
        """The address in the last brackets of the operands."""
        for operand in reversed(operands.split(",")):
            match = _IN_BRACKETS.search(operand)
            if match is not None:
                total = Sum((), 0)
                for part in match[1].replace("+-", "+ -").split("+"):
                    name, _, suffix = part.strip().partition(".")
                    total = total.plus(self.of(name).times(_SCALES.get(suffix, 1)))
                return total
        return None

    def execute(self, index: int, instruction: Instruction) -> None:
        """Write down what an instruction computes."""
        targets = _operands(instruction.operands)
        value = None if instruction.guard is not None else self._computed(instruction, targets)
        for number in instruction.defs:
            name = _name(number)
            if name is not None:
                self._known[name] = Sum(((f"{name}@{index}", 1),), 0)
        if (
            value is not None
            and _REGISTER.match(targets[0])
            and sum(len(name) for name, _ in value.terms) <= _MOST_LETTERS
        ):
            self._known[targets[0]] = value

    def _computed(self, instruction: Instruction, operands: Sequence[str]) -> Sum | None:
        sources = [
            text for text in operands[1:] if not text.removeprefix("!").startswith(("P", "UP"))
        ]  # carries
        opcode, modifiers = instruction.opcode, instruction.modifiers
        if "X" in modifiers or "HI" in modifiers or not sources:
            return None  # the high half
        if opcode in _COPIES or (opcode in _CONSTANT_LOADS and _FIXED_CONSTANT.match(sources[0])):
            return self.of(sources[0])
        if opcode in _SUMS:
            return self._total(sources)
        if opcode in _PRODUCTS and len(sources) == 3:
            return self._product(sources[0], sources[1]).plus(self.of(sources[2]))
        if opcode in {"LEA", "ULEA"} and len(sources) >= 3:
            return self._shifted(sources[0], sources[-1]).plus(self.of(sources[1]))
        if opcode in _SHIFTS and (opcode == "SHL" or "L" in modifiers):
            return self._shifted(sources[0], sources[1])
        return None

    def _total(self, sources: list[str]) -> Sum:
        total = self.of(sources[0])
        for source in sources[1:]:
            total = total.plus(self.of(source))
        return total

    def _product(self, first: str, second: str) -> Sum:
        left, right = self.of(first), self.of(second)
        if not right.terms:
            return left.times(right.constant)
        if not left.terms:
            return right.times(left.constant)
        return _sum({f"({left})*({right})": 1}, 0)

    def _shifted(self, source: str, by: str) -> Sum:
        value, count = self.of(source), self.of(by)
        if not count.terms and 0 <= count.constant < _BITS:
            return value.times(1 << count.constant)
        return _sum({f"({value})<<({count})": 1}, 0)


@lru_cache(maxsize=1 << 12)
def _operands(text: str) -> tuple[str, ...]:
    """The operands of an instruction."""
    return tuple(part.strip() for part in text.split(","))


@lru_cache(maxsize=1 << 12)
def _operand(text: str) -> tuple[str, int, int | None]:
    """An operand's name, its sign, and its value where it is a constant."""
    name = text.strip().removesuffix(".reuse")
    sign = -1 if name.startswith("-") else 1
    name = name.lstrip("-")
    if name in {"RZ", "URZ"}:
        return name, sign, 0
    return name, sign, _signed(sign * int(name, 16)) if _NUMBER.match(name) else None


@lru_cache(maxsize=1 << 10)
def _name(number: int) -> str | None:
    """A register of the two files that addresses are made of."""
    file, index = number >> 8, number & 255
    return f"R{index}" if file == 0 else f"UR{index}" if file == 2 else None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Accesses of a thread, side by side in memory and in one block, that a wider one could replace."""

    indices: tuple[int, ...]  # in the order of their addresses
    width_bytes: int  # of each
    widest_bytes: int = WIDEST_BYTES  # of an access in their place

    @property
    def per_access(self) -> int:
        """Values of the run that one access of 16 bytes takes, or of fewer where the run has fewer."""
        count = self.widest_bytes // self.width_bytes
        while count > len(self.indices):
            count //= 2
        return count

    def groups(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Each first access that a wide one takes, with all that it takes: their indices."""
        for start in range(0, len(self.indices), self.per_access):
            group = self.indices[start : start + self.per_access]
            yield min(group), group


def is_same_for_all(function: Function, index: int) -> bool:
    """Whether an access goes to an address that the launch alone decides: one place for the whole grid."""
    address = _values_before(function, index).address(function.instructions[index].operands)
    pending = [] if address is None else [name for name, _ in address.terms]
    for _ in range(_FOLLOWED):
        if not pending:
            break
        name = pending.pop()
        if name.startswith("c["):
            continue
        writers = [
            position
            for position, instruction in enumerate(function.instructions)
            if name in map(_name, instruction.defs)
        ]
        if len(writers) != 1:
            return False
        value = _values_before(function, writers[0] + 1).of(name)
        if any(term.startswith(name) for term, _ in value.terms):
            return False  # a load, or arithmetic that is not followed
        pending += [term for term, _ in value.terms]
    return address is not None and not pending


def _values_before(function: Function, index: int) -> _Values:
    """What registers hold before an instruction, from the start of the block of the one before it."""
    values = _Values()
    start = function.blocks[function.block_of[max(index - 1, 0)]].start
    for before in range(start, index):
        values.execute(before, function.instructions[before])
    return values


def factors(function: Function, indices: Iterable[int]) -> frozenset[int]:
    """Numbers above 1 by which instructions multiply what they add up, each as far as its block shows it."""
    made: set[int] = set()
    for index in indices:
        values = _values_before(function, index + 1)
        for name in filter(None, map(_name, function.instructions[index].defs)):
            made |= {abs(factor) for _, factor in values.of(name).terms if abs(factor) > 1}
    return frozenset(made)


def step_of_pass(function: Function, index: int) -> int | None:
    """Bytes that an address moves on with each pass of a loop of one block; None where that is not known."""
    block = function.blocks[function.block_of[index]]
    if block.id not in [successor for successor, _ in block.successors]:
        return None
    values, address = _Values(), None
    for position in range(block.start, block.end):
        if position == index:
            address = values.address(function.instructions[position].operands)
        values.execute(position, function.instructions[position])
    if address is None:
        return None
    step = 0
    for name, factor in address.terms:
        after = values.of(name)
        if after.terms != ((name, 1),) or any(
            "@" in part or values.of(part) != Sum(((part, 1),), 0) for part in _parts(name)
        ):
            return None
        step += factor * after.constant
    return _signed(step)


def _parts(name: str) -> list[str]:
    """What a product, or a value that the block computes in a way that is not followed, is made of."""
    return _PART.findall(name) if "(" in name or "@" in name else []


@lru_cache(maxsize=64)
def neighbours(function: Function, *, any_guard: bool = False) -> tuple[Neighbours, ...]:
    """Runs of two and more accesses of one kind and width whose addresses differ by their width.

    Under one guard, as far as there is one, unless any will do: of values that each have a test of their own.
    """
    return tuple(run for block in function.blocks for run in _in_block(function, block, any_guard=any_guard))


def _in_block(function: Function, block: Block, *, any_guard: bool) -> list[Neighbours]:
    accesses = [index for index in range(block.start, block.end) if _is_narrow(function.instructions[index])]
    if len(accesses) < 2:
        return []
    values, done = _Values(), block.start
    groups: dict[tuple[str, int, Guard | None, tuple[tuple[str, int], ...]], dict[int, int]] = {}
    for index in accesses:
        for before in range(done, index):
            values.execute(before, function.instructions[before])
        done = index
        instruction = function.instructions[index]
        address = values.address(instruction.operands)
        if address is not None:
            guard = None if any_guard else instruction.guard
            key = instruction.opcode, instruction.width_bytes or 0, guard, address.terms
            groups.setdefault(key, {}).setdefault(address.constant, index)
    return [run for (_, width, *_), by_constant in groups.items() for run in _runs(by_constant, width)]


def _is_narrow(instruction: Instruction) -> bool:
    """Whether it is a load or store that could be wider."""
    width = instruction.width_bytes
    return (
        width is not None
        and width < WIDEST_BYTES
        and instruction.info.opclass in _ACCESSES
        and (is_global(instruction) or is_shared(instruction))
    )


def _runs(by_constant: Mapping[int, int], width: int) -> list[Neighbours]:
    runs: list[list[int]] = []
    previous: int | None = None
    for constant in sorted(by_constant):
        if previous is None or constant != previous + width:
            runs.append([])
        runs[-1].append(by_constant[constant])
        previous = constant
    return [Neighbours(tuple(run), width) for run in runs if len(run) > 1]


@lru_cache(maxsize=64)
def tested_neighbours(function: Function) -> tuple[Neighbours, ...]:
    """Runs of loads of which some stand behind tests, in blocks of their own: the first stands before these.

    All are reached through one register that a single instruction has written, and are in one loop.
    """
    groups: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    for index, instruction in enumerate(function.instructions):
        match = _OFFSET.search(instruction.operands)
        width = instruction.width_bytes
        if instruction.info.opclass is not OpcodeClass.LOAD or not is_global(instruction) or match is None:
            continue
        register = next((use for use in instruction.uses if _name(use) == match[1]), None)
        written = () if register is None else tuple(function.reaching.definitions(index, register))
        if width is not None and width < WIDEST_BYTES and len(written) == 1:
            key = (instruction.opcode, width, register, written, function.innermost_loop(index))
            groups[key].setdefault(int(match[2] or "0", 16), index)
    runs = [run for (_, width, *_), accesses in groups.items() for run in _runs(accesses, int(str(width)))]
    return tuple(run for run in runs if _begins_before_tests(function, run))


def _begins_before_tests(function: Function, run: Neighbours) -> bool:
    """Whether the first of each group of accesses comes before all others of it, of other blocks."""
    blocks = [function.block_of[index] for index in run.indices]
    return len(set(blocks)) > 1 and all(
        dominates(function, function.block_of[first], function.block_of[index])
        for first, group in run.groups()
        for index in group
    )
