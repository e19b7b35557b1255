# SPDX-License-Identifier: Apache-2.0
"""Suggestions as what fixes are looked up by."""

from __future__ import annotations

from collections.abc import Collection

from gpadvisor.cubin import demangle
from gpadvisor.model.advice import Suggestion
from gpadvisor.model.finding import Finding, Place
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence


def suggestion_lines(suggestion: Suggestion, names: Collection[str]) -> list[int]:
    """Lines of a file, by its names, that a suggestion stands on: its scope's first, then by samples."""
    spots: list[SourceLocation | None] = [suggestion.scope.location]
    for hotspot in suggestion.hotspots:
        for code in (hotspot.use, hotspot.definition):
            if code is not None:
                spots += [code.location, *(frame.call_site for frame in code.inline)]
    return list(dict.fromkeys(spot.line for spot in spots if spot is not None and spot.file in names))


def as_finding(suggestion: Suggestion, kernel: str, line: int) -> Finding:
    """A suggestion for a kernel (mangled) on one of its lines, as fixes are looked up by."""
    location = suggestion.scope.location
    scope = None if location is None else Place(file=location.file, line=location.line)
    return Finding(
        id=suggestion.code,
        code=suggestion.code,
        slug=suggestion.slug,
        name=suggestion.name,
        title=suggestion.title,
        message="",
        advice=Sentence(suggestion.advice),
        remedies=suggestion.remedies,
        leads=True,
        line=line,
        token=None,
        kernel=kernel,
        kernel_name=demangle(kernel),
        evidence=suggestion.evidence,
        samples=suggestion.matched_samples,
        importance=suggestion.importance,
        matched=suggestion.importance,
        speedup=None,
        parts=(),
        related=(),
        scope=scope,
    )
