# SPDX-License-Identifier: Apache-2.0
"""Addresses that data choose, which no order of threads brings together: handed over, or searched."""

from __future__ import annotations

from typing import Final

from gpadvisor.evidence.access_shapes import holds_loaded
from gpadvisor.evidence.accesses import is_memory
from gpadvisor.evidence.arrays import address_registers
from gpadvisor.evidence.loops import ADDITIONS
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function, FunctionKind, Program


def is_chosen_by_callers_data(program: Program, function: Function, index: int, launch: Launch) -> bool:
    """Whether some caller hands over what it loaded, and an access's address is made of that."""
    pending = [(function, register) for register in _handed_over(function, index)]
    visited = set[tuple[FunctionId, Register]]()
    while pending:
        callee, register = pending.pop()
        if callee.kind is FunctionKind.KERNEL or (callee.id, register) in visited:
            continue
        visited.add((callee.id, register))
        for caller in program.functions:
            for call in caller.calls:
                if call.callee != callee.id:
                    continue
                if holds_loaded(caller, call.index, register, program.form, launch):
                    return True
                pending += [(caller, maker) for maker in _made_of(caller, call.index, {register})]
    return False


def is_searched(function: Function, index: int) -> bool:
    """Whether what an access loaded decides, by comparisons as well, where it goes in the next pass.

    A walk that goes on by constant steps, as of two sorted lists that are merged, is no search.
    """
    address = address_registers(function, index)
    makers = {definition for use in address for definition in function.reaching.definitions(index, use)}
    pending = [(index, register) for register in address]
    visited = set[int]()
    loops = False
    while pending:
        use, register = pending.pop()
        for definition in function.reaching.definitions(use, register) - visited:
            visited.add(definition)
            instruction = function.instructions[definition]
            loops = loops or definition == index
            if not is_memory(instruction):
                guard = [] if instruction.guard is None else [instruction.guard.register]
                pending += [(definition, used) for used in (*instruction.uses, *guard)]
    return loops and not all(
        is_memory(instruction) or _is_step(instruction)
        for definition in visited - makers
        for instruction in (function.instructions[definition],)
        if function.innermost_loop(definition) is not None
    )


_CHOICES: Final = frozenset({"MOV", "UMOV", "SEL", "USEL", "FSEL", "CS2R", "PLOP3", "R2UR"})
_SIGN: Final = "0x1f"
_NUMBER: Final = ", 0x"


def _is_step(instruction: Instruction) -> bool:
    """A move, a choice, a comparison, a constant added; an index's sign for the upper half of an address."""
    if instruction.opcode == "IMAD" and "MOV" in instruction.modifiers:
        return True
    if instruction.opcode in ADDITIONS or "IADD" in instruction.modifiers:
        return _NUMBER in instruction.operands
    sign = instruction.opcode == "SHF" and _SIGN in instruction.operands
    return sign or instruction.opcode in _CHOICES or instruction.info.opclass is OpcodeClass.PREDICATE


def _handed_over(function: Function, index: int) -> set[Register]:
    """Registers of the caller that an access's address is made of."""
    if function.kind is FunctionKind.KERNEL:
        return set()
    return _made_of(function, index, {*address_registers(function, index)})


def _made_of(function: Function, index: int, registers: set[Register]) -> set[Register]:
    """Registers as they are at a function's entry, of which others are made at an instruction."""
    result, visited = set[Register](), set[int]()
    pending = [(index, register) for register in registers]
    while pending:
        use, register = pending.pop()
        definitions = function.reaching.definitions(use, register)
        if not definitions:
            result.add(register)
        for definition in definitions - visited:
            visited.add(definition)
            instruction = function.instructions[definition]
            if not is_memory(instruction):
                pending += [(definition, use) for use in instruction.uses]
    return result
