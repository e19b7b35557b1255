# SPDX-License-Identifier: Apache-2.0
"""Blocks whose threads all leave at the first test: a grid that is larger than what there is to do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape
from gpadvisor.estimators.parallel import parallel
from gpadvisor.estimators.ranges import speedup
from gpadvisor.estimators.reduced_loads import freed
from gpadvisor.estimators.stall_elimination import stall_elimination
from gpadvisor.evidence.lanes import Choice, choice_of, condition
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import causes, kernel_function, line_text, regions, samples
from gpadvisor.model.advice import Adjustment, Estimate, Match, ReducedLoad, Region, StaticSite
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Function


def blocks_without_work(context: KernelContext, profile: KernelProfile, current: LaunchShape) -> Match | None:
    """The blocks that are left where most warps were counted to leave by their place in the grid.

    Their samples up to the test are the gain, where they are notable. What else a block costs that does
    nothing, nobody counts: samples are of warps. In several dimensions the warps that stay may be spread over
    more blocks than they would fill.
    """
    function = kernel_function(context.program, context.kernel)
    executed = None if function is None else executed_warps(profile, function)
    sms = profile.sms
    if function is None or executed is None or current.waves(sms) <= 1 or not executed[0]:
        return None
    if any(size > 1 for size in (*profile.launch.grid[1:], *profile.launch.block[1:])):
        return None
    for index, instruction in enumerate(function.instructions[:-1]):
        if instruction.opcode != "EXIT" or instruction.guard is None or executed[index] < executed[0]:
            continue
        share = float(executed[index + 1] / executed[0])
        left = max(1, math.ceil(current.blocks * share))  # one too few would leave elements out
        if share > 1 - constants.MAJORITY or left >= current.blocks:
            continue
        test = condition(function, index, executed)
        if choice_of(function, test, context.program.form, profile.launch) is not Choice.BOUND:
            continue
        matched = _before(context, function, index, share)
        change = f"Launch {left:,} blocks instead of {current.blocks:,}"
        where = line_text(function, index)
        return Match(
            title=f"{percent(1 - share)} of the warps leave at {where}, before they do anything",
            cure=f"{change}: as many as have work.",
            advice=f"{change}: {percent(1 - share)} of the warps were counted to leave at {where} by their "
            "place in the grid.",
            regions=() if matched is None else matched.regions,
            adjustments=() if matched is None else matched.adjustments,
            reduced_loads=() if matched is None else matched.reduced_loads,
            static_sites=(StaticSite(function=function.id, index=index, detail="the test"),),
            leads=True,
        )
    return None


@dataclass(frozen=True, slots=True)
class _Before:
    """What warps did before they left."""

    regions: tuple[Region, ...]
    adjustments: tuple[Adjustment, ...]
    reduced_loads: tuple[ReducedLoad, ...]


def _before(context: KernelContext, function: Function, test: int, stay: float) -> _Before | None:
    """The part of those that leave in what warps do up to a test; None where they are hardly there."""
    blame, left = context.blame, 1 - stay
    if blame is None or not blame.total_samples:
        return None
    rows = np.flatnonzero((blame.rows.function == function.id) & (causes(blame) <= test))
    if speedup(blame.total_samples, left * samples(blame, rows)) < constants.UNSURE:
        return None
    gone = dict.fromkeys(((function.id, index) for index in range(test + 1)), left)
    reason = f"{percent(left)} of the warps that execute it leave then"
    return _Before(
        regions=regions(blame, context.program, context.kernel, rows),
        adjustments=(Adjustment(low=left, expected=left, high=left, reason=reason),),
        reduced_loads=freed(context, gone),
    )


def launch_or_samples(context: KernelContext, match: Match) -> Estimate:
    """The estimate of another launch by its target, or by the samples of the warps that it does without."""
    return stall_elimination(context, match) if match.parallel is None else parallel(context, match)
