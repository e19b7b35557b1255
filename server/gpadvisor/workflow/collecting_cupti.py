# SPDX-License-Identifier: Apache-2.0
"""Collecting with CUPTI: the injection library rides in the application, whose kernels run as they would."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpadvisor.errors import UsageError
from gpadvisor.profiler.application import Ending
from gpadvisor.profiler.cupti import CollectOptions, SamplingMode, collect, find_cupti
from gpadvisor.profiler.cupti.options import Heartbeat
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.workflow.collecting import Profiled, ProfileRequest, Say, profiled, snapshot_of
from gpadvisor.workflow.settings import Settings


def collect_with_cupti(
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> Profiled:
    """One run of the application with the library in it.

    Raises:
        UsageError: an option is of another collector.
        ToolError: the library cannot be built, or nothing was collected.
    """
    _check(request)
    release = find_cupti().major
    mode = SamplingMode.SERIALIZED if request.serialized else SamplingMode.CONTINUOUS
    say(
        f"CUPTI of CUDA {release}: kernels run "
        + ("one at a time, samples belong to launches" if request.serialized else "as they would, once each")
    )
    own = os.environ.get("GPADVISOR_CUPTI")
    options = CollectOptions(
        mode=mode,
        period=request.period,
        timeout_seconds=request.timeout_seconds,
        cupti_library=Path(own) if own else None,
    )
    with tempfile.TemporaryDirectory(prefix="gpadvisor-") as folder:
        found = collect(
            request.application,
            Path(folder) / "collection",
            options,
            progress=lambda beat: progress(_words(beat)),
            cancelled=cancelled,
        )
        reason = "; ".join(found.notes) or "the collector was given no samples"
        step = Ladder.PC_SAMPLES if found.samples else Ladder.STATIC
        profile, written = snapshot_of(found.path, request, settings, step, reason, progress)
    ended = () if found.status == 0 else (f"the application ended with status {found.status}",)
    if found.ending is not Ending.EXITED:
        ended = (f"the run was {found.ending.value}; the snapshot holds what was collected until then",)
    return profiled(
        request,
        profile,
        f"CUPTI of CUDA {release}",
        step=step,
        reason=reason,
        ending=found.ending,
        notes=(*ended, *found.notes, *written),
    )


def _check(request: ProfileRequest) -> None:
    given = [
        name
        for name, value in (
            ("--kernel", request.kernel),
            ("--launch-skip", request.launch_skip or None),
            ("--launch-count", request.launch_count),
        )
        if value is not None
    ]
    if given:
        raise UsageError(
            f"CUPTI collects every launch of the application: {given[0]} is for --collector ncu; "
            "to look at some kernels only, give --kernel to gpadvisor advise"
        )


def _words(beat: Heartbeat) -> str:
    verb = "stopping" if beat.stopping else "profiling"
    return f"{verb}, {beat.launches:,} launches, {beat.samples:,} samples, {beat.seconds:.0f} s"
