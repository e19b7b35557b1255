# SPDX-License-Identifier: Apache-2.0
"""Latency hiding: latency samples filled with the work of their scope (GPA Eqs. 3 to 5, Theorem V.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.ranges import sampled_range, speedup
from gpadvisor.model.advice import Estimate, Match, Region, Scope
from gpadvisor.model.blame import Blame
from gpadvisor.model.program import Program

_SHOWN_SCOPES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeSamples:
    """One scope of Eq. 5."""

    active: int  # A summed over the scope and those nested in it
    latency: float  # M^L matched in the scope itself
    parent: int | None  # index of the next scope around it that matched too


def hiding_equation(total: int, active: float, latency: float) -> float:
    """GPA Eq. 4: S^h = T / (T - min(A, M^L)); at most 2 (Theorem V.1)."""
    return speedup(total, min(active, latency))


def hidden_samples(scopes: Sequence[ScopeSamples], active: int) -> float:
    """Latency samples that the work of their own scopes can fill, over the whole kernel.

    A scope fills no more than its active samples, counted with those nested in it (Eq. 5), so what a loop
    inside has used up is not there a second time for the loop around it.

    Differs from GPA: the released code sums min(A, M^L) over scopes and lets nested loops share work twice.
    """
    within = [scope.latency for scope in scopes]
    filled = 0.0
    for index in sorted(range(len(scopes)), key=lambda index: -_depth(scopes, index)):  # inner scopes first
        within[index] = min(float(scopes[index].active), within[index])
        parent = scopes[index].parent
        if parent is None:
            filled += within[index]
        else:
            within[parent] += within[index]
    return min(float(active), filled)


def _depth(scopes: Sequence[ScopeSamples], index: int) -> int:
    depth, parent = 0, scopes[index].parent
    while parent is not None:
        depth, parent = depth + 1, scopes[parent].parent
    return depth


def latency_hiding(
    context: KernelContext,
    match: Match,
    beside: Sequence[int] = (),
    *,
    gone: int = 0,
    delayed: int = 0,
    room: float = 1.0,
) -> Estimate:
    """The estimate of an optimizer that rearranges work to fill stalls; needs samples.

    Args:
        context: the kernel.
        match: what was found.
        beside: for each region the samples that its latency can pass beside, where more than A fills it.
        gone: samples of instructions that are not executed any more, beside what is matched.
        delayed: samples of other warps that wait until what is matched has its values.
        room: the share of these that goes at most.
    """
    if context.blame is None:
        raise ValueError("latency hiding needs samples")
    blame = context.blame
    total = blame.total_samples
    active = total - blame.latency_samples
    scopes = _scopes(context.program, blame, match.regions)
    latencies = [round(scope.latency) for scope in scopes]
    filled = possible = fillable(context.program, blame, match.regions)
    if beside:
        wider = [replace(scope, active=room) for scope, room in zip(scopes, beside, strict=True)]
        possible = round(hidden_samples(wider, total))

    def hidden(factor: float) -> float:
        # What stands in the way of a stall stands in the way of the work that would fill it, so a factor
        # scales what the equation hides, not M^L alone; a cure that costs work adds to all of M^L.
        if factor < 0:
            return factor * sum(latencies)
        return factor * (possible + gone) + min(factor, room) * delayed

    paper = speedup(total, filled)
    text = _text(total, active, match.regions, latencies, filled)
    return sampled_range(context, match, total, hidden).ordered(paper, text)


def fillable(program: Program, blame: Blame, regions: Sequence[Region]) -> int:
    """Latency samples that Eqs. 4 and 5 fill with the work of these scopes."""
    active = blame.total_samples - blame.latency_samples
    return round(hidden_samples(_scopes(program, blame, regions), active))


def _scopes(program: Program, blame: Blame, regions: Sequence[Region]) -> list[ScopeSamples]:
    return [
        ScopeSamples(
            active=region.active_samples, latency=int(blame.rows.latency[region.rows].sum()), parent=parent
        )
        for region, parent in zip(regions, scope_parents(program, regions), strict=True)
    ]


def scope_parents(program: Program, regions: Sequence[Region]) -> list[int | None]:
    """For each region the index of the smallest other one around it, in the same function.

    A called function is no part of its caller here: its work cannot move there.
    """
    places: dict[tuple[int, int | None], int] = {}
    for index, region in enumerate(regions):
        scope = region.scope
        if scope.function is None:
            continue
        position = places.get((scope.function, scope.loop))
        # Samples outside of every function stand under the kernel's name, with no work of their own.
        if position is None or region.active_samples > regions[position].active_samples:
            places[scope.function, scope.loop] = index
    parents: list[int | None] = []
    for region in regions:
        around = (places.get(place) for place in _places_around(program, region.scope))
        parents.append(next((parent for parent in around if parent is not None), None))
    return parents


def _places_around(program: Program, scope: Scope) -> Iterator[tuple[int, int | None]]:
    """Function and loop of the scopes around one, innermost first."""
    if scope.function is None or scope.loop is None:
        return
    loops = program.functions[scope.function].loops
    outer = loops[scope.loop].parent
    while outer is not None:
        yield scope.function, outer
        outer = loops[outer].parent
    yield scope.function, None


def _text(total: int, active: int, regions: Sequence[Region], latencies: Sequence[int], filled: int) -> str:
    value = speedup(total, filled)
    head = f"GPA Eq. 4: S = T / (T - min(A, M^L)) = {total} / ({total} - {filled}) = {value:.3f}"
    if len(regions) == 1:
        return f"{head} with A = {min(active, regions[0].active_samples)}, M^L = {latencies[0]}"
    pairs = zip(regions[:_SHOWN_SCOPES], latencies, strict=False)
    text = ", ".join(f"min({region.active_samples}, {latency})" for region, latency in pairs)
    more = f" and {len(regions) - _SHOWN_SCOPES} more" if len(regions) > _SHOWN_SCOPES else ""
    return f"{head} with A = {active} and by Eq. 5 per scope min(A, M^L): {text}{more}"
