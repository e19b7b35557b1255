# SPDX-License-Identifier: Apache-2.0
"""Loops whose passes other threads could do: nothing but counters goes from one pass to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from gpadvisor.evidence.arrays import address_makers, same_array
from gpadvisor.evidence.loops import ADDITIONS, is_counted, loop_facts, measured_trips
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import causes
from gpadvisor.model.blame import Blame
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import (
    Guard,
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    register_name,
)
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function

_GLOBAL: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
_ATOMIC: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})
STORES: Final = frozenset({OpcodeClass.STORE, *_ATOMIC})
ASKS_OTHERS: Final = frozenset(
    {
        OpcodeClass.BARRIER,
        OpcodeClass.CLUSTER_BARRIER,
        OpcodeClass.MBARRIER,
        OpcodeClass.MEMORY_BARRIER,
        OpcodeClass.CALL,
    }
)
_PREDICATE: Final = re.compile(r"U?P(?:\d+|T)$")
_MOVES: Final = frozenset({"MOV", "UMOV", "R2UR", "CS2R"})


@dataclass(frozen=True, slots=True)
class DivisibleLoop:
    """A loop that could be divided."""

    function: Function
    loop: LoopId
    trips: float | None  # for each entry, as counted; None where not


def divisible_loop(
    function: Function, profile: KernelProfile | None, blame: Blame | None
) -> DivisibleLoop | None:
    """The outermost loop whose passes need nothing of each other, with most of the samples if there are any.

    Each pass stores results in places of its own, or adds to memory; registers carry counters and addresses
    alone; no barrier, call or local array is in it; and no store goes to an array that the loop loads from.
    """
    executed = executed_warps(profile, function)
    for loop in sorted(function.loops, key=lambda candidate: (candidate.depth, -len(candidate.blocks))):
        if not is_divisible(function, loop.id) or not has_most(function, loop.id, blame):
            continue
        trips = None if executed is None else measured_trips(function, loop.id, executed)
        return DivisibleLoop(function, loop.id, trips)
    return None


def has_most(function: Function, loop: LoopId, blame: Blame | None) -> bool:
    """Whether most of the samples, if there are any, are due to a loop."""
    if blame is None or not blame.total_samples:
        return True
    return 2 * loop_samples(function, loop, blame) > blame.total_samples


def loop_samples(function: Function, loop: LoopId, blame: Blame) -> int:
    """Samples that are due to a loop."""
    rows = blame.rows
    inside = (rows.function == function.id) & np.isin(causes(blame), loop_facts(function, loop).indices)
    return int(rows.samples[inside].sum())


@lru_cache(maxsize=256)
def is_divisible(function: Function, loop: LoopId) -> bool:
    """Whether the passes of a loop need nothing of each other, whatever its samples are."""
    indices = loop_facts(function, loop).indices
    code = {index: function.instructions[index] for index in indices}
    if not function.loops[loop].reducible or not is_counted(function, loop) or leaves_early(function, loop):
        return False
    if any(
        instruction.info.opclass in ASKS_OTHERS or instruction.info.space is MemorySpace.LOCAL
        for instruction in code.values()
    ):
        return False
    stores = [
        position
        for position, instruction in code.items()
        if instruction.info.space in _GLOBAL and instruction.info.opclass in STORES
    ]
    loads = [
        position
        for position, instruction in code.items()
        if instruction.info.space in _GLOBAL and instruction.info.opclass is OpcodeClass.LOAD
    ]
    if not stores or any(same_array(function, store, load) for store in stores for load in loads):
        return False
    steps = _counters(function, loop, indices)
    return steps is not None and all(
        code[store].info.opclass in _ATOMIC or address_makers(function, store) & steps for store in stores
    )


def leaves_early(function: Function, loop: LoopId) -> bool:
    """Whether the loop ends elsewhere than where it begins or jumps back."""
    region = function.loops[loop]
    for number in region.blocks:
        block = function.blocks[number]
        after = {successor for successor, _ in block.successors}
        ends = function.instructions[block.end - 1].info.opclass is OpcodeClass.EXIT
        if (ends or after - region.blocks) and number != region.header and region.header not in after:
            return True
    return False


def _counters(function: Function, loop: LoopId, indices: tuple[int, ...]) -> frozenset[int] | None:
    """What writes the values that passes hand on, if all of them are counters; else None."""
    inside = frozenset(indices)
    result: set[int] = set()
    for register in _carried(function, loop):
        pending = list(_at_the_end(function, loop, register))
        while pending:
            index = pending.pop()
            if index in result:
                continue
            if not is_step(function, index, inside):
                return None
            result.add(index)
            pending += [
                definition
                for use in function.instructions[index].uses
                for definition in function.reaching.definitions(index, use) & inside
            ]
    return frozenset(result)


def _carried(function: Function, loop: LoopId) -> set[Register]:
    """Registers that a pass reads before it writes them, and that the loop writes."""
    blocks, header = function.loops[loop].blocks, function.loops[loop].header
    reads: dict[int, set[Register]] = {}
    writes: dict[int, set[Register]] = {}
    for number in blocks:
        block = function.blocks[number]
        reads[number], writes[number] = _read_first(function.instructions[block.start : block.end])
    live = {number: set(registers) for number, registers in reads.items()}
    changed = True
    while changed:
        changed = False
        for number in blocks:
            for after, _ in function.blocks[number].successors:
                if after in blocks and after != header:
                    more = live[after] - writes[number] - live[number]
                    changed = changed or bool(more)
                    live[number] |= more
    registers = {
        register for index in loop_facts(function, loop).indices for register in _defs(function, index)
    }
    return live[header] & registers


def _read_first(code: Sequence[Instruction]) -> tuple[set[Register], set[Register]]:
    """What a block reads before it writes it, and what it writes whatever its conditions are."""
    read: set[Register] = set()
    written: dict[Guard | None, set[Register]] = {None: set()}  # by the condition that it is written under
    for instruction in code:
        read |= set(instruction.uses) - written[None] - written.get(instruction.guard, set())
        written.setdefault(instruction.guard, set()).update(instruction.defs)
        if instruction.guard is not None:
            opposite = Guard(instruction.guard.register, negated=not instruction.guard.negated)
            written[None] |= written.get(opposite, set()) & set(instruction.defs)
        for guard in [entry for entry in written if entry is not None and entry.register in instruction.defs]:
            del written[guard]
    return read, written[None]


def _defs(function: Function, index: int) -> tuple[Register, ...]:
    return function.instructions[index].defs


def _at_the_end(function: Function, loop: LoopId, register: Register) -> Iterator[int]:
    """What of a loop may have written a register where it jumps back."""
    region = function.loops[loop]
    pending = [
        number
        for number in region.blocks
        if any(after == region.header for after, _ in function.blocks[number].successors)
    ]
    block_ids = set(pending)
    while pending:
        number = pending.pop()
        block = function.blocks[number]
        for index in range(block.end - 1, block.start - 1, -1):
            if register in function.instructions[index].defs:
                yield index
                if function.instructions[index].guard is None:
                    break
        else:
            before = {
                predecessor for predecessor in block.predecessors if predecessor in region.blocks
            } - block_ids
            if number != region.header:
                block_ids |= before
                pending += before


def is_step(function: Function, index: int, inside: frozenset[int]) -> bool:
    """Whether an instruction adds, moves or compares, and multiplies nothing that changes in the loop."""
    instruction = function.instructions[index]
    if instruction.info.opclass is OpcodeClass.PREDICATE:
        return instruction.opcode in {"ISETP", "UISETP", "PLOP3", "UPLOP3"}
    if instruction.opcode in ADDITIONS or instruction.opcode in _MOVES:
        return True
    if instruction.info.opclass is OpcodeClass.LOAD:
        return instruction.info.space is MemorySpace.CONSTANT
    if instruction.opcode not in {"IMAD", "UIMAD"}:
        return False
    return bool({"MOV", "IADD"} & set(instruction.modifiers)) or not any(
        function.reaching.definitions(index, factor) & inside for factor in multiplied(instruction)
    )


def multiplied(instruction: Instruction) -> set[Register]:
    """Registers of the first two of the three operands of a product and sum."""
    operands = [part.lstrip("-|~!").partition(".")[0] for part in instruction.operand_texts]
    names = [name for name in operands if not _PREDICATE.match(name)][1:3]
    return {register for register in instruction.uses if register_name(register) in names}
