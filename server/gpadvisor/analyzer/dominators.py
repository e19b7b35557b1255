# SPDX-License-Identifier: Apache-2.0
"""Depth-first order and dominators of a control-flow graph (GPA section IV, dominator based pruning)."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx


def reverse_postorder(successors: Sequence[Sequence[int]], entry: int = 0) -> list[int]:
    """Blocks that the entry reaches, each before those that it leads to except along retreating edges."""
    order: list[int] = []
    _visit(successors, entry, set(), order)
    order.reverse()
    return order


def whole_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """The same for all blocks; those that the entry does not reach stand before those that they lead to."""
    order: list[int] = []
    visited: set[int] = set()
    for root in range(len(successors)):
        if root not in visited:
            _visit(successors, root, visited, order)
    order.reverse()
    return order


def _visit(successors: Sequence[Sequence[int]], root: int, visited: set[int], order: list[int]) -> None:
    """Add what a root reaches, in postorder."""
    visited.add(root)
    stack = [(root, iter(successors[root]))]
    while stack:
        block, pending = stack[-1]
        for successor in pending:
            if successor not in visited:
                visited.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            stack.pop()
            order.append(block)


def immediate_dominators(order: Sequence[int], predecessors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate dominator of each block; None for the entry and for blocks that it does not reach.

    Args:
        order: the entry, then every block that it reaches.
        predecessors: of each block.
    """
    reached = set(order)
    graph = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from(
        (above, block) for block in order for above in predecessors[block] if above in reached
    )
    result: list[int | None] = [None] * len(predecessors)
    for block, above in nx.immediate_dominators(graph, order[0]).items():
        if block != order[0]:
            result[block] = above
    return result


class DominatorTree:
    """Answers "does a dominate b" in constant time."""

    def __init__(self, idom: Sequence[int | None], entry: int = 0) -> None:
        """Number the tree depth first."""
        children: list[list[int]] = [[] for _ in idom]
        for block, parent in enumerate(idom):
            if parent is not None:
                children[parent].append(block)
        self._first = [-1] * len(idom)
        self._last = [-1] * len(idom)
        clock = 0
        stack = [(entry, False)]
        while stack:
            block, done = stack.pop()
            if done:
                self._last[block] = clock
                continue
            self._first[block] = clock
            clock += 1
            stack.append((block, True))
            stack.extend((child, False) for child in children[block])

    def dominates(self, above: int, below: int) -> bool:
        """Whether every path from the entry to ``below`` passes ``above``; a block dominates itself."""
        first = self._first
        return first[above] >= 0 <= first[below] and first[above] <= first[below] < self._last[above]
