# SPDX-License-Identifier: Apache-2.0
"""From an application to a snapshot: choose a collector, collect, take the next lower step where refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from gpadvisor.errors import ToolError, UsageError
from gpadvisor.pipeline.settings import Settings
from gpadvisor.profiler.collect.run import Collector, Profiled, ProfileRequest, Say
from gpadvisor.profiler.collect.with_cupti import collect_with_cupti
from gpadvisor.profiler.collect.with_ncu import collect_with_ncu
from gpadvisor.profiler.collect.with_timeline import with_timeline
from gpadvisor.profiler.cupti import find_cupti
from gpadvisor.profiler.cupti.build import find_compiler
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.profiler.ncu.abilities import find_ncu
from gpadvisor.sandbox.application import Ending


def profile_application(
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None = None,
) -> Profiled:
    """Run the application under a collector and write a snapshot.

    Raises:
        UsageError: an option is wrong.
        ToolError: nothing could be collected; the message says why and what to do.
    """
    if not request.application:
        raise UsageError("no application is given; write it behind --, as in gpadvisor profile -- ./app")
    if request.launch_count == 0:
        raise UsageError("--launch-count 0 profiles nothing; give at least 1")
    if request.collector is Collector.NCU and request.serialized is not None:
        raise UsageError("--mode is of CUPTI, and Nsight Compute runs one kernel at a time; leave one out")
    if not request.output.resolve().parent.is_dir():
        raise UsageError(f"{request.output.parent} is no folder; give -o a path in one that exists")
    if request.output.is_dir() or not os.access(request.output.resolve().parent, os.W_OK):
        raise UsageError(f"{request.output} cannot be written; give -o another path")
    if request.keep is not None and request.keep.exists():
        raise UsageError(f"{request.keep} exists already; give --keep-report another path")
    result = _sampled(request, settings, say, progress, cancelled)
    stopped = result.ending is not Ending.EXITED or (cancelled is not None and cancelled())
    if not request.timeline:
        return result
    if stopped:
        return replace(result, notes=(*result.notes, "no timeline was recorded, as the run was stopped"))
    return with_timeline(result, request, say=say, progress=progress, cancelled=cancelled)


def _sampled(
    request: ProfileRequest,
    settings: Settings,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> Profiled:
    """The run with samples, or with the evidence that can be had in their place."""
    if _choose(request) is Collector.NCU:
        return collect_with_ncu(request, settings, say=say, progress=progress, cancelled=cancelled)
    result = collect_with_cupti(request, settings, say=say, progress=progress, cancelled=cancelled)
    if result.step is Ladder.PC_SAMPLES or request.collector is Collector.CUPTI:
        return result
    if not _is_there(find_ncu) or (cancelled is not None and cancelled()):
        return result
    say(f"{result.reason}. The application runs once more, for executed counts, which need no permission")
    request = replace(request, collector=Collector.NCU)
    return collect_with_ncu(
        request, settings, say=say, progress=progress, cancelled=cancelled, counts_only=True
    )


def _choose(request: ProfileRequest) -> Collector:
    """CUPTI where it can be had, since it runs each kernel once; ncu where single launches are asked for."""
    if request.collector is not Collector.AUTO:
        return request.collector
    picks = request.kernel is not None or request.picks_launches or request.samples_only
    if picks and request.serialized is None and _is_there(find_ncu):
        return Collector.NCU
    return Collector.CUPTI if _is_there(find_cupti) and _is_there(find_compiler) else Collector.NCU


def _is_there(find: Callable[[], object]) -> bool:
    try:
        find()
    except ToolError:
        return False
    return True
