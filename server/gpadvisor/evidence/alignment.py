# SPDX-License-Identifier: Apache-2.0
"""Whether all threads of a block take the same way to an instruction, as those at a barrier must."""

from __future__ import annotations

from typing import Final

from gpadvisor.graphs import post_dominators
from gpadvisor.model.instruction import COMPUTING, Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.program import Function

_SLICE_LIMIT: Final = 4096
"""Instructions behind one condition that are looked at; a longer chain counts as different by thread."""
_SAME_FOR_BLOCK: Final = ("SRZ", "SR_CTAID", "SR_NCTAID", "SR_CgaCtaId", "SR_CLUSTER")
_LEAVES: Final = frozenset({OpcodeClass.EXIT, OpcodeClass.RETURN})


class Alignment:
    """Control dependences of a function and whether the conditions behind them differ between threads."""

    def __init__(self, function: Function) -> None:
        """Find out which branches decide whether a block is run."""
        self._function = function
        self._reaching = function.reaching
        self._exit: Final = len(function.blocks)
        self._ways = [self._successors(block) for block in range(len(function.blocks))]
        self._deciding = self._dependences()
        self._varies: dict[int, bool] = {}

    def _successors(self, block: int) -> list[int]:
        own = self._function.blocks[block]
        ways = [int(successor) for successor, _ in own.successors]
        branch = self._function.instructions[own.end - 1]
        if not ways or (branch.info.opclass in _LEAVES and branch.guard is not None):
            ways.append(self._exit)
        return ways

    def _dependences(self) -> list[set[tuple[int, int]]]:
        """By block the branches that decide on it: their block, and the way that leads to it."""
        above = post_dominators(self._ways)
        result: list[set[tuple[int, int]]] = [set() for _ in self._ways]
        for block, ways in enumerate(self._ways):
            for successor in ways if len(ways) > 1 else ():
                index: int | None = successor
                while index is not None and index not in {self._exit, above[block]}:
                    result[index].add((block, successor))
                    index = above[index]
        return result

    def is_aligned(self, index: int, barriers: set[int]) -> bool:
        """Whether every thread that is still there comes to an instruction as often as all others.

        A condition that differs between threads is no harm if those that take the other way meet no barrier.

        Args:
            index: of a barrier.
            barriers: blocks that have one.
        """
        pending, visited = [self._function.block_of[index]], set[int]()
        while pending:
            block = pending.pop()
            if block in visited:
                continue
            visited.add(block)
            for branch, successor in self._deciding[block]:
                other_ways = [candidate for candidate in self._ways[branch] if candidate != successor]
                if any(self._reaches(candidate, barriers) for candidate in other_ways) and self._differs(
                    branch
                ):
                    return False
                pending.append(branch)
        return True

    def _reaches(self, start: int, targets: set[int]) -> bool:
        pending, visited = [start], {self._exit}
        while pending:
            block = pending.pop()
            if block in targets:
                return True
            if block not in visited:
                visited.add(block)
                pending += self._ways[block]
        return False

    def _differs(self, branch: int) -> bool:
        """Whether threads of a block may go different ways at the end of a basic block."""
        if branch not in self._varies:
            self._varies[branch] = self._slice_varies(self._function.blocks[branch].end - 1)
        return self._varies[branch]

    def _slice_varies(self, start: int) -> bool:
        if self._function.instructions[start].info.opclass is OpcodeClass.INDIRECT_BRANCH:
            return True
        pending, visited = [start], {start}
        while pending:
            index = pending.pop()
            for register in self._function.instructions[index].uses:
                definitions = self._reaching.definitions(index, register)
                for definition in definitions:
                    if definition in visited:
                        continue
                    if len(visited) > _SLICE_LIMIT or _is_own(self._function.instructions[definition]):
                        return True
                    visited.add(definition)
                    pending.append(definition)
                    if len(definitions) > 1:  # which of them it is depends on the way taken
                        ends = {
                            self._function.blocks[block].end - 1
                            for block, _ in self._deciding[self._function.block_of[definition]]
                        }
                        pending += ends - visited
                        visited |= ends
        return not self._reaching.complete


def _is_own(instruction: Instruction) -> bool:
    """Whether an instruction may give each thread a value of its own, whatever its operands."""
    opclass = instruction.info.opclass
    if opclass is OpcodeClass.SPECIAL_REGISTER:
        return not any(name in instruction.operands for name in _SAME_FOR_BLOCK)
    if opclass is OpcodeClass.LOAD:
        return instruction.info.space is not MemorySpace.CONSTANT
    return opclass not in COMPUTING
