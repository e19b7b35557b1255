# SPDX-License-Identifier: Apache-2.0
"""Orders, dominators and cycles of directed graphs whose nodes are numbers (GPA section IV)."""

from __future__ import annotations

from collections.abc import Sequence


def reverse_postorder(successors: Sequence[Sequence[int]], entry: int = 0) -> list[int]:
    """Nodes that the entry reaches, each before those that it leads to except along retreating edges."""
    order: list[int] = []
    _visit(successors, entry, set(), order)
    order.reverse()
    return order


def whole_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """The same for all nodes; those that the entry does not reach stand before those that they lead to."""
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
        node, pending = stack[-1]
        for successor in pending:
            if successor not in visited:
                visited.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            stack.pop()
            order.append(node)


def immediate_dominators(order: Sequence[int], predecessors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate dominator of each node; None for the entry and for nodes that it does not reach.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2006).

    Args:
        order: the entry, then every node that it reaches, in reverse postorder.
        predecessors: of each node.
    """
    rank = [-1] * len(predecessors)
    for position, node in enumerate(order):
        rank[node] = position
    above = [-1] * len(order)  # by rank
    above[0] = 0
    sources = [[rank[source] for source in predecessors[node] if rank[source] >= 0] for node in order]
    changed = True
    while changed:
        changed = False
        for position in range(1, len(order)):
            nearest = -1
            for source in sources[position]:
                if above[source] >= 0:
                    nearest = source if nearest < 0 else _common(above, nearest, source)
            if above[position] != nearest:
                above[position] = nearest
                changed = True
    result: list[int | None] = [None] * len(predecessors)
    for position in range(1, len(order)):
        result[order[position]] = order[above[position]]
    return result


def _common(above: list[int], left: int, right: int) -> int:
    """The nearest common dominator, by rank."""
    while left != right:
        if left < right:
            right = above[right]
        else:
            left = above[left]
    return left


def post_dominators(successors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate post-dominator of each node, and at last of the exit, whose number is that of the nodes.

    None for the exit and for nodes that do not lead to it.
    """
    end = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for node, ways in enumerate(successors):
        for way in ways:
            predecessors[way].append(node)
    return immediate_dominators(reverse_postorder(predecessors, end), [*successors, []])


def strongly_connected(nodes: Sequence[int], successors: dict[int, list[int]]) -> list[list[int]]:
    """The strongly connected components, single nodes included, each before those that lead to it.

    Tarjan: Depth-First Search and Linear Graph Algorithms (1972).
    """
    found: dict[int, int] = {}  # the order in which nodes were come to
    lowest: dict[int, int] = {}  # the first one that a node of an open component leads to
    components: list[list[int]] = []
    open_nodes: list[int] = []
    for root in nodes:
        if root in found:
            continue
        found[root] = lowest[root] = len(found)
        open_nodes.append(root)
        stack = [(root, iter(successors[root]))]
        while stack:
            node, pending = stack[-1]
            for successor in pending:
                if successor not in found:
                    found[successor] = lowest[successor] = len(found)
                    open_nodes.append(successor)
                    stack.append((successor, iter(successors[successor])))
                    break
                if successor in lowest:
                    lowest[node] = min(lowest[node], found[successor])
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
                if lowest[node] == found[node]:
                    components.append(_closed(node, open_nodes, lowest))
    return components


def _closed(first: int, open_nodes: list[int], lowest: dict[int, int]) -> list[int]:
    """Take the component that begins with a node off the open ones."""
    component: list[int] = []
    while not component or component[-1] != first:
        component.append(open_nodes.pop())
        del lowest[component[-1]]
    return component
