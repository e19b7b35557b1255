# SPDX-License-Identifier: Apache-2.0
"""The translation unit that a file is compiled in: itself, else a source that includes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from gpadvisor.cubin import Lines
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.pipeline.opening import compile_settings
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources.includers import units_of
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.compile_job import Compiled
from gpadvisor.toolchain.compiler_messages import CompileError
from gpadvisor.toolchain.project_headers import project_folder

_SOURCES: Final = frozenset((".cu", ".cc", ".cpp", ".cxx", ".c"))


def compile_file(path: Path, request: Request, progress: Progress) -> tuple[Compiled, Path]:
    """Compile a file, and tell which source was compiled for it.

    A header is compiled in a source that includes it, those of a compile database first; so is a source that
    does not compile by itself and that others include.

    Raises:
        CompileError: neither it nor what includes it compiles.
        ToolError: a tool is missing, failed or took too long.
    """
    alone: CompileError | None = None
    if path.suffix in _SOURCES:
        progress(f"compiling {path.name}")
        try:
            return _compile(path, request), path
        except CompileError as error:
            alone = error
    place = path.resolve()
    for unit in units_of(place, project_folder(place, request.within), itself=False):
        progress(f"compiling {unit.name}, which includes {path.name}")
        try:
            compiled = _compile(unit, request)
        except CompileError as error:
            alone = alone or error
            continue
        sentence = f"{path.name} was compiled as part of {unit}, which includes it"
        note = Problem(ProblemCode.COMPILE_ASSUMPTION, sentence)
        return replace(compiled, problems=(note, *compiled.problems)), unit
    if alone is not None:
        raise alone
    progress(f"compiling {path.name}")
    return _compile(path, request), path


def _compile(path: Path, request: Request) -> Compiled:
    return compile_source(path, arch=request.settings.arch, settings=compile_settings(request))


def sections_from(path: Path, lines: Lines) -> set[str]:
    """The sections that have code of a file."""
    resolved, is_same = path.resolve(), dict[str, bool]()

    def is_it(file: str) -> bool:
        if file not in is_same:
            is_same[file] = Path(file).name == resolved.name and Path(file).resolve() == resolved
        return is_same[file]

    return {
        name
        for name, entries in lines.sections.items()
        if any(
            is_it(place.file)
            for entry in dict.fromkeys(entries)
            if entry is not None
            for place in (entry.location, *(frame.call_site for frame in entry.inline))
        )
    }
