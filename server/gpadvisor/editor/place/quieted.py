# SPDX-License-Identifier: Apache-2.0
"""Comments that were just written set findings aside at once, and are of use where any evidence says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpadvisor.editor.place.placing import PlacedFile, PlacedFinding
from gpadvisor.model.finding import ToolNote
from gpadvisor.source.facts import MARKER


def quieted(file: PlacedFile, text: str) -> PlacedFile:
    """The file with what today's comments set aside, saved or not: those behind a line and those above it."""
    if MARKER not in text or not file.findings:
        return file
    from gpadvisor.source.comments import suppression_comments  # noqa: PLC0415  # the parser, seldom needed

    comments = suppression_comments(file.path, text.encode("utf-8", "replace"), None)
    reasons = {(code, comment.first_line): comment.reason for comment in comments for code in comment.codes}

    def heard(placed: PlacedFinding) -> PlacedFinding:
        reason = reasons.get((placed.finding.code, placed.line))
        if reason is None or placed.finding.suppressed is not None:
            return placed
        return replace(placed, finding=replace(placed.finding, suppressed=reason))

    return replace(file, findings=tuple(map(heard, file.findings)))


def is_useful(note: ToolNote, file: PlacedFile, files: Iterable[PlacedFile]) -> bool:
    """Whether a comment that one analysis finds useless sets something of another one aside."""
    if note.place is None or not note.rule:
        return False
    line = file.map.now(note.place.line)[0]
    return any(
        placed.finding.code == note.rule and (placed.finding.suppressed is not None or placed.line == line)
        for placed_file in files
        for placed in placed_file.findings
    )
