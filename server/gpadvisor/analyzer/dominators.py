# SPDX-License-Identifier: Apache-2.0
"""Depth-first order and dominators of a control-flow graph (GPA section IV, dominator based pruning)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def reverse_postorder(successors: Sequence[Sequence[int]], entry: int = 0) -> list[int]:
    """Blocks that the entry reaches, each before those that it leads to except along retreating edges."""
    order: list[int] = []
    _visit(successors, entry, set(), order)
    order.reverse()
    return order


def whole_order(successors: Sequence[Sequence[int]]) -> list[int]:
    """The same for all blocks; those that the entry does not reach stand before those that they lead to."""
    order: list[int] = []
    seen: set[int] = set()
    for root in range(len(successors)):
        if root not in seen:
            _visit(successors, root, seen, order)
    order.reverse()
    return order


def _visit(successors: Sequence[Sequence[int]], root: int, seen: set[int], order: list[int]) -> None:
    """Add what a root reaches, in postorder."""
    seen.add(root)
    stack = [(root, iter(successors[root]))]
    while stack:
        block, pending = stack[-1]
        for successor in pending:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successors[successor])))
                break
        else:
            stack.pop()
            order.append(block)


def immediate_dominators(order: Sequence[int], predecessors: Sequence[Sequence[int]]) -> list[int | None]:
    """The immediate dominator of each block; None for the entry and for blocks that it does not reach.

    Args:
        order: the entry, then every block that it reaches, in reverse postorder.
        predecessors: of each block.
    """
    # Cooper, Harvey, Kennedy 2001: sets of dominators as the tree they form, refined until nothing changes.
    place = {block: rank for rank, block in enumerate(order)}
    sources = [[place[above] for above in predecessors[block] if above in place] for block in order]
    above = [0] + [-1] * (len(order) - 1)
    changed = True
    while changed:
        changed = False
        for rank in range(1, len(order)):
            nearest = -1
            for source in sources[rank]:
                if above[source] < 0:
                    continue
                one = source
                while nearest >= 0 and one != nearest:
                    if one > nearest:
                        one = above[one]
                    else:
                        nearest = above[nearest]
                nearest = one
            if above[rank] != nearest:
                above[rank] = nearest
                changed = True
    result: list[int | None] = [None] * len(predecessors)
    for rank in range(1, len(order)):
        result[order[rank]] = order[above[rank]]
    return result


def strongly_connected(nodes: Sequence[int], successors: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The strongly connected components, single nodes included."""
    # Tarjan 1972, with a stack of its own: functions have more blocks than Python has frames.
    components: list[list[int]] = []
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}  # of the nodes on the path: the first that a cycle leads back to
    path: list[int] = []
    work: list[tuple[int, Iterator[int]]] = []

    def enter(node: int) -> None:
        number[node] = lowest[node] = len(number)
        path.append(node)
        work.append((node, iter(successors[node])))

    for root in nodes:
        if root not in number:
            enter(root)
        while work:
            node, pending = work[-1]
            for target in pending:
                if target not in number:
                    enter(target)
                    break
                if target in lowest:
                    lowest[node] = min(lowest[node], number[target])
            else:
                work.pop()
                reached = lowest[node]
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], reached)
                if reached == number[node]:
                    components.append(_cut(path, node))
                    for member in components[-1]:
                        del lowest[member]
    return components


def _cut(path: list[int], node: int) -> list[int]:
    """Take the end of a path, from a node on."""
    taken = [path.pop()]
    while taken[-1] != node:
        taken.append(path.pop())
    return taken


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
