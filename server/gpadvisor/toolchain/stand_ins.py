# SPDX-License-Identifier: Apache-2.0
"""Text that is compiled in place of a file, without touching that file.

A source is copied with a ``#line`` that names the original. For a header, links mirror the folder of the
project, with the changed header among them, because an include looks beside the including file first.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import SourceError
from gpadvisor.toolchain.compile_options import PATH_OPTIONS

MAX_MIRRORED: Final = 50_000
"""Entries of a mirrored folder; larger ones hold more than one project."""
MAX_BESIDE: Final = 2_000
"""Entries beside the mirrored folder that includes may go to by ``../``."""
_PLAIN: Final = re.compile(r"\w[\w.+-]*")
NOT_IN_PTX: Final = re.compile(r'["\\\x00-\x1f]')
"""The assembler cannot read such a name back."""
_SUFFIXES: Final = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
_SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})


@dataclass(frozen=True, slots=True)
class Overlay:
    """``folder`` is seen in place of ``root``."""

    root: Path
    folder: Path

    def seen(self, path: Path) -> Path:
        """The path that stands for one below the root; any other path as it is."""
        return self.folder / path.relative_to(self.root) if path.is_relative_to(self.root) else path

    def named(self, path: str) -> str:
        """The path that one of a line table stands for."""
        place = Path(os.path.normpath(path))
        if place.is_relative_to(self.folder):
            return str(self.root / place.relative_to(self.folder))
        return path

    def options(self, options: tuple[str, ...]) -> tuple[str, ...]:
        """Compiler options with the paths that stand for those below the root."""
        return tuple(self._option(option) for option in options)

    def _option(self, option: str) -> str:
        name, equals, value = option.partition("=")
        if not equals or name not in PATH_OPTIONS or not Path(value).is_absolute():
            return option
        return f"{name}={self.seen(Path(os.path.normpath(value)))}"


def write_stand_in(source: Path, text: bytes, folder: Path) -> Path:
    """A copy of a source with another text, whose lines the compiler takes for the source's own.

    Its name is the source's where nothing could take that for anything but a name.
    """
    place = folder / "text"
    place.mkdir()
    suffix = source.suffix if source.suffix in _SUFFIXES else ".cu"
    copy = place / (source.name if _PLAIN.fullmatch(source.name) else f"source{suffix}")
    copy.write_bytes(
        begin_as(source) + text.removeprefix(codecs.BOM_UTF8)
    )  # an error in the middle of a file
    return copy


def begin_as(source: Path) -> bytes:
    """The line that makes what follows a source's own text."""
    name = NOT_IN_PTX.sub("_", str(source))
    return f'#line 1 "{name}"\n'.encode("utf-8", "surrogateescape")


def _beside(root: Path) -> list[str]:
    """Names of what is in the same folder; none where that may not be read."""
    try:
        names = (place.name for place in root.parent.iterdir())
        return sorted(name for name in names if root.name not in {"", name})[:MAX_BESIDE]
    except OSError:
        return []


def mirror(root: Path, folder: Path, changed: Path, text: str) -> Overlay:
    """Links to everything below a folder and to what is beside it, and one file with another text.

    Raises:
        SourceError: the folder is too large, or the changed file is not below it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _beside(root):
        (folder / name).symlink_to(root.parent / name)
    folder /= root.name or "root"
    entries = 0
    for place, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        entries += len(names) + len(files)
        if entries > MAX_MIRRORED:
            raise SourceError(
                f"{root} holds more than {MAX_MIRRORED} files, too many to try a change of "
                f"{changed.name} in; open the folder of one project"
            )
        path = folder / Path(place).relative_to(root)
        path.mkdir(parents=True, exist_ok=True)
        # What a linked folder holds is seen as it is.
        for name in (*files, *(name for name in names if (Path(place) / name).is_symlink())):
            if Path(place) / name != changed:
                (path / name).symlink_to(Path(place) / name)
    target = folder / changed.relative_to(root)
    if not target.parent.is_dir():
        raise SourceError(f"{changed} is not among the files of {root}; open the folder that it is in")
    target.write_bytes(text.encode("utf-8", "replace"))
    return Overlay(root, folder)
