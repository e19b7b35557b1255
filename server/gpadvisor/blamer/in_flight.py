# SPDX-License-Identifier: Apache-2.0
"""Accesses outstanding at a fence or at the end of a thread: the sources of membar and drain stalls.

Differs from GPA: its sampling had no such reasons; synchronization stalls of a fence went to the instruction
before by address.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from gpadvisor.blamer.classify import copies_into_shared
from gpadvisor.blamer.graph import Edge, FunctionGraph, backwards
from gpadvisor.blamer.sources import UNATTRIBUTED, Source, StallSources, UseResult
from gpadvisor.model.blame import DependencyClass, DependencyKind, PruneRule
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass

_WRITES: Final = frozenset(
    {OpcodeClass.STORE, OpcodeClass.REDUCTION, OpcodeClass.ATOMIC, OpcodeClass.ASYNC_COPY}
)
_ON_CHIP: Final = frozenset({MemorySpace.SHARED, MemorySpace.TENSOR})
_MAX_BEHIND: Final = 256
"""How many instructions are looked at for the one that a stall was sampled behind."""


def fence_stall(graph: FunctionGraph, use: int, reason: int) -> UseResult:
    """Sources of a membar stall: the accesses before the fence, else the fence."""
    fence = nearest(graph, use, is_fence)
    if fence is None:
        return UseResult((), {reason: UNATTRIBUTED})
    sources = [*_accesses(graph, fence, _WRITES)] or [*_accesses(graph, fence, {OpcodeClass.LOAD})]
    edges, running = _outstanding(graph, use, fence, sources)
    if not running and fence != use:
        running = [Edge(fence, use, DependencyKind.IN_FLIGHT, ())]
        edges = [*edges, *running]
    return UseResult(tuple(edges), {reason: _found(graph, running, DependencyClass.MEMORY_BARRIER)})


def is_fence(instruction: Instruction) -> bool:
    """Whether an instruction is a fence; ERRBAR only stands behind one, and is where its wait is sampled."""
    return instruction.info.opclass is OpcodeClass.MEMORY_BARRIER and instruction.opcode != "ERRBAR"


def drain_stall(graph: FunctionGraph, use: int, reason: int) -> UseResult:
    """Sources of a drain stall: the stores that an EXIT waits for, the late and the large ones above all."""
    ending = exit_before(graph, use)
    if ending is None:
        return UseResult((), {reason: UNATTRIBUTED})
    sources = _accesses(graph, ending, _WRITES)
    off_chip = [source for source in sources if graph.instructions[source].info.space not in _ON_CHIP]
    stores = [source for source in off_chip if not copies_into_shared(graph.instructions[source])]
    edges, running = _outstanding(graph, use, ending, stores or off_chip or sources)
    outstanding = _found(graph, running, DependencyClass.STORE_IN_FLIGHT)
    by_traffic = (
        source._replace(weight=_traffic(graph, source.edge.definition, ending))
        for source in outstanding.sources
    )
    return UseResult(tuple(edges), {reason: outstanding._replace(sources=tuple(by_traffic))})


def _traffic(graph: FunctionGraph, store: int, ending: int) -> float:
    """What a store sends to memory for each warp that ends there: its last execution."""
    executed, ended = graph.issue_counts[store], graph.issue_counts[ending]
    return float(graph.occupied[store]) * (min(1.0, ended / executed) if executed and ended else 1.0)


def exit_before(graph: FunctionGraph, use: int) -> int | None:
    """The EXIT that a sample at or behind it belongs to, through the filling behind it."""
    index = use
    while index >= 0:
        opclass = graph.instructions[index].info.opclass
        if opclass is OpcodeClass.EXIT:
            return index
        filling = (
            opclass is OpcodeClass.NOP or graph.instructions[index].target == graph.instructions[index].pc
        )
        if index < use and not filling:
            return None
        index -= 1
    return None


def nearest(graph: FunctionGraph, use: int, matches: Callable[[Instruction], bool]) -> int | None:
    """A wanted instruction: the use itself, or the nearest one on the ways to it.

    A warp is not held at a barrier or a fence but where it next accesses memory or branches, which may be
    many instructions later.
    """
    visited = {use}
    frontier = [use]
    while frontier and len(visited) < _MAX_BEHIND:
        for index in frontier:
            if matches(graph.instructions[index]):
                return index
        frontier = [
            predecessor
            for index in frontier
            for predecessor in graph.before(index)
            if predecessor not in visited
        ]
        visited.update(frontier)
    return None


def _accesses(graph: FunctionGraph, end: int, classes: Collection[OpcodeClass]) -> list[int]:
    """Accesses on the paths to a fence or an EXIT, back to the fence before."""
    accesses, _ = backwards(
        graph,
        end,
        take=lambda index: graph.instructions[index].info.opclass in classes,
        stop=lambda index: is_fence(graph.instructions[index]),
    )
    return accesses


def _outstanding(
    graph: FunctionGraph, use: int, end: int, sources: list[int]
) -> tuple[list[Edge], list[Edge]]:
    """Edges from accesses to a use, and those of them that can still be running (latency rule)."""
    edges = [Edge(source, use, DependencyKind.IN_FLIGHT, ()) for source in sources]
    distances = graph.paths.longest(sources, end)
    cycles = graph.cycles.shortest(sources, end)
    running = []
    for edge in edges:
        reach, bound = cycles[edge.definition], graph.bound_cycles(edge.definition)
        along = distances[edge.definition]
        edge.distance = None if along is None else along + max(use - end, 0)
        if reach is not None and bound is not None and reach > bound:
            edge.cut(PruneRule.LATENCY, f"{reach} cycles lie between, its latency is at most {bound}")
        else:
            running.append(edge)
    # Stores queue up behind each other: where all are old, the youngest still holds the warp.
    return edges, running or edges[:1]


def _found(graph: FunctionGraph, edges: list[Edge], dependency: DependencyClass) -> StallSources:
    for edge in edges:
        edge.alive = True
    if not edges:
        return UNATTRIBUTED
    graph.measure(edges)
    return StallSources(tuple(Source(edge, dependency, edge.distance) for edge in edges))
