# SPDX-License-Identifier: Apache-2.0
"""What optimizers ask about blamed samples: which rows, in which scope, how many (GPA section V-A)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.advice import Match, Region, Rejection, Scope, ScopeKind, StaticSite
from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, DependencyClass, Role
from gpadvisor.model.ids import FunctionId, LoopId, SourceLocation
from gpadvisor.model.instruction import Instruction
from gpadvisor.model.program import Function, Program
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import line_mark
from gpadvisor.model.stalls import StallClass

Mask = NDArray[np.bool_]
RowIndices = NDArray[np.intp]


def by_stall(blame: Blame, classes: Collection[StallClass]) -> Mask:
    """Rows whose stall reason is of one of the classes."""
    chosen = np.array([reason.stall_class in classes for reason in blame.reasons], dtype=bool)
    return chosen[blame.rows.reason] if len(chosen) else np.zeros(len(blame.rows), dtype=bool)


def stalled(blame: Blame) -> Mask:
    """Rows of warps that waited: neither issuing, nor ready while another one issued."""
    return ~by_stall(blame, {StallClass.ISSUED, StallClass.NOT_SELECTED, StallClass.NOT_RECORDED})


def by_class(blame: Blame, classes: Collection[DependencyClass]) -> Mask:
    """Rows whose dependency is of one of the classes of Fig. 5."""
    chosen = np.array([kind in classes for kind in CLASSES], dtype=bool)
    return chosen[blame.rows.dependency_class]


def by_role(blame: Blame, *roles: Role) -> Mask:
    """Rows whose samples went to another instruction, to the sampled one, or to none."""
    chosen = np.array([role in roles for role in Role], dtype=bool)
    return chosen[blame.rows.role]


def waits_to_hide(blame: Blame, program: Program) -> Mask:
    """Rows of waits between a def and a use that are both known: other work in between would hide them."""
    rows = blame.rows
    mask = by_role(blame, Role.BLAMED) & by_stall(blame, _DEPENDENT) & by_class(blame, _ON_VALUES)
    inside: Mask = mask & (rows.def_index != NO_INDEX) & (rows.use_index != NO_INDEX)
    return inside & (rows.function < len(program.functions))


_DEPENDENT: Final = frozenset({StallClass.MEMORY, StallClass.EXECUTION, StallClass.FIXED_LATENCY})
_ON_VALUES: Final = frozenset(
    {
        DependencyClass.GLOBAL_MEMORY,
        DependencyClass.TEXTURE,
        DependencyClass.CONSTANT_MEMORY,
        DependencyClass.SHARED_MEMORY,
        DependencyClass.ARITHMETIC,
        DependencyClass.WRITE_AFTER_READ,
        DependencyClass.ASYNC_COPY,
        DependencyClass.TENSOR,
    }
)


@lru_cache(maxsize=1)
def causes(blame: Blame) -> NDArray[np.int32]:
    """Per row the instruction that its samples are due to, else the sampled one; NO_INDEX outside."""
    rows = blame.rows
    result = np.where(rows.def_index != NO_INDEX, rows.def_index, rows.use_index).astype(np.int32)
    result.setflags(write=False)
    return result


def by_instruction(
    blame: Blame, program: Program, column: NDArray[np.int32], test: Callable[[Instruction], bool]
) -> Mask:
    """Rows whose instruction in an index column passes a test; each instruction is tested once."""
    result = np.zeros(len(blame.rows), dtype=bool)
    inside = np.flatnonzero((column != NO_INDEX) & (blame.rows.function < len(program.functions)))
    starts = np.cumsum([0, *(len(function.instructions) for function in program.functions)])
    result[inside] = _passing(program, test)[starts[blame.rows.function[inside]] + column[inside]]
    return result


@lru_cache(maxsize=32)
def _passing(program: Program, test: Callable[[Instruction], bool]) -> Mask:
    """Of all instructions, function after function, which pass a test."""
    return np.array(
        [test(instruction) for function in program.functions for instruction in function.instructions],
        dtype=bool,
    )


def by_place(blame: Blame, column: NDArray[np.int32], places: Collection[tuple[FunctionId, int]]) -> Mask:
    """Rows whose instruction in an index column is one of the places."""
    wanted = np.array([function << 32 | index for function, index in places], dtype=np.int64)
    keys = blame.rows.function.astype(np.int64) << 32 | np.maximum(column, 0)
    mask: Mask = np.isin(keys, wanted) & (column != NO_INDEX)
    return mask


def samples(blame: Blame, rows: RowIndices | Mask) -> int:
    """M: the samples of rows."""
    return int(blame.rows.samples[rows].sum())


def latency(blame: Blame, rows: RowIndices | Mask) -> int:
    """M^L: the latency samples of rows."""
    return int(blame.rows.latency[rows].sum())


def fetch_share(blame: Blame) -> float:
    """Of the latency samples the share that waits for instruction fetch; 0 where there is none."""
    return latency(blame, by_stall(blame, {StallClass.INSTRUCTION_FETCH})) / max(1, blame.latency_samples)


def share(blame: Blame, rows: RowIndices | Mask) -> float:
    """Samples of rows as a share of T; 0 where there is no sample."""
    total = blame.total_samples
    return samples(blame, rows) / total if total else 0.0


def weighted(blame: Blame, rows: RowIndices, values: Sequence[float]) -> float:
    """The mean of one value per row, weighted by the rows' samples; 0 without samples."""
    weight = blame.rows.samples[rows]
    total = int(weight.sum())
    return float((weight * np.asarray(values, dtype=np.float64)).sum() / total) if total else 0.0


def common_loop(function: Function, first: int, second: int) -> LoopId | None:
    """The innermost loop around both instructions."""
    around = set(function.enclosing_loops(second))
    return next((loop for loop in function.enclosing_loops(first) if loop in around), None)


def loop_indices(function: Function, loop: LoopId) -> list[int]:
    """Instruction indices of a loop in program order, nested loops included."""
    blocks = [function.blocks[block] for block in function.loops[loop].blocks]
    return sorted(chain.from_iterable(range(block.start, block.end) for block in blocks))


def _active_by_block(blame: Blame, function: Function) -> NDArray[np.int64]:
    """A of each block of a function: of the samples taken in it, those without latency."""
    rows = np.flatnonzero((blame.rows.function == function.id) & (blame.rows.use_index != NO_INDEX))
    active = np.zeros(len(function.blocks), dtype=np.int64)
    blocks = np.array(function.block_of, dtype=np.int32)[blame.rows.use_index[rows]]
    np.add.at(active, blocks, blame.rows.samples[rows] - blame.rows.latency[rows])
    return active


def function_location(function: Function) -> SourceLocation | None:
    """The first line of a function: the smallest one near its entry that is not inlined from elsewhere."""
    locations = [entry.location for entry in function.lines[:32] if entry is not None and not entry.inline]
    if not locations:
        return None
    file = locations[0].file
    return min((place for place in locations if place.file == file), key=lambda place: place.line)


def function_scope(program: Program, function: Function) -> Scope:
    """A whole function, or the kernel, as a scope."""
    del program  # one signature for all scopes
    kind = ScopeKind.KERNEL if function.kind.value == "kernel" else ScopeKind.FUNCTION
    return Scope(
        kind=kind, name=function.demangled, location=function_location(function), function=function.id
    )


def loop_scope(function: Function, loop: LoopId) -> Scope:
    """A loop as a scope."""
    return Scope(
        kind=ScopeKind.LOOP,
        name=function.demangled,
        location=function.loops[loop].location,
        function=function.id,
        loop=loop,
    )


def kernel_scope(program: Program, kernel: str) -> Scope:
    """The kernel as a scope, also for samples outside of every function."""
    function = kernel_function(program, kernel)
    if function is None:
        return Scope(kind=ScopeKind.KERNEL, name=kernel, location=None)
    return function_scope(program, function)


def kernel_function(program: Program, kernel: str) -> Function | None:
    """The entry function of a kernel."""
    return next((function for function in program.functions if function.name == kernel), None)


def kernel_functions(program: Program, kernel: str) -> tuple[Function, ...]:
    """The kernel and every function it can reach through direct calls, in program order."""
    entry = kernel_function(program, kernel)
    if entry is None:
        return ()
    function_ids = {entry.id}
    pending = [entry]
    while pending:
        for call in pending.pop().calls:
            if call.callee is not None and call.callee not in function_ids:
                function_ids.add(call.callee)
                pending.append(program.functions[call.callee])
    return tuple(function for function in program.functions if function.id in function_ids)


LoopKey = tuple[FunctionId, LoopId | None]


def regions(
    blame: Blame,
    program: Program,
    kernel: str,
    rows: RowIndices,
    loops: Iterable[LoopId | None] | None = None,
) -> tuple[Region, ...]:
    """Rows grouped by loop, else by function, heaviest first; every row is in exactly one region.

    Args:
        blame: where the rows are.
        program: the code.
        kernel: mangled name; its scope takes the rows outside of every function.
        rows: indices into ``blame.rows``.
        loops: per row the loop to group it under; the innermost loop of its cause where not given.
    """
    grouped: dict[LoopKey | None, list[int]] = {}
    cause_indices = causes(blame)[rows].tolist()
    under = [None] * len(rows) if loops is None else list(loops)
    functions = blame.rows.function[rows].tolist()
    for position, (row, function_id) in enumerate(zip(rows.tolist(), functions, strict=True)):
        if function_id >= len(program.functions) or cause_indices[position] == NO_INDEX:
            grouped.setdefault(None, []).append(row)
            continue
        function = program.functions[function_id]
        loop = under[position] if loops is not None else function.innermost_loop(cause_indices[position])
        grouped.setdefault((function.id, loop), []).append(row)
    function_ids = {key[0] for key in grouped if key is not None}
    active = {
        function_id: _active_by_block(blame, program.functions[function_id]) for function_id in function_ids
    }
    regions = [
        Region(
            scope=kernel_scope(program, kernel) if key is None else _scope(program, *key),
            rows=np.array(sorted(members), dtype=np.intp),
            active_samples=0 if key is None else _active(program, *key, active[key[0]]),
        )
        for key, members in grouped.items()
    ]
    return tuple(sorted(regions, key=lambda region: (-samples(blame, region.rows), int(region.rows[0]))))


def _scope(program: Program, function_id: FunctionId, loop: LoopId | None) -> Scope:
    function = program.functions[function_id]
    return function_scope(program, function) if loop is None else loop_scope(function, loop)


def _active(
    program: Program, function_id: FunctionId, loop: LoopId | None, by_block: NDArray[np.int64]
) -> int:
    """The sum of A over a function, or over a loop with what is nested in it (Eq. 5)."""
    return int(
        by_block.sum()
        if loop is None
        else by_block[[*program.functions[function_id].loops[loop].blocks]].sum()
    )


def is_recursive(program: Program, function: Function) -> bool:
    """Whether a function can reach itself through calls, as far as the code names them."""
    function_ids: set[FunctionId] = set()
    pending = [function]
    while pending:
        for call in pending.pop().calls:
            if call.callee == function.id:
                return True
            if call.callee is not None and call.callee not in function_ids:
                function_ids.add(call.callee)
                pending.append(program.functions[call.callee])
    return False


def line_text(function: Function, index: int) -> str:
    """Where an instruction comes from, ``saxpy.cu:12``, or its address without line information."""
    entry = function.lines[index]
    if entry is None:
        return f"0x{function.instructions[index].pc:x}"
    return location_text(entry.location)


def location_text(location: SourceLocation) -> str:
    """A source line as a sentence names it: ``saxpy.cu:12``."""
    return line_mark(location)


def heaviest(blame: Blame, rows: RowIndices) -> int:
    """The row with the most samples; the first of equals."""
    return int(rows[int(np.argmax(blame.rows.samples[rows]))])


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 block``, ``2 blocks``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def static_match(
    code: str,
    *,
    title: str,
    advice: str,
    cure: str,
    sites: Sequence[StaticSite],
    missing: str,
    remedies: tuple[Remedy, ...] = (),
) -> Match | Rejection:
    """What the machine code alone shows; without a place there is nothing to say."""
    if not sites:
        return Rejection(code=code, reason=missing)
    return Match(
        title=title, advice=advice, cure=cure, regions=(), static_sites=tuple(sites), remedies=remedies
    )


def blocks_between(function: Function, first: int, last: int) -> list[int]:
    """Blocks on the way from a block to one that it dominates, both left out."""
    visited: set[int] = set()
    pending = [int(block) for block in function.blocks[last].predecessors]
    while pending:
        block = pending.pop()
        if block in {first, last} or block in visited:
            continue
        visited.add(block)
        pending.extend(int(before) for before in function.blocks[block].predecessors)
    return sorted(visited)
