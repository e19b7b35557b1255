# SPDX-License-Identifier: Apache-2.0
"""Sources of wait stalls: a stall count is waited out for the result that comes last, or for none.

Differs from GPA: the stall count of the instruction before the use is the ground truth, on each way into the
use by itself; where no register explains it, that instruction is blamed with class SCHEDULE, not the use.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from gpadvisor.blamer.classify import dependency_class, is_memory
from gpadvisor.blamer.graph import Candidates, Edge, FunctionGraph
from gpadvisor.blamer.sources import UNATTRIBUTED, StallSources, weighed
from gpadvisor.model.blame import DependencyClass, DependencyKind
from gpadvisor.model.instruction import Instruction, OpcodeClass

MAX_STALL_CYCLES: Final = 15
_CONTROL: Final = frozenset(
    {OpcodeClass.BRANCH, OpcodeClass.INDIRECT_BRANCH, OpcodeClass.CALL, OpcodeClass.RETURN, OpcodeClass.EXIT}
)
_MAX_WAYS: Final = 8
"""Instructions right before a use that are looked at, the most frequent ones."""


def fixed_latency_stall(graph: FunctionGraph, use: int, edges: Candidates) -> StallSources:
    """Sources of a wait stall."""
    issues = graph.issue_counts
    ways = sorted(graph.before(use), key=lambda way: (-issues[way], way))[:_MAX_WAYS]
    weighted: dict[int, tuple[Edge, float]] = {}
    for before in ways:
        waited = max(graph.instructions[before].control.stall_cycles - 1, 1)
        weight = float(max(issues[before], 1) * waited)
        sources = _last_results(graph, use, edges, before) or _bearer(graph, use, edges, before)
        for edge in sources:
            known = weighted.get(edge.definition, (edge, 0.0))[1]
            weighted[edge.definition] = edge, known + weight / len(sources)
    if not weighted:
        return UNATTRIBUTED
    running = [weighted[definition] for definition in sorted(weighted)]
    for edge, _ in running:
        edge.alive = True
    graph.measure([edge for edge, _ in running])
    return StallSources(tuple(weighed(edge, _class_of(graph, edge), weight) for edge, weight in running))


def _last_results(graph: FunctionGraph, use: int, edges: Candidates, before: int) -> list[Edge]:
    """On one way into a use, the defs whose results come last, if the last stall count was for them."""
    # Without the last stall count the use would have issued a cycle after the one before it.
    latest, definitions = 1, []
    for definition, passed in _just_issued(graph, edges, before):
        missing = _needed(graph, definition, use) - passed
        if missing > latest:
            latest, definitions = missing, [definition]
        elif definitions and missing == latest:
            definitions.append(definition)
    return [edges.edge(definition) for definition in sorted(definitions)]


def _just_issued(graph: FunctionGraph, edges: Candidates, before: int) -> Iterable[tuple[int, int]]:
    """Defs of fixed latency whose results can be missing still, and the cycles since their issue."""
    fixed, passed, reach = graph.fixed_cycles, graph.passed_cycles, graph.longest_fixed_cycles
    start = graph.function.blocks[graph.block_of[before]].start
    first = bisect_right(passed, passed[before] - reach, start)
    if first > start or not graph.function.blocks[graph.block_of[before]].predecessors:
        definitions = [
            definition for definition in edges.read if first <= definition <= before and fixed[definition][1]
        ]
        return [(definition, passed[before] - passed[definition]) for definition in definitions]
    wanted = [definition for definition in edges.read if fixed[definition][1]]
    ways = graph.cycles.shortest(wanted, before, limit=reach + MAX_STALL_CYCLES) if wanted else {}
    return [
        (definition, way)
        for definition in wanted
        if (way := 0 if definition == before else ways[definition]) is not None
    ]


def _needed(graph: FunctionGraph, definition: int, use: int) -> int:
    """Cycles until this use can read a fixed-latency result."""
    least, most = graph.fixed_cycles[definition]
    reader = graph.instructions[use]
    if is_memory(reader) or reader.info.opclass in _CONTROL:
        return most
    if graph.instructions[definition].info.pipe is reader.info.pipe:
        return least
    return min(most, least + graph.machine.sm.other_pipe_cycles.value)


def _bearer(graph: FunctionGraph, use: int, edges: Candidates, before: int) -> list[Edge]:
    """The instruction whose stall count it is."""
    bearer = _behind_nops(graph, before)
    if bearer == use:
        return []
    if bearer in edges:
        return [edges.edge(bearer)]
    edges.add(Edge(bearer, use, DependencyKind.STALL_COUNT, ()))
    return [edges.edge(bearer)]


def _behind_nops(graph: FunctionGraph, index: int) -> int:
    """The instruction that NOPs make room for: compilers pad slow FP64 and tensor pipes with them."""
    start = graph.function.blocks[graph.block_of[index]].start
    position = index
    while position > start and graph.instructions[position].info.opclass is OpcodeClass.NOP:
        position -= 1
    return position


def _class_of(graph: FunctionGraph, edge: Edge) -> DependencyClass:
    source: Instruction = graph.instructions[edge.definition]
    if edge.links or source.info.variable_latency:  # its result comes by scoreboard, not by stall count
        return DependencyClass.SCHEDULE
    return dependency_class(source, edge.kind)
