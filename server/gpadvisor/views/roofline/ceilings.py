# SPDX-License-Identifier: Apache-2.0
"""The ceilings above a kernel: issue, memory levels, pipes and other units above 40 % of their peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.estimators.utilisation import (
    DRAM,
    ISSUE,
    L1,
    L1_DATA,
    L1_REQUESTS,
    L1_TO_L2,
    L2,
    MEMORY,
    PIPES,
    SM,
    TEXTURE,
    utilisations,
)
from gpadvisor.model.advice import Utilisation
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program
from gpadvisor.views.roofline.model import Ceiling, CeilingKind, Figure, Level, Point

NOTABLE: Final = 0.4
"""Of its peak: a pipe that is used less is no ceiling to speak of."""

LEVEL_UNIT_NAMES: Final[Mapping[Level, frozenset[str]]] = {
    Level.L1_TAGS: frozenset({L1, L1_DATA}),
    Level.L1_SECTORS: frozenset({L1, L1_DATA}),
    Level.SHARED: frozenset({L1, L1_DATA}),
    Level.L2: frozenset({L2}),
    Level.DRAM: frozenset({DRAM}),
}
"""The units of suggestions that stand for a level."""

_OF_LEVELS: Final = {L2: Level.L2, DRAM: Level.DRAM}
_L1_PARTS: Final = frozenset({L1_DATA, L1_REQUESTS, L1_TO_L2, TEXTURE})
_WHOLES: Final = frozenset({MEMORY, SM})
_PIPES: Final = frozenset(PIPES.values())
_SAME: Final = 0.01
"""Of a peak: ceilings within it are in the order of their kinds."""
_EQUAL: Final = 1e-4
"""Of a peak: one counter under two names."""


def ceilings(
    program: Program,
    profile: KernelProfile,
    height: float,
    issue_peak: Figure | None,
    points: Sequence[Point],
) -> tuple[Ceiling, ...]:
    """All of them, the nearest first; of two that are as near the one first that says which transactions."""
    units = {
        utilisation.name: utilisation for utilisation in at_half_rate(utilisations(profile), program, profile)
    }
    result = [
        *_issue(units.get(ISSUE), height, issue_peak),
        *_levels(points, height),
        *_units(units.values(), {point.level for point in points if point.use is not None}, height),
    ]
    order = list(CeilingKind)
    result.sort(
        key=lambda ceiling: (-round(ceiling.use / _SAME), order.index(ceiling.kind) != 2, -ceiling.use)
    )
    return tuple(result)


def _issue(reported: Utilisation | None, height: float, peak: Figure | None) -> Iterable[Ceiling]:
    if peak is not None:
        yield _ceiling(ISSUE, CeilingKind.ISSUE, height / peak.value, height, peak.source)
    elif reported is not None:
        yield _ceiling(ISSUE, CeilingKind.ISSUE, reported.percent / 100, height, reported.metric)


def _levels(points: Sequence[Point], height: float) -> Iterable[Ceiling]:
    for point in points:
        if point.use and point.peak is not None:
            yield _ceiling(
                point.level.value,
                CeilingKind.MEMORY,
                point.use,
                height,
                f"{point.transactions.source}, of {point.peak.source}",
                LEVEL_UNIT_NAMES[point.level],
            )


def _units(units: Iterable[Utilisation], levels: set[Level], height: float) -> Iterable[Ceiling]:
    """Pipes first: of units that are equally full, as a pipe and what is behind it, the first is told."""
    ordered = sorted(units, key=lambda unit: (unit.name not in _PIPES, not unit.is_pipe))
    part = any(unit.name in _L1_PARTS for unit in ordered)
    shares: list[float] = []
    for utilisation in ordered:
        share = utilisation.percent / 100
        if (
            utilisation.name == ISSUE
            or _OF_LEVELS.get(utilisation.name) in levels
            or (utilisation.name == L1 and part)
        ):
            continue
        if (
            share < NOTABLE
            or utilisation.name in _WHOLES
            or any(abs(share - earlier) < _EQUAL for earlier in shares)
        ):
            continue
        shares.append(share)
        kind = CeilingKind.PIPE if utilisation.is_pipe else CeilingKind.UNIT
        yield _ceiling(utilisation.name, kind, share, height, utilisation.metric)


def _ceiling(
    name: str,
    kind: CeilingKind,
    use: float,
    height: float,
    source: str,
    relieved_by: frozenset[str] | None = None,
) -> Ceiling:
    return Ceiling(
        name=name,
        kind=kind,
        use=use,
        height=height / use if use else float("inf"),
        source=source,
        relieved_by=frozenset({name}) if relieved_by is None else relieved_by,
    )
