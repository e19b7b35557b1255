# SPDX-License-Identifier: Apache-2.0
"""Comments of today's text, on the lines that were profiled."""

from __future__ import annotations

import pytest

from gpadvisor.pipeline.sources.lookup import FoundSources
from gpadvisor.pipeline.sources.suppressions import comments_as_profiled
from gpadvisor.source.facts import SourceFacts, SuppressionComment


def _covered(name: str, profiled: str, now: str, line: int) -> list[int]:
    """The lines as profiled of a comment that covers a line today."""
    comment = SuppressionComment(codes=("GPA102",), reason="", line=line, first_line=line, last_line=line)
    sources = FoundSources(matches=(), profiled={name: profiled}, local={name: now}, wanted={}, problems=())
    found = comments_as_profiled(sources, {(name, now): SourceFacts(comments=(comment,))})
    return [one.first_line for one in found.get(name, ())]


@pytest.mark.parametrize(
    ("name", "line", "comment"),
    [
        ("a.py", "row = index // width", "  # gpadvisor: ignore[GPA102] exact"),
        ("a.py", "row = '#' + name", "  # gpadvisor: ignore[GPA102] exact"),
        ("a.cu", "row = index / width;", "  // gpadvisor: ignore[GPA102] exact"),
        ("a.cu", 'open("http://here");', "  /* gpadvisor: ignore[GPA102] exact */"),
        ("a.cu", "row = index / width;", "  // rounds, gpadvisor: ignore[GPA102] exact"),
        ("a.cu", "#pragma unroll", "  // gpadvisor: ignore[GPA102] exact"),
    ],
)
def test_a_comment_behind_a_line_that_has_moved(name: str, line: str, comment: str) -> None:
    profiled = f"one\n{line}\ntwo\n"
    now = f"new\none\n{line}{comment}\ntwo\n"
    assert _covered(name, profiled, now, 3) == [2]
    assert _covered(name, profiled, now.replace("\n", "\r\n"), 3) == [2]


def test_a_comment_on_a_line_that_was_edited_is_about_nothing_that_was_profiled() -> None:
    assert _covered("a.cu", "one\nrow = 1;\n", "one\nrow = 2;  // gpadvisor: ignore[GPA102]\n", 2) == []
