# SPDX-License-Identifier: Apache-2.0
"""Headers of a project: where one lies that no include folder has, and which a source reaches."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from gpadvisor.files import home, read_file

MAX_ENTRIES: Final = 50_000
"""Directory entries looked at; of a larger project a part is searched."""
MAX_HEADERS: Final = 1_000
MAX_BYTES: Final = 4 << 20
"""Larger files are no headers that a person wrote."""
_WITHOUT_REPOSITORY: Final = 3  # folders above the source that are taken for its project
_SUFFIXES: Final = frozenset((".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".cu", ""))
_SKIPPED: Final = frozenset(("node_modules", "__pycache__", "site-packages"))
_INCLUDE: Final = re.compile(
    r'^[ \t]*#[ \t]*include[ \t]*(?P<sign>["<])(?P<name>[^">\n]{1,400})[">]', re.MULTILINE
)


def project_folder(source: Path, within: Sequence[Path] = ()) -> Path:
    """The repository that a source is in, else a few folders above it that only its user may write to.

    It is never larger than that of the folders ``within`` which the source is in.
    """
    project = _project_folder(source)
    return next(
        (root for root in within if source.is_relative_to(root) and root.is_relative_to(project)), project
    )


def _project_folder(source: Path) -> Path:
    path = source.parent
    for above, folder in enumerate(source.parents):
        if (folder / ".git").exists():
            return folder
        if folder == home() or not _is_private(folder):
            break
        if above <= _WITHOUT_REPOSITORY:
            path = folder
    return path


def _is_private(folder: Path) -> bool:
    try:
        return not folder.stat().st_mode & stat.S_IWOTH and folder != folder.parent
    except OSError:
        return False


@dataclass(frozen=True)
class ProjectHeaders:
    """What headers a project has."""

    project: Path

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        result: dict[str, list[Path]] = {}
        entries = 0
        for folder, names, files in os.walk(self.project):
            names[:] = sorted(name for name in names if not name.startswith(".") and name not in _SKIPPED)
            entries += len(names) + len(files)
            for name in files:
                if os.path.splitext(name)[1] in _SUFFIXES:  # noqa: PTH122  # a Path for each file is slow
                    result.setdefault(name, []).append(Path(folder))
            if entries > MAX_ENTRIES:
                break
        return result

    def folder_of(self, name: str, source: Path) -> Path | None:
        """The folder below which a header has the name that a source includes it by, the nearest first."""
        parts = Path(name).parts
        if not parts or ".." in parts or name.startswith("/"):
            return None
        folders = [
            place.parents[len(parts) - 2] if len(parts) > 1 else place
            for place in self._by_name.get(parts[-1], ())
            if place.parts[len(place.parts) - len(parts) + 1 :] == parts[:-1]
        ]
        return min(folders, key=lambda folder: (_distance(folder, source.parent), str(folder)), default=None)


def _distance(path: Path, base: Path) -> int:
    """Steps from one folder to another."""
    common = len(os.path.commonpath((path, base))) if path.is_absolute() and base.is_absolute() else 0
    return str(path)[common:].count("/") + str(base)[common:].count("/")


def included(text: str) -> Iterator[tuple[bool, str]]:
    """Names of the headers that a text includes, and whether in quotes."""
    for match in _INCLUDE.finditer(text):
        yield match["sign"] == '"', match["name"].strip()


def reached(
    source: Path,
    text: str,
    folders: Sequence[Path],
    project: Path,
    may_read: Callable[[Path], bool] = lambda _: True,
) -> dict[Path, str]:
    """The text of each header of a project that a source includes, directly or through others.

    Args:
        source: Where the text lies.
        text: Of the source.
        folders: Where the compiler looks for headers, in its order.
        project: Headers elsewhere are left out.
        may_read: Whether a header may be read.
    """
    result: dict[Path, str] = {}
    waiting = [(source, text)]
    while waiting and len(result) < MAX_HEADERS:
        place, content = waiting.pop()
        for quoted, name in included(content):
            header = _resolved(name, [place.parent, *folders] if quoted else folders)
            if header is None or header in result or header == source or not header.is_relative_to(project):
                continue
            body = read_text(header) if may_read(header) else None
            if body is not None:
                result[header] = body
                waiting.append((header, body))
    return result


def _resolved(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        place = Path(os.path.normpath(folder / name))
        if place.is_file():
            return place
    return None


def read_text(place: Path) -> str | None:
    """The text of a source; bytes that are none survive."""
    try:
        return read_file(place, max_bytes=MAX_BYTES).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None
