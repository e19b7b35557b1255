# SPDX-License-Identifier: Apache-2.0
"""Synchronization stalls: the barrier, and what the slow side did before it (GPA section IV, Fig. 5).

A warp waits at a barrier for the warps that are not there yet. What those are doing is in the profile: the
samples taken between the previous barrier and this one. The wait goes to the causes of those samples, of the
late ones above all; to the barrier itself as much as it takes when nobody is late.

Differs from GPA: the paper attributes such stalls to the barrier alone, its code to the instruction before by
address. Neither says what to change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gpadvisor.blamer.graph import Edge, FunctionGraph, backwards
from gpadvisor.blamer.in_flight import nearest
from gpadvisor.blamer.sources import UNATTRIBUTED, Source, StallSources, UseResult, weighed
from gpadvisor.model.blame import DependencyClass, DependencyKind, Role
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Function

BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER})
_SYNCHRONIZING: Final = BARRIERS | {OpcodeClass.MEMORY_BARRIER, OpcodeClass.WARP_SYNC}
_GROUP_OPCODES: Final = frozenset({"WARPGROUP", "WARPGROUPSET"})
_MIN_SHARE: Final = 0.05
"""A cause with less than this share of the slow side's time is not named."""

Spent = Mapping[int, Sequence[tuple[int, int]]]
"""By sampled instruction: what its samples are due to, and how many they are."""


def barrier_of(graph: FunctionGraph, use: int, *, warpgroup: bool) -> int | None:
    """The barrier that a stalled instruction waits at: itself, or the one it came by last."""
    if not warpgroup:
        return nearest(graph, use, lambda instruction: instruction.info.opclass in BARRIERS)
    positions: list[int] = [use, *graph.before(use)]
    return next((index for index in positions if graph.instructions[index].opcode in _GROUP_OPCODES), None)


def synchronization_stall(
    graph: FunctionGraph, use: int, reason: int, spent: Spent, waited_cycles: float, *, warpgroup: bool
) -> UseResult:
    """Sources of a barrier stall.

    Args:
        graph: of the function.
        use: the sampled instruction.
        reason: index of its stall reason.
        spent: where the samples of other reasons went.
        waited_cycles: of all warps together; 0 where that is not known.
        warpgroup: the stall is for the warps of a warpgroup.
    """
    barrier = barrier_of(graph, use, warpgroup=warpgroup)
    if barrier is None:
        return UseResult((), {reason: UNATTRIBUTED})
    slow = slow_side(graph, barrier, spent)
    if barrier != use:
        own_share = _own_share(graph, barrier, waited_cycles) if slow else 1.0
        everything = sum(slow.values())
        slow = {cause: (1 - own_share) * weight / everything for cause, weight in slow.items()}
        if own_share:
            slow[barrier] = own_share
    edges = [Edge(definition, use, DependencyKind.SYNCHRONIZATION, ()) for definition in slow]
    if not edges:
        return UseResult((), {reason: UNATTRIBUTED})
    graph.measure(edges)
    for edge in edges:
        edge.alive = True
    sources = tuple(weighed(edge, DependencyClass.SYNCHRONIZATION, slow[edge.definition]) for edge in edges)
    return UseResult(tuple(edges), {reason: StallSources(sources)})


def _own_share(graph: FunctionGraph, barrier: int, waited_cycles: float) -> float:
    """How much of the waiting there would be with nobody late: the barrier's own latency, for each warp."""
    least = graph.machine.sm.barrier_cycles.value * int(graph.issues[barrier])
    return min(1.0, least / waited_cycles) if waited_cycles else 0.0


def slow_side(graph: FunctionGraph, barrier: int, spent: Spent) -> dict[int, float]:
    """What the warps that come late spend their time on, between the previous barrier and this one.

    The samples of all warps tell what happens there. The later it happens, the more warps wait for it: each
    moment counts by how much of the way lies behind it. Where only some warps go, they take that much longer
    than the others: such samples count by how many warps pass them by.

    Returns:
        Cause and weight; without what is spread too thinly to be named.
    """

    def is_barrier(index: int) -> bool:
        return index != barrier and graph.instructions[index].info.opclass in BARRIERS

    _, passed = backwards(graph, barrier, take=lambda _: False, stop=is_barrier, blocks=2048)
    always = _dominators(graph.function, graph.function.block_of[barrier])
    late_causes = [
        (cause, samples * passing_by)
        for start, end in _in_time(graph, barrier, passed)
        if (passing_by := _passing_by(graph, start, always))
        for index in range(start, end)
        for cause, samples in spent.get(index, ())
    ]
    behind = 0.0
    total: dict[int, float] = {}
    for cause, weight in late_causes:
        total[cause] = total.get(cause, 0.0) + weight * (behind + weight / 2)
        behind += weight
    total.pop(barrier, None)
    everything = sum(total.values())
    heaviest = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return {cause: weight for cause, weight in heaviest if weight >= _MIN_SHARE * everything}


def _dominators(function: Function, block: int) -> frozenset[int]:
    """The blocks that are always passed on the way to one, itself included."""
    result = set()
    index: int | None = block
    while index is not None and index not in result:
        result.add(index)
        index = function.idom[index]
    return frozenset(result)


def _in_time(graph: FunctionGraph, barrier: int, passed: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of the way to a barrier, those farthest from it first."""
    distances = graph.paths.longest([start for start, _ in passed], barrier)
    return sorted(passed, key=lambda part: (-(distances[part[0]] or 0), part[0]))


def _passing_by(graph: FunctionGraph, start: int, always: Collection[int]) -> float:
    """How many warps come to where a part of the way branches off, for each that takes it; at least 1."""
    function = graph.function
    index: int | None = function.block_of[start]
    while index is not None and index not in always:
        index = function.idom[index]
    own_issues = int(graph.issues[start])
    if index is None or not own_issues:
        return 1.0
    return max(1.0, int(graph.issues[function.blocks[index].start]) / own_issues)


def by_address(
    graph: FunctionGraph, use: int, reason: int, dependency: DependencyClass, classes: Collection[OpcodeClass]
) -> UseResult:
    """The released code's way: a barrier keeps its stalls, others pass them to the instruction before."""
    if graph.instructions[use].info.opclass in classes or use == 0:
        return UseResult((), {reason: StallSources((), Role.SELF, dependency)})
    edge = Edge(use - 1, use, DependencyKind.SYNCHRONIZATION, (), alive=True, distance=1)
    return UseResult((edge,), {reason: StallSources((Source(edge, dependency, 1),))})


def by_barrier(graph: FunctionGraph, use: int, reason: int, dependency: DependencyClass) -> UseResult:
    """The paper's way: synchronization stalls are attributed to synchronization instructions."""
    synchronizer = nearest(graph, use, lambda instruction: instruction.info.opclass in _SYNCHRONIZING)
    if synchronizer is None:
        return UseResult((), {reason: UNATTRIBUTED})
    if synchronizer == use:
        return UseResult((), {reason: StallSources((), Role.SELF, dependency)})
    edge = Edge(synchronizer, use, DependencyKind.SYNCHRONIZATION, (), alive=True)
    graph.measure([edge])
    return UseResult((edge,), {reason: StallSources((Source(edge, dependency, edge.distance),))})
