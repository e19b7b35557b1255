# SPDX-License-Identifier: Apache-2.0
"""What the machine code says of a kernel's parallelism within a warp, weighted by what was executed."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.views.columns import Columns

MEMORY: Final = frozenset({MemorySpace.GLOBAL, MemorySpace.LOCAL, MemorySpace.GENERIC})
_STORES: Final = frozenset({OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


def is_load(instruction: Instruction) -> bool:
    """Whether a warp waits for what it brings: asynchronous copies are waited for as a whole."""
    return instruction.info.opclass is OpcodeClass.LOAD and instruction.info.space in MEMORY


def stall_cycles(rows: Columns) -> float:
    """s: the mean stall count of the control codes of what ran, in cycles: avg_inst_lat / ILP of Eq. 3."""
    warps: list[float] = rows.warps.tolist()
    waited = (warps[row] * instruction.control.stall_cycles for row, _, _, instruction in rows.rows())
    return sum(waited) / float(rows.warps.sum())


def loads_and_stores(rows: Columns) -> tuple[float, float]:
    """Executed loads, and executed stores and atomics, of global and local memory."""
    loads = stores = 0.0
    warps = rows.warps.tolist()
    for row, _, _, instruction in rows.rows():
        if is_load(instruction):
            loads += warps[row]
        elif instruction.info.opclass in _STORES and instruction.info.space in MEMORY:
            stores += warps[row]
    return loads, stores


def loads_in_flight(rows: Columns) -> float | None:
    """MLP: executed loads for each executed wait on their scoreboards, within basic blocks; at least 1.

    Returns:
        None without a load.
    """
    loads = waits = 0.0
    warps = rows.warps.tolist()
    for function, start in zip(rows.program.functions, rows.starts, strict=True):
        for block in function.blocks:
            outstanding: set[int] = set()
            for index in range(block.start, block.end):
                instruction, executed = function.instructions[index], warps[start + index]
                awaited = outstanding.intersection(instruction.control.waits)
                if awaited:
                    waits += executed
                    outstanding -= awaited
                if is_load(instruction):
                    loads += executed
                    if instruction.control.write_barrier is not None:
                        outstanding.add(instruction.control.write_barrier)
    if not loads:
        return None
    return max(1.0, loads / waits) if waits else 1.0
