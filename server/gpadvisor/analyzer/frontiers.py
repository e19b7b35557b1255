# SPDX-License-Identifier: Apache-2.0
"""Dominance frontiers: which blocks a search for the writers of a register can pass over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Final

from gpadvisor.graphs import immediate_dominators, whole_order
from gpadvisor.model.ids import BlockId
from gpadvisor.model.program import Block

_MAX_FRONTIER: Final = 64
"""Frontier entries per block, on average, beyond which every join counts as one of every register."""


class Frontiers:
    """Dominators of all blocks, those that the entry does not reach included, and their frontiers."""

    def __init__(self, blocks: Sequence[Block], idom: Sequence[BlockId | None]) -> None:
        """Build the tree under a root above the entry and above code that nothing is seen to lead to."""
        count = len(blocks)
        self.root: Final = count
        self.predecessors: Final = [[int(source) for source in block.predecessors] for block in blocks]
        unreached = [index for index, above in enumerate(idom) if above is None]
        self.idom: Final = [count if above is None else int(above) for above in idom]
        self.idom.append(count)
        if len(unreached) > 1:
            successors = [[int(target) for target, _ in block.successors] for block in blocks]
            above = [*([*sources] for sources in self.predecessors), list[int]()]
            for block in unreached:
                above[block].append(count)
            order = [count, *whole_order(successors)]
            dominators = immediate_dominators(order, above)
            self.idom[:] = [count if dominator is None else dominator for dominator in dominators]
        self._number()
        self._joins = self._frontier({*unreached})

    def _number(self) -> None:
        """Number the tree depth first, so that a subtree is a range."""
        children: list[list[int]] = [[] for _ in self.idom]
        for block, above in enumerate(self.idom):
            if block != self.root:
                children[above].append(block)
        self.first: list[int] = [0] * len(self.idom)
        order: list[int] = []
        stack = [self.root]
        while stack:
            block = stack.pop()
            self.first[block] = len(order)
            order.append(block)
            stack.extend(children[block])
        sizes = [1] * len(self.idom)
        for block in reversed(order[1:]):
            sizes[self.idom[block]] += sizes[block]
        self.end: list[int] = [first + size for first, size in zip(self.first, sizes, strict=True)]

    def _frontier(self, entered: Collection[int]) -> list[set[int]] | None:
        """Of each block, the joins where its dominance ends; None where they are too many to be kept."""
        frontier: list[set[int]] = [set() for _ in self.idom]
        budget = _MAX_FRONTIER * len(self.idom)
        for block, sources in enumerate(self.predecessors):
            if len(sources) + (block in entered) < 2:
                continue
            stop = self.idom[block]
            for source in sources:
                index = source
                while index != stop and block not in frontier[index]:
                    frontier[index].add(block)
                    budget -= 1
                    index = self.idom[index]
                if budget < 0:
                    return None
        return frontier

    def joins(self, blocks: Collection[int]) -> set[int]:
        """Where paths from several of these blocks, or round them, come together."""
        if self._joins is None:
            return {block for block, sources in enumerate(self.predecessors) if sources}
        result: set[int] = set()
        pending = [*blocks]
        while pending:
            for join in self._joins[pending.pop()]:
                if join not in result:
                    result.add(join)
                    pending.append(join)
        return result


class Writers(dict[int, tuple[int, ...]]):
    """The blocks that matter to one register: those that write it, and those where their paths join.

    Looked up by block: of the blocks that matter, the last ones that the paths to its start pass.
    """

    def __init__(self, frontiers: Frontiers, writing: Collection[int]) -> None:
        """Find the joins, and put all of them in the order of the dominator tree."""
        super().__init__()
        self._frontiers = frontiers
        self._joins = frontiers.joins(writing)
        self._blocks = sorted({*self._joins, *writing}, key=frontiers.first.__getitem__)
        self._firsts = [frontiers.first[block] for block in self._blocks]
        self._above: dict[int, int | None] = {}
        stack: list[int] = []
        for block in self._blocks:
            while stack and frontiers.end[stack[-1]] <= frontiers.first[block]:
                stack.pop()
            self._above[block] = stack[-1] if stack else None
            stack.append(block)

    def __missing__(self, block: int) -> tuple[int, ...]:
        """Found when first asked for."""
        if block in self._joins:
            joins = {self._nearest(source) for source in self._frontiers.predecessors[block]}
        elif block in self._above:
            joins = {self._above[block]}
        else:
            joins = {self._nearest(block)}
        self[block] = tuple(sorted(join for join in joins if join is not None))
        return self[block]

    def _nearest(self, block: int) -> int | None:
        """The nearest block that matters among a block and its dominators."""
        first, end = self._frontiers.first, self._frontiers.end
        place = bisect_right(self._firsts, first[block]) - 1
        index = self._blocks[place] if place >= 0 else None
        while index is not None and first[block] >= end[index]:
            index = self._above[index]
        return index
