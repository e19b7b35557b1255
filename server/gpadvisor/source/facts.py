# SPDX-License-Identifier: Apache-2.0
"""What reading a source yields, as values, and how they come back from the process that parses."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from typing import Final

MARKER: Final = "gpadvisor:"
"""What every suppression comment contains."""
HASH_SUFFIXES: Final = (".py", ".pyi", ".pyx", ".jl")
"""Files with ``#`` comments, which the CUDA grammar knows nothing about."""
MAX_COMMENTS: Final = 1_000
"""Suppressions read from one file; a source has a handful."""
MAX_SITES: Final = 10_000
"""Sites of one kind in one file; only generated code has more."""
MAX_POINTERS: Final = 8
MAX_TEXT: Final = 60
MAX_REASON: Final = 400
_MAX_CODES: Final = 100
_CODE: Final = re.compile(r"GPA[0-9]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionComment:
    """One comment; lines count from 1, both ends of the covered range included."""

    codes: tuple[str, ...]  # empty where the comment names no rule code, which makes it void
    reason: str
    line: int
    first_line: int
    last_line: int

    def covers(self, line: int) -> bool:
        """Whether a line is in the covered range."""
        return self.first_line <= line <= self.last_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An expression as the source has it, shortened where it is long, and the line that it begins on."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSite:
    """A loop statement."""

    line: int
    last_line: int
    unroll: str | None  # what stands behind ``#pragma unroll``, "" where nothing does; None without a pragma


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSite:
    """A kernel's definition."""

    line: int
    last_line: int
    launch_bounds: str | None  # the arguments as written
    unrestricted: tuple[str, ...]  # the first pointer parameters without __restrict__


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What advice takes from one source; sites in source order, outer ones first."""

    comments: tuple[SuppressionComment, ...] = ()
    double_literals: tuple[Token, ...] = ()
    divisions: tuple[Token, ...] = ()  # and remainders, by something that is not a literal
    loops: tuple[LoopSite, ...] = ()
    kernels: tuple[KernelSite, ...] = ()

    def loop(self, line: int) -> LoopSite | None:
        """The innermost loop whose head begins on a line."""
        return next((site for site in reversed(self.loops) if site.line == line), None)

    def kernel(self, line: int) -> KernelSite | None:
        """The ``__global__`` function that a line is in."""
        return next((site for site in self.kernels if site.line <= line <= site.last_line), None)

    def to_json(self) -> object:
        """Plain lists in the order of the fields."""
        return astuple(self)

    @staticmethod
    def from_json(value: object, lines: int) -> SourceFacts:
        """The facts of a source with so many lines; anything that cannot be facts is a ValueError."""
        comments, literals, divisions, loops, kernels = _row(value, 5)
        return SourceFacts(
            comments=tuple(_comment(row, lines) for row in _rows(comments, 5, MAX_COMMENTS)),
            double_literals=tuple(_token(row, lines) for row in _rows(literals, 2)),
            divisions=tuple(_token(row, lines) for row in _rows(divisions, 2)),
            loops=tuple(_loop(row, lines) for row in _rows(loops, 3)),
            kernels=tuple(_kernel(row, lines) for row in _rows(kernels, 4)),
        )


def _comment(row: list[object], lines: int) -> SuppressionComment:
    codes = [_text(code) for code in _list(row[0], _MAX_CODES)]
    if not all(_CODE.fullmatch(code) for code in codes):
        raise ValueError("no rule code")
    first, last = _span(row[3], row[4], lines)
    return SuppressionComment(
        codes=tuple(codes),
        reason=_text(row[1], MAX_REASON),
        line=_line(row[2], 1, lines),
        first_line=first,
        last_line=last,
    )


def _token(row: list[object], lines: int) -> Token:
    return Token(text=_text(row[0]), line=_line(row[1], 1, lines))


def _loop(row: list[object], lines: int) -> LoopSite:
    first, last = _span(row[0], row[1], lines)
    return LoopSite(line=first, last_line=last, unroll=None if row[2] is None else _text(row[2]))


def _kernel(row: list[object], lines: int) -> KernelSite:
    first, last = _span(row[0], row[1], lines)
    return KernelSite(
        line=first,
        last_line=last,
        launch_bounds=None if row[2] is None else _text(row[2]),
        unrestricted=tuple(_text(name) for name in _list(row[3], MAX_POINTERS)),
    )


def _span(first: object, last: object, lines: int) -> tuple[int, int]:
    begin = _line(first, 1, lines)
    return begin, _line(last, begin, lines)


def _line(value: object, first: int, last: int) -> int:
    if type(value) is not int or not first <= value <= last:  # a bool is no line
        raise ValueError("no line of the source")
    return value


def _text(value: object, limit: int = MAX_TEXT) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise ValueError("no text of the length expected")
    return value


def _list(value: object, limit: int) -> list[object]:
    if not isinstance(value, list) or len(value) > limit:
        raise ValueError("no list of the length expected")
    return value


def _row(value: object, width: int) -> list[object]:
    row = _list(value, width)
    if len(row) != width:
        raise ValueError("a list is too short")
    return row


def _rows(value: object, width: int, limit: int = MAX_SITES) -> list[list[object]]:
    return [_row(row, width) for row in _list(value, limit)]
