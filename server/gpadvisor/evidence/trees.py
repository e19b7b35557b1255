# SPDX-License-Identifier: Apache-2.0
"""Barriers that stand at the levels of a tree, and how its threads leave it (GPA Table II)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from gpadvisor.evidence.accesses import is_global, is_memory
from gpadvisor.evidence.barriers import (
    SHARED_BY_THREADS,
    SHIFTS,
    is_barrier,
    is_copy,
    is_whole_block,
    stored_value,
)
from gpadvisor.evidence.lanes import numbers_of
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.advice import StaticSite
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function

_LEVELS: Final = 3
"""Barriers in a row behind halved bounds from which on they are a tree and no chance."""
_AND: Final = "0xc0"
"""What LOP3 calls ``a & b``."""
_MASK: Final = 3
"""The operand of a LOP3 into a predicate that holds its mask."""
_BELOW: Final = {"GE": 0, "LT": 0, "GT": 1, "LE": 1}
"""What is added to the number of a comparison for the bound that values stay below."""


@lru_cache(maxsize=64)
def tree_barriers(function: Function) -> tuple[int, ...]:
    """Barriers at each level of a tree reduction or scan: its bound halves (or doubles) between them.

    Trees down the columns of a block are none: the values that they join are of different warps.
    """
    levels = [
        index
        for loop in function.loops
        if _has_shared_tree(function, loop.id)
        and not any(_is_of_rows(function, index) for index in loop_indices(function, loop.id))
        for index in loop_indices(function, loop.id)
        if is_barrier(function, index)
    ]
    return tuple(sorted({*levels, *_unrolled_tree(function)}))


@lru_cache(maxsize=64)
def joins_doubles(function: Function, barrier: int) -> bool:
    """Whether the level of a tree in front of a barrier adds up doubles."""
    loop = function.innermost_loop(barrier)
    level = range(next(filter(partial(is_barrier, function), range(barrier - 1, -1, -1)), 0), barrier)
    return any(
        function.instructions[index].info.opclass is OpcodeClass.FLOAT64
        for index in (level if loop is None else loop_indices(function, loop))
    )


def _is_of_rows(function: Function, index: int) -> bool:
    """Whether threads are told apart by the row that they are in, and not by their place in it."""
    if function.instructions[index].opcode not in _COMPARES:
        return False
    numbers = numbers_of(function, index, ("SR_TID.X", "SR_TID.Y", "SR_TID.Z"))
    return bool(numbers) and "SR_TID.X" not in numbers


def is_all_that_loops_access(function: Function) -> bool:
    """Whether a tree in loops makes all accesses to memory that a function repeats."""
    trees = [loop for loop in function.loops if _has_shared_tree(function, loop.id)]
    inside = {index for loop in trees for index in loop_indices(function, loop.id)}
    repeated = {index for loop in function.loops for index in loop_indices(function, loop.id)} - inside
    return bool(trees) and not any(is_memory(function.instructions[index]) for index in repeated)


_FEW_LOADS: Final = 2
"""Elements of a thread from which on more of them are no plain gain."""


def has_few_elements(function: Function) -> bool:
    """Whether a thread brings one or two elements to a tree with one barrier at each level."""
    trees = [loop.id for loop in function.loops if _has_shared_tree(function, loop.id)]
    inside = [index for loop in trees for index in loop_indices(function, loop)]
    barriers = sum(is_barrier(function, index) for index in inside)
    loads = [
        index
        for index in set(range(len(function.instructions))).difference(inside)
        if function.instructions[index].info.opclass is OpcodeClass.LOAD
        and is_global(function.instructions[index])
    ]
    return is_all_that_loops_access(function) and barriers == len(trees) and len(loads) <= _FEW_LOADS


def in_level_loop(function: Function, index: int) -> bool:
    """Whether an instruction stands in a loop with a barrier whose bound or distance halves or doubles."""
    for loop in function.enclosing_loops(index):
        code = [function.instructions[position] for position in loop_indices(function, loop)]
        if any(map(is_whole_block, code)) and halved(code):
            return True
    return False


def leaves_by_remainder(function: Function, loop: LoopId) -> bool:
    """Whether threads take part in a level by ``thread % bound == 0``: some of every warp, in every level.

    Such a test is of a remainder or a mask that the loop computes from the bound that doubles or halves.
    """
    code = [function.instructions[index] for index in loop_indices(function, loop)]
    bounds = halved(code)
    return any(
        _is_of_remainder(code[:position], instruction, set(tested), bounds)
        for position, instruction in enumerate(code)
        if (tested := _tested_for_zero(instruction))
    )


def go_with_remainders_of_trees(functions: Iterable[Function], sites: Iterable[StaticSite]) -> bool:
    """Whether each place is in a level that threads leave by a remainder: neighbours need none."""
    by_id = {function.id: function for function in functions}
    return all(
        any(
            _has_shared_tree(function, loop) and leaves_by_remainder(function, loop)
            for function in (by_id[site.function],)
            for loop in function.enclosing_loops(site.index)
        )
        for site in sites
    )


def _tested_for_zero(instruction: Instruction) -> tuple[Register, ...]:
    """What is compared with zero; of ``(a & b) != 0`` in one instruction, a and b."""
    values = instruction.operand_texts
    equal = instruction.opcode in _COMPARES and {"NE", "EQ"}.intersection(instruction.modifiers)
    if equal and "RZ" in values[2:4]:
        return instruction.uses
    masks = instruction.opcode == "LOP3" and values[0].startswith("P") and _AND in values
    return instruction.uses if masks else ()


_DIVIDES: Final = frozenset({"MUFU", "LOP3"})


def _is_of_remainder(
    before: Sequence[Instruction], test: Instruction, registers: set[Register], bounds: set[Register]
) -> bool:
    """Whether a test asks what a division or a mask has made of a bound, by the code in front of it."""
    divides = test.opcode in _DIVIDES
    for instruction in reversed(before):
        if bounds & registers and divides:
            return True
        if not registers.intersection(instruction.defs):
            continue
        divides = divides or instruction.opcode in _DIVIDES
        if instruction.guard is None:
            registers = registers.difference(instruction.defs)
        registers = registers.union(instruction.uses)
    return divides and bool(bounds & registers)


def _has_shared_tree(function: Function, loop: LoopId) -> bool:
    """A loop with a barrier, a bound that shifts by one bit per pass, and values of threads added up."""
    indices = loop_indices(function, loop)
    code = [function.instructions[index] for index in indices]
    if any(inner.parent == loop for inner in function.loops):
        return False
    if sum(instruction.info.opclass is OpcodeClass.BARRIER for instruction in code) not in {1, 2}:
        return False
    bounds = halved(code)
    compared = [
        instruction
        for instruction in code
        if instruction.opcode in _COMPARES and bounds.intersection(instruction.uses)
    ]
    if not compared:
        return False
    if _stops_at_warp(code, bounds):
        return False
    with_thread = [
        instruction for instruction in compared if any(used not in bounds for used in instruction.uses)
    ]
    return _adds_up(code, with_thread)


_COMPARES: Final = frozenset({"ISETP", "UISETP"})
SELECTS: Final = frozenset({"FMNMX", "IMNMX", "VIMNMX", "UIMNMX", "HMNMX2", "FMNMX3", "VIMNMX3"})
ADDS: Final = frozenset(
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
    memory = [instruction for instruction in code if instruction.info.space in SHARED_BY_THREADS]
    loads = [instruction for instruction in memory if instruction.info.opclass is OpcodeClass.LOAD]
    stores = [instruction for instruction in memory if instruction.info.opclass is OpcodeClass.STORE]
    made_by: dict[Register, Instruction] = {}
    makers = []
    for instruction in (*code, *code):  # a value may be made in the pass before
        if instruction in stores:
            value = stored_value(instruction)
            makers += [made_by[value]] if value in made_by else []
        if "MOV" not in instruction.modifiers:
            made_by.update(dict.fromkeys(instruction.defs, instruction))
    if not loads or not any(maker.opcode in ADDS | SELECTS for maker in makers):
        return False
    if len(loads) >= 2 * len(stores):
        return True
    predicates = {written for instruction in bounding for written in instruction.defs}
    by_bound = any(
        instruction.guard is not None and instruction.guard.register in predicates for instruction in code
    )
    return by_bound and any(maker.opcode in ADDS for maker in makers)


def halved(code: Sequence[Instruction]) -> set[Register]:
    """What shifts by one bit from pass to pass, in place or by way of a copy."""
    copies = [instruction for instruction in code if is_copy(instruction)]
    return {
        written
        for instruction in code
        if _shifts_by_one(instruction)
        for written in instruction.defs
        if _copies_of(written, copies).intersection(instruction.uses)
    }


def _copies_of(register: Register, copies: Sequence[Instruction]) -> set[Register]:
    """A register and those that its value gets to, by one copy or, as in debug builds, by several."""
    held = {register}
    while True:
        more = {written for copy in copies if held.intersection(copy.uses) for written in copy.defs} - held
        if not more:
            return held
        held |= more


def _stops_at_warp(code: Sequence[Instruction], bounds: set[Register]) -> bool:
    """Whether a bound that falls is left at 32 or more, so that one warp does the rest by itself."""
    falling = {
        written
        for instruction in code
        if "R" in instruction.modifiers
        for written in bounds.intersection(instruction.defs)
    }
    if not falling:
        return False
    held = falling.union(
        *(
            instruction.uses
            for instruction in code
            if is_copy(instruction) and falling.intersection(instruction.defs)
        )
    )
    held |= {
        written
        for instruction in code
        if is_copy(instruction) and falling.intersection(instruction.uses)
        for written in instruction.defs
    }
    return any(
        instruction.opcode in _COMPARES
        and held.intersection(instruction.uses)
        and any(int(number, 16) >= WARP for number in _HEX.findall(instruction.operands))
        for instruction in code
    )


_HEX: Final = re.compile(r"\b0x[0-9a-f]+\b")


def _shifts_by_one(instruction: Instruction) -> bool:
    if instruction.opcode in SHIFTS:
        return "0x1" in instruction.operand_texts
    doubles = instruction.opcode in {"IMAD", "UIMAD"} and "SHL" in instruction.modifiers
    return doubles and "0x2" in instruction.operand_texts


def _unrolled_tree(function: Function) -> list[int]:
    """The barriers of a tree whose levels the compiler has written out, with a constant bound for each.

    Only levels that fit in a warp count: those need no barrier of the block.
    """
    run: list[tuple[int, int]] = []
    levels: list[int] = []
    level = 0
    for index, instruction in enumerate(function.instructions):
        if is_whole_block(instruction):
            bounds = dict(_level_bounds(function, level, index))
            bound = next(iter(bounds.values()), None)
            conditions = [function.instructions[at] for at in bounds]
            joins = bool(bounds) and _adds_up(function.instructions[level:index], conditions)
            if not joins or any(_is_of_rows(function, at) for at in bounds):
                bound = None
            if bound is None or (run and run[-1][1] not in {2 * bound, bound / 2}):
                levels += _levels(run)
                run = []
            if bound is not None:
                run.append((index, bound))
            level = index + 1
    return levels + _levels(run)


_NEAR: Final = 64
"""Instructions in front of a condition's use in which it is made: a level of a tree has some ten."""


def _level_bounds(function: Function, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of the conditions of what is stored between two barriers, each with its power of two."""
    for index in range(start, end):
        instruction = function.instructions[index]
        if instruction.guard is None or not (
            is_memory(instruction) or instruction.info.opclass is OpcodeClass.BRANCH
        ):
            continue
        condition = next(
            (
                at
                for at in range(index - 1, max(index - _NEAR, 0) - 1, -1)
                if instruction.guard.register in function.instructions[at].defs
            ),
            None,
        )
        bound = None if condition is None else _power_bound(function.instructions[condition])
        if condition is not None and bound is not None:
            yield condition, bound


def _levels(run: list[tuple[int, int]]) -> list[int]:
    """Those of a run that are one warp's affair; none where the last barrier is behind all its levels."""
    within = [index for index, bound in run if bound <= WARP]
    whole = len(run) >= _LEVELS and any(bound < WARP for _, bound in run)
    return within if whole else []


def _power_bound(instruction: Instruction) -> int | None:
    """The n of ``thread < n`` or ``thread % n`` for a power of two, however the compiler turned it."""
    values = instruction.operand_texts
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
