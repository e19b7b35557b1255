# SPDX-License-Identifier: Apache-2.0
"""Single dependency coverage: how much of the graph needs no apportioning (GPA section VI-C)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from gpadvisor.model.blame import Coverage

Links = tuple[int, Collection[int], Collection[int]]
"""A use, the defs of all edges into it, and the defs of those that are alive."""


def coverage(
    sampled: Iterable[int], links: Iterable[Links], is_memory: Callable[[int], bool]
) -> tuple[int, int, int]:
    """Count the nodes of one function's graph, and those with a single dependency before and after pruning.

    A node is single if at most one edge into it is of each kind, memory and execution.

    Args:
        sampled: instructions with samples.
        links: edges of the graph; a use may come several times.
        is_memory: whether a def competes for memory stalls.
    """
    nodes = set(sampled)
    groups = [*links]
    for use, definitions, _ in groups:
        nodes.add(use)
        nodes.update(definitions)
    memory = {definition for definition in nodes if is_memory(definition)}
    before = _several(((use, definitions) for use, definitions, _ in groups), memory)
    after = _several(((use, alive) for use, _, alive in groups), memory)
    return len(nodes), len(nodes) - len(before), len(nodes) - len(after)


def _several(links: Iterable[tuple[int, Collection[int]]], memory: Collection[int]) -> set[int]:
    """The uses with several edges of one kind."""
    counts: dict[int, tuple[int, int]] = {}
    for use, definitions in links:
        of_memory = sum(map(memory.__contains__, definitions))
        counted = counts.get(use, (0, 0))
        counts[use] = counted[0] + of_memory, counted[1] + len(definitions) - of_memory
    return {use for use, count in counts.items() if max(count) > 1}


def combined(counts: Iterable[tuple[int, int, int]]) -> Coverage:
    """The coverage of a kernel from the counts of its functions."""
    nodes = before = after = 0
    for count in counts:
        nodes, before, after = nodes + count[0], before + count[1], after + count[2]
    return Coverage(before=before / nodes if nodes else None, after=after / nodes if nodes else None)
