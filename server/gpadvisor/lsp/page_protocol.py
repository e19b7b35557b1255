# SPDX-License-Identifier: Apache-2.0
"""The part of ``protocol`` that is about a whole profile, and about two of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareParams:
    """Request to the server: two profiles, from before a change and from after it."""

    before: str  # uri
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareLine:
    """A line of today's text whose time is another one in the second profile."""

    uri: str
    line: int
    change_ns: float  # gained (negative) or lost (positive), over all kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareResult:
    """What lines have gained or lost; the page of the second profile has the rest."""

    lines: list[CompareLine]  # largest change first


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParams:
    """Request to the server: everything about a profile as one page (docs/page.md)."""

    uri: str | None = None  # of a profile, or of a source that one names; None: the newest profile
    before: str | None = None  # uri of an earlier profile to compare with
    known: str | None = None  # digest of the document that the client has


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLines:
    """Lines of a page's text that follow each other in today's, too."""

    then: int
    now: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A source file of a page, by its position there."""

    uri: str | None  # None: not on this machine
    lines: list[PageLines]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageResult:
    """The page's document, and where its lines are today."""

    uri: str  # of what it is about
    digest: str
    document: str | None  # JSON (gpadvisor.page/1); None where it is the known one
    files: list[PageFile]
