# SPDX-License-Identifier: Apache-2.0
"""Line numbers inside sentences, put into today's text like the lines themselves."""

from __future__ import annotations

from collections.abc import Mapping

from gpadvisor.editor.place.placing import LineMap, PlacedFile
from gpadvisor.editor.show.words import file_name
from gpadvisor.source.line_references import with_lines


def references_today(text: str, own_file: str | None, files: Mapping[str, PlacedFile]) -> str:
    """The text with ``file.cu:12`` and ``line 12`` as they are now.

    Args:
        text: A sentence with lines of the baseline.
        own_file: Path of the file that ``line 12`` is of; None leaves those as they are.
        files: All placed files by path; a name that several of them have is left as it is.
    """
    by_name: dict[str, list[LineMap]] = {}
    for file in files.values():
        by_name.setdefault(file_name(file.path), []).append(file.map)
    home = [] if own_file is None or own_file not in files else [files[own_file].map]

    def line_today(name: str | None, line: int) -> str | None:
        maps = home if name is None else by_name.get(name, [])
        return str(maps[0].now(line)[0]) if len(maps) == 1 else None

    return with_lines(text, line_today)
