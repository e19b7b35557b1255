# SPDX-License-Identifier: Apache-2.0
"""The dependency graph as the result shows it, cut edges included (GPA section IV)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

from gpadvisor.blamer.graph import Edge, FunctionGraph
from gpadvisor.blamer.sources import UseResult
from gpadvisor.model.blame import DependencyEdge

_BLOCKS_OF_CUT_EDGES: Final = 64
"""How far the distance of a cut edge is looked for; it is shown, and decides nothing."""


class Edges(Sequence[DependencyEdge]):
    """All edges of a kernel, made when first asked for: advice does without, and most of them were cut."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._results: list[tuple[FunctionGraph, list[UseResult]]] = []
        self._made: tuple[DependencyEdge, ...] | None = None

    def add(self, graph: FunctionGraph, results: list[UseResult]) -> None:
        """Take what was found in one function."""
        self._results.append((graph, results))

    @property
    def _edges(self) -> tuple[DependencyEdge, ...]:
        if self._made is None:
            edges: list[DependencyEdge] = []
            for graph, results in self._results:
                edges.extend(_frozen(graph, [edge for result in results for edge in result.all_edges()]))
            self._results = []
            self._made = tuple(edges)
        return self._made

    @overload
    def __getitem__(self, position: int) -> DependencyEdge: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[DependencyEdge, ...]: ...

    def __getitem__(self, position: int | slice) -> DependencyEdge | tuple[DependencyEdge, ...]:
        """One edge, or some."""
        return self._edges[position]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._edges)

    def __eq__(self, other: object) -> bool:
        """Whether it holds the same edges in the same order."""
        return self._edges == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        """Of the edges."""
        return hash(self._edges)


def _frozen(graph: FunctionGraph, edges: Sequence[Edge]) -> list[DependencyEdge]:
    """Edges as the result shows them."""
    by_use: dict[int, list[Edge]] = {}
    for edge in edges:
        by_use.setdefault(edge.use, []).append(edge)
    for group in by_use.values():
        graph.measure([edge for edge in group if edge.alive])
        graph.measure([edge for edge in group if not edge.alive], _BLOCKS_OF_CUT_EDGES)
    return [
        DependencyEdge(
            function=graph.function.id,
            def_index=edge.definition,
            use_index=edge.use,
            kind=edge.kind,
            registers=edge.registers,
            distance_instructions=edge.distance,
            issue_weight=int(graph.issues[edge.definition]),
            pruned_by=None if edge.alive else edge.rule,
            prune_detail=None if edge.alive else edge.detail,
        )
        for edge in edges
    ]
