# SPDX-License-Identifier: Apache-2.0
"""How often a warp waits for memory, one load after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gpadvisor.evidence.accesses import is_global
from gpadvisor.evidence.measured import Floats
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function


def round_trips(function: Function, executed: Floats) -> float:
    """Waits for loads from global memory that nothing overlaps, of all warps together."""
    return sum((float(executed[index]) for index in _waits(function)), 0.0)


@lru_cache(maxsize=256)
def _waits(function: Function) -> tuple[int, ...]:
    """The instructions that wait for a load which was issued after the wait before, in any pass of a loop."""
    parts: dict[LoopId | None, list[int]] = defaultdict(list)
    for index in range(len(function.instructions)):
        parts[function.innermost_loop(index)].append(index)
    return tuple(
        index
        for loop, indices in parts.items()
        for index in (_late(function, indices) if loop is None else _late_in_loop(function, indices))
    )


def _late_in_loop(function: Function, indices: Sequence[int]) -> Iterator[int]:
    """As in the second of two passes, in which loads of the first are on their way."""
    first = sum(1 for _ in _late(function, indices))
    for number, index in enumerate(_late(function, (*indices, *indices))):
        if number >= first:
            yield index


def _late(function: Function, indices: Sequence[int]) -> Iterator[int]:
    """A warp issues in order, so that a wait for loads ends all that were issued before the last of them."""
    turn, ready = 0, [0] * 6
    for index in indices:
        instruction = function.instructions[index]
        last = max((ready[scoreboard] for scoreboard in instruction.control.waits), default=0)
        if last > turn:
            turn = last
            yield index
        barrier = instruction.control.write_barrier
        if barrier is not None and instruction.info.opclass is OpcodeClass.LOAD and is_global(instruction):
            ready[barrier] = turn + 1
