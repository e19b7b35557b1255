# SPDX-License-Identifier: Apache-2.0
"""Lengths of paths between two instructions, by dynamic programming over blocks (GPA section IV, Eq. 1).

Paths are never enumerated. A path follows forward edges of the depth-first order; where a use is reached from
its def only round a loop, the path takes as few retreating edges as it needs, and so passes each loop
in between once. Among such paths the longest, or the shortest, is meant.

Differs from GPA: its code averages over all simple paths, which takes exponential time; the paper takes the
longest path without saying how loops count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import Final

from gpadvisor.analyzer.dominators import reverse_postorder
from gpadvisor.analyzer.loops import strongly_connected
from gpadvisor.model.program import Function

_MAX_BLOCKS: Final = 1 << 12
"""Blocks visited for one use; beyond, a distance is not known."""
_MAX_TURNS: Final = 4
"""Retreating edges on one path."""


class Paths:
    """Path lengths in one function, in instructions or in any cost per instruction."""

    def __init__(self, function: Function, costs: Sequence[int] | None = None) -> None:
        """Prepare the sums.

        Args:
            function: the code.
            costs: non-negative cost of each instruction; 1 each where None.
        """
        count = len(function.instructions)
        self._sum = range(count + 1) if costs is None else [0, *accumulate(costs)]
        self._owner: list[int] = function.block_of.tolist()
        self._start = [block.start for block in function.blocks]
        self._end = [block.end for block in function.blocks]
        self._predecessors = [[int(source) for source in block.predecessors] for block in function.blocks]
        successors = [[int(target) for target, _ in block.successors] for block in function.blocks]
        reached = reverse_postorder(successors)
        order = [*reached, *sorted(set(range(len(successors))) - set(reached))]
        self._rank = [0] * len(order)
        for position, at in enumerate(order):
            self._rank[at] = position
        self._floor = [0] * len(order)
        for component in strongly_connected(order, dict(enumerate(successors))):
            least = min(self._rank[at] for at in component)
            for at in component:
                self._floor[at] = least

    def longest(self, definitions: Collection[int], use: int) -> dict[int, int | None]:
        """Cost of the longest path from each def to a use: the def counts, the use does not.

        With a cost of 1 that is the number of instructions after the def up to and including the use.
        """
        return self._lengths(definitions, use, longest=True)

    def shortest(
        self, definitions: Collection[int], use: int, limit: int | None = None
    ) -> dict[int, int | None]:
        """Cost of the shortest path from each def to a use; None beyond ``limit`` or where there is none."""
        return self._lengths(definitions, use, longest=False, limit=limit)

    def _lengths(
        self, definitions: Collection[int], use: int, *, longest: bool, limit: int | None = None
    ) -> dict[int, int | None]:
        total, block = self._sum, self._owner[use]
        found: dict[int, int | None] = {}
        wanted: dict[int, list[int]] = {}
        for definition in definitions:
            found[definition] = None
            if self._owner[definition] == block and definition < use:
                found[definition] = total[use] - total[definition]
            else:
                wanted.setdefault(self._owner[definition], []).append(definition)
        if wanted:
            search = _Search(self, use, longest=longest, limit=limit)
            for source, value in search.to(wanted).items():
                for definition in wanted[source]:
                    length = value + total[self._end[source]] - total[definition]
                    found[definition] = None if limit is not None and length > limit else length
        return found

    def predecessors(self, block: int) -> Sequence[int]:
        """Blocks that lead to a block."""
        return self._predecessors[block]

    def rank(self, block: int) -> int:
        """Position of a block in reverse postorder."""
        return self._rank[block]

    def floor(self, block: int) -> int:
        """The least rank in the cycle of blocks around a block: no path comes back below it."""
        return self._floor[block]

    def block_cost(self, block: int) -> int:
        """Cost of a whole block."""
        return self._sum[self._end[block]] - self._sum[self._start[block]]

    def entry_cost(self, index: int) -> int:
        """Cost from the start of an instruction's block up to it."""
        return self._sum[index] - self._sum[self._start[self._owner[index]]]

    def block(self, index: int) -> int:
        """The block of an instruction."""
        return self._owner[index]


class _Search:
    """Backwards from one use, block by block in falling rank."""

    def __init__(self, paths: Paths, use: int, *, longest: bool, limit: int | None) -> None:
        self._paths = paths
        self._home = paths.block(use)
        self._first = paths.entry_cost(use)
        self._longest = longest
        self._limit = limit
        self._left = _MAX_BLOCKS

    def to(self, wanted: Collection[int]) -> Mapping[int, int]:
        """For each wanted block that is found, the cost from its end to the use."""
        found: dict[int, int] = {}
        missing = set(wanted)
        turning = self._backwards({}, missing, found, first=True)
        for _ in range(_MAX_TURNS):
            if not missing or not turning or self._left <= 0:
                break
            turning = self._backwards(turning, missing, found, first=False)
        return found

    def _backwards(
        self, seeds: Mapping[int, int], missing: set[int], found: dict[int, int], *, first: bool
    ) -> dict[int, int]:
        """One pass over forward edges; returns the costs at the sources of retreating edges."""
        paths = self._paths
        at_end: dict[int, int] = dict(seeds)
        turning: dict[int, int] = {}
        heap = [(-paths.rank(block), block) for block in at_end]
        heap.sort()
        if first:
            self._spread(self._home, self._first, at_end, heap, turning)
        lowest = min((paths.floor(block) for block in missing), default=0)
        done: set[int] = set()
        while heap and self._left > 0:
            _, block = heappop(heap)
            if block in done:
                continue
            done.add(block)
            self._left -= 1
            value = at_end[block]
            if self._limit is not None and value > self._limit:
                continue
            if block in missing:
                missing.discard(block)
                found[block] = value
                lowest = min((paths.floor(other) for other in missing), default=0)
            if not missing:
                break
            # Behind the home block a path would pass the use itself.
            if block != self._home and paths.floor(block) >= lowest:
                self._spread(block, value + paths.block_cost(block), at_end, heap, turning)
        return turning

    def _spread(
        self,
        block: int,
        value: int,
        at_end: dict[int, int],
        heap: list[tuple[int, int]],
        turning: dict[int, int],
    ) -> None:
        rank = self._paths.rank(block)
        for source in self._paths.predecessors(block):
            target = turning if self._paths.rank(source) >= rank else at_end
            known = target.get(source)
            if known is None or (value > known if self._longest else value < known):
                target[source] = value
                if target is at_end:
                    heappush(heap, (-self._paths.rank(source), source))
