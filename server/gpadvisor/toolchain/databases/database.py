# SPDX-License-Identifier: Apache-2.0
"""The command of a source in the nearest compile_commands.json: by CMake, Meson, Bear, Bazel's extractors."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file
from gpadvisor.toolchain.compile_options import CompileCommand, reduce_command
from gpadvisor.toolchain.databases.bazel import in_execution_root
from gpadvisor.toolchain.databases.clang import as_nvcc, is_clang, is_cuda, is_hip
from gpadvisor.toolchain.databases.folders import DATABASE, databases

_DATABASE_BYTES_MAX: Final = 1 << 27
# What Bazel's own tools write in place of the folder that a command ran in.
_NO_DIRECTORY: Final = frozenset(("__EXEC_ROOT__", "/proc/self/cwd"))


def find_command(
    source: Path,
    *,
    build: Path | None = None,
    trusted: bool = False,
    may_read: Callable[[Path], bool] = lambda _: True,
) -> tuple[CompileCommand | None, str | None]:
    """The command of a source in the nearest compile database, and what is wrong with that, if anything.

    Args:
        source: Its absolute path.
        build: The folder whose compile database is asked instead.
        trusted: Pass on options that name a host compiler or options for one.
        may_read: Whether something may be read.
    """
    if build is not None and not (build / DATABASE).is_file():
        return None, f"{build} has no {DATABASE}"
    for folder in filter(may_read, source.parents if build is None else (build,)):
        for database in databases(folder) if build is None else (build / DATABASE,):
            try:
                entries = _entries(database)
            except (OSError, ValueError, RecursionError) as error:
                return None, f"{database} cannot be read ({_reason(error)})"
            for directory, file, words in entries:
                if not _is_same(directory / file, source):
                    continue
                if is_hip(words):
                    return None, f"{database} has it compiled for AMD GPUs ({Path(words[0]).name})"
                return _command(words, directory, database, trusted=trusted), None
    return None, None


def _command(words: Sequence[str], directory: Path, database: Path, *, trusted: bool) -> CompileCommand:
    notes: list[str] = []
    options = list(words[1:])
    if is_clang(words):
        options = list(as_nvcc(options))
        notes.append(
            "the build compiles it by clang; compiled by NVIDIA's compiler, whose machine code differs"
        )
    command = reduce_command(options, directory, trusted=trusted, database=database)
    placed, missing = in_execution_root(command.options, directory)
    if missing:
        notes.append(
            f"{missing[0]} of Bazel's execution root was not found below {directory}; build the target once "
            "so that Bazel fetches it"
        )
    return replace(command, options=placed, notes=tuple(notes), is_cuda=is_cuda(words))


def _is_same(place: Path, source: Path) -> bool:
    try:
        return place.resolve() == source
    except (OSError, ValueError, RuntimeError):  # a name that no file has, a loop of links
        return False


def _reason(error: Exception) -> str:
    """A short reason without a traceback."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _entries(database: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Directory, file and words of each well-formed entry."""
    entries = json.loads(read_file(database, max_bytes=_DATABASE_BYTES_MAX))
    if not isinstance(entries, list):
        raise ValueError("it is not a list of entries")  # noqa: TRY004  # one kind of damage, one error
    return _well_formed(entries, database.parent)


def _well_formed(entries: Sequence[object], base: Path) -> Iterator[tuple[Path, str, list[str]]]:
    paths: dict[str, Path] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        directory = _directory(entry.get("directory"), base, paths)
        words = entry.get("arguments")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            yield directory, entry["file"], words
        elif isinstance(entry.get("command"), str):
            try:
                words = shlex.split(entry["command"])
            except ValueError:
                continue
            if words:
                yield directory, entry["file"], words


def _directory(where: object, base: Path, paths: dict[str, Path]) -> Path:
    """The folder that an entry's paths are relative to; Bazel's sandboxes, for one, are gone by now."""
    if not isinstance(where, str) or where in _NO_DIRECTORY:
        return base
    if where not in paths:
        place = base / where
        paths[where] = place if place.is_dir() else base
    return paths[where]
