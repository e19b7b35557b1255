# SPDX-License-Identifier: Apache-2.0
r"""Open texts and positions in them as LSP has them: only ``\n``, ``\r\n`` and ``\r`` end a line.

The library's own texts also break lines at form feeds and other separators, which C sources may hold.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_CODECS: Final = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


@dataclass(frozen=True, slots=True)
class Change:
    """A replaced range in the client's units, from 0; without a range the whole text."""

    text: str
    start: tuple[int, int] | None = None  # line, character
    end: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """One text with the places where its lines begin."""

    source: str
    starts: tuple[int, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", _line_starts(self.source))

    @property
    def line_count(self) -> int:
        """An empty text has one line."""
        return len(self.starts)

    def line(self, number: int) -> str:
        """A line from 0, without its end; empty behind the last one."""
        if not 0 <= number < len(self.starts):
            return ""
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.source)
        return self.source[self.starts[number] : end].rstrip("\r\n")

    def units(self, number: int, column: int, encoding: Encoding) -> int:
        """A column in code points as the client counts it."""
        line = self.line(number)[: max(column, 0)]
        if line.isascii() or encoding == "utf-32":
            return len(line)
        codec, width = _CODECS[encoding]
        return len(line.encode(codec, "surrogatepass")) // width

    def column(self, number: int, units: int, encoding: Encoding) -> int:
        """The client's column in code points; behind the line's end it is the end."""
        line = self.line(number)
        if line.isascii() or encoding == "utf-32":
            return min(max(units, 0), len(line))
        codec, width = _CODECS[encoding]
        return len(line.encode(codec, "surrogatepass")[: max(units, 0) * width].decode(codec, "ignore"))

    def offset(self, line: int, units: int, encoding: Encoding) -> int:
        """Place in the text of a client's position; behind the last line it is the end."""
        if line >= len(self.starts):
            return len(self.source)
        return self.starts[max(line, 0)] + self.column(max(line, 0), units, encoding)

    def line_at(self, offset: int) -> int:
        """The line from 0 that holds a place."""
        return bisect_right(self.starts, offset) - 1

    def changed(self, changes: Sequence[Change], encoding: Encoding) -> Text:
        """The text after changes, each in the text that the one before has left."""
        text = self
        for change in changes:
            if change.start is None or change.end is None:
                text = Text(change.text)
                continue
            start = text.offset(*change.start, encoding)
            end = max(text.offset(*change.end, encoding), start)
            text = Text(text.source[:start] + change.text + text.source[end:])
        return text


def _line_starts(source: str) -> tuple[int, ...]:
    starts = [0]
    if "\r" not in source:
        at = source.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = source.find("\n", at + 1)
        return tuple(starts)
    size = len(source)
    at = _next_end(source, 0)
    while at >= 0:
        at += 2 if source[at] == "\r" and at + 1 < size and source[at + 1] == "\n" else 1
        starts.append(at)
        at = _next_end(source, at)
    return tuple(starts)


def _next_end(source: str, start: int) -> int:
    """The next carriage return or line feed; -1 without one."""
    feed = source.find("\n", start)
    back = source.find("\r", start, feed if feed >= 0 else len(source))
    return feed if back < 0 else back
