# SPDX-License-Identifier: Apache-2.0
"""Suppression comments of today's sources, applied to advice about the sources as they were profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpadvisor.pipeline.sources.facts import Source
from gpadvisor.pipeline.sources.found import FoundSources
from gpadvisor.source.facts import HASH_SUFFIXES, MARKER, SourceFacts, SuppressionComment
from gpadvisor.source.line_map import line_keys, match_in_order, match_moved, split_lines


def comments_as_profiled(
    sources: FoundSources, facts: Mapping[Source, SourceFacts]
) -> dict[str, tuple[SuppressionComment, ...]]:
    """Suppression comments by file, with the lines that they cover in the text that was profiled."""
    comments: dict[str, tuple[SuppressionComment, ...]] = {}
    for path, now in sources.now.items():
        found = facts[path, now].comments if (path, now) in facts else ()
        if found and path in sources.profiled and sources.profiled[path] != now:
            found = _as_profiled(path, found, now, sources.profiled[path])
        if found:
            comments[path] = found
    return comments


def _as_profiled(
    file: str, comments: Sequence[SuppressionComment], now: str, profiled: str
) -> tuple[SuppressionComment, ...]:
    """Comments with the lines they cover renumbered to the text that was profiled.

    A trailing comment changes its own line: such a line is compared without it.
    """
    lines = split_lines(now)
    tokens = ("#",) if file.lower().endswith(HASH_SUFFIXES) else ("//", "/*")
    for comment in comments:
        line = lines[comment.line - 1]
        marker = line.find(MARKER)
        index = max(line.rfind(token, 0, max(marker, 0)) for token in tokens)
        if index >= 0:
            lines[comment.line - 1] = line[:index]
    then, today = line_keys(profiled), line_keys("\n".join(lines))
    kept = match_in_order(then, today)
    known = {new + 1: old + 1 for old, new in (kept | match_moved(then, today, kept)).items()}
    return tuple(
        replace(comment, first_line=first, last_line=max(first, last))
        for comment in comments
        if (first := known.get(comment.first_line)) is not None
        and (last := known.get(comment.last_line, first)) is not None
    )
