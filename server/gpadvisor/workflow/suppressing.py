# SPDX-License-Identifier: Apache-2.0
"""Suppression comments of today's sources, applied to advice about the sources as they were profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpadvisor.advice.compare import map_lines
from gpadvisor.source.facts import SourceFacts, SuppressionComment
from gpadvisor.workflow.source_facts import Source
from gpadvisor.workflow.sources import FoundSources


def comments_as_profiled(
    sources: FoundSources, facts: Mapping[Source, SourceFacts]
) -> dict[str, tuple[SuppressionComment, ...]]:
    """Suppression comments by file, with the lines that they cover in the text that was profiled."""
    comments: dict[str, tuple[SuppressionComment, ...]] = {}
    for path, now in sources.now.items():
        found = facts[path, now].comments if (path, now) in facts else ()
        if found and path in sources.profiled and sources.profiled[path] != now:
            found = _as_profiled(found, now, sources.profiled[path])
        if found:
            comments[path] = found
    return comments


def _as_profiled(
    comments: Sequence[SuppressionComment], now: str, profiled: str
) -> tuple[SuppressionComment, ...]:
    """Comments with the lines they cover renumbered to the text that was profiled.

    A trailing comment changes its own line: such a line is compared without it.
    """
    lines = now.splitlines()
    for comment in comments:
        line = lines[comment.line - 1]
        for token in ("//", "/*", "#"):
            at = line.find(token)
            if "gpadvisor:" in line[at:] and at >= 0:
                lines[comment.line - 1] = line[:at].rstrip()
    before = "\n".join(line.rstrip() for line in profiled.splitlines())
    moved = map_lines("\n".join(line.rstrip() for line in lines), before)
    return tuple(
        replace(comment, first_line=first, last_line=max(first, last))
        for comment in comments
        if (first := moved.get(comment.first_line)) is not None
        and (last := moved.get(comment.last_line, first)) is not None
    )
