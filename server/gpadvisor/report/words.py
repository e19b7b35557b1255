# SPDX-License-Identifier: Apache-2.0
"""Words and figures as every human-readable format prints them, and text made safe to print."""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar

from gpadvisor.model.advice import Category, Estimate
from gpadvisor.model.figures import factor, gain
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence

T = TypeVar("T")

MAX_TEXT: Final = 16_384
"""Longest name or message kept; a name from a damaged file can be as long as the file."""

ELLIPSIS: Final = "..."
_EQUATION_NAME: Final = 20
_LEAST_ROOM: Final = 8
_GLUE: Final = "\0"  # a space that no line ends at; clean text has no such letter
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_CLAUSE: Final = re.compile(r"[.!?;](?=\s)")
_LINK: Final = re.compile(r"@[a-z]{1,16}:([^:@\n]{1,200}):[^@\n]{0,500}@")
_FORMULA: Final = re.compile(r"[=+-]|@(?!!?U?P[0-9T])")  # @P0 is an instruction's predicate

CATEGORY_WORDS: Final = {
    Category.STALL_ELIMINATION: "stall elimination",
    Category.LATENCY_HIDING: "latency hiding",
    Category.PARALLEL: "parallel",
    Category.NOTE: "note",
}


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """The text on one line without anything that moves a cursor, changes a colour or reorders letters.

    Names and paths come from files that anybody can have written, so control characters, bidirectional
    marks and lone surrogates are shown as escapes.
    """
    if len(text) > limit:
        text = text[: limit - len(ELLIPSIS)] + ELLIPSIS
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def no_link(text: str) -> str:
    """Clean text of which no editor makes a link: VS Code runs the command of `[a](command:b)`."""
    return clean(text).replace("](", "] (")


def _visible(char: str) -> str:
    if char in "\t\r\n\v\f":
        return " "
    if unicodedata.category(char) not in _UNSAFE:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cleaned(value: T) -> T:
    """A copy of a frozen value in which every string went through `clean`."""
    return _cleaned(value)  # type: ignore[return-value]  # the walk keeps the type of what it walks


def _cleaned(value: object) -> object:
    if isinstance(value, Sentence):
        return value.with_words(clean)
    if isinstance(value, str) and not isinstance(value, Enum):
        return clean(value)
    if isinstance(value, tuple):
        items = tuple(_cleaned(item) for item in value)
        return value if all(map(operator.is_, items, value)) else items
    changed = {}
    for name in _field_names(type(value)):  # type: ignore[arg-type]  # classes are hashable
        old = getattr(value, name)
        new = _cleaned(old)
        if new is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value  # type: ignore[type-var]  # others have no fields


@lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def csv_cell(value: object) -> object:
    """A value as programs read it, empty where there is none; no spreadsheet takes a text for a formula."""
    if isinstance(value, str):
        text = clean(value)
        return f"'{text}" if _FORMULA.match(text) else text
    return "" if value is None or (isinstance(value, float) and not math.isfinite(value)) else value


def without_links(message: str) -> str:
    """A rule's message with Nsight Compute's links (``@url:words:address@``) reduced to their words."""
    return _LINK.sub(r"\1", message)


def cells(text: str) -> int:
    """How many terminal cells a text takes: wide letters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Keep(Enum):
    """Which part of a text survives shortening."""

    START = "start"
    END = "end"  # paths: the file name says most
    BOTH = "both"


def shorten(text: str, width: int, keep: Keep = Keep.START) -> str:
    """The text cut to at most ``width`` cells, with an ellipsis where something went."""
    if cells(text) <= width:
        return text
    if width <= len(ELLIPSIS):
        return _take(text, max(width, 0))
    room = width - len(ELLIPSIS)
    if keep is Keep.START:
        return _take(text, room) + ELLIPSIS
    if keep is Keep.END:
        return ELLIPSIS + _take(text[::-1], room)[::-1]
    return _take(text, (room + 1) // 2) + ELLIPSIS + _take(text[::-1], room // 2)[::-1]


def _take(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _cell(char)
        if used > width:
            return text[:index]
    return text


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text filled with spaces to ``width`` cells."""
    fill = " " * max(0, width - cells(text))
    return fill + text if right else text + fill


def wrap(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Lines of at most ``width`` cells, each behind ``indent``, the first behind ``first``."""
    lead = indent if first is None else first
    width = max(width, cells(lead) + _LEAST_ROOM, cells(indent) + _LEAST_ROOM)
    lines: list[str] = []
    line, used, fresh = lead, cells(lead), True
    for word in text.replace(" %", f"{_GLUE}%").split():
        word_cells = cells(word)
        if used + (not fresh) + word_cells > width and (not fresh or cells(indent) + word_cells <= width):
            lines.append(line.rstrip())
            line, used, fresh = indent, cells(indent), True
        if not fresh:
            line, used = line + " ", used + 1
        remainder = word
        while used + cells(remainder) > width:  # only a word that is longer than a line
            piece = _breakable(_take(remainder, width - used))
            lines.append(line + piece)
            remainder = remainder[len(piece) :]
            line, used = indent, cells(indent)
        line, used, fresh = line + remainder, used + cells(remainder), False
    if line.strip() or not lines:
        lines.append(line.rstrip())
    return [done.replace(_GLUE, " ") for done in lines]


def _breakable(piece: str) -> str:
    """The part of a cut word up to its last separator, where that leaves more than half of it."""
    cut = max(piece.rfind(mark) for mark in "._:/,>") + 1
    return piece[:cut] if cut > len(piece) // 2 else piece


def count(number: int) -> str:
    """A count with its thousands apart."""
    return f"{number:,}"


def share_of(part: int, total: int) -> float | None:
    """The quotient, None of nothing."""
    return part / total if total else None


def duration(nanoseconds: float | None) -> str:
    """A time with a unit that leaves one to three digits before the point."""
    if nanoseconds is None or not math.isfinite(nanoseconds):
        return "unknown"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.4g} {unit}"
    return f"{nanoseconds:.0f} ns"


def size(number: int) -> str:
    """Bytes in the binary unit that reads best."""
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= step:
            return f"{number / step:.4g} {unit}"
    return f"{number} bytes"


def equation_name(estimate: Estimate) -> str:
    """What stands before the colon of the equation: ``GPA Eq. 2``."""
    name, colon, _ = estimate.equation.partition(":")
    return name.strip() if colon and 0 < len(name) <= _EQUATION_NAME else "the paper"


def speedup(estimate: Estimate) -> str:
    """The whole estimate with the paper's own: ``1.2x (1.1-1.3), GPA Eq. 2: 1.35x``."""
    paper = "" if estimate.paper is None else f", {equation_name(estimate)}: {factor(estimate.paper)}"
    return gain(estimate) + paper


def place(location: SourceLocation, width: int | None = None) -> str:
    """``file:line``; a path that is too long loses its front."""
    line = f":{location.line}"
    return (
        location.file + line if width is None else shorten(location.file, width - len(line), Keep.END) + line
    )


def base_file(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2] or path


def clauses(text: str, room: int) -> str:
    """The first clauses of a text, as many as fit; where not even one does, it is cut."""
    if cells(text) <= room:
        return text
    ends = [match.start() for match in _CLAUSE.finditer(text) if match.end() <= room]
    return f"{text[: ends[-1]]}." if ends else shorten(text, room)


def dimensions(extent: tuple[int, int, int]) -> str:
    """A grid or block without trailing ones: ``4096``, ``64 x 64``."""
    significant = list(extent)
    while len(significant) > 1 and significant[-1] == 1:
        significant.pop()
    return " x ".join(str(number) for number in significant)


def plural(number: int, noun: str) -> str:
    """``1 launch``, ``3 launches``."""
    if number == 1:
        return f"1 {noun}"
    return f"{count(number)} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"
