# SPDX-License-Identifier: Apache-2.0
"""Where the sources of this machine define a kernel that is known by its name alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.facts import read_source_facts
from gpadvisor.report.names import core_name

SUFFIXES: Final = (".cu", ".cuh", ".h", ".hh", ".hpp", ".inl", ".cpp", ".cc")
_COMPILED: Final = ".cu"
_MAX_PARSED: Final = 32
"""Sources with a kernel's name that are parsed."""
_MAX_BYTES: Final = 256 << 20
"""Of all sources that are read."""
_KERNEL: Final = b"__global__"
_ANONYMOUS: Final = re.compile(r"(?:\(anonymous namespace\)|<unnamed>)::")
_INCLUDED: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


_WORD: Final = re.compile(r"\w+")
_ARGUMENTS: Final = re.compile(r"<.*>")
_QUALIFIERS: Final = frozenset({"const", "volatile", "restrict", "__restrict__", "__restrict"})
_BUILT_IN: Final = frozenset(
    {"bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "void"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A kernel's definition in a source."""

    path: Path  # absolute
    line: int  # of its head
    units: tuple[Path, ...]  # what is compiled for it: the file itself, or what includes it


class KernelSources:
    """The CUDA sources of a project and of its profile's folder, read once."""

    def __init__(self, root: Path, profile: Path) -> None:
        """Read them.

        Args:
            root: of the project.
            profile: a source near it is likelier than one far away.
        """
        self._profile = profile.resolve()
        self._kernels: dict[Path, bytes] = {}  # sources with any kernel
        self._includes: dict[Path, frozenset[str]] = {}  # names of files by what is compiled
        bytes_left = _MAX_BYTES
        for path in _files(root, self._profile):
            data = local_sources.read_source(path) or b""
            bytes_left -= len(data)
            if bytes_left < 0:
                break
            if _KERNEL in data:
                self._kernels[path] = data
            if path.suffix == _COMPILED:
                names = _INCLUDED.findall(data)
                self._includes[path] = frozenset(Path(name.decode("utf-8", "replace")).name for name in names)

    def definitions(
        self, name: str, demangled: str, types: Sequence[str] | None = None
    ) -> tuple[Definition, ...]:
        """The definitions of a kernel, the likeliest first.

        Args:
            name: plain, without namespaces, template arguments and parameters.
            demangled: as the profile has it; a definition in its namespace comes first.
            types: of its parameters, where they are known; a definition with others is of another kernel.
        """
        word = re.compile(rb"\b" + re.escape(name.encode()) + rb"\b")
        near = sorted(self._kernels, key=lambda path: (*_apart(path, self._profile), path))
        paths = [path for path in near if word.search(self._kernels[path])][:_MAX_PARSED]
        texts = [(str(path), self._kernels[path].decode("utf-8", "replace")) for path in paths]
        facts, _ = read_source_facts(texts)
        scope = core_name(_ANONYMOUS.sub("", demangled)).partition("<")[0].split("::")[:-1]
        matches = [
            (site.name.split("::")[:-1] != scope, place, site.line)
            for place, text in enumerate(texts)
            if text in facts
            for site in facts[text].kernels
            if site.name.rpartition("::")[2] == name and may_have(site.parameters, types)
        ]
        return tuple(
            Definition(path=paths[place], line=line, units=self._units(paths[place]))
            for _, place, line in sorted(matches)
        )

    def _units(self, path: Path) -> tuple[Path, ...]:
        """What a compiler is given for a file: a header goes into what includes it."""
        if path.suffix == _COMPILED:
            return (path,)
        users = (unit for unit, names in self._includes.items() if path.name in names)
        return (*users, path) if path.suffix in local_sources.DEVICE_SUFFIXES else tuple(users)


def told_by_name(definitions: Sequence[Definition], profile: Path) -> Definition | None:
    """The first of a kernel's definitions; None where another file beside it is as likely."""
    profile = profile.resolve()
    beside = (
        definition for definition in definitions if definition.path.parent == definitions[0].path.parent
    )
    alike = {
        definition.path
        for definition in beside
        if _apart(definition.path, profile) == _apart(definitions[0].path, profile)
    }
    return definitions[0] if len(alike) == 1 else None


def may_have(written: Sequence[str] | None, compiled: Sequence[str] | None) -> bool:
    """Whether the parameters of a definition can be those of a kernel; names of types are not followed."""
    if written is None or compiled is None:
        return True
    return len(written) == len(compiled) and all(map(_may_be, written, compiled))


def _may_be(written: str, compiled: str) -> bool:
    base, compiled_base = _plain(written), _plain(compiled)
    if base is not None and compiled_base is not None and base != compiled_base:
        return False
    levels, compiled_levels = written.count("*"), _ARGUMENTS.sub("", compiled).count("*")
    return levels == compiled_levels if base is not None else levels <= compiled_levels


def _plain(name: str) -> tuple[str, ...] | None:
    """The words of a built-in type in a fixed order; None of another one."""
    words = [word for word in _WORD.findall(name) if word not in _QUALIFIERS]
    if not words or not _BUILT_IN.issuperset(words):
        return None
    implied = {"int", "signed"}
    return tuple(sorted(word for word in words if word not in implied)) or ("int",)


def _files(root: Path, profile: Path) -> Iterator[Path]:
    beside = (path for path in sorted(profile.parent.iterdir()) if path.is_file())
    for path in dict.fromkeys(local_sources.real(path) for path in (*local_sources.walk(root), *beside)):
        if path.suffix.lower() in SUFFIXES:
            yield path


def _apart(path: Path, profile: Path) -> tuple[int, int]:
    """Least for the likeliest: leading folders that it shares with a profile, then letters of its name."""
    folders = len(Path(os.path.commonpath((path.parent, profile.parent))).parts)
    return -folders, -len(path.stem) if path.stem in profile.stem else 0
