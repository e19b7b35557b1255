# SPDX-License-Identifier: Apache-2.0
"""Addresses as sums over what a basic block starts with, and accesses of a thread that are neighbours."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from gpadvisor.evidence.accesses import is_global, is_shared
from gpadvisor.evidence.loops import dominates
from gpadvisor.model.instruction import Guard, Instruction, OpcodeClass
from gpadvisor.model.integers import (
    BITS,
    Addend,
    IntegerOperand,
    IntegerOperation,
    address,
    computation,
    signed,
)
from gpadvisor.model.machine import WIDEST_BYTES
from gpadvisor.model.program import Block, Function

_FOLLOWED: Final = 16
"""Registers of other blocks that an address is followed through."""
_MOST_LETTERS: Final = 1000
"""Of the names in a sum: that of a product is longer than both of its parts, and products have products."""
_PART: Final = re.compile(r"U?R\d+(?:@\d+)?")
_OFFSET: Final = re.compile(r"\[(R\d+)(?:\.64)?(?:\+(-?0x[0-9a-fA-F]+))?\]")
_ACCESSES: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE})


class Sum(NamedTuple):
    """Coefficients of unknown values, and a constant, modulo 2^32: the low half of an address."""

    terms: tuple[tuple[str, int], ...]  # sorted, no zero
    constant: int  # signed

    def plus(self, other: Sum) -> Sum:
        """The sum of both."""
        if not other.terms:
            return Sum(self.terms, signed(self.constant + other.constant))
        terms = dict(self.terms)
        for name, factor in other.terms:
            terms[name] = terms.get(name, 0) + factor
        return _sum(terms, self.constant + other.constant)

    def times(self, factor: int) -> Sum:
        """A multiple."""
        return _sum({name: value * factor for name, value in self.terms}, self.constant * factor)


def _sum(terms: Mapping[str, int], constant: int) -> Sum:
    signed_terms = {name: signed(factor) for name, factor in terms.items()}
    return Sum(
        tuple(sorted((name, factor) for name, factor in signed_terms.items() if factor)), signed(constant)
    )


class _Values:
    """What registers hold, instruction by instruction, in terms of what they held at the block's start."""

    def __init__(self) -> None:
        self._known: dict[str, Sum] = {}

    def named(self, name: str) -> Sum:
        """The value of a register, or of what else has a name."""
        return self._known.get(name) or Sum(((name, 1),), 0)

    def address(self, instruction: Instruction) -> Sum | None:
        """The address in the last brackets of an access."""
        terms = address(instruction.operands)
        return None if terms is None else self._total(terms)

    def execute(self, index: int, instruction: Instruction) -> None:
        """Write down what an instruction computes."""
        computed = None if instruction.guard is not None else computation(instruction)
        value = None
        if computed is not None and computed.operation is IntegerOperation.SUM:
            value = self._total(computed.terms)
        for number in instruction.defs:
            name = _name(number)
            if name is None:
                continue
            if value is None or sum(len(term) for term, _ in value.terms) > _MOST_LETTERS:
                value = Sum(((f"{name}@{index}", 1),), 0)
            self._known[name] = value
            value = None  # that was the low word

    def _total(self, terms: Iterable[Addend]) -> Sum:
        total = Sum((), 0)
        for term in terms:
            total = total.plus(self._term(term))
        return total

    def _term(self, term: Addend) -> Sum:
        value = self._of(term.operand)
        if term.factor != 1:
            value = value.times(term.factor)
        if term.times is not None:
            value = _product(value, self._of(term.times))
        return value if term.shift is None else _shifted(value, self._of(term.shift))

    def _of(self, operand: IntegerOperand) -> Sum:
        if operand.number is not None:
            return Sum((), operand.number)
        value = self.named(operand.name)
        if operand.sign == 1:
            return value
        return value.times(operand.sign).plus(Sum((), operand.offset))


def _product(left: Sum, right: Sum) -> Sum:
    if not right.terms:
        return left.times(right.constant)
    if not left.terms:
        return right.times(left.constant)
    return Sum(((f"({left})*({right})", 1),), 0)


def _shifted(value: Sum, count: Sum) -> Sum:
    if not count.terms and 0 <= count.constant < BITS:
        return value.times(1 << count.constant)
    return Sum(((f"({value})<<({count})", 1),), 0)


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
    address = _values_before(function, index).address(function.instructions[index])
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
        value = _values_before(function, writers[0] + 1).named(name)
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
            made |= {abs(factor) for _, factor in values.named(name).terms if abs(factor) > 1}
    return frozenset(made)


def step_of_pass(function: Function, index: int) -> int | None:
    """Bytes that an address moves on with each pass of a loop of one block; None where that is not known."""
    block = function.blocks[function.block_of[index]]
    if block.id not in [successor for successor, _ in block.successors]:
        return None
    values, address = _Values(), None
    for position in range(block.start, block.end):
        if position == index:
            address = values.address(function.instructions[position])
        values.execute(position, function.instructions[position])
    if address is None:
        return None
    step = 0
    for name, factor in address.terms:
        after = values.named(name)
        if after.terms != ((name, 1),) or any(
            "@" in part or values.named(part) != Sum(((part, 1),), 0) for part in _parts(name)
        ):
            return None
        step += factor * after.constant
    return signed(step)


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
        address = values.address(instruction)
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
