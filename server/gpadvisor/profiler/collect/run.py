# SPDX-License-Identifier: Apache-2.0
"""What is asked of a profiling run, what comes of it, and the snapshot that it leaves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import LAUNCHES, Profile
from gpadvisor.pipeline.opening import load
from gpadvisor.pipeline.settings import Settings
from gpadvisor.pipeline.snapshots import disassemble_all
from gpadvisor.pipeline.time_coverage import coverage_sentence, unknown_coverage
from gpadvisor.profiler.collect.ranks import JobRank
from gpadvisor.profiler.doctor import Ladder
from gpadvisor.sandbox.application import Ending
from gpadvisor.store.snapshot import write_snapshot


class Collector(Enum):
    """Who takes the samples."""

    AUTO = "auto"  # CUPTI where it can be had and no single launches are asked for, else Nsight Compute
    NCU = "ncu"
    CUPTI = "cupti"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """One profiling run."""

    application: tuple[str, ...]
    output: Path
    collector: Collector = Collector.AUTO
    serialized: bool | None = None  # CUPTI: one kernel at a time, samples tied to launches; None: as needed
    kernel: str | None = None
    launch_skip: int = 0
    launch_count: int | None = None
    period: int | None = None  # one sample per SM every 2**period cycles
    times: str = "serial"  # CUPTI: kernel times, "serial", "concurrent" or "none"
    buffer_mib: int | None = None  # CUPTI: GPU memory for samples; None: its own choice
    samples_only: bool = False
    timeline: bool = False  # whether the application runs once more for a timeline of the run
    timeout_seconds: float | None = None
    keep: Path | None = None  # where the collector's own files are kept
    rank: JobRank | None = None  # of this process, in a job of several

    @property
    def picks_launches(self) -> bool:
        """Whether single launches are asked for, and not all of a kernel."""
        return self.launch_skip > 0 or self.launch_count is not None


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


def profiled(
    request: ProfileRequest,
    profile: Profile,
    collector: str,
    *,
    step: Ladder,
    reason: str,
    ending: Ending,
    notes: tuple[str, ...],
) -> Profiled:
    """The answer to a request whose snapshot is written."""
    profiles = [kernel for kernel in profile.kernels if kernel.picked]
    return Profiled(
        snapshot=request.output,
        collector=collector,
        step=step,
        reason=reason,
        kernels=len({kernel.launch.kernel for kernel in profiles}),
        launches=sum(int(kernel.metric(LAUNCHES) or 1) for kernel in profiles),
        samples=sum(kernel.total_samples for kernel in profiles),
        ending=ending,
        notes=tuple(dict.fromkeys(notes)),
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
    if not any(kernel.picked for kernel in profile.kernels):
        raise ProfileMismatchError(
            "no kernel launch was collected; give another --kernel or --launch-skip, or another application"
        )
    profile = _with_step(profile, step, reason)
    if request.rank is not None:
        profile = replace(profile, rank=request.rank.rank, host=profile.host or request.rank.node)
    unseen: tuple[Problem, ...] = ()
    if profile.collector != Collector.CUPTI.value:  # that one sees every launch, asked for or not
        unseen = unknown_coverage(request.kernel, request.launch_skip, request.launch_count)
    profile = replace(profile, problems=(*unseen, *profile.problems))
    notes = _write(profile, request.output, settings, progress)
    if request.keep is not None:
        if report.is_dir():
            shutil.copytree(report, request.keep)
        else:
            shutil.copyfile(report, request.keep)
    return profile, notes


def _with_step(profile: Profile, step: Ladder, reason: str) -> Profile:
    """The step of the ladder in the profile, where it is not the best one."""
    if step is Ladder.PC_SAMPLES:
        return profile
    evidence = step.value if step is Ladder.STATIC else f"{step.value} only"
    problem = Problem(ProblemCode.LOWER_EVIDENCE, f"{evidence}: {reason}")
    kernels = tuple(replace(kernel, problems=(problem, *kernel.problems)) for kernel in profile.kernels)
    return replace(profile, kernels=kernels)


def _write(profile: Profile, target: Path, settings: Settings, progress: Say) -> tuple[str, ...]:
    listings, problems = disassemble_all(profile, settings, progress)
    profile = replace(profile, disassemblies={**profile.disassemblies, **listings})
    progress(f"writing {target.name}")
    write_snapshot(profile, target)
    sentence = coverage_sentence(profile)
    notes = [problem.message for problem in (*profile.problems, *problems)]
    return tuple(dict.fromkeys([*notes, sentence] if sentence is not None else notes))
