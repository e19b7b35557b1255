# SPDX-License-Identifier: Apache-2.0
"""Inlined functions, loops and lines of a function, as rows below it (HPCToolkit's program structure)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpadvisor.model.ids import LoopId, SourceLocation
from gpadvisor.model.program import Function, InlineFrame, LineEntry
from gpadvisor.views.tree.model import RowKind


class CodeScope(NamedTuple):
    """What a row below a function is; equal ones are one row."""

    kind: RowKind
    name: str
    location: SourceLocation | None
    pc: int | None  # only where there is no line


@dataclass(frozen=True, slots=True)
class Structure:
    """The scopes of a function, each behind the one around it; number 0 is the function itself."""

    parents: Sequence[int]  # of each number
    scopes: Sequence[CodeScope]  # from number 1 on
    scope_of: Sequence[int]  # of each instruction that was asked for, in their order


def structure(function: Function, instructions: Iterable[int]) -> Structure:
    """The scopes around some instructions of a function; a call without a line is a scope of its own."""
    builder = _StructureBuilder(function)
    lines, loops = function.lines, [function.loop_of[block] for block in function.block_of]
    calls = {call.index for call in function.calls if lines[call.index] is None}
    scope_by_key: dict[tuple[int, int], int] = {}
    scope_of = []
    for index in instructions:
        key = (id(lines[index]), loops[index])  # a line table has one entry for many instructions
        scope = builder.call(index) if index in calls else scope_by_key.get(key)
        if scope is None:
            scope = scope_by_key[key] = builder.scope(index, lines[index])
        scope_of.append(scope)
    return Structure(builder.parents, builder.scopes, scope_of)


class _StructureBuilder:
    def __init__(self, function: Function) -> None:
        self._function = function
        self.parents: list[int] = [0]
        self.scopes: list[CodeScope] = []
        self._made: dict[tuple[int, CodeScope], int] = {}
        self._chains: dict[LoopId, tuple[InlineFrame, ...]] = {}

    def call(self, index: int) -> int:
        """The scope of a call instruction without a line."""
        pc = self._function.instructions[index].pc
        return self._add(self.scope(index, None), CodeScope(RowKind.CALL, f"call at {pc:#06x}", None, pc))

    def scope(self, index: int, entry: LineEntry | None) -> int:
        """The innermost scope of an instruction that has this line."""
        chain = () if entry is None else entry.inline[::-1]
        scope, level = 0, 0
        for loop in self._function.enclosing_loops(index)[::-1]:
            inside = _shared(chain, self._chain(loop))
            for frame in chain[level:inside]:
                scope = self._add(scope, _inlined(frame))
            level = max(level, inside)
            place = self._function.loops[loop].location
            pc = self._function.instructions[
                self._function.blocks[self._function.loops[loop].header].start
            ].pc
            where = f"{pc:#06x}" if place is None else _short(place)
            scope = self._add(
                scope, CodeScope(RowKind.LOOP, f"loop at {where}", place, pc if place is None else None)
            )
        for frame in chain[level:]:
            scope = self._add(scope, _inlined(frame))
        if entry is None:
            return scope
        return self._add(scope, CodeScope(RowKind.LINE, _short(entry.location), entry.location, None))

    def _add(self, parent: int, scope: CodeScope) -> int:
        key = (parent, scope)
        if key not in self._made:
            self._made[key] = len(self.parents)
            self.parents.append(parent)
            self.scopes.append(scope)
        return self._made[key]

    def _chain(self, loop: LoopId) -> tuple[InlineFrame, ...]:
        """The inlined calls, outermost first, that a loop stands in: those of its jumps back."""
        if loop not in self._chains:
            of, blocks = self._function.loops[loop], self._function.blocks
            latches = [
                blocks[predecessor]
                for predecessor in blocks[of.header].predecessors
                if predecessor in of.blocks
            ]
            entries = [
                entry for latch in latches if (entry := self._function.lines[latch.end - 1]) is not None
            ]
            chains = [entry.inline[::-1] for entry in entries]
            shared = min((_shared(chains[0], chain) for chain in chains), default=0)
            self._chains[loop] = chains[0][:shared] if chains else ()
        return self._chains[loop]


def _short(place: SourceLocation) -> str:
    return f"{posixpath.basename(place.file)}:{place.line}"


def _inlined(frame: InlineFrame) -> CodeScope:
    return CodeScope(RowKind.INLINED, frame.function or "inlined function", frame.call_site, None)


def _shared(frames: Sequence[InlineFrame], previous: Sequence[InlineFrame]) -> int:
    """How many outermost inlined calls two chains have in common."""
    pairs = zip(frames, previous, strict=False)
    return next(
        (level for level, (a, b) in enumerate(pairs) if a != b),
        min(len(frames), len(previous)),
    )
