# SPDX-License-Identifier: Apache-2.0
"""The def-to-use pairs that a suggestion rests on, heaviest first (GPA section V-C)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.advice.code_refs import code_ref, code_ref_at, own_line
from gpadvisor.advice.scopes import executed_by_place
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.latency_hiding import hiding_equation
from gpadvisor.estimators.matched import matched_rows
from gpadvisor.estimators.stall_elimination import elimination_equation
from gpadvisor.evidence.queries import Mask, RowIndices, causes
from gpadvisor.model.advice import Category, Hotspot, Match, StaticSite
from gpadvisor.model.blame import CLASSES, NO_INDEX, Blame, DependencyClass
from gpadvisor.model.ids import FunctionId, SourceLocation
from gpadvisor.model.program import FunctionKind, LineEntry

SHOWN: Final = 5
"""As many as the original lists for one suggestion."""
SHOWN_STATIC: Final = 20


def hotspots(
    context: KernelContext, match: Match, category: Category, limit: int = SHOWN
) -> tuple[Hotspot, ...]:
    """The heaviest pairs of a match; latency hiding is ranked by latency samples, all else by samples."""
    blame = context.blame
    if blame is None:
        return static_hotspots(context, match)
    rows = matched_rows(match)
    by_latency = category is Category.LATENCY_HIDING
    weight = blame.rows.latency[rows] if by_latency else blame.rows.samples[rows]
    heavy = rows[weight > 0]
    ranked = heavy[np.lexsort((heavy, -weight[weight > 0]))]
    top = _of_each_line(context, blame, ranked, limit)
    if top and not any(_has_line(context, blame, row) for row in top):
        # Samples may gather in a routine of the compiler's: a reader wants the line that calls it.
        top[-1:] = [next((row for row in ranked[limit:] if _has_line(context, blame, row)), top[-1])]
    spoken_of = ranked[_at_place(context, blame, match, ranked)][:1].tolist()
    top = [*spoken_of, *(row for row in top if row not in spoken_of)][:limit]
    active = _active_by_row(match) if by_latency else {}
    result = [_hotspot(context, blame, int(row), active.get(int(row))) for row in top]
    if match.place is not None and not spoken_of:
        result.insert(0, _static_hotspot(context, *match.place, _PLACE))
    elif len(ranked) and not _has_line(context, blame, int(ranked[0])):
        calls = _calls(context, int(blame.rows.function[ranked[0]]))
        lines = {call.use.location for call in calls if call.use is not None} - {None}
        elsewhere = [
            hotspot for hotspot in result if hotspot.use is None or hotspot.use.location not in lines
        ]
        result = [*calls, *elsewhere][:limit]
    if category is Category.NOTE:  # without an optimizer there is nothing that these stalls would go by
        return tuple(replace(hotspot, speedup=None) for hotspot in result)
    return tuple(result)


def _of_each_line(context: KernelContext, blame: Blame, ranked: RowIndices, limit: int) -> list[int]:
    """The heaviest row of each line before a second one of any: words and fixes go by their lines.

    A routine of the compiler's counts as one line, and stands behind the code that calls it.
    """
    functions = context.program.functions
    lines, first, more = set[tuple[int, SourceLocation | None]](), list[int](), list[int]()
    called = set[int]()
    for row in ranked.tolist():
        number, index = int(blame.rows.function[row]), int(blame.rows.use_index[row])
        function = functions[number] if number < len(functions) else None
        entry = None if function is None else own_line(function, index)
        is_routine = function is not None and function.kind is FunctionKind.MATH_HELPER
        line = number, None if entry is None else entry.location
        (more if line in lines else first).append(row)
        if entry is not None or is_routine:
            lines.add(line)
        if is_routine:
            called.add(row)
        if len(first) == limit:
            more = []
            break
    shown = {*first, *more[: limit - len(first)]}
    return sorted((row for row in ranked.tolist() if row in shown), key=called.__contains__)


def _at_place(context: KernelContext, blame: Blame, match: Match, rows: RowIndices) -> Mask:
    """Rows whose cause the words speak of; those of its line where it has no sample itself."""
    if match.place is None:
        return np.zeros(len(rows), dtype=bool)
    function_id, index = match.place
    function = context.program.functions[function_id]
    of_function = blame.rows.function[rows] == function_id
    indices = causes(blame)[rows]
    exact: Mask = of_function & (indices == index)
    line = own_line(function, index)
    if line is None or exact.any():
        return exact
    lines = (own_line(function, int(index)) for index in indices)
    same = [entry is not None and entry.location == line.location for entry in lines]
    inside: Mask = of_function & np.array(same, dtype=np.bool_)
    return inside


def _has_line(context: KernelContext, blame: Blame, row: int) -> bool:
    number, index = int(blame.rows.function[row]), int(blame.rows.use_index[row])
    functions = context.program.functions
    return number < len(functions) and own_line(functions[number], index) is not None


def _active_by_row(match: Match) -> Mapping[int, int]:
    return {int(row): region.active_samples for region in match.regions for row in region.rows}


def _hotspot(context: KernelContext, blame: Blame, row: int, active: int | None) -> Hotspot:
    rows, total = blame.rows, blame.total_samples
    samples, latency = int(rows.samples[row]), int(rows.latency[row])
    function, distance = int(rows.function[row]), int(rows.distance[row])
    alone = (
        elimination_equation(total, samples)  # Eq. 2
        if active is None
        else hiding_equation(total, active, latency)  # Eq. 5
    )
    return Hotspot(
        reason=blame.reasons[int(rows.reason[row])].name,
        dependency_class=CLASSES[int(rows.dependency_class[row])],
        samples=samples,
        latency=latency,
        importance=samples / total if total else 0.0,
        speedup=alone,
        distance_instructions=None if distance == NO_INDEX else distance,
        definition=code_ref_at(context.program, function, int(rows.def_index[row])),
        use=code_ref_at(context.program, function, int(rows.use_index[row])),
    )


def static_hotspots(
    context: KernelContext, match: Match, executed: Mapping[tuple[int, int], int] | None = None
) -> tuple[Hotspot, ...]:
    """Places in the code that show a pattern: the one that is spoken of, then the most executed ones."""
    counts = executed or {}

    def key(site: StaticSite) -> tuple[bool, int, int, int]:
        place = site.function, site.index
        return place != match.place, -counts.get(place, 0), *place

    return tuple(
        _static_hotspot(context, site.function, site.index, _site_reason(site, counts))
        for site in sorted(match.static_sites, key=key)[:SHOWN_STATIC]
    )


_CALL: Final = "calls the compiler's routine, where it waits"
_PLACE: Final = "what the change is about"


def _static_hotspot(context: KernelContext, function: FunctionId, index: int, reason: str) -> Hotspot:
    return Hotspot(
        reason=reason,
        dependency_class=DependencyClass.SELF,
        samples=0,
        latency=0,
        importance=0.0,
        speedup=None,
        distance_instructions=None,
        definition=None,
        use=code_ref(context.program.functions[function], index),
    )


def _calls(context: KernelContext, routine: int) -> list[Hotspot]:
    """The lines that call a routine of the compiler's, the most executed first."""
    counts = executed_by_place(context.program, context.profile)
    sites = [
        (function.id, call.index)
        for function in context.program.functions
        for call in function.calls
        if call.callee == routine and function.kind is not FunctionKind.MATH_HELPER
    ]
    first: dict[LineEntry | tuple[int, int], tuple[FunctionId, int]] = {}
    for number, index in sorted(sites, key=lambda site: -counts.get(site, 0)):
        first.setdefault(
            own_line(context.program.functions[number], index) or (number, index), (number, index)
        )
    return [_static_hotspot(context, *site, _CALL) for site in first.values()]


def _site_reason(site: StaticSite, counts: Mapping[tuple[int, int], int]) -> str:
    executed = counts.get((site.function, site.index))
    detail = site.detail or "static"
    return detail if executed is None else f"{detail}, executed by {executed} warps"
