# SPDX-License-Identifier: Apache-2.0
"""Places of a source that an edit fits, as values that come back from the process that parses.

Lines count from 1, columns are code points from 0. An edit never lies in a macro, in a comment, or in a
function that the parser could not make sense of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Annotated, Final, TypeAlias

from gpadvisor.sandbox.codec import MaxLength

NUMBER: Final = "{n}"
"""Stands in a replacement for the number that only the finding knows."""
MAX_EDIT_SITES: Final = 5_000
MAX_REPLACEMENTS: Final = 200
"""Replacements of one site; more is generated code, which nobody edits by hand."""
MAX_EDIT_TEXT: Final = 400
MAX_NAMES: Final = 32
MAX_RANGES: Final = 20_000
_MAX_LINES: Final = 2_000
_MOST: Final = 1 << 40
_Text: TypeAlias = Annotated[str, MaxLength(MAX_EDIT_TEXT)]
_LineRanges: TypeAlias = Annotated[tuple[tuple[int, int], ...], MaxLength(MAX_RANGES)]


class SiteKind(Enum):
    """What an edit does."""

    FLOAT_LITERALS = "float_literals"  # f suffix on double literals among float operands
    RECIPROCAL = "reciprocal"  # of a divisor that a loop does not change
    KEEP_ELEMENT = "keep_element"  # in a variable while a loop runs that writes it in every pass
    BOTH_SIDES = "both_sides"  # & for && between comparisons of neighbours
    UNROLL = "unroll"  # a pragma before a loop
    RESTRICT = "restrict"  # __restrict__ and const on pointer parameters
    GRID_CONSTANT = "grid_constant"  # parameters that are read where they are passed
    LAUNCH_BOUNDS = "launch_bounds"
    FORCE_INLINE = "force_inline"
    NO_INLINE = "no_inline"
    BLOCK_SIZE = "block_size"  # the constant that a kernel is launched with


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Text in place of a range."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
    text: _Text

    @property
    def start(self) -> tuple[int, int]:
        """Line and column."""
        return self.start_line, self.start_column

    @property
    def end(self) -> tuple[int, int]:
        """Line and column behind it."""
        return self.end_line, self.end_column


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSite:
    """One edit, and the lines of findings that it is for."""

    kind: SiteKind
    first_line: int
    last_line: int
    more_lines: Annotated[tuple[int, ...], MaxLength(_MAX_LINES)]
    """Outside that range: calls of the function, loops around them."""
    name: _Text  # of the function or variable that it is about; "" for a loop
    words: Annotated[tuple[_Text, ...], MaxLength(MAX_NAMES)]
    """What the title names: "0.5f", or parameters that get __restrict__."""
    more_words: Annotated[tuple[_Text, ...], MaxLength(MAX_NAMES)]  # parameters that get const as well
    number: int | None  # in the source now: an unroll factor, a bound, a block size
    limit: int | None  # passes of the loop, or most threads of a block
    sure: bool  # whether the source shows the types; else the machine code has to
    exact: bool  # whether no result can change
    replacements: Annotated[tuple[Replacement, ...], MaxLength(MAX_REPLACEMENTS)]

    def is_for(self, line: int) -> bool:
        """Whether a finding on a line is about this place."""
        return self.first_line <= line <= self.last_line or line in self.more_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentPlace:
    """A suppression comment that more codes can be written into."""

    line: int  # of the comment
    first_line: int  # that it covers
    last_line: int
    start_column: int  # of the codes in their brackets; where brackets are missing, of the place for them
    end_column: int
    codes: Annotated[tuple[_Text, ...], MaxLength(MAX_NAMES)]
    brackets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFacts:
    """Everything that edits of one source need."""

    readable: bool = False  # False: nothing is known, so nothing is edited
    sites: Annotated[tuple[EditSite, ...], MaxLength(MAX_EDIT_SITES)] = ()
    comments: Annotated[tuple[CommentPlace, ...], MaxLength(MAX_EDIT_SITES)] = ()
    no_trailing: _LineRanges = ()  # whose ends take no comment
    no_above: _LineRanges = ()  # that no comment line can be put before

    def of_text(self, text: str) -> EditFacts:
        """The same, if they can be facts about a text; a ValueError otherwise."""
        widths = [len(line) for line in text.split("\n")]
        for first, last in self._line_ranges():
            if not 1 <= first <= last <= len(widths):
                raise ValueError("no range of lines of the text")
        for start, end in self._ranges():
            for line, column in (start, end):
                if not (1 <= line <= len(widths) and 0 <= column <= widths[line - 1]):
                    raise ValueError("no range of the text")
            if start > end:
                raise ValueError("a range ends before it begins")
        for site in self.sites:
            if any(after.start < before.end for before, after in pairwise(site.replacements)):
                raise ValueError("replacements overlap")
            if not all(0 <= (number or 0) <= _MOST for number in (site.number, site.limit)):
                raise ValueError("a number that no edit has")
        return self

    def _line_ranges(self) -> Iterator[tuple[int, int]]:
        yield from (*self.no_trailing, *self.no_above)
        for comment in self.comments:
            yield comment.first_line, comment.last_line
        for site in self.sites:
            yield site.first_line, site.last_line
            yield from ((line, line) for line in site.more_lines)

    def _ranges(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for comment in self.comments:
            yield (comment.line, comment.start_column), (comment.line, comment.end_column)
        for site in self.sites:
            yield from ((replacement.start, replacement.end) for replacement in site.replacements)
