# SPDX-License-Identifier: Apache-2.0
"""From an application to a snapshot: choose a collector, collect, take the next lower step where refused."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gpadvisor import store
from gpadvisor.errors import ProfileMismatchError, UsageError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Profile
from gpadvisor.profiler.application import Ending
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.profiler.ncu.abilities import Abilities, find_ncu
from gpadvisor.profiler.ncu.collect import CounterPermissionError, NcuCollection, collect_by_ncu
from gpadvisor.profiler.ncu.command_line import expectation
from gpadvisor.profiler.ncu.options import NcuOptions
from gpadvisor.workflow.opening import load
from gpadvisor.workflow.settings import Settings
from gpadvisor.workflow.snapshots import disassemble_all

PERIOD_OF_INTERVAL_0: Final = 5
"""ncu counts its sampling interval from 2**5 cycles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """One profiling run."""

    application: tuple[str, ...]
    output: Path
    kernel: str | None = None
    launch_skip: int = 0
    launch_count: int | None = None
    period: int | None = None  # one sample per SM every 2**period cycles
    samples_only: bool = False
    timeout_seconds: float | None = None
    keep: Path | None = None  # where the collector's own files are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A finished run."""

    snapshot: Path
    collector: str  # "ncu 2024.1.1"
    step: Ladder
    reason: str  # why this step of the ladder
    kernels: int
    launches: int
    samples: int
    ending: Ending
    notes: tuple[str, ...] = field(default=())


Say = Callable[[str], None]
"""Takes a sentence that the user should read now; progress, which comes and goes, is a `Say` of its own."""


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
    return _by_ncu(request, settings, say=say, progress=progress, cancelled=cancelled)


def _by_ncu(
    request: ProfileRequest,
    settings: Settings,
    *,
    say: Say,
    progress: Say,
    cancelled: Callable[[], bool] | None,
) -> Profiled:
    ncu = find_ncu()
    options = replace(ncu_options(request), source_folders=(Path.cwd(),))
    with tempfile.TemporaryDirectory(prefix="gpadvisor-") as name:
        folder = Path(name)
        step, reason = Ladder.PC_SAMPLES, "ncu could read the counters"
        say(f"{ncu}: {expectation(options)}")
        try:
            found = _run(request, options, ncu, folder, progress, cancelled)
        except CounterPermissionError as error:
            step, reason = Ladder.COUNTS, str(error)
            options = replace(options, samples_only=False, counts_only=True, interval=None)
            say(f"{error}. Going on with {expectation(options)}")
            found = _run(request, options, ncu, folder, progress, cancelled)
        profile, written = snapshot_of(found.report, request, settings, step, reason, progress)
    return Profiled(
        snapshot=request.output,
        collector=str(ncu),
        step=step,
        reason=reason,
        kernels=len({kernel.launch.kernel for kernel in profile.kernels}),
        launches=len(profile.kernels),
        samples=sum(kernel.total_samples for kernel in profile.kernels),
        ending=found.ending,
        notes=(*found.notes, *written),
    )


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


def snapshot_of(
    report: Path, request: ProfileRequest, settings: Settings, step: Ladder, reason: str, progress: Say
) -> tuple[Profile, tuple[str, ...]]:
    """Write the snapshot of a fresh report; the profile and what is to be known about it.

    Raises:
        ProfileError: the report cannot be read or holds no launch.
    """
    progress("reading the report")
    profile = load(report, settings)
    if not profile.kernels:
        raise ProfileMismatchError(
            "the report holds no kernel launch; give another --kernel or --launch-skip"
        )
    profile = _with_step(profile, step, reason)
    notes = _write(profile, request.output, settings, progress)
    if request.keep is not None:
        shutil.copyfile(report, request.keep)
    return profile, notes


def _with_step(profile: Profile, step: Ladder, reason: str) -> Profile:
    """The step of the ladder in the profile, where it is not the best one."""
    if step is Ladder.PC_SAMPLES:
        return profile
    problem = Problem(ProblemCode.LOWER_EVIDENCE, f"{step.value} only: {reason}")
    kernels = tuple(replace(kernel, problems=(problem, *kernel.problems)) for kernel in profile.kernels)
    return replace(profile, kernels=kernels)


def _write(profile: Profile, target: Path, settings: Settings, progress: Say) -> tuple[str, ...]:
    listings, problems = disassemble_all(profile, settings, progress)
    profile = replace(profile, disassemblies={**profile.disassemblies, **listings})
    progress(f"writing {target.name}")
    store.write_snapshot(profile, target)
    return tuple(dict.fromkeys(problem.message for problem in (*profile.problems, *problems)))
