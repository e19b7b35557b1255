# SPDX-License-Identifier: Apache-2.0
"""Orders, dominators and components of graphs of numbered blocks (GPA section IV)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


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

    By Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm). networkx has it too, but importing it
    takes longer than analysing most kernels.

    Args:
        order: reverse postorder of the blocks that the entry reaches.
        predecessors: of each block.
    """
    rank = {block: position for position, block in enumerate(order)}
    sources = [[rank[source] for source in predecessors[block] if source in rank] for block in order]
    above = [0, *[-1] * (len(order) - 1)]  # by rank
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


def post_dominators(successors: Sequence[Sequence[int]], end: int) -> list[int | None]:
    """The immediate post-dominator of each block; None for the end and for blocks that do not lead to it."""
    predecessors: list[list[int]] = [[] for _ in successors]
    for block, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(block)
    return immediate_dominators(reverse_postorder(predecessors, end), successors)


def _common(above: Sequence[int], first: int, second: int) -> int:
    """The nearest dominator of both, by rank."""
    while first != second:
        if first > second:
            first = above[first]
        else:
            second = above[second]
    return first


def strongly_connected(nodes: Iterable[int], successors: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """The strongly connected components (Tarjan), single nodes too; each before those that lead to it."""
    visit: dict[int, int] = {}  # when each was come to
    lowest: dict[int, int] = {}  # the earliest visit on a way from it that is of no component yet
    left: list[int] = []  # visited, and of no component yet
    components: list[list[int]] = []
    for root in nodes:
        stack = [] if root in visit else [(root, iter(successors[root]))]
        while stack:
            node, pending = stack[-1]
            if node not in visit:
                visit[node] = lowest[node] = len(visit)
                left.append(node)
            for target in pending:
                if target not in visit:
                    stack.append((target, iter(successors[target])))
                    break
                if target in lowest:
                    lowest[node] = min(lowest[node], visit[target])
            else:
                stack.pop()
                if stack:
                    lowest[stack[-1][0]] = min(lowest[stack[-1][0]], lowest[node])
                if lowest[node] == visit[node]:
                    component = [left.pop()]
                    while component[-1] != node:
                        component.append(left.pop())
                    for member in component:
                        del lowest[member]
                    components.append(component)
    return components


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
