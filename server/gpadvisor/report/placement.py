# SPDX-License-Identifier: Apache-2.0
"""Where a service shows a suggestion: a line of a file in the repository, a changed one if there is one."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.advice import Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.report.entries import primary
from gpadvisor.report.page import Page

_DRIVE: Final = re.compile(r"^[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What places are relative to, and what of it was changed."""

    root: str  # absolute folder
    folder: str = ""  # absolute one that relative paths of this machine start from; the root where empty
    changed: Mapping[str, tuple[tuple[int, int], ...]] | None = None
    """First and last line of each changed part, by path below the root; None where nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryPlaces:
    """Places of suggestions in a repository; without one all lines are places."""

    page: Page
    repository: Repository | None

    def below(self, file: str) -> str | None:
        """The path below the root, with slashes, of a file of a line table; None where it lies elsewhere."""
        local = self.page.local.get(file)
        if self.repository is None:
            return None
        path = file if local is None else local
        if not is_absolute(path) and local is not None and self.repository.folder:
            path = f"{self.repository.folder}/{path}"
        if is_absolute(path):
            path = _below(path, self.repository.root)
        plain = posixpath.normpath(path.replace("\\", "/") if "/" not in path else path)
        outside = is_absolute(path) or plain.startswith("../") or plain in {".", ".."}
        return None if outside else plain

    def line(self, location: SourceLocation) -> int | None:
        """The line as it is in the file here; None where the file here is another version without it."""
        return None if location.file in self.page.wrong else self.page.today.get(location, location.line)

    def of(self, suggestion: Suggestion) -> SourceLocation | None:
        """The place to show it at, as profiled: a changed end of a dependency, else the first of them."""
        usable = [place for place in dict.fromkeys(_candidates(suggestion)) if self._is_usable(place)]
        return next(filter(self._is_changed, usable), usable[0] if usable else None)

    def _is_usable(self, location: SourceLocation) -> bool:
        inside = self.repository is None or self.below(location.file) is not None
        return inside and (self.line(location) or 0) > 0

    def _is_changed(self, location: SourceLocation) -> bool:
        if self.repository is None or not self.repository.changed:
            return False
        parts = self.repository.changed.get(self.below(location.file) or "", ())
        line = self.line(location) or 0
        return any(first <= line <= end for first, end in parts)


def is_absolute(path: str) -> bool:
    """Whether a path of any system is absolute."""
    return path.startswith(("/", "\\\\")) or _DRIVE.match(path) is not None


def _candidates(suggestion: Suggestion) -> Iterator[SourceLocation]:
    """The primary place, then both ends of each dependency with the calls that they were inlined at."""
    first = primary(suggestion)
    if first is not None:
        yield first
    ends = [code for spot in suggestion.hotspots for code in (spot.definition, spot.use) if code is not None]
    yield from (code.location for code in ends if code.location is not None)
    yield from (frame.call_site for code in ends for frame in code.inline)
    if suggestion.scope.location is not None:
        yield suggestion.scope.location


def _below(path: str, root: str) -> str:
    """The path relative to the root where it lies below it."""
    windows = _DRIVE.match(root) is not None
    plain = path.replace("\\", "/") if windows else path
    prefix = (root.replace("\\", "/") if windows else root).rstrip("/") + "/"
    inside = plain.lower().startswith(prefix.lower()) if windows else plain.startswith(prefix)
    return plain[len(prefix) :] if inside and len(plain) > len(prefix) else path
