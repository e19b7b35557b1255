# SPDX-License-Identifier: Apache-2.0
"""Single dependency coverage: how much of the graph needs no apportioning (GPA section VI-C)."""

from __future__ import annotations

from collections.abc import Iterable

from gpadvisor.model.blame import Coverage

Link = tuple[int, int, bool, bool]
"""Def, use, whether the def competes for memory stalls, whether the edge is alive."""


def coverage(sampled: Iterable[int], links: Iterable[Link]) -> tuple[int, int, int]:
    """Count the nodes of one function's graph, and those with a single dependency before and after pruning.

    A node is single if at most one edge into it is of each kind, memory and execution.

    Args:
        sampled: instructions with samples.
        links: edges of the graph.
    """
    nodes = set(sampled)
    before: dict[tuple[int, bool], int] = {}
    after: dict[tuple[int, bool], int] = {}
    for definition, use, memory, alive in links:
        nodes.update((definition, use))
        before[use, memory] = before.get((use, memory), 0) + 1
        if alive:
            after[use, memory] = after.get((use, memory), 0) + 1
    several_before = {use for (use, _), count in before.items() if count > 1}
    several_after = {use for (use, _), count in after.items() if count > 1}
    return len(nodes), len(nodes) - len(several_before), len(nodes) - len(several_after)


def combined(counts: Iterable[tuple[int, int, int]]) -> Coverage:
    """The coverage of a kernel from the counts of its functions."""
    nodes = before = after = 0
    for count in counts:
        nodes, before, after = nodes + count[0], before + count[1], after + count[2]
    return Coverage(before=before / nodes if nodes else None, after=after / nodes if nodes else None)
