# SPDX-License-Identifier: Apache-2.0
"""Places of a source that an edit fits, as values, and how they come back from the process that parses.

Lines count from 1, columns are code points from 0. An edit never lies in a macro, in a comment, or in a
function that the parser could not make sense of.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from gpadvisor.source import checked

NUMBER: Final = "{n}"
"""Stands in a replacement for the number that only the finding knows."""
MAX_EDIT_SITES: Final = 5_000
MAX_REPLACEMENTS: Final = 200
"""Replacements of one site; more is generated code, which nobody edits by hand."""
MAX_EDIT_TEXT: Final = 400
MAX_NAMES: Final = 32
MAX_RANGES: Final = 20_000
_MAX_LINES: Final = 2_000


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
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSite:
    """One edit, and the lines of findings that it is for."""

    kind: SiteKind
    first_line: int
    last_line: int
    more_lines: tuple[int, ...]  # outside that range: calls of the function, loops around them
    name: str  # of the function or variable that it is about; "" for a loop
    words: tuple[str, ...]  # what the title names: "0.5f", or parameters that get __restrict__
    more_words: tuple[str, ...]  # parameters that get const as well
    number: int | None  # in the source now: an unroll factor, a bound, a block size
    limit: int | None  # passes of the loop, or most threads of a block
    sure: bool  # whether the source shows the types; else the machine code has to
    exact: bool  # whether no result can change
    replacements: tuple[Replacement, ...]

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
    codes: tuple[str, ...]
    brackets: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFacts:
    """Everything that edits of one source need."""

    readable: bool = False  # False: nothing is known, so nothing is edited
    sites: tuple[EditSite, ...] = ()
    comments: tuple[CommentPlace, ...] = ()
    no_trailing: tuple[tuple[int, int], ...] = ()  # line ranges whose ends take no comment
    no_above: tuple[tuple[int, int], ...] = ()  # line ranges that no comment line can be put before

    def to_json(self) -> object:
        """Plain lists in the order of the fields."""
        sites = [[site.kind.value, *astuple(site)[1:]] for site in self.sites]
        comments = [astuple(comment) for comment in self.comments]
        return [self.readable, sites, comments, self.no_trailing, self.no_above]

    @staticmethod
    def from_json(value: object, text: str) -> EditFacts:
        """The facts about a text; anything that cannot be facts about it is a ValueError."""
        readable, sites, comments, no_trailing, no_above = checked.row(value, 5)
        lines = [len(line) for line in text.split("\n")]
        return EditFacts(
            readable=checked.flag(readable),
            sites=tuple(_site(row, lines) for row in checked.rows(sites, 12, MAX_EDIT_SITES)),
            comments=tuple(_comment(row, lines) for row in checked.rows(comments, 7, MAX_EDIT_SITES)),
            no_trailing=tuple(_range(row, lines) for row in checked.rows(no_trailing, 2, MAX_RANGES)),
            no_above=tuple(_range(row, lines) for row in checked.rows(no_above, 2, MAX_RANGES)),
        )


def _site(row: list[object], lines: list[int]) -> EditSite:
    kind, begin, end, more_lines, name, words, more_words, number, limit, sure, exact, edits = row
    first, end_line = _range([begin, end], lines)
    replacements = tuple(_replacement(entry, lines) for entry in checked.rows(edits, 5, MAX_REPLACEMENTS))
    ends = [
        (replacement.start_line, replacement.start_column, replacement.end_line, replacement.end_column)
        for replacement in replacements
    ]
    if any(after[:2] < before[2:] for before, after in pairwise(ends)):
        raise ValueError("replacements overlap")
    return EditSite(
        kind=SiteKind(kind),
        first_line=first,
        last_line=end_line,
        more_lines=tuple(
            checked.integer(line, 1, len(lines)) for line in checked.items(more_lines, _MAX_LINES)
        ),
        name=checked.text(name, MAX_EDIT_TEXT),
        words=tuple(checked.text(word, MAX_EDIT_TEXT) for word in checked.items(words, MAX_NAMES)),
        more_words=tuple(checked.text(word, MAX_EDIT_TEXT) for word in checked.items(more_words, MAX_NAMES)),
        number=_number(number),
        limit=_number(limit),
        sure=checked.flag(sure),
        exact=checked.flag(exact),
        replacements=replacements,
    )


def _replacement(row: list[object], lines: list[int]) -> Replacement:
    from_line, from_column, to_line, to_column, text = row
    start = checked.integer(from_line, 1, len(lines))
    end = checked.integer(to_line, start, len(lines))
    start_column = checked.integer(from_column, 0, lines[start - 1])
    return Replacement(
        start_line=start,
        start_column=start_column,
        end_line=end,
        end_column=checked.integer(to_column, start_column if start == end else 0, lines[end - 1]),
        text=checked.text(text, MAX_EDIT_TEXT),
    )


def _comment(row: list[object], lines: list[int]) -> CommentPlace:
    of_line, begin, end, from_column, to_column, codes, brackets = row
    line = checked.integer(of_line, 1, len(lines))
    first, end_line = _range([begin, end], lines)
    start = checked.integer(from_column, 0, lines[line - 1])
    return CommentPlace(
        line=line,
        first_line=first,
        last_line=end_line,
        start_column=start,
        end_column=checked.integer(to_column, start, lines[line - 1]),
        codes=tuple(checked.text(code, MAX_EDIT_TEXT) for code in checked.items(codes, MAX_NAMES)),
        brackets=checked.flag(brackets),
    )


def _range(row: list[object], lines: list[int]) -> tuple[int, int]:
    first = checked.integer(row[0], 1, len(lines))
    return first, checked.integer(row[1], first, len(lines))


def _number(value: object) -> int | None:
    return None if value is None else checked.integer(value, 0, 1 << 40)
