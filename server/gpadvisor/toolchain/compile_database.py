# SPDX-License-Identifier: Apache-2.0
"""The command of a source in the nearest compile_commands.json, which CMake, Meson and Bear write."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.toolchain.compile_options import CompileCommand, reduce_command

DATABASE: Final = "compile_commands.json"
_DATABASE_BYTES_MAX: Final = 1 << 27
_BUILD_FOLDERS: Final = ("", "build", "out", "cmake-build-release", "cmake-build-debug")


def find_command(source: Path, *, trusted: bool = False) -> tuple[CompileCommand | None, str | None]:
    """The command of a source in the nearest compile database, and what is wrong with that, if anything."""
    for folder in source.parents:
        for build in _BUILD_FOLDERS:
            database = folder / build / DATABASE
            if not database.is_file():
                continue
            try:
                entries = _entries(database)
            except (OSError, ValueError, RecursionError) as error:
                return None, f"{database} cannot be read ({_reason(error)})"
            for directory, file, words in entries:
                if (directory / file).resolve() == source:
                    return reduce_command(words[1:], directory, trusted=trusted, database=database), None
    return None, None


def _reason(error: Exception) -> str:
    """A short reason without a traceback."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _entries(database: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Directory, file and words of each well-formed entry."""
    if database.stat().st_size > _DATABASE_BYTES_MAX:
        raise ValueError(f"it is larger than {_DATABASE_BYTES_MAX >> 20} MiB")
    entries = json.loads(database.read_bytes())
    if not isinstance(entries, list):
        raise ValueError("it is not a list of entries")  # noqa: TRY004  # one kind of damage, one error
    return _well_formed(entries, database.parent)


def _well_formed(entries: Sequence[object], base: Path) -> Iterator[tuple[Path, str, list[str]]]:
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            continue
        where = entry.get("directory")
        directory = base / where if isinstance(where, str) else base
        words = entry.get("arguments")
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            yield directory, entry["file"], words
        elif isinstance(entry.get("command"), str):
            try:
                yield directory, entry["file"], shlex.split(entry["command"])
            except ValueError:
                continue
