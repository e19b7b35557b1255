# SPDX-License-Identifier: Apache-2.0
"""Orders, dominators and cycles of directed graphs whose nodes are numbers (GPA section IV)."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx


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

    Args:
        order: the entry, then every node that it reaches.
        predecessors: of each node.
    """
    reached = set(order)
    graph = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from((above, node) for node in order for above in predecessors[node] if above in reached)
    result: list[int | None] = [None] * len(predecessors)
    for node, above in nx.immediate_dominators(graph, order[0]).items():
        if node != order[0]:
            result[node] = above
    return result


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
    """The strongly connected components, single nodes included, each before those that lead to it."""
    graph = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from((node, target) for node in nodes for target in successors[node])
    return [list(component) for component in nx.strongly_connected_components(graph)]
