# SPDX-License-Identifier: Apache-2.0
"""Blocks whose threads all leave at the first test: a grid that is larger than what there is to do."""

from __future__ import annotations

import math

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape
from gpadvisor.evidence.lanes import Choice, choice_of, condition
from gpadvisor.evidence.measured import executed_warps
from gpadvisor.evidence.queries import kernel_function, line_text
from gpadvisor.model.advice import Match, StaticSite
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import KernelProfile


def blocks_without_work(context: KernelContext, profile: KernelProfile, current: LaunchShape) -> Match | None:
    """The blocks that are left where most warps were counted to leave by their place in the grid.

    What a block costs that does nothing, nobody counts: samples are of warps, and these are hardly there. In
    several dimensions the warps that stay may be spread over more blocks than they would fill.
    """
    function = kernel_function(context.program, context.kernel)
    executed = None if function is None else executed_warps(profile, function)
    sms = profile.device.sms or 1
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
        change = f"Launch {left:,} blocks instead of {current.blocks:,}"
        where = line_text(function, index)
        return Match(
            title=f"{percent(1 - share)} of the warps leave at {where}, before they do anything",
            cure=f"{change}: as many as have work.",
            advice=f"{change}: {percent(1 - share)} of the warps were counted to leave at {where} by their "
            "place in the grid.",
            regions=(),
            static_sites=(StaticSite(function=function.id, index=index, detail="the test"),),
            leads=True,
        )
    return None
