# SPDX-License-Identifier: Apache-2.0
"""Loop nests: natural loops merged by header, and irreducible regions (GPA section III)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.analyzer.dominators import DominatorTree
from gpadvisor.graphs import strongly_connected

_MAX_MEMBERSHIPS: Final = 1 << 22
"""Blocks of all loops together; a nest that needs more is not compiled code."""


@dataclass(frozen=True, slots=True)
class FoundLoop:
    """A loop before it has a place in the nest."""

    header: int
    blocks: frozenset[int]
    reducible: bool


@dataclass(frozen=True, slots=True)
class NestedLoop:
    """A loop with its place in the nest."""

    header: int
    blocks: frozenset[int]
    reducible: bool
    parent: int | None
    depth: int


@dataclass(frozen=True, slots=True)
class LoopNest:
    """All loops of a function, and the innermost one of each block (-1 outside)."""

    loops: tuple[NestedLoop, ...]
    innermost: tuple[int, ...]
    complete: bool  # False where the nest was too deep to be followed to its end


def find_loops(
    successors: Sequence[Sequence[int]],
    predecessors: Sequence[Sequence[int]],
    order: Sequence[int],
    tree: DominatorTree,
) -> LoopNest:
    """The loop nest of the blocks that the entry reaches.

    Args:
        successors: of each block.
        predecessors: of each block.
        order: reachable blocks in reverse postorder.
        tree: their dominators.
    """
    latches: dict[int, list[int]] = {}
    for block in order:
        for successor in successors[block]:
            if tree.dominates(successor, block):
                latches.setdefault(successor, []).append(block)
    loops: list[FoundLoop] = []
    memberships_left = _MAX_MEMBERSHIPS
    for header, ends in latches.items():
        if memberships_left <= 0:
            break
        blocks = _natural_loop(header, ends, predecessors, tree)
        memberships_left -= len(blocks)
        loops.append(FoundLoop(header, blocks, reducible=True))
    loops.extend(_irreducible_regions(successors, order, tree, loops))
    return _nest(loops, len(predecessors), complete=memberships_left > 0)


def _natural_loop(
    header: int, latches: Sequence[int], predecessors: Sequence[Sequence[int]], tree: DominatorTree
) -> frozenset[int]:
    """The header and every block that reaches a latch without passing it."""
    blocks = {header}
    pending = list(latches)
    while pending:
        block = pending.pop()
        if block not in blocks and tree.dominates(header, block):
            blocks.add(block)
            pending.extend(predecessors[block])
    return frozenset(blocks)


def _irreducible_regions(
    successors: Sequence[Sequence[int]],
    order: Sequence[int],
    tree: DominatorTree,
    natural: Sequence[FoundLoop],
) -> list[FoundLoop]:
    """Cycles that are left without the back edges of natural loops: they have several entries."""
    rank = {block: position for position, block in enumerate(order)}
    forward = {
        block: [successor for successor in successors[block] if not tree.dominates(successor, block)]
        for block in order
    }
    if not any(rank[successor] <= rank[block] for block in order for successor in forward[block]):
        return []
    inner = {loop.header: loop.blocks for loop in natural}
    regions = []
    for component in strongly_connected(order, forward):
        if len(component) > 1:
            blocks = set(component)
            for block in component:
                blocks |= inner.get(block, frozenset())
            header = min(component, key=rank.__getitem__)
            regions.append(FoundLoop(header, frozenset(blocks), reducible=False))
    return regions


def _nest(loops: list[FoundLoop], block_count: int, *, complete: bool) -> LoopNest:
    """Give each loop its parent: the smallest other loop around its header."""
    innermost = [-1] * block_count
    largest_first = sorted(
        range(len(loops)), key=lambda number: (-len(loops[number].blocks), loops[number].reducible)
    )
    place = {
        number: position
        for position, number in enumerate(sorted(range(len(loops)), key=lambda number: _key(loops[number])))
    }
    nested: dict[int, NestedLoop] = {}
    for index in largest_first:
        loop = loops[index]
        around = innermost[loop.header]
        parent = None if around < 0 else around
        depth = 1 if parent is None else nested[parent].depth + 1
        nested[place[index]] = NestedLoop(loop.header, loop.blocks, loop.reducible, parent, depth)
        for block in loop.blocks:
            innermost[block] = place[index]
    return LoopNest(tuple(nested[number] for number in range(len(loops))), tuple(innermost), complete)


def _key(loop: FoundLoop) -> tuple[int, int]:
    return loop.header, -len(loop.blocks)
