# SPDX-License-Identifier: Apache-2.0
"""Lines of a profile that has none: from the source that is here, compiled for the profile's GPU.

Nothing is compiled where the request does not allow it. What was found for a profile is kept with the texts
that it was found in, so that an edit of the source does not take it away; a snapshot has it with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gpadvisor.analyzer.line_recovery import Recovery, recover_lines
from gpadvisor.cubin import demangle, read_cubin
from gpadvisor.errors import GpadvisorError
from gpadvisor.evidence.queries import kernel_function
from gpadvisor.model.figures import percent
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import EXTERNAL, KernelProfile, Profile, RecoveredLines, source_text
from gpadvisor.model.program import Program
from gpadvisor.pipeline.cache import Cache, installation_digest
from gpadvisor.pipeline.line_compiles import LineCompiler, NotCompiled
from gpadvisor.pipeline.programs import kernel_program, kernel_sections, open_cubin
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.kernels import Definition, KernelSources, told_by_name
from gpadvisor.pipeline.sources.named import named_sources, texts_now
from gpadvisor.report.names import base_name, parameters
from gpadvisor.report.words import shorten

_MAX_TRIED: Final = 6
"""Sources that define one kernel's name and are compiled for it."""
_FILE_NAME: Final = 30
"""Letters of a file's name in a sentence."""
_LEAST: Final = 0.5
"""Share of a kernel's samples that must get a line."""
_ALIKE: Final = 0.6
"""Of what two codes do; with less, the source is another version. Of one source, compilers two versions apart
keep 0.73 and more (docs/validation-analysis.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiled:
    """Code with lines, and the sources that they count in."""

    name: str  # of the file
    by: str  # how it came about, in words
    cubin: bytes
    program: Program
    texts: Mapping[str, str]  # by path in its line table
    installation: str | None  # whose compiler it was; None where the profile brings it

    def is_current(self) -> bool:
        """Whether compiling its sources again would give the same."""
        if self.installation is None:
            return True
        return self.installation == installation_digest() and all(
            local_sources.read_source(Path(path)) == text.encode() for path, text in self.texts.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The lines of one kernel from one source."""

    compiled: _Compiled
    recovery: Recovery
    same: bool
    likeness: float  # of what the two codes do
    share: float  # of the samples, else of the instructions, that have a line

    @property
    def worth(self) -> tuple[float, float]:
        """The larger, the better."""
        return self.likeness + self.same, self.share

    @property
    def is_enough(self) -> bool:
        """Whether the source is likely that of the profile."""
        return self.likeness >= _ALIKE and self.share >= _LEAST


@dataclass(slots=True)
class SourceLines:
    """What is known of the sources of kernels whose code has no line table."""

    definitions: dict[str, Definition] = field(default_factory=dict)  # by mangled name
    texts: dict[str, str] = field(default_factory=dict)  # that recovered lines count in, by path
    beside: str | None = None  # the folder where sources were looked for, beside the project's root
    alike: set[str] = field(default_factory=set)  # of these, those whose code was not the profile's
    unfinished: bool = False  # whether compiling ran out of time, so that another run may find more


class LineRecovery:
    """Finds lines for the kernels of one profile; each source is compiled once."""

    def __init__(
        self, path: Path, profile: Profile, request: Request, progress: Progress, cache: Cache
    ) -> None:
        self._path, self._profile, self._request = path, profile, request
        self._progress, self._cache = progress, cache
        self._here: KernelSources | None = None
        self._definitions: dict[str, tuple[Definition, ...]] = {}  # by mangled name
        self._compiled: dict[tuple[Path, str, str], _Compiled | NotCompiled] = {}
        self._compiler = LineCompiler(request, progress, cache)
        self._used: dict[tuple[str, str], _Compiled] = {}  # by binary and kernel
        self.known = SourceLines()

    def lines(self, program: Program, profile: KernelProfile) -> Program:
        """The program with lines, and a problem that says where they come from, or why there are none."""
        kernel = profile.launch.kernel
        function = kernel_function(program, kernel)
        if function is None or any(function.lines):
            return program
        name = base_name(profile.launch.demangled or demangle(kernel))
        self._look_for(name, profile)
        before = None
        if not self._request.lines_from:
            before = self._brought(name, profile) or self._kept(name, profile)
        best = None if before is None else _found(before, program, profile)
        failed: list[NotCompiled] = []
        if before is None or not before.is_current():
            for source in self._sources(kernel):
                compiled = self._open(source, program.arch, name)
                if isinstance(compiled, NotCompiled):
                    failed.append(compiled)
                    continue
                recovered = _found(compiled, program, profile)
                # Of sources that do as well, that which is here now counts.
                best = recovered if best is None or recovered.worth >= best.worth else best
                if best is recovered and best.same:
                    break
        self.known.unfinished = self._compiler.ran_out_of_time
        if best is not None and (best.is_enough or self._request.lines_from):
            self._keep(best.compiled, profile)
            self._used[profile.binary or "", kernel] = best.compiled
            return self._told(best, program, profile)
        if best is not None:
            code = f"{best.compiled.name} compiles to code of another kernel, or of another state of it"
            failed.append(NotCompiled(code))
        return self._without(program, kernel, failed)

    def with_lines(self, profile: Profile) -> Profile:
        """The profile with the lines that were found, for a snapshot of it."""
        binaries, sources, lines = dict(profile.binaries), dict(profile.sources), []
        for (binary, kernel), compiled in self._used.items():
            digest = hashlib.sha256(compiled.cubin).hexdigest()
            binaries[digest] = compiled.cubin
            for path, text in compiled.texts.items():
                sources.setdefault(path, source_text(path, text))
            recovered = RecoveredLines(
                binary=binary, kernel=kernel, source=compiled.name, compiler=compiled.by, compiled=digest
            )
            lines.append(recovered)
        return replace(profile, binaries=binaries, sources=sources, lines=tuple(lines))

    def _look_for(self, name: str, profile: KernelProfile) -> None:
        """Find where a kernel is defined."""
        self.known.beside = str(self._path.resolve().parent)
        kernel = profile.launch.kernel
        if kernel not in self._definitions:
            self._progress(f"looking for the source of {name[:40]}")
            self._here = self._here or KernelSources(self._request.root, self._path)
            types = None if (full := demangle(kernel)) == kernel else parameters(full)
            self._definitions[kernel] = self._here.definitions(name, profile.launch.demangled, types)
        definition = told_by_name(self._definitions[kernel], self._path)
        if definition is not None:
            self.known.definitions[kernel] = definition

    def _sources(self, kernel: str) -> list[Path]:
        """What may be compiled for a kernel, the likeliest first."""
        if self._request.lines_from or not self._request.may_compile:
            return list(self._request.lines_from)
        return list(
            dict.fromkeys(unit for definition in self._definitions[kernel] for unit in definition.units)
        )[:_MAX_TRIED]

    def _open(self, source: Path, arch: str, name: str) -> _Compiled | NotCompiled:
        """The code of a source or cubin, or why there is none."""
        key = source, arch, name
        if key not in self._compiled:
            result = self._compiler.cubin(source, arch)
            try:
                self._compiled[key] = (
                    result if isinstance(result, NotCompiled) else self._read(source, result, name)
                )
            except (GpadvisorError, OSError) as error:
                if self._request.lines_from:
                    raise
                self._compiled[key] = NotCompiled(f"{source.name} does not compile here", f": {error}")
        return self._compiled[key]

    def _read(self, source: Path, cubin_and_compiler: tuple[bytes, str], name: str) -> _Compiled:
        cubin, by = cubin_and_compiler
        program = self._program(cubin, name)
        return _Compiled(
            name=source.name,
            by=by,
            cubin=cubin,
            program=program,
            texts=texts_now(program),
            installation=installation_digest(),
        )

    def _brought(self, name: str, profile: KernelProfile) -> _Compiled | None:
        """What a snapshot was made with."""
        kernel_key = profile.binary, profile.launch.kernel
        for line in self._profile.lines:
            cubin = self._profile.binaries.get(line.compiled)
            if (line.binary, line.kernel) != kernel_key or cubin is None:
                continue
            program = self._program(cubin, name, self._profile.disassemblies.get(line.compiled))
            sources = ((path, self._profile.sources.get(path)) for path in named_sources(program))
            return _Compiled(
                name=line.source,
                by=line.compiler,
                cubin=cubin,
                program=program,
                texts={
                    path: source_text.text
                    for path, source_text in sources
                    if source_text and source_text.text is not None
                },
                installation=None,
            )
        return None

    def _program(self, data: bytes, name: str, listing: bytes | None = None) -> Program:
        """The kernels of a cubin that have a name."""
        sections = kernel_sections(read_cubin(data))
        names = {section for symbol, section in sections.items() if base_name(demangle(symbol)) == name}
        opened = open_cubin(
            data,
            names,
            stored=listing,
            timeout_seconds=self._request.settings.tool_timeout_seconds,
            cache=self._cache,
        )
        return kernel_program(opened, names)

    def _kept(self, name: str, profile: KernelProfile) -> _Compiled | None:
        """What was found for a kernel of this profile before."""
        stored = self._cache.get(self._key(profile))
        if stored is None or not self._request.may_compile:
            return None
        file, by, cubin, texts, installation = json.loads(stored)
        data = base64.b64decode(cubin)
        return _Compiled(
            name=file,
            by=by,
            cubin=data,
            program=self._program(data, name),
            texts=texts,
            installation=installation,
        )

    def _keep(self, compiled: _Compiled, profile: KernelProfile) -> None:
        if not self._request.lines_from and compiled.installation is not None:
            cubin = base64.b64encode(compiled.cubin).decode("ascii")
            entry = [compiled.name, compiled.by, cubin, dict(compiled.texts), compiled.installation]
            self._cache.put(self._key(profile), json.dumps(entry).encode())

    def _key(self, profile: KernelProfile) -> str:
        parts = {
            "binary": profile.binary,
            "kernel": profile.launch.kernel,
            "root": self._request.root.resolve(),
        }
        return self._cache.key("lines", parts)

    def _told(self, best: _Found, program: Program, profile: KernelProfile) -> Program:
        compiled = best.compiled
        self.known.texts.update(compiled.texts)
        if not best.same:
            self.known.alike.update(compiled.texts)
        how = "the same code as the report's"
        sampled = profile.samples.total.any()
        if not best.same:
            how = (
                "other code than the report's, of another compiler, options or state of the source; "
                f"{percent(best.share, 0)} of the {'samples' if sampled else 'instructions'} have a line"
            )
        problem = Problem(ProblemCode.LINES_RECOVERED, f"lines from {compiled.name}, {compiled.by}: {how}")
        remaining = tuple(
            other_problem
            for other_problem in program.problems
            if other_problem.code is not ProblemCode.NO_LINE_INFO
        )
        return replace(best.recovery.program, problems=(*remaining, problem))

    def _without(self, program: Program, kernel: str, failed: list[NotCompiled]) -> Program:
        """The program as it is, with where its kernel is defined and why that gave no lines."""
        defined = self.known.definitions.get(kernel)
        files = list(dict.fromkeys(definition.path for definition in self._definitions[kernel]))
        why, short, place = str(failed[0]) if failed else "", failed[0].short if failed else "", None
        if defined is not None:
            place = SourceLocation(str(defined.path), defined.line)
        elif len(files) > 1:
            file_names = ", ".join(shorten(file.name, _FILE_NAME) for file in files[:2])
            why = short = (
                f"{len(files)} files here define it ({file_names}{', ...' * (len(files) > 2)}); "
                "--lines-from FILE names the one"
            )
        else:
            return program
        sentence = "the cubin has no line table: compile with -lineinfo to see source lines"
        sentence += f"; {why}" if why else ""
        return replace(
            program,
            problems=tuple(
                Problem(problem.code, sentence, place, short)
                if problem.code is ProblemCode.NO_LINE_INFO
                else problem
                for problem in program.problems
            ),
        )


def _found(compiled: _Compiled, program: Program, profile: KernelProfile) -> _Found:
    recovery = recover_lines(program, compiled.program)
    kernel = profile.launch.kernel
    return _Found(
        compiled=compiled,
        recovery=recovery,
        same=kernel in recovery.same,
        likeness=1.0 if kernel in recovery.same else recovery.differing.get(kernel, 0.0),
        share=_share(recovery.program, profile) if kernel in recovery.names else 0.0,
    )


def _share(program: Program, profile: KernelProfile) -> float:
    """The samples with a line; of a kernel without samples, the instructions."""
    columns = profile.samples
    total = with_line = 0
    for section, pc, count in zip(
        columns.section.tolist(), columns.pc.tolist(), columns.total.tolist(), strict=True
    ):
        position = None if section == EXTERNAL else program.at(profile.sections[section], pc)
        total += count
        with_line += count if position is not None and position[0].lines[position[1]] is not None else 0
    if not total:
        lines = [line for function in program.functions for line in function.lines]
        total, with_line = len(lines), sum(line is not None for line in lines)
    return with_line / total if total else 0.0
