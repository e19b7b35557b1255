# SPDX-License-Identifier: Apache-2.0
"""The source files of the project on this machine, for finding the paths that a report names.

Only the standard library is imported here: a warm answer checks that the sources are what they were.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file

SUFFIXES: Final = frozenset(
    {
        ".cu",
        ".cuh",
        ".h",
        ".hh",
        ".hpp",
        ".hxx",
        ".inl",
        ".ipp",
        ".tpp",
        ".tcc",
        ".inc",
        ".cpp",
        ".cc",
        ".cxx",
        ".c",
        ".py",
        ".jl",
    }
)
DEVICE_SUFFIXES: Final = (".cu", ".cuh")
MAX_FILES: Final = 50_000
"""Directory entries looked at; beyond that a project is searched in part only."""
MAX_SOURCE_BYTES: Final = 8 << 20
_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "build", "dist", "site-packages"})


def is_source_name(path: Path) -> bool:
    """Whether a file is a source by its name; headers of the C++ library have no suffix (``include/new``)."""
    suffix = path.suffix.lower()
    return suffix in SUFFIXES or (not suffix and "include" in path.parts[:-1])


def cuda_below(folder: Path) -> list[Path]:
    """CUDA sources of a folder, in a stable order; hidden folders and those of builds are left out."""
    return [path for path in walk(folder) if path.suffix == ".cu"]


def walk(root: Path) -> Iterator[Path]:
    """Source files below a folder, in a stable order; hidden folders and links to folders are left out."""
    return (Path(folder, name) for folder, name in _walk(root))


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Folder and name of each; a path for every file of a project takes longer than to go through it."""
    entries = 0
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name[0] != "." and name not in _SKIPPED)
        entries += len(names) + len(files)
        if entries > MAX_FILES:
            return
        for name in sorted(files):
            if name[name.rfind(".") :].lower() in SUFFIXES and os.path.splitext(name)[1]:  # noqa: PTH122 - as above
                yield folder, name


def real(path: Path) -> Path:
    """Where a file is with its links followed, as far as they lead somewhere."""
    return Path(os.path.realpath(path))  # resolve() fails for links in a circle before Python 3.13


def candidates(
    root: Path, names: Collection[str], sizes: Collection[int], beside: str | None = None
) -> list[Path]:
    """Files with a wanted name, or with the size of an embedded source (which may have been renamed).

    With ``beside`` every file of device code too, of the project and of that folder.
    """
    if not names and not sizes and beside is None:
        return []
    lowered = {name.lower() for name in names}
    paths = [
        Path(folder, name)
        for folder, name in _walk(root)
        if name.lower() in lowered
        or (sizes and _size(folder, name) in sizes)
        or (beside is not None and name.endswith(DEVICE_SUFFIXES))
    ]
    if beside is not None and Path(beside).is_dir():
        paths += [path for path in sorted(Path(beside).iterdir()) if path.suffix in DEVICE_SUFFIXES]
    return paths


def read_source(path: Path) -> bytes | None:
    """The bytes of a source; None where it cannot be read or is unreasonably large."""
    try:
        return read_file(path, max_bytes=MAX_SOURCE_BYTES)
    except OSError:
        return None


def fingerprint(root: Path, lookups: Mapping[str, list[str] | list[int]]) -> list[list[str]]:
    """Path and digest of every candidate: equal as long as no answer can change."""
    names = [str(name) for name in lookups.get("names", [])]
    sizes = [int(size) for size in lookups.get("sizes", [])]
    result = []
    beside = [str(folder) for folder in lookups.get("beside", [])]
    for path in candidates(root, names, sizes, beside[0] if beside else None):
        data = read_source(path)
        result.append([str(path), "" if data is None else hashlib.sha256(data).hexdigest()])
    return result


def _size(folder: str, name: str) -> int:
    try:
        return os.stat(f"{folder}{os.sep}{name}").st_size  # noqa: PTH116 - as for _walk
    except OSError:
        return -1
