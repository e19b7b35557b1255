# SPDX-License-Identifier: Apache-2.0
"""Paths of another machine matched to files of this one, by values alone: nothing is opened here.

The order is: the same content, the same path, the longest common path suffix, then what the user mapped.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gpadvisor.model.advice import SourceMatch
from gpadvisor.model.profile import SourceText

CONTENT_HASH: Final = "content hash"
EXACT_PATH: Final = "exact path"
PATH_SUFFIX: Final = "path suffix"
SOURCE_MAP: Final = "source map"
EMBEDDED: Final = "embedded"
CODE: Final = "code"
"""The one file whose kernels and lines can be what the machine code does; given by who reads that."""
RENAMED: Final = "renamed"
"""Seen here under the report's name before, and gone since; given by who remembers that."""
AMBIGUOUS: Final = "ambiguous"
UNMATCHED: Final = "unmatched"

_WINDOWS: Final = re.compile(r"^(?:[A-Za-z]:|\\\\)")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine; ``sha256`` None where its content was not read."""

    path: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class PathMapping:
    """``--source-map OLD=NEW``: paths below the folder ``old`` are below ``new`` here."""

    old: str
    new: str

    def apply(self, path: str) -> str | None:
        """The path of this machine; None where the path is not below ``old``."""
        parts, prefix = path_parts(path), path_parts(self.old)
        if not prefix or len(parts) < len(prefix):
            return None
        windows = _WINDOWS.match(self.old) is not None
        if not _same(parts[: len(prefix)], prefix, windows=windows):
            return None
        remainder = "/".join(parts[len(prefix) :])
        if not remainder:
            return self.new
        return f"{self.new.rstrip('/')}/{remainder}" if self.new.strip("/") else f"{self.new}{remainder}"


def path_parts(path: str) -> tuple[str, ...]:
    """The components of a path of any machine, with ``.`` and ``..`` worked out.

    Backslashes separate in paths that begin with a drive or a share, and in those without any slash. The
    first component of an absolute path is ``/``.
    """
    if _WINDOWS.match(path) or "/" not in path:
        path = path.replace("\\", "/")
    parts: list[str] = ["/"] if path.startswith("/") else []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in {"..", "/"}:
            parts.pop()
        elif part not in {"", "."} and not (part == ".." and parts == ["/"]):
            parts.append(part)
    return tuple(parts)


def mapped_paths(path: str, mappings: Sequence[PathMapping]) -> tuple[str, ...]:
    """Where the mappings say that a path is, the most specific one first."""
    longest_first = sorted(mappings, key=lambda mapping: -len(path_parts(mapping.old)))
    mapped = (mapping.apply(path) for mapping in longest_first)
    return tuple(dict.fromkeys(path for path in mapped if path is not None))


def match_sources(
    sources: Iterable[SourceText], local: Iterable[LocalFile], mappings: Sequence[PathMapping] = ()
) -> tuple[SourceMatch, ...]:
    """How each path of a report is found on this machine, and by which rule.

    Of several files with the same content, or the same longest suffix, none is chosen: the source is then
    ambiguous, unless a mapping names one of them. A source without a file is ``embedded`` where the report
    carries its text.

    Args:
        sources: Paths that the report or the line table names, with hash and text where it has them.
        local: Files that may be meant; the caller has looked for them, also where the mappings point.
        mappings: What ``--source-map`` says.
    """
    index = _Index(local)
    return tuple(_match(source, index, mappings) for source in sources)


class _Index:
    def __init__(self, local: Iterable[LocalFile]) -> None:
        self.by_hash: dict[str, list[LocalFile]] = defaultdict(list)
        self.by_name: dict[str, list[LocalFile]] = defaultdict(list)
        self.by_parts: dict[tuple[str, ...], LocalFile] = {}
        for file in dict.fromkeys(local):
            parts = path_parts(file.path)
            if not parts or parts in self.by_parts:
                continue
            self.by_parts[parts] = file
            self.by_name[parts[-1].casefold()].append(file)
            if file.sha256 is not None:
                self.by_hash[file.sha256].append(file)


def _match(source: SourceText, index: _Index, mappings: Sequence[PathMapping]) -> SourceMatch:
    parts = path_parts(source.path)
    if not parts:
        return SourceMatch(report_path=source.path, local_path=None, method=UNMATCHED)
    windows = _WINDOWS.match(source.path) is not None
    ambiguous = False
    same = index.by_hash.get(source.sha256, []) if source.sha256 is not None else []
    if same:
        best = _longest_suffix(parts, same, windows=windows, least=0)
        if len(best) == 1:
            return SourceMatch(report_path=source.path, local_path=best[0].path, method=CONTENT_HASH)
        ambiguous = True
    exact = index.by_parts.get(parts)
    if exact is not None:
        return _found(source, exact, EXACT_PATH)
    if not ambiguous:
        best = _longest_suffix(parts, index.by_name.get(parts[-1].casefold(), []), windows=windows, least=1)
        if len(best) == 1:
            return _found(source, best[0], PATH_SUFFIX)
        ambiguous = len(best) > 1
    for path in mapped_paths(source.path, mappings):
        mapped = index.by_parts.get(path_parts(path))
        if mapped is not None:
            return _found(source, mapped, SOURCE_MAP)
    if ambiguous:
        return SourceMatch(report_path=source.path, local_path=None, method=AMBIGUOUS)
    method = UNMATCHED if source.text is None else EMBEDDED
    return SourceMatch(report_path=source.path, local_path=None, method=method)


def _found(source: SourceText, file: LocalFile, method: str) -> SourceMatch:
    differs = source.sha256 is not None and file.sha256 is not None and source.sha256 != file.sha256
    return SourceMatch(report_path=source.path, local_path=file.path, method=method, differs=differs)


def _longest_suffix(
    parts: tuple[str, ...], files: Sequence[LocalFile], *, windows: bool, least: int
) -> list[LocalFile]:
    """The files that share most components with the path, counted from its end; at least ``least``."""
    lengths = [_common_suffix(parts, path_parts(file.path), windows=windows) for file in files]
    longest = max(lengths, default=0)
    if longest < least:
        return []
    return [file for file, length in zip(files, lengths, strict=True) if length == longest]


def _common_suffix(left: Sequence[str], right: Sequence[str], *, windows: bool) -> int:
    length = 0
    for left_part, right_part in zip(reversed(left), reversed(right), strict=False):
        if not _same((left_part,), (right_part,), windows=windows):
            break
        length += 1
    return length


def _same(left: Sequence[str], right: Sequence[str], *, windows: bool) -> bool:
    if windows:  # file names of that system do not differ by case
        return [part.casefold() for part in left] == [part.casefold() for part in right]
    return list(left) == list(right)
