# SPDX-License-Identifier: Apache-2.0
"""Dominators, loops and path lengths of random graphs against their plain definitions."""

from __future__ import annotations

import itertools

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from tests.assembly import function_of

from gpadvisor.analyzer.dominators import DominatorTree
from gpadvisor.analyzer.loops import find_loops
from gpadvisor.analyzer.paths import Paths
from gpadvisor.graphs import immediate_dominators, post_dominators, reverse_postorder, strongly_connected
from gpadvisor.model.program import Function


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """Successors of up to twelve blocks, two at most each, some of them unreachable."""
    count = draw(st.integers(1, 12))
    block = st.integers(0, count - 1)
    return [draw(st.lists(block, max_size=2, unique=True)) for _ in range(count)]


def predecessors(successors: list[list[int]]) -> list[list[int]]:
    """The reverse of a graph."""
    found: list[list[int]] = [[] for _ in successors]
    for block, targets in enumerate(successors):
        for target in targets:
            found[target].append(block)
    return found


def as_graph(successors: list[list[int]]) -> nx.DiGraph:
    """The same for networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(successors)))
    graph.add_edges_from((block, target) for block, targets in enumerate(successors) for target in targets)
    return graph


@given(graphs())
def test_dominance_is_passing_on_every_path(successors: list[list[int]]) -> None:
    order = reverse_postorder(successors)
    tree = DominatorTree(immediate_dominators(order, predecessors(successors)))
    graph = as_graph(successors)
    for above, below in itertools.product(order, order):
        rest = graph.subgraph(set(graph) - {above})
        avoidable = above not in {0, below} and nx.has_path(rest, 0, below)
        assert tree.dominates(above, below) == (not avoidable)


def leads(graph: nx.DiGraph, start: int, end: int, without: int | None) -> bool:
    """Whether a path leads from one node to another that does not pass a third."""
    return nx.has_path(graph.subgraph(set(graph) - {without}), start, end)


@given(graphs())
def test_post_dominance_is_passing_on_every_path_to_the_end(successors: list[list[int]]) -> None:
    end = len(successors)
    ways = [targets or [end] for targets in successors]
    found = post_dominators(ways)
    graph = as_graph([*ways, []])
    for block in range(end):
        chain = []
        above = found[block]
        while above is not None:
            chain.append(above)
            above = found[above]
        passed = {other for other in range(end) if other != block and not leads(graph, block, end, other)}
        assert set(chain) == (passed | {end} if leads(graph, block, end, None) else set())


@given(graphs())
def test_components_are_what_reaches_each_other_and_come_before_what_leads_to_them(
    successors: list[list[int]],
) -> None:
    found = strongly_connected(range(len(successors)), dict(enumerate(successors)))
    expected = [sorted(one) for one in nx.strongly_connected_components(as_graph(successors))]
    assert [sorted(one) for one in found] == expected


@given(graphs())
def test_loops_are_natural_loops_and_the_cycles_that_are_left(successors: list[list[int]]) -> None:
    order = reverse_postorder(successors)
    before = predecessors(successors)
    tree = DominatorTree(immediate_dominators(order, before))
    nest = find_loops(successors, before, order, tree)
    graph = as_graph(successors).subgraph(order)
    natural: dict[int, set[int]] = {}
    for latch, header in graph.edges:
        if tree.dominates(header, latch):
            rest = graph.subgraph(set(graph) - {header})
            reaching = nx.ancestors(rest, latch) | {latch} if latch != header else set()
            natural.setdefault(header, {header}).update(reaching)
    assert {loop.header: set(loop.blocks) for loop in nest.loops if loop.reducible} == natural
    in_cycles = set().union(
        *(one for one in nx.strongly_connected_components(graph) if len(one) > 1), *natural.values()
    )
    assert set().union(*(loop.blocks for loop in nest.loops)) == in_cycles
    for number, loop in enumerate(nest.loops):
        if loop.parent is not None:
            around = nest.loops[loop.parent]
            assert loop.blocks <= around.blocks
            assert loop.depth == around.depth + 1
        for block in loop.blocks:
            assert len(nest.loops[nest.innermost[block]].blocks) <= len(loop.blocks), number


def function_like(successors: list[list[int]]) -> Function:
    """A function with this graph: two instructions a block, the later a branch."""
    lines = []
    for block, targets in enumerate(successors):
        following = block + 1
        lines.append(f"b{block}: MOV R0, R1")
        if not targets:
            lines.append("EXIT")
        elif len(targets) == 1:
            lines.append(f"BRA b{targets[0]}")
        else:
            # Two targets need two branches where neither is the next block.
            lines.append(f"@P0 BRA b{targets[0]}")
            if targets[1] != following:
                lines.append(f"BRA b{targets[1]}")
    return function_of("\n".join(lines))


def forward_lengths(function: Function, start: int, end: int) -> set[int]:
    """Lengths of all paths along forward edges, by enumeration."""
    successors = [[int(target) for target, _ in block.successors] for block in function.blocks]
    order = reverse_postorder(successors)
    rank = {block: position for position, block in enumerate(order)}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(function.instructions)))
    for block in function.blocks:
        graph.add_edges_from(itertools.pairwise(range(block.start, block.end)))
        for target in successors[block.id]:
            if rank.get(block.id, -1) < rank.get(target, -1):
                graph.add_edge(block.end - 1, function.blocks[target].start)
    return {len(path) - 1 for path in nx.all_simple_paths(graph, start, end)}


@given(graphs(), st.data())
def test_longest_and_shortest_paths_along_forward_edges(
    successors: list[list[int]], data: st.DataObject
) -> None:
    function = function_like(successors)
    reachable = [index for index in range(len(function.instructions)) if _reached(function, index)]
    start = data.draw(st.sampled_from(reachable))
    end = data.draw(st.sampled_from(reachable))
    lengths = forward_lengths(function, start, end) if start != end else set()
    paths = Paths(function)
    if lengths:
        assert paths.longest([start], end) == {start: max(lengths)}
        assert paths.shortest([start], end) == {start: min(lengths)}


@given(graphs(), st.data())
def test_a_path_is_found_wherever_there_is_one(successors: list[list[int]], data: st.DataObject) -> None:
    function = function_like(successors)
    start = data.draw(st.integers(0, len(function.instructions) - 1))
    end = data.draw(st.integers(0, len(function.instructions) - 1))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(function.instructions)))
    for block in function.blocks:
        graph.add_edges_from(itertools.pairwise(range(block.start, block.end)))
        graph.add_edges_from((block.end - 1, function.blocks[target].start) for target, _ in block.successors)
    expected = any(nx.has_path(graph, after, end) for after in graph.successors(start))
    found = Paths(function).longest([start], end)[start]
    if not expected:
        assert found is None
    elif found is not None:
        assert found >= 1
    else:  # only a path that turns back many times may be given up
        turns = sum(1 for block in function.blocks for target, _ in block.successors if target <= block.id)
        assert turns > 4


def _reached(function: Function, index: int) -> bool:
    block = function.block_of[index]
    return block == 0 or function.idom[block] is not None
