# SPDX-License-Identifier: Apache-2.0
"""A file's findings and samples in today's text: unchanged and moved lines keep theirs, nothing is lost.

Called while one types, in a thread of the server's own process: time is bounded however the text looks.
"""

from __future__ import annotations

import ntpath
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from gpadvisor.model.finding import BaselineKind, FileAnalysis, Finding, Freshness, LineData, Place, Related
from gpadvisor.model.ids import SourceLocation
from gpadvisor.source.facts import HASH_SUFFIXES
from gpadvisor.source.line_map import line_keys, match_in_order, match_moved, split_lines

MAX_CHARACTERS: Final = 32 << 20
MAX_LINES: Final = 400_000
"""Of a text that is compared with its baseline; in a longer one every line counts as edited."""
_SIMILAR: Final = 0.4
_MAX_GAP: Final = 40
_MAX_PAIRS: Final = 20_000
"""Pairs of lines whose likeness is looked at, over all gaps; about a tenth of a second."""
_MAX_HEAD: Final = 240
"""Characters of a line by which its likeness is told."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFinding:
    """A finding where it stands today."""

    finding: Finding
    line: int  # from 1
    start: int  # column of the expression, else of the line's first letter; from 0, in code points
    end: int  # behind the expression, else behind the line's last letter
    freshness: Freshness
    moved: bool  # the line stands elsewhere, in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLine:
    """A line's samples in one kernel where it stands today."""

    data: LineData
    line: int
    freshness: Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMap:
    """Where each line of the baseline is today; a line that was deleted is where it would stand."""

    line_count: int  # of today's text
    kept: Mapping[int, int]  # unchanged lines
    moved: Mapping[int, int]  # unchanged lines in another order
    edited: Mapping[int, int]  # lines with another text
    kind: BaselineKind
    _survivors: tuple[tuple[int, int], ...] = ()  # of kept, in order

    def now(self, line: int) -> tuple[int, Freshness]:
        """Today's line and what is known of it."""
        if self.kind is BaselineKind.UNKNOWN:
            inside = 1 <= line <= self.line_count
            return self._clipped(line), Freshness.UNVERIFIED if inside else Freshness.EDITED
        same = self.kept.get(line) or self.moved.get(line)
        if same is not None:
            return same, Freshness.UNVERIFIED if self.kind is BaselineKind.HASHED else Freshness.FRESH
        near = self.edited.get(line)
        return (self._between(line) if near is None else near), Freshness.EDITED

    def is_deleted(self, line: int) -> bool:
        """Whether nothing of the line is left."""
        if self.kind is BaselineKind.UNKNOWN:
            return not 1 <= line <= self.line_count
        return line not in self.kept and line not in self.moved and line not in self.edited

    def _between(self, line: int) -> int:
        """Next to the nearest line before it that is left."""
        index = bisect_right(self._survivors, (line, 0)) - 1
        if index < 0:
            return 1
        return self._clipped(self._survivors[index][1] + 1)

    def _clipped(self, line: int) -> int:
        return min(max(line, 1), self.line_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFile:
    """A file's findings and samples in today's text; with the deleted ones they are all there were."""

    path: str
    local: str | None
    baseline_kind: BaselineKind
    findings: tuple[PlacedFinding, ...]  # by line
    lines: tuple[PlacedLine, ...]  # by line
    deleted_findings: tuple[PlacedFinding, ...]  # ``line`` is where they would stand
    deleted_lines: tuple[PlacedLine, ...]
    map: LineMap

    @property
    def samples(self) -> int:
        """Every sample in this file, whatever became of its line."""
        return sum(entry.data.samples for entry in (*self.lines, *self.deleted_lines))

    @property
    def stale_samples(self) -> int:
        """Samples on lines that were edited or deleted since."""
        edited = (entry for entry in self.lines if entry.freshness is Freshness.EDITED)
        return sum(entry.data.samples for entry in (*edited, *self.deleted_lines))

    @property
    def stale_findings(self) -> int:
        """Findings on lines that were edited or deleted since."""
        return len(self.deleted_findings) + sum(
            1 for entry in self.findings if entry.freshness is Freshness.EDITED
        )


def place(file: FileAnalysis, text: str) -> PlacedFile:
    """Put a file's findings and samples into today's text.

    Args:
        file: With lines of its baseline.
        text: The file as it is now, saved or not.
    """
    lines = split_lines(text)
    result = line_map(file, text)
    findings = sorted((_placed(finding, result, lines) for finding in file.findings), key=_order)
    samples = sorted((_placed_line(entry, result) for entry in file.lines), key=lambda entry: entry.line)
    return PlacedFile(
        path=file.path,
        local=file.local,
        baseline_kind=file.baseline_kind,
        findings=tuple(placed for placed in findings if not result.is_deleted(placed.finding.line)),
        lines=tuple(sample for sample in samples if not result.is_deleted(sample.data.line)),
        deleted_findings=tuple(placed for placed in findings if result.is_deleted(placed.finding.line)),
        deleted_lines=tuple(
            placed_line for placed_line in samples if result.is_deleted(placed_line.data.line)
        ),
        map=result,
    )


def line_map(file: FileAnalysis, text: str) -> LineMap:
    """Where each line of a file's baseline is in today's text."""
    lines = _line_count(text)
    if file.baseline is None or file.baseline_kind is BaselineKind.UNKNOWN:
        return LineMap(line_count=lines, kept={}, moved={}, edited={}, kind=BaselineKind.UNKNOWN)
    before = _line_count(file.baseline)
    unchanged: dict[int, int] = {}
    moved: dict[int, int] = {}
    edited: dict[int, int] = {}
    if text == file.baseline:
        unchanged = {line: line for line in range(1, lines + 1)}
    elif max(len(text), len(file.baseline)) > MAX_CHARACTERS or max(lines, before) > MAX_LINES:
        edited = {line: min(line, lines) for line in range(1, before + 1)}
    else:
        comment = "#" if file.path.lower().endswith(HASH_SUFFIXES) else "//"
        unchanged, moved, edited = _compared(file.baseline, text, comment)
    return LineMap(
        line_count=lines,
        kept=unchanged,
        moved=moved,
        edited=edited,
        kind=file.baseline_kind,
        _survivors=tuple(sorted(unchanged.items())),
    )


def _line_count(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n") + 1


@lru_cache(maxsize=8)
def _baseline_keys(text: str, comment: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The keys of a text's lines, and by line."""
    keys = line_keys(text, comment=comment)
    return keys, MappingProxyType(dict(zip(split_lines(text), keys, strict=True)))


@lru_cache(maxsize=4)
def _compared(
    baseline: str, text: str, comment: str
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Lines kept, moved and edited; several profiles of one source have the same baseline."""
    old, replaced = _baseline_keys(baseline, comment)
    new = line_keys(text, replaced, comment)
    unchanged = match_in_order(old, new)
    moved = match_moved(old, new, unchanged)
    edited = _edited(old, new, unchanged, moved)
    return _from_one(unchanged), _from_one(moved), _from_one(edited)


def _from_one(mapping: Mapping[int, int]) -> dict[int, int]:
    return {old + 1: new + 1 for old, new in mapping.items()}


def _edited(
    old: Sequence[str], new: Sequence[str], unchanged: Mapping[int, int], moved: Mapping[int, int]
) -> dict[int, int]:
    """Lines whose text is another now: by likeness to the lines that stand in their place, else in order."""
    claimed = set(moved.values())
    result: dict[int, int] = {}
    start_old = start_new = 0
    pairs_left = _MAX_PAIRS
    for at_old, at_new in (*sorted(unchanged.items()), (len(old), len(new))):
        if at_old > start_old and at_new > start_new:
            gone = [index for index in range(start_old, at_old) if index not in moved and old[index]]
            came = [
                position for position in range(start_new, at_new) if position not in claimed and new[position]
            ]
            pairs_left -= len(gone) * len(came)
            alike = pairs_left >= 0 and len(gone) <= _MAX_GAP and len(came) <= _MAX_GAP
            result.update(_paired(old, new, gone, came) if alike else zip(gone, came, strict=False))
        start_old, start_new = at_old + 1, at_new + 1
    return result


def _paired(old: Sequence[str], new: Sequence[str], gone: list[int], came: list[int]) -> dict[int, int]:
    """Lines that went with lines that came: the most alike first, the rest in order."""
    before = {index: _words(old[index]) for index in gone}
    after = {position: _words(new[position]) for position in came}
    likeness = sorted((-_likeness(before[a], after[b]), abs(a - b), a, b) for a in gone for b in came)
    pairs: dict[int, int] = {}
    used: set[int] = set()
    for negative, _, a, b in likeness:
        if -negative >= _SIMILAR and a not in pairs and b not in used:
            pairs[a] = b
            used.add(b)
    unpaired = (line for line in came if line not in used)
    pairs.update(zip((line for line in gone if line not in pairs), unpaired, strict=False))
    return pairs


def _words(line: str) -> frozenset[str]:
    """Words and pairs of letters, of a line without white space."""
    head = line[:_MAX_HEAD]
    return frozenset(_WORD.findall(head)).union(map("".join, pairwise(head)))


def _likeness(first: frozenset[str], second: frozenset[str]) -> float:
    """Share of what both have: the Dice coefficient."""
    shared = first & second
    return 2 * len(shared) / (len(first) + len(second)) if shared else 0.0


def _placed(finding: Finding, lines_today: LineMap, lines: Sequence[str]) -> PlacedFinding:
    line, freshness = lines_today.now(finding.line)
    text = lines[line - 1] if line <= len(lines) else ""
    fresh = freshness is not Freshness.EDITED
    start, end = extent(text, finding.token if fresh else None)
    return PlacedFinding(
        finding=finding,
        line=line,
        start=start,
        end=end,
        freshness=freshness,
        moved=finding.line in lines_today.moved,
    )


def _placed_line(data: LineData, lines_today: LineMap) -> PlacedLine:
    line, freshness = lines_today.now(data.line)
    return PlacedLine(data=data, line=line, freshness=freshness)


def _order(entry: PlacedFinding) -> tuple[int, int, str, str]:
    return entry.line, -entry.finding.samples, entry.finding.code, entry.finding.id


def extent(line: str, token: str | None) -> tuple[int, int]:
    """Columns of an expression on a line where it stands there once, else of all that is not white space."""
    if token:
        index = line.find(token)
        if 0 <= index == line.rfind(token):
            return index, index + len(token)
    start = len(line) - len(line.lstrip())
    return start, max(len(line.rstrip()), start)


def place_now(place_then: Place, files: Mapping[str, PlacedFile]) -> Place:
    """A place of the baseline in today's text, as far as its file is among those placed."""
    file = files.get(place_then.file)
    return place_then if file is None else replace(place_then, line=file.map.now(place_then.line)[0])


def lines_today(files: Mapping[str, PlacedFile]) -> Callable[[SourceLocation], str | None]:
    """Today's number of a line of the baseline; None where its file is not among those placed.

    Line tables spell a path in several ways: the only other one with its name is taken for it.
    """
    by_name: dict[str, list[PlacedFile]] = {}
    for path, file in files.items():
        by_name.setdefault(ntpath.basename(path), []).append(file)

    def line_today(then: SourceLocation) -> str | None:
        namesakes = [files[then.file]] if then.file in files else by_name.get(ntpath.basename(then.file), [])
        return str(namesakes[0].map.now(then.line)[0]) if len(namesakes) == 1 else None

    return line_today


def related_now(
    related: Sequence[Related], files: Mapping[str, PlacedFile], own_place: Place | None = None
) -> tuple[Related, ...]:
    """Related places in today's texts; one whose line was edited says so, but for the ``own`` line."""
    return tuple(_related_now(entry, files, own_place) for entry in related)


def _related_now(entry: Related, files: Mapping[str, PlacedFile], own_place: Place | None) -> Related:
    file = files.get(entry.place.file)
    if file is None:
        return entry
    line, freshness = file.map.now(entry.place.line)
    edited = freshness is Freshness.EDITED and entry.place != own_place
    sentence = f"{entry.message} (edited since the profile)" if edited else entry.message
    return Related(place=replace(entry.place, line=line), message=sentence)
