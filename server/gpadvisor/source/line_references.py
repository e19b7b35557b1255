# SPDX-License-Identifier: Apache-2.0
"""Line numbers inside sentences: ``file.cu:12``, and ``line 12`` of the file that the sentence is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

_MENTION: Final = re.compile(r"\b([\w+-][\w.+-]*\.\w{1,8}):(\d{1,7})\b|\bline (\d{1,7})\b")


def line_references(text: str) -> Iterator[tuple[str | None, int]]:
    """Each mentioned line with the name of its file, None for that of the sentence."""
    for name, line, alone in _MENTION.findall(text):
        yield (name, int(line)) if name else (None, int(alone))


def file_of(name: str | None, own_file: str | None, files: Iterable[str]) -> str | None:
    """The path of a mentioned file: of those with its name the only one; ``own`` where none is named."""
    if name is None:
        return own_file
    namesakes = [file for file in files if re.split(r"[/\\]", file)[-1] == name]
    return namesakes[0] if len(namesakes) == 1 else None


def with_lines(text: str, line_today: Callable[[str | None, int], str | None]) -> str:
    """The text with other words for its lines: ``12`` becomes what ``now`` gives for it, None leaves it."""

    def replaced(match: re.Match[str]) -> str:
        name, line, alone = match.groups()
        today = line_today(name, int(line or alone))
        if today is None:
            return match.group()
        return f"line {today}" if name is None else f"{name}:{today}"

    return _MENTION.sub(replaced, text)
