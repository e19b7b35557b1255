# SPDX-License-Identifier: Apache-2.0
"""Random states of cuRAND that skip ahead to a sequence of their own: longer work than the numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.unit_bounds import as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import L1_DATA, L1_REQUESTS, measured_loads
from gpadvisor.evidence.library_code import library_loops, makes_random_numbers
from gpadvisor.evidence.queries import (
    by_place,
    causes,
    kernel_functions,
    line_text,
    loop_indices,
    regions,
    share,
)
from gpadvisor.model.advice import Adjustment, Match, StaticSite
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.program import Function

_ENDS: Final = (constants.LEAST_PART, constants.MOST_OF, 1.0)
"""Of the instructions that skip ahead, those that go at the low end, expected, and at the high end."""
_TITLE: Final = "random states skip ahead to a sequence for each thread"
_OTHERWISE: Final = (
    "Call curand_init with another seed for each thread and sequence 0, if sequences that may overlap will "
    "do, or use curandStatePhilox4_32_10_t"
)
_CURE: Final = f"{_OTHERWISE}: skipping ahead to a sequence of its own takes most of the time."
_CURE_BY_CODE: Final = f"{_OTHERWISE}: skipping ahead to a sequence of its own is longer work than a number."


def skips_ahead(context: KernelContext) -> Match | None:
    """States whose start takes most of the samples, by the seed and a sequence for each thread."""
    blame, functions = context.blame, kernel_functions(context.program, context.kernel)
    places = [(function.id, index) for function in functions for index in _skipping(function)]
    if blame is None:
        alone = all(library_loops(function) == {loop.id for loop in function.loops} for function in functions)
        return _shown_by_code(context, places[0]) if places and alone else None
    part = share(blame, by_place(blame, causes(blame), places)) if places else 0.0
    if part < constants.MAJORITY:
        return None
    function, index = context.program.functions[places[0][0]], places[0][1]
    text = f"{percent(part)} of the samples are in curand_init at {line_text(function, index)}"
    rows = np.flatnonzero(by_place(blame, causes(blame), places))
    # No more than the share of the samples: what the rest takes is seen there.
    remaining = [_left(context, dict.fromkeys(places, min(end, part))) for end in _ENDS]
    return Match(
        title=_TITLE,
        cure=_CURE,
        advice=f"{text}. {_CURE}",
        regions=regions(blame, context.program, context.kernel, rows),
        adjustments=(Adjustment(low=_ENDS[0], expected=_ENDS[1], high=_ENDS[2], reason=_REASON),),
        measured_bound=unit_bound(measured_loads(context), remaining[0], remaining[1], remaining[2], text),
        reduced_loads=as_reduced_loads(remaining[1], remaining[2]),
    )


def _shown_by_code(context: KernelContext, place: tuple[FunctionId, int]) -> Match | None:
    """Without samples: a kernel that has no loop of its own."""
    function, index = context.program.functions[place[0]], place[1]
    where = line_text(function, index)
    return Match(
        title=_TITLE,
        cure=_CURE_BY_CODE,
        advice=f"The only loops of the kernel are those by which curand_init at {where} skips ahead. "
        f"{_CURE_BY_CODE}",
        regions=(),
        static_sites=(StaticSite(function=function.id, index=index, detail="skips ahead to a sequence"),),
    )


_REASON: Final = "sequence 0 skips nothing, and Philox adds the sequence to a counter"


def _left(context: KernelContext, gone: dict[tuple[FunctionId, int], float]) -> dict[str, float]:
    """What stays of each unit's load; the tables are read by requests of one pass each."""
    remaining = {reduced.resource: reduced.remaining for reduced in freed(context, gone)}
    return remaining | ({L1_DATA: remaining[L1_REQUESTS]} if L1_REQUESTS in remaining else {})


def _skipping(function: Function) -> list[int]:
    """Instructions of loops in cuRAND's header that stand at a caller's line.

    Its only loops are those that skip ahead: numbers are made without any. Those of some distributions have
    loops, in headers of their own.
    """
    inside = {index for loop in library_loops(function) for index in loop_indices(function, loop)}
    return [
        index
        for index in sorted(inside)
        if makes_random_numbers(function, index)
        and (line := function.lines[index]) is not None
        and line.location not in line.library
        and len({location.file for location in line.library}) == 1
    ]
