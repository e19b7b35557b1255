# SPDX-License-Identifier: Apache-2.0
"""The column tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import cells


def test_columns_are_as_wide_as_their_content() -> None:
    lines = format_table([Column(title="name"), Column(title="n", right=True)], [["a", "1"], ["long", "23"]])
    assert lines == ["name   n", "a      1", "long  23"]


def test_without_titles_there_is_no_header() -> None:
    assert format_table([Column(title="")], [["x"]], indent=2) == ["  x"]


def test_cells_shrink_in_the_way_of_their_column() -> None:
    columns = [
        Column(title="end", min_width=6),
        Column(title="path", min_width=6, overflow=Overflow.CUT_START),
        Column(title="name", min_width=6, overflow=Overflow.CUT_MIDDLE),
        Column(title="fit", min_width=6, fit=lambda text, width: text.upper()[:width]),
    ]
    row = ["abcdefghijklmnop"] * 4
    assert format_table(columns, [row], width=40)[1] == "abcdef...  ...klmnop  abc...op  ABCDEFGH"


def test_long_words_wrap_into_lines() -> None:
    columns = [Column(title="id"), Column(title="text", min_width=10, overflow=Overflow.WRAP)]
    lines = format_table(columns, [["1", "one two three four"], ["2", "five"]], width=14)
    assert lines == ["id  text", "1   one two", "    three four", "2   five"]


def test_columns_go_by_rank_when_there_is_no_room() -> None:
    columns = [Column(title="keep"), Column(title="first to go", drop=2), Column(title="second", drop=1)]
    row = ["kkkk", "ffffffffff", "ssssss"]
    assert format_table(columns, [row], width=40)[0] == "keep  first to go  second"
    assert format_table(columns, [row], width=15)[0] == "keep  second"
    assert format_table(columns, [row], width=8)[0] == "keep"


def test_an_empty_last_column_is_left_out() -> None:
    assert format_table([Column(title="a"), Column(title="note")], [["1", ""], ["2", ""]]) == ["a", "1", "2"]


def test_wide_letters_take_two_cells() -> None:
    lines = format_table([Column(title="k"), Column(title="n")], [["\u5185\u6838", "1"], ["ab", "2"]])
    assert [cells(line) for line in lines] == [7, 7, 7]


def test_style_sees_padded_cells() -> None:
    seen: list[tuple[int, int, str]] = []

    def style(row: int, column: int, text: str) -> str:
        seen.append((row, column, text))
        return f"<{text}>"

    lines = format_table([Column(title="a"), Column(title="b", right=True)], [["xx", "1"]], style=style)
    assert lines == ["<a >  <b>", "<xx>  <1>"]
    assert seen == [(-1, 0, "a "), (-1, 1, "b"), (0, 0, "xx"), (0, 1, "1")]


def test_no_rows() -> None:
    assert format_table([Column(title="a"), Column(title="b")], []) == ["a  b"]


words = st.text(st.sampled_from("ab \u5185-"), max_size=40)


@given(rows=st.lists(st.tuples(words, words, words), max_size=5), width=st.integers(24, 90))
def test_a_table_that_may_shrink_fits_its_page(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = [
        Column(title="a", min_width=4),
        Column(title="b", min_width=4, overflow=Overflow.CUT_START),
        Column(title="c", min_width=4, overflow=Overflow.CUT_MIDDLE, drop=1),
    ]
    lines = format_table(columns, rows, width=width)
    assert all(cells(line) <= width for line in lines)
    assert len(lines) == len(rows) + 1
