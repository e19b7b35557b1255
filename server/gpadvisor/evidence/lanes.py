# SPDX-License-Identifier: Apache-2.0
"""Threads of a warp that have nothing to do in an instruction, and the condition that keeps them out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import ceil
from typing import Final

import numpy as np

from gpadvisor.evidence.accesses import is_global, is_ordered, is_shared
from gpadvisor.evidence.arrays import address_registers
from gpadvisor.evidence.lane_values import LaneArray, LaneValues, signed
from gpadvisor.evidence.measured import Floats, executed_threads, executed_warps, metric
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass, Register, RegisterFile, register_file
from gpadvisor.model.kind import Kind
from gpadvisor.model.machine import WARP, CodeForm
from gpadvisor.model.profile import KernelProfile, Launch
from gpadvisor.model.program import Function, FunctionKind, Program

_PREDICATED: Final = "thread_inst_executed_true"
_CONTROL: Final = frozenset(
    {
        OpcodeClass.BRANCH,
        OpcodeClass.INDIRECT_BRANCH,
        OpcodeClass.CALL,
        OpcodeClass.RETURN,
        OpcodeClass.EXIT,
        OpcodeClass.BARRIER,
        OpcodeClass.WARP_SYNC,
        OpcodeClass.NOP,
    }
)
"""Guards of these choose a way; they do not idle."""
_LEAVING: Final = frozenset({OpcodeClass.BRANCH, OpcodeClass.EXIT})
_PASSES: Final = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
_SHARED_PASSES: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_OF_PEAK: Final = ".pct_of_peak_sustained_elapsed"
_OF_NUMBERS: Final = frozenset({"FSETP", "DSETP", "HSETP2"})
"""Comparisons of what was computed: no thread's number is a floating-point one."""
_ARGUMENT: Final = 0x1000
PREDICATES: Final = frozenset({RegisterFile.PREDICATE, RegisterFile.UNIFORM_PREDICATE})
_DROP: Final = 0.9
"""A branch behind which fewer than nine in ten of its threads go on is where they part."""


def threads_per_warp(profile: KernelProfile) -> float:
    """Threads of a warp as launched; fewer than 32 where blocks are no multiple of it."""
    threads = max(1, profile.launch.threads_per_block)  # a damaged report may say 0
    return threads / ceil(threads / WARP)


def wavefronts(profile: KernelProfile) -> float | None:
    """Passes through the L1 data stage: those of shared memory, by its share of all."""
    shared = profile.metric(_SHARED_PASSES)
    part, total = profile.metric(f"{_SHARED_PASSES}{_OF_PEAK}"), profile.metric(_PASSES)
    return shared * total / part if shared and part and total else None


def counted_threads(profile: KernelProfile, function: Function) -> Floats | None:
    """Thread-level executions per instruction, without those that a predicate switches off where known."""
    threads = metric(profile, _PREDICATED, function)
    return executed_threads(profile, function) if threads is None else threads


def active_share(profile: KernelProfile, function: Function) -> Floats | None:
    """Per instruction the share of a warp's threads that do something in it; NaN where it is not executed.

    Threads that a predicate switches off do not count where the report tells them apart. Control flow is left
    out. None where the report did not count threads.
    """
    warps, threads = executed_warps(profile, function), counted_threads(profile, function)
    if warps is None or threads is None:
        return None
    skipped = [instruction.info.opclass in _CONTROL for instruction in function.instructions]
    result = np.full(len(function.instructions), np.nan)
    counted = (warps > 0) & ~np.array(skipped, dtype=bool)
    result[counted] = np.minimum(1.0, threads[counted] / warps[counted] / threads_per_warp(profile))
    return result


def condition(function: Function, index: int, shares: Floats) -> int | None:
    """The instruction that decides which threads do something at ``index``: a comparison, else a branch.

    Its own predicate's, or that of the nearest branch above it that more threads reach than it.
    """
    guard = function.instructions[index].guard
    if guard is not None:
        result = _writer(function, guard.register, index)
        if result is not None:
            return result
    block = function.idom[function.block_of[index]]
    while block is not None:
        branch_index = function.blocks[block].end - 1
        branch = function.instructions[branch_index]
        chooses = branch.info.opclass in _LEAVING and branch.guard is not None
        if chooses and shares[index] < _DROP * _reached(function, block, shares):
            result = None if branch.guard is None else _writer(function, branch.guard.register, branch_index)
            return branch_index if result is None else result
        block = function.idom[block]
    return None


class Choice(Kind):
    """What decides which threads of a warp go on."""

    DATA = "data"  # what was loaded
    BOUND = "bound"  # an index of the grid against the end of what is worked on
    EDGE = "edge"  # what the others read from shared memory, it reads from global memory
    SPREAD = "spread"  # a thread's number, in no order
    FIRST = "first"  # a thread's number against a bound, so that the active ones are neighbours
    PASSES = "passes"  # each leaves a loop when its count is reached
    EXIT = "exit"  # each leaves a loop when its data say so
    UNKNOWN = "unknown"


def choice_of(function: Function, index: int | None, form: CodeForm, launch: Launch) -> Choice:
    """What the comparison at an instruction depends on."""
    index = _comparison(function, index)
    if index is not None and function.instructions[index].opcode in _OF_NUMBERS:
        return Choice.DATA
    if index is None or function.instructions[index].info.opclass is not OpcodeClass.PREDICATE:
        return Choice.UNKNOWN
    values = LaneValues(function, form, launch, _ARGUMENT)
    if _is_bound(function, index, values, launch):
        return Choice.BOUND
    operands = [text for text in function.instructions[index].operand_texts if "P" not in text]
    compared = [values.operand(index, text) for text in operands]
    if any(value.lanes is None and value.loaded for value in compared):
        return Choice.DATA
    if any(value.lanes is None for value in compared):
        return Choice.UNKNOWN
    steps = [np.diff(signed(value.lanes)) for value in compared if value.lanes is not None and value.differs]
    if not steps:
        return Choice.UNKNOWN
    in_order = all((step >= 0).all() or (step <= 0).all() for step in steps)
    return Choice.FIRST if in_order else Choice.SPREAD


def _is_bound(function: Function, position: int, values: LaneValues, launch: Launch) -> bool:
    """Whether threads are kept out by an index of the grid that is beyond the end of what is worked on.

    It is computed from threadIdx and blockIdx, and like all that is compared grows along the rows of a block.
    """
    known = False
    for index in {position, *comparisons(function, [position])}:
        instruction = function.instructions[index]
        texts = [text for text in instruction.operand_texts if "P" not in text]
        differing = [value for text in texts if (value := values.operand(index, text)).differs]
        if not differing:
            continue
        lanes = differing[0].lanes
        if len(differing) > 1 or lanes is None or not is_order(function, index):
            return False
        if not _in_rows(signed(lanes), launch):
            return False
        known = known or numbers_of(function, index) == {"SR_TID", "SR_CTAID"}
    return known


def comparisons(function: Function, conditions: Collection[int]) -> set[int]:
    """What writes the predicates that instructions read, and those that are combined there."""
    pending, visited = [*conditions], set[int]()
    while pending:
        index = pending.pop()
        for used in function.instructions[index].uses:
            if register_file(used) in PREDICATES:
                more = function.reaching.definitions(index, used) - visited
                visited |= more
                pending += more
    return visited


def is_order(function: Function, index: int) -> bool:
    """Whether an instruction compares by size."""
    return not _ORDERS.isdisjoint(function.instructions[index].modifiers)


_ORDERS: Final = frozenset({"LT", "LE", "GT", "GE"})
_NUMBERS: Final = ("SR_TID", "SR_CTAID")


def numbers_of(function: Function, index: int, names: tuple[str, ...] = _NUMBERS) -> set[str]:
    """Which of a thread's numbers, ``SR_TID`` and ``SR_CTAID``, an instruction's operands are computed from.

    Predicates that it combines with its own result are not followed.
    """
    result: set[str] = set()
    pending, visited = [index], {index}
    while pending:
        position = pending.pop()
        instruction = function.instructions[position]
        result.update(name for name in names if name in instruction.operands)
        for used in instruction.uses:
            if register_file(used) not in PREDICATES:
                more = function.reaching.definitions(position, used) - visited
                visited |= more
                pending += more
    return result


def _in_rows(lanes: LaneArray, launch: Launch) -> bool:
    """Whether values grow, or stay, along each row of a block."""
    row = max(1, min(WARP, launch.block[0]))
    return all((np.diff(lanes[start : start + row]) >= 0).all() for start in range(0, WARP, row))


def has_rows(launch: Launch) -> bool:
    """Whether blocks or threads are counted along several axes."""
    return sum(threads * blocks > 1 for threads, blocks in zip(launch.block, launch.grid, strict=True)) > 1


def stands_in_for_shared(function: Function, indices: Sequence[int]) -> bool:
    """Whether some instructions load from global memory what otherwise comes from shared memory.

    Then an instruction uses either the one or the other, in the same register.
    """
    loads = {
        index for index in indices if _loads(function, index) and is_global(function.instructions[index])
    }
    registers = {register for index in loads for register in function.instructions[index].defs}
    for use, instruction in enumerate(function.instructions):
        for read in registers.intersection(instruction.uses) if loads else ():
            writers = function.reaching.definitions(use, read)
            if not loads.isdisjoint(writers) and any(
                _loads(function, writer) and is_shared(function.instructions[writer]) for writer in writers
            ):
                return True
    return False


_WRITES: Final = frozenset({OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


def _loads(function: Function, index: int) -> bool:
    return function.instructions[index].info.opclass is OpcodeClass.LOAD


def loads_in_loop(function: Function, index: int) -> bool:
    """Whether the innermost loop around an instruction reads global memory."""
    loop = function.innermost_loop(index)
    return loop is not None and any(
        _loads(function, position) and is_global(function.instructions[position])
        for position in loop_indices(function, loop)
    )


def writes_in_loop(function: Function, index: int) -> bool:
    """Whether the innermost loop around an instruction writes memory, so that no pass may run in vain."""
    loop = function.innermost_loop(index)
    return loop is not None and any(
        function.instructions[position].info.opclass in _WRITES for position in loop_indices(function, loop)
    )


def around_helpers(program: Program, function: Function) -> set[int]:
    """Where the compiler's routines are called: rare arguments of a division are nobody's to arrange."""
    calls = [
        call.index
        for call in function.calls
        if call.callee is not None and program.functions[call.callee].kind is FunctionKind.MATH_HELPER
    ]
    blocks = {
        function.block_of[position]
        for call in calls
        for position in (call, call + 1)
        if position < len(function.block_of)
    }
    return {
        position
        for block in blocks
        for position in range(function.blocks[block].start, function.blocks[block].end)
    }


def _comparison(function: Function, index: int | None) -> int | None:
    """The comparison behind predicates that are made of one other, as debug builds turn them round."""
    while index is not None and function.instructions[index].opcode == "PLOP3":
        sources = [use for use in function.instructions[index].uses if register_file(use) in PREDICATES]
        index = _writer(function, sources[0], index) if len(set(sources)) == 1 else None
    return index


def are_neighbours(profile: KernelProfile, function: Function, condition: int, index: int) -> bool:
    """Whether the threads behind a condition are in far fewer warps than they would be by chance."""
    warps, threads = executed_warps(profile, function), executed_threads(profile, function)
    if warps is None or threads is None or not warps[condition] or not threads[condition]:
        return False
    part = min(1.0, float(threads[index] / threads[condition]))
    by_chance = 1 - (1 - part) ** threads_per_warp(profile)
    return bool(warps[index] / warps[condition] < by_chance / 2)


def exit_by_data(function: Function, index: int) -> int | None:
    """The comparison of what was loaded or computed from that by which threads leave the loop around."""
    loop = function.innermost_loop(index)
    if loop is None:
        return None
    inside = loop_indices(function, loop)
    for result in _exits(function, loop):
        if result in inside and result is not None and _follows_load(function, result, set(inside)):
            return result
    return None


def _exits(function: Function, loop: LoopId) -> Iterator[int | None]:
    """The comparisons by which threads leave a loop; None where one is not known."""
    for block in sorted(function.loops[loop].blocks):
        branch_index = function.blocks[block].end - 1
        branch = function.instructions[branch_index]
        leaves = any(to not in function.loops[loop].blocks for to, _ in function.blocks[block].successors)
        if branch.info.opclass is OpcodeClass.BRANCH and branch.guard is not None and leaves:
            yield _comparison(function, _writer(function, branch.guard.register, branch_index))


def passes_are_alike(function: Function, index: int, form: CodeForm, launch: Launch) -> bool:
    """Whether all threads of a warp leave the loop around an instruction by numbers that they share."""
    loop = function.innermost_loop(index)
    if loop is None:
        return False
    values = LaneValues(function, form, launch, _ARGUMENT)
    exits = list(_exits(function, loop))
    return bool(exits) and all(
        position is not None
        and function.instructions[position].info.opclass is OpcodeClass.PREDICATE
        and function.instructions[position].opcode not in _OF_NUMBERS
        and not any(
            values.operand(position, text).differs
            for text in function.instructions[position].operand_texts
            if "P" not in text
        )
        for position in exits
    )


def _follows_load(function: Function, index: int, inside: set[int]) -> bool:
    """Whether an instruction uses what others of a loop loaded, or numbers that they computed.

    A bound that each pass reads again at the same address is no such value: the passes are as many before.
    """
    if function.instructions[index].opcode in _OF_NUMBERS:
        return True
    pending, visited = [index], {index}
    while pending:
        position = pending.pop()
        instruction = function.instructions[position]
        if instruction.info.opclass is OpcodeClass.LOAD:
            registers = address_registers(function, position)
            if is_ordered(instruction) or any(
                function.reaching.definitions(position, name) & inside for name in registers
            ):
                return True
            continue
        for used in instruction.uses:
            more = (function.reaching.definitions(position, used) & inside) - visited
            visited |= more
            pending += more
    return False


def passes_differ(function: Function, index: int, shares: Floats) -> bool:
    """Whether threads leave the loop around an instruction one by one: it is entered by more than stay."""
    loop = function.innermost_loop(index)
    if loop is None:
        return False
    header = function.loops[loop].header
    before = function.idom[header]
    if before is None:
        return False
    entered, staying = (_reached(function, block, shares) for block in (before, header))
    return bool(staying < _DROP * entered and shares[index] >= _DROP * staying)


def _reached(function: Function, block: int, shares: Floats) -> float:
    """The largest share of a warp's threads in a block; NaN where none of it was executed."""
    block_shares = shares[function.blocks[block].start : function.blocks[block].end]
    return float("nan") if np.isnan(block_shares).all() else float(np.nanmax(block_shares))


def _writer(function: Function, predicate: Register, before: int) -> int | None:
    """The last instruction above ``before`` in program order that writes a predicate."""
    return next(
        (index for index in range(before - 1, -1, -1) if predicate in function.instructions[index].defs),
        None,
    )
