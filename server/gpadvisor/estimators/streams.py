# SPDX-License-Identifier: Apache-2.0
"""Code that each thread passes for elements of its own, and whether DRAM or arithmetic sets its pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from gpadvisor.errors import UnknownArchitectureError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.arrays import is_indexed_by_data, same_pointer
from gpadvisor.evidence.held_passes import is_stepped_by_launch
from gpadvisor.evidence.patterns import SLOW_PATH, math_sequences
from gpadvisor.evidence.queries import loop_indices
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.machine import WARP
from gpadvisor.model.program import Function, FunctionKind, Program


def paced_by_memory(
    context: KernelContext, functions: Iterable[Function]
) -> frozenset[tuple[FunctionId, int]]:
    """Instructions whose cost memory hides: DRAM moves a thread's elements slower than all of them issue.

    Differs from GPA: without samples nothing says what warps wait for. Of a loop whose counter steps by the
    size of the block or the grid, or of code without a loop, each thread has its own elements, so that the
    code and the rates of the architecture tell which of both takes longer.
    """
    return frozenset(
        (function.id, index)
        for function in functions
        if function.kind is FunctionKind.KERNEL
        for index in _paced(context.program, function, context.machine.sm.schedulers.value)
    )


@lru_cache(maxsize=64)
def _paced(program: Program, function: Function, schedulers: int) -> frozenset[int]:
    sequences = math_sequences(function)
    library = frozenset[int]().union(*(sequence.whole for sequence in sequences))
    rare = frozenset[int]().union(*(one.whole for one in sequences if one.kind == SLOW_PATH))
    loops = [loop for loop in function.loops if not library.issuperset(loop_indices(function, loop.id))]
    outer = {loop.parent for loop in loops}
    parts = [
        frozenset(loop_indices(function, loop.id))
        for loop in loops
        if loop.id not in outer and is_stepped_by_launch(function, loop.id, program.form, products=True)
    ] or [frozenset(range(len(function.instructions)))] * (not loops)
    return frozenset[int]().union(
        *(part for part in parts if _loads_longer(program, function, part - rare, library, schedulers))
    )


def _loads_longer(
    program: Program, function: Function, indices: frozenset[int], library: frozenset[int], schedulers: int
) -> bool:
    try:
        timing, device = timing_of(program.arch)
    except UnknownArchitectureError:
        return False
    if any(function.instructions[index].info.opclass in _OTHERS for index in indices - library):
        return False
    per_cycle = device.dram_bytes_per_second / device.sms / device.clock_hz
    counts = Counter(function.instructions[index].info.pipe for index in indices)
    intervals = {Pipe.ALU: timing.alu_interval, Pipe.XU: timing.xu_interval, Pipe.FP64: timing.fp64_interval}
    busiest = max(len(indices), *(counts[pipe] * interval for pipe, interval in intervals.items()))
    return WARP * _own_bytes(function, indices) / per_cycle >= busiest / schedulers


_OTHERS: Final = frozenset({OpcodeClass.ATOMIC, OpcodeClass.REDUCTION, OpcodeClass.CALL, OpcodeClass.BARRIER})


def _own_bytes(function: Function, indices: frozenset[int]) -> int:
    """What a thread loads and stores, of each array once: its other elements may be neighbours' as well.

    What loaded words decide may be any thread's, and in a cache.
    """
    widths: dict[tuple[bool, int], int] = {}
    for index in sorted(indices):
        instruction = function.instructions[index]
        if is_global(instruction) and not is_indexed_by_data(function, index):
            stores = instruction.info.opclass is OpcodeClass.STORE
            alike = (one for one in widths if one[0] is stores and same_pointer(function, one[1], index))
            first = next(alike, (stores, index))
            widths[first] = max(widths.get(first, 0), instruction.width_bytes or 0)
    return sum(widths.values())
