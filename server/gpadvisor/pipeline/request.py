# SPDX-License-Identifier: Apache-2.0
"""What the user asked for, as one value that the whole analysis depends on."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gpadvisor.pipeline.cache import file_digest
from gpadvisor.pipeline.inputs import input_digest
from gpadvisor.pipeline.launches import StatedLaunch
from gpadvisor.pipeline.settings import Settings
from gpadvisor.store.paths import trace_files

Progress: TypeAlias = Callable[[str], None]
"""Called with a few words at the start of each stage; may raise to cancel."""


class Request(NamedTuple):
    """One request for advice."""

    settings: Settings
    kernel: re.Pattern[str] | None = None
    launch: int | None = None
    merge: bool = False
    show_all: bool = False
    prefer_launch: bool = False  # ``launch`` chooses among those of its kernel, and hides no other kernel
    model: bool = False  # simulate kernels that have no profile and whose launch is stated
    model_needed: bool = True  # an error where no kernel can be; else there is what the code alone says
    stated: StatedLaunch = StatedLaunch()  # of the command line
    lines_from: tuple[Path, ...] = ()  # sources and cubins with the lines of a profile that has none
    may_compile: bool = True  # sources that are found, for such lines
    timeline: Path | None = None  # of a run, for what advice is worth there
    timeline_needed: bool = True  # an error where it is of another program; else advice is as without it
    root: Path = Path()  # where the sources of the project are looked for
    within: tuple[Path, ...] = ()  # real folders outside of which no source is read; none: everywhere

    def describe(self) -> dict[str, object]:
        """Everything that decides the answer, as JSON values, for a cache key."""
        settings = self.settings._asdict()
        settings["source_map"] = sorted(self.settings.source_map.items())
        settings["launches"] = repr(sorted(self.settings.launches.items()))
        return {
            "settings": settings,
            "kernel": None if self.kernel is None else self.kernel.pattern,
            "launch": self.launch,
            "merge": self.merge,
            "show_all": self.show_all,
            "prefer_launch": self.prefer_launch,
            "model": self.model,
            "model_needed": self.model_needed,
            "lines_from": [str(path.resolve()) for path in self.lines_from],
            "may_compile": self.may_compile,
            "timeline": None if self.timeline is None else [str(self.timeline), trace_digest(self.timeline)],
            "timeline_needed": self.timeline_needed,
            "stated": repr(self.stated),
            "root": str(self.root.resolve()),
            "within": [str(folder) for folder in self.within],
        }

    def may_read(self, source: Path) -> bool:
        """Whether a source may be read, its links followed."""
        real = Path(os.path.realpath(source))
        return not self.within or any(real.is_relative_to(folder) for folder in self.within)

    def wants(self, demangled: str, mangled: str) -> bool:
        """Whether a kernel was asked for."""
        return self.kernel is None or bool(self.kernel.search(demangled) or self.kernel.search(mangled))


def trace_digest(trace: Path) -> str:
    """Of a file, of a collection, or of the files of a database that are read for its trace."""
    files = trace_files(trace)
    return " ".join(map(file_digest, files)) if files else input_digest(trace)
