# SPDX-License-Identifier: Apache-2.0
"""Which operations each scoreboard may still be waiting for: GPA's virtual barrier registers made exact.

A scoreboard counts: several operations may be outstanding on one, and a wait is for all of them. So a wait
is linked to every setter since the last wait on each path, not only to the last one. DEPBAR releases in part,
and results of an in-order queue come back in order, so that a wait for one covers older ones of its queue.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final

from gpadvisor.graphs import whole_order
from gpadvisor.model.instruction import InOrderQueue, Instruction, OpcodeClass
from gpadvisor.model.program import Function

GROUP_SCOREBOARD: Final = 6
"""Hopper's ``gsb0``, which HGMMA counts on; it stands in operands, not in the control code."""

_QUEUES: Final = {InOrderQueue.MIO: 7, InOrderQueue.TEX: 8}
_COPIES: Final = 9  # LDGSTS not yet committed to a group
_MAX_AGE: Final = 63
_MAX_OUTSTANDING: Final = 96
_MAX_VISITS: Final = 24

_GROUP: Final = re.compile(r"gsb0(?:,\s*(0x[0-9a-f]+|\d+))?", re.IGNORECASE)
_LISTED: Final = re.compile(r"\{([0-9,\s]+)\}")


class Link(IntEnum):
    """Why a wait on a scoreboard is a wait for an operation."""

    WRITE = 0  # its write barrier: the result is there
    QUEUE = 1  # it sets none, and a younger operation of its queue does
    READ = 2  # its read barrier: its operands may be overwritten
    GROUP = 3  # an asynchronous copy of a committed group


_SHARED_LINKS: Final = (Link.QUEUE, Link.GROUP)
"""Links that several scoreboards may have to one operation."""


@dataclass(frozen=True, slots=True)
class Outstanding:
    """An operation that a waiting instruction may be waiting for."""

    producer: int  # instruction index
    scoreboard: int
    link: Link


@dataclass(frozen=True, slots=True)
class Waits:
    """What was found for the instructions asked for."""

    outstanding: Mapping[int, tuple[Outstanding, ...]]  # by waiting instruction
    complete: bool  # False where a limit cut the search


@dataclass(frozen=True, slots=True)
class _Event:
    """An instruction that waits on, or sets, a scoreboard."""

    index: int
    waits: tuple[int, ...]
    partial: tuple[int, int] | None  # scoreboard, how many may stay
    write: int | None
    read: int | None
    queue: int | None  # slot of its in-order queue
    returns: bool  # has a result
    copies: bool  # LDGSTS
    commits: bool  # LDGDEPBAR


_Slot = dict[int, int]  # producer * 4 + link -> least number of younger setters
_State = dict[int, _Slot]  # by slot; only those with an operation outstanding
_EMPTY: Final[_Slot] = {}


def waits_for(instruction: Instruction) -> bool:
    """Whether an instruction waits on any scoreboard."""
    return bool(_wait_list(instruction)) or _partial(instruction) is not None


def _wait_list(instruction: Instruction) -> tuple[int, ...]:
    waits = instruction.control.waits
    if instruction.info.opclass is OpcodeClass.DEPENDENCY_BARRIER and instruction.opcode == "DEPBAR":
        listed = _LISTED.search(instruction.operands)  # DEPBAR.LE SB0, 0x1, {3,2}
        if listed:
            extra = {int(number) for number in listed[1].split(",") if number.strip().isdigit()}
            return tuple(sorted({*waits, *(number for number in extra if number < GROUP_SCOREBOARD)}))
    return waits


def _partial(instruction: Instruction) -> tuple[int, int] | None:
    if instruction.partial_wait is not None:
        return instruction.partial_wait.barrier, instruction.partial_wait.keep
    if instruction.opcode == "WARPGROUP" and "DEPBAR" in instruction.modifiers:
        match = _GROUP.search(instruction.operands)
        if match:
            return GROUP_SCOREBOARD, int(match[1], 0) if match[1] else 0
    return None


def _event(index: int, instruction: Instruction) -> _Event | None:
    info, control = instruction.info, instruction.control
    waits, partial = _wait_list(instruction), _partial(instruction)
    copies = info.opclass is OpcodeClass.ASYNC_COPY and instruction.opcode == "LDGSTS"
    queue = None if info.queue is None else _QUEUES[info.queue]
    write = control.write_barrier
    if write is None and info.opclass is OpcodeClass.TENSOR and _GROUP.search(instruction.operands):
        write = GROUP_SCOREBOARD
    concerned = waits or partial is not None or write is not None or control.read_barrier is not None
    if not concerned and not copies and queue is None:
        return None
    return _Event(
        index=index,
        waits=waits,
        partial=partial,
        write=write,
        read=control.read_barrier,
        queue=queue,
        returns=bool(instruction.defs),
        copies=copies,
        commits=instruction.opcode == "LDGDEPBAR",
    )


def outstanding_at(function: Function, indices: Collection[int]) -> Waits:
    """For each wanted instruction that waits, the operations it may be waiting for.

    Args:
        function: the code.
        indices: instruction indices.
    """
    if not indices:
        return Waits({}, complete=True)
    analysis = _Analysis(function)
    analysis.solve()
    return analysis.collect(indices)


class _Analysis:
    """Forward data flow over blocks; a state has few entries, for waits clear it."""

    def __init__(self, function: Function) -> None:
        self._blocks = function.blocks
        self._block_of = function.block_of
        self._events: list[list[_Event]] = [[] for _ in function.blocks]
        owner = function.block_of
        for index, instruction in enumerate(function.instructions):
            event = _event(index, instruction)
            if event is not None:
                self._events[owner[index]].append(event)
        successors = [[int(target) for target, _ in block.successors] for block in function.blocks]
        self._order = whole_order(successors)
        self._successors = successors
        self._out: list[_State | None] = [None] * len(successors)
        self.complete = True

    def solve(self) -> None:
        rank = {block: position for position, block in enumerate(self._order)}
        visits = [0] * len(self._order)
        pending = list(range(len(self._order)))
        queued = set(pending)
        heapify(pending)
        while pending:
            position = heappop(pending)
            queued.discard(position)
            block = self._order[position]
            if visits[block] >= _MAX_VISITS:
                self.complete = False
                continue
            visits[block] += 1
            state = self._entry(block)
            for event in self._events[block]:
                self._step(state, event)
            if state != self._out[block]:
                self._out[block] = state
                for successor in self._successors[block]:
                    place = rank[successor]
                    if place not in queued:
                        queued.add(place)
                        heappush(pending, place)

    def collect(self, wanted: Collection[int]) -> Waits:
        result: dict[int, tuple[Outstanding, ...]] = {}
        by_block: dict[int, set[int]] = {}
        for index in wanted:
            by_block.setdefault(int(self._block_of[index]), set()).add(index)
        for block, indices in by_block.items():
            state = self._entry(block)
            for event in self._events[block]:
                if event.index in indices:
                    operations = tuple(self._awaited(state, event))
                    if operations:
                        result[event.index] = operations
                self._step(state, event)
        return Waits(result, self.complete)

    def _entry(self, block: int) -> _State:
        """The union of what the predecessors leave, with the least age of each."""
        states = [
            out for source in self._blocks[block].predecessors if (out := self._out[source]) is not None
        ]
        merged: _State = {}
        for state in states:
            for number, entries in state.items():
                slot = merged.get(number)
                if slot is None:
                    merged[number] = entries.copy()
                    continue
                for key, age in entries.items():
                    if slot.get(key, _MAX_AGE + 1) > age:
                        slot[key] = age
        return merged

    @staticmethod
    def _awaited(state: _State, event: _Event) -> Iterator[Outstanding]:
        for scoreboard in event.waits:
            for key in sorted(state.get(scoreboard, _EMPTY)):
                yield Outstanding(key >> 2, scoreboard, Link(key & 3))
        if event.partial is not None and event.partial[0] not in event.waits:
            scoreboard, keep = event.partial
            entries = state.get(scoreboard, _EMPTY)
            # Round a loop the least age may be too small for all of them; one of them is waited for.
            old = [key for key, age in entries.items() if age >= keep] or entries
            for key in sorted(old):
                yield Outstanding(key >> 2, scoreboard, Link(key & 3))

    def _step(self, state: _State, event: _Event) -> None:
        for scoreboard in event.waits:
            if scoreboard in state:
                _complete(state, scoreboard, set(state[scoreboard]))
        if event.partial is not None:
            scoreboard, keep = event.partial
            if scoreboard in state:
                _complete(state, scoreboard, {key for key, age in state[scoreboard].items() if age >= keep})
        if event.copies:
            self._add(state.setdefault(_COPIES, {}), event.index, Link.GROUP)
        if event.write is not None:
            self._set(state, event, event.write)
        elif event.queue is not None and event.returns:
            self._add(state.setdefault(event.queue, {}), event.index, Link.QUEUE)
        if event.read is not None:
            slot = state.setdefault(event.read, {})
            _grow_older(slot)
            self._add(slot, event.index, Link.READ)

    def _set(self, state: _State, event: _Event, scoreboard: int) -> None:
        slot = state.setdefault(scoreboard, {})
        _grow_older(slot)
        self._add(slot, event.index, Link.WRITE)
        if event.queue is not None:
            for key in state.get(event.queue, _EMPTY):
                self._add(slot, key >> 2, Link.QUEUE)
        if event.commits:
            for key in state.pop(_COPIES, _EMPTY):
                self._add(slot, key >> 2, Link.GROUP)

    def _add(self, slot: _Slot, producer: int, link: Link) -> None:
        if len(slot) >= _MAX_OUTSTANDING:
            self.complete = False
            del slot[max(slot, key=lambda key: (slot[key], -key))]  # the one that the most others followed
        slot[producer << 2 | link] = 0


def _grow_older(slot: _Slot) -> None:
    for key, age in slot.items():
        if age < _MAX_AGE:
            slot[key] = age + 1


def _complete(state: _State, scoreboard: int, keys: set[int]) -> None:
    """Forget completed operations; those of a queue or a group are forgotten wherever they were noted."""
    shared = {key for key in keys if key & 3 in _SHARED_LINKS}
    for number in [*state] if shared else [scoreboard]:
        slot = state[number]
        for key in (keys if number == scoreboard else shared).intersection(slot):
            del slot[key]
        if not slot:
            del state[number]
