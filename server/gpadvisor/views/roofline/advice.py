# SPDX-License-Identifier: Apache-2.0
"""What the picture argues for: the suggestion that raises the nearest ceiling, and the ceilings of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.estimators.caps import remaining
from gpadvisor.estimators.utilisation import ISSUE, PIPE_UNITS
from gpadvisor.model.advice import Estimate, ReducedLoad
from gpadvisor.model.ids import FunctionId
from gpadvisor.views.roofline.model import Ceiling, CeilingKind, CountedAccess, Roofline

NEAR: Final = 0.6
"""Of a peak: Nsight Compute's own line between a unit that limits a kernel and one that does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A suggestion as far as ceilings ask about it."""

    code: str
    name: str
    speedup: Estimate | None
    reduced_loads: tuple[ReducedLoad, ...]  # loads that it lowers
    places: frozenset[tuple[FunctionId, int]]  # the instructions that it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """A suggestion that a ceiling has lowered."""

    proposal: Proposal
    ceiling: Ceiling


def left_alone(
    ceilings: Sequence[Ceiling], reduced_loads: Sequence[ReducedLoad], *, relaunched: bool = False
) -> Ceiling | None:
    """The nearest ceiling of a change's kind: one whose load it leaves as it is, even at its best.

    Args:
        ceilings: of the kernel.
        reduced_loads: loads that the change lowers. Pipes are known by name or not at all: where
            instructions go and no pipe is named, the load of any may fall.
        relaunched: whether the launch changes: a use of the busy SMs alone says nothing about the idle ones.
    """
    gone = any(reduced.resource == ISSUE and reduced.remaining_best < 1 for reduced in reduced_loads)
    unnamed = gone and not any(reduced.resource in PIPE_UNITS for reduced in reduced_loads)
    result = (
        ceiling
        for ceiling in ceilings
        if all(remaining(unit, reduced_loads, best=True) == 1 for unit in ceiling.relieved_by)
        and not (unnamed and ceiling.kind is CeilingKind.PIPE)
        and not (relaunched and ceiling.source.endswith("_active"))
    )
    return max(result, key=lambda ceiling: ceiling.use, default=None)


def raises(proposal: Proposal, ceiling: Ceiling) -> bool:
    """Whether a suggestion takes load off the unit of a ceiling."""
    return any(remaining(unit, proposal.reduced_loads, best=False) < 1 for unit in ceiling.relieved_by)


def follows(roofline: Roofline, proposals: Sequence[Proposal]) -> Proposal | None:
    """The suggestion for the nearest ceiling; the first of all where no ceiling is near."""
    nearest = roofline.nearest
    if nearest is None or nearest.use < NEAR:
        return next(iter(proposals), None)
    return next((proposal for proposal in proposals if raises(proposal, nearest)), None)


def proposal_for(access: CountedAccess, proposals: Sequence[Proposal]) -> Proposal | None:
    """The suggestion about an access."""
    position = (access.function, access.index)
    return next(
        (proposal for proposal in proposals if position in proposal.places and proposal.reduced_loads), None
    )


def caps(roofline: Roofline, proposals: Sequence[Proposal]) -> tuple[Capped, ...]:
    """Suggestions that would promise more than the nearest ceiling of their kind allows, and do not."""
    by_name = {ceiling.name: ceiling for ceiling in roofline.ceilings}
    return tuple(
        Capped(proposal=proposal, ceiling=by_name[proposal.speedup.cap.limit])
        for proposal in proposals
        if proposal.speedup is not None
        and proposal.speedup.cap is not None
        and proposal.speedup.cap.limit in by_name
    )
