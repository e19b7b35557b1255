# SPDX-License-Identifier: Apache-2.0
"""Reports into snapshots, snapshots into files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpadvisor.blamer.old_reasons import refined
from gpadvisor.errors import (
    CubinError,
    ProfileFormatError,
    ProfileMismatchError,
    SassError,
    ToolError,
    UsageError,
)
from gpadvisor.files import cache_folder
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.model.program import Program
from gpadvisor.pipeline.analyse import used_sections
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.inputs import InputKind, input_bytes, input_kind
from gpadvisor.pipeline.line_recovery import LineRecovery
from gpadvisor.pipeline.opening import load, no_launch_in
from gpadvisor.pipeline.programs import kernel_program, open_cubin
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sass.listing import dump_listing
from gpadvisor.store.paths import has_timeline, is_database
from gpadvisor.store.snapshot import export_snapshot, write_snapshot
from gpadvisor.toolchain.disassembly import disassemble

_LINE_TABLE: Final = b".debug_line\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did."""

    kernels: int
    samples: int
    report_bytes: int
    snapshot_bytes: int
    problems: tuple[Problem, ...]


def import_profile(
    source: Path,
    target: Path,
    request: Request,
    *,
    redact: bool,
    progress: Progress,
    gpubins: Path | None = None,
) -> Imported:
    """Write a snapshot of a report, with the disassembly of its cubins, and lines for those without any.

    Args:
        source: the report, a collection, or a database of HPCToolkit.
        target: the snapshot.
        request: where sources are looked for, settings.
        redact: leave out what names people and machines.
        progress: told what is done.
        gpubins: folder of the GPU binaries of a database.

    Raises:
        UsageError: the binaries of a database are not named, or those of something else are.
        GpadvisorError: the report cannot be read, or a source that the request names does not compile.
        OSError: the target cannot be written.
    """
    if is_database(source) != (gpubins is not None):
        raise UsageError(
            f"{source} is a database of HPCToolkit: name the folder of its GPU binaries, or of its"
            " measurements, by --gpubins"
            if gpubins is None
            else f"--gpubins is for databases of HPCToolkit, and {source} is none; leave it out"
        )
    if gpubins is None and input_kind(source) is not InputKind.PROFILE:
        raise ProfileFormatError(
            f"{source} is no report: give an .ncu-rep file; 'gpadvisor advise' takes cubins and sources"
        )
    progress(f"reading {source.name}")
    profile = load(source, request.settings, gpubins)
    if not profile.kernels:
        raise ProfileMismatchError(no_launch_in(profile, source))
    profile, line_problems = _with_lines(source, profile, request, progress)
    listings, problems = disassemble_all(profile, request.settings, progress)
    profile = replace(profile, disassemblies={**profile.disassemblies, **listings})
    if gpubins is not None:
        profile = _with_todays_reasons(profile, request, progress)
    if has_timeline(source):
        line_problems.append(
            Problem(ProblemCode.COLLECTION_LIMITED, "the timeline in it is left out of the new snapshot")
        )
    progress(f"writing {target.name}")
    write_snapshot(profile, target, redact=redact)
    return Imported(
        kernels=len(profile.kernels),
        samples=sum(kernel.total_samples for kernel in profile.kernels),
        report_bytes=input_bytes(source),
        snapshot_bytes=target.stat().st_size,
        problems=(*profile.problems, *line_problems, *problems),
    )


def _with_lines(
    path: Path, profile: Profile, request: Request, progress: Progress
) -> tuple[Profile, list[Problem]]:
    """The profile with lines for kernels whose code has none, and what is to be said of them."""
    cache = Cache(cache_folder())
    recovery = LineRecovery(path, profile, request, progress, cache)
    reported: list[Problem] = []
    for kernel in _without_lines(profile):
        try:
            program = _program(profile, kernel, request, progress, cache)
        except (CubinError, SassError, ToolError):  # told where it is disassembled
            continue
        reported += [
            problem
            for problem in recovery.lines(program, kernel).problems
            if problem.code in {ProblemCode.LINES_RECOVERED, ProblemCode.NO_LINE_INFO}
        ]
    return recovery.with_lines(profile), list(dict.fromkeys(reported))


def _program(
    profile: Profile, kernel: KernelProfile, request: Request, progress: Progress, cache: Cache
) -> Program:
    """The machine code of a kernel of the profile.

    Raises:
        KeyError: the profile has none.
        CubinError, SassError, ToolError: it cannot be read.
    """
    digest = kernel.binary or ""
    code = open_cubin(
        profile.binaries[digest],
        None,
        stored=profile.disassemblies.get(digest),
        timeout_seconds=request.settings.tool_timeout_seconds,
        cache=cache,
        progress=progress,
    )
    return kernel_program(code, used_sections(kernel, code))


def _without_lines(profile: Profile) -> list[KernelProfile]:
    """The launch with the most samples of each kernel whose cubin has no line table."""
    profiles: dict[tuple[str, str], KernelProfile] = {}
    for kernel in profile.kernels:
        data = profile.binaries.get(kernel.binary or "")
        if kernel.binary is None or data is None or _LINE_TABLE in data:
            continue
        key = kernel.binary, kernel.launch.kernel
        if key not in profiles or kernel.total_samples > profiles[key].total_samples:
            profiles[key] = kernel
    return list(profiles.values())


def _with_todays_reasons(profile: Profile, request: Request, progress: Progress) -> Profile:
    """The profile with today's stall reasons where its machine code leaves one of them."""
    cache = Cache(cache_folder())
    kernels: list[KernelProfile] = []
    for kernel in profile.kernels:
        try:
            kernels.append(refined(_program(profile, kernel, request, progress, cache), kernel))
        except (KeyError, CubinError, SassError, ToolError):  # without machine code they stay
            kernels.append(kernel)
    return replace(profile, kernels=tuple(kernels))


def export_profile(source: Path, directory: Path) -> tuple[Path, ...]:
    """Unpack a snapshot; the files written."""
    return tuple(export_snapshot(source, directory))


def disassemble_all(
    profile: Profile, settings: Settings, progress: Progress
) -> tuple[dict[str, bytes], list[Problem]]:
    """The listing of each cubin that has none, by digest, and why some have none still."""
    listings: dict[str, bytes] = {}
    problems: list[Problem] = []
    for digest, cubin in profile.binaries.items():
        if digest in profile.disassemblies:
            continue
        progress(f"disassembling {digest[:12]}")
        try:
            result = disassemble(cubin, timeout_seconds=settings.tool_timeout_seconds)
        except (ToolError, CubinError, SassError) as error:
            message = f"cubin {digest[:12]} is stored without its disassembly: {error}"
            problems.append(Problem(ProblemCode.NO_DISASSEMBLY, message))
            continue
        listings[digest] = dump_listing(result.listing)
        problems.extend(result.problems)
    return listings, problems
