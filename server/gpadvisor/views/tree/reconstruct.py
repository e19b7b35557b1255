# SPDX-License-Identifier: Apache-2.0
"""Calling contexts of a kernel's functions from flat costs and counted or sampled calls.

Zhou et al., *Measurement and analysis of GPU-accelerated applications with HPCToolkit* (2021), section 6.3:
a call graph with weights, weights of one where samples missed every call, circles of calls as one node, and
gprof's splitting: every call of a function is taken to cost the same.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import networkx as nx

from gpadvisor.model.kind import Kind

MAX_NODES: Final = 20_000
"""Of a kernel's tree, in scopes of the functions at all places: what a reader can open and a page can hold.
What does not fit is kept by function, without its callers."""


class Arrival(Kind):
    """How control came to a place."""

    KERNEL = "kernel"
    CALLED = "called"
    UNKNOWN = "unknown caller"  # nothing in the code that was analysed calls it
    FURTHER = "further contexts"  # what does not fit, its callers not told apart


@dataclass(frozen=True, slots=True)
class CallEdge:
    """A call instruction and one function that it calls."""

    caller: int
    site: int  # instruction index in the caller
    callee: int
    weight: float  # executions, else samples of the instruction
    possible: bool = False  # through a register: the callee is one of those whose address is taken


@dataclass(frozen=True, slots=True)
class ContextPlace:
    """A function, or several that call each other in circles, in one calling context."""

    members: tuple[int, ...]
    factor: float  # the share of each member's cost that is spent here
    arrival: Arrival
    parent: int | None = None  # place of the caller
    edge: int | None = None  # of the contexts' edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Contexts:
    """All places of a kernel, each behind its parent; the factors of a function add up to one."""

    places: tuple[ContextPlace, ...]
    edges: tuple[CallEdge, ...]  # with the weights that were used
    work: int  # visits of edges, and of functions and places


def reconstruct(
    costs: Sequence[float],
    edges: Iterable[CallEdge],
    root: int,
    *,
    counted: bool,
    sizes: Sequence[int] = (),
    max_nodes: int = MAX_NODES,
) -> Contexts:
    """The calling contexts below a kernel's entry.

    Args:
        costs: of each function, itself alone; one that costs nothing, and calls none that does, has no place.
        edges: calls between functions.
        root: the kernel.
        counted: whether weights are executions; a call of weight 0 is then one that was never made.
        sizes: nodes that a place of each function takes; one where it is not given.
        max_nodes: of all places; the costliest contexts are kept.
    """
    call_edges = _executed(tuple(edges)) if counted else tuple(edges)
    weights, work = [edge.weight for edge in call_edges], 0
    itself = list(range(len(costs)))
    work += _give_weight(costs, call_edges, weights, itself, root)  # step 2
    circles = _circles(len(costs), call_edges)  # step 3
    # Samples in a circle of calls may have missed every call that enters it.
    work += _give_weight(costs, call_edges, weights, circles.of, root)
    below, calls = _split(costs, call_edges, weights, circles, root)  # step 4
    sizes = sizes or [1] * len(costs)
    places, visits = _places(below, calls, circles, circles.of[root], sizes, max_nodes)
    return Contexts(
        places=tuple(places),
        edges=tuple(replace(edge, weight=weight) for edge, weight in zip(call_edges, weights, strict=True)),
        work=work + 3 * len(call_edges) + len(costs) + visits,
    )


def _executed(edges: tuple[CallEdge, ...]) -> tuple[CallEdge, ...]:
    """Without calls that were never made, unless counts have none at all of what they call."""
    called = {edge.callee for edge in edges if edge.weight > 0}
    return tuple(edge for edge in edges if edge.weight > 0 or edge.callee not in called)


@dataclass(frozen=True, slots=True)
class _Circles:
    """Functions that call each other in circles as one node, every other function as one by itself."""

    of: list[int]  # node of each function
    members: list[tuple[int, ...]]
    order: list[int]  # callers first


def _circles(functions: int, edges: Sequence[CallEdge]) -> _Circles:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(functions))
    graph.add_edges_from((edge.caller, edge.callee) for edge in edges)
    joined = nx.condensation(graph)
    return _Circles(
        of=[joined.graph["mapping"][function] for function in range(functions)],
        members=[tuple(sorted(joined.nodes[node]["members"])) for node in range(len(joined))],
        order=list(nx.topological_sort(joined)),
    )


def _give_weight(
    costs: Sequence[float], edges: Sequence[CallEdge], weights: list[float], of: Sequence[int], root: int
) -> int:
    """A weight of one to each call of what has a cost but no call with a weight, and so on up to the kernel.

    Args:
        costs: of each function.
        edges: calls.
        weights: of them, changed in place.
        of: the node of each function: itself, or its circle, which calls inside of it do not enter.
        root: the kernel.

    Returns:
        the number of edges visited.
    """
    nodes = max(of) + 1
    incoming: list[list[int]] = [[] for _ in range(nodes)]
    entered, spends = [False] * nodes, [False] * nodes
    for function, cost in enumerate(costs):
        spends[of[function]] |= cost > 0
    for index, edge in enumerate(edges):
        caller, callee = of[edge.caller], of[edge.callee]
        if caller != callee:
            incoming[callee].append(index)
            entered[callee] |= weights[index] > 0
            spends[caller] |= weights[index] > 0
    entered[of[root]] = True
    visits, pending = len(edges), [node for node in range(nodes) if spends[node]]
    while pending:
        node = pending.pop()
        if not entered[node]:
            entered[node] = True
            for index in incoming[node]:
                weights[index] = 1.0
                pending.append(of[edges[index].caller])
            visits += len(incoming[node])
    return visits


_Calls = list[list[tuple[int, int, float]]]
"""Of each node its calls of others: edge, node called, share of that node's cost that is due to the call."""


def _split(
    costs: Sequence[float],
    edges: Sequence[CallEdge],
    weights: Sequence[float],
    circles: _Circles,
    root: int,
) -> tuple[list[float], _Calls]:
    """What each node costs with all that it calls, and its calls."""
    into = [0.0] * len(circles.members)
    crossing = []
    for index, edge in enumerate(edges):
        caller, callee = circles.of[edge.caller], circles.of[edge.callee]
        if caller != callee != circles.of[root] and weights[index] > 0:
            into[callee] += weights[index]
            crossing.append((index, caller, callee))
    calls: _Calls = [[] for _ in circles.members]
    for index, caller, callee in crossing:
        calls[caller].append((index, callee, weights[index] / into[callee]))
    below = [sum(costs[member] for member in members) for members in circles.members]
    for node in reversed(circles.order):
        below[node] += sum(share * below[callee] for _, callee, share in calls[node])
    return below, [[call for call in of_function if below[call[1]] > 0] for of_function in calls]


def _places(
    below: Sequence[float],
    calls: _Calls,
    circles: _Circles,
    root: int,
    sizes: Sequence[int],
    max_nodes: int,
) -> tuple[list[ContextPlace], int]:
    """The places, costliest first, and the number of calls that were followed."""
    called = {callee for call in calls for _, callee, _ in call}
    heap: list[tuple[float, int, int, ContextPlace]] = []
    for node in circles.order:
        entry = Arrival.KERNEL if node == root else Arrival.UNKNOWN
        if node == root or (below[node] > 0 and node not in called):
            urgency = -math.inf if node == root else -below[node]
            heap.append((urgency, len(heap), node, ContextPlace(circles.members[node], 1.0, entry)))
    heapq.heapify(heap)
    places: list[ContextPlace] = []
    nodes_left, pushed = max_nodes, len(heap)
    while heap:
        node = heap[0][2]
        nodes_left -= sum(sizes[member] for member in circles.members[node]) + len(calls[node])
        if nodes_left < 0 and places:
            break
        place = heapq.heappop(heap)[3]
        places.append(place)
        for index, callee, share in calls[node]:
            factor = place.factor * share
            called_place = ContextPlace(
                circles.members[callee], factor, Arrival.CALLED, len(places) - 1, index
            )
            heapq.heappush(heap, (-factor * below[callee], pushed, callee, called_place))
            pushed += 1
    further = [0.0] * len(below)
    for _, _, node, place in heap:
        further[node] += place.factor
    for node in circles.order if heap else ():
        if further[node] > 0:
            places.append(ContextPlace(circles.members[node], further[node], Arrival.FURTHER))
            for _, callee, share in calls[node]:
                further[callee] += further[node] * share
                pushed += 1
    return places, pushed
