# SPDX-License-Identifier: Apache-2.0
"""The slice that decides control flow and addresses: which instructions the evaluator has to follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpadvisor.model.ids import INSTRUCTION_BYTES, FunctionId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.program import Function
from gpadvisor.simulator.semantics import (
    REGISTER,
    TRUE,
    Constants,
    Meaning,
    Op,
    address_base,
    branch_predicate,
    meaning_of,
    written_by,
)

_FOLLOWED_SPACES = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED})
_ACCESSES = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True)
class Relevance:
    """What matters to branches and addresses."""

    meanings: Mapping[int, Meaning]  # by place in the section, of instructions that matter
    bases: Mapping[
        int, tuple[tuple[tuple[int, int], ...], int]
    ]  # of addresses: registers with shifts, offset
    registers: frozenset[int]  # every register and predicate that is followed


def relevance(functions: Sequence[Function], constants: Constants, *, addresses: bool) -> Relevance:
    """Find the slice of one section by backward dataflow over its functions, calls and returns joined."""
    graph = _Graph(functions)
    roots: dict[int, int] = {}
    bits = _Bits()
    bases: dict[int, tuple[tuple[tuple[int, int], ...], int]] = {}
    for place, instruction in graph.instructions.items():
        found = set(_control(instruction))
        if addresses and instruction.info.opclass in _ACCESSES and instruction.info.space in _FOLLOWED_SPACES:
            base = address_base(instruction)
            if base is not None:
                bases[place] = (tuple((int(one), shift) for one, shift in base[0]), base[1])
                found.update(int(one) for one, _ in base[0])
                found.update(_guard(instruction))
        if found:
            roots[place] = bits.mask(found)
    live = _solve(graph, roots, bits, constants)
    return Relevance(live, bases, bits.used(live, roots))


def _guard(instruction: Instruction) -> tuple[int, ...]:
    return () if instruction.guard is None else (int(instruction.guard.register),)


def _control(instruction: Instruction) -> Iterable[int]:
    """Registers that decide where control goes."""
    opclass = instruction.info.opclass
    if opclass in {
        OpcodeClass.BRANCH,
        OpcodeClass.EXIT,
        OpcodeClass.CALL,
        OpcodeClass.RETURN,
        OpcodeClass.INDIRECT_BRANCH,
    }:
        yield from _guard(instruction)
    if opclass is OpcodeClass.RETURN:
        yield from (int(one) for one in instruction.uses[:1])
    second = branch_predicate(instruction)
    if second is not None and second[0] != TRUE:
        yield second[0]


class _Bits:
    """Sets of registers as numbers."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}

    def mask(self, registers: Iterable[int]) -> int:
        found = 0
        for one in registers:
            found |= 1 << self._place.setdefault(one, len(self._place))
        return found

    def used(self, meanings: Mapping[int, Meaning], roots: Mapping[int, int]) -> frozenset[int]:
        wanted = 0
        for mask in roots.values():
            wanted |= mask
        for meaning in meanings.values():
            wanted |= self.mask(_reads(meaning))
        return frozenset(one for one, place in self._place.items() if wanted >> place & 1)


def _reads(meaning: Meaning) -> Iterable[int]:
    for source in meaning.sources:
        if source.kind == REGISTER:
            yield source.value
    for which, _ in meaning.predicates:
        if which != TRUE:
            yield which


class _Graph:
    """Blocks of all functions of a section, with calls and returns as edges."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.instructions: dict[int, Instruction] = {}
        self.ranges: list[tuple[int, int]] = []
        self.successors: list[list[int]] = []
        offset = {}
        for function in functions:
            offset[function.id] = len(self.ranges)
            first = function.start // INSTRUCTION_BYTES
            for at, instruction in enumerate(function.instructions):
                self.instructions[first + at] = instruction
            for block in function.blocks:
                self.ranges.append((first + block.start, first + block.end))
                self.successors.append([offset[function.id] + target for target, _ in block.successors])
        for function in functions:
            for call in function.calls:
                if call.callee in offset:
                    self._join(functions, offset, function, call.index, offset[call.callee])
        self.predecessors: list[list[int]] = [[] for _ in self.ranges]
        for source, targets in enumerate(self.successors):
            for target in targets:
                self.predecessors[target].append(source)

    def _join(
        self,
        functions: Sequence[Function],
        offset: Mapping[FunctionId, int],
        caller: Function,
        index: int,
        callee: int,
    ) -> None:
        block = offset[caller.id] + int(caller.block_of[index])
        behind = list(self.successors[block])
        self.successors[block].append(callee)
        for function in functions:
            if offset[function.id] != callee:
                continue
            for one in function.blocks:
                if function.instructions[one.end - 1].info.opclass is OpcodeClass.RETURN:
                    self.successors[callee + one.id].extend(behind)


def _solve(graph: _Graph, roots: Mapping[int, int], bits: _Bits, constants: Constants) -> dict[int, Meaning]:
    """Backward liveness of what matters, until nothing changes."""
    meanings: dict[int, Meaning] = {}
    reads: dict[int, int] = {}
    written = {place: bits.mask(written_by(found)) for place, found in graph.instructions.items()}
    entry = [0] * len(graph.ranges)
    pending = list(range(len(graph.ranges)))
    queued = [True] * len(graph.ranges)
    while pending:
        block = pending.pop()
        queued[block] = False
        live = 0
        for target in graph.successors[block]:
            live |= entry[target]
        start, end = graph.ranges[block]
        for place in range(end - 1, start - 1, -1):
            if live & written[place]:
                instruction = graph.instructions[place]
                if place not in meanings:
                    meanings[place] = meaning = meaning_of(instruction, constants)
                    found = [] if meaning.op is Op.UNKNOWN else list(_reads(meaning))
                    reads[place] = bits.mask([*found, *_guard(instruction)])
                if instruction.guard is None:
                    live &= ~written[place]
                live |= reads[place]
            live |= roots.get(place, 0)
        if live != entry[block]:
            entry[block] = live
            for before in graph.predecessors[block]:
                if not queued[before]:
                    queued[before] = True
                    pending.append(before)
    return meanings
