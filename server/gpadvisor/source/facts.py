# SPDX-License-Identifier: Apache-2.0
"""What reading a source yields, as values that come back from the process that parses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from gpadvisor.sandbox.codec import MaxLength

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
_Text: TypeAlias = Annotated[str, MaxLength(MAX_TEXT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionComment:
    """One comment; lines count from 1, both ends of the covered range included."""

    codes: Annotated[
        tuple[str, ...], MaxLength(_MAX_CODES)
    ]  # none where no rule is named, which makes it void
    reason: Annotated[str, MaxLength(MAX_REASON)]
    line: int
    first_line: int
    last_line: int

    def covers(self, line: int) -> bool:
        """Whether a line is in the covered range."""
        return self.first_line <= line <= self.last_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """An expression as the source has it, shortened where it is long, and the line that it begins on."""

    text: _Text
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSite:
    """A loop statement."""

    line: int
    last_line: int
    unroll: _Text | None
    """What stands behind ``#pragma unroll``, "" where nothing does; None without a pragma."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSite:
    """A kernel's definition."""

    line: int
    last_line: int
    launch_bounds: _Text | None  # the arguments as written
    unrestricted: Annotated[tuple[_Text, ...], MaxLength(MAX_POINTERS)]
    """The first pointer parameters without __restrict__."""
    name: Annotated[str, MaxLength(MAX_NAME)] = ""  # with its namespaces, where the text tells it
    parameters: Annotated[tuple[_Text, ...], MaxLength(MAX_PARAMETERS)] | None = None
    """Types such as ``float**`` without qualifiers and template arguments; None where they are not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlace:
    """Where a kernel is launched."""

    kernel: _Text  # its plain name
    line: int
    sizes: Annotated[tuple[Token, ...], MaxLength(MAX_SIZES)]
    """Constants that its block's size is made of, by name, where each is set."""
    tile: Annotated[tuple[_Text, ...], MaxLength(MAX_SIZES)] = ()
    """Those of them that arrays of its kernel in shared memory have as a size, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What advice takes from one source; sites in source order, outer ones first."""

    comments: Annotated[tuple[SuppressionComment, ...], MaxLength(MAX_COMMENTS)] = ()
    double_literals: Annotated[tuple[Token, ...], MaxLength(MAX_SITES)] = ()
    divisions: Annotated[tuple[Token, ...], MaxLength(MAX_SITES)] = ()
    """Of integers, and remainders, by something that is not a literal."""
    loops: Annotated[tuple[LoopSite, ...], MaxLength(MAX_SITES)] = ()
    kernels: Annotated[tuple[KernelSite, ...], MaxLength(MAX_SITES)] = ()
    launches: Annotated[tuple[LaunchPlace, ...], MaxLength(MAX_SITES)] = ()

    def loop(self, line: int) -> LoopSite | None:
        """The innermost loop whose head begins on a line."""
        return next((site for site in reversed(self.loops) if site.line == line), None)

    def kernel(self, line: int) -> KernelSite | None:
        """The ``__global__`` function that a line is in."""
        return next((site for site in self.kernels if site.line <= line <= site.last_line), None)

    def of_text(self, lines: int) -> SourceFacts:
        """The same, if they can be facts of a text with so many lines; a ValueError otherwise."""
        if not all(1 <= first <= last <= lines for first, last in self._spans()):
            raise ValueError("facts of other lines than the text has")
        if not all(_CODE.fullmatch(code) for comment in self.comments for code in comment.codes):
            raise ValueError("no rule code")
        return self

    def _spans(self) -> Iterator[tuple[int, int]]:
        for loop in self.loops:
            yield loop.line, loop.last_line
        for kernel in self.kernels:
            yield kernel.line, kernel.last_line
        for comment in self.comments:
            yield from ((comment.line, comment.line), (comment.first_line, comment.last_line))
        for launch in self.launches:
            yield launch.line, launch.line
            yield from ((size.line, size.line) for size in launch.sizes)
        for token in (*self.double_literals, *self.divisions):
            yield token.line, token.line
