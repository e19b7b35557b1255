# SPDX-License-Identifier: Apache-2.0
"""Where a project's compile_commands.json lies: beside it, in the usual build folders, where presets say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from gpadvisor.files import read_file

DATABASE: Final = "compile_commands.json"
_FIXED: Final = ("", "build", "out")
_PATTERNS: Final = ("cmake-build-*", "build/*", "out/*", "out/build/*")
_MATCHES_MAX: Final = 200  # of one pattern
_PRESETS: Final = ("CMakePresets.json", "CMakeUserPresets.json")
_PRESET_BYTES_MAX: Final = 1 << 20
_PRESET_FILES_MAX: Final = 16
_INHERITED_MAX: Final = 100
_MACRO: Final = re.compile(r"\$(\w*)\{([^{}]*)\}")


def databases(folder: Path) -> Iterator[Path]:
    """Compile databases of the project in one folder; of build folders beside each other the newest first."""
    fixed = [folder / name / DATABASE for name in _FIXED]
    yield from (place for place in fixed if place.is_file())
    candidates = [place for pattern in _PATTERNS for place in _matching(folder, f"{pattern}/{DATABASE}")]
    candidates += [place / DATABASE for place in preset_folders(folder)]
    paths = {place for place in candidates if place not in fixed and place.is_file()}
    yield from sorted(paths, key=lambda place: (-_changed(place), str(place)))


def _matching(folder: Path, pattern: str) -> list[Path]:
    first, slash, below = pattern.rpartition("/*/")
    if slash and not (folder / first).is_dir():
        return []
    try:
        return list(islice((folder / first).glob(f"*/{below}" if slash else pattern), _MATCHES_MAX))
    except OSError:  # a folder that may not be read
        return []


def _changed(place: Path) -> float:
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0


def preset_folders(folder: Path) -> list[Path]:
    """The ``binaryDir`` of each configure preset of a CMake project.

    What depends on the environment (``$env{...}``, ``$penv{...}``) is passed over.
    """
    presets = _presets(folder)
    paths = []
    for name, preset in presets.items():
        text = None if preset.get("hidden") is True else _binary_dir(preset, presets)
        expanded = None if text is None else _expanded(text, folder, name, preset)
        if expanded:
            paths.append(folder / expanded)
    return list(dict.fromkeys(paths))


def _presets(folder: Path) -> dict[str, Mapping[str, object]]:
    """Configure presets by name, those of included files among them."""
    presets: dict[str, Mapping[str, object]] = {}
    pending = [folder / name for name in _PRESETS]
    for index in range(_PRESET_FILES_MAX):
        if index >= len(pending):
            break
        document = _document(pending[index])
        for entry in _list(document.get("configurePresets")):
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                presets.setdefault(entry["name"], entry)
        for name in _list(document.get("include")):
            if isinstance(name, str) and "$" not in name and "\0" not in name:
                pending.append(pending[index].parent / name)
        del pending[_PRESET_FILES_MAX:]
    return presets


def _document(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(read_file(path, max_bytes=_PRESET_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _binary_dir(preset: Mapping[str, object], presets: Mapping[str, Mapping[str, object]]) -> str | None:
    """The preset's own ``binaryDir``, else the first that it inherits."""
    pending, visited = [preset], set[str]()
    while pending:
        binary_dir = pending[0].get("binaryDir")
        if isinstance(binary_dir, str):
            return binary_dir
        parents = pending.pop(0).get("inherits")
        names = [parents] if isinstance(parents, str) else _list(parents)
        bases = dict.fromkeys(name for name in names if isinstance(name, str))
        new = [name for name in bases if name in presets and name not in visited]
        visited.update(new)
        pending[:0] = [presets[name] for name in new]
        if len(visited) > _INHERITED_MAX:
            return None
    return None


def _expanded(text: str, folder: Path, name: str, preset: Mapping[str, object]) -> str | None:
    """The text with CMake's macros in place; None where one is not known here."""
    generator = preset.get("generator")
    values = {
        "sourceDir": str(folder),
        "sourceParentDir": str(folder.parent),
        "sourceDirName": folder.name,
        "fileDir": str(folder),
        "presetName": name,
        "generator": generator if isinstance(generator, str) else None,
        "dollar": "$",
    }
    macros = _MACRO.findall(text)
    if "\0" in text or any(kind or values.get(macro) is None for kind, macro in macros):
        return None
    return _MACRO.sub(lambda match: values[match[2]] or "", text)
