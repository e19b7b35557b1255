# SPDX-License-Identifier: Apache-2.0
"""Every executed access against the walls of its own width (Ding, Williams, section III)."""

from __future__ import annotations

from collections.abc import Iterator

from gpadvisor.model.instruction import MemorySpace
from gpadvisor.model.program import Function
from gpadvisor.views.columns import Columns
from gpadvisor.views.roofline.model import LANES, AccessSpace, CountedAccess, WallKind

NEAR = 0.05
"""As near to a wall as counts on it."""
_SHARED = frozenset({MemorySpace.SHARED, MemorySpace.DISTRIBUTED_SHARED})


def accesses(rows: Columns) -> tuple[CountedAccess, ...]:
    """The accesses of a kernel for which the report counts transactions, most transactions first."""
    return tuple(
        sorted(_accesses(rows), key=lambda access: (-access.transactions, access.function, access.pc))
    )


def _accesses(rows: Columns) -> Iterator[CountedAccess]:
    for row, function, index, instruction in rows.rows():
        if not rows.warps[row] or instruction.info.space is None:
            continue
        if instruction.info.space in _SHARED:
            counts = (AccessSpace.SHARED, rows.wavefronts, rows.fewest_wavefronts)
        elif instruction.info.space is MemorySpace.LOCAL:
            counts = (AccessSpace.LOCAL, rows.local, None)
        else:
            counts = (AccessSpace.GLOBAL, rows.sectors, rows.fewest_sectors)
        space, counted, fewest = counts
        if counted is not None and counted[row]:
            executed = float(rows.warps[row])
            per_execution = float(counted[row]) / executed
            least = None if fewest is None or not fewest[row] else float(fewest[row]) / executed
            yield _access(function, index, space, executed, per_execution, least)


def _access(
    function: Function,
    index: int,
    space: AccessSpace,
    executed: float,
    per_execution: float,
    least: float | None,
) -> CountedAccess:
    instruction = function.instructions[index]
    width = instruction.width_bytes
    entry = function.lines[index]
    return CountedAccess(
        function=function.id,
        index=index,
        pc=instruction.pc,
        text=instruction.text,
        location=None if entry is None else entry.location,
        space=space,
        width_bytes=width,
        instructions=executed,
        per_instruction=per_execution,
        fewest=least,
        wall=_conflicts(per_execution, least, width)
        if space is AccessSpace.SHARED
        else _wall(per_execution, width),
    )


def stride_1(width_bytes: int) -> float:
    """Sectors of a warp whose lanes access neighbouring values: 4 of floats, 16 of 16-byte vectors."""
    return max(1.0, LANES * width_bytes / 32)


def _wall(sectors: float, width_bytes: int | None) -> WallKind:
    if sectors <= 1 + NEAR:
        return WallKind.ONE_ADDRESS
    if sectors >= LANES * (1 - NEAR):
        return WallKind.EACH_LANE
    dense = stride_1(width_bytes or 4)
    if abs(sectors / dense - 1) <= NEAR:
        return WallKind.STRIDE_1
    return WallKind.FEWER if sectors < dense else WallKind.SCATTERED


def no_conflict(width_bytes: int) -> float:
    """Wavefronts of a warp without conflicts: 1 up to 4 bytes a lane, 2 of 8, 4 of 16."""
    return max(1.0, width_bytes / 4)


def _conflicts(wavefronts: float, fewest: float | None, width_bytes: int | None) -> WallKind:
    least = no_conflict(width_bytes or 4) if fewest is None else fewest
    return WallKind.NO_CONFLICT if wavefronts <= least * (1 + NEAR) else WallKind.CONFLICT
