# SPDX-License-Identifier: Apache-2.0
"""The translation unit that a file belongs to: itself, or for a header a source that includes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.files import open_file
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.toolchain.databases.database import find_command

MAX_UNITS: Final = 3
"""Sources that are tried for a header."""
_RANKED: Final = 20  # looked up in compile databases
_MAX_READ: Final = 2_000
_MAX_READ_BYTES: Final = 1 << 20
_MAX_DEPTH: Final = 8
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]{1,400})[>"]', re.MULTILINE)
_UNIT: Final = ".cu"
_UNITS: Final = frozenset(
    (_UNIT, ".cc", ".cpp", ".cxx", ".c")
)  # others than .cu where a build has them as CUDA


def units_of(
    path: Path, root: Path, compiled_units: Sequence[Path] = (), *, itself: bool = True
) -> list[Path]:
    """Sources to compile for a file, the likeliest first: those of a compile database before others.

    Args:
        path: The file that is edited.
        root: Folder of the project.
        compiled_units: Sources that were compiled for the analysis that found something in the file.
        itself: Whether a source is its own unit, even where others include it.
    """
    if path.suffix == _UNIT and itself:
        return [path]
    including = list(dict.fromkeys(_including(path, root)))
    near = sorted(including, key=lambda unit: (unit not in compiled_units, _distance(unit, path), str(unit)))[
        :_RANKED
    ]
    commands = {unit: find_command(unit)[0] for unit in near}
    cuda = [unit for unit in near if unit.suffix == _UNIT or getattr(commands[unit], "is_cuda", False)]
    ranked = sorted(cuda, key=lambda unit: (unit not in compiled_units, commands[unit] is None))
    stated = [unit for unit in compiled_units if unit.suffix == _UNIT and unit not in including]
    return [*ranked, *stated][:MAX_UNITS]


def _including(path: Path, root: Path) -> Iterator[Path]:
    """Sources below a folder that include a file, directly or through other headers."""
    includes: dict[Path, set[str]] = {}
    for place in local_sources.walk(root):
        if len(includes) >= _MAX_READ:
            break
        names = _included(place)
        if names:
            includes[place] = names
    targets, paths = {path}, {path}
    for _ in range(_MAX_DEPTH):
        reached = [
            place
            for place, names in includes.items()
            if place not in paths and _reaches(place, names, targets)
        ]
        if not reached:
            return
        paths.update(reached)
        targets = set(reached)
        yield from (place for place in reached if place.suffix in _UNITS)


def _reaches(place: Path, names: set[str], paths: set[Path]) -> bool:
    """Whether a source includes one of the files: the one beside it of a name, else any that is called so."""
    file_names = {target.name for target in paths}
    for name in names:
        if name.rpartition("/")[2] in file_names:
            beside = Path(os.path.normpath(place.parent / name))
            if beside in paths or not beside.is_file():
                return True
    return False


def _included(place: Path) -> set[str]:
    """Names of the files that one includes."""
    try:
        with open_file(place) as stream:
            data = stream.read(_MAX_READ_BYTES)
    except OSError:
        return set()
    return {match[1].decode("utf-8", "replace").replace("\\", "/") for match in _INCLUDE.finditer(data)}


def _distance(path: Path, unit: Path) -> int:
    """Steps from one folder to another."""
    a, b = path.parent.parts, unit.parent.parts
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return len(a) + len(b) - 2 * common
