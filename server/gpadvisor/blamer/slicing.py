# SPDX-License-Identifier: Apache-2.0
"""Section IV without wait masks as ground truth: slice, prune, classify; the paper's rules or the code's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpadvisor.blamer.classify import dependency_class, is_l1tex
from gpadvisor.blamer.graph import Edge, FunctionGraph, register_links
from gpadvisor.blamer.pruning import (
    both_barriers_rule,
    dominator_rule,
    is_memory_source,
    latency_rule,
    opcode_rule,
    path_rules,
)
from gpadvisor.blamer.rules import BlameRules, Budget, PathMean
from gpadvisor.blamer.sources import UNATTRIBUTED, Source, StallSources, UseResult
from gpadvisor.blamer.survivors import PathRules, SurvivingPaths
from gpadvisor.model.blame import DependencyClass, DependencyKind, PruneRule, Role
from gpadvisor.model.instruction import Instruction, Register, RegisterFile, register, register_file
from gpadvisor.model.stalls import StallClass, StallReason

SLICED: Final = frozenset({StallClass.MEMORY, StallClass.EXECUTION, StallClass.FIXED_LATENCY})
"""Stalls whose sources are found by slicing."""


def sliced_candidates(graph: FunctionGraph, use: int) -> list[Edge]:
    """Def-use edges by registers and by virtual barrier registers."""
    linked: dict[int, list[Register]] = {}
    for read, definitions in register_links(graph, use):
        for definition in definitions:
            linked.setdefault(definition, []).append(read)
    instruction = graph.instructions[use]
    for number in instruction.control.waits:
        barrier = register(RegisterFile.BARRIER, number)
        for definition in graph.definitions.definitions(use, barrier):
            linked.setdefault(definition, []).append(barrier)
    if instruction.partial_wait is not None:
        barrier = register(RegisterFile.BARRIER, instruction.partial_wait.barrier)
        for operation in graph.waits.outstanding.get(use, ()):
            if operation.scoreboard == instruction.partial_wait.barrier:
                linked.setdefault(operation.producer, []).append(barrier)
    return [
        Edge(definition, use, _kind(instruction, linked[definition]), tuple(linked[definition]))
        for definition in sorted(linked)
    ]


def _kind(use: Instruction, read: list[Register]) -> DependencyKind:
    plain = [register for register in read if register_file(register) is not RegisterFile.BARRIER]
    if not plain:
        return DependencyKind.BARRIER
    only_guard = use.guard is not None and set(plain) == {use.guard.register}
    return DependencyKind.GUARD if only_guard else DependencyKind.REGISTER


def sliced(
    graph: FunctionGraph, use: int, reasons: Mapping[int, StallReason], rules: BlameRules
) -> UseResult:
    """Sources of the memory and execution stalls of one use.

    Args:
        graph: of the function.
        use: the sampled instruction.
        reasons: its dependency stall reasons by index.
        rules: of the paper, or of its code.
    """
    observed = {reason.stall_class for reason in reasons.values()}
    edges = sliced_candidates(graph, use)
    surviving: dict[bool, list[tuple[Edge, SurvivingPaths]]] = {True: [], False: []}
    for edge in edges:
        paths = _prune(graph, edge, observed, rules)
        if paths is not None:
            edge.alive = True
            source = graph.instructions[edge.definition]
            memory = is_memory_source(source, rules)
            surviving[memory].append((edge, paths))
    per_reason = {}
    for index, reason in reasons.items():
        if reason.stall_class in SLICED:
            memory = reason.stall_class is StallClass.MEMORY
            per_reason[index] = _found(graph, surviving[memory], rules, memory=memory)
    return UseResult(tuple(edges), per_reason)


def _prune(
    graph: FunctionGraph, edge: Edge, observed: set[StallClass], rules: BlameRules
) -> SurvivingPaths | None:
    """The surviving paths of an edge, or None with the rule noted on it."""
    source, use = graph.instructions[edge.definition], graph.instructions[edge.use]
    detail = opcode_rule(source, observed, rules)
    if detail is not None:
        edge.cut(PruneRule.OPCODE, detail)
        return None
    detail = both_barriers_rule(source, use) if rules.barrier_rule else None
    if detail is not None:
        edge.cut(PruneRule.BARRIER, detail)
        return None
    budget = _budget(graph, edge.definition, rules)
    fixed = _is_fixed(source)
    counts = Budget.INSTRUCTIONS if fixed else rules.variable_budget
    paths = path_rules(
        graph,
        edge,
        PathRules(
            budget=budget,
            counts=counts,
            predicated_readers=rules.predicated_readers,
            readers=use.partial_wait is None,  # it waits for several of its defs
        ),
    )
    detail = dominator_rule(paths)
    if detail is not None:
        edge.cut(PruneRule.DOMINATOR, detail)
        return None
    detail = None if budget is None else latency_rule(paths, budget)
    if detail is not None:
        edge.cut(PruneRule.LATENCY, detail)
        return None
    if not paths.exists:  # no path was found within the limits of the search: keep the edge
        return SurvivingPaths()
    return paths


def _is_fixed(source: Instruction) -> bool:
    return source.control.write_barrier is None and source.control.read_barrier is None


def _budget(graph: FunctionGraph, definition: int, rules: BlameRules) -> int | None:
    """What may be counted between def and use before the def is taken as done; None where not known."""
    source = graph.instructions[definition]
    if not _is_fixed(source):
        if rules.memory_bound_cycles is not None and is_l1tex(source):
            return rules.memory_bound_cycles
        return graph.bound_cycles(definition)
    latency = graph.latency(definition)
    if latency is None:
        return None
    return latency.min_cycles if rules.fixed_latency_is_minimum else latency.max_cycles + 1


def _found(
    graph: FunctionGraph, edges: list[tuple[Edge, SurvivingPaths]], rules: BlameRules, *, memory: bool
) -> StallSources:
    if not edges:
        if rules.leftovers_on_use and not memory:
            return StallSources((), Role.SELF, DependencyClass.SCHEDULE)
        return UNATTRIBUTED
    return StallSources(
        tuple(
            Source(
                edge,
                sliced_class(graph.instructions[edge.definition], edge, memory=memory),
                paths.average if rules.path is PathMean.AVERAGE else edge_longest(graph, edge),
            )
            for edge, paths in edges
        )
    )


def edge_longest(graph: FunctionGraph, edge: Edge) -> int | None:
    """The longest path of an edge."""
    graph.measure([edge])
    return edge.distance


def sliced_class(source: Instruction, edge: Edge, *, memory: bool) -> DependencyClass:
    """Fig. 5: an execution stall linked by a barrier alone is a write after read."""
    if not memory and edge.kind is DependencyKind.BARRIER:
        return DependencyClass.WRITE_AFTER_READ
    return dependency_class(source, edge.kind)
