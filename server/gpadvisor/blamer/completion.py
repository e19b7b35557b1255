# SPDX-License-Identifier: Apache-2.0
"""Which of several operations on the waited scoreboards ends a wait, and how long it makes it.

A wait lasts until the last of them completes. When each does follows from where it was issued and from the
bounds of its latency; operations of one queue complete in the order of their issue.

Differs from GPA: Eq. 1 shares a stall out inversely to the distance of its sources. Distance stands for time
already covered; here that time is compared with what the operation takes, so that of two loads side by side
the nearer one does not get twice as much, and a load keeps its share behind a shared-memory access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.analyzer.scoreboards import Link
from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.model.blame import PruneRule
from gpadvisor.model.instruction import InOrderQueue, Pipe

_POINTS: Final = 16
"""Latencies looked at between the bounds of an operation; all are taken to be as likely."""
_MAX_BLOCKS: Final = 128
"""How many blocks are visited to see whether two operations lie on one path."""

_Floats = NDArray[np.float64]


def waiting_weights(
    graph: FunctionGraph, edges: Sequence[Edge], unsampled_issues: int
) -> list[tuple[Edge, float]]:
    """How much of the waiting each of several operations is responsible for, up to a common factor.

    An operation behind which another one of its queue always comes cannot be the last: its edge is cut.

    Args:
        graph: of the function.
        edges: to one use, from operations that the scoreboards it waits on count.
        unsampled_issues: issues of an operation that has none.
    """
    if len(edges) < 2:
        return [(edge, 1.0) for edge in edges]
    issues = np.array([float(graph.issues[edge.definition]) or float(unsampled_issues) for edge in edges])
    (use,) = {edge.use for edge in edges}
    passed = graph.cycles.shortest([edge.definition for edge in edges], use)
    elapsed = np.array([float(passed[edge.definition] or 0) for edge in edges])
    together, order = _together(graph, edges, use, issues), _in_order(graph, edges, elapsed)
    remaining = _not_overtaken(graph, edges, (order < 0) & (together >= 1.0))
    bounds = np.array([_bounds(graph, edges[index]) for index in remaining], dtype=np.float64)
    chosen = np.ix_(remaining, remaining)
    weights = issues[remaining] * _ends_wait(
        bounds - elapsed[remaining][:, None], together[chosen], order[chosen]
    )
    return [(edges[position], weight) for position, weight in zip(remaining, weights.tolist(), strict=True)]


def _not_overtaken(graph: FunctionGraph, edges: Sequence[Edge], overtaken: NDArray[np.bool_]) -> list[int]:
    """Cut the operations that another one follows in their queue; the places of the others."""
    remaining = []
    for index, (edge, row) in enumerate(zip(edges, overtaken, strict=True)):
        later = np.flatnonzero(row)
        if len(later):
            overtaker = graph.text(edges[int(later[-1])].definition)
            edge.cut(PruneRule.LATENCY, f"{overtaker}, issued later in the same queue, completes later")
        else:
            remaining.append(index)
    return remaining


def _bounds(graph: FunctionGraph, edge: Edge) -> tuple[float, float]:
    """The least and the longest time that an operation holds its scoreboard."""
    if edge.links == {Link.READ}:
        least, *_, most = graph.machine.sm.operands_read_cycles.value
        return least, most
    latency = graph.latency(edge.definition)
    if latency is None:
        least, *_, most = graph.machine.sm.unknown_latency_cycles.value
        return least, most
    return latency.min_cycles, max(latency.max_cycles, latency.min_cycles + 1)


def _ends_wait(bounds: _Floats, together: _Floats, order: NDArray[np.int64]) -> _Floats:
    """By operation, the waiting time of those passes in which it is the last to complete, on average.

    Args:
        bounds: earliest and latest completion of each, from the arrival at the use on.
        together: as ``_together`` says.
        order: as ``_in_order`` says.
    """
    least, span = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    steps = (np.arange(_POINTS) + 0.5) / _POINTS
    times = least[:, None] + span[:, None] * steps
    # [i, j, point]: the chance that j has completed where i completes at that point
    done = np.clip((times[:, None, :] - least[None, :, None]) / span[None, :, None], 0.0, 1.0)
    done = np.where(order[:, :, None] < 0, 0.0, np.where(order[:, :, None] > 0, 1.0, done))
    # At least a cycle: an operation that seems to be complete on arrival may have waited for its unit.
    completes_last = (1.0 - together[:, :, None] * (1.0 - done)).prod(axis=1)
    result: _Floats = (completes_last * np.maximum(times, 1.0)).mean(axis=1)
    return result


def _queue(graph: FunctionGraph, edge: Edge) -> InOrderQueue | Pipe | None:
    """What completes in order together with an operation."""
    info = graph.instructions[edge.definition].info
    if edge.links == {Link.READ}:
        return info.pipe if info.pipe is Pipe.LSU else None
    return info.queue


def _in_order(graph: FunctionGraph, edges: Sequence[Edge], elapsed: _Floats) -> NDArray[np.int64]:
    """[i, j]: below 0 where j completes after i by the order of their queue, above where before (or is i)."""
    queues = [_queue(graph, edge) for edge in edges]
    result = np.eye(len(edges), dtype=np.int64)
    for i, queue in enumerate(queues):
        for j, other_queue in enumerate(queues):
            if queue is not None and queue is other_queue and i != j:
                result[i, j] = np.sign(elapsed[j] - elapsed[i])
    return result


def _together(graph: FunctionGraph, edges: Sequence[Edge], use: int, issues: _Floats) -> _Floats:
    """[i, j]: how often j is outstanding at the use too when i is."""
    function = graph.function
    blocks = [function.block_of[edge.definition] for edge in edges]
    result = np.ones((len(edges), len(edges)))
    if len(set(blocks)) == 1:
        return result
    home = int(function.block_of[use])
    before = {block: _before(graph, block, home) for block in set(blocks)}
    for i, block in enumerate(blocks):
        for j, other_block in enumerate(blocks):
            if block != other_block:
                connected = block in before[other_block] or other_block in before[block]
                result[i, j] = min(1.0, issues[j] / issues[i]) if connected else 0.0
    return result


def _before(graph: FunctionGraph, block: int, home: int) -> set[int]:
    """Blocks on the ways to a block that do not pass the use's."""
    blocks = graph.function.blocks
    visited: set[int] = set()
    pending = [block]
    while pending and len(visited) < _MAX_BLOCKS:
        for source in blocks[pending.pop()].predecessors:
            if source not in visited:
                visited.add(int(source))
                if source != home:
                    pending.append(int(source))
    return visited
