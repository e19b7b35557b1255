# SPDX-License-Identifier: Apache-2.0
"""Grids that leave SMs empty, or nearly so: what blocks gain that are spread, or whose work is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import LaunchShape, held_warps, is_as_short_as_a_launch, sizes
from gpadvisor.estimators.shared_passes import LEAST_PASSES
from gpadvisor.estimators.utilisation import measured_loads
from gpadvisor.evidence.combined_loops import has_passes_to_divide
from gpadvisor.evidence.queries import by_stall, counted, kernel_function, share
from gpadvisor.model.advice import Adjustment, Match, ParallelTarget
from gpadvisor.model.figures import percent
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.stalls import StallClass

_CROWDED: Final = frozenset({StallClass.MEMORY_THROTTLE, StallClass.NOT_SELECTED, StallClass.PIPE_THROTTLE})


def spread_target(
    context: KernelContext,
    launch_shape: LaunchShape,
    new: LaunchShape | None,
    sms: int,
    ratio: float,
    *,
    divided: bool = False,
) -> ParallelTarget:
    """The target of a split; without one, that of a division of the blocks' own work over all SMs.

    Where each block is divided, an SM holds as many warps as now at the low end, and else as it has room for.
    """
    warps_new = launch_shape.warps * launch_shape.blocks / sms if new is None else new.warps
    if divided:
        warps_new = launch_shape.warps * launch_shape.fits / launch_shape.resident
    factor, reason = _factor(context, warps_new)
    return ParallelTarget(
        **sizes(launch_shape, replace(launch_shape, busy_sms=sms) if new is None else new),
        warps_new=warps_new if divided else min(launch_shape.warps, warps_new),
        held_low=launch_shape.warps if divided else None,
        issue_ratio=ratio,
        factor=factor,
        factor_reason=reason,
        limiter="grid",
    )


def nearly_empty(
    context: KernelContext, profile: KernelProfile, current: LaunchShape, ratio: float
) -> Match | None:
    """Blocks that are all there at once and leave SMs nearly empty, where a simulated run says what waits."""
    sm, held, part = context.machine.sm, held_warps(context, profile), divided_part(context)
    most = sm.max_warps.value / sm.schedulers.value
    full = busiest_after(measured_loads(context), ())
    if held is None or held >= constants.FEW_WARPS * most or not part:
        return None
    if full is None or full.unit.percent >= constants.BUSY_PERCENT or is_as_short_as_a_launch(profile):
        return None
    cure = "Divide what a block does along another dimension (its loop, its tile) among more blocks"
    holds = (
        f"{counted(current.blocks, 'block')} are {held * sm.schedulers.value:.1f} warps on an SM that has "
        f"room for {sm.max_warps.value}, and no more blocks are there to come"
    )
    return Match(
        title=f"{counted(current.blocks, 'block')} keep an SM at {percent(held / most, 0)} of its warps",
        cure=f"{cure}.",
        advice=f"{cure}: {holds}, while no unit is busier than {percent(full.load, 0)}.",
        regions=(),
        adjustments=part,
        parallel=spread_target(context, current, None, profile.sms, ratio, divided=True),
    )


def crowded_share(context: KernelContext) -> float:
    """The share of the samples that waited for other warps of the SM."""
    return 0.0 if context.blame is None else share(context.blame, by_stall(context.blame, _CROWDED))


def _factor(context: KernelContext, warps_new: float) -> tuple[float, str]:
    """The factor of Eq. 10 for this optimizer, and why."""
    if context.blame is None or warps_new > 1:
        return 1.0, f"a scheduler keeps {warps_new:g} warps, which still get in each other's way"
    crowded = crowded_share(context)
    reason = (
        f"with at most one warp per scheduler the {percent(crowded)} of samples that are throttled, not "
        "selected or wait for a busy pipe go away"
    )
    return 1 / max(constants.LEAST_TIME, 1 - crowded), reason


def divided_part(context: KernelContext) -> tuple[Adjustment, ...]:
    """Of the time, what goes with the work of a block that is divided, where a simulated run says the rest.

    Only where a loop has passes that could be. Of measured runs there is no figure: one on 4 SMs was off by
    more than four times.
    """
    profile, function = context.profile, kernel_function(context.program, context.kernel)
    if context.evidence is not Evidence.MODELLED or profile is None or function is None:
        return ()
    if not has_passes_to_divide(function, profile, LEAST_PASSES):
        return ()
    return (
        Adjustment(
            low=constants.LEAST_PART,
            expected=constants.MOST_OF,
            high=1.0,
            reason="how a block's work is divided is not known: a part of the time falls so",
        ),
    )
