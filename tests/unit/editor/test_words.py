# SPDX-License-Identifier: Apache-2.0
"""Figures and names: what is printed, and that no name from a file can break out of Markdown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.editor.show import words


def test_sentences_are_cut_between_words() -> None:
    assert words.shorten("one two three", 20) == "one two three"
    assert words.shorten("one two three four five", 15) == "one two..."
    assert words.shorten("It waits. Then it goes on for long.", 30) == "It waits. Then it goes on..."


def test_a_long_name_keeps_both_ends() -> None:
    assert words.middle_out("kernel.cu", 9) == "kernel.cu"
    assert words.middle_out("owner_repository__kernel.cu", 16) == "owner_r...nel.cu"
    assert words.middle_out("owner_repository__kernel.cu", 17) == "owner_r...rnel.cu"


def test_names_cannot_leave_their_place() -> None:
    assert words.escape("a_b*c<d>") == "a\\_b\\*c\\<d\\>"
    assert words.clean("a\nb\u202ec") == "a b\N{REPLACEMENT CHARACTER}c"
    assert words.code("f`x|y") == "`` f`x\N{BROKEN BAR}y ``"


@given(st.text(max_size=40))
def test_no_text_closes_its_code_span(text: str) -> None:
    shown = words.code(text)
    fence = shown[: len(shown) - len(shown.lstrip("`"))]
    assert shown.endswith(fence)
    assert fence not in shown[len(fence) : -len(fence)].replace("`" * (len(fence) + 1), "") or not text
    assert "\n" not in shown
    assert "|" not in shown


def test_file_names_of_any_system() -> None:
    assert words.file_name("/a/b.cu") == "b.cu"
    assert words.file_name("C:\\a\\b.cu") == "b.cu"
    assert words.plural(1, "launch", "launches") == "1 launch"
    assert words.plural(2000, "launch", "launches") == "2,000 launches"
