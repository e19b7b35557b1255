# SPDX-License-Identifier: Apache-2.0
"""Compiler flags as a fix: written into ``gpadvisor.toml``, with the line of the build system to change.

``compile_commands.json`` is generated, so the build itself is never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpadvisor.errors import SettingsError
from gpadvisor.files import parse_toml, read_file, write_atomically
from gpadvisor.model.fix import TextEdit, apply_edits
from gpadvisor.pipeline.build_files import Wanted, find_change
from gpadvisor.pipeline.settings import FILE_NAME, MAX_FILE_BYTES, find_settings

_KEYS: Final = ("extra-flags", "extra_flags")
_MAX_TRIES: Final = 200
_MAX_FOLDERS: Final = 16


def settings_file(source: Path, root: Path) -> tuple[Path, str | None]:
    """The ``gpadvisor.toml`` that a flag for a source belongs into, and why it cannot be written, if so.

    Raises:
        SettingsError: the settings there are cannot be read.
    """
    loaded = find_settings(source.parent)
    inside = loaded.path is not None and loaded.path.is_relative_to(root.resolve())
    if loaded.path is None or not inside:
        return root / FILE_NAME, None
    if loaded.path.name == FILE_NAME:
        return loaded.path, None
    return loaded.path, f"the settings are in {loaded.path.name}: add the flag to its extra-flags by hand"


def flag_edits(text: str, flag: str) -> tuple[TextEdit, ...] | None:
    """How a flag is added to a settings file; none where it is there, None where the text takes no edit.

    Everything else stays as it is: the edited text is parsed and compared.
    """
    try:
        before = parse_toml(text.encode())
    except ValueError:
        return None
    key = next((key for key in _KEYS if key in before), None)
    flags = before.get(key, []) if key is not None else []
    if not isinstance(flags, list):
        return None
    if flag in flags:
        return ()
    expected = {**before, key or _KEYS[0]: [*flags, flag]}
    for edit in _candidates(text, key, flag):
        if _gives(apply_edits(text, [edit]), expected):
            return (edit,)
    return None


def _gives(text: str, expected: dict[str, object]) -> bool:
    try:
        return parse_toml(text.encode()) == expected
    except ValueError:
        return False


def _candidates(text: str, key: str | None, flag: str) -> Iterator[TextEdit]:
    """Edits to try: a line before the first one that says something, or inside the brackets of the key."""
    word = json.dumps(flag)
    lines = text.split("\n")
    ending = "\r\n" if "\r\n" in text else "\n"
    if key is None:
        comments = (index for index, line in enumerate(lines) if line.strip() and line.lstrip()[:1] != "#")
        first = next(comments, len(lines) - 1)
        yield _insertion(first + 1, 0, f"{_KEYS[0]} = [{word}]{ending}")
        return
    begun = False
    tries = 0
    for number, line in enumerate(lines, 1):
        begun = begun or line.lstrip().startswith((key, f'"{key}"'))
        for match in re.finditer(r"\]", line) if begun else ():
            # Alone, behind a last element, or behind its comma.
            for joint in ("", ", ", " "):
                yield _insertion(number, match.start(), f"{joint}{word}")
            tries += 1
            if tries > _MAX_TRIES:
                return


def _insertion(line: int, column: int, text: str) -> TextEdit:
    return TextEdit(start_line=line, start_column=column, end_line=line, end_column=column, new_text=text)


def write_flag(source: Path, root: Path, flag: str) -> Path:
    """Add a flag to the ``gpadvisor.toml`` of a source, which is made where there is none.

    Raises:
        SettingsError: the file is not one that can be edited without losing something.
        OSError: it cannot be written.
    """
    path, wrong = settings_file(source, root)
    if wrong is not None:
        raise SettingsError(wrong)
    text = read_settings(path)
    edits = flag_edits(text, flag)
    if edits is None:
        raise SettingsError(
            f"{path} takes no edit that keeps the rest as it is; add {flag} to extra-flags there"
        )
    if edits:
        write_atomically(path, apply_edits(text, edits).encode("utf-8"))
    return path


def read_settings(path: Path) -> str:
    """The text of a settings file, "" where there is none.

    Raises:
        SettingsError: it cannot be read.
    """
    try:
        if not path.exists():
            return ""
        return read_file(path, max_bytes=MAX_FILE_BYTES).decode("utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is no UTF-8 text") from error


def build_line(source: Path, root: Path, flag: str) -> str:
    """What to change in the build system for a flag, as Markdown; nothing of it is run or written."""
    change = find_change(_upwards(source.parent, root), Wanted(flag=flag, application=source, source=source))
    if change is None:
        return (
            f"Add `{flag}` to the options of nvcc in your build system; `compile_commands.json` is generated"
        )
    path = change.path.relative_to(root) if change.path.is_relative_to(root) else change.path
    where = f"In `{path}`" if change.line is None else f"On line {change.line} of `{path}`"
    return f"{where}: `{change.words}`"


def _upwards(folder: Path, root: Path) -> Iterator[Path]:
    path = folder.resolve()
    top = root.resolve()
    for _ in range(_MAX_FOLDERS):
        if not path.is_relative_to(top):
            return
        yield root / path.relative_to(top)
        path = path.parent
