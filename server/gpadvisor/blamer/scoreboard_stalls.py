# SPDX-License-Identifier: Apache-2.0
"""Sources of dependency stalls by what the hardware tells: wait masks, stall counts, fine stall reasons.

Differs from GPA: its virtual barrier registers make further def-use edges; here the scoreboards decide,
because on sm_70 and newer a warp can be held up by nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from gpadvisor.analyzer.scoreboards import Link, waits_for
from gpadvisor.blamer.bulk_copies import arriving_copies
from gpadvisor.blamer.classify import Scoreboard, dependency_class, scoreboard_of, stalls_as
from gpadvisor.blamer.completion import waiting_weights
from gpadvisor.blamer.fixed_latency import MAX_STALL_CYCLES, fixed_latency_stall
from gpadvisor.blamer.graph import Candidates, Edge, FunctionGraph
from gpadvisor.blamer.pruning import barrier_rule, dominator_rule, latency_rule, path_rules, reason_rule
from gpadvisor.blamer.rules import Budget
from gpadvisor.blamer.sources import UNATTRIBUTED, StallSources, UseResult, weighed
from gpadvisor.blamer.survivors import PathRules
from gpadvisor.model.blame import PruneRule
from gpadvisor.model.stalls import StallClass, StallReason


def by_hardware(
    graph: FunctionGraph, use: int, reasons: Mapping[int, StallReason], unsampled_issues: int
) -> UseResult:
    """Sources of the scoreboard and fixed-latency stalls of one use.

    Args:
        graph: of the function.
        use: the sampled instruction.
        reasons: its dependency stall reasons by index.
        unsampled_issues: issues of a def that has none.
    """
    edges = Candidates(graph, use)
    per_reason: dict[int, StallSources] = {}
    for index, reason in reasons.items():
        if reason.stall_class is StallClass.FIXED_LATENCY:
            per_reason[index] = fixed_latency_stall(graph, use, edges)
        elif reason.stall_class in {StallClass.MEMORY, StallClass.EXECUTION}:
            per_reason[index] = _scoreboard(graph, use, edges, reason, unsampled_issues)
    return UseResult((), per_reason, edges, partial(_explain, graph, use, reasons))


def _scoreboard(
    graph: FunctionGraph, use: int, edges: Candidates, reason: StallReason, unsampled_issues: int
) -> StallSources:
    scoreboard = scoreboard_of(reason)
    if any(waits_for(graph.instructions[place]) for place in graph.waited_at(use)):
        waited = _copies(graph, _fitting(graph, edges.linked, scoreboard))
        running = arriving_copies(graph, _still_running(graph, waited), edges)
    else:
        running = _without_wait(graph, edges, scoreboard)
    if not running:
        return UNATTRIBUTED
    weighted = waiting_weights(graph, running, unsampled_issues)
    graph.measure([edge for edge, _ in weighted])
    for edge, _ in weighted:
        edge.alive = True
    return StallSources(
        tuple(
            weighed(edge, dependency_class(graph.instructions[edge.definition], edge.kind), weight)
            for edge, weight in weighted
        )
    )


def _copies(graph: FunctionGraph, edges: list[Edge]) -> list[Edge]:
    """Without the commit of a group whose copies are known: it holds the scoreboard for them."""
    groups = {register for edge in edges if Link.GROUP in edge.links for register in edge.registers}
    alive = []
    for edge in edges:
        commits = graph.instructions[edge.definition].opcode == "LDGDEPBAR"
        if commits and groups.intersection(edge.registers):
            edge.cut(PruneRule.BARRIER, "it commits copies to a group, and those are what is waited for")
        else:
            alive.append(edge)
    return alive


def _fitting(graph: FunctionGraph, linked: list[Edge], scoreboard: Scoreboard) -> list[Edge]:
    """Edges of the waited scoreboards that the stall reason allows; all of them where it allows none.

    The wait mask outranks the reason: a few samples of a global atomic come as short_scoreboard.
    """
    details = [reason_rule(graph.instructions[edge.definition], edge, scoreboard) for edge in linked]
    if all(detail is not None for detail in details):
        return linked
    for edge, detail in zip(linked, details, strict=True):
        if detail is not None:
            edge.cut(PruneRule.REASON, detail)
    return [edge for edge, detail in zip(linked, details, strict=True) if detail is None]


def _still_running(graph: FunctionGraph, edges: Sequence[Edge]) -> list[Edge]:
    """The latency rule on scoreboard edges: operations that must be complete on every path are cut.

    Differs from GPA: the last edges are never cut, for the wait proves that something is outstanding.
    """
    graph.measure(edges)
    running, late = [], []
    for edge in edges:
        bound = graph.bound_cycles(edge.definition)
        reach = edge.distance
        if bound is None or reach is None or reach * MAX_STALL_CYCLES <= bound:
            running.append(edge)
            continue
        cycles = graph.cycles.shortest([edge.definition], edge.use)[edge.definition]
        if cycles is None or cycles <= bound:
            running.append(edge)
        else:
            late.append(
                (edge, f"{cycles} cycles lie between on the shortest path, its latency is at most {bound}")
            )
    if not running:
        return [edge for edge, _ in late]
    for edge, detail in late:
        edge.cut(PruneRule.LATENCY, detail)
    return running


def _without_wait(graph: FunctionGraph, edges: Candidates, scoreboard: Scoreboard) -> list[Edge]:
    """A scoreboard stall where nothing is waited for: what its registers need, by the paper's rules."""
    sources = []
    for definition in sorted(edges.read):
        source = graph.instructions[definition]
        if not source.info.variable_latency or not stalls_as(source, reads_only=False) & scoreboard:
            continue
        edge = edges.edge(definition)
        budget = graph.bound_cycles(edge.definition)
        paths = path_rules(graph, edge, PathRules(budget, Budget.CYCLES, predicated_readers=False))
        read_before = dominator_rule(paths)
        late = None if budget is None else latency_rule(paths, budget)
        if read_before is not None:
            edge.cut(PruneRule.DOMINATOR, read_before)
        elif late is not None:
            edge.cut(PruneRule.LATENCY, late)
        else:
            sources.append(edge)
    return sources


def _explain(
    graph: FunctionGraph, use: int, reasons: Mapping[int, StallReason], edges: Sequence[Edge]
) -> None:
    """Note on every edge without a rule so far which one keeps it out; a blamed one does not show it."""
    observed = {reason.stall_class for reason in reasons.values()}
    instruction = graph.instructions[use]
    scoreboards = bool(observed & {StallClass.MEMORY, StallClass.EXECUTION})
    for edge in edges:
        source = graph.instructions[edge.definition]
        if edge.links:
            edge.cut(PruneRule.REASON, "the use has no scoreboard stall")
        elif source.info.variable_latency:
            if scoreboards:
                edge.cut(PruneRule.BARRIER, barrier_rule(source, instruction))
            else:
                edge.cut(PruneRule.REASON, "its result comes by scoreboard, and the use has no such stall")
        elif StallClass.FIXED_LATENCY in observed:
            edge.cut(PruneRule.LATENCY, "its result was there before the last stall count")
        else:
            edge.cut(PruneRule.OPCODE, f"{source.opcode} has a fixed latency and causes no scoreboard stall")
