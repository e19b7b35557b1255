# SPDX-License-Identifier: Apache-2.0
"""Reaching definitions through predicates: backward slicing by one step (GPA section IV, Fig. 4a)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Self

from gpadvisor.analyzer.frontiers import Frontiers, Writers
from gpadvisor.model.ids import BlockId
from gpadvisor.model.instruction import Instruction, Register, RegisterFile, register
from gpadvisor.model.program import Block, Function

_BUDGET: Final = 4_000_000

Condition = int
"""A guard: twice the number of its predicate, 1 more where it is negated; ``^ 1`` is the other sense."""
Conditions = frozenset[Condition]
_UNCONDITIONAL: Final[Conditions] = frozenset()


class _Written:
    """Where one register is written."""

    def __init__(self) -> None:
        self.by_block: dict[int, list[int]] = {}
        self.guards: set[Condition] = set()
        self._writers: Writers | None = None

    def writers(self, frontiers: Frontiers) -> Writers:
        """Made when a search first leaves a block."""
        if self._writers is None:
            self._writers = Writers(frontiers, self.by_block)
        return self._writers


class _Code:
    """What searches of one function have in common, made when first asked for."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        blocks: Sequence[Block],
        block_of: Sequence[int],
        idom: Sequence[BlockId | None],
    ) -> None:
        self._instructions, self._blocks, self._block_of, self._idom = instructions, blocks, block_of, idom
        self._frontiers: Frontiers | None = None
        self.indexed = False
        self.guards: list[Condition | None] = []
        self.owner: Sequence[int] = ()
        self.written: dict[Register, _Written] = {}

    def index(self) -> None:
        """Note guards, blocks, and where each register is written."""
        self.indexed = True
        self.owner = self._block_of
        for index, instruction in enumerate(self._instructions):
            guard = instruction.guard
            condition = None if guard is None else 2 * guard.register + guard.negated
            self.guards.append(condition)
            # Setting a scoreboard is a write of its virtual barrier register.
            control = instruction.control
            boards = dict.fromkeys((control.write_barrier, control.read_barrier))
            barriers = [register(RegisterFile.BARRIER, board) for board in boards if board is not None]
            for written in (*instruction.defs, *barriers):
                entry = self.written.setdefault(written, _Written())
                entry.by_block.setdefault(self.owner[index], []).append(index)
                if condition is not None:
                    entry.guards.add(condition)

    @property
    def frontiers(self) -> Frontiers:
        """Made when a search first leaves a block."""
        if self._frontiers is None:
            self._frontiers = Frontiers(self._blocks, self._idom)
        return self._frontiers


class ReachingDefinitions:
    """Which instructions may have written what an instruction reads.

    A search ends on a path once the guards of the defs found on it cover the use: an unguarded def, one under
    the guard of the use, or both senses of one predicate. It visits only blocks that write the register and
    blocks where such paths join; between them nothing can change.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        blocks: Sequence[Block],
        block_of: Sequence[int],
        idom: Sequence[BlockId | None],
    ) -> None:
        """Take the parts of a function; they are indexed when first asked about."""
        self.code = _Code(instructions, blocks, block_of, idom)
        self._known: dict[tuple[int, Condition | None, tuple[int, ...]], frozenset[int]] = {}
        self._left = _BUDGET
        self.complete = True

    @classmethod
    def of(cls, function: Function) -> Self:
        """Those of a function, with a budget of their own."""
        result = cls(function.instructions, function.blocks, function.block_of, function.idom)
        if isinstance(function.reaching, cls):
            result.code = function.reaching.code
        return result

    def definitions(self, use: int, read: Register) -> AbstractSet[int]:
        """Instructions whose write of ``read`` may reach ``use``."""
        code = self.code
        if not code.indexed:
            code.index()
        written = code.written.get(read)
        if written is None:
            return frozenset()
        block = code.owner[use]
        here = written.by_block.get(block)
        end = 0 if here is None else bisect_left(here, use)
        if here is not None and end and code.guards[here[end - 1]] is None:
            return {here[end - 1]}  # the last one before it covers it, as nearly always
        guard = code.guards[use]
        if guard not in written.guards:
            guard = None  # no def is under it, so it decides nothing
        result: set[int] = set()
        conditions = _UNCONDITIONAL
        if here is not None and end:
            left = self._collect(here[:end], _UNCONDITIONAL, guard, result)
            if left is None:
                return result
            conditions = left
        before = written.writers(code.frontiers)[block]
        if conditions:
            return result | self._search(written, before, guard, conditions)
        key = read, guard, before
        cached = self._known.get(key)
        if cached is None:
            cached = self._known[key] = frozenset(self._search(written, before, guard, conditions))
        return cached

    def _collect(
        self, defs: list[int], conditions: Conditions, guard: Condition | None, found: set[int]
    ) -> Conditions | None:
        """Take defs of one block, last first; None once they cover the use."""
        guards = self.code.guards
        for index in reversed(defs):
            found.add(index)
            own = guards[index]
            if own is None or own == guard or own ^ 1 in conditions:
                return None
            conditions |= {own}
        return conditions

    def _search(
        self, written: _Written, before: tuple[int, ...], guard: Condition | None, conditions: Conditions
    ) -> set[int]:
        blocks, writers = written.by_block, written.writers(self.code.frontiers)
        result: set[int] = set()
        visited: dict[int, list[Conditions]] = {}
        swept: set[int] = set()  # seen without a condition
        # Fewer conditions let more defs through: with them first, a block is seldom gone through again.
        layers: list[list[tuple[int, Conditions]]]
        if conditions:
            layers = [[(source, conditions) for source in before]]
        else:
            layers = self._sweep(written, before, guard, result, swept)
        for layer in layers:
            while layer and self._left > 0:
                source, known = layer.pop()
                if source in swept or any(fewer <= known for fewer in visited.get(source, ())):
                    continue
                if known:
                    visited.setdefault(source, []).append(known)
                else:
                    swept.add(source)
                self._left -= 1
                own = blocks.get(source)
                left = known if own is None else self._collect(own, known, guard, result)
                if left is None:
                    continue
                more = len(left) - len(conditions)
                while len(layers) <= more:
                    layers.append([])
                layers[more].extend([(writer, left) for writer in writers[source] if writer not in swept])
        if self._left <= 0:
            self.complete = False
        return result

    def _sweep(
        self,
        written: _Written,
        before: tuple[int, ...],
        guard: Condition | None,
        found: set[int],
        swept: set[int],
    ) -> list[list[tuple[int, Conditions]]]:
        """The part of a search without conditions; returns what is left, by number of conditions."""
        blocks, guards, writers = written.by_block, self.code.guards, written.writers(self.code.frontiers)
        layers: list[list[tuple[int, Conditions]]] = [[]]
        swept.update(before)
        pending = [*before]
        while pending and len(swept) < self._left:
            source = pending.pop()
            own = blocks.get(source)
            if own is None:
                for above in writers[source]:
                    if above not in swept:
                        swept.add(above)
                        pending.append(above)
                continue
            last = own[-1]
            if guards[last] is None:  # it covers the use, as nearly always
                found.add(last)
                continue
            left = self._collect(own, _UNCONDITIONAL, guard, found)
            if left is None:
                continue
            while len(layers) <= len(left):
                layers.append([])
            layers[len(left)] += [(writer, left) for writer in writers[source]]
        self._left -= len(swept)
        return layers
