# SPDX-License-Identifier: Apache-2.0
"""Opening what the user names: profiles in a child process, machine tables, settings of the compile step."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpadvisor.errors import MachineModelError, UsageError
from gpadvisor.files import read_file
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

if TYPE_CHECKING:
    from gpadvisor.model.profile import Profile
    from gpadvisor.toolchain.compile_job import CompileSettings

READ_SECONDS: Final = 300.0
BYTES_PER_SECOND: Final = 2e6
"""Beyond that time; a report of 2.1 GB took 300 s."""
MAX_TABLE_BYTES: Final = 1 << 20


def load(path: Path, settings: Settings, gpubins: Path | None = None) -> Profile:
    """A profile, read by a child process with limits of time and memory.

    Raises:
        ProfileError: the file is damaged, foreign or too large for the limits.
    """
    with being_read(path, settings, gpubins) as profile:
        return profile()


def read_seconds(path: Path) -> float:
    """How long reading a file may take: the longer, the larger it is."""
    try:
        return READ_SECONDS + path.stat().st_size / BYTES_PER_SECOND
    except OSError:
        return READ_SECONDS


def being_read(
    path: Path, settings: Settings, gpubins: Path | None = None
) -> AbstractContextManager[Callable[[], Profile]]:
    """The same for who has something to do meanwhile: what it gives waits for the profile."""
    from gpadvisor.store import isolation  # noqa: PLC0415 a warm answer reads no profile

    return isolation.being_read(
        path,
        timeout_seconds=read_seconds(path),
        memory_bytes=settings.memory_mib << 20,
        gpubins=gpubins,
    )


def read_machine(path: Path) -> bytes:
    """The bytes of a machine table.

    Raises:
        MachineModelError: the file cannot be read or is no table by its size.
    """
    try:
        return read_file(path, max_bytes=MAX_TABLE_BYTES)
    except OSError as error:
        raise MachineModelError(
            f"cannot read the machine table {path}: it {error.strerror}; give a TOML file"
            if error.errno in {errno.EFBIG, errno.EINVAL}
            else f"cannot read the machine table {path}: {error.strerror}"
        ) from error


def compile_settings(request: Request) -> CompileSettings:
    """The compile step's part of a request."""
    from gpadvisor.toolchain.compile_job import CompileSettings  # noqa: PLC0415 a profile is read without it

    settings = request.settings
    return CompileSettings(
        build=None if settings.build_folder is None else Path(settings.build_folder),
        flags=settings.flags,
        extra_flags=settings.extra_flags,
        timeout_seconds=settings.tool_timeout_seconds,
        within=request.within,
    )


def no_launch_in(profile: Profile, path: Path) -> str:
    """Why nothing can be said about a profile without launches, as far as it tells itself."""
    reason = "; ".join(problem.message for problem in profile.problems)
    return (
        f"{path}: {reason or 'the profile holds no kernel launch; profile an application that launches one'}"
    )


def command_line_flags(words: Sequence[str]) -> tuple[str, ...]:
    """Compiler flags of the command line, their paths those of the current folder.

    Raises:
        UsageError: one that may run code; it would be left out.
    """
    from gpadvisor.toolchain.compile_options import (  # noqa: PLC0415 a profile is read without it
        PATH_OPTIONS,
        reduce_command,
    )

    folder = Path.cwd()
    command = reduce_command(words, folder)
    if command.refused:
        raise UsageError(f"{command.refused[0]} is not passed on: it may run code; leave it out")
    flags = [f"-arch={arch}" for arch in command.architectures]
    for option in command.options:
        name, _, value = option.partition("=")
        flags.append(f"{name}={folder / value}" if name in PATH_OPTIONS else option)
    return tuple(flags)
