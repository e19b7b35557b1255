# SPDX-License-Identifier: Apache-2.0
"""What barriers of a block stand for in the code: nothing at all, or a level of a tree (GPA Table II)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from gpadvisor.blamer.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.program import Block, Function

BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER})
_ORDERED: Final = frozenset(
    {
        OpcodeClass.MEMORY_BARRIER,
        OpcodeClass.MBARRIER,
        OpcodeClass.DEPENDENCY_BARRIER,
        OpcodeClass.CALL,
        OpcodeClass.INDIRECT_BRANCH,
        OpcodeClass.RETURN,
        OpcodeClass.UNKNOWN,
    }
)
"""Beside memory accesses, what a barrier may be there for."""
_SHIFTS: Final = frozenset({"SHF", "USHF"})
_WARP: Final = 32
_LEVELS: Final = 3
"""Barriers in a row behind halved bounds from which on they are a tree and no chance."""

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


@lru_cache(maxsize=64)
def redundant_barriers(function: Function) -> tuple[int, ...]:
    """Barriers that on every path follow another one with no memory access, fence or call in between."""
    if not any(_is_whole_block(one) for one in function.instructions):
        return ()
    clean_at_end = _clean_at_end(function)
    found = []
    for block in function.blocks:
        clean = _clean_at_start(block, clean_at_end)
        for index in range(block.start, block.end):
            instruction = function.instructions[index]
            if clean and _is_whole_block(instruction):
                found.append(index)
            clean = _after(instruction, clean=clean)
    return tuple(found)


def _after(instruction: Instruction, *, clean: bool) -> bool:
    """Whether nothing but a barrier has happened, behind an instruction."""
    if _is_whole_block(instruction):
        return clean or instruction.guard is None  # under a predicate it may be no barrier at all
    info = instruction.info
    touches = info.space is not None and info.space is not MemorySpace.CONSTANT
    if touches or info.opclass in _ORDERED or info.opclass in BARRIERS or not info.known:
        return False
    return clean


def _clean_at_start(block: Block, clean_at_end: list[bool]) -> bool:
    """The caller comes in at the first block, whatever else jumps there."""
    before = block.predecessors
    return block.start > 0 and bool(before) and all(clean_at_end[one] for one in before)


def _clean_at_end(function: Function) -> list[bool]:
    """By block, the greatest fixed point: every block is clean until a path shows otherwise."""
    clean = [True] * len(function.blocks)
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            now = _clean_at_start(block, clean)
            for index in range(block.start, block.end):
                now = _after(function.instructions[index], clean=now)
            if clean[block.id] and not now:
                clean[block.id] = False
                changed = True
    return clean


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


def _has_shared_tree(function: Function, loop: LoopId) -> bool:
    """A loop with a barrier, a bound that shifts by one bit per pass, and shared memory read and written."""
    indices = loop_indices(function, loop)
    code = [function.instructions[index] for index in indices]
    if any(other.parent == loop for other in function.loops):
        return False
    if sum(one.info.opclass is OpcodeClass.BARRIER for one in code) not in {1, 2}:
        return False
    shared = {one.info.opclass for one in code if one.info.space is MemorySpace.SHARED}
    if not {OpcodeClass.LOAD, OpcodeClass.STORE} <= shared:
        return False
    bounds = {register for one in code if _shifts_itself(one) for register in one.defs}
    compared = [one for one in code if one.opcode in {"ISETP", "UISETP"}]
    return any(bounds.intersection(one.uses) for one in compared)


def _shifts_itself(instruction: Instruction) -> bool:
    if not set(instruction.defs).intersection(instruction.uses):
        return False
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
    bound: int | None = None
    for index, instruction in enumerate(function.instructions):
        if instruction.opcode in {"ISETP", "UISETP"}:
            bound = _power_bound(instruction) or bound
        elif _is_whole_block(instruction):
            if bound is None or (run and 2 * bound != run[-1][1]):
                found += _levels(run)
                run = []
            if bound is not None:
                run.append((index, bound))
            bound = None
    return found + _levels(run)


def _levels(run: list[tuple[int, int]]) -> list[int]:
    return [index for index, bound in run if bound <= _WARP] if len(run) >= _LEVELS else []


def _power_bound(instruction: Instruction) -> int | None:
    """The n of a comparison ``thread < n`` with a power of two, however the compiler turned it."""
    values = [part.strip() for part in instruction.operands.split(",")]
    numbers = [int(value, 16) for value in values if value.startswith("0x")]
    below = next((_BELOW[name] for name in instruction.modifiers if name in _BELOW), None)
    if len(numbers) != 1 or below is None:
        return None
    bound = numbers[0] + below
    return bound if bound > 0 and bound & (bound - 1) == 0 else None
