# SPDX-License-Identifier: Apache-2.0
"""The repository that sources are in, and the lines of it that a change touches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError, ToolNotFoundError, UsageError
from gpadvisor.sandbox.tools import run_tool

_SECONDS: Final = 120.0
_MOST_BYTES: Final = 256 << 20
_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)")
_LETTERS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13}

Changed = dict[str, tuple[tuple[int, int], ...]]
"""First and last line of each part, by path below the repository's root."""


def repository_root(folder: Path) -> Path:
    """The repository that a folder is in; itself where it is in none."""
    place = folder.resolve()
    return next((path for path in (place, *place.parents) if (path / ".git").exists()), place)


def changed_lines(folder: Path, base: str) -> Changed:
    """Lines of the working tree that are not those of the commit where it left a branch.

    Args:
        folder: any of the repository.
        base: what to compare with: a branch, a tag or a commit.

    Raises:
        UsageError: there is no repository, or no such commit in it.
        ToolNotFoundError: git is not there.
    """
    # Nothing that the repository's settings name is run.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=true", "-C", str(folder), "diff"]
    options = ["--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", "--no-relative", "--unified=0"]
    if base.startswith("-") or not base.strip() or "\0" in base:
        raise UsageError(f"--diff '{base}' is no commit; give a branch, a tag or a commit")
    try:
        answer = run_tool(
            [*command, *options, "--no-renames", "--merge-base", base, "--"],
            timeout_seconds=_SECONDS,
            output_bytes=_MOST_BYTES,
        )
    except ToolNotFoundError:
        raise
    except ToolError as error:
        raise UsageError(
            f"--diff {base}: {error}; it must be a commit that was fetched with its history"
        ) from error
    return parse_diff(answer.stdout.decode("utf-8", "surrogateescape"))


def parse_diff(text: str) -> Changed:
    """The changed lines of a unified diff without context and prefixes; where lines only go are none."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    lines = iter(text.split("\n"))
    file = ""
    for line in lines:
        if line.startswith("+++ "):
            file = _path(line.removeprefix("+++ "))
        elif (hunk := _HUNK.match(line)) is not None:
            removed, first, added = (int(part or 1) for part in (hunk[1] or "1", hunk[2], hunk[3] or "1"))
            if added and file:
                ranges.setdefault(file, []).append((first, first + added - 1))
            _skip(lines, removed + added)
    return {path: tuple(parts) for path, parts in ranges.items()}


def _skip(lines: Iterator[str], count: int) -> None:
    """Pass over what a part consists of, which may look like a heading."""
    while count:
        line = next(lines, None)
        if line is None:
            return
        count -= line.startswith(("+", "-"))


def _path(name: str) -> str:
    """A name as git writes it: quoted where it has odd letters, with a tab behind where it has blanks."""
    name = name.removesuffix("\t")
    if name == "/dev/null":
        return ""
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    data = bytearray()
    index = 1
    while index < len(name) - 1:
        escape = _ESCAPE.match(name, index)
        if escape is None:
            data += name[index].encode("utf-8", "surrogateescape")
            index += 1
        else:
            kind = escape[1]
            data.append(int(kind, 8) & 255 if len(kind) == 3 else _LETTERS.get(kind, ord(kind) & 255))
            index = escape.end()
    return data.decode("utf-8", "surrogateescape")
