# SPDX-License-Identifier: Apache-2.0
"""What the picture says, in sentences: the nearest ceiling, wasteful accesses, lost lanes, the suggestion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpadvisor.model.figures import factor, gain, percent
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import capitalised
from gpadvisor.report.names import base_name
from gpadvisor.report.words import base_file
from gpadvisor.views.roofline.advice import NEAR, Proposal, caps, follows, proposal_for, raises
from gpadvisor.views.roofline.model import (
    LANES,
    AccessSpace,
    Ceiling,
    CeilingKind,
    CountedAccess,
    RegionKind,
    RegionPoint,
    Roofline,
)
from gpadvisor.views.roofline.shown import ShownKernel

_WORST: Final = 3  # accesses that get a sentence
_WASTE: Final = 0.05
"""Of all transactions of a space: an access that wastes less needs no sentence."""
_LOST: Final = 0.1
"""Of the lanes."""
_HOT: Final = 0.1
_UNITS: Final = {"L1 data": "L1", "L1 tags": "L1", "L1 sectors": "L1"}
_SUBJECTS: Final = {
    "issue": "The issue slots are",
    "L1 tags": "The L1 tags are",
    "L1 sectors": "L1 sectors are",
}


def sentences(kernel: ShownKernel) -> tuple[str, ...]:
    """Most important first."""
    roofline, proposals = kernel.roofline, kernel.proposals
    return (
        *_nearest(roofline),
        *_walls(roofline, proposals),
        *_lanes(roofline),
        *_hottest(roofline),
        *_filling(roofline),
        *_suggested(roofline, proposals),
        *_capped(roofline, proposals),
    )


def allows(ceiling: Ceiling) -> str:
    """``1.2x``: the most that a ceiling allows, from what a unit is filled above its peak on."""
    return factor(max(1.0, ceiling.factor))


def code_place(location: SourceLocation | None, pc: int | None) -> str:
    """A line, else an address."""
    if location is not None:
        return f"{base_file(location.file)}:{location.line}"
    return "" if pc is None else f"0x{pc:04x}"


def _nearest(roofline: Roofline) -> Iterator[str]:
    ceiling = roofline.nearest
    if ceiling is None:
        yield "No ceiling is known: the report measures no unit."
        return
    subject = _SUBJECTS.get(ceiling.name, f"{capitalised(ceiling.name)} is")
    if ceiling.use < NEAR:
        yield (
            f"No ceiling is near: the nearest is {ceiling.name}, at {percent(ceiling.use)} of its peak. "
            "Waits take the time."
        )
        return
    load = {
        CeilingKind.ISSUE: "fewer instructions are executed",
        CeilingKind.PIPE: "fewer instructions go through it",
    }.get(ceiling.kind, "less goes through")
    yield f"{subject} at {percent(ceiling.use)} of the peak: {allows(ceiling)} at most, unless {load}."
    independent = (
        candidate for candidate in roofline.ceilings[1:] if not candidate.relieved_by & ceiling.relieved_by
    )
    second = next((candidate for candidate in independent if candidate.use >= NEAR), None)
    if second is not None:
        yield f"Behind it, {second.name} at {percent(second.use)} allows {allows(second)}."


def _walls(roofline: Roofline, proposals: Sequence[Proposal]) -> Iterator[str]:
    """The accesses that waste most, those of one kind together."""
    totals = {
        space: sum(access.transactions for access in roofline.accesses if access.space is space)
        for space in AccessSpace
    }
    alike: dict[tuple[object, ...], list[CountedAccess]] = {}
    for access in roofline.accesses:
        if access.wasted:
            key = (
                access.space,
                mnemonic(access.text),
                round(access.per_instruction, 1),
                round(access.fewest or 0, 1),
            )
            alike.setdefault(key, []).append(access)
    worst = sorted(
        alike.values(), key=lambda group: -sum(access.wasted for access in group) / totals[group[0].space]
    )
    for group in worst[:_WORST]:
        first = group[0]
        wasted = sum(access.wasted for access in group) / totals[first.space]
        if wasted < _WASTE:
            return
        places = dict.fromkeys(code_place(access.location, access.pc) for access in group)
        name, sentence = (
            mnemonic(first.text),
            "wavefronts" if first.space is AccessSpace.SHARED else "sectors",
        )
        who = f"{name} at {next(iter(places))} takes"
        if len(places) > 1:
            who = f"{len(places)} {name}, at {next(iter(places))} and so on, take"
        proposal = proposal_for(first, proposals)
        yield (
            f"{who} {first.per_instruction:.3g} {sentence} each time where "
            f"{first.fewest:.3g} would do: {percent(wasted)} of all {sentence} of {first.space.value} memory"
            + (f" ({proposal.code})." if proposal is not None else ".")
        )


def mnemonic(text: str) -> str:
    """The mnemonic, without the predicate in front of it."""
    return next(word for word in text.split() if not word.startswith("@"))


def _lanes(roofline: Roofline) -> Iterator[str]:
    active, predicated = roofline.lanes.active, roofline.lanes.predicated
    lanes = predicated or active
    if lanes is None or lanes.value > 1 - _LOST:
        return
    parts = []
    if active is not None:
        parts.append(f"{LANES * (1 - active.value):.1f} to divergence and partial warps")
    if active is not None and predicated is not None:
        parts.append(f"{LANES * (active.value - predicated.value):.1f} to predicates")
    yield f"{LANES * (1 - lanes.value):.1f} of {LANES} lanes are lost: {', '.join(parts)}."


def _hottest(roofline: Roofline) -> Iterator[str]:
    """The hottest innermost region that has a height of its own."""
    timed = [region for region in roofline.regions if region.height is not None and region.ceilings]
    if len(timed) < 2:
        return
    hot = max(timed, key=lambda point: (point.samples, point.depth))
    if (hot.share or 0) < _HOT or hot.ceilings[0].use < NEAR:
        return
    near = hot.ceilings[0]
    yield (
        f"{region_name(hot)} takes {percent(hot.share)} of the samples; the nearest ceiling there is "
        f"{near.name}, at {percent(near.use)} of the peak (modelled)."
    )


def _filling(roofline: Roofline) -> Iterator[str]:
    """The region that most of the load of the nearest ceiling is from."""
    parts = [region for region in roofline.regions if region.load is not None]
    nearest = roofline.nearest
    if nearest is None or nearest.use < NEAR or len(parts) < 2:
        return
    most = max(parts, key=lambda part: (part.load or 0.0, part.depth))
    if _HOT <= (most.load or 0.0) <= 1 - _HOT:
        yield f"{region_name(most)} makes {percent(most.load, 0)} of the load of {nearest.name}."


def region_name(region: RegionPoint) -> str:
    """``the loop at a.cu:12``."""
    where = code_place(region.location, region.pc)
    if region.loop is not None:
        return f"The loop at {where}"
    if region.kind is RegionKind.LOOP and region.pc is not None:
        return f"The code of {base_name(region.function)} that is in no loop"
    return where or region.function


def _suggested(roofline: Roofline, proposals: Sequence[Proposal]) -> Iterator[str]:
    proposal, nearest = follows(roofline, proposals), roofline.nearest
    if proposal is not None:
        promise = "" if proposal.speedup is None else f", {gain(proposal.speedup)}"
        yield f"Suggested: {proposal.name} ({proposal.code}){promise}{_lowered_ceilings(roofline, proposal)}."
    elif nearest is not None and nearest.use >= NEAR:
        yield f"No suggestion takes load off it ({nearest.name})."


def _lowered_ceilings(roofline: Roofline, proposal: Proposal) -> str:
    """Why a suggestion promises more than ceilings allow: less goes through all of those."""
    promised = 1.0 if proposal.speedup is None else proposal.speedup.expected
    units = dict.fromkeys(
        _UNITS.get(ceiling.name, ceiling.name)
        for ceiling in roofline.ceilings
        if max(1.0, ceiling.factor) < promised and raises(proposal, ceiling)
    )
    return f": less goes through {' and '.join(units)}" if len(units) > 1 else ""


def _capped(roofline: Roofline, proposals: Sequence[Proposal]) -> Iterator[str]:
    for cap in caps(roofline, proposals):
        proposal = cap.proposal
        yield (
            f"{proposal.name} ({proposal.code}) is held to {allows(cap.ceiling)}: {cap.ceiling.name} is at "
            f"{percent(cap.ceiling.use)}, which it leaves as it is."
        )
