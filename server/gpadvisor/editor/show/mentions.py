# SPDX-License-Identifier: Apache-2.0
"""Line numbers inside sentences, put into today's text like the lines themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from gpadvisor.editor.place.placing import LineMap, PlacedFile
from gpadvisor.editor.show.words import file_name

_MENTION: Final = re.compile(r"\b([\w+-][\w.+-]*\.\w{1,8}):(\d{1,7})\b|\bline (\d{1,7})\b")


def mentions_now(text: str, own: str | None, files: Mapping[str, PlacedFile]) -> str:
    """The text with ``file.cu:12`` and ``line 12`` as they are now.

    Args:
        text: A sentence with lines of the baseline.
        own: Path of the file that ``line 12`` is of; None leaves those as they are.
        files: All placed files by path; a name that several of them have is left as it is.
    """
    by_name: dict[str, list[LineMap]] = {}
    for file in files.values():
        by_name.setdefault(file_name(file.path), []).append(file.map)
    home = None if own is None or own not in files else files[own].map

    def replaced(match: re.Match[str]) -> str:
        name, line, alone = match.groups()
        if alone is not None:
            return match.group() if home is None else f"line {home.now(int(alone))[0]}"
        known = by_name.get(name, [])
        return f"{name}:{known[0].now(int(line))[0]}" if len(known) == 1 else match.group()

    return _MENTION.sub(replaced, text)
