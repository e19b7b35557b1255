# SPDX-License-Identifier: Apache-2.0
"""Loops whose threads exchange elements with partners at a distance that halves: sorts, transforms."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import is_memory, is_shared
from gpadvisor.evidence.arrays import address_registers
from gpadvisor.evidence.barriers import is_barrier, is_copy, is_whole_block
from gpadvisor.evidence.loops import every_pass
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register_file,
)
from gpadvisor.model.program import Function

_XOR: Final = "0x3c"
"""What LOP3 calls ``a ^ b``."""
_SHIFTS: Final = frozenset({"SHF", "USHF", "SHR", "USHR"})
_SCALES: Final = frozenset({"SHF", "SHL", "IMAD", "LEA"})
_HALVES: Final = "0x1"


@lru_cache(maxsize=64)
def exchange_barriers(function: Function) -> tuple[int, ...]:
    """The barrier at the end of each loop in which thread t meets ``t ^ distance`` alone, which halves.

    While the distance is below a warp's threads, these two are of one warp.
    """
    return tuple(
        barrier
        for loop in function.loops
        if not any(inner.parent == loop.id for inner in function.loops)
        for barrier in _barriers(function, loop.id)
        if _only_exchanges(function, loop.id, barrier)
    )


def _barriers(function: Function, loop: LoopId) -> list[int]:
    barriers = [index for index in loop_indices(function, loop) if is_barrier(function, index)]
    if len(barriers) != 1 or not is_whole_block(function.instructions[barriers[0]]):
        return []
    return barriers if every_pass(function, loop, barriers[0]) else []


def _only_exchanges(function: Function, loop: LoopId, barrier: int) -> bool:
    indices = loop_indices(function, loop)
    code = [function.instructions[index] for index in indices]
    distances = {
        written
        for instruction in code
        if instruction.opcode in _SHIFTS and _is_halving(instruction)
        for written in instruction.defs
        if written in instruction.uses
    }
    memory = [index for index in indices if is_memory(function.instructions[index])]
    if not distances or not memory or any(instruction.info.opclass in _LEAVES for instruction in code):
        return False
    if _accesses_behind(function, loop, barrier):
        return False  # the barrier is between another step's distance and this one
    shapes = [_shape(function, index, distances) for index in memory]
    return all(shape is not None for shape in shapes) and {*shapes} == {False, True}


def _accesses_behind(function: Function, loop: LoopId, barrier: int) -> bool:
    """Whether a pass accesses memory behind its barrier."""
    region, block = function.loops[loop], function.block_of[barrier]
    pending, visited = [(block, barrier)], {region.header, block}
    while pending:
        number, start = pending.pop()
        if any(map(is_memory, function.instructions[start : function.blocks[number].end])):
            return True
        for successor, _ in function.blocks[number].successors:
            if successor in region.blocks and successor not in visited:
                visited.add(successor)
                pending.append((int(successor), function.blocks[successor].start))
    return False


_LEAVES: Final = frozenset({OpcodeClass.CALL, OpcodeClass.SHUFFLE, OpcodeClass.ASYNC_COPY})


def _is_halving(instruction: Instruction) -> bool:
    texts = instruction.operand_texts
    right = "R" in instruction.modifiers or instruction.opcode in {"SHR", "USHR"}
    return right and _HALVES in texts[1:3] and instruction.guard is None


def _shape(function: Function, access: int, distances: set[Register]) -> bool | None:
    """Whether an access goes to the partner's element, or else to the thread's own; None where to neither."""
    if not is_shared(function.instructions[access]):
        return None
    registers = address_registers(function, access)
    pending, visited = [(access, register) for register in registers], set[int]()
    partner = own = False
    while pending:
        use, read = pending.pop()
        if read in distances:
            if not _pairs(function.instructions[use]):
                return None  # a sum with the distance goes to another warp, too
            partner = True
            continue
        if _is_base(function, use, read):
            continue
        definitions = function.reaching.definitions(use, read)
        if not definitions:
            return None
        for definition in definitions - visited:
            visited.add(definition)
            maker = function.instructions[definition]
            if "SR_TID.X" in maker.operands:
                own = True
            elif maker.guard is not None or not _keeps_order(maker, distances):
                return None
            pending += [(definition, use) for use in maker.uses]
    return partner if own else None


def _keeps_order(maker: Instruction, distances: set[Register]) -> bool:
    """Whether an instruction only scales, copies or pairs the thread's number."""
    if is_copy(maker) or maker.info.space is MemorySpace.CONSTANT:
        return True
    if maker.opcode == "LOP3":
        return _pairs(maker) and bool(distances.intersection(maker.uses))
    own_registers = [used for used in maker.uses if register_file(used) is not RegisterFile.UNIFORM]
    return maker.opcode in _SCALES and len(own_registers) <= 1 and not _TURNS.intersection(maker.modifiers)


def _pairs(maker: Instruction) -> bool:
    """Whether an instruction is ``a ^ b``, which goes back and forth between two threads."""
    texts = maker.operand_texts
    return maker.opcode == "LOP3" and _XOR in texts and "RZ" in texts


_TURNS: Final = frozenset({"R", "HI", "X"})


def _is_base(function: Function, use: int, read: Register) -> bool:
    """Whether a uniform register holds where shared memory begins: nothing of a thread is in it."""
    if register_file(read) is not RegisterFile.UNIFORM:
        return False
    pending, visited = [(use, read)], set[int]()
    while pending:
        position, used = pending.pop()
        for definition in function.reaching.definitions(position, used) - visited:
            visited.add(definition)
            maker = function.instructions[definition]
            if maker.opcode not in _OF_BLOCK or "SR_TID" in maker.operands:
                return False
            pending += [(definition, used) for used in maker.uses]
    return bool(visited)


_OF_BLOCK: Final = frozenset({"S2UR", "UMOV", "ULEA", "ULDC", "LDCU", "UIADD3"})
