# SPDX-License-Identifier: Apache-2.0
"""The arrays in a thread's stack frame: which access goes to which, what is in them, what indexes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import Final

from gpadvisor.evidence.arrays import address_makers, is_loaded, makers_of_stored
from gpadvisor.evidence.lanes import numbers_of
from gpadvisor.model.instruction import Instruction, OpcodeClass
from gpadvisor.model.program import Function, Program
from gpadvisor.model.thread_use import CodePlace

_FROM_STACK: Final = re.compile(r"^(?!R1,).*, R1\b")
"""What reads the stack pointer to make an address, and does not move it."""
_NUMBER: Final = re.compile(r" (0x[0-9a-f]+)\b")
_TABLE: Final = re.compile(r"c\[0x3\]\[0x[0-9a-f]+\]")
"""A place in a ``__constant__`` variable that the code names."""
_DECIDED_AT_LAUNCH: Final = re.compile(r"c\[0x0\]|\bSR_")
"""A parameter, or what tells threads and blocks apart."""

_THREADS: Final = ("SR_TID", "SR_LANEID")


def largest_array(
    function: Function, accesses: Iterable[int], frame_bytes: int
) -> tuple[frozenset[int], int] | None:
    """Of several arrays in a frame the accesses to the largest, and its bytes; None where there is one.

    An array begins where its distance to the stack pointer is added, and ends where the next begins. One that
    nobody reads is part of another, into whose middle a loop stores.
    """
    by_start: dict[int, set[int]] = {}
    for access in accesses:
        distances = {
            _distance(function, maker)
            for maker in address_makers(function, access)
            if _FROM_STACK.search(function.instructions[maker].operands)
        }
        by_start.setdefault(min(distances, default=0), set()).add(access)
    read = all(any(map(partial(_is_load, function), group)) for group in by_start.values())
    if len(by_start) < 2 or not read:
        return None
    starts = sorted(by_start)
    ends = [*starts[1:], frame_bytes]
    size, largest = max((end - start, start) for start, end in zip(starts, ends, strict=True))
    return frozenset(by_start[largest]), size


def _is_load(function: Function, access: int) -> bool:
    return function.instructions[access].info.opclass is OpcodeClass.LOAD


def _distance(function: Function, maker: int) -> int:
    """What an instruction adds to the stack pointer, where that is a number."""
    instruction = function.instructions[maker]
    adds = instruction.opcode in {"IADD3", "VIADD", "IADD"}
    number = _NUMBER.search(instruction.operands) if adds else None
    return 0 if number is None else int(number[1], 16)


def holds_constants(function: Function, stores: Iterable[int]) -> bool:
    """Whether stores write nothing but numbers that the code names."""
    made = [makers_of_stored(function, store, _is_decided) for store in stores]
    return bool(made) and None not in made


def _is_decided(maker: Instruction) -> bool:
    return _DECIDED_AT_LAUNCH.search(maker.operands) is None


def is_indexed_by_threads(function: Function, accesses: Iterable[int]) -> bool:
    """Whether the index of a load is computed from a thread's number, and so differs within a warp."""
    return any(_is_load(function, index) and numbers_of(function, index, _THREADS) for index in accesses)


def is_indexed_by_table(program: Program, arrays: Collection[CodePlace]) -> bool:
    """Whether each index comes from a ``__constant__`` array, so that it is the same in every run."""
    found = [
        {element for maker in address_makers(function, index) for element in _elements(function, maker)}
        for number, index in arrays
        for function in (program.functions[number],)
    ]
    return all(found) and len(set().union(*found)) >= _FEWEST_ELEMENTS


_FEWEST_ELEMENTS: Final = 4
"""Of a table: less may be numbers that the program sets before it runs."""


def _elements(function: Function, maker: int) -> list[str]:
    instruction = function.instructions[maker]
    return [] if is_loaded(instruction) else _TABLE.findall(instruction.operands)
