# SPDX-License-Identifier: Apache-2.0
"""What is at a path, by names and first bytes: a collection, a database of HPCToolkit, a timeline.

Warm answers ask this, so that it imports little.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpadvisor.files import open_file

COLLECTION_MAGIC: Final = b"GPACUPTI"
COLLECTION_SUFFIX: Final = ".gpacupti"
HOST_LINES: Final = "host-lines.json"
_COLLECTION_FILES: Final = (f"*{COLLECTION_SUFFIX}", HOST_LINES, "cubins/*.cubin")
DATABASE_FILES: Final = ("meta.db", "profile.db", "cct.db")
TRACE: Final = "trace.db"
TIMELINE_WORK: Final = "timeline_work"
TIMELINE_CALLS: Final = "timeline_calls"
"""Tables of a snapshot with a timeline."""
_ZIP: Final = b"PK\3\4"
_NAMES_BYTES: Final = 4 << 20
"""At the end of a snapshot, where the names of its tables are."""


def is_collection(path: Path) -> bool:
    """Whether a path is a collection directory, or one file of one."""
    if path.is_dir():
        return path.joinpath("cubins").is_dir() or any(path.glob(f"*{COLLECTION_SUFFIX}"))
    try:
        with open_file(path) as file:
            return file.read(len(COLLECTION_MAGIC)) == COLLECTION_MAGIC
    except OSError:
        return False


def collection_files(path: Path) -> list[tuple[str, Path]]:
    """Name and place of each file of a collection, also where one process's file is named; else nothing."""
    if path.is_dir():
        return list(_regular_files(path)) if is_collection(path) else []
    with open_file(path) as stream:
        if stream.read(len(COLLECTION_MAGIC)) != COLLECTION_MAGIC:
            return []
    beside = [(name, file) for name, file in _regular_files(path.parent) if file.suffix != path.suffix]
    return [(path.name, path), *beside]


def _regular_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for pattern in _COLLECTION_FILES:
        for file in sorted(folder.glob(pattern)):
            if file.is_file() and not file.is_symlink():
                yield file.relative_to(folder).as_posix(), file


def is_database(path: Path) -> bool:
    """Whether a folder is a database of HPCToolkit."""
    return path.is_dir() and (path / DATABASE_FILES[0]).is_file()


def trace_files(path: Path) -> list[Path]:
    """What is read of a database with a trace, which may be named itself; else nothing."""
    folder = path.parent if path.name == TRACE else path
    files = [folder / name for name in (TRACE, *DATABASE_FILES[:2])]
    return files if files[0].is_file() else []


def has_timeline(path: Path) -> bool:
    """Whether a snapshot seems to have a timeline: by the names at its end, nothing is unpacked."""
    try:
        with open_file(path) as stream:
            if stream.read(len(_ZIP)) != _ZIP:
                return False
            stream.seek(max(0, path.stat().st_size - _NAMES_BYTES))
            return f"{TIMELINE_WORK}.parquet".encode() in stream.read(_NAMES_BYTES)
    except OSError:
        return False
