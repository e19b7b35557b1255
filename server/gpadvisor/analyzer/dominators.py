# SPDX-License-Identifier: Apache-2.0
"""Which blocks dominate which (GPA section IV, dominator based pruning)."""

from __future__ import annotations

from collections.abc import Sequence


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
