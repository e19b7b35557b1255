# SPDX-License-Identifier: Apache-2.0
"""Where the host code of a traced run is on this machine: files by their paths, functions by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.model.timeline import HostPlace, RunFinding
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.sources import local as local_sources
from gpadvisor.pipeline.sources.lookup import FoundSources, find_sources
from gpadvisor.report.names import base_name, core_name

_HOST: Final = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hh", ".hpp", ".inl")
_MAX_BYTES: Final = 256 << 20
"""Of all sources that are read."""
_MAX_HEAD: Final = 4_000
"""Bytes from a function's name to its body."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_BEHIND: Final = re.compile(rb"\s*(?:(?:const|noexcept|override|final|->\s*[\w:<>*& ]{1,200}?)\s*)*\{")
_COMMENTED: Final = re.compile(rb"\s*(?://|\*|#)")
_SCOPE: Final = re.compile(rb"(\w+)\s*::\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostSources:
    """Findings on a run with their sources."""

    findings: tuple[RunFinding, ...]  # where the trace has functions alone, at the first line of each
    sources: FoundSources
    are_by_name: bool  # whether functions were looked for, which other sources may define tomorrow


def host_sources(findings: Sequence[RunFinding], request: Request) -> HostSources:
    """The files that the findings name, as kernels' sources are found, and the functions without a file."""
    unplaced = {place.function for place in _places(findings) if not place.line and place.function}
    defined = _definitions(unplaced, request)

    def known(place: HostPlace) -> HostPlace:
        definition = None if place.line else defined.get(place.function)
        return (
            place
            if definition is None
            else replace(place, file=definition[0], line=definition[1], is_definition=True)
        )

    placed = tuple(
        replace(
            finding,
            place=None if finding.place is None else known(finding.place),
            related=tuple(replace(related, place=known(related.place)) for related in finding.related),
        )
        for finding in findings
    )
    files = {place.file for place in _places(placed) if place.line}
    sources = find_sources(files, None, None, request)
    return HostSources(findings=placed, sources=sources, are_by_name=bool(unplaced))


def _places(findings: Sequence[RunFinding]) -> Iterator[HostPlace]:
    for finding in findings:
        if finding.place is not None:
            yield finding.place
        yield from (related.place for related in finding.related)


def _definitions(functions: set[str], request: Request) -> Mapping[str, tuple[str, int]]:
    """File and line of each function that the project defines once."""
    names = {
        function: base_name(function)
        for function in sorted(functions)
        if _NAME.fullmatch(base_name(function))
    }
    definitions: dict[str, list[tuple[bytes, str, int]]] = {}
    budget = _MAX_BYTES
    for path in local_sources.walk(request.root) if names else ():
        if path.suffix.lower() not in _HOST or not request.may_read(path):
            continue
        data = local_sources.read_source(path) or b""
        budget -= len(data)
        if budget < 0:
            break
        for name in set(names.values()):
            for scope, line in _defined(data, name.encode()):
                definitions.setdefault(name, []).append((scope, str(path.absolute()), line))
    return {
        function: place
        for function, name in names.items()
        if (place := _only(definitions.get(name, []), core_name(function))) is not None
    }


def _only(defined: Sequence[tuple[bytes, str, int]], function: str) -> tuple[str, int] | None:
    """The one definition, of several the one that is written with the function's class or namespace."""
    scopes = function.partition("<")[0].split("::")[:-1]
    if len(defined) > 1 and scopes:
        defined = [entry for entry in defined if entry[0] == scopes[-1].strip().encode()]
    return defined[0][1:] if len(defined) == 1 else None


def _defined(data: bytes, name: bytes) -> Iterator[tuple[bytes, int]]:
    """Class or namespace as written, and line, of each definition of a function; calls have no body."""
    if name not in data:
        return
    for match in re.finditer(rb"(?<![\w.])" + re.escape(name) + rb"\s*\(", data):
        line = data.rfind(b"\n", 0, match.start()) + 1
        end = _closed(data, match.end())
        if end is None or _COMMENTED.match(data, line) or not _BEHIND.match(data, end):
            continue
        scope = _SCOPE.search(data, line, match.start())
        yield (scope.group(1) if scope else b""), data.count(b"\n", 0, match.start()) + 1


def _closed(data: bytes, start: int) -> int | None:
    """Behind the parenthesis that closes the one before ``start``."""
    depth = 1
    for position in range(start, min(len(data), start + _MAX_HEAD)):
        letter = data[position : position + 1]
        depth += (letter == b"(") - (letter == b")")
        if not depth:
            return position + 1
    return None
