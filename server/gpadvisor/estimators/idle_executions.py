# SPDX-License-Identifier: Apache-2.0
"""What it gives that threads without work do not execute what they execute now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.reduced_loads import executions, freed
from gpadvisor.estimators.unit_bounds import as_reduced_loads, unit_bound
from gpadvisor.estimators.utilisation import ADU_PIPE, CONSTANT_CACHE, L1_DATA, measured_loads
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.lanes import wavefronts
from gpadvisor.evidence.measured import Floats
from gpadvisor.evidence.queries import Mask, by_place, causes, regions, samples
from gpadvisor.model.advice import Adjustment, Match
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import FunctionId
from gpadvisor.model.instruction import MemorySpace, Pipe
from gpadvisor.model.program import Program

Gone = Mapping[tuple[FunctionId, int], float]
"""By instruction the share of its executions that a cure saves."""


def without(
    context: KernelContext,
    blame: Blame,
    gone: Sequence[Gone],
    *,
    title: str,
    cure: str,
    advice: str,
    what: str,
    only: Mask | None = None,
) -> Match:
    """The match of a cure that saves these at the low end, expected, and at the high end; of some rows."""
    measured = measured_loads(context)
    full = busiest_after(measured, ())
    rows = by_place(blame, causes(blame), list(gone[-1]))
    rows = rows if only is None else rows & only
    remaining = [_left(context, removed) for removed in gone]
    is_busy = full is not None and full.unit.percent >= constants.BUSY_PERCENT
    bound = unit_bound(measured, remaining[0], remaining[1], remaining[2], what) if is_busy else None
    return Match(
        title=title,
        cure=cure,
        advice=advice,
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(rows)),
        adjustments=() if bound is not None else (_adjustment(blame, gone),),
        measured_bound=bound,
        reduced_loads=as_reduced_loads(remaining[1], remaining[2]),
    )


def _left(context: KernelContext, gone: Gone) -> dict[str, float]:
    """What stays of each unit's load.

    Accesses to shared memory without a thread take their turn in the data stage, too.
    """
    remaining = {reduced.resource: reduced.remaining for reduced in freed(context, gone)}
    passes = None if context.profile is None else wavefronts(context.profile)
    executed = executions(context)
    if passes and executed:
        accesses = sum(
            saved * float(executed[function][index])
            for (function, index), saved in gone.items()
            if is_shared(context.program.functions[function].instructions[index])
        )
        remaining[L1_DATA] = 1 - min(1.0, accesses / passes)
    if executed:
        remaining |= _left_of_constants(context.program, executed, gone)
    return remaining


def _left_of_constants(
    program: Program, executed: Mapping[FunctionId, Floats], gone: Gone
) -> dict[str, float]:
    """What stays of the loads that take an address into constant memory, and of their pipe."""
    total, saved = Counter[str](), Counter[str]()
    for number, counts in executed.items():
        for index, instruction in enumerate(program.functions[number].instructions):
            if instruction.info.pipe is Pipe.ADU:
                units = (
                    (ADU_PIPE, CONSTANT_CACHE)
                    if instruction.info.space is MemorySpace.CONSTANT
                    else (ADU_PIPE,)
                )
                for unit in units:
                    total[unit] += counts[index]
                    saved[unit] += counts[index] * gone.get((number, index), 0.0)
    return {unit: 1 - saved[unit] / load for unit, load in total.items() if load}


def _adjustment(blame: Blame, gone: Sequence[Gone]) -> Adjustment:
    """The idle share of the matched samples."""
    indices = causes(blame)
    weights = [samples(blame, by_place(blame, indices, [place])) for place in gone[-1]]
    low, middle, high = (float(np.average([*shares.values()], weights=weights)) for shares in gone)
    return Adjustment(
        low=low,
        expected=middle,
        high=high,
        reason=f"{percent(high)} of the threads are idle where these samples are",
    )
