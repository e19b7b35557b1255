# SPDX-License-Identifier: Apache-2.0
"""Floats that are computed in doubles between: conversions there and back, and sums that a loop carries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.patterns import WINDOW, CodeSequence, opcode_index, uses
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register_file,
)
from gpadvisor.model.program import Definitions, Function


def mixes_precision(instruction: Instruction) -> bool:
    """Whether an instruction makes a double of a float or a float of a double."""
    return instruction.opcode == "F2F" and {"F64", "F32"} <= set(instruction.modifiers)


def double_excursions(function: Function) -> tuple[CodeSequence, ...]:
    """Single precision turned into double and back: mostly a literal without ``f``."""
    sequences = list(_float_sums(function))
    library = frozenset().union(*(sequence.indices for sequence in sequences))
    for start in opcode_index(function).get("F2F", ()):
        if start not in library and function.instructions[start].modifiers[:2] == _TO_DOUBLE:
            chain = _through_doubles(function, start)
            if chain is not None:
                added = all(_adds_registers(function.instructions[index]) for index in chain)
                sequences.append(
                    CodeSequence(DOUBLE_SUM if added else "float to double and back", start, chain)
                )
    return tuple(sequences)


DOUBLE_SUM: Final = "float added to a double"


_TO_DOUBLE: Final = ("F64", "F32")
_TO_FLOAT: Final = ("F32", "F64")


def _float_sums(function: Function) -> Iterator[CodeSequence]:
    """Sums that a loop carries in a double, into which only floats go and of which a float is made."""
    opcodes = opcode_index(function)
    ends = [
        index for index in opcodes.get("F2F", ()) if function.instructions[index].modifiers[:2] == _TO_FLOAT
    ]
    if not ends or "DADD" not in opcodes:
        return
    reaching = function.reaching
    indices: frozenset[int] = frozenset()
    for end in ends:
        web = _sum_of_floats(function, reaching, end)
        starts = [position for position in web if function.instructions[position].modifiers[:2] == _TO_DOUBLE]
        if any(function.innermost_loop(start) is not None for start in starts) and not web <= indices:
            indices |= web
            yield CodeSequence(DOUBLE_SUM, min(starts), web)


def _sum_of_floats(function: Function, reaching: Definitions, end: int) -> frozenset[int]:
    """The additions that a double comes from, with the conversions at both ends; empty if others go in."""
    additions, copies, pending = {end}, set[int](), [end]
    while pending:
        use = pending.pop()
        for read in function.instructions[use].uses:
            if register_file(read) is not RegisterFile.GPR:
                continue
            for definition in reaching.definitions(use, read) - additions - copies:
                instruction = function.instructions[definition]
                if instruction.opcode == "F2F" and instruction.modifiers[:2] == _TO_DOUBLE:
                    additions.add(definition)
                elif instruction.opcode == "DADD" and _adds_registers(instruction):
                    additions.add(definition)
                    pending.append(definition)
                elif instruction.info.opclass is OpcodeClass.MOVE or instruction.operands.endswith(
                    "SRZ"
                ):  # zero, at first
                    copies.add(definition)
                    pending.append(definition)
                else:
                    return frozenset()
    return frozenset(additions)


def _adds_registers(instruction: Instruction) -> bool:
    """Whether an instruction is no double arithmetic but that of a sum, which has no literal."""
    if instruction.info.opclass is not OpcodeClass.FLOAT64:
        return True
    return instruction.opcode == "DADD" and _TWO_REGISTERS.fullmatch(instruction.operands) is not None


_TWO_REGISTERS: Final = re.compile(r"R\d+, -?R\d+(?:\.reuse)?, -?R\d+(?:\.reuse)?")


def has_number(instruction: Instruction) -> bool:
    """Whether a double operation has a number, in itself or among those that are kept with the code."""
    return (
        instruction.info.opclass is OpcodeClass.FLOAT64 and _NUMBER.search(instruction.operands) is not None
    )


_NUMBER: Final = re.compile(r"c\[0x[1-9a-f]\w*\]|, -?\d")


def has_literals(function: Function, sequence: CodeSequence) -> bool:
    """Whether a number makes doubles of floats, and not the type of a variable alone."""
    return any(
        has_number(function.instructions[index])
        or _is_twice(function.instructions[index])
        or any(
            _is_number(maker) or _is_twice(maker)
            for maker in map(function.instructions.__getitem__, _operands(function, index))
        )
        for index in sequence.indices
    )


def _operands(function: Function, index: int) -> Iterator[int]:
    """What makes the operands of a double operation."""
    if function.instructions[index].info.opclass is OpcodeClass.FLOAT64:
        for used in function.instructions[index].uses:
            yield from function.reaching.definitions(index, used)


def _is_twice(instruction: Instruction) -> bool:
    """Whether it is 2.0 times a value, which compilers write as its sum with itself."""
    _, *terms = instruction.operands.replace(".reuse", "").split(", ")
    return instruction.opcode == "DADD" and len(set(terms)) == 1


def _is_number(maker: Instruction) -> bool:
    return maker.opcode != "F2F" and maker.info.opclass is not OpcodeClass.FLOAT64 and not maker.uses


def _through_doubles(function: Function, start: int) -> frozenset[int] | None:
    """A conversion to double, the arithmetic on it, and the one that ends it; None where doubles join it."""
    reached = set(function.instructions[start].defs)
    chain = {start}
    for index in range(start + 1, min(start + WINDOW, len(function.instructions))):
        instruction = function.instructions[index]
        if not uses(instruction, reached):
            reached.difference_update(() if instruction.guard else instruction.defs)
            continue
        if _leaves_doubles(instruction):
            return frozenset({*chain, index}) if len(chain) > 1 else None
        if instruction.info.opclass is OpcodeClass.FLOAT64:
            if not all(used in reached or _is_of_floats(function, index, used) for used in instruction.uses):
                return None
            chain.add(index)
            reached.update(instruction.defs)
    return None


def _leaves_doubles(instruction: Instruction) -> bool:
    """Whether an instruction makes a float or a whole number of a double."""
    back = instruction.opcode == "F2F" and instruction.modifiers[:2] == _TO_FLOAT
    return back or (instruction.opcode == "F2I" and "F64" in instruction.modifiers)


def _is_of_floats(function: Function, index: int, register: Register) -> bool:
    """Whether a register holds a number, or a double that nothing but floats and numbers went into."""
    pending, visited = [(index, register)], set[int]()
    while pending:
        at, read = pending.pop()
        for definition in function.reaching.definitions(at, read) - visited:
            visited.add(definition)
            instruction = function.instructions[definition]
            if instruction.opcode == "F2F" and instruction.modifiers[:2] == _TO_DOUBLE:
                continue
            if len(visited) > WINDOW:
                return False
            if is_memory(instruction) and instruction.info.space is not MemorySpace.CONSTANT:
                return False
            pending += [(definition, used) for used in instruction.uses]
    return True
