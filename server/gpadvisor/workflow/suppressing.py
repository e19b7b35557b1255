# SPDX-License-Identifier: Apache-2.0
"""Suppression comments of today's sources, applied to advice about the sources as they were profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpadvisor.advice.compare import map_lines
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.problem import Problem
from gpadvisor.source import SuppressionComment, apply_suppressions, suppression_comments
from gpadvisor.workflow.sources import FoundSources


def suppress(
    kernels: Sequence[KernelAdvice], sources: FoundSources, analysed_lines: Mapping[str, set[int]]
) -> tuple[tuple[KernelAdvice, ...], tuple[Problem, ...]]:
    """The kernels with suppressed suggestions marked, and the comments that suppress nothing."""
    comments: dict[str, tuple[SuppressionComment, ...]] = {}
    for path, text in sources.texts.items():
        now = sources.local.get(path, text)
        found = suppression_comments(path, now)
        if found and path in sources.profiled and sources.profiled[path] != now:
            found = _as_profiled(found, now, sources.profiled[path])
        if found:
            comments[path] = found
    return apply_suppressions(kernels, comments, analysed_lines=analysed_lines)


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
