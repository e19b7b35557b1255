# SPDX-License-Identifier: Apache-2.0
"""Atomic operations by which all blocks add to the same small array, at a place that the data choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import DEVICE_SPACES, is_atomic, is_memory
from gpadvisor.evidence.arrays import address_registers
from gpadvisor.evidence.value_ranges import NumberRange, ValueRanges, comparison, deciding
from gpadvisor.model.instruction import MemorySpace, OpcodeClass, Register
from gpadvisor.model.program import Function

_WORD: Final = 4
MOST_BYTES: Final = 16 * 1024
"""A copy of which three fit into the 48 KiB that a block has by default, and leaves room for other blocks."""
_OTHER: Final = frozenset({"CAS", "CAST", "EXCH"})
_THREADS: Final = frozenset({OpcodeClass.SPECIAL_REGISTER, OpcodeClass.SHUFFLE, OpcodeClass.VOTE})
_EQUAL: Final = {("EQ", True), ("NE", False)}


@dataclass(frozen=True, slots=True)
class Counters:
    """A small array in device memory, and the operations on it."""

    indices: tuple[int, ...]
    words: int  # that they reach, at most
    in_loop: bool  # whether a thread comes there again and again


@lru_cache(maxsize=64)
def counters(function: Function) -> Counters | None:
    """What all threads that have an element add to; None where there is no such array."""
    ranges = ValueRanges(function)
    found = {
        index: reached
        for index in range(len(function.instructions))
        if (reached := _chosen_by_data(function, ranges, index)) is not None and _is_reached(function, index)
    }
    words = sum(_words(reached) for reached in {*found.values()})
    if not found or _WORD * words > MOST_BYTES:
        return None
    in_loop = any(function.innermost_loop(index) is not None for index in found)
    return Counters(tuple(found), words, in_loop)


def words_chosen_by_data(function: Function, index: int) -> int | None:
    """The words of device memory that an operation reaches at most, where they are few and data choose."""
    reached = _chosen_by_data(function, ValueRanges(function), index)
    return None if reached is None or _WORD * _words(reached) > MOST_BYTES else _words(reached)


def is_result_used(function: Function, index: int) -> bool:
    """Whether what an atomic operation returns is used, so that no copies can be added up at the end."""
    registers = set(function.instructions[index].defs)
    reaching = function.reaching if registers else None
    return reaching is not None and any(
        index in reaching.definitions(use, register)
        for use, instruction in enumerate(function.instructions)
        for register in registers.intersection(instruction.uses)
    )


def _words(reached: NumberRange) -> int:
    return reached.width // _WORD + 1


def _chosen_by_data(function: Function, ranges: ValueRanges, index: int) -> NumberRange | None:
    """Between which bytes an operation on device memory reaches, where what was loaded decides."""
    instruction = function.instructions[index]
    if (
        not is_atomic(instruction)
        or instruction.info.space not in DEVICE_SPACES
        or not _OTHER.isdisjoint(instruction.modifiers)
        or is_result_used(function, index)
    ):
        return None
    reached = ranges.address(index)
    loads, kinds = _made_of(function, index, address_registers(function, index))
    chosen = loads and _THREADS.isdisjoint(kinds)
    return reached if reached is not None and reached.width and chosen else None


def _made_of(
    function: Function, index: int, registers: Iterable[Register]
) -> tuple[set[int], set[OpcodeClass]]:
    """The loads from memory that registers come from, and the kinds of instructions in between."""
    pending, visited = [(index, register) for register in registers], set[int]()
    loads, kinds = set[int](), set[OpcodeClass]()
    while pending:
        use, read = pending.pop()
        for definition in function.reaching.definitions(use, read) - visited:
            visited.add(definition)
            instruction = function.instructions[definition]
            if is_memory(instruction):
                if instruction.info.space is not MemorySpace.CONSTANT:
                    loads.add(definition)
                continue
            kinds.add(instruction.info.opclass)
            pending += [(definition, use) for use in instruction.uses]
    return loads, kinds


def _is_reached(function: Function, index: int) -> bool:
    """Whether all threads come there that have an element within the bounds: nothing else is asked for."""
    chosen_by, _ = _made_of(function, index, address_registers(function, index))
    for guarded, holds in deciding(function, index):
        compare = comparison(function, guarded, holds=holds)
        if compare is None:
            return False
        instruction = function.instructions[compare]
        if any((name, holds) in _EQUAL for name in instruction.modifiers):
            return False  # one thread, or one kind of element
        loads, _ = _made_of(function, compare, instruction.uses)
        if not loads <= chosen_by:
            return False
    return True
