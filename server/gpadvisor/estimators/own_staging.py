# SPDX-License-Identifier: Apache-2.0
"""Staging in shared memory that only its own thread reads back: what goes with it for a register."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.estimators.barrier_words import SHOWN, in_all_uses, site_text
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.common_loads import last_barrier
from gpadvisor.evidence.queries import RowIndices, by_place, causes, regions
from gpadvisor.model.advice import Match, StaticSite
from gpadvisor.model.blame import NO_INDEX, Blame

_TITLE: Final = "values staged in shared memory that only their own thread reads"


def staging_advice(context: KernelContext, barriers: tuple[StaticSite, ...]) -> str:
    """What to take out, and what to see to before."""
    places = list(dict.fromkeys(site_text(context, site) for site in barriers))
    several = "s" if len(places) > 1 else ""
    return (
        "Take the array in shared memory out, and keep its values in registers: behind the barrier"
        f"{several} at {', '.join(places[:SHOWN])} each thread reads only what it wrote itself, so that "
        f"{'they go' if several else 'it goes'}, too{in_all_uses(context, barriers[0])}, unless two arrays "
        "of the kernel overlap."
    )


def staging_match(
    context: KernelContext, blame: Blame, waits: RowIndices, barriers: tuple[StaticSite, ...]
) -> Match | None:
    """The waits at the barriers, with all stalls of the accesses; None where nobody sampled either."""
    places = {(site.function, site.index) for site in barriers}
    accesses = [
        (number, index)
        for number in {site.function for site in barriers}
        for index, instruction in enumerate(context.program.functions[number].instructions)
        if is_shared(instruction)
    ]
    gone = by_place(blame, causes(blame), [*places, *accesses])
    gone[[row for row in waits.tolist() if _barrier(context, blame, row) in places]] = True
    if not blame.rows.samples[gone].any():
        return None
    advice = staging_advice(context, barriers)
    return Match(
        title=_TITLE,
        advice=advice,
        cure=advice,
        place=(barriers[0].function, barriers[0].index),
        regions=regions(blame, context.program, context.kernel, np.flatnonzero(gone)),
        reduced_loads=freed(context, dict.fromkeys([*places, *accesses], 1.0)),
        static_sites=barriers,
    )


def _barrier(context: KernelContext, blame: Blame, row: int) -> tuple[int, int | None]:
    """The barrier that a row's warps wait at; they are sampled some instructions behind it."""
    number, index = int(blame.rows.function[row]), int(blame.rows.use_index[row])
    barrier = None if index == NO_INDEX else last_barrier(context.program.functions[number], index)
    return number, barrier
