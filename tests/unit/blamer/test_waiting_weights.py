# SPDX-License-Identifier: Apache-2.0
"""Chances and times by which a wait is shared out among operations that are outstanding together."""

from __future__ import annotations

import numpy as np
import pytest
from tests.blame_rows import graph_of

from gpadvisor.analyzer.scoreboards import Link
from gpadvisor.blamer.completion import _bounds, _ends_wait, _in_order, _queue, _together, waiting_weights
from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.model.blame import DependencyKind
from gpadvisor.model.instruction import InOrderQueue, Pipe


def _edges(use: int, *definitions: int, link: Link = Link.WRITE) -> list[Edge]:
    return [Edge(one, use, DependencyKind.REGISTER, (), frozenset({link})) for one in definitions]


def _alone(least: float, most: float) -> float:
    (weight,) = _ends_wait(np.array([[least, most]]), np.ones((1, 1)), np.eye(1, dtype=np.int64))
    return float(weight)


def test_alone_it_waits_for_the_mean_of_its_bounds() -> None:
    assert _alone(100, 200) == pytest.approx(150)
    assert _alone(-300, -200) == 1  # what should have been complete on arrival waits for a cycle
    assert _alone(-16, 16) == pytest.approx((8 + sum(range(1, 16, 2))) / 16)


def test_of_two_alike_each_is_the_last_half_of_the_time() -> None:
    bounds = np.array([[0.0, 320.0], [0.0, 320.0]])
    first, second = _ends_wait(bounds, np.ones((2, 2)), np.eye(2, dtype=np.int64))
    # The mean of t * t / 320 over 0 to 320, and of sixteen points within a cycle of it.
    assert first == second == pytest.approx(320 / 3, abs=1)


def test_who_completes_later_by_the_order_of_the_queue_leaves_nothing_to_the_other() -> None:
    bounds = np.array([[0.0, 320.0], [0.0, 320.0]])
    first, second = _ends_wait(bounds, np.ones((2, 2)), np.array([[1, -1], [1, 1]]))
    assert (first, second) == (0, pytest.approx(160))


def test_who_is_rarely_there_rarely_ends_the_wait_of_the_other() -> None:
    bounds = np.array([[100.0, 101.0], [200.0, 201.0]])
    together = np.array([[1.0, 0.25], [1.0, 1.0]])
    first, second = _ends_wait(bounds, together, np.eye(2, dtype=np.int64))
    assert (first, second) == (pytest.approx(0.75 * 100.5), pytest.approx(200.5))


def _pairs(graph: FunctionGraph, *definitions: int, use: int) -> list[list[float]]:
    issues = np.array([float(graph.issues[one]) for one in definitions])
    found: list[list[float]] = _together(graph, _edges(use, *definitions), use, issues).tolist()
    return found


def test_of_two_blocks_one_before_the_other_both_are_outstanding_as_often_as_the_rarer_runs() -> None:
    text = "LDS R0, [R8]\n@P0 BRA join\nLDS R1, [R9]\njoin: FADD R4, R0, R5\nEXIT"
    assert _pairs(graph_of(text, [100, 100, 25, 100, 100]), 0, 2, use=3) == [[1, 0.25], [1, 1]]
    assert _pairs(graph_of(text), 0, 1, use=3) == [[1, 1], [1, 1]]


def test_the_ways_between_two_operations_may_have_blocks_of_their_own() -> None:
    text = "LDS R0, [R8]\n@P0 BRA on\nMOV R6, R7\non: @P1 BRA join\nLDS R1, [R9]\njoin: FADD R4, R0, R5\nEXIT"
    assert _pairs(graph_of(text), 0, 4, use=5) == [[1, 1], [1, 1]]


@pytest.mark.parametrize(("blocks", "together"), [(127, 1), (128, 0)])
def test_a_way_is_followed_over_128_blocks(blocks: int, together: float) -> None:
    lines = [f"b{at}: @P0 BRA b{at + 1}" for at in range(blocks)]
    text = "\n".join(
        ["LDS R0, [R8]", "@P0 BRA b0", *lines, f"b{blocks}: LDS R1, [R9]", "@P0 BRA use", "use: EXIT"]
    )
    assert _pairs(graph_of(text), 0, 2 + blocks, use=4 + blocks) == [[1, together], [together, 1]]


@pytest.mark.parametrize("line", ["HFMA2.MMA R0, R2, R3, R4", "HMMA.16816.F16 R0, R2, R4, R6"])
def test_what_takes_the_same_time_always_is_a_cycle_off_at_most(line: str) -> None:
    graph = graph_of(f"{line}\nEXIT")
    (edge,) = _edges(1, 0)
    least, most = _bounds(graph, edge)
    assert most - least == 1


def test_two_sides_of_a_branch_are_never_outstanding_together() -> None:
    text = "@P0 BRA other\nLDS R0, [R8]\nBRA join\nother: LDS R0, [R9]\njoin: FADD R4, R0, R5\nEXIT"
    assert _pairs(graph_of(text), 1, 3, use=4) == [[1, 0], [0, 1]]


def test_the_ways_between_two_operations_do_not_go_past_the_use() -> None:
    """In a loop the second side of one pass comes before the first of the next, but the use has waited."""
    text = """
        top: @P0 BRA other
        LDS R0, [R8]
        BRA join
        other: LDS R0, [R9]
        join: FADD R4, R0, R5
        @P1 BRA top
        EXIT
        """
    assert _pairs(graph_of(text), 1, 3, use=4) == [[1, 0], [0, 1]]


def test_what_completes_in_order() -> None:
    text = (
        "LDS R0, [R8]\nLDS R1, [R8+4]\nMUFU.RCP R2, R3\nLDG.E R4, [R6.64]\nLDG.E R5, [R6.64]\nFADD R9, R0, R1"
    )
    graph = graph_of(text)
    edges = _edges(5, 0, 1, 2, 3, 4)
    elapsed = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    assert _in_order(graph, edges, elapsed).tolist() == [
        [1, -1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("line", "link", "queue"),
    [
        ("LDS R0, [R8]", Link.WRITE, InOrderQueue),
        ("STS [R8], R0", Link.READ, Pipe.LSU),
        ("STG.E [R8.64], R0", Link.READ, Pipe.LSU),
        ("MUFU.RCP R2, R3", Link.READ, None),
        ("LDG.E R0, [R8.64]", Link.WRITE, None),
    ],
)
def test_operands_are_read_in_the_order_of_the_load_store_pipe(
    line: str, link: Link, queue: type[InOrderQueue] | Pipe | None
) -> None:
    (edge,) = _edges(1, 0, link=link)
    found = _queue(graph_of(f"{line}\nEXIT"), edge)
    assert isinstance(found, queue) if queue is InOrderQueue else found is queue


def test_an_operation_that_was_never_seen_counts_as_told() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R4.64] | W0\nFADD R6, R0, R1 | ?0"
    graph = graph_of(text, [0, 96, 96])
    (_, first), (_, second) = waiting_weights(graph, _edges(2, 0, 1), 32)
    assert first / second == pytest.approx(1 / 3, rel=0.01)
    assert [weight for _, weight in waiting_weights(graph, _edges(2, 0), 32)] == [1.0]
    assert waiting_weights(graph, [], 32) == []
