# SPDX-License-Identifier: Apache-2.0
"""A further run without samples: its kernels, copies and calls of CUDA are the snapshot's timeline."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpadvisor.errors import GpadvisorError
from gpadvisor.profiler.collect.run import Profiled, ProfileRequest, Say
from gpadvisor.profiler.cupti import CollectOptions, SamplingMode, collect
from gpadvisor.sandbox.application import Ending
from gpadvisor.store.load import load_profile
from gpadvisor.store.timeline.recorded import read_recorded, recorded_notes
from gpadvisor.store.timeline.stored import write_with_timeline


def with_timeline(
    result: Profiled,
    request: ProfileRequest,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> Profiled:
    """The run with its timeline in the snapshot; where none can be recorded the snapshot stays as it is.

    Samples and the order that they ask of kernels change the clock, so that both do not come from one run.
    """
    say("The application runs once more, without samples, for its timeline")
    library = os.environ.get("GPADVISOR_CUPTI")
    options = CollectOptions(
        mode=SamplingMode.TIMELINE,
        timeout_seconds=request.timeout_seconds,
        cupti_library=Path(library) if library else None,
    )
    with tempfile.TemporaryDirectory(prefix="gpadvisor-") as folder:
        try:
            collection = collect(
                request.application,
                Path(folder) / "timeline",
                options,
                progress=lambda beat: progress(
                    f"recording, {beat.launches:,} launches, {beat.seconds:.0f} s"
                ),
                cancelled=cancelled,
            )
            progress("reading the timeline")
            run, notes = read_recorded(collection.path), recorded_notes(collection.path)
            progress(f"writing {result.snapshot.name}")
            write_with_timeline(load_profile(result.snapshot), run, result.snapshot)
        except (GpadvisorError, MemoryError) as error:
            return replace(result, notes=(*result.notes, f"no timeline was recorded: {error}"))
    if collection.ending is not Ending.EXITED:
        notes = (f"the timeline is of a run that was {collection.ending.value}", *notes)
    return replace(result, ending=collection.ending, notes=tuple(dict.fromkeys((*result.notes, *notes))))
