# SPDX-License-Identifier: Apache-2.0
"""Throttle stalls: a full queue or a busy pipe is due to the instructions that fill it.

Where a warp waits its turn says nothing of who is before it: warps come to the queue from everywhere near. So
the wait is shared out among the instructions that go through the queue, by how long each keeps the unit
behind it busy, and the instruction that waits gets its own part.

Differs from GPA: it takes such stalls for the doing of the instruction that waits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.blamer.occupied import is_device_access
from gpadvisor.blamer.sources import StallSources, weighed
from gpadvisor.model.blame import DependencyClass, DependencyKind, Role
from gpadvisor.model.ids import LoopId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass, Pipe
from gpadvisor.model.stalls import StallClass

THROTTLES: Final = frozenset(
    {
        StallClass.MEMORY_THROTTLE,
        StallClass.SHARED_THROTTLE,
        StallClass.TEXTURE_THROTTLE,
        StallClass.PIPE_THROTTLE,
    }
)
_PIPES: Final = frozenset({Pipe.ALU, Pipe.FMA, Pipe.FP16, Pipe.FP64, Pipe.TENSOR, Pipe.UNIFORM, Pipe.XU})
_SHARED: Final = frozenset({MemorySpace.SHARED, MemorySpace.DISTRIBUTED_SHARED})
_MIO_CLASSES: Final = frozenset({OpcodeClass.SHUFFLE, OpcodeClass.SPECIAL_REGISTER, OpcodeClass.MBARRIER})
_TRIPS: Final = 4
"""A loop that is passed fewer times than this in a row is left before the queue has changed."""
_FULL: Final = 0.05
"""A queue is full in a loop where at least this share of the function's waits for it are."""
_BACKED_UP: Final = 0.1
"""Waits for the load/store queue, for each wait for the MIO queue, from which on it backs up into that."""
_MAX_FILLERS: Final = 64

WaitCounts = Mapping[StallClass, Mapping[int, int]]
"""By class, the samples of throttle stalls at each instruction."""


class _Fillers:
    """What goes through a queue: heavy ones, and light ones, of which the nearest stand for all."""

    def __init__(self, positions: Sequence[int], occupied: NDArray[np.float64]) -> None:
        """Take instructions in their order, and how long each instruction keeps its unit busy."""
        weights = {position: float(occupied[position]) for position in positions}
        total = sum(weights.values(), 0.0)
        few = len(positions) <= _MAX_FILLERS
        self._weights = weights
        self._heavy = {
            position: weight for position, weight in weights.items() if few or weight * _MAX_FILLERS > total
        }
        self._light = [position for position in positions if position not in self._heavy]
        self._rest = total - sum(self._heavy.values(), 0.0)

    def near(self, use: int) -> list[tuple[int, float]]:
        """Those that a wait is shared out among, with their weights; of two as near the one before."""
        light = self._light
        first = end = bisect_left(light, use)
        for _ in range(min(len(light), _MAX_FILLERS - len(self._heavy))):
            if end == len(light) or (first and use - light[first - 1] <= light[end] - use):
                first -= 1
            else:
                end += 1
        near = light[first:end]
        kept_weight = sum(self._weights[position] for position in near)
        scale = self._rest / kept_weight if kept_weight else 1.0
        return sorted(
            [*self._heavy.items(), *((position, scale * self._weights[position]) for position in near)]
        )


class Queues:
    """The queues and pipes of one function, and what fills them."""

    def __init__(self, graph: FunctionGraph, waits: WaitCounts) -> None:
        """Take the graph of the function, and where its warps wait for which queue."""
        self._graph = graph
        self._loop_of = _loops_around(graph)
        self._full = _full_loops(waits, self._loop_of)
        # The queues that double precision waits for.
        self._double = frozenset(
            stall_class
            for stall_class, class_waits in waits.items()
            if any(graph.instructions[index].info.pipe is Pipe.FP64 for index in class_waits)
        )
        self._backed_up = _backs_up(waits)
        self._known: dict[tuple[StallClass, Pipe | None, LoopId | None], _Fillers] = {}

    def found(self, use: int, stall_class: StallClass) -> StallSources:
        """What fills the queue that an instruction waits for; nothing known leaves the wait to itself."""
        fillers = self._fillers(use, stall_class).near(use)
        if not fillers:
            return StallSources((), Role.SELF, DependencyClass.SELF)
        edges = [Edge(position, use, DependencyKind.FILLS, (), alive=True) for position, _ in fillers]
        self._graph.measure(edges)
        weights = (weight for _, weight in fillers)
        return StallSources(
            tuple(
                weighed(edge, DependencyClass.QUEUE, weight)
                for edge, weight in zip(edges, weights, strict=True)
            )
        )

    def _fillers(self, use: int, stall_class: StallClass) -> _Fillers:
        """The instructions that go through the queue of a use, where warps are at that time."""
        loop, pipe = self._loop_of[use], self._graph.instructions[use].info.pipe
        key = (
            stall_class,
            pipe if stall_class is StallClass.PIPE_THROTTLE or pipe is Pipe.FP64 else None,
            loop,
        )
        if key not in self._known:
            indices = [
                index
                for index, instruction in enumerate(self._graph.instructions)
                if self._goes_through(instruction, stall_class, pipe)
                and self._is_around(index, loop, stall_class)
            ]
            issued = [position for position in indices if self._graph.issue_counts[position]]
            self._known[key] = _Fillers(issued or indices, self._graph.occupied)
        return self._known[key]

    def _goes_through(self, instruction: Instruction, stall_class: StallClass, pipe: Pipe) -> bool:
        info = instruction.info
        if stall_class is StallClass.PIPE_THROTTLE:
            return info.pipe is pipe and pipe in _PIPES
        if info.pipe is Pipe.FP64 or pipe is Pipe.FP64:
            # Where double precision is slow it is queued like an access; its own waits say in which queue.
            return info.pipe is Pipe.FP64 and stall_class in self._double
        if stall_class is StallClass.TEXTURE_THROTTLE:
            return info.pipe is Pipe.TEX
        if stall_class is StallClass.MEMORY_THROTTLE:
            return is_device_access(instruction)
        if is_device_access(instruction):
            return self._backed_up
        constant = info.space is MemorySpace.CONSTANT and info.variable_latency
        return info.space in _SHARED or info.opclass in _MIO_CLASSES or info.pipe is Pipe.XU or constant

    def _is_around(self, index: int, loop: LoopId | None, stall_class: StallClass) -> bool:
        """Whether an instruction is where warps are while others wait in a loop, or outside of all."""
        loop_id = self._loop_of[index]
        if loop_id == loop or loop_id not in self._full[stall_class]:
            return loop_id == loop
        return loop is None or loop in self._graph.function.enclosing_loops(index)


def _loops_around(graph: FunctionGraph) -> list[LoopId | None]:
    """By instruction, the innermost loop around it that is passed many times in a row."""
    function, issues = graph.function, graph.issue_counts
    repeated = {loop.id for loop in function.loops if _trips(graph, loop.id, issues) >= _TRIPS}
    around = [
        next((loop for loop in function.enclosing_loops(block.start) if loop in repeated), None)
        for block in function.blocks
    ]
    return [around[block] for block in graph.block_of]


def _full_loops(
    waits: WaitCounts, loop_of: Sequence[LoopId | None]
) -> Mapping[StallClass, frozenset[LoopId]]:
    """By class, the loops with a notable part of the waits."""
    result = {}
    for stall_class, class_waits in waits.items():
        by_loop: dict[LoopId, int] = {}
        for index, samples in class_waits.items():
            loop = loop_of[index]
            if loop is not None:
                by_loop[loop] = by_loop.get(loop, 0) + samples
        least = _FULL * sum(class_waits.values())
        result[stall_class] = frozenset(loop for loop, samples in by_loop.items() if samples >= least)
    return result


def _backs_up(waits: WaitCounts) -> bool:
    """Whether accesses that find the load/store queue full stand in the queue before it."""
    behind = sum(waits.get(StallClass.MEMORY_THROTTLE, {}).values())
    return behind > _BACKED_UP * sum(waits.get(StallClass.SHARED_THROTTLE, {}).values())


def _trips(graph: FunctionGraph, loop: LoopId, issues: Sequence[int]) -> float:
    """How often a loop is passed in a row, at least, by how often the code before it runs."""
    function = graph.function
    header = function.loops[loop].header
    before = function.idom[header]
    entered = 0 if before is None else issues[function.blocks[before].end - 1]
    return issues[function.blocks[header].start] / entered if entered else _TRIPS
