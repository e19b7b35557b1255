# SPDX-License-Identifier: Apache-2.0
"""Lengths of paths between two instructions, by dynamic programming over blocks (GPA section IV, Eq. 1).

Paths are never enumerated. A path follows forward edges of the depth-first order; where a use is reached from
its def only round a loop, the path takes as few retreating edges as it needs, and so passes each loop
in between once. Among such paths the longest, or the shortest, is meant.

Differs from GPA: its code averages over all simple paths, which takes exponential time; the paper takes the
longest path without saying how loops count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Final

from gpadvisor.graphs import strongly_connected, whole_order
from gpadvisor.model.program import Function

MAX_BLOCKS: Final = 1 << 12
"""Blocks visited for one use; beyond, a distance is not known."""
_MAX_TURNS: Final = 4
"""Retreating edges on one path."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Blocks by their rank in reverse postorder: a forward edge leads to a higher number."""

    order: list[int]  # the block of each rank
    rank: list[int]  # of each block
    owner: list[int]  # the rank of the block of each instruction
    forward: list[list[int]]  # predecessors of each block by forward edges
    retreating: list[list[int]]
    floor: list[int]  # the least rank in the cycle of blocks around each


@lru_cache(maxsize=1)
def _ranked(function: Function) -> _Ranked:
    """The same for all costs."""
    successors = [[int(target) for target, _ in block.successors] for block in function.blocks]
    order = whole_order(successors)
    rank = [0] * len(order)
    for position, index in enumerate(order):
        rank[index] = position
    sources = [[rank[source] for source in function.blocks[block].predecessors] for block in order]
    floor = [0] * len(order)
    for component in strongly_connected(order, dict(enumerate(successors))):
        least = min(rank[block] for block in component)
        for index in component:
            floor[rank[index]] = least
    return _Ranked(
        order=order,
        rank=rank,
        owner=[rank[block] for block in function.block_of],
        forward=[[source for source in group if source < position] for position, group in enumerate(sources)],
        retreating=[
            [source for source in group if source >= position] for position, group in enumerate(sources)
        ],
        floor=floor,
    )


class Paths:
    """Path lengths in one function, in instructions or in any cost per instruction."""

    def __init__(self, function: Function, costs: Sequence[int] | None = None) -> None:
        """Prepare the sums.

        Args:
            function: the code.
            costs: non-negative cost of each instruction; 1 each where None.
        """
        blocks = function.blocks
        total = range(len(function.instructions) + 1) if costs is None else [0, *accumulate(costs)]
        ranked = _ranked(function)
        self._total, self._ranked = total, ranked
        self._rank, self._owner = ranked.rank, ranked.owner
        self._starts = [total[blocks[index].start] for index in ranked.order]
        self._ends = [total[blocks[position].end] for position in ranked.order]
        self._costs = [end - start for start, end in zip(self._starts, self._ends, strict=True)]

    def rank(self, block: int) -> int:
        """Position of a block in reverse postorder."""
        return self._rank[block]

    def floor(self, block: int) -> int:
        """The least rank in the cycle of blocks around a block: no path comes back below it."""
        return self._ranked.floor[self._rank[block]]

    def longest(
        self, definitions: Collection[int], use: int, *, blocks: int = MAX_BLOCKS
    ) -> dict[int, int | None]:
        """Cost of the longest path from each def to a use: the def counts, the use does not.

        With a cost of 1 that is the number of instructions after the def up to and including the use.
        None where there is no path, or none within ``blocks`` visited blocks.
        """
        return self._lengths(definitions, use, longest=True, limit=None, blocks=blocks)

    def shortest(
        self, definitions: Collection[int], use: int, *, limit: int | None = None
    ) -> dict[int, int | None]:
        """Cost of the shortest path from each def to a use; None beyond ``limit`` or where there is none."""
        return self._lengths(definitions, use, longest=False, limit=limit, blocks=MAX_BLOCKS)

    def _lengths(
        self, definitions: Collection[int], use: int, *, longest: bool, limit: int | None, blocks: int
    ) -> dict[int, int | None]:
        total, home = self._total, self._owner[use]
        result: dict[int, int | None] = {}
        wanted: dict[int, list[int]] = {}
        for definition in definitions:
            result[definition] = None
            block = self._owner[definition]
            if block == home and definition < use:
                result[definition] = total[use] - total[definition]
            else:
                wanted.setdefault(block, []).append(definition)
        if wanted:
            entry = total[use] - self._starts[home]
            search = _Search(
                self._ranked, self._costs, home, entry, longest=longest, limit=limit, blocks=blocks
            )
            for block, value in search.to(set(wanted)).items():
                for definition in wanted[block]:
                    length = value + self._ends[block] - total[definition]
                    result[definition] = None if limit is not None and length > limit else length
        return result


class _Search:
    """Backwards from one use, block by block in falling rank; costs run from a block's end to the use."""

    def __init__(
        self,
        ranked: _Ranked,
        costs: list[int],
        home: int,
        entry: int,
        *,
        longest: bool,
        limit: int | None,
        blocks: int,
    ) -> None:
        self._ranked, self._costs, self._home = ranked, costs, home
        # The shortest of costs is the longest of their negatives.
        self._sign = 1 if longest else -1
        self._entry = self._sign * entry
        self._limit = limit
        self._left = blocks

    def to(self, missing: set[int]) -> dict[int, int]:
        """For each of these blocks that is found, the cost from its end to the use."""
        found: dict[int, int] = {}
        turning = self._backwards(
            dict.fromkeys(self._ranked.forward[self._home], self._entry),
            dict.fromkeys(self._ranked.retreating[self._home], self._entry),
            missing,
            found,
        )
        for _ in range(_MAX_TURNS):
            if not missing or not turning or self._left <= 0:
                break
            turning = self._backwards(turning, {}, missing, found)
        return {block: self._sign * value for block, value in found.items()}

    def _backwards(
        self, at_end: dict[int, int], turning: dict[int, int], missing: set[int], found: dict[int, int]
    ) -> dict[int, int]:
        """One pass over forward edges; returns the costs at the sources of retreating edges.

        Args:
            at_end: where to begin, with the costs there.
            turning: what is returned, as far as it is known.
            missing: blocks looked for; those found are taken out.
            found: gets the costs of those found.
        """
        sign, home, limit = self._sign, self._home, self._limit
        forward, retreating = self._ranked.forward, self._ranked.retreating
        floors, costs = self._ranked.floor, self._costs
        heap = [-block for block in at_end]
        heapify(heap)
        lowest = min(floors[block] for block in missing)
        while heap and self._left > 0:
            block = -heappop(heap)
            value = at_end[block]
            self._left -= 1
            if limit is not None and sign * value > limit:
                continue
            if block in missing:
                missing.discard(block)
                found[block] = value
                if not missing:
                    break
                lowest = min(floors[other] for other in missing)
            # Behind the home block a path would pass the use itself.
            if block == home or floors[block] < lowest:
                continue
            value += sign * costs[block]
            for source in forward[block]:
                known = at_end.get(source)
                if known is None:
                    at_end[source] = value
                    heappush(heap, -source)
                elif value > known:
                    at_end[source] = value
            for source in retreating[block]:
                known = turning.get(source)
                if known is None or value > known:
                    turning[source] = value
        return turning
