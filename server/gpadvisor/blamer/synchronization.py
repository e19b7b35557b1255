# SPDX-License-Identifier: Apache-2.0
"""Synchronization stalls: the barrier, and what the slow side did before it (GPA section IV, Fig. 5).

A warp waits at a barrier for the warps that are not there yet. What those are doing is in the profile: the
samples taken between the previous barrier and this one. The wait goes to the causes of those samples.

Differs from GPA: the paper attributes such stalls to the barrier alone, its code to the instruction before by
address. Neither says what to change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gpadvisor.blamer.graph import Edge, FunctionGraph, backwards
from gpadvisor.blamer.in_flight import nearest
from gpadvisor.blamer.sources import UNATTRIBUTED, Found, Source, UseResult
from gpadvisor.model.blame import DependencyClass, DependencyKind, Role
from gpadvisor.model.instruction import OpcodeClass

BARRIERS: Final = frozenset({OpcodeClass.BARRIER, OpcodeClass.CLUSTER_BARRIER})
_GROUP_OPCODES: Final = frozenset({"WARPGROUP", "WARPGROUPSET"})
_MAX_SHOWN: Final = 8
_MIN_SHARE: Final = 0.05
"""A cause with less than this share of the slow side's samples is not named."""

Spent = Mapping[int, Sequence[tuple[int, int]]]
"""By sampled instruction: what its samples are due to, and how many they are."""


def barrier_of(graph: FunctionGraph, use: int, *, warpgroup: bool) -> int | None:
    """The barrier that a stalled instruction waits at: itself, or just before it."""
    if not warpgroup:
        return nearest(graph, use, BARRIERS)
    at: list[int] = [use, *graph.before(use)]
    return next((index for index in at if graph.instructions[index].opcode in _GROUP_OPCODES), None)


def synchronization_stall(
    graph: FunctionGraph, use: int, reason: int, spent: Spent, *, warpgroup: bool
) -> UseResult:
    """Sources of a barrier stall.

    Args:
        graph: of the function.
        use: the sampled instruction.
        reason: index of its stall reason.
        spent: where the samples of other reasons went.
        warpgroup: the stall is for the warps of a warpgroup.
    """
    barrier = barrier_of(graph, use, warpgroup=warpgroup)
    if barrier is None:
        return UseResult((), {reason: UNATTRIBUTED})
    slow = slow_side(graph, barrier, spent, named_only=barrier == use)
    edges = [Edge(definition, use, DependencyKind.SYNCHRONIZATION, ()) for definition in slow]
    if not edges:
        return UseResult((), {reason: UNATTRIBUTED})
    graph.measure(edges)
    for edge in edges:
        edge.alive = True
    # Time is shared out as it was spent: the samples of each cause stand for Eq. 1's weight.
    sources = tuple(
        Source(edge, DependencyClass.SYNCHRONIZATION, 1, float(slow[edge.definition])) for edge in edges
    )
    return UseResult(tuple(edges), {reason: Found(sources)})


def slow_side(graph: FunctionGraph, barrier: int, spent: Spent, *, named_only: bool) -> dict[int, int]:
    """What warps spent their time on between the previous barrier and this one: cause and samples.

    What is spread too thinly to be named stands under the barrier itself, unless ``named_only``: then the
    heaviest causes stand for all.
    """

    def is_barrier(index: int) -> bool:
        return index != barrier and graph.instructions[index].info.opclass in BARRIERS

    _, passed = backwards(graph, barrier, take=lambda _: False, stop=is_barrier, limit=1, blocks=2048)
    total: dict[int, int] = {}
    for start, end in passed:
        for index in range(start, end):
            for cause, samples in spent.get(index, ()):
                total[cause] = total.get(cause, 0) + samples
    total.pop(barrier, None)
    everything = sum(total.values())
    heaviest = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:_MAX_SHOWN]
    named = {cause: samples for cause, samples in heaviest if samples >= _MIN_SHARE * everything}
    if named_only:
        return named or dict(heaviest)
    rest = everything - sum(named.values())
    return {**named, barrier: rest} if rest or not named else named


def by_address(
    graph: FunctionGraph, use: int, reason: int, dependency: DependencyClass, classes: Collection[OpcodeClass]
) -> UseResult:
    """The released code's way: a barrier keeps its stalls, others pass them to the instruction before."""
    if graph.instructions[use].info.opclass in classes or use == 0:
        return UseResult((), {reason: Found((), Role.SELF, dependency)})
    edge = Edge(use - 1, use, DependencyKind.SYNCHRONIZATION, (), alive=True, distance=1)
    return UseResult((edge,), {reason: Found((Source(edge, dependency, 1),))})


def by_barrier(graph: FunctionGraph, use: int, reason: int, dependency: DependencyClass) -> UseResult:
    """The paper's way: synchronization stalls are attributed to synchronization instructions."""
    found = nearest(graph, use, {*BARRIERS, OpcodeClass.MEMORY_BARRIER, OpcodeClass.WARP_SYNC})
    if found is None:
        return UseResult((), {reason: UNATTRIBUTED})
    if found == use:
        return UseResult((), {reason: Found((), Role.SELF, dependency)})
    edge = Edge(found, use, DependencyKind.SYNCHRONIZATION, (), alive=True)
    graph.measure([edge])
    return UseResult((edge,), {reason: Found((Source(edge, dependency, edge.distance),))})
