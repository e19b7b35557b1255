# SPDX-License-Identifier: Apache-2.0
"""The dependency graph: candidate edges of sampled uses, before any is cut (GPA section IV)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.analyzer.defuse import ReachingDefinitions
from gpadvisor.analyzer.paths import MAX_BLOCKS, Paths
from gpadvisor.analyzer.scoreboards import GROUP_SCOREBOARD, Link, Outstanding, Waits, outstanding_at
from gpadvisor.model.blame import DependencyKind, PruneRule
from gpadvisor.model.instruction import Instruction, OpcodeClass, Register, RegisterFile, register
from gpadvisor.model.machine import Latency, MachineModel
from gpadvisor.model.program import Function

_NONE: Final = frozenset[int]()
_MAX_TAKEN: Final = 64
"""Instructions that a walk backwards takes at most."""


@dataclass(slots=True)
class Edge:
    """A candidate edge of one use while rules look at it."""

    definition: int
    use: int
    kind: DependencyKind
    registers: tuple[Register, ...]
    links: frozenset[Link] = frozenset()  # how a scoreboard that the use waits on counts the def
    alive: bool = False
    rule: PruneRule | None = None
    detail: str | None = None
    distance: int | None = None

    def cut(self, rule: PruneRule, detail: str) -> None:
        """Note the first rule that excluded this edge."""
        if self.rule is None:
            self.rule, self.detail = rule, detail


class FunctionGraph:
    """What the rules ask about one function."""

    def __init__(
        self,
        function: Function,
        machine: MachineModel,
        issues: NDArray[np.int64],
        waiting: frozenset[int],
        occupied: NDArray[np.float64],
    ) -> None:
        """Take the code and what is known of its run.

        Args:
            function: the code.
            machine: for latencies.
            issues: by instruction.
            waiting: sampled instructions with dependency stalls.
            occupied: passes that each instruction takes through its unit.
        """
        self.function, self.machine, self.issues, self.occupied = function, machine, issues, occupied
        self.instructions: Final[Sequence[Instruction]] = function.instructions
        self.block_of: Final = function.block_of
        self.issue_counts: Final[list[int]] = issues.tolist()
        self.definitions: Final = ReachingDefinitions.of(function)
        # An instruction takes at least a cycle.
        stalls = [max(instruction.control.stall_cycles, 1) for instruction in self.instructions]
        self.passed_cycles: Final = list(accumulate(stalls, initial=0))  # of all before each by address
        self.paths: Final = Paths(function)  # in instructions
        self.cycles: Final = Paths(function, stalls)
        self._latencies: dict[tuple[str, tuple[str, ...]], Latency | None] = {}
        self.fixed_cycles: Final = [self._fixed_cycles(index) for index in range(len(self.instructions))]
        self.longest_fixed_cycles: Final = max((most for _, most in self.fixed_cycles), default=0)
        self._waiting = waiting
        self._waits: Waits | None = None

    @property
    def waits(self) -> Waits:
        """What the sampled instructions may be waiting for, and a DEPBAR right before one of them."""
        if self._waits is None:
            held = [position for index in self._waiting for position in self.waited_at(index)]
            self._waits = outstanding_at(self.function, {*self._waiting, *held})
        return self._waits

    def waited_at(self, index: int) -> tuple[int, ...]:
        """Where a warp waits that is sampled at an instruction: there, and at a DEPBAR right before it.

        A warp held by DEPBAR is sampled one instruction behind it.
        """
        before = (
            position for position in self.before(index) if self.instructions[position].opcode == "DEPBAR"
        )
        return (index, *before)

    @property
    def complete(self) -> bool:
        """Whether no search was cut short by a limit."""
        return self.definitions.complete and (self._waits is None or self._waits.complete)

    def latency(self, index: int) -> Latency | None:
        """The machine's latency of an instruction, None where the table has none."""
        instruction = self.instructions[index]
        key = instruction.opcode, instruction.modifiers
        if key not in self._latencies:
            self._latencies[key] = self.machine.latency(*key)
        return self._latencies[key]

    def _fixed_cycles(self, index: int) -> tuple[int, int]:
        """The bounds of a fixed latency; zeros where it is not known, or variable."""
        instruction = self.instructions[index]
        latency = None if instruction.info.variable_latency else self.latency(index)
        return (0, 0) if latency is None else (latency.min_cycles, latency.max_cycles)

    def bound_cycles(self, index: int) -> int | None:
        """The longest time an instruction is expected to take."""
        space = self.instructions[index].info.space
        bound = None if space is None else self.machine.memory_latency_bound_cycles.get(space.value)
        latency = self.latency(index)
        bounds = [value for value in (bound and bound.value, latency and latency.max_cycles) if value]
        return max(bounds, default=None)

    def before(self, index: int) -> tuple[int, ...]:
        """The instructions that may have run right before one."""
        block = self.function.blocks[self.block_of[index]]
        if index > block.start:
            return (index - 1,)
        ends = tuple(self.function.blocks[source].end - 1 for source in block.predecessors)
        if index and set(ends) <= {index} and self.instructions[index - 1].info.opclass is OpcodeClass.EXIT:
            return (index - 1,)  # filling behind an EXIT, where the program counter of an ending warp stands
        return ends

    def text(self, index: int) -> str:
        """An instruction in a sentence: ``LDG.E at 0x1b0``."""
        instruction = self.instructions[index]
        return f"{'.'.join((instruction.opcode, *instruction.modifiers))} at {instruction.pc:#x}"

    def measure(self, edges: Iterable[Edge], blocks: int = MAX_BLOCKS) -> None:
        """Set the distance of edges of one use, as far as it is not known."""
        unmeasured = []
        for edge in edges:
            if edge.distance is None:
                if edge.definition < edge.use and self.block_of[edge.definition] == self.block_of[edge.use]:
                    edge.distance = edge.use - edge.definition  # straight ahead, as nearly all are
                else:
                    unmeasured.append(edge)
        if unmeasured:
            distances = self.paths.longest(
                {edge.definition for edge in unmeasured}, unmeasured[0].use, blocks=blocks
            )
            for edge in unmeasured:
                edge.distance = distances[edge.definition]


def register_links(graph: FunctionGraph, use: int) -> list[tuple[Register, AbstractSet[int]]]:
    """Everything that an instruction reads, with its reaching definitions."""
    definitions = graph.definitions.definitions
    return [(read, definitions(use, read)) for read in dict.fromkeys(graph.instructions[use].uses)]


class Candidates:
    """Every edge into a use: by registers, by guard, and by the scoreboards it waits on.

    Most of them are cut, and only who shows the whole graph asks for those: they are made when asked for.
    """

    def __init__(self, graph: FunctionGraph, use: int) -> None:
        """Find the definitions."""
        self._graph, self._use = graph, use
        self._links = register_links(graph, use)
        self._waited: dict[int, list[Outstanding]] = {}
        for place in graph.waited_at(use):
            for operation in graph.waits.outstanding.get(place, ()):
                self._waited.setdefault(operation.producer, []).append(operation)
        self.read: Final = _NONE.union(*[definitions for _, definitions in self._links])
        self._edges: dict[int, Edge] = {}
        self._added: list[Edge] = []

    @property
    def definitions(self) -> AbstractSet[int]:
        """The defs of all edges."""
        return self.read.union(self._waited, self._edges) if self._waited or self._added else self.read

    def __contains__(self, definition: int) -> bool:
        """Whether there is an edge from a def."""
        return definition in self.read or definition in self._waited or definition in self._edges

    @property
    def linked(self) -> list[Edge]:
        """The edges by the scoreboards it waits on."""
        return [self.edge(definition) for definition in sorted(self._waited)]

    @property
    def alive(self) -> set[int]:
        """The defs of the edges that are blamed."""
        return {definition for definition, edge in self._edges.items() if edge.alive}

    def edge(self, definition: int) -> Edge:
        """The edge from one of the definitions; the same one each time."""
        edge = self._edges.get(definition)
        if edge is None:
            edge = self._edges[definition] = self._edge(definition)
        return edge

    def add(self, edge: Edge) -> None:
        """Take an edge from an instruction that is not among the definitions."""
        self._added.append(edge)
        self._edges[edge.definition] = edge

    def edges(self) -> list[Edge]:
        """All of them, in program order, and then those added."""
        return [*map(self.edge, sorted(self.read.union(self._waited))), *self._added]

    def _edge(self, definition: int) -> Edge:
        read = [register for register, definitions in self._links if definition in definitions]
        operations = self._waited.get(definition, [])
        links = frozenset(operation.link for operation in operations)
        scoreboards = dict.fromkeys(
            register(RegisterFile.BARRIER, operation.scoreboard)
            for operation in operations
            if operation.scoreboard < GROUP_SCOREBOARD
        )
        guard = self._graph.instructions[self._use].guard
        kind = _kind(read, None if guard is None else guard.register, links)
        return Edge(definition, self._use, kind, (*read, *scoreboards), links)


def _kind(read: Sequence[Register], guard: Register | None, links: frozenset[Link]) -> DependencyKind:
    if any(register != guard for register in read):
        return DependencyKind.REGISTER
    if read:
        return DependencyKind.GUARD
    if links & {Link.WRITE, Link.GROUP}:
        return DependencyKind.BARRIER
    return DependencyKind.QUEUE if Link.QUEUE in links else DependencyKind.WRITE_AFTER_READ


def backwards(
    graph: FunctionGraph,
    use: int,
    *,
    take: Callable[[int], bool],
    stop: Callable[[int], bool],
    blocks: int = 512,
) -> tuple[list[int], list[tuple[int, int]]]:
    """Walk from before an instruction towards the entry along all paths.

    Returns the instructions taken, nearest first, and the ranges of instructions passed.

    Args:
        graph: of the function.
        use: where the walk starts; it is not looked at unless a loop leads back to it.
        take: instructions wanted.
        stop: instructions behind which a path ends; they are not part of the ranges.
        blocks: how many blocks to visit at most.
    """
    function = graph.function
    definitions: list[int] = []
    passed: list[tuple[int, int]] = []
    home = function.blocks[function.block_of[use]]
    pending = [(home.start, use, home)]
    visited: set[int] = set()
    position = 0
    while position < len(pending) and len(visited) < blocks:
        start, end, block = pending[position]
        position += 1
        ended = False
        first = start
        for index in range(end - 1, start - 1, -1):
            if stop(index):
                ended, first = True, index + 1
                break
            if take(index) and len(definitions) < _MAX_TAKEN:
                definitions.append(index)
        passed.append((first, end))
        if ended:
            continue
        for source in block.predecessors:
            if source not in visited:
                visited.add(source)
                before = function.blocks[source]
                # The home block is entered again from behind: only what follows the use is new.
                pending.append((use if before is home else before.start, before.end, before))
    return list(dict.fromkeys(definitions)), passed
