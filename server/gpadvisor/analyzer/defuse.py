# SPDX-License-Identifier: Apache-2.0
"""Reaching definitions through predicates: backward slicing by one step (GPA section IV, Fig. 4a)."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.instruction import Guard, Register, RegisterFile, register
from gpadvisor.model.program import Function

_REGISTERS: Final = 2048  # above every Register value
_BUDGET: Final = 4_000_000

Conditions = frozenset[Guard]


class ReachingDefinitions:
    """Which instructions may have written what an instruction reads.

    A search ends on a path once the guards of the defs found on it cover the use: an unguarded def, one under
    the guard of the use, or both senses of one predicate.
    """

    def __init__(self, function: Function) -> None:
        """Index the definitions of a function by block and register."""
        self._instructions = function.instructions
        self._owner: list[int] = function.block_of.tolist()
        self._predecessors = [[int(source) for source in block.predecessors] for block in function.blocks]
        self._defs: dict[int, list[int]] = {}
        for index, (block, instruction) in enumerate(zip(self._owner, function.instructions, strict=True)):
            for written in instruction.defs:
                self._defs.setdefault(block * _REGISTERS + written, []).append(index)
            # Setting a scoreboard is a write of its virtual barrier register.
            control = instruction.control
            for scoreboard in dict.fromkeys((control.write_barrier, control.read_barrier)):
                if scoreboard is not None:
                    key = block * _REGISTERS + register(RegisterFile.BARRIER, scoreboard)
                    self._defs.setdefault(key, []).append(index)
        self._known: dict[tuple[int, Guard | None], frozenset[int]] = {}
        self._left = _BUDGET
        self.complete = True

    def definitions(self, use: int, read: Register) -> tuple[int, ...]:
        """Instructions whose write of ``read`` may reach ``use``, in program order."""
        guard = self._instructions[use].guard
        block = self._owner[use]
        found: set[int] = set()
        here = [index for index in self._defs.get(block * _REGISTERS + read, ()) if index < use]
        conditions = self._collect(here, frozenset(), guard, found)
        if conditions is not None:
            if conditions:
                found |= self._search(block, read, guard, conditions)
            else:
                key = block * _REGISTERS + read, guard
                known = self._known.get(key)
                if known is None:
                    known = self._known[key] = frozenset(self._search(block, read, guard, conditions))
                found |= known
        return tuple(sorted(found))

    def _collect(
        self, defs: list[int], conditions: Conditions, guard: Guard | None, found: set[int]
    ) -> Conditions | None:
        """Take defs of one block, last first; None once they cover the use."""
        for index in reversed(defs):
            found.add(index)
            own = self._instructions[index].guard
            if own is None or own == guard or Guard(own.register, not own.negated) in conditions:
                return None
            conditions |= {own}
        return conditions

    def _search(self, block: int, read: Register, guard: Guard | None, conditions: Conditions) -> set[int]:
        found: set[int] = set()
        seen: set[tuple[int, Conditions]] = set()
        pending = [(source, conditions) for source in self._predecessors[block]]
        while pending:
            state = pending.pop()
            if state in seen:
                continue
            seen.add(state)
            if self._left <= 0:
                self.complete = False
                break
            self._left -= 1
            source, known = state
            left = self._collect(self._defs.get(source * _REGISTERS + read, []), known, guard, found)
            if left is not None:
                pending.extend((before, left) for before in self._predecessors[source])
        return found
