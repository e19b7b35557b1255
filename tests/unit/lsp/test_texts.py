# SPDX-License-Identifier: Apache-2.0
"""Texts and positions: lines end where LSP says, columns are the client's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.lsp.texts import Encoding, Text, TextChange


def test_only_line_ends_end_lines() -> None:
    text = Text("a\r\nb\rc\nd\fe\vf\x1cg\u2028h\x85i")
    assert [text.line(number) for number in range(text.line_count)] == [
        "a",
        "b",
        "c",
        "d\fe\vf\x1cg\u2028h\x85i",
    ]
    assert text.line(4) == ""
    assert Text("").line_count == 1
    assert Text("x\n").line_count == 2


@pytest.mark.parametrize(
    ("encoding", "units"),
    [("utf-8", [0, 1, 3, 7, 8]), ("utf-16", [0, 1, 2, 4, 5]), ("utf-32", [0, 1, 2, 3, 4])],
)
def test_columns_in_the_units_of_the_client(encoding: Encoding, units: list[int]) -> None:
    text = Text("aé😋b")
    assert [text.units(0, column, encoding) for column in range(5)] == units
    assert [text.column(0, unit, encoding) for unit in units] == [0, 1, 2, 3, 4]
    assert text.column(0, 99, encoding) == 4


def test_edits_are_applied_in_order() -> None:
    text = Text("one\ntwo\nthree\n")
    changed = text.changed(
        [
            TextChange("2", (1, 0), (1, 3)),
            TextChange("zero\n", (0, 0), (0, 0)),
            TextChange("!", (9, 9), (9, 9)),
        ],
        "utf-16",
    )
    assert changed.source == "zero\none\n2\nthree\n!"
    assert changed.changed([TextChange("all new")], "utf-16").source == "all new"


@st.composite
def _edits(draw: st.DrawFn) -> tuple[str, tuple[int, int], tuple[int, int], str]:
    letters = st.text(alphabet="ab\n\r\fé😋 ", max_size=30)
    source = draw(letters)
    text = Text(source)
    places = []
    for _ in range(2):
        line = draw(st.integers(0, text.line_count - 1))
        places.append((line, draw(st.integers(0, len(text.line(line))))))
    start, end = sorted(places)
    return source, start, end, draw(letters)


@given(_edits(), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_an_edit_replaces_its_range_and_nothing_else(
    edit: tuple[str, tuple[int, int], tuple[int, int], str], encoding: Encoding
) -> None:
    source, start, end, new = edit
    text = Text(source)
    starts = [at.start() for at in re.finditer(r"(?<![^\r\n])(?:(?<!\r)|(?!\n))", source)]
    in_units = [(line, text.units(line, column, encoding)) for line, column in (start, end)]
    changed = text.changed([TextChange(new, in_units[0], in_units[1])], encoding)
    first, last = starts[start[0]] + start[1], starts[end[0]] + end[1]
    assert changed.source == source[:first] + new + source[last:]
    again = Text(changed.source)
    assert [changed.line(at) for at in range(changed.line_count)] == [
        again.line(at) for at in range(again.line_count)
    ]


def test_line_ends_that_an_edit_joins_are_one() -> None:
    text = Text("a\rb\nc").changed([TextChange("", (1, 0), (1, 1))], "utf-16")
    assert text.source == "a\r\nc"
    assert text.line_count == 2
    assert text.changed([TextChange("\r", (0, 1), (0, 1))], "utf-16").line_count == 3
