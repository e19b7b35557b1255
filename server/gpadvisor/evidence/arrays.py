# SPDX-License-Identifier: Apache-2.0
"""Whether two accesses go to one array, by the kernel parameters that their addresses are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_memory, is_stack_slot
from gpadvisor.evidence.loops import every_pass, loop_comparisons
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Register
from gpadvisor.model.machine import CodeForm
from gpadvisor.model.program import Function

_PARAMETER: Final = re.compile(r"c\[0x0\]\[0x[0-9a-f]+\]")
_PARAMETER_AT: Final = re.compile(r"c\[0x0\]\[0x([0-9a-f]+)\]")
_VARIABLE: Final = "c[0x3]["
"""Of a ``__constant__`` variable of the program."""
_ADDRESS: Final = re.compile(r"\[([^\[\]]*R\d[^\[\]]*)\]")
_OFFSET: Final = re.compile(r"\+?(-?0x[0-9a-f]+)$")
_REGISTER: Final = re.compile(r"\bU?R\d+")
_SLICE_LIMIT: Final = 512


def same_array(function: Function, first: int, second: int) -> bool:
    """Whether two accesses use the same parameters for their addresses, so that no keyword tells them apart.

    Not known is no: then the arrays may be different ones.
    """
    first_parameters, second_parameters = _parameters(function, first), _parameters(function, second)
    return bool(first_parameters) and first_parameters == second_parameters


def same_pointer(function: Function, first: int, second: int) -> bool:
    """Whether one access's address is made of the very pointer that the other one uses."""
    if _is_made_of(function, first, second) or _is_made_of(function, second, first):
        return True
    base = _base(function, first)
    return len(base) == 1 and base == _base(function, second)


def same_element(function: Function, first: int, second: int) -> bool:
    """Whether two accesses go to one address: made of the same registers, which nothing writes in between."""
    return bytes_apart(function, first, second) == 0


def bytes_apart(function: Function, first: int, second: int) -> int | None:
    """How far behind one access another one goes, by the same registers; None where that is not known."""
    brackets = [_ADDRESS.findall(function.instructions[access].operands) for access in (first, second)]
    if not all(brackets):
        return None
    addresses = [found[-1].replace(".reuse", "") for found in brackets]
    if len({_OFFSET.sub("", address) for address in addresses}) > 1:
        return None
    reaching = function.reaching
    for register in address_registers(function, first):
        if reaching.definitions(first, register) != reaching.definitions(second, register):
            return None
    begin, end = (int(match[1], 16) if (match := _OFFSET.search(text)) else 0 for text in addresses)
    return end - begin


def is_pointer_from_memory(function: Function, access: int, form: CodeForm) -> bool:
    """Whether the pointer itself was loaded, or is a constant: no parameter is there to be marked.

    In front of the parameters are the sizes of the launch, which are in an offset.
    """
    makers = [function.instructions[index] for index in address_makers(function, access)]
    is_parameter = any(
        int(at, 16) >= form.parameters_at for maker in makers for at in _PARAMETER_AT.findall(maker.operands)
    )
    return not is_parameter and any(
        (is_memory(instruction) and instruction.info.space not in _OWN) or _VARIABLE in instruction.operands
        for instruction in makers
    )


def _is_made_of(function: Function, access: int, base: int) -> bool:
    """Whether all registers of an access's address also make that of another one."""
    makers, registers = address_makers(function, access), address_registers(function, base)
    return bool(registers) and all(
        makers & function.reaching.definitions(base, register) for register in registers
    )


def address_registers(function: Function, access: int) -> list[Register]:
    """The registers in the brackets of an access."""
    brackets = _ADDRESS.findall(function.instructions[access].operands)
    names = set(_REGISTER.findall(brackets[-1])) if brackets else set()  # a descriptor stands before it
    return [use for use in function.instructions[access].uses if _name(use) in names]


def copies_parameters(function: Function, stores: Iterable[int]) -> bool:
    """Whether stores write nothing but parameters, as the compiler copies one that is indexed."""
    copies = [_is_of_parameters(function, store) for store in stores]
    return bool(copies) and all(copies)


def _is_of_parameters(function: Function, store: int) -> bool:
    """Whether all that a store writes comes from parameters, in one piece or out of their bytes."""
    return bool(makers_of_stored(function, store, _is_no_number))


def _is_no_number(maker: Instruction) -> bool:
    computes = maker.info.opclass in {OpcodeClass.FLOAT16, OpcodeClass.FLOAT32, OpcodeClass.FLOAT64}
    return not computes and (bool(maker.uses) or _PARAMETER.search(maker.operands) is not None)


def makers_of_stored(
    function: Function, store: int, allows: Callable[[Instruction], bool]
) -> frozenset[int] | None:
    """All that makes what a store writes; None where some of it is loaded, not allowed or too far away."""
    address = set(address_registers(function, store))
    pending = [(store, used) for used in function.instructions[store].uses if used not in address]
    visited: set[int] = set()
    while pending and len(visited) < _SLICE_LIMIT:
        index, register = pending.pop()
        definitions = function.reaching.definitions(index, register)
        if not definitions:
            return None
        for definition in definitions - visited:
            visited.add(definition)
            maker = function.instructions[definition]
            if is_loaded(maker) or not allows(maker):
                return None
            pending += [(definition, used) for used in maker.uses]
    return None if pending else frozenset(visited)


def is_loaded(maker: Instruction) -> bool:
    """Whether a value comes from memory that a kernel may write."""
    return is_memory(maker) and maker.info.space is not MemorySpace.CONSTANT


def has_parameters(function: Function, *accesses: int) -> bool:
    """Whether it is known which parameters the addresses of accesses are made of."""
    return all(_parameters(function, access) for access in accesses)


@lru_cache(maxsize=512)
def _parameters(function: Function, access: int) -> frozenset[str]:
    """The parameters that an access's address depends on; empty where it also depends on data in memory."""
    makers = [function.instructions[index] for index in address_makers(function, access)]
    if any(is_memory(maker) and maker.info.space is not MemorySpace.CONSTANT for maker in makers):
        return frozenset()
    return frozenset(name for instruction in makers for name in _PARAMETER.findall(instruction.operands))


@lru_cache(maxsize=512)
def _base(function: Function, access: int) -> frozenset[str]:
    """The parameters that an address of 64 bits begins with; several where offsets are not told apart."""
    pending = [(access, register) for register in address_registers(function, access)]
    visited: set[int] = set()
    parameters = set[str]()
    while pending and len(visited) < _SLICE_LIMIT:
        index, register = pending.pop()
        for definition in function.reaching.definitions(index, register) - visited:
            visited.add(definition)
            maker = function.instructions[definition]
            if is_memory(maker) and maker.info.space is not MemorySpace.CONSTANT:
                return frozenset()  # the pointer itself was loaded
            operands = _address_added_to(maker)
            parameters.update(_PARAMETER.findall(operands))
            names = set(_REGISTER.findall(operands))
            pending += [(definition, used) for used in maker.uses if _name(used) in names]
    return frozenset(parameters)


def _address_added_to(maker: Instruction) -> str:
    """What a wide multiply-add, or a shift and add, adds an offset to; all operands of other instructions."""
    if maker.opcode == "IMAD" and "WIDE" in maker.modifiers:
        return maker.operand_texts[-1]
    if maker.opcode == "LEA" and "HI" not in maker.modifiers:
        return maker.operand_texts[-2]  # the distance of the shift is behind it
    return maker.operands


def has_length_of_loop(function: Function, access: int, loop: LoopId) -> bool:
    """Whether a parameter of an access's offset also ends a loop: the length of what it goes along."""
    ends = loop_comparisons(function, loop)
    makers = _makers(
        function, [(compare, used) for compare in ends for used in function.instructions[compare].uses]
    )
    lengths = {
        name
        for index in {*ends, *makers}
        for name in _PARAMETER.findall(function.instructions[index].operands)
    }
    return not lengths.isdisjoint(_parameters(function, access) - _base(function, access))


def is_indexed_by_data(function: Function, access: int) -> bool:
    """Whether an access's address depends on what was loaded from memory that is not the thread's own.

    What only ends a loop is no index: the rest of an unrolled loop begins at a multiple of it.
    """
    return any(
        index not in _bounds(function) and is_data(function, index)
        for index in address_makers(function, access)
    )


def is_moved_by_conditions(function: Function, access: int) -> bool:
    """Whether a loop around an access steps its index in some passes, or sets it back: a stack, a buffer.

    No unrolling makes a constant of such an index: the passes written out step it under conditions, too.
    """
    makers = address_makers(function, access)
    for loop in function.enclosing_loops(access):
        own = [index for index in makers if function.innermost_loop(index) == loop]
        if any(_is_set_back_in_memory(function, loop, index) for index in own):
            return True
        steps = [index for index in own if _steps(function, index)]
        stepped = {register for index in steps for register in function.instructions[index].defs}
        set_back = any(
            not function.instructions[index].uses and stepped.intersection(function.instructions[index].defs)
            for index in own
        )
        if set_back or any(
            function.instructions[index].guard is not None or not every_pass(function, loop, index)
            for index in steps
        ):
            return True
    guarded = {
        frozenset(function.reaching.definitions(index, guard.register))
        for index in makers
        if function.instructions[index].opcode in _ADDS
        and (guard := function.instructions[index].guard) is not None
    }
    return len(guarded) > 1


def _is_set_back_in_memory(function: Function, loop: LoopId, load: int) -> bool:
    """Whether an index is a variable of the stack, such as a member of a struct, that a loop sets to zero."""
    slot = function.instructions[load]
    if slot.opcode != "LDL" or not is_stack_slot(slot):
        return False
    place = slot.operand_texts[1]
    return any(
        instruction.opcode == "STL" and instruction.operand_texts[:2] == [place, "RZ"]
        for instruction in (function.instructions[index] for index in loop_indices(function, loop))
    )


def _steps(function: Function, index: int) -> bool:
    """Whether an instruction adds to what it left in the pass before, itself or by way of others."""
    instruction = function.instructions[index]
    return instruction.opcode in _ADDS and index in _makers(
        function, [(index, used) for used in instruction.uses]
    )


_ADDS: Final = frozenset({"IADD3", "IADD", "VIADD", "UIADD3"})


def is_data(function: Function, index: int) -> bool:
    """Whether an instruction loads what other code or the host has left in memory."""
    instruction = function.instructions[index]
    return is_memory(instruction) and instruction.info.space not in _OWN


@lru_cache(maxsize=64)
def _bounds(function: Function) -> frozenset[int]:
    """Loads in front of a loop that the comparison at its end depends on."""
    bounds: set[int] = set()
    for loop in function.loops:
        indices = set(loop_indices(function, loop.id))
        for compare in loop_comparisons(function, loop.id):
            makers = _makers(function, [(compare, used) for used in function.instructions[compare].uses])
            bounds |= {index for index in makers - indices if is_data(function, index)}
    return frozenset(bounds)


_OWN: Final = frozenset({MemorySpace.CONSTANT, MemorySpace.LOCAL})


@lru_cache(maxsize=512)
def address_makers(function: Function, access: int) -> frozenset[int]:
    """The instructions that an access's address is made by, back to what was loaded."""
    return _makers(function, [(access, register) for register in address_registers(function, access)])


def register_makers(function: Function, index: int, register: Register) -> frozenset[int]:
    """The instructions that a register comes from where it is used, back to what was loaded."""
    return _makers(function, [(index, register)])


def _makers(function: Function, pending: list[tuple[int, Register]]) -> frozenset[int]:
    """The instructions that registers come from where they are used, back to what was loaded."""
    visited: set[int] = set()
    while pending and len(visited) < _SLICE_LIMIT:
        index, register = pending.pop()
        for definition in function.reaching.definitions(index, register) - visited:
            visited.add(definition)
            maker = function.instructions[definition]
            if not is_memory(maker) or maker.info.space is MemorySpace.CONSTANT:
                pending += [(definition, used) for used in maker.uses]
    return frozenset(visited)


def _name(register: int) -> str:
    return f"{'UR' if register >> 8 else 'R'}{register & 255}"
