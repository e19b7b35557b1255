# SPDX-License-Identifier: Apache-2.0
"""Which edits change what a text says to gpadvisor."""

from __future__ import annotations

import pytest

from gpadvisor.editor.place.remarks import remarks

TEXT = """\
a = b * 2.0;  // gpadvisor: ignore[GPA102] exact

// gpadvisor: ignore[GPA202] next
c = a;
"""


def test_a_text_that_says_nothing() -> None:
    assert remarks("") == remarks("a = b;\n") == ""
    assert remarks(TEXT)


@pytest.mark.parametrize(
    "same", ["// more\n" + TEXT, TEXT.replace("\n", "\r\n"), TEXT + "d = c;\n", TEXT.replace("c =", "  c =")]
)
def test_lines_that_move_say_the_same(same: str) -> None:
    assert remarks(same) == remarks(TEXT)


@pytest.mark.parametrize(
    "other",
    [
        TEXT.replace("GPA102", "GPA104"),
        TEXT.replace("exact", "for now"),
        TEXT.replace("c = a", "c = b"),
        TEXT.replace(
            "// gpadvisor: ignore[GPA202] next\nc = a;", "c = a;\n// gpadvisor: ignore[GPA202] next"
        ),
        TEXT.replace("  // gpadvisor: ignore[GPA102] exact", ""),
    ],
)
def test_other_comments_and_other_code_below_them_do_not(other: str) -> None:
    assert remarks(other) != remarks(TEXT)
