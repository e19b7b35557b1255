# SPDX-License-Identifier: Apache-2.0
"""From an application to a snapshot: choose a collector, collect, take the next lower step where refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

from gpadvisor.errors import ToolError, UsageError
from gpadvisor.profiler.cupti import find_cupti
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.profiler.ncu.abilities import find_ncu
from gpadvisor.workflow.collecting import Collector, Profiled, ProfileRequest, Say
from gpadvisor.workflow.collecting_cupti import collect_with_cupti
from gpadvisor.workflow.collecting_ncu import collect_with_ncu
from gpadvisor.workflow.settings import Settings


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
    if not request.output.resolve().parent.is_dir():
        raise UsageError(f"{request.output.parent} is no folder; give -o a path in one that exists")
    if _choose(request) is Collector.NCU:
        return collect_with_ncu(request, settings, say=say, progress=progress, cancelled=cancelled)
    result = collect_with_cupti(request, settings, say=say, progress=progress, cancelled=cancelled)
    if result.step is Ladder.PC_SAMPLES or request.collector is Collector.CUPTI:
        return result
    try:
        find_ncu()
    except ToolError:
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
    if request.kernel or request.launch_skip or request.launch_count or request.samples_only:
        return Collector.NCU
    try:
        find_cupti()
    except ToolError:
        return Collector.NCU
    compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
    return Collector.CUPTI if compiler else Collector.NCU
