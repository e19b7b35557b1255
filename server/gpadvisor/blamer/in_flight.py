# SPDX-License-Identifier: Apache-2.0
"""Accesses outstanding at a fence or at the end of a thread: the sources of membar and drain stalls.

Differs from GPA: its sampling had no such reasons; synchronization stalls of a fence went to the instruction
before by address.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from gpadvisor.blamer.graph import Edge, FunctionGraph, backwards
from gpadvisor.blamer.sources import UNATTRIBUTED, Found, Source, UseResult
from gpadvisor.model.blame import DependencyClass, DependencyKind, PruneRule
from gpadvisor.model.instruction import MemorySpace, OpcodeClass

_WRITES: Final = frozenset(
    {OpcodeClass.STORE, OpcodeClass.REDUCTION, OpcodeClass.ATOMIC, OpcodeClass.ASYNC_COPY}
)
_ON_CHIP: Final = frozenset({MemorySpace.SHARED, MemorySpace.TENSOR})
_FENCES: Final = frozenset({OpcodeClass.MEMORY_BARRIER})
_MAX_SOURCES: Final = 64
_NEAR: Final = 2
"""A stall is charged to a fence, or to an instruction this close behind it."""


def fence_stall(graph: FunctionGraph, use: int, reason: int) -> UseResult:
    """Sources of a membar stall: the accesses before the fence, else the fence."""
    fence = nearest(graph, use, _FENCES)
    if fence is None:
        return UseResult((), {reason: UNATTRIBUTED})
    sources = [*_accesses(graph, fence, _WRITES)] or [*_accesses(graph, fence, {OpcodeClass.LOAD})]
    edges, left = _outstanding(graph, use, fence, sources)
    if not left and fence != use:
        left = [Edge(fence, use, DependencyKind.IN_FLIGHT, ())]
        edges = [*edges, *left]
    return UseResult(tuple(edges), {reason: _found(graph, left, DependencyClass.MEMORY_BARRIER)})


def drain_stall(graph: FunctionGraph, use: int, reason: int) -> UseResult:
    """Sources of a drain stall: the stores that an EXIT waits for."""
    ending = exit_before(graph, use)
    if ending is None:
        return UseResult((), {reason: UNATTRIBUTED})
    sources = _accesses(graph, ending, _WRITES)
    off_chip = [one for one in sources if graph.instructions[one].info.space not in _ON_CHIP]
    edges, left = _outstanding(graph, use, ending, off_chip or sources)
    return UseResult(tuple(edges), {reason: _found(graph, left, DependencyClass.STORE_IN_FLIGHT)})


def exit_before(graph: FunctionGraph, use: int) -> int | None:
    """The EXIT that a sample at or behind it belongs to, through the filling behind it."""
    at = use
    while at >= 0:
        opclass = graph.instructions[at].info.opclass
        if opclass is OpcodeClass.EXIT:
            return at
        filling = opclass is OpcodeClass.NOP or graph.instructions[at].target == graph.instructions[at].pc
        if at < use and not filling:
            return None
        at -= 1
    return None


def nearest(graph: FunctionGraph, use: int, classes: Collection[OpcodeClass]) -> int | None:
    """An instruction of these classes: the use itself, or the nearest one just before it."""
    at = [use]
    for _ in range(_NEAR + 1):
        for index in at:
            if graph.instructions[index].info.opclass in classes:
                return index
        at = [one for index in at for one in graph.before(index)][:8]
    return None


def _accesses(graph: FunctionGraph, end: int, classes: Collection[OpcodeClass]) -> list[int]:
    """Accesses on the paths to a fence or an EXIT, back to the fence before."""
    taken, _ = backwards(
        graph,
        end,
        take=lambda index: graph.instructions[index].info.opclass in classes,
        stop=lambda index: graph.instructions[index].info.opclass in _FENCES,
        limit=_MAX_SOURCES,
    )
    return taken


def _outstanding(
    graph: FunctionGraph, use: int, end: int, sources: list[int]
) -> tuple[list[Edge], list[Edge]]:
    """Edges from accesses to a use, and those of them that can still be running (latency rule)."""
    edges = [Edge(source, use, DependencyKind.IN_FLIGHT, ()) for source in sources]
    distances = graph.paths.longest(sources, end)
    cycles = graph.cycles.shortest(sources, end)
    left = []
    for edge in edges:
        reach, bound = cycles[edge.definition], graph.bound_cycles(edge.definition)
        along = distances[edge.definition]
        edge.distance = None if along is None else along + max(use - end, 0)
        if reach is not None and bound is not None and reach > bound:
            edge.cut(PruneRule.LATENCY, f"{reach} cycles lie between, its latency is at most {bound}")
        else:
            left.append(edge)
    # Stores queue up behind each other: where all are old, the youngest still holds the warp.
    return edges, left or edges[:1]


def _found(graph: FunctionGraph, edges: list[Edge], dependency: DependencyClass) -> Found:
    for edge in edges:
        edge.alive = True
    if not edges:
        return UNATTRIBUTED
    graph.measure(edges)
    return Found(tuple(Source(edge, dependency, edge.distance) for edge in edges))
