# SPDX-License-Identifier: Apache-2.0
"""How much independent work could stand between a def and its use, and what hinders it (GPA VI-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.accesses import DEVICE_SPACES, is_atomic, is_ordered, is_shared
from gpadvisor.evidence.accumulators import is_recurrence, kept_in_memory
from gpadvisor.evidence.arrays import (
    address_registers,
    bytes_apart,
    is_pointer_from_memory,
    same_array,
    same_pointer,
)
from gpadvisor.evidence.library_code import in_library_loop
from gpadvisor.evidence.loops import every_pass, loop_facts
from gpadvisor.model.instruction import Instruction, OpcodeClass, Pipe, Register
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import LINE_BYTES, CodeForm
from gpadvisor.model.program import Function
from gpadvisor.model.stalls import StallClass

_FENCES: Final = frozenset(
    {
        OpcodeClass.BARRIER,
        OpcodeClass.MEMORY_BARRIER,
        OpcodeClass.CLUSTER_BARRIER,
        OpcodeClass.MBARRIER,
        OpcodeClass.CALL,
    }
)
_SOURCES: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.ATOMIC, OpcodeClass.SHUFFLE, OpcodeClass.TRANSCENDENTAL}
)
"""What an operand may come from that cannot just be computed earlier."""
_LEAVES: Final = frozenset(
    {OpcodeClass.BRANCH, OpcodeClass.INDIRECT_BRANCH, OpcodeClass.RETURN, OpcodeClass.EXIT, OpcodeClass.NOP}
)
_WARP_FENCES: Final = frozenset({"WARPSYNC"})
_ARITHMETIC: Final = frozenset({Pipe.FMA, Pipe.FP64, Pipe.FP16, Pipe.TENSOR})
COVERING: Final = {
    # Instructions between def and use that cover most of the latency with a few warps per scheduler.
    StallClass.MEMORY: 40,
    StallClass.EXECUTION: 12,
    StallClass.FIXED_LATENCY: 4,
}
_AT_ONCE: Final = 3
"""A load used within so many instructions is used immediately."""
_WRITES: Final = frozenset({OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True)
class Room:
    """What can be put between a def and its use."""

    slots: int  # instructions, of the def's and the use's basic blocks
    obstacle: str | None  # what keeps the def from moving further up
    obstacle_index: int | None
    may_alias: bool  # the obstacle is a store that may write what the def reads


class Cure(Kind):
    """What a programmer can do where the compiler may not; all else it has scheduled as it is able to."""

    NO_ALIAS = "no alias"  # say that a store does not write what is loaded
    BEFORE_BARRIER = "before the barrier"
    BEFORE_CONDITION = "before the condition"  # with the neighbour that decides whether it is loaded
    ONE_AHEAD = "a pass ahead"  # load one pass of the loop ahead
    ATOMIC = "atomic"
    IN_REGISTER = "in a register"  # what each pass writes to one place
    LATE_STORE = "late store"  # to shared memory, behind the arithmetic that reads another buffer of it


@lru_cache(maxsize=512)
def room_to_move(function: Function, definition: int, use: int, distance: int) -> Room:
    """Count the instructions before a def that it may pass, and independent ones after the use.

    Args:
        function: of both.
        definition: instruction index of the def.
        use: instruction index of the use.
        distance: stop counting here.
    """
    before, obstacle, index, alias = _before(function, definition, distance)
    # Without an obstacle the count has gone round the loop, or reached what is wanted.
    after = 0 if obstacle is None else _after(function, definition, use, distance - before)
    return Room(before + after, obstacle, index, alias)


def _before(function: Function, definition: int, distance: int) -> tuple[int, str | None, int | None, bool]:
    """Instructions that a def can pass on its way up; arithmetic that makes its operands moves along."""
    moved = function.instructions[definition]
    inputs = set(moved.uses)
    start = function.blocks[function.block_of[definition]].start
    slots = 0
    for index in range(definition - 1, start - 1, -1):
        if slots >= distance:
            return slots, None, None, False
        instruction = function.instructions[index]
        if instruction.info.opclass in _FENCES:
            kind = "a call" if instruction.info.opclass is OpcodeClass.CALL else "a barrier"
            return slots, kind, index, False
        if inputs.intersection(instruction.defs):
            if instruction.info.opclass in _SOURCES:
                return slots, f"the {instruction.opcode} that makes its operand", index, False
            inputs.update(instruction.uses)
        elif may_write(moved, instruction):
            if is_ordered(moved):
                return slots, "a store before it, as it is volatile or atomic,", index, False
            return slots, "a store that may write what it reads", index, True
        else:
            slots += 1
    return _into_pass_before(function, definition, slots, distance)


def _into_pass_before(
    function: Function, definition: int, slots: int, distance: int
) -> tuple[int, str | None, int | None, bool]:
    """A def at the top of a loop can start in the pass before, unless that needs what it brings."""
    block = function.block_of[definition]
    start = function.blocks[block].start
    loop = function.innermost_loop(definition)
    if start > 0 and function.instructions[start - 1].info.opclass is OpcodeClass.CALL:
        return slots, "a call", start - 1, False
    if loop is None or function.loops[loop].header != block:
        return slots, "the start of its basic block", start, False
    facts = loop_facts(function, loop)
    if facts.barriers:
        index = next(i for i in facts.indices if function.instructions[i].info.opclass is OpcodeClass.BARRIER)
        return slots, "a barrier in its loop", index, False
    if is_recurrence(function, loop, definition):
        return slots, "its own result of the pass before", definition, False
    return min(distance, slots + len(facts.indices)), None, None, False


def may_write(load: Instruction, instruction: Instruction) -> bool:
    """Whether a store may change what a load reads; read-only loads are safe by their modifier."""
    if load.info.opclass is not OpcodeClass.LOAD or instruction.info.opclass not in _WRITES:
        return False
    if "CONSTANT" in load.modifiers or "NC" in load.modifiers:
        return False
    spaces = (load.info.space, instruction.info.space)
    return spaces[0] == spaces[1] or all(space in DEVICE_SPACES for space in spaces)


def _after(function: Function, definition: int, use: int, distance: int) -> int:
    """Instructions after a use, in its block, that need neither of both and could stand before it."""
    if distance <= 0:
        return 0
    tainted: set[Register] = {*function.instructions[use].defs, *function.instructions[definition].defs}
    slots = 0
    for index in range(use + 1, function.blocks[function.block_of[use]].end):
        instruction = function.instructions[index]
        if instruction.info.opclass in _FENCES or instruction.info.opclass in _LEAVES or slots >= distance:
            break
        if tainted.intersection(instruction.uses):
            tainted.update(instruction.defs)
        elif instruction.info.opclass not in _WRITES:
            slots += 1
    return slots


def cure_of(
    function: Function, definition: int, use: int, room: Room, distance: int, form: CodeForm
) -> Cure | None:
    """What can be done about one pair, or None where it is the compiler's affair."""
    instruction = function.instructions[definition]
    if in_library_loop(function, definition):
        return None
    if instruction.info.opclass is OpcodeClass.ATOMIC:
        return Cure.ATOMIC
    in_memory = kept_in_memory(function)
    if not in_memory.isdisjoint({definition, use}) or (room.may_alias and room.obstacle_index in in_memory):
        return Cure.IN_REGISTER
    if instruction.info.opclass is not OpcodeClass.LOAD or instruction.info.space not in DEVICE_SPACES:
        return None
    if store_behind(function, definition, use, distance) is not None:
        return Cure.LATE_STORE
    if neighbour_that_decides(function, definition) is not None:
        return Cure.BEFORE_CONDITION
    if room.obstacle is None:  # it could start a pass ahead
        return Cure.ONE_AHEAD if room.slots >= distance and _begins_pass(function, definition) else None
    if room.obstacle_index is None:
        return None
    if room.may_alias:
        store = room.obstacle_index
        same = same_array(function, definition, store) or same_pointer(function, definition, store)
        nameless = any(is_pointer_from_memory(function, access, form) for access in (definition, store))
        return None if same or nameless or _has_cache_hint(instruction) else Cure.NO_ALIAS
    held = function.instructions[room.obstacle_index].info.opclass
    return Cure.BEFORE_BARRIER if held is OpcodeClass.BARRIER else None


def neighbour_that_decides(function: Function, load: int) -> int | None:
    """The load before a condition whose value decides whether this one is done, of the same line of memory.

    The compiler keeps them apart, as the second may be of memory that must not be read.
    """
    block = function.blocks[function.block_of[load]]
    at, begin, behind = load, block.start, range(0)
    if function.instructions[load].guard is None and len(block.predecessors) == 1:
        before = function.blocks[block.predecessors[0]]
        at, begin, behind = before.end - 1, before.start, range(block.start, load)
    guard, reaching = function.instructions[at].guard, function.reaching
    if guard is None:
        return None
    for condition in reaching.definitions(at, guard.register):
        for used in function.instructions[condition].uses:
            for first in reaching.definitions(condition, used):
                between = [*range(first + 1, at), *behind]
                if begin <= first < condition and _loads_beside(function, first, load, between):
                    return first
    return None


def _loads_beside(function: Function, first: int, load: int, between: Sequence[int]) -> bool:
    """Whether a load may start with an earlier one, which brings the same line of memory."""
    one, moved = function.instructions[first], function.instructions[load]
    apart = bytes_apart(function, first, load)
    if one.info.opclass is not OpcodeClass.LOAD or one.info.space not in DEVICE_SPACES:
        return False
    if function.innermost_loop(first) != function.innermost_loop(load):
        return False  # what is needed once would be loaded in every pass
    registers = set(address_registers(function, load))
    passed = [function.instructions[index] for index in between]
    held = any(
        other.info.opclass in _FENCES or may_write(moved, other) or not registers.isdisjoint(other.defs)
        for other in passed
    )
    return apart is not None and 0 < abs(apart) < LINE_BYTES and not held


def store_behind(function: Function, definition: int, use: int, distance: int) -> tuple[int, int] | None:
    """Where what a loop loads could be stored to shared memory behind its arithmetic, as of two buffers.

    The compiler keeps a store in front of loads of the same array, though these read what a barrier before
    has made ready; until the next barrier nobody may read what is stored.

    Returns:
        The last arithmetic instruction of those that can stand between, and the barrier; None where a pass
        has too few of them there.
    """
    loop = function.innermost_loop(use)
    store = function.instructions[use]
    if store.info.opclass is not OpcodeClass.STORE or not is_shared(store) or loop is None:
        return None
    behind = [position for position in loop_facts(function, loop).indices if position > use]
    if loop != function.innermost_loop(definition) or not behind:
        return None
    registers = set(address_registers(function, use))
    work: list[int] = []
    loads = False
    for index in behind:
        instruction = function.instructions[index]
        if instruction.info.opclass is OpcodeClass.BARRIER and len(work) >= distance and loads:
            return work[-1], index
        if instruction.info.opclass in _FENCES or instruction.opcode in _WARP_FENCES:
            return None
        if is_shared(instruction) and instruction.info.opclass is OpcodeClass.LOAD:
            if same_pointer(function, use, index) or not registers.isdisjoint(
                address_registers(function, index)
            ):
                return None  # its own thread may read it back
            loads = True
        elif instruction.info.pipe in _ARITHMETIC and loads and every_pass(function, loop, index):
            work.append(index)
    return None


def _begins_pass(function: Function, definition: int) -> bool:
    """Whether a load stands in the block that each pass of its loop begins with, and nobody unrolled that."""
    loop = function.innermost_loop(definition)
    if loop is None or function.loops[loop].header != function.block_of[definition]:
        return False
    return loop_facts(function, loop).copies == 1


def _has_cache_hint(load: Instruction) -> bool:
    """Whether a load is an intrinsic's such as ``__ldcs``, in assembler, which no keyword moves."""
    return not {"EF", "EL", "EU", "LU", "NA"}.isdisjoint(load.modifiers)


def held_loads(function: Function, distance: int, form: CodeForm) -> Iterator[tuple[int, int, int]]:
    """Loads in loops that the compiler left next to their use: a store before them may write what they read.

    Where nothing holds a load, the compiler has moved it already; what else holds one (its address, a
    barrier, an atomic operation) has no cure that could be named without samples.

    Args:
        function: where to look.
        distance: instructions that would cover the latency of a load.
        form: where parameters are.

    Yields:
        The load, its use and the store.
    """
    for index, instruction in enumerate(function.instructions):
        if (
            instruction.info.opclass is OpcodeClass.LOAD
            and instruction.info.space in DEVICE_SPACES
            and function.innermost_loop(index) is not None
        ):
            use = _use_at_once(function, index)
            if use is None:
                continue
            room = room_to_move(function, index, use, distance)
            store = room.obstacle_index
            if store is None or is_atomic(function.instructions[store]):  # which costs more than the load
                continue
            if cure_of(function, index, use, room, distance, form) is Cure.NO_ALIAS:
                yield index, use, store


def _use_at_once(function: Function, index: int) -> int | None:
    results = set(function.instructions[index].defs)
    behind = range(index + 1, min(index + 1 + _AT_ONCE, len(function.instructions)))
    return next((index for index in behind if results.intersection(function.instructions[index].uses)), None)
