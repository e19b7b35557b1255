# SPDX-License-Identifier: Apache-2.0
"""Finds profiles in a folder, and the headers that a source includes, within bounds; nothing is run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from gpadvisor.files import open_file

MAX_ENTRIES: Final = 50_000
MAX_HEADERS: Final = 500
MAX_SOURCE_BYTES: Final = 32 << 20
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "site-packages"})
_DATABASES: Final = ("compile_commands.json", "build/compile_commands.json")
_SETTINGS: Final = ("gpadvisor.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile on disk as it was when it was seen."""

    path: str
    size: int
    modified_ns: int


def find_profiles(folder: Path, patterns: Sequence[str], limit: int) -> tuple[ProfileFile, ...]:
    """Profiles below a folder, the newest first; hidden folders and those of packages are left out."""
    files = [
        profile
        for path in _walk(folder)
        if is_profile(str(path), folder, patterns) and (profile := look_at(str(path))) is not None
    ]
    files.sort(key=lambda profile: (-profile.modified_ns, profile.path))
    return tuple(files[:limit])


def is_profile(path: str, folder: Path, patterns: Sequence[str]) -> bool:
    """Whether the name of a file fits a pattern; ``**/`` also stands for no folder at all."""
    try:
        relative = Path(path).relative_to(folder).as_posix()
    except ValueError:
        relative = Path(path).name
    return any(
        fnmatch(relative, pattern) or (pattern.startswith("**/") and fnmatch(relative, pattern[3:]))
        for pattern in patterns
    )


def look_at(path: str) -> ProfileFile | None:
    """Size and time of a regular file that is not empty."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    if not status.st_size or not Path(path).is_file():
        return None
    return ProfileFile(path=path, size=status.st_size, modified_ns=status.st_mtime_ns)


def _walk(folder: Path) -> Iterator[Path]:
    entries = 0
    for directory, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in _SKIPPED)
        for name in files[: MAX_ENTRIES - entries]:
            yield Path(directory) / name
        entries += 1 + len(files)  # folders cost as much as files
        if entries > MAX_ENTRIES:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Everything on disk that the machine code of a source depends on, as far as it can be seen."""

    digest: str
    files: frozenset[str]  # resolved paths of the source and of the headers found


def source_state(path: str, folder: Path, extra: str) -> SourceState | None:
    """Digest of a source, the headers it names in quotes, the settings and compile commands above it.

    Args:
        path: The source.
        folder: Where headers are looked for beside the including file.
        extra: What else decides the result, such as the editor's settings.
    """
    digest = hashlib.sha256(extra.encode())
    waiting, visited = [Path(path)], {os.path.realpath(path)}
    first = True
    while waiting and len(visited) <= MAX_HEADERS:
        source = waiting.pop()
        data = _read(source)
        if data is None:
            if first:
                return None
            continue
        first = False
        digest.update(hashlib.sha256(data).digest())
        for name in _quoted(data):
            for base in (source.parent, folder, folder / "include"):
                place = os.path.realpath(base / name)
                if place not in visited and Path(place).is_file():
                    visited.add(place)
                    waiting.append(Path(place))
                    break
    for above in Path(path).parents:
        for name in (*_DATABASES, *_SETTINGS):
            if (file := look_at(str(above / name))) is not None:
                digest.update(f"{file}".encode())
    return SourceState(digest=digest.hexdigest(), files=frozenset(visited))


def _read(path: Path) -> bytes | None:
    try:
        with open_file(path) as stream:
            return stream.read(MAX_SOURCE_BYTES)
    except OSError:
        return None


def _quoted(data: bytes) -> Iterator[str]:
    """Names in ``#include "name"``, wherever such a line stands: one too many costs nothing."""
    for line in data.split(b"\n"):
        head = line[:300].lstrip()
        if not head.startswith(b"#"):
            continue
        word, _, after = head[1:].lstrip().partition(b'"')
        if word.strip() == b"include":
            name, closed, _ = after.partition(b'"')
            if closed and name and b"\0" not in name:
                yield name.decode("utf-8", "replace")
