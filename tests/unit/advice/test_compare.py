# SPDX-License-Identifier: Apache-2.0
"""Comparing two runs: lines keep their identity through edits, regressions stay visible."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.advice.compare import map_lines


def test_an_inserted_line_moves_the_rest() -> None:
    assert map_lines("a\nb\nc", "a\nnew\nb\nc") == {1: 1, 2: 3, 3: 4}


def test_an_edited_line_is_nobody() -> None:
    assert map_lines("a\nb\nc", "a\nB\nc") == {1: 1, 3: 3}


@given(st.lists(st.sampled_from("abcde"), max_size=30), st.lists(st.sampled_from("abcde"), max_size=30))
def test_mapped_lines_are_equal_and_in_order(before: list[str], after: list[str]) -> None:
    mapped = map_lines("\n".join(before), "\n".join(after))
    assert all(before[old - 1] == after[new - 1] for old, new in mapped.items())
    pairs = sorted(mapped.items())
    assert all(one[1] < two[1] for one, two in pairwise(pairs))


def test_a_repetitive_middle_leaves_its_surroundings() -> None:
    lines = ["same"] * 5_000
    before = "\n".join(["first", "old", *lines, "last"])
    after = "\n".join(["first", "new", *lines, "other", *lines, "last"])
    mapped = map_lines(before, after)
    assert mapped[1] == 1
    assert mapped[5_003] == 10_004
    assert 2 not in mapped
