# SPDX-License-Identifier: Apache-2.0
"""What a way of blaming returns: for each stall reason of a use, the edges its samples are shared among."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from gpadvisor.blamer.graph import Candidates, Edge
from gpadvisor.model.blame import DependencyClass, Role


class Source(NamedTuple):
    """One edge that gets a share."""

    edge: Edge
    dependency_class: DependencyClass
    distance: float | None  # in instructions, for Eq. 1; None: no path bound
    weight: float | None = None  # in place of the def's issues, where something better is known


def weighed(edge: Edge, dependency_class: DependencyClass, weight: float) -> Source:
    """A source whose weight stands for all of Eq. 1, the distance included."""
    return Source(edge, dependency_class, 1, weight)


class StallSources(NamedTuple):
    """The answer for one stall reason; without sources the samples have the role given."""

    sources: tuple[Source, ...]
    role: Role = Role.UNATTRIBUTED
    dependency_class: DependencyClass = DependencyClass.NONE


UNATTRIBUTED = StallSources(())


def _nothing(_: Sequence[Edge]) -> None:
    """Where every edge that was cut says why."""


class UseResult(NamedTuple):
    """The edges into one use, and the answer for each of its dependency stall reasons."""

    edges: tuple[Edge, ...]
    found: Mapping[int, StallSources]  # by index of the reason
    candidates: Candidates | None = None  # in place of edges, which are made when they are asked for
    explain: Callable[[Sequence[Edge]], None] = _nothing  # notes on cut edges why they were cut

    def all_edges(self) -> Sequence[Edge]:
        """Every edge, those that were cut with the reason."""
        edges = self.edges if self.candidates is None else self.candidates.edges()
        self.explain(edges)
        return edges

    def definitions(self) -> Collection[int]:
        """The defs of all edges; one that stands twice is linked twice."""
        return (
            [edge.definition for edge in self.edges]
            if self.candidates is None
            else self.candidates.definitions
        )

    def alive(self) -> Collection[int]:
        """The defs of the edges that are blamed."""
        if self.candidates is not None:
            return self.candidates.alive
        return [edge.definition for edge in self.edges if edge.alive]
