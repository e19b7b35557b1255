# SPDX-License-Identifier: Apache-2.0
"""Rows of blame, edges as they are shown, and the coverage of a graph."""

from __future__ import annotations

import pytest
from tests.assembly import function_of, model, profile_of, program_of
from tests.blame_rows import blame_text, edge_of, graph_of, rows

from gpadvisor.blamer import DEFAULT_RULES, GPA2021, blame
from gpadvisor.blamer.coverage import combined, coverage
from gpadvisor.blamer.graph import Edge
from gpadvisor.blamer.rows import weights
from gpadvisor.blamer.sources import Source
from gpadvisor.model.blame import DependencyClass, DependencyKind
from gpadvisor.model.program import FunctionKind

TWO_LOADS = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R4.64] | W1\nFADD R6, R0, R1 | ?1\nEXIT"


def _source(definition: int, distance: float | None, weight: float | None = None) -> Source:
    edge = Edge(definition, 3, DependencyKind.REGISTER, ())
    return Source(edge, DependencyClass.ARITHMETIC, distance, weight)


def test_what_eq_1_is_given() -> None:
    graph = graph_of(TWO_LOADS, [5, 0, 7, 7])
    sources = [_source(0, 2), _source(1, None), _source(2, 9, 1.5)]
    assert weights(graph, DEFAULT_RULES, sources) == ([2, 9, 9], [5, 1, 1.5])
    assert weights(graph, GPA2021, [_source(1, None)]) == ([1], [32])


def test_rows_are_sorted_and_complete() -> None:
    samples = {(2, "long_scoreboard"): (60, 50), (0, "selected"): (3, 1), (3, "wait"): (4, 4)}
    found = rows(blame_text(TWO_LOADS, samples))
    assert [(row.reason, row.role, row.definition, row.use, row.samples, row.latency) for row in found] == [
        ("long_scoreboard", "blamed", 1, 2, 60, 50),
        ("selected", "self", None, 0, 3, 1),
        ("wait", "blamed", 2, 3, 4, 4),
    ]
    assert [row.distance for row in found] == [1, None, 1]


def test_edges_are_a_sequence_with_kind_and_weight() -> None:
    result = blame_text(TWO_LOADS, {(2, "long_scoreboard"): 60, (1, "selected"): 7})
    edges = result.edges
    assert [(edge.def_index, edge.use_index, edge.issue_weight) for edge in edges] == [(0, 2, 0), (1, 2, 7)]
    assert (len(edges), edges[1], edges[:1]) == (2, edge_of(result, 1, 2), (edge_of(result, 0, 2),))
    assert edges == tuple(edges)
    assert edges != edges[:1]
    assert hash(edges) == hash(tuple(edges))
    assert [edge.distance_instructions for edge in edges] == [2, 1]


def test_edges_and_rows_are_of_their_function() -> None:
    text = "LDG.E R0, [R2.64] | W0\nFADD R6, R0, R1 | ?0\nEXIT"
    first = function_of(text)
    second = function_of(text, number=1, start=3, kind=FunctionKind.DEVICE)
    profile = profile_of({(1, "long_scoreboard"): 5, (4, "long_scoreboard"): 9})
    result = blame(program_of(first, second), profile, model())
    assert [(row.function, row.definition, row.use, row.samples) for row in rows(result)] == [
        (0, 0, 1, 5),
        (1, 0, 1, 9),
    ]
    assert [edge.function for edge in result.edges] == [0, 1]


def test_the_coverage_is_of_the_sampled_nodes_of_each_function() -> None:
    first = function_of(TWO_LOADS)
    second = function_of("MOV R0, R1\nMOV R2, R3\nEXIT", number=1, start=4, kind=FunctionKind.DEVICE)
    samples = {(2, "long_scoreboard"): 5, (4, "selected"): 1, (5, "selected"): 1, (6, "wait"): 2}
    program = program_of(first, second)
    found = blame(program, profile_of(samples), model()).coverage
    assert (found.before, found.after) == (5 / 6, 1)
    by_the_code = blame(program, profile_of(samples), model(), GPA2021).coverage
    assert (by_the_code.before, by_the_code.after) == (5 / 6, 5 / 6)


def test_a_node_is_single_with_one_edge_of_a_kind() -> None:
    """Of memory and of execution one each may come in."""
    links = [(4, [0, 1, 2], [0, 2]), (5, [0], [0]), (5, [1], [])]
    assert coverage([4, 5, 9], links, lambda definition: definition < 2) == (6, 4, 6)
    assert coverage([4], [(4, [2, 3], [2, 3])], lambda definition: definition < 2) == (3, 2, 2)
    assert coverage([], [(4, [0], [0])], lambda _: True) == (2, 2, 2)
    assert coverage([4], [(4, [0, 0], [0])], lambda _: True) == (2, 1, 2)


def test_the_coverage_of_a_kernel_is_over_all_nodes() -> None:
    found = combined([(6, 3, 4), (2, 2, 2)])
    assert (found.before, found.after) == (5 / 8, 6 / 8)
    nothing = combined([])
    assert (nothing.before, nothing.after) == (None, None)


@pytest.mark.parametrize("reason", ["lg_throttle", "long_scoreboard"])
def test_a_kernel_without_counts_or_issued_samples_is_blamed_too(reason: str) -> None:
    assert sum(row.samples for row in rows(blame_text(TWO_LOADS, {(2, reason): 60}))) == 60
