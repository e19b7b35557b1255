# SPDX-License-Identifier: Apache-2.0
"""The slice that decides control flow and addresses: which instructions the evaluator has to follow."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpadvisor.model.ids import INSTRUCTION_BYTES, FunctionId
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.program import Function
from gpadvisor.simulator.addresses import address_base, branch_predicate, is_in_frame, written_by
from gpadvisor.simulator.meanings import IMMEDIATE, PLAIN, REGISTER, TRUE, Constants, Meaning, Op, ValueSource
from gpadvisor.simulator.semantics import meaning_of

_FOLLOWED_SPACES = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.LOCAL})
_ALLOCATED = frozenset({MemorySpace.GLOBAL, MemorySpace.GENERIC})
_SUMS = frozenset({Op.ADD, Op.ADD_WIDE, Op.SELECT, Op.SELECT_WIDE, Op.BROADCAST})
_ACCESSES = frozenset({OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION})


@dataclass(frozen=True, slots=True)
class Relevance:
    """What matters to branches and addresses."""

    meanings: Mapping[int, Meaning]  # by place in the section, of instructions that matter
    bases: Mapping[
        int, tuple[tuple[tuple[int, int], ...], int]
    ]  # of addresses: registers with shifts, offset
    written: Mapping[int, Sequence[int]]  # by place, everything that instructions with a meaning write
    registers: frozenset[int]  # every register and predicate that is followed


def relevance(graph: SectionGraph, constants: Constants, *, addresses: bool) -> Relevance:
    """Find the slice of one section by backward dataflow over its functions, calls and returns joined."""
    roots: dict[int, int] = {}
    bits = Bits()
    bases: dict[int, tuple[tuple[tuple[int, int], ...], int]] = {}
    for place, instruction in graph.instructions.items():
        registers = set(_control(instruction))
        accesses = instruction.info.opclass in _ACCESSES or instruction.opcode == "LDGSTS"
        if addresses and accesses and instruction.info.space in _FOLLOWED_SPACES:
            base = address_base(instruction)
            if base is not None and not is_in_frame(instruction, base):
                bases[place] = (tuple((int(register), shift) for register, shift in base[0]), base[1])
                registers.update(int(register) for register, _ in base[0])
                registers.update(_guard(instruction))
        if registers:
            roots[place] = bits.mask(registers)
    meanings, relevant = _solve(graph, roots, bits, lambda *key: meaning_of(key[0], constants, key[1]))
    written = {place: graph.written(place) for place in meanings}
    return Relevance(meanings, bases, written, bits.members(relevant))


def addends(functions: Sequence[Function], constants: Constants, *, high: bool) -> Iterable[Meaning]:
    """What is added up to the low or to the high words of addresses outside of shared memory, as it is."""
    graph, bits = SectionGraph(functions), Bits()
    roots: dict[int, int] = {}
    for place, instruction in graph.instructions.items():
        base = None if instruction.info.space not in _ALLOCATED else address_base(instruction)
        if base is not None:
            roots[place] = bits.mask(int(register) + high for register, shift in base[0] if not shift)
    return _solve(graph, roots, bits, lambda *key: _added(meaning_of(key[0], constants, key[1])))[0].values()


def _added(meaning: Meaning) -> Meaning:
    """Those sources of an instruction that go into a sum as they are."""
    sources = meaning.sources
    times_one = meaning.op is Op.MUL_ADD and sources[1] == ValueSource(IMMEDIATE, 1)
    plain_sources = {
        Op.MUL_ADD: sources[2:] + (sources[:1] if times_one else []),
        Op.MUL_ADD_WIDE: sources[2:],
        Op.SHIFT_ADD: sources[1:2],
        Op.SHIFT_ADD_HIGH: sources[1:2],
    }.get(meaning.op, sources if meaning.op in _SUMS else [])
    return Meaning(meaning.op, [source for source in plain_sources if source.how == PLAIN])


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
        yield from (int(use) for use in instruction.uses[:1])
    second = branch_predicate(instruction)
    if second is not None and second[0] != TRUE:
        yield second[0]


class Bits:
    """Sets of registers as numbers."""

    def __init__(self) -> None:
        self._place: dict[int, int] = {}

    def mask(self, registers: Iterable[int]) -> int:
        """A set of registers."""
        result = 0
        for register in registers:
            result |= 1 << self._place.setdefault(register, len(self._place))
        return result

    def members(self, mask: int) -> frozenset[int]:
        """The registers of a set."""
        return frozenset(register for register, place in self._place.items() if mask >> place & 1)


def reads_of(meaning: Meaning) -> Iterable[int]:
    """Registers and predicates that an instruction computes with."""
    for source in meaning.sources:
        if source.kind == REGISTER:
            yield source.value
    for which, _ in meaning.predicates:
        if which != TRUE:
            yield which


class SectionGraph:
    """Blocks of all functions of a section, with calls and returns as edges."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self.instructions: dict[int, Instruction] = {}
        self.frames: dict[int, int | None] = {}
        self.ranges: list[tuple[int, int]] = []
        self.successors: list[list[int]] = []
        offset = {}
        for function in functions:
            offset[function.id] = len(self.ranges)
            first = function.start // INSTRUCTION_BYTES
            frame = None if _calls_itself(functions, function) else int(function.id)
            for position, instruction in enumerate(function.instructions):
                self.instructions[first + position] = instruction
                self.frames[first + position] = frame
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

    def written(self, place: int) -> list[int]:
        """Registers, predicates and words of its frame that the instruction at a place writes."""
        return written_by(self.instructions[place], self.frames[place])

    def _join(
        self,
        functions: Sequence[Function],
        offset: Mapping[FunctionId, int],
        caller: Function,
        index: int,
        callee: int,
    ) -> None:
        block = offset[caller.id] + caller.block_of[index]
        behind = list(self.successors[block])
        self.successors[block].append(callee)
        for function in functions:
            if offset[function.id] != callee:
                continue
            for returning in function.blocks:
                if function.instructions[returning.end - 1].info.opclass is OpcodeClass.RETURN:
                    self.successors[callee + returning.id].extend(behind)


def _calls_itself(functions: Sequence[Function], function: Function) -> bool:
    """Whether a function is called again before it returns, by itself or by what it calls."""
    callees = {
        caller.id: {call.callee for call in caller.calls if call.callee is not None} for caller in functions
    }
    reached: set[FunctionId] = set()
    pending = [*callees[function.id]]
    while pending:
        function_id = pending.pop()
        if function_id not in reached:
            reached.add(function_id)
            pending += callees.get(function_id, ())
    return function.id in reached


def _solve(
    graph: SectionGraph,
    roots: Mapping[int, int],
    bits: Bits,
    meaning_in: Callable[[Instruction, int | None], Meaning],
) -> tuple[dict[int, Meaning], int]:
    """Backward liveness of what matters, until nothing changes; and all that is read for it."""
    meanings: dict[int, Meaning] = {}
    reads: dict[int, int] = {}
    written = {place: bits.mask(graph.written(place)) for place in graph.instructions}
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
                    meanings[place] = meaning = meaning_in(instruction, graph.frames[place])
                    registers = [] if meaning.op is Op.UNKNOWN else list(reads_of(meaning))
                    reads[place] = bits.mask([*registers, *_guard(instruction)])
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
    return meanings, functools.reduce(operator.or_, (*roots.values(), *reads.values()), 0)
