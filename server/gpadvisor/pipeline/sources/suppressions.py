# SPDX-License-Identifier: Apache-2.0
"""Suppression comments of today's sources, applied to advice about the sources as they were profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpadvisor.pipeline.sources.facts import PathText
from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.source.facts import HASH_SUFFIXES, MARKER, SourceFacts, SuppressionComment
from gpadvisor.source.line_map import line_keys, match_in_order, match_moved, split_lines


def comments_as_profiled(
    sources: FoundSources, facts: Mapping[PathText, SourceFacts]
) -> dict[str, tuple[SuppressionComment, ...]]:
    """Suppression comments by file, with the lines that they cover in the text that was profiled."""
    comments: dict[str, tuple[SuppressionComment, ...]] = {}
    for path, text_today in sources.now.items():
        of_file = facts[path, text_today].comments if (path, text_today) in facts else ()
        if of_file and path in sources.profiled and sources.profiled[path] != text_today:
            of_file = _as_profiled(path, of_file, text_today, sources.profiled[path])
        if of_file:
            comments[path] = of_file
    return comments


def _as_profiled(
    file: str, comments: Sequence[SuppressionComment], text_today: str, profiled: str
) -> tuple[SuppressionComment, ...]:
    """Comments with the lines they cover renumbered to the text that was profiled.

    A trailing comment changes its own line: such a line is compared without it.
    """
    lines = split_lines(text_today)
    tokens = ("#",) if file.lower().endswith(HASH_SUFFIXES) else ("//", "/*")
    for comment in comments:
        line = lines[comment.line - 1]
        marker = line.find(MARKER)
        index = max(line.rfind(token, 0, max(marker, 0)) for token in tokens)
        if index >= 0:
            lines[comment.line - 1] = line[:index]
    then, today = line_keys(profiled), line_keys("\n".join(lines))
    in_order = match_in_order(then, today)
    old_line_of = {new + 1: old + 1 for old, new in (in_order | match_moved(then, today, in_order)).items()}
    return tuple(
        replace(comment, first_line=first, last_line=max(first, end))
        for comment in comments
        if (first := old_line_of.get(comment.first_line)) is not None
        and (end := old_line_of.get(comment.last_line, first)) is not None
    )
