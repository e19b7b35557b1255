# SPDX-License-Identifier: Apache-2.0
"""What reading a source yields, as values, and how they come back from the process that parses."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass
from typing import Final

from gpadvisor.source import checked

MARKER: Final = "gpadvisor:"
"""What every suppression comment contains."""
HASH_SUFFIXES: Final = (".py", ".pyi", ".pyx", ".jl")
"""Files with ``#`` comments, which the CUDA grammar knows nothing about."""
MAX_COMMENTS: Final = 1_000
"""Suppressions read from one file; a source has a handful."""
MAX_SITES: Final = 10_000
"""Sites of one kind in one file; only generated code has more."""
MAX_POINTERS: Final = 8
MAX_PARAMETERS: Final = 64
MAX_SIZES: Final = 3
MAX_TEXT: Final = 60
MAX_NAME: Final = 400
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
    name: str = ""  # with its namespaces, where the text tells it
    parameters: tuple[str, ...] | None = None
    """Types such as ``float**`` without qualifiers and template arguments; None where they are not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlace:
    """Where a kernel is launched."""

    kernel: str  # its plain name
    line: int
    sizes: tuple[Token, ...]  # constants that its block's size is made of, by name, where each is set
    tile: tuple[str, ...] = ()  # those of them that arrays of its kernel in shared memory have as a size, too


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What advice takes from one source; sites in source order, outer ones first."""

    comments: tuple[SuppressionComment, ...] = ()
    double_literals: tuple[Token, ...] = ()
    divisions: tuple[Token, ...] = ()  # of integers, and remainders, by something that is not a literal
    loops: tuple[LoopSite, ...] = ()
    kernels: tuple[KernelSite, ...] = ()
    launches: tuple[LaunchPlace, ...] = ()

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
        comments, literals, divisions, loops, kernels, launches = checked.row(value, 6)
        return SourceFacts(
            comments=tuple(_comment(row, lines) for row in checked.rows(comments, 5, MAX_COMMENTS)),
            double_literals=tuple(_token(row, lines) for row in checked.rows(literals, 2, MAX_SITES)),
            divisions=tuple(_token(row, lines) for row in checked.rows(divisions, 2, MAX_SITES)),
            loops=tuple(_loop(row, lines) for row in checked.rows(loops, 3, MAX_SITES)),
            kernels=tuple(_kernel(row, lines) for row in checked.rows(kernels, 6, MAX_SITES)),
            launches=tuple(_launch(row, lines) for row in checked.rows(launches, 4, MAX_SITES)),
        )


def _comment(row: list[object], lines: int) -> SuppressionComment:
    ignored, reason, line, begin, end = row
    codes = [checked.text(code, MAX_TEXT) for code in checked.items(ignored, _MAX_CODES)]
    if not all(_CODE.fullmatch(code) for code in codes):
        raise ValueError("no rule code")
    first, end_line = _span(begin, end, lines)
    return SuppressionComment(
        codes=tuple(codes),
        reason=checked.text(reason, MAX_REASON),
        line=checked.integer(line, 1, lines),
        first_line=first,
        last_line=end_line,
    )


def _token(row: list[object], lines: int) -> Token:
    text, line = row
    return Token(text=checked.text(text, MAX_TEXT), line=checked.integer(line, 1, lines))


def _loop(row: list[object], lines: int) -> LoopSite:
    begin, end, unroll = row
    first, end_line = _span(begin, end, lines)
    return LoopSite(
        line=first, last_line=end_line, unroll=None if unroll is None else checked.text(unroll, MAX_TEXT)
    )


def _kernel(row: list[object], lines: int) -> KernelSite:
    begin, end, bounds, unrestricted, name, parameters = row
    first, end_line = _span(begin, end, lines)
    return KernelSite(
        line=first,
        last_line=end_line,
        launch_bounds=None if bounds is None else checked.text(bounds, MAX_TEXT),
        unrestricted=tuple(
            checked.text(pointer, MAX_TEXT) for pointer in checked.items(unrestricted, MAX_POINTERS)
        ),
        name=checked.text(name, MAX_NAME),
        parameters=None
        if parameters is None
        else tuple(checked.text(item, MAX_TEXT) for item in checked.items(parameters, MAX_PARAMETERS)),
    )


def _launch(row: list[object], lines: int) -> LaunchPlace:
    kernel, line, sizes, tile = row
    return LaunchPlace(
        kernel=checked.text(kernel, MAX_TEXT),
        line=checked.integer(line, 1, lines),
        sizes=tuple(_token(entry, lines) for entry in checked.rows(sizes, 2, MAX_SIZES)),
        tile=tuple(checked.text(name, MAX_TEXT) for name in checked.items(tile, MAX_SIZES)),
    )


def _span(first: object, final: object, lines: int) -> tuple[int, int]:
    begin = checked.integer(first, 1, lines)
    return begin, checked.integer(final, begin, lines)
