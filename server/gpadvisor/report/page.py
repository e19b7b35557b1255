# SPDX-License-Identifier: Apache-2.0
"""The page that text is set on: its width, its colours, the sources it can quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypedDict

from gpadvisor.model.advice import Advice, CodeRef, KernelAdvice, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence
from gpadvisor.report.style import Style
from gpadvisor.report.words import base_file, clean, pad, place, wrap
from gpadvisor.source.plausible import can_be

MIN_WIDTH: Final = 60
MAX_WIDTH: Final = 132
"""Longer lines are hard to follow, however wide the terminal is."""
LABEL: Final = 12
"""Width of the labels left of a kernel's facts."""


_ONE_ODD: Final = 1
"""A single line may be what a compiler has put an instruction on, although its text says something else."""
_NO_SOURCES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What every part of the text report needs to know about where it is printed."""

    width: int
    style: Style
    top: int | None  # suggestions shown for each kernel; None shows all
    sources: Mapping[str, str]
    local: Mapping[str, str]  # path on this machine by path in the report, where it was found
    today: Mapping[SourceLocation, int | None] = field(default_factory=dict)  # lines of another version here
    unsure: frozenset[str] = frozenset()  # files that may be another version
    wrong: frozenset[str] = frozenset()  # of them those that are, by what stands on their lines
    _lines: dict[str, Sequence[str]] = field(default_factory=dict)  # sources split once

    def quote(self, location: SourceLocation | None, code: CodeRef | None = None) -> str | None:
        """The words on a source line, where the source is at hand and the instruction can be of that line."""
        if location is None or location.file in self.wrong or self.is_doubtful(location, code):
            return None
        line = self.line(location)
        return None if line is None else line.strip() or None

    def is_doubtful(self, location: SourceLocation | None, code: CodeRef | None) -> bool:
        """Whether a line of the file here cannot be what an instruction was made of."""
        if location is None or location.file not in self.unsure or code is None:
            return False
        line = self.line(location)
        opcode = code.opcode if location == code.location else "BRA"  # of the loop around it
        return line is None or not can_be(line, opcode)

    def line(self, location: SourceLocation | None) -> str | None:
        """A source line with its indentation."""
        if location is None or location.file not in self.sources:
            return None
        if location.file not in self._lines:
            self._lines[location.file] = self.sources[location.file].splitlines()
        lines = self._lines[location.file]
        if not 1 <= location.line <= len(lines):
            return None
        return clean(lines[location.line - 1], 2_000).rstrip()

    def place(self, location: SourceLocation, width: int | None = None) -> str:
        """``file:line`` under the name that the file has on this machine, so that a click opens it."""
        line = None if location.file in self.wrong else self.today.get(location, location.line)
        if line is None:  # the file here has no such line
            gone = " as profiled"
            shortened = SourceLocation(base_file(location.file), location.line)
            return place(shortened, None if width is None else width - len(gone)) + gone
        file = self.local.get(location.file, location.file)
        return place(SourceLocation(file, line), width)

    def rule(self, char: str = "-") -> str:
        """A line across the page."""
        return self.style.quiet(char * self.width)

    def fact(self, label: str, text: str, *, margin: str = "", strong: bool = False) -> list[str]:
        """A labelled sentence."""
        if not text:
            return []
        indent = margin + " " * LABEL
        lines = wrap(text, self.width, indent, margin + pad(label, LABEL))
        words = [self.style.heading(line[len(indent) :]) if strong else line[len(indent) :] for line in lines]
        return [self.style.quiet(lines[0][: len(indent)]) + words[0], *(indent + word for word in words[1:])]

    def heading(self, text: str) -> list[str]:
        """A section's title, set apart."""
        return ["", *(self.style.heading(line) for line in wrap(text, self.width))]


def make_page(
    advice: Advice,
    *,
    width: int,
    color: bool,
    top: int | None = None,
    sources: Mapping[str, str] | None = None,
) -> Page:
    """The page for a terminal of that many columns, within what is readable."""
    return Page(
        width=min(max(width, MIN_WIDTH), MAX_WIDTH),
        style=Style(color),
        top=top,
        sources=_NO_SOURCES if sources is None else sources,
        **local_sources(advice),
    )


class LocalSources(TypedDict):
    """What a page knows of the files on this machine."""

    local: Mapping[str, str]
    today: Mapping[SourceLocation, int | None]
    unsure: frozenset[str]
    wrong: frozenset[str]


def local_sources(advice: Advice) -> LocalSources:
    """Where the sources are here, and what became of the lines that the advice names."""
    return LocalSources(
        local={match.report_path: match.local_path for match in advice.sources if match.local_path},
        today={
            SourceLocation(match.report_path, line): line_today
            for match in advice.sources
            for line, line_today in match.today
        },
        unsure=frozenset(match.report_path for match in advice.sources if match.is_unsure),
        wrong=frozenset(match.report_path for match in advice.sources if match.odd_lines > _ONE_ODD),
    )


def with_todays_lines(advice: Advice) -> Advice:
    """The advice with the lines in its sentences as they are in the files here."""
    today = local_sources(advice)["today"]
    if not today:
        return advice

    def line_today(location: SourceLocation) -> str | None:
        if location not in today:
            return None
        line = today[location]
        return f"{location.line} as profiled" if line is None else str(line)

    def with_todays_lines(suggestion: Suggestion) -> Suggestion:
        cure, words = (Sentence(text).at(line_today) for text in (suggestion.cure, suggestion.advice))
        return replace(suggestion, cure=cure, advice=words)

    def of_today(kernel: KernelAdvice) -> KernelAdvice:
        suggestions, notes = (
            tuple(map(with_todays_lines, kernel.suggestions)),
            tuple(map(with_todays_lines, kernel.notes)),
        )
        return replace(kernel, suggestions=suggestions, notes=notes)

    return replace(advice, kernels=tuple(map(of_today, advice.kernels)))
