# SPDX-License-Identifier: Apache-2.0
"""Figures and untrusted text as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import advice_values as values

from gpadvisor.report import words
from gpadvisor.report.words import Keep


@given(st.text())
def test_clean_text_is_printable_and_encodable(text: str) -> None:
    cleaned = words.clean(text)
    assert all(char.isprintable() or char in "\u00a0\u3000" or char.isspace() for char in cleaned)
    assert "\n" not in cleaned
    cleaned.encode("utf-8")
    assert words.clean(cleaned) == cleaned


def test_clean_keeps_letters_of_every_script() -> None:
    assert words.clean("K\u00e4rnel \u5185\u6838") == "K\u00e4rnel \u5185\u6838"
    assert words.clean("a\tb\nc") == "a b c"
    assert words.clean("\x1b[2J\u202e\ud800") == "\\x1b[2J\\u202e\\ud800"


def test_clean_is_bounded() -> None:
    assert len(words.clean("\x1b" * 1_000_000)) <= 4 * words.MAX_TEXT


def test_cleaned_reaches_every_string_and_keeps_clean_values() -> None:
    value = values.hostile()
    assert "\x1b" not in repr(words.cleaned(value)).replace("\\x1b", "")
    clean = values.measured()
    assert words.cleaned(clean) is clean


@given(text=st.text(), width=st.integers(0, 30), keep=st.sampled_from(list(Keep)))
def test_shortened_text_fits(text: str, width: int, keep: Keep) -> None:
    assert words.cells(words.shorten(text, width, keep)) <= width


def test_shortening_keeps_what_matters() -> None:
    assert words.shorten("/very/long/path/file.cu", 12, Keep.END) == "...h/file.cu"
    assert words.shorten("abcdefghij", 7) == "abcd..."
    assert words.shorten("abcdefghij", 7, Keep.BOTH) == "ab...ij"


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(None, "unknown"), (float("nan"), "unknown"), (811.0, "811 ns"), (1_234.5, "1.234 us"),
     (1_234_567.0, "1.235 ms"), (2.5e9, "2.5 s")],
)  # fmt: skip
def test_durations(nanoseconds: float | None, text: str) -> None:
    assert words.duration(nanoseconds) == text


def test_the_paper_is_named_by_its_equation_and_left_out_where_it_has_none() -> None:
    assert words.speedup(values.estimate(1.1, 1.2, 1.3, 1.35)) == "1.20x (1.10-1.30), GPA Eq. 2: 1.35x"
    assert words.speedup(values.estimate(1.1, 1.2, 1.3, None)) == "1.20x (1.10-1.30)"
    odd = values.estimate(1.1, 1.2, 1.3, 1.35, equation="no name for it")
    assert words.speedup(odd).endswith(", the paper: 1.35x")


def test_links_of_rule_messages_become_words() -> None:
    message = "See the @url:guide:https://x.example/a@ and @section:Memory:MemoryTables@, mail a@b.c"
    assert words.without_links(message) == "See the guide and Memory, mail a@b.c"


def test_plurals() -> None:
    assert [words.plural(n, "launch") for n in (0, 1, 2_000)] == ["0 launches", "1 launch", "2,000 launches"]


def test_a_caution_is_cut_behind_a_clause_that_fits() -> None:
    text = "Lines from a.cu: other code; 82 % of the samples have a line. Compare both."
    assert words.clauses(text, 80) == text
    assert words.clauses(text, 62) == "Lines from a.cu: other code; 82 % of the samples have a line."
    assert words.clauses(text, 40) == "Lines from a.cu: other code."
    assert words.clauses(text, 10) == "Lines f..."
