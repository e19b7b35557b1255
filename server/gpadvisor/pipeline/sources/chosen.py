# SPDX-License-Identifier: Apache-2.0
"""Which of several files a line table means: by the kernels that they define, then by their lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from gpadvisor.cubin import demangle
from gpadvisor.model.program import Function, FunctionKind, Program
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.facts import read_source_facts
from gpadvisor.pipeline.sources.kernels import may_have
from gpadvisor.report.names import base_name, parameters
from gpadvisor.source.facts import KernelSite
from gpadvisor.source.line_map import split_lines
from gpadvisor.source.plausible import can_be, shows

_MAX_PARSED: Final = 48
"""Files with the names of the kernels that are parsed."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel with lines in a file."""

    name: str
    types: tuple[str, ...] | None
    first: int
    last: int

    def may_be(self, site: KernelSite) -> bool:
        """Whether its lines are inside of a definition with its name and parameters."""
        return (
            site.name.rpartition("::")[2] == self.name
            and may_have(site.parameters, self.types)
            and site.line <= self.first
            and self.last <= site.last_line
        )


class SourceChooser:
    """What the machine code says of the files that its line table names."""

    def __init__(
        self, programs: Iterable[Program], beside: Callable[[str], Collection[str]] = lambda _: ()
    ) -> None:
        """Nothing is read before a file is in doubt.

        Args:
            programs: what was compiled.
            beside: by a file's name what is known to be another file, as it was there together with it.
        """
        self._programs, self._beside = tuple(programs), beside
        self.looked_at: set[str] = set()
        """Names of files that had a say."""

    @cached_property
    def _lines(self) -> Mapping[str, Mapping[int, set[str]]]:
        """By file its lines, with the opcodes that were made of them."""
        result: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for function in (function for program in self._programs for function in program.functions):
            for instruction, line in zip(function.instructions, function.lines, strict=True):
                if line is not None and line.location.line:
                    result[line.location.file][line.location.line].add(instruction.opcode)
        return result

    @cached_property
    def _kernels(self) -> Mapping[str, set[_Kernel]]:
        """By file the kernels that have lines of their own in it."""
        result: dict[str, set[_Kernel]] = defaultdict(set)
        for function in (function for program in self._programs for function in program.functions):
            by_file: dict[str, list[int]] = defaultdict(list)
            for line in function.lines:
                if line is not None and line.location.line and not line.inline:
                    by_file[line.location.file].append(line.location.line)
            if function.kind is FunctionKind.KERNEL:
                for file, lines in by_file.items():
                    result[file].add(_kernel(function, lines))
        return result

    def may_be(self, report_path: str, data: bytes | None) -> bool:
        """Whether each line of a file can be what was made of it."""
        lines = split_lines((data or b"").decode("utf-8", "replace"))
        return all(
            number <= len(lines) and all(can_be(lines[number - 1], opcode) for opcode in opcodes)
            for number, opcodes in self._lines[report_path].items()
        )

    def choose(self, report_path: str, root: Path) -> Path | None:
        """The file of a project that can be what was compiled; None where no text can, or several.

        Its lines can be, and those of the kernels are in definitions with their names and parameters. One of
        the same name comes first; of several such texts the one with most lines that look like their
        instructions.
        """
        if not self._kernels[report_path]:
            return None
        beside = self._beside(report_path)
        same: list[Path] = []
        paths: list[Path] = []
        for path in local_sources.walk(root):
            if path.suffix in local_sources.DEVICE_SUFFIXES and str(local_sources.real(path)) not in beside:
                (same if path.name == PurePosixPath(report_path).name else paths).append(path)
                self.looked_at.add(path.name)
        for files in (same, paths):
            matching_lines = self._possible(report_path, files)
            best = [path for path, count in matching_lines.items() if count == max(matching_lines.values())]
            if best:
                return best[0] if len(best) == 1 else None
        return None

    def _possible(self, report_path: str, files: Iterable[Path]) -> dict[Path, int]:
        """Of each text that can be it the first file, with the instructions that its lines look like."""
        words = [kernel.name.encode() for kernel in self._kernels[report_path]]
        paths: dict[str, Path] = {}
        for path in files:
            data = local_sources.read_source(path) or b""
            if (
                len(paths) < _MAX_PARSED
                and all(word in data for word in words)
                and self.may_be(report_path, data)
            ):
                paths.setdefault(data.decode("utf-8", "replace"), path)
        facts, _ = read_source_facts([(str(path), text) for text, path in paths.items()])
        return {
            path: self._shown(report_path, text)
            for text, path in paths.items()
            if (read := facts.get((str(path), text))) is not None
            and all(any(map(kernel.may_be, read.kernels)) for kernel in self._kernels[report_path])
        }

    def _shown(self, report_path: str, text: str) -> int:
        """Instructions that their line looks like; every line is there."""
        lines = split_lines(text)
        return sum(
            shows(lines[number - 1], opcode)
            for number, opcodes in self._lines[report_path].items()
            for opcode in opcodes
        )


def _kernel(function: Function, lines: list[int]) -> _Kernel:
    full = demangle(function.name)
    types = None if full == function.name else parameters(full)
    return _Kernel(base_name(function.demangled), types, min(lines), max(lines))
