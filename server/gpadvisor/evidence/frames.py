# SPDX-License-Identifier: Apache-2.0
"""The arrays in a thread's stack frame: which access goes to which, what is in them, what indexes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache, partial
from operator import sub
from typing import Final

from gpadvisor.evidence.accesses import is_stack_slot
from gpadvisor.evidence.arrays import address_makers, is_loaded, makers_of_stored, register_makers
from gpadvisor.evidence.lanes import numbers_of
from gpadvisor.evidence.library_code import in_library_loop, makes_random_numbers
from gpadvisor.evidence.loops import immediate, loop_comparisons
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.program import Function, LineEntry, Program
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
    nobody reads is part of another, into whose middle a loop stores. What a library indexes is not told.
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
    sizes = dict(zip(starts, map(sub, [*starts[1:], frame_bytes], starts), strict=True))
    own = [start for start in starts if not all(map(partial(_is_librarys, function), by_start[start]))]
    largest = max(own or starts, key=lambda start: (sizes[start], start))
    return frozenset(by_start[largest]), sizes[largest]


def _is_librarys(function: Function, access: int) -> bool:
    return in_library_loop(function, access) or makes_random_numbers(function, access)


def is_indexed(function: Function, access: int) -> bool:
    """Whether a local access has an index of the source's.

    It has none where nothing but numbers is added to the stack pointer, and where a loop of the compiler's
    copies a struct word by word.
    """
    if is_stack_slot(function.instructions[access]) or function.lines[access] in _copying_lines(function):
        return False
    makers = address_makers(function, access)
    return (
        not makers
        or any(not _adds_number(function.instructions[maker]) for maker in makers)
        or any(
            maker in register_makers(function, maker, used)
            for maker in makers
            for used in function.instructions[maker].uses
        )
    )


def _adds_number(maker: Instruction) -> bool:
    """Whether an instruction copies a register, or adds a number to it."""
    copies = maker.info.opclass is OpcodeClass.MOVE or "MOV" in maker.modifiers
    return len(maker.uses) <= 1 and (copies or maker.opcode in _SUMS)


_SUMS: Final = frozenset({"IADD3", "VIADD", "IADD", "UIADD3"})


@lru_cache(maxsize=64)
def _copying_lines(function: Function) -> frozenset[LineEntry]:
    """The lines of which loops of a constant number of passes load and store, and do nothing else."""
    found = set()
    for loop in function.loops:
        indices = loop_indices(function, loop.id)
        lines = {function.lines[index] for index in indices}
        code = [function.instructions[index] for index in indices]
        counts = Counter(one.info.opclass for one in code if one.info.space is not MemorySpace.CONSTANT)
        ends = [function.instructions[compare] for compare in loop_comparisons(function, loop.id)]
        if (
            counts.keys() <= _COPYING
            and counts[OpcodeClass.LOAD] == counts[OpcodeClass.STORE]
            and ends
            and all(immediate(compare) is not None for compare in ends)
            and len(lines) == 1
        ):
            found |= lines
    return frozenset(line for line in found if line is not None)


_COPYING: Final = frozenset(
    {
        OpcodeClass.LOAD,
        OpcodeClass.STORE,
        OpcodeClass.INTEGER,
        OpcodeClass.INTEGER_MULTIPLY,
        OpcodeClass.MOVE,
        OpcodeClass.PREDICATE,
        OpcodeClass.BRANCH,
    }
)


def _is_load(function: Function, access: int) -> bool:
    return function.instructions[access].info.opclass is OpcodeClass.LOAD


def _distance(function: Function, maker: int) -> int:
    """What an instruction adds to the stack pointer, where that is a number."""
    instruction = function.instructions[maker]
    adds = instruction.opcode in _SUMS
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
