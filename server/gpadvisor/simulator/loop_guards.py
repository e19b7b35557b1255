# SPDX-License-Identifier: Apache-2.0
"""Which branches only decide whether a part of a loop is come to, and which way such a branch goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.ids import BlockId
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.program import Block, Function
from gpadvisor.simulator.unrolling import LoopPart, Passes, latch

_HOPS: Final = 16
"""Blocks between a branch and the loop that it guards."""
_ROUNDS: Final = 8
"""Guards of guards are looked at this often."""


@dataclass(frozen=True, slots=True)
class LoopGuard:
    """A branch or exit that only decides whether a part is come to."""

    taken: bool
    entered: bool  # a part with passes left is entered, one without is gone round


def guards(
    function: Function, loop_parts: Sequence[LoopPart], planned: Mapping[BlockId, Passes]
) -> dict[int, LoopGuard]:
    """Branches and exits by instruction index that only decide whether a part of a loop is come to."""
    search = _GuardSearch(function, loop_parts, planned)
    for _ in range(_ROUNDS):
        before = search.answers
        for block in reversed(function.blocks):
            search.look_at(block)
        if search.answers == before:
            break
    return search.decided


class _GuardSearch:
    """Round by round, since the way from one guard to a loop may lead over others."""

    def __init__(
        self, function: Function, loop_parts: Sequence[LoopPart], planned: Mapping[BlockId, Passes]
    ) -> None:
        self._function, self._planned = function, planned
        self._parts = {part.entry: part for part in loop_parts}
        self._lines = {
            part.source: function.lines[latch(function, function.loops[part.loop])] or part.source
            for part in loop_parts
            if part.loop is not None
        }
        self._wholes = self._found_wholes()
        self.decided: dict[int, LoopGuard] = {}
        self._met: dict[BlockId, BlockId] = {}  # parts that both sides of a branch come to

    @property
    def answers(self) -> int:
        """How many branches it knows something of."""
        return len(self.decided) + len(self._met)

    def look_at(self, block: Block) -> None:
        """Decide the branch at the end of a block, if it is a guard."""
        end = block.end - 1
        opclass = self._function.instructions[end].info.opclass
        sides = self._sides(block)
        if end in self.decided or opclass not in {OpcodeClass.BRANCH, OpcodeClass.EXIT} or sides is None:
            return
        ways = [(jumps, self._leads_to(target, block.id)) for jumps, target in sides.items()]
        sides_of = [(jumps, part) for jumps, part in ways if part is not None]
        reached = [
            (jumps, part)
            for jumps, part in sides_of
            if not any(self._is_past(sides[jumps], other, part) for _, other in sides_of)
        ]
        if not reached:
            return
        if len({part.entry for _, part in reached}) < len(reached):
            self._met[block.id] = reached[0][1].entry
            return
        apart = [side for side in reached if side[1].source in self._wholes]
        if len(apart) == 1:
            self.decided[end] = self._rest(*apart[0])
            return
        unrolled = [side for side in reached if self._planned[side[1].entry].passes]
        if len({self._lines[part.source] for _, part in unrolled}) > 1:
            return  # different loops on either side: a choice of the program
        if unrolled:
            jumps, _ = max(unrolled, key=lambda side: (side[1].copies, side[1].size))
            self.decided[end] = LoopGuard(jumps, entered=True)
        elif len(reached) == 1:
            self.decided[end] = LoopGuard(not reached[0][0], entered=False)

    def _rest(self, jumps: bool, part: LoopPart) -> LoopGuard:  # noqa: FBT001 - a side of a branch
        """Of a branch to a copy of a loop's body that stands behind the loop, for the rest."""
        whole = self._wholes[part.source]
        planned, line = self._planned[whole.entry], self._lines[part.source]
        alike = [
            other
            for other in self._parts.values()
            if other.loop is not None and self._lines[other.source] == line
        ]
        behind = [other for other in alike if self._wholes.get(other.source) == whole]
        each = max(1, (len(alike) - len(behind)) // planned.copies)
        before = sum(other.entry < part.entry for other in behind) // each
        entered = planned.trips - planned.passes * planned.copies > before
        return LoopGuard(jumps if entered else not jumps, entered=entered)

    def _found_wholes(self) -> dict[int, LoopPart]:
        """Unrolled loops, by the number of a loop that stands in a copy of their body outside of them."""
        function, result = self._function, dict[int, LoopPart]()
        loops = [part for part in self._parts.values() if part.loop is not None]
        inside = {part.entry: function.loops[part.loop].blocks for part in loops if part.loop is not None}
        for whole in (part for part in loops if part.copies > 1):
            versions = [inside[part.entry] for part in loops if part.source == whole.source]
            inner = {
                self._lines[part.source]
                for part in loops
                if part.entry in inside[whole.entry] - {whole.entry}
            }
            for part in loops:
                if self._lines[part.source] in inner and not any(part.entry in blocks for blocks in versions):
                    result.setdefault(part.source, whole)
        return result

    def _is_past(self, block: BlockId, part: LoopPart, to: LoopPart) -> bool:
        """Whether a block, on the way to another source loop, is where the loop of a part ends."""
        if part.loop is None or self._lines[part.source] == self._lines[to.source]:
            return False
        loop = self._function.loops[part.loop].blocks
        return block not in loop and any(
            target == block for inside in loop for target, _ in self._function.blocks[inside].successors
        )

    def _sides(self, block: Block) -> dict[bool, BlockId] | None:
        """Where a branch leads by whether it is taken; of an exit only where it is not."""
        behind = [
            target for target, _ in block.successors if self._function.blocks[target].start == block.end
        ]
        forward = [target for target, _ in block.successors if target not in behind]
        if len(behind) != 1 or len(forward) > 1:
            return None
        return {False: behind[0], True: forward[0]} if forward else {False: behind[0]}

    def _leads_to(self, block: BlockId, source: BlockId) -> LoopPart | None:
        """The part that code from a block runs into from outside, over guards that are decided.

        What comes behind the loop that the branch is in comes whatever the branch does.
        """
        around = self._function.loop_of[source]
        within = self._function.loops[around].blocks if around >= 0 else None
        for _ in range(_HOPS):
            if within is not None and block not in within:
                return None
            part = self._parts.get(block)
            if part is not None:
                inside = part.loop is not None and source in self._function.loops[part.loop].blocks
                return None if inside else part
            following = self._following(self._function.blocks[block])
            if following is None:
                return None
            block = following
        return None

    def _following(self, block: Block) -> BlockId | None:
        guard = self.decided.get(block.end - 1)
        if guard is not None:
            return (self._sides(block) or {}).get(guard.taken)
        if block.id in self._met:
            return self._met[block.id]
        return block.successors[0][0] if len(block.successors) == 1 else None
