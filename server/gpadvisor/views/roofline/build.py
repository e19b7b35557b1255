# SPDX-License-Identifier: Apache-2.0
"""The instruction roofline of one kernel (Ding, Williams: An Instruction Roofline Model for GPUs, PMBS 2019).

y = W / t in warp instructions per second, x = W / transactions of a level;
y <= min(issue peak, peak(level) * x).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.figures import percent, percentage
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.views.columns import Columns, columns
from gpadvisor.views.roofline import counted
from gpadvisor.views.roofline.accesses import accesses
from gpadvisor.views.roofline.ceilings import ceilings
from gpadvisor.views.roofline.device import device_name, issue_peaks, level_peak
from gpadvisor.views.roofline.mix import mix
from gpadvisor.views.roofline.model import AccessSpace, Ceiling, Figure, Level, Point, RegionKind, Roofline
from gpadvisor.views.roofline.regions import Whole, regions

_ISSUE_USE: Final = (
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.sum.pct_of_peak_sustained_elapsed",
)
_SECTIONS: Final = "--section SourceCounters --section SpeedOfLight --section MemoryWorkloadAnalysis_Tables"
_APART: Final = 0.02
"""Counters of several passes differ by as much; above, it is said."""
_FULL: Final = 0.8
"""Of the waves that run: with fewer blocks warps are missing for a fifth of the time and more."""
_WAVES: Final = "launch__waves_per_multiprocessor"


class MeasuredRoofline(NamedTuple):
    """What a roofline is made of."""

    context: KernelContext
    kernel: str  # demangled
    profile: KernelProfile
    seconds: float
    executed: Figure
    rows: Columns | None
    points: tuple[Point, ...]
    issue_peak: Figure | None
    maximum: Figure | None  # of the issue peak, at the maximum clock
    ceilings: tuple[Ceiling, ...]  # the nearest first


def measured_roofline(context: KernelContext, kernel: str) -> MeasuredRoofline:
    """The points of a kernel and the ceilings above it, which its regions share.

    Args:
        context: the kernel with its profile.
        kernel: its demangled name.

    Raises:
        ProfileMismatchError: the profile has no counts or no time of this kernel; says how to get them.
    """
    profile = context.profile
    if profile is None:
        raise ProfileMismatchError(f"{kernel} has no profile: a roofline needs counts and the time of a run")
    seconds, executed = _seconds(profile, kernel), counted.instructions(profile)
    if executed is None:
        raise ProfileMismatchError(
            f"the report counts no executed instructions of {kernel}; collect it with ncu {_SECTIONS}"
        )
    rows = columns(context.program, profile)
    points = _points(profile, rows, executed, seconds)
    issue_peak, maximum = issue_peaks(profile, context.machine)
    above = ceilings(context.program, profile, executed.value / seconds, issue_peak, points)
    return MeasuredRoofline(
        context, kernel, profile, seconds, executed, rows, points, issue_peak, maximum, above
    )


def roofline(measured: MeasuredRoofline, kind: RegionKind) -> Roofline:
    """The roofline of a kernel and of its regions, which are what it is divided into."""
    context, kernel, profile, seconds, executed, rows, points, issue_peak, maximum, above = measured
    result = () if rows is None else accesses(rows)
    sectors, requests = counted.global_sectors(profile), counted.requests(profile)
    counts = profile.counts
    reported = next((use / 100 for name in _ISSUE_USE if (use := profile.metric(name))), None)
    of_kernel = Whole(
        seconds=seconds,
        samples=profile.total_samples,
        instructions=0.0 if counts is None else float(counts.warps.sum()),
        issue_peak=issue_peak,
        points=points,
        ceilings=above,
        truncated=profile.sampling.truncated,
    )
    shared = [access for access in result if access.space is AccessSpace.SHARED]
    wavefronts = sum(access.transactions for access in shared)
    return Roofline(
        kernel=kernel,
        device=device_name(profile.device),
        evidence=profile.evidence,
        seconds=seconds,
        instructions=executed,
        issue_peak=issue_peak,
        issue_peak_maximum=maximum,
        reported_use=reported,
        lanes=counted.lanes(profile, rows),
        points=points,
        global_intensity=requests / sectors if requests and sectors else None,
        shared_intensity=sum(access.instructions for access in shared) / wavefronts if wavefronts else None,
        ceilings=above,
        accesses=result,
        mix=mix(profile, rows),
        regions=() if rows is None else regions(profile, rows, kind, of_kernel),
        notes=(
            *_notes(context, profile, rows, executed),
            *_check(executed.value / seconds, issue_peak, reported),
        ),
    )


def _seconds(profile: KernelProfile, kernel: str) -> float:
    duration = profile.launch.duration_ns
    if duration is None or profile.launch.failed:
        raise ProfileMismatchError(
            f"the profile has no duration of {kernel}; collect it with ncu --section SpeedOfLight"
        )
    if not duration > 0:
        raise ProfileMismatchError(f"the profile says that {kernel} took no time; collect it again")
    return duration / 1e9


def _check(height: float, peak: Figure | None, reported: float | None) -> tuple[str, ...]:
    """W / t / peak has to be what the report says itself."""
    if peak is None or reported is None or abs(height / peak.value / reported - 1) <= _APART:
        return ()
    ours = 100 * height / peak.value
    text = f"the report has {percent(reported)} of the issue peak, and its parts make {percentage(ours, 1)}"
    return (f"{text}: one of time, clock and instructions is of another pass",)


def _points(
    profile: KernelProfile, rows: Columns | None, executed: Figure, seconds: float
) -> tuple[Point, ...]:
    """One for each level that moved something."""
    points = []
    for level in Level:
        moved = counted.transactions(profile, level, rows, seconds)
        if moved is None or not moved.value:
            continue
        peak, rate = level_peak(profile, level), moved.value / seconds
        points.append(
            Point(
                level=level,
                transactions=moved,
                intensity=executed.value / moved.value,
                rate=rate,
                peak=peak,
                use=None if peak is None else rate / peak.value,
            )
        )
    return tuple(points)


def _notes(
    context: KernelContext, profile: KernelProfile, rows: Columns | None, executed: Figure
) -> tuple[str, ...]:
    """What to know before believing the picture."""
    result = []
    if profile.evidence is Evidence.MODELLED:
        result.append("modelled: counts and time are of a simulated run")
    if context.program.debug_build:
        result.append(
            "a debug build (-G): the compiler has optimized nothing, and most instructions would go"
        )
    if rows is None:
        result.append(
            "no counts by instruction: no walls, loops and lines; collect them with --section SourceCounters"
        )
    elif not rows.samples.any():
        result.append(
            "no samples: loops and lines have no height; collect them with --section SourceCounters"
        )
    if rows is not None and rows.sectors is None and rows.wavefronts is None:
        result.append("no transactions by instruction; collect them with --section SourceCounters")
    counted_far = profile.metric("lts__t_sectors_srcunit_tex.sum") is not None
    if profile.evidence is not Evidence.MODELLED and not (counted_far and level_peak(profile, Level.DRAM)):
        result.append("L2 or DRAM are not counted; collect them with --section MemoryWorkloadAnalysis_Tables")
    by_instruction = 0.0 if profile.counts is None else float(profile.counts.warps.sum())
    if by_instruction and abs(by_instruction / executed.value - 1) > _APART:
        result.append(
            f"counts by instruction add up to {percent(by_instruction / executed.value)} of the counter: "
            "the passes of the tool were not alike"
        )
    waves = profile.metric(_WAVES)
    if waves is not None and 0 < waves < _FULL * math.ceil(waves):
        result.append(
            f"the blocks make {waves:.2g} waves: part of the time SMs have few blocks or none, "
            "and every ceiling counts that as unused"
        )
    return tuple(result)
