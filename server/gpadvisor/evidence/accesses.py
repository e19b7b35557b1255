# SPDX-License-Identifier: Apache-2.0
"""What kind of access an instruction makes, and to which memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    RegisterFile,
    register,
)
from gpadvisor.model.program import Function

_STACK_SLOT: Final = re.compile(r"\[R1(?:\.\w+)?(?:\+?(?P<offset>-?0x[0-9a-f]+))?\]")
"""An address of the stack pointer and a constant."""
_STACK_POINTER: Final = register(RegisterFile.GPR, 1)


def is_memory(instruction: Instruction) -> bool:
    """Whether an instruction reads or writes memory through the load/store or texture unit."""
    return instruction.info.space is not None and instruction.info.opclass in _MEMORY


_MEMORY: Final = frozenset(
    {
        OpcodeClass.LOAD,
        OpcodeClass.STORE,
        OpcodeClass.ATOMIC,
        OpcodeClass.REDUCTION,
        OpcodeClass.ASYNC_COPY,
    }
)
DEVICE_SPACES: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
"""Where a global access may go; generic ones may turn out to be shared or local."""


def is_global(instruction: Instruction) -> bool:
    """Whether an instruction accesses global (or generic) memory."""
    return is_memory(instruction) and instruction.info.space in DEVICE_SPACES


def is_local(instruction: Instruction) -> bool:
    """Whether an instruction accesses local memory."""
    return is_memory(instruction) and instruction.info.space is MemorySpace.LOCAL


def is_shared(instruction: Instruction) -> bool:
    """Whether an instruction accesses shared memory."""
    return is_memory(instruction) and instruction.info.space is MemorySpace.SHARED


def is_atomic(instruction: Instruction) -> bool:
    """Whether an instruction changes memory in one piece, with a result or without."""
    return instruction.info.opclass in {OpcodeClass.ATOMIC, OpcodeClass.REDUCTION}


def is_ordered(instruction: Instruction) -> bool:
    """Whether a memory access is volatile or atomic by its scope, so that the compiler keeps its place."""
    return any(modifier in _SCOPED for modifier in instruction.modifiers)


_SCOPED: Final = frozenset({"STRONG", "ACQUIRE", "MMIO"})


def is_stack_slot(instruction: Instruction) -> bool:
    """Whether a local access names a fixed place of the frame, as register spills do.

    An array that is indexed at run time has its index in the address.
    """
    return is_local(instruction) and _STACK_SLOT.search(instruction.operands) is not None


def one_way_slots(function: Function, indices: Iterable[int]) -> set[int]:
    """Of accesses to fixed places of the frame, those to places that are only written or only read.

    A spilled register is both. What else is there was put for, or by, a function that is called: arguments of
    printf, results by address.
    """
    written: set[int] = set()
    read: set[int] = set()
    places = {}
    for index in indices:
        instruction = function.instructions[index]
        match = _STACK_SLOT.search(instruction.operands)
        if match is not None:
            offset = int(match.group("offset") or "0", 16)
            places[index] = range(offset, offset + (instruction.width_bytes or 4))
            (written if instruction.info.opclass is OpcodeClass.STORE else read).update(places[index])
    both = written & read
    return {index for index, place in places.items() if both.isdisjoint(place)}


def passes_stack_on(function: Function) -> bool:
    """Whether the address of the stack frame goes into another register than the pointer itself."""
    return any(
        _STACK_POINTER in instruction.uses
        and _STACK_POINTER not in instruction.defs
        and instruction.info.opclass in {OpcodeClass.INTEGER, OpcodeClass.INTEGER_MULTIPLY, OpcodeClass.MOVE}
        for instruction in function.instructions
    )
