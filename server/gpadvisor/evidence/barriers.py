# SPDX-License-Identifier: Apache-2.0
"""Barriers of a block that order nothing in the code (GPA Table II)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from gpadvisor.evidence.accesses import is_memory, is_ordered, is_shared
from gpadvisor.evidence.alignment import Alignment
from gpadvisor.evidence.arrays import address_makers, has_parameters, same_array
from gpadvisor.model.ids import FunctionId, SourceLocation
from gpadvisor.model.instruction import (
    COMPUTING,
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
)
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import BANK_BYTES, WARP
from gpadvisor.model.program import Function, FunctionKind, Program, is_launched_by_library

BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER})
SHIFTS: Final = frozenset({"SHF", "USHF"})

_VALUE: Final = re.compile(r"\], R(\d+)")
"""What a store writes, behind its address."""


def is_barrier(function: Function, index: int) -> bool:
    """Whether an instruction is a barrier of the block or the cluster."""
    return function.instructions[index].info.opclass in BARRIERS


def is_whole_block(instruction: Instruction) -> bool:
    """``__syncthreads()``: barrier 0 for all threads, without a reduction and without a count."""
    return (
        instruction.info.opclass is OpcodeClass.BARRIER
        and "SYNC" in instruction.modifiers
        and instruction.operands.strip() in {"0x0", ""}
    )


_Place: TypeAlias = tuple[tuple[object, ...], range]


class Needless(Kind):
    """Why a barrier may be one too many."""

    NOTHING_SHARED = "nothing"  # no access on one side meets one on the other
    ONLY_STORES = "stores"  # shared memory is written on both sides and read on neither
    OWN = "own"  # shared memory is read by the thread that wrote it, and by no other anywhere


@lru_cache(maxsize=4)
def needless_barriers(
    program: Program, other_programs: tuple[Program, ...] | None = ()
) -> Mapping[tuple[FunctionId, int], Needless]:
    """Needless barriers of all kernels, of lines that have no needed one in any kernel.

    One line of a template or of an inlined function is a barrier of several kernels: it cannot go from one.

    Args:
        program: where they are looked for.
        other_programs: the other code that may have its lines; None where it is not known.
    """
    needed = {line for code in (program, *(other_programs or ())) for line in _needed_lines(code)}
    return {
        (function.id, index): kind
        for function in program.functions
        for index, kind in _needless_of(program, function).items()
        if (entry := function.lines[index]) is None or entry.location not in needed
        if other_programs is not None or not _is_shared_line(function, index)
    }


def asks_others(program: Program) -> bool:
    """Whether a barrier could go but for other code that may have its line."""
    return len(needless_barriers(program)) > len(needless_barriers(program, None))


def _is_shared_line(function: Function, index: int) -> bool:
    """Whether other kernels may have the line of an instruction: an inlined function's, or a template's."""
    entry = function.lines[index]
    return entry is not None and (bool(entry.inline) or "<" in function.demangled)


@lru_cache(maxsize=64)
def _needed_lines(program: Program) -> frozenset[SourceLocation]:
    """The lines of barriers that have to stay."""
    return frozenset(
        entry.location
        for function in program.functions
        for index, entry in enumerate(function.lines)
        if entry is not None and is_barrier(function, index)
        if index not in _needless_of(program, function)
    )


def _needless_of(program: Program, function: Function) -> Mapping[int, Needless]:
    if is_launched_by_library(function.demangled) or _calls_device_code(program, function):
        return {}
    return needless_in(function)


def _calls_device_code(program: Program, function: Function) -> bool:
    """Whether a function calls what may have barriers of its own."""
    return any(
        call.callee is None or program.functions[call.callee].kind is FunctionKind.DEVICE
        for call in function.calls
    )


@lru_cache(maxsize=64)
def needless_in(function: Function) -> Mapping[int, Needless]:
    """Barriers of a kernel that calls no device code and order no access of one thread before another's.

    All of them can go at once. Nothing is said where threads may come to the barriers on different ways:
    there one barrier can be the counterpart of another, and without one of them warps fall out of step.
    """
    barriers = [index for index in range(len(function.instructions)) if is_barrier(function, index)]
    code = [function.instructions[index] for index in barriers]
    if function.kind is not FunctionKind.KERNEL or not barriers:
        return {}
    if any(
        not is_whole_block(instruction) or instruction.guard is not None for instruction in code
    ) or _reads_clock(function):
        return {}
    if _reads_what_nothing_writes(function):
        return {}
    remaining = set(barriers)
    needless: dict[int, Needless] = {}
    for index in reversed(barriers):
        kind = _needless(function, index, remaining)
        if kind is not None:
            needless[index] = kind
            remaining.remove(index)
    blocks = {function.block_of[index] for index in barriers}
    if needless:
        alignment = Alignment(function)
        if not all(alignment.is_aligned(index, blocks) for index in barriers):
            return {}
    return needless


_CLOCKS: Final = ("SR_CLOCK", "SR_GLOBALTIMER")


def _reads_clock(function: Function) -> bool:
    """Whether time is measured, so that barriers may be there to begin and end together."""
    return any(
        instruction.info.opclass is OpcodeClass.SPECIAL_REGISTER
        and any(name in instruction.operands for name in _CLOCKS)
        for instruction in function.instructions
    )


def _reads_what_nothing_writes(function: Function) -> bool:
    """Whether shared memory is read and never written: the stores are missing, and the barriers are right."""
    spaces = {_kind(instruction) for instruction in function.instructions if is_memory(instruction)}
    read = (MemorySpace.SHARED, True) in spaces
    return read and not {(MemorySpace.SHARED, False), (MemorySpace.GENERIC, False)} & spaces


def _needless(function: Function, index: int, barriers: set[int]) -> Needless | None:
    before = _accesses(function, index, barriers, backwards=True)
    after = _accesses(function, index, barriers, backwards=False)
    if before is None or after is None:
        return None
    own = _reads_own(function, index, before, after)
    meeting = {
        (first_kind, second_kind)
        for position in before
        for to in after
        if _meet(
            first_kind := _kind(function.instructions[position]),
            second_kind := _kind(function.instructions[to]),
        )
        and not (own and (first_kind[0] is MemorySpace.SHARED or _in_two_arrays(function, position, to)))
    }
    if not meeting:
        alone = own and set(_shared_accesses(function)) <= {*before, *after}
        return Needless.OWN if alone else Needless.NOTHING_SHARED
    stores = (MemorySpace.SHARED, False)
    only_stores = all(pair == (stores, stores) for pair in meeting)
    # Elements are given a first value by other threads than those that then write them.
    first_values = any(_stores_constant(function, position) for position in (*before, *after))
    # A warp's sum may lie where another still writes, as in a union of scratch spaces.
    of_warps = any(_is_place_of_warp(function, position) for position in (*before, *after))
    return Needless.ONLY_STORES if only_stores and not first_values and not of_warps else None


def _shared_accesses(function: Function) -> list[int]:
    return [index for index, instruction in enumerate(function.instructions) if is_shared(instruction)]


def _reads_own(function: Function, barrier: int, before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether each thread reads from shared memory, behind a barrier, only what it wrote in front of it."""
    stores = [index for index in before if is_shared(function.instructions[index])]
    loads = [position for position in after if is_shared(function.instructions[position])]
    written = [_shared_place(function, store) for store in stores]
    if not loads or not all(
        function.instructions[store].info.opclass is OpcodeClass.STORE for store in stores
    ):
        return False
    if not all(_always_runs(function, store, barrier) for store in stores) and not (
        _is_nobody_elses(written) and {*_shared_accesses(function)} <= {*before, *after}
    ):
        return False
    read = [_shared_place(function, load) for load in loads]
    return all(
        function.instructions[load].info.opclass is OpcodeClass.LOAD
        and place is not None
        and any(
            written_place is not None and written_place[0] == place[0] and {*place[1]} <= {*written_place[1]}
            for written_place in written
        )
        for load, place in zip(loads, read, strict=True)
    )


def _is_nobody_elses(places: Sequence[_Place | None]) -> bool:
    """Whether places are each thread's own, in arrays that lie further apart than the threads of a warp."""
    starts = sorted({-1 if place is None else place[1].start for place in places})
    return starts[0] >= 0 and all(b - a >= WARP * BANK_BYTES for a, b in pairwise(starts))


def _always_runs(function: Function, index: int, barrier: int) -> bool:
    """Whether every thread at a barrier has run an instruction in front of it."""
    if function.instructions[index].guard is not None:
        return False
    block: int | None = function.block_of[barrier]
    if block == function.block_of[index]:
        return index < barrier
    while block is not None and block != function.block_of[index]:
        block = function.idom[block]
    return block is not None


_SHARED_PLACE: Final = re.compile(r"\[(R\d+)((?:\.\w+)?)(?:\+?(-?0x[0-9a-f]+))?\]")


def _shared_place(function: Function, index: int) -> _Place | None:
    """A thread's own place in shared memory: what its address is made of, and the bytes from there."""
    instruction = function.instructions[index]
    match = _SHARED_PLACE.search(instruction.operands)
    if match is None:
        return None
    own = register(RegisterFile.GPR, int(match[1][1:]))
    if not _is_place_of_thread(function, index, own):
        return None
    made_by = function.reaching.definitions(index, own)
    start = int(match[3] or "0", 16)
    return (match[1], match[2], frozenset(made_by)), range(start, start + (instruction.width_bytes or 4))


_LINEAR: Final = frozenset({"IMAD", "UIMAD", "IADD3", "UIADD3", "IADD", "VIADD", "LEA", "ULEA"})
"""What leaves different numbers different, as long as their strides are."""
_THREAD: Final = re.compile(r"SR_TID\.[XYZ]")


def _is_place_of_thread(function: Function, index: int, address: Register) -> bool:
    """Whether an address is a sum of multiples of threadIdx, with every axis that the function reads."""
    axes: set[str] = set()
    pending, visited = [(index, address)], set[int]()
    while pending:
        for definition in function.reaching.definitions(*pending.pop()) - visited:
            maker = function.instructions[definition]
            axes.update(_THREAD.findall(maker.operands))
            leftwards = maker.opcode in SHIFTS and "L" in maker.modifiers
            linear = maker.opcode in _LINEAR and not {"HI", "X"}.intersection(maker.modifiers)
            if maker.guard is not None or not (
                leftwards or linear or is_copy(maker) or maker.info.opclass is OpcodeClass.SPECIAL_REGISTER
            ):
                return False
            pending += [(definition, used) for used in maker.uses]
            visited.add(definition)
    return bool(axes) and axes == _axes(function)


def _is_place_of_warp(function: Function, index: int) -> bool:
    """Whether an access to shared memory goes to a place of several threads: of an index shifted down."""
    if not is_shared(function.instructions[index]):
        return False
    makers = [function.instructions[maker] for maker in address_makers(function, index)]
    return any(maker.opcode in SHIFTS and "R" in maker.modifiers for maker in makers)


@lru_cache(maxsize=4)
def _axes(function: Function) -> frozenset[str]:
    """The axes of threadIdx that a function reads."""
    return frozenset(
        name for instruction in function.instructions for name in _THREAD.findall(instruction.operands)
    )


def _in_two_arrays(function: Function, first: int, second: int) -> bool:
    return has_parameters(function, first, second) and not same_array(function, first, second)


def _stores_constant(function: Function, index: int) -> bool:
    """Whether a store to shared memory writes what is no thread's own: a number or a parameter."""
    store = function.instructions[index]
    if store.info.opclass is not OpcodeClass.STORE or store.info.space is not MemorySpace.SHARED:
        return False
    value = stored_value(store)
    for earlier in reversed(function.instructions[:index]):
        if value in earlier.defs:
            computed = earlier.info.opclass in _NO_ACCESS - {OpcodeClass.SPECIAL_REGISTER, OpcodeClass.CALL}
            return computed and not earlier.uses
    return True


def stored_value(store: Instruction) -> Register | None:
    """The register that a store writes to memory; None where that is zero."""
    match = _VALUE.search(store.operands)
    return None if match is None else register(RegisterFile.GPR, int(match[1]))


_Kind = tuple[MemorySpace, bool]
"""The space of an access, and whether it only reads."""


def _kind(instruction: Instruction) -> _Kind:
    space = instruction.info.space or MemorySpace.GENERIC
    return space, instruction.info.opclass is OpcodeClass.LOAD


def _meet(first: _Kind, second: _Kind) -> bool:
    """Whether two accesses of different threads may go to one place, and one of them writes."""
    either = {first[0], second[0]}
    return not (first[1] and second[1]) and (len(either) == 1 or MemorySpace.GENERIC in either)


def _accesses(function: Function, start: int, barriers: set[int], *, backwards: bool) -> list[int] | None:
    """Memory accesses between a barrier and the next ones; None where there is more to order than those."""
    result: list[int] = []
    visited: set[int] = set()
    block = function.blocks[function.block_of[start]]
    pending = [(block, range(start - 1, block.start - 1, -1) if backwards else range(start + 1, block.end))]
    while pending:
        owner, indices = pending.pop()
        for index in indices:
            if index in barriers:
                break
            if is_barrier(function, index):  # one that goes
                continue
            instruction = function.instructions[index]
            info = instruction.info
            if info.space in _PRIVATE or info.opclass in _NO_ACCESS or "CONSTANT" in instruction.modifiers:
                continue
            if info.opclass not in _PLAIN or info.space not in SHARED_BY_THREADS or is_ordered(instruction):
                return None
            result.append(index)
        else:
            ways = owner.predecessors if backwards else tuple(block_id for block_id, _ in owner.successors)
            for successor in ways:
                if successor in visited:
                    continue
                visited.add(successor)
                successor_block = function.blocks[successor]
                whole = range(successor_block.start, successor_block.end)
                pending.append((successor_block, whole[::-1] if backwards else whole))
    return result


_PRIVATE: Final = frozenset({MemorySpace.LOCAL, MemorySpace.CONSTANT})
SHARED_BY_THREADS: Final = frozenset({MemorySpace.SHARED, MemorySpace.GLOBAL, MemorySpace.GENERIC})
_PLAIN: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE})
_NO_ACCESS: Final = frozenset(
    {
        *COMPUTING,
        OpcodeClass.SHUFFLE,
        OpcodeClass.VOTE,
        OpcodeClass.SPECIAL_REGISTER,
        OpcodeClass.WARP_SYNC,
        OpcodeClass.BRANCH,
        OpcodeClass.CALL,  # of library math, which accesses nothing that threads share
        OpcodeClass.EXIT,
        OpcodeClass.NOP,
    }
)
"""What a barrier orders nothing of; whatever is neither here nor a plain access may need it."""


def is_copy(instruction: Instruction) -> bool:
    """Whether an instruction moves a value from one register to another."""
    return instruction.opcode in {"MOV", "UMOV"} or "MOV" in instruction.modifiers
