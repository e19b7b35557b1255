# SPDX-License-Identifier: Apache-2.0
"""Sums that a loop carries: recurrences, and elements of memory that each pass reads and writes."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.arrays import is_data, register_makers
from gpadvisor.evidence.loops import ADDITIONS, every_pass, immediate, last_writer, loop_facts
from gpadvisor.model.ids import BlockId, LoopId
from gpadvisor.model.instruction import (
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    register_name,
)
from gpadvisor.model.program import Function

_CHAIN_LIMIT: Final = 512
"""Instructions followed in search of a loop-carried chain; longer ones are taken for none."""


def is_recurrence(function: Function, loop: LoopId, definition: int) -> bool:
    """Whether an instruction needs its own result of the pass before, so that passes cannot overlap.

    A counter that steps by a constant does not count: its values are known ahead.
    """
    if function.instructions[definition].opcode in ADDITIONS and _step_of(function, definition) is not None:
        return False
    writers = _writers(function, loop)
    visited: set[int] = set()
    pending = [definition]
    while pending and len(visited) < _CHAIN_LIMIT:
        index = pending.pop()
        for register in function.instructions[index].uses:
            for writer in _reaching(writers.get(register, ()), index):
                if writer == definition:
                    return True
                if writer not in visited:
                    visited.add(writer)
                    pending.append(writer)
    return False


def _step_of(function: Function, index: int) -> int | None:
    instruction = function.instructions[index]
    return immediate(instruction) if set(instruction.defs).intersection(instruction.uses) else None


@lru_cache(maxsize=64)
def _writers(function: Function, loop: LoopId) -> dict[Register, tuple[int, ...]]:
    """The instructions of a loop that write each register."""
    writers: dict[Register, list[int]] = {}
    for index in loop_facts(function, loop).indices:
        for register in function.instructions[index].defs:
            writers.setdefault(register, []).append(index)
    return {register: tuple(writers) for register, writers in writers.items()}


def _reaching(writers: tuple[int, ...], use: int) -> tuple[int, ...]:
    """The writer before a use in program order, else (round the loop) the last one."""
    if not writers:
        return ()
    return (writers[bisect_left(writers, use) - 1],)


@lru_cache(maxsize=64)
def kept_in_memory(function: Function) -> frozenset[int]:
    """Loads and stores of one element that each pass of an innermost loop reads and writes again.

    Of a loop that is unrolled whole the passes stand one after the other.
    """
    return kept_in_loops(function).union(*kept_in_passes(function))


@lru_cache(maxsize=64)
def kept_in_loops(function: Function) -> frozenset[int]:
    """Loads and stores of an element that each pass of a loop, if it is not unrolled whole, writes again.

    The address does not change in the loop, and nothing in the loop lets other threads see the element; the
    compiler leaves it in memory where another access of the loop may be to the same place.
    """
    result: set[int] = set()
    for loop in function.loops:
        facts = loop_facts(function, loop.id)
        code = {index: function.instructions[index] for index in facts.indices}
        if facts.has_inner or any(instruction.info.opclass in _SHOWS_OTHERS for instruction in code.values()):
            continue
        changed = {written for instruction in code.values() for written in instruction.defs}
        by_place: dict[tuple[MemorySpace | None, str], list[int]] = {}
        for index, instruction in code.items():
            if (
                instruction.info.space in _HELD_SPACES
                and instruction.info.opclass in _PLAIN
                and "STRONG" not in instruction.modifiers
            ):
                by_place.setdefault((instruction.info.space, _address(instruction)), []).append(index)
        for (_, address), indices in by_place.items():
            moved = any(register_name(written) in _NAMES.findall(address) for written in changed)
            if moved or not _NAMES.search(address):
                continue
            loads = [index for index in indices if code[index].info.opclass is OpcodeClass.LOAD]
            stores = [index for index in indices if index not in loads]
            if stores and all(_is_picked_by_pass(function, loop.id, index) for index in stores):
                continue
            if loads and not _others_written(code, indices):
                continue  # nothing makes the compiler read it again: it is volatile
            if stores and (loads or any(_stores_sum(function, loop.id, index) for index in stores)):
                result.update(indices)
    return frozenset(result)


def _is_picked_by_pass(function: Function, loop: LoopId, index: int) -> bool:
    """Whether a condition without loaded data decides in which passes a store is done.

    It may pick another pass for each thread, where all of them write one element in turn.
    """
    guards = [(index, function.instructions[index].guard)]
    block: BlockId | None = BlockId(function.block_of[index])
    while block is not None and not every_pass(function, loop, function.blocks[block].start):
        block = function.idom[block]
        if block is not None:
            branch = function.blocks[block].end - 1
            guards.append((branch, function.instructions[branch].guard))
    return any(
        guard is not None
        and not any(is_data(function, maker) for maker in register_makers(function, place, guard.register))
        for place, guard in guards
    )


def _others_written(code: dict[int, Instruction], indices: list[int]) -> bool:
    """Whether something else in shared memory is written, or the element is in no shared memory.

    A volatile element of global memory is told apart by its modifier.
    """
    if code[indices[0]].info.space is not MemorySpace.SHARED:
        return True
    return any(
        instruction.info.space is MemorySpace.SHARED and instruction.info.opclass is OpcodeClass.STORE
        for index, instruction in code.items()
        if index not in indices
    )


@lru_cache(maxsize=64)
def kept_in_passes(function: Function) -> tuple[tuple[int, ...], ...]:
    """Stores of a line and block that overwrite each other, in order: all but the last could stay a register.

    Between any two of them there is a load that may read the element, by another register than theirs, which
    is why the compiler left them. Where only loads at other distances from the same register are between
    them, or the element itself is read, it is volatile: other threads read it. Where some threads leave
    between them, what they stored last stays.
    """
    groups: list[tuple[int, ...]] = []
    for block in function.blocks:
        runs: dict[tuple[MemorySpace | None, str], list[int]] = {}
        for index in range(block.start, block.end):
            instruction = function.instructions[index]
            space, opclass = instruction.info.space, instruction.info.opclass
            if opclass in _SHOWS_OTHERS or opclass is OpcodeClass.EXIT:
                groups += map(tuple, runs.values())
                runs = {}
            elif space in _HELD_SPACES and opclass in _PLAIN and "STRONG" not in instruction.modifiers:
                place = (space, _address(instruction))
                if opclass is OpcodeClass.LOAD or instruction.guard is not None:  # or of another branch
                    runs.pop(place, None)
                elif _NAMES.search(place[1]):
                    run = runs.setdefault(place, [])
                    if run and not _may_be_read(function, run[-1], index):
                        groups.append(tuple(run))
                        run.clear()
                    run.append(index)
            if runs:
                written = {register_name(register) for register in instruction.defs}
                moved = [key for key in runs if not written.isdisjoint(_NAMES.findall(key[1]))]
                groups += (tuple(runs.pop(key)) for key in moved)
        groups += map(tuple, runs.values())
    return tuple(run for run in groups if len(run) > 1 and _is_of_one_line(function, run))


def _is_of_one_line(function: Function, run: tuple[int, ...]) -> bool:
    """Whether the stores are of one statement, as those of unrolled passes are."""
    return len({None if (line := function.lines[index]) is None else line.location for index in run}) == 1


def _may_be_read(function: Function, first: int, last: int) -> bool:
    """Whether a load between two stores of a place may read it: not by the same register."""
    store = function.instructions[first]
    names = set(_NAMES.findall(_address(store)))
    return any(
        instruction.info.opclass is OpcodeClass.LOAD
        and instruction.info.space is store.info.space
        and names.isdisjoint(_NAMES.findall(_address(instruction)))
        for instruction in function.instructions[first + 1 : last]
    )


def _stores_sum(function: Function, loop: LoopId, store: int) -> bool:
    """Whether a store writes what its own value of the pass before goes into."""
    value = _VALUE.search(function.instructions[store].operands)
    if value is None:
        return False
    indices = list(loop_facts(function, loop).indices)
    writer = last_writer(function, indices, Register(int(value[1])), store)
    return writer is not None and is_recurrence(function, loop, writer)


_VALUE: Final = re.compile(r"\], R(\d+)")


_PLAIN: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE})
_HELD_SPACES: Final = frozenset({MemorySpace.SHARED, MemorySpace.GLOBAL, MemorySpace.GENERIC})
_SHOWS_OTHERS: Final = frozenset(
    {
        OpcodeClass.BARRIER,
        OpcodeClass.MEMORY_BARRIER,
        OpcodeClass.CLUSTER_BARRIER,
        OpcodeClass.MBARRIER,
        OpcodeClass.ATOMIC,
        OpcodeClass.REDUCTION,
        OpcodeClass.CALL,
        OpcodeClass.WARP_SYNC,
        OpcodeClass.NOP,  # what is left of __syncwarp()
    }
)
_NAMES: Final = re.compile(r"\bU?R\d+")
_BRACKETS: Final = re.compile(r"\[([^\[\]]*R\d[^\[\]]*)\]")


def _address(instruction: Instruction) -> str:
    """The address as the disassembler prints it, without the descriptor before it."""
    result = _BRACKETS.findall(instruction.operands)
    return result[-1].replace(".reuse", "") if result else ""
