# SPDX-License-Identifier: Apache-2.0
"""Rows of blame: samples shared out among sources, and what is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.blamer.apportion import apportion_stalls, ratios
from gpadvisor.blamer.graph import FunctionGraph
from gpadvisor.blamer.observe import Observed
from gpadvisor.blamer.rules import BlameRules
from gpadvisor.blamer.sources import Source, StallSources
from gpadvisor.model.blame import (
    CLASSES,
    NO_INDEX,
    BlameTable,
    DependencyClass,
    DependencyKind,
    Role,
)


class CauseRow(NamedTuple):
    """One row of the table, in the order of BlameTable's columns."""

    function: int
    reason: int
    role: int
    dependency_class: int
    place: int
    definition: int
    use: int
    distance: int
    samples: int
    latency: int


_CODE_OF = {dependency: number for number, dependency in enumerate(CLASSES)}
_BLAMED = Role.BLAMED.value


def shared_rows(
    graph: FunctionGraph,
    rules: BlameRules,
    reason: int,
    use: int,
    place: int,
    sources: StallSources,
    stalls: tuple[int, int],
) -> list[CauseRow]:
    """The rows of one reason at one use (GPA Eq. 1); they add up to its samples."""
    if len(sources.sources) < 2:
        parts = [stalls]
    else:
        parts = apportion_stalls(*stalls, ratios(*weights(graph, rules, sources.sources)))
    return source_rows(graph, reason, use, place, sources, parts)


def source_rows(
    graph: FunctionGraph,
    reason: int,
    use: int,
    place: int,
    sources: StallSources,
    parts: Sequence[tuple[int, int]],
) -> list[CauseRow]:
    """The rows of samples that are shared out; without sources the one part has the role that was found."""
    function = graph.function.id
    if not sources.sources:
        code = _CODE_OF[sources.dependency_class]
        return [
            CauseRow(function, reason, sources.role.value, code, place, NO_INDEX, use, NO_INDEX, *parts[0])
        ]
    return [
        CauseRow(function, reason, *_cause(source, place, use), part, part_latency)
        for source, (part, part_latency) in zip(sources.sources, parts, strict=True)
        if part
    ]


def _cause(source: Source, place: int, use: int) -> tuple[int, int, int, int, int, int]:
    """Role, class, place, def, use and distance of a source; what fills its own queue keeps the wait."""
    edge = source.edge
    if edge.kind is DependencyKind.FILLS and edge.definition == use:
        return Role.SELF.value, _CODE_OF[DependencyClass.SELF], place, NO_INDEX, use, NO_INDEX
    distance = NO_INDEX if edge.distance is None else edge.distance
    return _BLAMED, _CODE_OF[source.dependency_class], place, edge.definition, use, distance


def weights(
    graph: FunctionGraph, rules: BlameRules, sources: Iterable[Source]
) -> tuple[list[float], list[float]]:
    """Distances and issues for Eq. 1; a def without a path bound counts as the farthest one."""
    measured = [source.distance for source in sources]
    farthest = max((distance for distance in measured if distance is not None), default=1.0)
    distances = [farthest if distance is None else float(distance) for distance in measured]
    weights = []
    for source in sources:
        issued = float(graph.issue_counts[source.edge.definition] or rules.unsampled_issues)
        weights.append(issued if source.weight is None else source.weight)
    return distances, weights


def plain_rows(
    observed: Observed, chosen: NDArray[np.bool_], role: Role, dependency: DependencyClass
) -> list[CauseRow]:
    """Rows of samples that go to no other instruction."""
    rows = np.flatnonzero(chosen)
    return [
        CauseRow(
            function,
            reason,
            role.value,
            _CODE_OF[dependency],
            place,
            NO_INDEX,
            use,
            NO_INDEX,
            samples,
            latency,
        )
        for function, reason, place, use, samples, latency in zip(
            observed.function[rows].tolist(),
            observed.reason[rows].tolist(),
            observed.place[rows].tolist(),
            observed.index[rows].tolist(),
            observed.samples[rows].tolist(),
            observed.latency[rows].tolist(),
            strict=True,
        )
    ]


def blame_table(rows: list[CauseRow]) -> BlameTable:
    """The rows as sorted columns."""
    columns = list(zip(*sorted(rows), strict=True)) if rows else [()] * len(CauseRow._fields)
    types = (
        np.uint16, np.uint8, np.uint8, np.uint8, np.uint8, np.int32, np.int32, np.int32, np.int64, np.int64,
    )  # fmt: skip
    function, reason, role, dependency, place, definition, use, distance, samples, latency = (
        np.array(column, dtype=kind) for column, kind in zip(columns, types, strict=True)
    )
    return BlameTable(
        function=function,
        reason=reason,
        role=role,
        dependency_class=dependency,
        place=place,
        def_index=definition,
        use_index=use,
        distance=distance,
        samples=samples,
        latency=latency,
    )
