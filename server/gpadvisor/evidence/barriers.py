# SPDX-License-Identifier: Apache-2.0
"""What barriers of a block stand for in the code: nothing at all, or a level of a tree (GPA Table II)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Final

from gpadvisor.evidence.alignment import Alignment
from gpadvisor.evidence.arrays import has_parameters, same_array
from gpadvisor.evidence.patterns import is_memory, is_ordered, is_shared
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import FunctionId, LoopId, SourceLocation
from gpadvisor.model.instruction import (
    COMPUTING,
    Instruction,
    MemorySpace,
    OpcodeClass,
    Register,
    RegisterFile,
    register,
)
from gpadvisor.model.program import Function, FunctionKind, Program

BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER})
_SHIFTS: Final = frozenset({"SHF", "USHF"})
_WARP: Final = 32
_LEVELS: Final = 3
"""Barriers in a row behind halved bounds from which on they are a tree and no chance."""

_VALUE: Final = re.compile(r"\], R(\d+)")
"""What a store writes, behind its address."""
_AND: Final = "0xc0"
"""What LOP3 calls ``a & b``."""
_MASK: Final = 3
"""The operand of a LOP3 into a predicate that holds its mask."""
_BELOW: Final = {"GE": 0, "LT": 0, "GT": 1, "LE": 1}
"""What is added to the number of a comparison for the bound that values stay below."""


def is_barrier(function: Function, index: int) -> bool:
    """Whether an instruction is a barrier of the block or the cluster."""
    return function.instructions[index].info.opclass in BARRIERS


def _is_whole_block(instruction: Instruction) -> bool:
    """``__syncthreads()``: barrier 0 for all threads, without a reduction and without a count."""
    return (
        instruction.info.opclass is OpcodeClass.BARRIER
        and "SYNC" in instruction.modifiers
        and instruction.operands.strip() in {"0x0", ""}
    )


class Needless(Enum):
    """Why a barrier may be one too many."""

    NOTHING_SHARED = "nothing"  # no access on one side meets one on the other
    ONLY_STORES = "stores"  # shared memory is written on both sides and read on neither
    OWN = "own"  # shared memory is read by the thread that wrote it, and by no other anywhere


@lru_cache(maxsize=4)
def needless_barriers(
    program: Program, others: tuple[Program, ...] | None = ()
) -> Mapping[tuple[FunctionId, int], Needless]:
    """Those of all kernels whose line has no barrier anywhere that is needed.

    One line of a template or of an inlined function is a barrier of several kernels: it cannot go from one.

    Args:
        program: where they are looked for.
        others: the other code that may have its lines; None where it is not known.
    """
    needed = {line for one in (program, *(others or ())) for line in _needed_lines(one)}
    return {
        (function.id, index): kind
        for function in program.functions
        if not _calls_device_code(program, function)
        for index, kind in needless_in(function).items()
        if (entry := function.lines[index]) is None or entry.location not in needed
        if others is not None or not _is_shared_line(function, index)
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
        if entry is not None and is_barrier(function, index) and index not in needless_in(function)
    )


def _calls_device_code(program: Program, function: Function) -> bool:
    """Whether a function calls what may have barriers of its own."""
    return any(
        call.callee is None or program.functions[call.callee].kind is FunctionKind.DEVICE
        for call in function.calls
    )


@lru_cache(maxsize=64)
def needless_in(function: Function) -> Mapping[int, Needless]:
    """Barriers of a kernel that order no access of one thread before one of another, by index.

    All of them can go at once. Nothing is said where threads may come to the barriers on different ways:
    there one barrier can be the counterpart of another, and without one of them warps fall out of step.
    """
    barriers = [index for index in range(len(function.instructions)) if is_barrier(function, index)]
    code = [function.instructions[index] for index in barriers]
    if function.kind is not FunctionKind.KERNEL or not barriers:
        return {}
    if any(not _is_whole_block(one) or one.guard is not None for one in code) or _reads_clock(function):
        return {}
    left = set(barriers)
    found: dict[int, Needless] = {}
    for index in reversed(barriers):
        kind = _needless(function, index, left)
        if kind is not None:
            found[index] = kind
            left.remove(index)
    blocks = {int(function.block_of[index]) for index in barriers}
    if found:
        alignment = Alignment(function)
        if not all(alignment.is_aligned(index, blocks) for index in barriers):
            return {}
    return found


def _reads_clock(function: Function) -> bool:
    """Whether time is measured, so that barriers may be there to begin and end together."""
    return any(
        one.info.opclass is OpcodeClass.SPECIAL_REGISTER and "CLOCK" in one.operands
        for one in function.instructions
    )


def _needless(function: Function, index: int, barriers: set[int]) -> Needless | None:
    before = _accesses(function, index, barriers, backwards=True)
    after = _accesses(function, index, barriers, backwards=False)
    if before is None or after is None:
        return None
    own = _reads_own(function, index, before, after)
    meeting = {
        (one, other)
        for at in before
        for to in after
        if _meet(one := _kind(function.instructions[at]), other := _kind(function.instructions[to]))
        and not (own and (one[0] is MemorySpace.SHARED or _in_two_arrays(function, at, to)))
    }
    if not meeting:
        alone = own and {*_shared_accesses(function)} <= {*before, *after}
        return Needless.OWN if alone else Needless.NOTHING_SHARED
    stores = (MemorySpace.SHARED, False)
    only_stores = all(pair == (stores, stores) for pair in meeting)
    # Elements are given a first value by other threads than those that then write them.
    first_values = any(_stores_constant(function, at) for at in (*before, *after))
    return Needless.ONLY_STORES if only_stores and not first_values else None


def _shared_accesses(function: Function) -> Iterator[int]:
    return (index for index, one in enumerate(function.instructions) if is_shared(one))


def _reads_own(function: Function, barrier: int, before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether each thread reads from shared memory, behind a barrier, only what it wrote in front of it."""
    stores = [at for at in before if is_shared(function.instructions[at])]
    loads = [at for at in after if is_shared(function.instructions[at])]
    written = [_shared_place(function, at) for at in stores if _always_runs(function, at, barrier)]
    read = [_shared_place(function, at) for at in loads]
    if not loads or len(written) < len(stores):
        return False
    if any(function.instructions[at].info.opclass is not OpcodeClass.STORE for at in stores):
        return False
    return all(
        function.instructions[at].info.opclass is OpcodeClass.LOAD
        and place is not None
        and any(one is not None and one[0] == place[0] and {*place[1]} <= {*one[1]} for one in written)
        for at, place in zip(loads, read, strict=True)
    )


def _always_runs(function: Function, index: int, barrier: int) -> bool:
    """Whether every thread at a barrier has run an instruction in front of it."""
    if function.instructions[index].guard is not None:
        return False
    block: int | None = int(function.block_of[barrier])
    if block == function.block_of[index]:
        return index < barrier
    while block is not None and block != function.block_of[index]:
        block = function.idom[block]
    return block is not None


_SHARED_PLACE: Final = re.compile(r"\[(R\d+)((?:\.\w+)?)(?:\+?(-?0x[0-9a-f]+))?\]")


def _shared_place(function: Function, index: int) -> tuple[tuple[object, ...], range] | None:
    """A thread's own place in shared memory: what its address is made of, and the bytes from there."""
    one = function.instructions[index]
    found = _SHARED_PLACE.search(one.operands)
    if found is None:
        return None
    own = register(RegisterFile.GPR, int(found[1][1:]))
    if not _is_place_of_thread(function, index, own):
        return None
    made_by = function.reaching.definitions(index, own)
    start = int(found[3] or "0", 16)
    return (found[1], found[2], frozenset(made_by)), range(start, start + (one.width_bytes or 4))


_LINEAR: Final = frozenset({"IMAD", "UIMAD", "IADD3", "UIADD3", "IADD", "VIADD", "LEA", "ULEA"})
"""What leaves different numbers different, as long as their strides are."""
_THREAD: Final = re.compile(r"SR_TID\.[XYZ]")


def _is_place_of_thread(function: Function, index: int, address: Register) -> bool:
    """Whether an address is a sum of multiples of threadIdx, with every axis that the function reads."""
    axes: set[str] = set()
    pending, seen = [(index, address)], set[int]()
    while pending:
        for at in function.reaching.definitions(*pending.pop()):
            maker = function.instructions[at]
            axes.update(_THREAD.findall(maker.operands))
            left = maker.opcode in _SHIFTS and "L" in maker.modifiers
            linear = maker.opcode in _LINEAR and not {"HI", "X"}.intersection(maker.modifiers)
            if maker.guard is not None or not (
                left or linear or _is_copy(maker) or maker.info.opclass is OpcodeClass.SPECIAL_REGISTER
            ):
                return False
            pending += [(at, used) for used in maker.uses if at not in seen]
            seen.add(at)
    return bool(axes) and axes == _axes(function)


@lru_cache(maxsize=4)
def _axes(function: Function) -> frozenset[str]:
    """The axes of threadIdx that a function reads."""
    return frozenset(name for one in function.instructions for name in _THREAD.findall(one.operands))


def _in_two_arrays(function: Function, first: int, second: int) -> bool:
    return has_parameters(function, first, second) and not same_array(function, first, second)


def _stores_constant(function: Function, index: int) -> bool:
    """Whether a store to shared memory writes what is no thread's own: a number or a parameter."""
    store = function.instructions[index]
    if store.info.opclass is not OpcodeClass.STORE or store.info.space is not MemorySpace.SHARED:
        return False
    value = _value(store)
    for earlier in reversed(function.instructions[:index]):
        if value in earlier.defs:
            computed = earlier.info.opclass in _NO_ACCESS - {OpcodeClass.SPECIAL_REGISTER}
            return computed and not earlier.uses
    return True


def _value(store: Instruction) -> Register | None:
    """The register that a store writes to memory; None where that is zero."""
    found = _VALUE.search(store.operands)
    return None if found is None else register(RegisterFile.GPR, int(found[1]))


_Kind = tuple[MemorySpace, bool]
"""The space of an access, and whether it only reads."""


def _kind(instruction: Instruction) -> _Kind:
    space = instruction.info.space or MemorySpace.GENERIC
    return space, instruction.info.opclass is OpcodeClass.LOAD


def _meet(one: _Kind, other: _Kind) -> bool:
    """Whether two accesses of different threads may go to one place, and one of them writes."""
    either = {one[0], other[0]}
    return not (one[1] and other[1]) and (len(either) == 1 or MemorySpace.GENERIC in either)


def _accesses(function: Function, start: int, barriers: set[int], *, backwards: bool) -> list[int] | None:
    """Memory accesses between a barrier and the next ones; None where there is more to order than those."""
    found: list[int] = []
    seen: set[int] = set()
    block = function.blocks[int(function.block_of[start])]
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
            if info.opclass not in _PLAIN or info.space not in _SPACES or is_ordered(instruction):
                return None
            found.append(index)
        else:
            ways = owner.predecessors if backwards else tuple(way for way, _ in owner.successors)
            for other in (function.blocks[way] for way in ways if way not in seen):
                seen.add(other.id)
                whole = range(other.start, other.end)
                pending.append((other, whole[::-1] if backwards else whole))
    return found


_PRIVATE: Final = frozenset({MemorySpace.LOCAL, MemorySpace.CONSTANT})
_SPACES: Final = frozenset({MemorySpace.SHARED, MemorySpace.GLOBAL, MemorySpace.GENERIC})
_PLAIN: Final = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE})
_NO_ACCESS: Final = frozenset(
    {
        *COMPUTING,
        OpcodeClass.SHUFFLE,
        OpcodeClass.VOTE,
        OpcodeClass.SPECIAL_REGISTER,
        OpcodeClass.WARP_SYNC,
        OpcodeClass.BRANCH,
        OpcodeClass.EXIT,
        OpcodeClass.NOP,
    }
)
"""What a barrier orders nothing of; whatever is neither here nor a plain access may need it."""


@lru_cache(maxsize=64)
def tree_barriers(function: Function) -> tuple[int, ...]:
    """Barriers at each level of a tree reduction or scan: its bound halves (or doubles) between them."""
    found = [
        index
        for loop in function.loops
        if _has_shared_tree(function, loop.id)
        for index in loop_indices(function, loop.id)
        if is_barrier(function, index)
    ]
    return tuple(sorted({*found, *_unrolled_tree(function)}))


def in_level_loop(function: Function, index: int) -> bool:
    """Whether an instruction stands in a loop with a barrier whose bound or distance halves or doubles."""
    for loop in function.enclosing_loops(index):
        code = [function.instructions[at] for at in loop_indices(function, loop)]
        if any(map(_is_whole_block, code)) and _halved(code):
            return True
    return False


def _has_shared_tree(function: Function, loop: LoopId) -> bool:
    """A loop with a barrier, a bound that shifts by one bit per pass, and values of threads added up."""
    indices = loop_indices(function, loop)
    code = [function.instructions[index] for index in indices]
    if any(other.parent == loop for other in function.loops):
        return False
    if sum(one.info.opclass is OpcodeClass.BARRIER for one in code) not in {1, 2}:
        return False
    bounds = _halved(code)
    compared = [one for one in code if one.opcode in _COMPARES and bounds.intersection(one.uses)]
    if not compared:
        return False
    if _stops_at_warp(code, bounds):
        return False
    with_thread = [one for one in compared if any(used not in bounds for used in one.uses)]
    return _adds_up(code, with_thread)


_COMPARES: Final = frozenset({"ISETP", "UISETP"})
_SELECTS: Final = frozenset({"FMNMX", "IMNMX", "VIMNMX", "UIMNMX", "HMNMX2", "FMNMX3", "VIMNMX3"})
_ADDS: Final = frozenset(
    {
        "FADD",
        "DADD",
        "HADD2",
        "IADD3",
        "IADD",
        "VIADD",
        "FFMA",
        "DFMA",
        "HFMA2",
        "IMAD",
        "FMUL",
        "DMUL",
        "LOP3",
    }
)


def _adds_up(code: Sequence[Instruction], bounding: Sequence[Instruction]) -> bool:
    """Whether values in memory become fewer, as in a reduction or a scan; in sorts and butterflies all stay.

    Args:
        code: of one level.
        bounding: comparisons of a thread's number with the level's bound.
    """
    memory = [one for one in code if one.info.space in _SPACES]
    loads = [one for one in memory if one.info.opclass is OpcodeClass.LOAD]
    stores = [one for one in memory if one.info.opclass is OpcodeClass.STORE]
    made_by: dict[Register, Instruction] = {}
    makers = []
    for one in (*code, *code):  # a value may be made in the pass before
        if one in stores:
            value = _value(one)
            makers += [made_by[value]] if value in made_by else []
        if "MOV" not in one.modifiers:
            made_by.update(dict.fromkeys(one.defs, one))
    if not loads or not any(maker.opcode in _ADDS | _SELECTS for maker in makers):
        return False
    if len(loads) >= 2 * len(stores):
        return True
    predicates = {written for one in bounding for written in one.defs}
    by_bound = any(one.guard is not None and one.guard.register in predicates for one in code)
    return by_bound and any(maker.opcode in _ADDS for maker in makers)


def _halved(code: Sequence[Instruction]) -> set[Register]:
    """What shifts by one bit from pass to pass, in place or by way of a copy."""
    copies = [one for one in code if _is_copy(one)]
    return {
        written
        for one in code
        if _shifts_by_one(one)
        for written in one.defs
        if _copies_of(written, copies).intersection(one.uses)
    }


def _copies_of(made: Register, copies: Sequence[Instruction]) -> set[Register]:
    """A register and those that its value gets to, by one copy or, as in debug builds, by several."""
    held = {made}
    while True:
        more = {written for one in copies if held.intersection(one.uses) for written in one.defs} - held
        if not more:
            return held
        held |= more


def _stops_at_warp(code: Sequence[Instruction], bounds: set[Register]) -> bool:
    """Whether a bound that falls is left at 32 or more, so that one warp does the rest by itself."""
    if not any("R" in one.modifiers for one in code if bounds.intersection(one.defs)):
        return False
    held = bounds.union(*(one.uses for one in code if _is_copy(one) and bounds.intersection(one.defs)))
    held |= {
        written for one in code if _is_copy(one) and bounds.intersection(one.uses) for written in one.defs
    }
    return any(
        one.opcode in _COMPARES
        and held.intersection(one.uses)
        and any(int(number, 16) >= _WARP for number in _HEX.findall(one.operands))
        for one in code
    )


_HEX: Final = re.compile(r"\b0x[0-9a-f]+\b")


def _is_copy(instruction: Instruction) -> bool:
    return instruction.opcode in {"MOV", "UMOV"} or "MOV" in instruction.modifiers


def _shifts_by_one(instruction: Instruction) -> bool:
    if instruction.opcode in _SHIFTS:
        return "0x1" in [part.strip() for part in instruction.operands.split(",")]
    doubles = instruction.opcode in {"IMAD", "UIMAD"} and "SHL" in instruction.modifiers
    return doubles and "0x2" in [part.strip() for part in instruction.operands.split(",")]


def _unrolled_tree(function: Function) -> list[int]:
    """The barriers of a tree whose levels the compiler has written out, with a constant bound for each.

    Only levels that fit in a warp count: those need no barrier of the block.
    """
    run: list[tuple[int, int]] = []
    found: list[int] = []
    level = 0
    for index, instruction in enumerate(function.instructions):
        if _is_whole_block(instruction):
            bounds = dict(_level_bounds(function, level, index))
            bound = next(iter(bounds.values()), None)
            if bound is not None and not _adds_up(function.instructions[level:index], [*bounds]):
                bound = None
            if bound is None or (run and run[-1][1] not in {2 * bound, bound / 2}):
                found += _levels(run)
                run = []
            if bound is not None:
                run.append((index, bound))
            level = index + 1
    return found + _levels(run)


_NEAR: Final = 64
"""Instructions in front of a condition's use in which it is made: a level of a tree has some ten."""


def _level_bounds(function: Function, start: int, end: int) -> Iterator[tuple[Instruction, int]]:
    """The conditions of what is stored between two barriers, each with its power of two."""
    for index in range(start, end):
        one = function.instructions[index]
        if one.guard is None or not (is_memory(one) or one.info.opclass is OpcodeClass.BRANCH):
            continue
        condition = next(
            (
                made
                for made in reversed(function.instructions[max(index - _NEAR, 0) : index])
                if one.guard.register in made.defs
            ),
            None,
        )
        bound = None if condition is None else _power_bound(condition)
        if condition is not None and bound is not None:
            yield condition, bound


def _levels(run: list[tuple[int, int]]) -> list[int]:
    return [index for index, bound in run if bound <= _WARP] if len(run) >= _LEVELS else []


def _power_bound(instruction: Instruction) -> int | None:
    """The n of ``thread < n`` or ``thread % n`` for a power of two, however the compiler turned it."""
    values = [part.strip() for part in instruction.operands.split(",")]
    if instruction.opcode == "LOP3" and _AND in values and len(values) > _MASK:
        mask = int(values[_MASK], 16) if values[_MASK].startswith("0x") else 0
        return mask + 1 if mask & (mask + 1) == 0 and mask > 0 else None
    if instruction.opcode not in _COMPARES:
        return None
    numbers = [int(value, 16) for value in values if value.startswith("0x")]
    below = next((_BELOW[name] for name in instruction.modifiers if name in _BELOW), None)
    if len(numbers) != 1 or below is None:
        return None
    bound = numbers[0] + below
    return bound if bound > 0 and bound & (bound - 1) == 0 else None
