# SPDX-License-Identifier: Apache-2.0
"""One source on its way through a compiler: what is compiled, with what, until when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file
from gpadvisor.model.problem import Problem
from gpadvisor.sandbox.tools import DEFAULT_MEMORY_BYTES
from gpadvisor.toolchain.stand_ins import Overlay

SOURCE_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSettings:
    """What a user may set about the compile step."""

    nvcc: Path | None = None  # a compiler of the user's choice
    arch: str | None = None  # instead of the command's own
    build: Path | None = None  # the folder whose compile database is asked, instead of the nearest
    flags: tuple[str, ...] = ()  # for sources that no compile database names
    extra_flags: tuple[str, ...] = ()  # in addition to every command's
    timeout_seconds: float = 120.0
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    trusted: bool = False  # pass on options that name a host compiler or options for one
    within: tuple[Path, ...] = ()  # real folders; of the rest only what compilers bring is read; none: all

    def may_read(self, place: Path) -> bool:
        """Whether a file of the project may be read, its links followed."""
        return not self.within or any(map(Path(os.path.realpath(place)).is_relative_to, self.within))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A compiled source."""

    cubin: bytes
    arch: str
    command: tuple[str, ...]  # as a person would give it, or NVRTC's options
    compiler: str  # "nvcc 13.5.37", "NVRTC 13.5"
    by_nvrtc: bool  # device code alone
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """What the compilers have in common."""

    original: Path  # the file that was asked for
    source: Path  # where that is seen
    text: Path  # the file that holds the source's text, itself as a rule
    arch: str
    options: tuple[str, ...]
    directory: Path
    folder: Path  # for what they write
    scratch: Path  # that folder, or one that it is in and others of their files, too
    settings: CompileSettings
    deadline: float
    cancelled: Callable[[], bool] | None
    overlay: Overlay | None
    names: tuple[str, ...] = ()  # templates with arguments that NVRTC is to make code of

    def named(self, file: str) -> str:
        """The file of this machine that a compiler means."""
        place = self.directory / file
        return os.path.normpath(place) if self.overlay is None else self.overlay.named(str(place))

    def line_of(self, file: str, line: int) -> str | None:
        """The text of a line as it was compiled."""
        place = self.text if file == str(self.source) else Path(file)
        if place != self.text and not self.settings.may_read(place):
            return None
        shift = 0 if self.text == self.source or place != self.text else 1  # a stand-in begins with its name
        try:
            lines = read_file(place, max_bytes=SOURCE_BYTES_MAX).decode("utf-8", "replace").splitlines()
        except OSError:
            return None
        return lines[line - 1 + shift] if 0 < line <= len(lines) - shift else None

    @property
    def remaining(self) -> float:
        """Seconds left of the time limit."""
        return max(self.deadline - time.monotonic(), 0.1)
