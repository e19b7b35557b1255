# SPDX-License-Identifier: Apache-2.0
"""Words that name source lines: each line stays a value, so that it can be told as it is in today's text.

Whoever writes a sentence puts ``line_mark(...)`` where a line is named; the value that it is kept in makes a
``Sentence`` of it, which reads as any other string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from gpadvisor.model.ids import SourceLocation

T = TypeVar("T")
_BEGIN, _FILE, _END = "\x02", "\x1f", "\x03"
_NO_MARKS: Final = str.maketrans("", "", f"{_BEGIN}{_FILE}{_END}")


def capitalised(text: str) -> str:
    """A text as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def uncapitalised(text: str) -> str:
    """A sentence as a part of another one."""
    return f"{text[:1].lower()}{text[1:]}"


def line_mark(location: SourceLocation, *, with_file: bool = True) -> str:
    """A line as a sentence names it, ``saxpy.cu:12`` or ``12``, with the path that it is looked up by."""
    file = location.file.translate(_NO_MARKS)
    name = file.replace("\\", "/").rpartition("/")[2]  # paths of Windows, too
    return LineRef(f"{name}:" if with_file else "", SourceLocation(file, location.line)).mark()


@dataclass(frozen=True, slots=True)
class LineRef:
    """A source line that a sentence names."""

    before: str  # "saxpy.cu:", empty where the line stands alone
    location: SourceLocation

    def __str__(self) -> str:
        """As it was profiled."""
        return f"{self.before}{self.location.line}"

    def mark(self) -> str:
        """As it stands in a marked text."""
        return f"{_BEGIN}{self}{_FILE}{self.location.file}{_END}"


def _parts(text: str) -> Iterator[str | LineRef]:
    """The words of a marked text and the lines between them."""
    words, *marked = text.split(_BEGIN)
    yield words
    for piece in marked:
        mark, end, words = piece.partition(_END)
        shown, separator, file = mark.partition(_FILE)
        before, colon, line = shown.rpartition(":")
        if end and separator and line.isdecimal():
            yield LineRef(f"{before}{colon}", SourceLocation(file, int(line)))
            yield words
        else:  # a sentence that holds a string of somebody else
            yield piece.translate(_NO_MARKS)


class Sentence(str):
    """A string that knows which source lines it names."""

    __slots__ = ("marked",)
    marked: str  # with the marks, for what makes a longer sentence of this one

    def __new__(cls, text: str) -> Self:
        """Of a string with marks; of a sentence itself."""
        if isinstance(text, cls):
            return text
        made = super().__new__(cls, "".join(map(str, _parts(text))))
        made.marked = text
        return made

    def at(self, line_today: Callable[[SourceLocation], str | None]) -> str:
        """The words with another number for each line that there is one for."""

        def told(part: str | LineRef) -> str:
            today = line_today(part.location) if isinstance(part, LineRef) else None
            return str(part) if isinstance(part, str) or today is None else f"{part.before}{today}"

        return "".join(map(told, _parts(self.marked)))

    def with_words(self, change: Callable[[str], str]) -> Sentence:
        """The same lines among other words; a change sees one piece of the text after the other."""

        def changed(part: str | LineRef) -> str:
            if isinstance(part, str):
                return change(part)
            location = SourceLocation(change(part.location.file), part.location.line)
            return LineRef(change(part.before), location).mark()

        text = "".join(map(changed, _parts(self.marked)))
        return self if text == self.marked else Sentence(text)


NOTHING: Final = Sentence("")


def marked(text: str) -> str:
    """A string with the marks of what it names, to be put into a longer one."""
    return text.marked if isinstance(text, Sentence) else text


def joined(steps: Iterable[str]) -> Sentence:
    """Several in one line."""
    return Sentence("; ".join(map(marked, steps)))


def lines_of(text: str) -> tuple[SourceLocation, ...]:
    """The lines that a string names, in order."""
    return tuple(part.location for part in _parts(marked(text)) if isinstance(part, LineRef))


def sentences(*texts: str) -> tuple[Sentence, ...]:
    """Each text as a sentence."""
    return tuple(map(Sentence, texts))


def keeps_sentences(*names: str) -> Callable[[type[T]], type[T]]:
    """Of a frozen dataclass: the words that it is given are kept as sentences."""

    def keep(value: object) -> None:
        for name in names:
            object.__setattr__(value, name, Sentence(getattr(value, name)))

    def made(kind: type[T]) -> type[T]:
        kind.__post_init__ = keep  # type: ignore[attr-defined]  # asked for by dataclass
        return kind

    return made
