# SPDX-License-Identifier: Apache-2.0
"""What the picture argues for: the suggestion that raises the nearest ceiling, and the caps of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators.caps import remaining
from gpadvisor.model.advice import Estimate, Relief
from gpadvisor.model.ids import FunctionId
from gpadvisor.views.roofline.model import Ceiling, CountedAccess, Roofline

NEAR: Final = 0.6
"""Of a peak: Nsight Compute's own line between a unit that limits a kernel and one that does not."""
_TOLERANCE: Final = 1.01
"""A suggestion is told to promise too much above this: counters of several passes differ by as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A suggestion as far as ceilings ask about it."""

    code: str
    name: str
    speedup: Estimate | None
    relieves: tuple[Relief, ...]  # loads that it lowers
    places: frozenset[tuple[FunctionId, int]]  # the instructions that it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """The ceiling above a suggestion that it does not raise."""

    proposal: Proposal
    ceiling: Ceiling


def raises(proposal: Proposal, ceiling: Ceiling) -> bool:
    """Whether a suggestion takes load off the unit of a ceiling."""
    return any(remaining(unit, proposal.relieves, best=False) < 1 for unit in ceiling.relieved_by)


def follows(roofline: Roofline, proposals: Sequence[Proposal]) -> Proposal | None:
    """The suggestion for the nearest ceiling; the first of all where no ceiling is near."""
    nearest = roofline.nearest
    if nearest is None or nearest.use < NEAR:
        return next(iter(proposals), None)
    return next((one for one in proposals if raises(one, nearest)), None)


def answers(access: CountedAccess, proposals: Sequence[Proposal]) -> Proposal | None:
    """The suggestion about an access."""
    here = (access.function, access.index)
    return next((one for one in proposals if here in one.places and one.relieves), None)


def caps(roofline: Roofline, proposals: Sequence[Proposal]) -> tuple[Capped, ...]:
    """Suggestions that promise more than the nearest ceiling that they leave where it is."""
    found = []
    for one in proposals:
        left = next((ceiling for ceiling in roofline.ceilings if not raises(one, ceiling)), None)
        if one.speedup is None or left is None or left.factor <= 1:
            continue
        if one.speedup.expected > left.factor * _TOLERANCE:
            found.append(Capped(proposal=one, ceiling=left))
    return tuple(found)
