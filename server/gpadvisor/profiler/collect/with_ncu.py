# SPDX-License-Identifier: Apache-2.0
"""Collecting with Nsight Compute: PC samples, else executed counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

from gpadvisor.pipeline.settings import Settings
from gpadvisor.profiler.collect.keep import kept_until_written
from gpadvisor.profiler.collect.run import Profiled, ProfileRequest, Say, profiled, snapshot_of
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.profiler.ncu.abilities import Abilities, find_ncu
from gpadvisor.profiler.ncu.collect import CounterPermissionError, NcuCollection, collect_by_ncu
from gpadvisor.profiler.ncu.command_line import expectation
from gpadvisor.profiler.ncu.options import NcuOptions

_Found = TypeVar("_Found")
PERIOD_OF_INTERVAL_0: Final = 5
"""ncu counts its sampling interval from 2**5 cycles."""


def collect_with_ncu(
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
    counts_only: bool = False,
) -> Profiled:
    """One run, or two where the first is refused the counters.

    Raises:
        ToolError: there is no ncu, or nothing was collected.
    """
    ncu = find_ncu()
    options = replace(ncu_options(request), source_folders=(Path.cwd(),))
    if counts_only:
        options = _without_counters(options)
    with kept_until_written(request, say) as folder:
        step = climb(
            str(ncu), options, lambda tried: _run(request, tried, ncu, folder, progress, cancelled), say
        )
        collection = step.found
        profile, written = snapshot_of(collection.report, request, settings, step.step, step.reason, progress)
    return profiled(
        request,
        profile,
        str(ncu),
        step=step.step,
        reason=step.reason,
        ending=collection.ending,
        notes=(*collection.notes, *written),
    )


@dataclass(frozen=True, slots=True)
class CollectStep(Generic[_Found]):
    """Where on the ladder a run with Nsight Compute ended, and what it found there."""

    found: _Found
    step: Ladder
    reason: str


def climb(
    ncu: str, options: NcuOptions, run: Callable[[NcuOptions], _Found], say: Say
) -> CollectStep[_Found]:
    """One run, here or elsewhere; one more for executed counts where the counters are refused.

    Args:
        ncu: which copy, and where.
        options: what is asked for.
        run: runs the application with some options.
        say: told what each run costs.

    Raises:
        ToolError: nothing was collected.
    """
    say(f"{ncu}: {expectation(options)}")
    if options.counts_only:
        return CollectStep(
            run(options), Ladder.COUNTS, "the driver refuses performance counters to this user"
        )
    try:
        return CollectStep(run(options), Ladder.PC_SAMPLES, "the counters can be read")
    except CounterPermissionError as error:
        lower = _without_counters(options)
        say(f"{error}. Going on with {expectation(lower)}")
        return CollectStep(run(lower), Ladder.COUNTS, str(error))


def _without_counters(options: NcuOptions) -> NcuOptions:
    """The same launches, with executed counts in place of samples."""
    return replace(options, samples_only=False, counts_only=True, interval=None)


def ncu_options(request: ProfileRequest) -> NcuOptions:
    """The request in Nsight Compute's terms.

    Raises:
        UsageError: a value is out of range.
    """
    return NcuOptions(
        kernel=request.kernel,
        launch_skip=request.launch_skip,
        launch_count=request.launch_count,
        interval=None if request.period is None else request.period - PERIOD_OF_INTERVAL_0,
        samples_only=request.samples_only,
    )


def _run(
    request: ProfileRequest,
    options: NcuOptions,
    ncu: Abilities,
    folder: Path,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> NcuCollection:
    return collect_by_ncu(
        request.application,
        folder,
        options,
        ncu=ncu,
        timeout_seconds=request.timeout_seconds,
        cancelled=cancelled,
        progress=lambda beat: progress(
            f"{'stopping' if beat.stopping else 'profiling'} {(beat.kernel or 'the application')[:40]}, "
            f"launch {beat.launches}{'' if beat.passes is None else f', {beat.passes} passes each'}, "
            f"{beat.seconds:.0f} s"
        ),
    )
