# SPDX-License-Identifier: Apache-2.0
"""The sources that a line table names, as they are on this machine now."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpadvisor.analyzer.places import is_library
from gpadvisor.model.program import Program
from gpadvisor.pipeline.sources import local as local_sources

_MAX: Final = 64


def named_sources(program: Program) -> list[str]:
    """The paths in a program's line table, without those of libraries."""
    files = {
        place.file
        for function in program.functions
        for line in dict.fromkeys(function.lines)
        if line is not None
        for place in (line.location, *(frame.call_site for frame in line.inline))
    }
    return [file for file in sorted(files) if not is_library(file)][:_MAX]


def texts_now(program: Program) -> dict[str, str]:
    """What those files say, by path."""
    contents = {file: local_sources.read_source(Path(file)) for file in named_sources(program)}
    return {file: data.decode("utf-8", "replace") for file, data in contents.items() if data is not None}
