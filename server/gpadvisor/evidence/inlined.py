# SPDX-License-Identifier: Apache-2.0
"""Samples by the inlined function that they are in."""

from __future__ import annotations

import numpy as np

from gpadvisor.evidence.queries import RowIndices, causes, regions, samples
from gpadvisor.model.advice import Region, Scope, ScopeKind
from gpadvisor.model.blame import NO_INDEX, Blame
from gpadvisor.model.program import Program


def by_inlined(blame: Blame, program: Program, kernel: str, rows: RowIndices) -> tuple[Region, ...]:
    """By the innermost inlined function where the line information has one, else by loop or function."""
    indices = causes(blame)
    inlined: dict[tuple[int, str], list[int]] = {}
    not_inlined = []
    for row in rows.tolist():
        function_id = int(blame.rows.function[row])
        name = None
        if function_id < len(program.functions) and indices[row] != NO_INDEX:
            entry = program.functions[function_id].lines[int(indices[row])]
            name = entry.inline[0].function if entry is not None and entry.inline else None
        if name is None:
            not_inlined.append(row)
        else:
            inlined.setdefault((function_id, name), []).append(row)
    inlined_regions = [_region(program, blame, key, members) for key, members in inlined.items()]
    if not_inlined:
        inlined_regions.extend(regions(blame, program, kernel, np.array(not_inlined, dtype=np.intp)))
    return tuple(sorted(inlined_regions, key=lambda region: -samples(blame, region.rows)))


def _region(program: Program, blame: Blame, key: tuple[int, str], members: list[int]) -> Region:
    function = program.functions[key[0]]
    entry = function.lines[int(causes(blame)[members[0]])]
    scope = Scope(
        kind=ScopeKind.INLINED,
        name=key[1],
        location=None if entry is None else entry.location,
        function=function.id,
    )
    return Region(scope=scope, rows=np.array(members, dtype=np.intp), active_samples=0)
