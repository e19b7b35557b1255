# SPDX-License-Identifier: Apache-2.0
r"""Open texts and positions in them as LSP has them: only ``\n``, ``\r\n`` and ``\r`` end a line.

The library's own texts also break lines at form feeds and other separators, which C sources may hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_CODECS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")


@dataclass(frozen=True, slots=True)
class TextChange:
    """A replaced range in the client's units, from 0; without a range the whole text."""

    text: str
    start: tuple[int, int] | None = None  # line, character
    end: tuple[int, int] | None = None


class Text:
    """One text, never changed, as its lines: a key press costs what it changes, and not the whole text."""

    __slots__ = ("_lines", "_source")

    def __init__(self, source: str) -> None:
        self._source: str | None = source
        self._lines = _split(source)

    @property
    def source(self) -> str:
        """All of it, joined when it is asked for."""
        if self._source is None:
            self._source = "".join(self._lines)
        return self._source

    @property
    def line_count(self) -> int:
        """An empty text has one line."""
        return len(self._lines)

    def line(self, number: int) -> str:
        """A line from 0, without its end; empty behind the last one."""
        return self._lines[number].rstrip("\r\n") if 0 <= number < len(self._lines) else ""

    def units(self, number: int, column: int, encoding: Encoding) -> int:
        """A column in code points as the client counts it."""
        line = self.line(number)[: max(column, 0)]
        if line.isascii() or encoding == "utf-32":
            return len(line)
        codec, width = _CODECS[encoding]
        return len(line.encode(codec, "surrogatepass")) // width

    def column(self, number: int, units: int, encoding: Encoding) -> int:
        """The client's column in code points; behind the line's end it is the end."""
        return _column(self.line(number), units, encoding)

    def changed(self, changes: Sequence[TextChange], encoding: Encoding) -> Text:
        """The text after changes, each in the text that the one before has left."""
        lines = self._lines.copy()
        for change in changes:
            if change.start is None or change.end is None:
                lines = _split(change.text)
            else:
                _replace(
                    lines,
                    _place(lines, change.start, encoding),
                    _place(lines, change.end, encoding),
                    change.text,
                )
        text = Text("")
        text._lines, text._source = lines, None
        return text


def _split(source: str) -> list[str]:
    """The lines with their ends; the last one has none."""
    if "\r" in source:
        lines = _LINE.findall(source)
        return lines if lines and not lines[-1].endswith(("\r", "\n")) else [*lines, ""]
    parts = source.split("\n")
    remainder = parts.pop()
    return [*(f"{part}\n" for part in parts), remainder]


def _column(line: str, units: int, encoding: Encoding) -> int:
    if line.isascii() or encoding == "utf-32":
        return min(max(units, 0), len(line))
    codec, width = _CODECS[encoding]
    return len(line.encode(codec, "surrogatepass")[: max(units, 0) * width].decode(codec, "ignore"))


def _place(lines: Sequence[str], position: tuple[int, int], encoding: Encoding) -> tuple[int, int]:
    """Line and column in code points of a client's position; behind the last line it is the end."""
    line, units = position
    if line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    line = max(line, 0)
    return line, _column(lines[line].rstrip("\r\n"), units, encoding)


def _replace(lines: list[str], start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    """Put a text in place of what is between two places."""
    (first, first_column), (final, right) = start, max(start, end)
    text = lines[first][:first_column] + text + lines[final][right:]
    if first and text.startswith("\n") and lines[first - 1].endswith("\r"):  # one end of a line now
        first -= 1
        text = lines[first] + text
    replacement = _split(text)
    lines[first : final + 1] = replacement if final + 1 == len(lines) else replacement[:-1]
