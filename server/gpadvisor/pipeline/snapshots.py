# SPDX-License-Identifier: Apache-2.0
"""Reports into snapshots, snapshots into files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from gpadvisor import store
from gpadvisor.errors import CubinError, ProfileFormatError, ProfileMismatchError, SassError, ToolError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Profile
from gpadvisor.pipeline.inputs import InputKind, input_bytes, input_kind
from gpadvisor.pipeline.opening import load, no_launch_in
from gpadvisor.pipeline.request import Progress
from gpadvisor.pipeline.settings import Settings
from gpadvisor.sass.listing import dump_listing
from gpadvisor.toolchain import disassemble


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did."""

    kernels: int
    samples: int
    report_bytes: int
    snapshot_bytes: int
    problems: tuple[Problem, ...]


def import_profile(
    source: Path, target: Path, settings: Settings, *, redact: bool, progress: Progress
) -> Imported:
    """Write a snapshot of a report, with the disassembly of its cubins.

    Raises:
        GpadvisorError: the report cannot be read.
        OSError: the target cannot be written.
    """
    if input_kind(source) is not InputKind.PROFILE:
        raise ProfileFormatError(
            f"{source} is no report: give an .ncu-rep file; 'gpadvisor advise' takes cubins and sources"
        )
    progress(f"reading {source.name}")
    profile = load(source, settings)
    if not profile.kernels:
        raise ProfileMismatchError(no_launch_in(profile, source))
    listings, problems = disassemble_all(profile, settings, progress)
    profile = replace(profile, disassemblies={**profile.disassemblies, **listings})
    progress(f"writing {target.name}")
    store.write_snapshot(profile, target, redact=redact)
    return Imported(
        kernels=len(profile.kernels),
        samples=sum(kernel.total_samples for kernel in profile.kernels),
        report_bytes=input_bytes(source),
        snapshot_bytes=target.stat().st_size,
        problems=(*profile.problems, *problems),
    )


def export_profile(source: Path, directory: Path) -> tuple[Path, ...]:
    """Unpack a snapshot; the files written."""
    return tuple(store.export_snapshot(source, directory))


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
