# SPDX-License-Identifier: Apache-2.0
"""Paths from a def to a use that no reader and no latency ends: dominator and latency rule in one search.

GPA's released code enumerates simple paths; here each block keeps, for each cost so far, how many paths have
it and their lengths, and a loop is passed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.blamer.rules import Budget
from gpadvisor.model.instruction import Register

_MAX_BLOCKS: Final = 1 << 10
_MAX_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class PathRules:
    """What ends a path."""

    budget: int | None  # counted strictly between def and use; a path ends when it is reached; None: never
    counts: Budget
    predicated_readers: bool
    readers: bool = True  # whether readers end a path at all


@dataclass(frozen=True, slots=True)
class SurvivingPaths:
    """The paths that are left."""

    average: float | None = None  # mean length in instructions, the use included
    longest: int | None = None
    exists: bool = True
    reader: int | None = None  # offset of a reader that ended a path, where none is left


_Entry = tuple[float, float, int]  # paths, sum of their lengths, longest
_Costs = dict[int, _Entry]


def surviving_paths(
    graph: FunctionGraph, edge: Edge, registers: tuple[Register, ...], rules: PathRules
) -> SurvivingPaths:
    """Search per register that links def and use; without one (a barrier alone) no reader ends a path."""
    results = [_Search(graph, edge, register, rules).run() for register in registers or (None,)]
    alive = [result for result in results if result.exists]
    if not alive:
        return next((result for result in results if result.reader is not None), results[0])
    averages = [result.average for result in alive if result.average is not None]
    longest = [result.longest for result in alive if result.longest is not None]
    return SurvivingPaths(sum(averages) / len(averages), max(longest))


class _Search:
    """Backwards from the use to the def over blocks."""

    def __init__(self, graph: FunctionGraph, edge: Edge, register: Register | None, rules: PathRules) -> None:
        self._graph, self._edge, self._rules = graph, edge, rules
        self._register = register if rules.readers else None
        self._reader: int | None = None
        self._left = _MAX_BLOCKS

    def run(self) -> SurvivingPaths:
        edge, function = self._edge, self._graph.function
        home, origin = function.block_of[edge.use], function.block_of[edge.definition]
        start = {0: (1.0, 1.0, 1)}  # the use itself counts towards the length, not towards the cost
        if home == origin and edge.definition < edge.use:
            return self._result(self._through(start, edge.definition + 1, edge.use))
        entered = self._through(start, function.blocks[home].start, edge.use)
        return self._result(self._blocks(home, origin, entered))

    def _result(self, costs: _Costs) -> SurvivingPaths:
        if not costs:
            return SurvivingPaths(reader=self._reader, exists=False)
        paths = sum(entry[0] for entry in costs.values())
        total = sum(entry[1] for entry in costs.values())
        return SurvivingPaths(total / paths, max(entry[2] for entry in costs.values()))

    def _through(self, costs: _Costs, start: int, end: int) -> _Costs:
        """Extend paths backwards over instructions ``[start, end)``."""
        instructions = self._graph.instructions
        cost = 0
        for index in range(end - 1, start - 1, -1):
            instruction = instructions[index]
            cost += 1 if self._rules.counts is Budget.INSTRUCTIONS else instruction.control.stall_cycles
            if self._register is None or self._register not in instruction.uses:
                continue
            if instruction.guard is None or self._rules.predicated_readers:
                if costs:
                    self._reader = instruction.pc
                return {}
        budget = self._rules.budget
        return {
            spent + cost: (paths, lengths + paths * (end - start), longest + end - start)
            for spent, (paths, lengths, longest) in costs.items()
            if budget is None or spent + cost < budget
        }

    def _blocks(self, home: int, origin: int, entered: _Costs) -> _Costs:
        """Go on block by block; retreating edges are taken only where forward ones do not lead to the def."""
        paths, function = self._graph.paths, self._graph.function
        floor = paths.floor(origin)
        waiting: dict[int, _Costs] = {}
        turning: dict[int, _Costs] = {}
        _pass_on(self._graph, home, entered, waiting, turning)
        for _ in range(_MAX_TURNS):
            heap = sorted((-paths.rank(block), block) for block in waiting)
            while heap and self._left > 0:
                _, block = heappop(heap)
                costs = waiting.pop(block, None)
                if costs is None:
                    continue
                self._left -= 1
                bounds = function.blocks[block]
                if block == origin:
                    return self._through(costs, self._edge.definition + 1, bounds.end)
                if block == home or paths.floor(block) < floor:
                    continue
                waiting_before = set(waiting)
                before = self._through(costs, bounds.start, bounds.end)
                _pass_on(self._graph, block, before, waiting, turning)
                for successor in waiting.keys() - waiting_before:
                    heappush(heap, (-paths.rank(successor), successor))
            waiting, turning = turning, {}
        return {}


def _pass_on(
    graph: FunctionGraph, block: int, costs: _Costs, waiting: dict[int, _Costs], turning: dict[int, _Costs]
) -> None:
    """Add the paths at the start of a block to what is known at the ends of its predecessors."""
    if not costs:
        return
    paths = graph.paths
    for source in graph.function.blocks[block].predecessors:
        target = turning if paths.rank(source) >= paths.rank(block) else waiting
        merged = target.setdefault(source, {})
        for cost, (count, lengths, longest) in costs.items():
            totals = merged.get(cost, (0.0, 0.0, 0))
            merged[cost] = totals[0] + count, totals[1] + lengths, max(totals[2], longest)
