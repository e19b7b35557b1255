# SPDX-License-Identifier: Apache-2.0
"""Figures and names as the editor shows them: short, and safe in Markdown."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from gpadvisor.model.estimate import Evidence
from gpadvisor.model.finding import Freshness

ELLIPSIS: Final = "..."
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")
_BREAK: Final = re.compile(r"(?<=[.;:]) ")
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

EVIDENCE_WORDS: Final = {
    Evidence.MEASURED: "measured",
    Evidence.COUNTED: "counted",
    Evidence.MODELLED: "modelled",
    Evidence.STATIC: "static",
}
FRESHNESS_WORDS: Final = {
    Freshness.FRESH: "fresh",
    Freshness.UNVERIFIED: "unverified",
    Freshness.EDITED: "edited since the profile",
}


def count(number: int) -> str:
    """A count with its thousands apart."""
    return f"{number:,}"


def plural(number: int, noun: str, plural_noun: str | None = None) -> str:
    """``1 launch``, ``3 launches``."""
    if number == 1:
        return f"1 {noun}"
    return f"{count(number)} {plural_noun or noun + 's'}"


def reason_words(reason: str) -> str:
    """A stall reason's name as people say it."""
    return reason.replace("_", " ")


def clean(text: str) -> str:
    """The text on one line without anything that moves a cursor or reorders letters.

    Names and paths come from files that anybody can have written.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(letter) for letter in text)


def _visible(letter: str) -> str:
    if letter.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(letter) in _UNSAFE else letter


def shorten(text: str, letters: int) -> str:
    """The text, cut at a sentence or word where that leaves most of it."""
    if len(text) <= letters:
        return text
    cut = text[: letters - len(ELLIPSIS)]
    breaks = [match.start() for match in _BREAK.finditer(cut) if match.start() > len(cut) * 2 // 3]
    end = breaks[-1] if breaks else max(cut.rfind(" "), len(cut) // 2)
    return cut[:end].rstrip(" .,;:(") + ELLIPSIS


def middle_out(text: str, letters: int) -> str:
    """The text, its middle left out where it is longer: names differ at their ends."""
    if len(text) <= letters:
        return text
    letters_left = letters - len(ELLIPSIS)
    return text[: letters_left - letters_left // 2] + ELLIPSIS + text[len(text) - letters_left // 2 :]


def escape(text: str) -> str:
    """Text with nothing in it that Markdown would take for its own."""
    return _MARKDOWN.sub(r"\\\1", clean(text))


def code(text: str) -> str:
    """Text in a code span, which no text can leave: the fence is longer than any in it."""
    plain = clean(text).replace("|", "\N{BROKEN BAR}")  # a bar ends a table's cell even in a code span
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {plain} {fence}" if longest else f"`{plain}`"


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rpartition("/")[2] or path
