# SPDX-License-Identifier: Apache-2.0
"""blame(): each sample to another instruction, to its own, or to nobody known (GPA section IV)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpadvisor.blamer.apportion import apportion_carrying, ratios
from gpadvisor.blamer.coverage import Links, combined, coverage
from gpadvisor.blamer.edges import Edges
from gpadvisor.blamer.graph import FunctionGraph
from gpadvisor.blamer.in_flight import drain_stall, fence_stall
from gpadvisor.blamer.observe import cycles_per_sample, issues, observe
from gpadvisor.blamer.occupied import occupied
from gpadvisor.blamer.pruning import is_memory_source
from gpadvisor.blamer.queues import THROTTLES, Queues
from gpadvisor.blamer.rows import CauseRow, blame_table, plain_rows, shared_rows, source_rows, weights
from gpadvisor.blamer.rules import DEFAULT_RULES, BlameRules
from gpadvisor.blamer.scoreboard_stalls import by_hardware
from gpadvisor.blamer.slicing import SLICED, sliced
from gpadvisor.blamer.sources import StallSources, UseResult
from gpadvisor.blamer.synchronization import BARRIERS, by_address, by_barrier, synchronization_stall
from gpadvisor.model.blame import (
    NO_INDEX,
    Blame,
    DependencyClass,
    Role,
)
from gpadvisor.model.instruction import OpcodeClass
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import StallClass, StallReason


def blame(
    program: Program, profile: KernelProfile, machine: MachineModel, rules: BlameRules = DEFAULT_RULES
) -> Blame:
    """Attribute the stalls of one kernel to their sources.

    For every stall reason, blamed, self and unattributed samples add up to those observed, and so do latency
    samples.

    Args:
        program: the code, with the functions that were sampled.
        profile: samples, and executed counts where there are any.
        machine: latencies of the architecture.
        rules: which variant.
    """
    return _Attribution(program, profile, machine, rules).run()


@dataclass(slots=True)
class _Stalls:
    """The dependency stalls of one instruction: samples and latency samples by reason."""

    place: int
    by_reason: dict[int, tuple[int, int]] = field(default_factory=dict)


class _Attribution:
    """One run over one kernel."""

    def __init__(
        self, program: Program, profile: KernelProfile, machine: MachineModel, rules: BlameRules
    ) -> None:
        self._program, self._profile, self._machine, self._rules = program, profile, machine, rules
        self._reasons = profile.reasons
        self._observed = observe(program, profile)
        self._issues = issues(program, profile, self._observed)
        self._cycles_per_sample = cycles_per_sample(self._observed, self._reasons, self._issues)
        self._rows: list[CauseRow] = []
        self._edges = Edges()
        self._coverage: list[tuple[int, int, int]] = []
        self._problems: list[Problem] = []

    def run(self) -> Blame:
        observed = self._observed
        asks = self._of(lambda stall_class: stall_class.is_dependency)
        exits = self._behind_code(asks)
        inside = (asks | self._of(self._is_throttle)) & (observed.index != NO_INDEX)
        for number in np.unique(observed.function[observed.index != NO_INDEX]).tolist():
            self._function(self._program.functions[number], inside & (observed.function == number))
        self_rows = plain_rows(observed, ~asks & ~inside, Role.SELF, DependencyClass.SELF)
        lost = plain_rows(observed, asks & ~inside & ~exits, Role.UNATTRIBUTED, DependencyClass.NONE)
        return Blame(
            reasons=self._reasons,
            rows=blame_table([*self._rows, *self_rows, *lost]),
            edges=self._edges,
            coverage=combined(self._coverage),
            problems=tuple(self._problems),
        )

    def _is_throttle(self, stall_class: StallClass) -> bool:
        """Whether such stalls are shared out among what fills a queue; published rules leave them there."""
        return self._rules.wait_mask and stall_class in THROTTLES

    def _of(self, test: Callable[[StallClass], bool]) -> NDArray[np.bool_]:
        """The observed rows whose stall class passes a test."""
        chosen = np.array([test(stall_reason.stall_class) for stall_reason in self._reasons], dtype=bool)
        return chosen[self._observed.reason]

    def _graph(self, function: Function, waiting: frozenset[int]) -> FunctionGraph:
        issued = self._issues[function.id]
        busy = occupied(self._profile, function, issued.astype(float), self._machine)
        return FunctionGraph(function, self._machine, issued, waiting, busy)

    def _function(self, function: Function, rows: NDArray[np.bool_]) -> None:
        """Attribute the dependency and throttle stalls of one function."""
        observed = self._observed
        stalls: dict[int, _Stalls] = {}
        columns = (observed.index, observed.place, observed.reason, observed.samples, observed.latency)
        for index, place, reason, samples, latency in zip(
            *(column[rows].tolist() for column in columns), strict=True
        ):
            if index not in stalls:
                stalls[index] = _Stalls(place)
            stalls[index].by_reason[reason] = samples, latency
        graph = self._graph(function, frozenset(stalls))
        work = _FunctionWork(graph, self._rules, self._reasons, stalls, self._cycles_per_sample)
        work.run(self._own_time(function))
        self._rows.extend(work.rows)
        self._edges.add(graph, [*(result for _, result in work.results), *work.filled])
        sampled = observed.index[observed.function == function.id]
        self._coverage.append(coverage(sampled.tolist(), work.links(), work.is_memory))
        if not graph.complete:
            message = (
                f"{function.demangled} is too intricate to be searched whole; some sources may be missing"
            )
            self._problems.append(Problem(ProblemCode.NOT_ANALYSED, message))

    def _own_time(self, function: Function) -> dict[int, int]:
        """Samples per instruction of reasons whose cause is the instruction itself."""
        observed = self._observed
        mask = self._of(
            lambda stall_class: not stall_class.is_dependency and not self._is_throttle(stall_class)
        )
        rows = np.flatnonzero((observed.function == function.id) & mask)
        spent: dict[int, int] = defaultdict(int)
        for index, samples in zip(
            observed.index[rows].tolist(), observed.samples[rows].tolist(), strict=True
        ):
            spent[index] += samples
        return spent

    def _behind_code(self, asks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Drain stalls sampled behind the last instruction of a function go to the stores before its EXIT."""
        observed = self._observed
        chosen = asks & (observed.last >= 0) & self._of(lambda stall_class: stall_class is StallClass.DRAIN)
        if not self._rules.wait_mask:
            chosen[:] = False
        for row in np.flatnonzero(chosen).tolist():
            function = self._program.functions[int(observed.last[row])]
            graph = self._graph(function, frozenset())
            reason = int(observed.reason[row])
            result = drain_stall(graph, len(function.instructions) - 1, reason)
            self._rows.extend(
                shared_rows(
                    graph, self._rules, reason, NO_INDEX, int(observed.place[row]), result.found[reason],
                    (int(observed.samples[row]), int(observed.latency[row])),
                )
            )  # fmt: skip
        return chosen


class _FunctionWork:
    """The dependency stalls of one function."""

    def __init__(
        self,
        graph: FunctionGraph,
        rules: BlameRules,
        reasons: tuple[StallReason, ...],
        stalls: Mapping[int, _Stalls],
        cycles_per_sample: float,
    ) -> None:
        self._graph, self._rules, self._reasons, self._stalls = graph, rules, reasons, stalls
        self._cycles_per_sample = cycles_per_sample
        self.rows: list[CauseRow] = []
        self.results: list[tuple[int, UseResult]] = []
        self.filled: list[UseResult] = []  # of throttle stalls, which are no dependencies

    def run(self, own_samples: Mapping[int, int]) -> None:
        """First what needs no other answer, then synchronization, which asks where time went."""
        self._throttles()
        late: list[tuple[int, int]] = []
        asks = {
            index: reason for index, reason in enumerate(self._reasons) if reason.stall_class.is_dependency
        }
        for use in sorted(self._stalls):
            reasons = {index: asks[index] for index in sorted(asks.keys() & self._stalls[use].by_reason)}
            for result in self._results(use, reasons):
                self._take(use, result)
            late.extend(
                (use, index)
                for index, reason in reasons.items()
                if self._rules.wait_mask and reason.stall_class is StallClass.SYNCHRONIZATION
            )
        if late:
            spent = self._spent(own_samples)
            for use, index in late:
                warpgroup = self._reasons[index].name == "warpgroup_arrive"
                waited = self._stalls[use].by_reason[index][0] * self._cycles_per_sample
                result = synchronization_stall(self._graph, use, index, spent, waited, warpgroup=warpgroup)
                self._take(use, result)

    def _throttles(self) -> None:
        """Waits for full queues and busy pipes."""
        waits: dict[StallClass, dict[int, int]] = {}
        observed_stalls: list[tuple[int, int, StallClass]] = []
        for use in sorted(self._stalls):
            for reason, (samples, _) in sorted(self._stalls[use].by_reason.items()):
                stall_class = self._reasons[reason].stall_class
                if stall_class in THROTTLES:
                    waits.setdefault(stall_class, defaultdict(int))[use] += samples
                    observed_stalls.append((use, reason, stall_class))
        if not waits:
            return
        queues = Queues(self._graph, waits)
        owed: dict[int, dict[int, float]] = {}
        for use, reason, stall_class in observed_stalls:
            sources, stalls = queues.found(use, stall_class), self._stalls[use]
            edges = tuple(source.edge for source in sources.sources)
            shares = ratios(*weights(self._graph, self._rules, sources.sources))
            by_source = dict(zip((edge.definition for edge in edges), shares, strict=True))
            observed = stalls.by_reason[reason]
            parts = (
                apportion_carrying(*observed, by_source, owed.setdefault(reason, {})) if edges else [observed]
            )
            self.filled.append(UseResult(edges, {reason: sources}))
            self.rows.extend(source_rows(self._graph, reason, use, stalls.place, sources, parts))

    def _results(self, use: int, reasons: Mapping[int, StallReason]) -> Iterable[UseResult]:
        graph, rules = self._graph, self._rules
        data = {
            index: stall_reason
            for index, stall_reason in reasons.items()
            if stall_reason.stall_class in SLICED
        }
        if data:
            if rules.wait_mask:
                yield by_hardware(graph, use, data, rules.unsampled_issues)
            else:
                yield sliced(graph, use, data, rules)
        for index, reason in reasons.items():
            if index in data:
                continue
            if not rules.wait_mask:
                yield self._as_published(use, index, reason.stall_class)
            elif reason.stall_class is StallClass.MEMORY_BARRIER:
                yield fence_stall(graph, use, index)
            elif reason.stall_class is StallClass.DRAIN:
                yield drain_stall(graph, use, index)

    def _as_published(self, use: int, reason: int, stall_class: StallClass) -> UseResult:
        """Synchronization as the paper or its code has it; drain was a reason of the instruction itself."""
        if stall_class is StallClass.DRAIN:
            return UseResult((), {reason: StallSources((), Role.SELF, DependencyClass.SELF)})
        fence = stall_class is StallClass.MEMORY_BARRIER
        dependency = DependencyClass.MEMORY_BARRIER if fence else DependencyClass.SYNCHRONIZATION
        if self._rules.synchronization_by_address:
            classes = {*BARRIERS, OpcodeClass.MEMORY_BARRIER}
            return by_address(self._graph, use, reason, dependency, classes)
        return by_barrier(self._graph, use, reason, dependency)

    def _take(self, use: int, result: UseResult) -> None:
        self.results.append((use, result))
        self._add_rows(use, result)

    def _add_rows(self, use: int, result: UseResult) -> None:
        stalls = self._stalls[use]
        for reason, sources in result.found.items():
            self.rows.extend(
                shared_rows(
                    self._graph, self._rules, reason, use, stalls.place, sources, stalls.by_reason[reason]
                )
            )

    def _spent(self, own_samples: Mapping[int, int]) -> Mapping[int, list[tuple[int, int]]]:
        """By sampled instruction: the causes of its samples so far."""
        spent: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for index, samples in own_samples.items():
            spent[index].append((index, samples))
        for row in self.rows:
            cause = row.use if row.definition == NO_INDEX else row.definition
            spent[row.use].append((cause, row.samples))
        return spent

    def links(self) -> Iterable[Links]:
        """The edges as the coverage counts them."""
        return ((use, result.definitions(), result.alive()) for use, result in self.results)

    def is_memory(self, definition: int) -> bool:
        """Whether a def competes for memory stalls."""
        return is_memory_source(self._graph.instructions[definition], self._rules)
