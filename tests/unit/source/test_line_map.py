# SPDX-License-Identifier: Apache-2.0
"""Lines of one text in another: order, moved blocks, what does not count as a change, bounded work."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.source.line_map import line_keys, match_in_order, match_moved, split_lines

lines = st.lists(st.sampled_from("abcdefgh"), max_size=12)
statements = st.lists(st.sampled_from([f"statement_{letter}();" for letter in "abcdefgh"]), max_size=12)


def test_lines_end_where_compilers_end_them() -> None:
    assert split_lines("a\r\nb\rc\nd\x0ce\u2028f") == ["a", "b", "c", "d\x0ce\u2028f"]
    assert split_lines("") == [""]


def test_white_space_and_own_comments_do_not_change_a_line() -> None:
    assert line_keys("  a = b (c) ;") == line_keys("\ta=b(c);  ")
    assert line_keys("x = 2.0;  // gpadvisor: ignore[GPA102] wanted") == line_keys("x = 2.0;")
    assert line_keys("x = 2.0  # gpadvisor: ignore[GPA102] wanted") == line_keys("x = 2.0")
    assert line_keys("x = 2.0;  // another comment") != line_keys("x = 2.0;")


@pytest.mark.parametrize(
    ("comment", "line", "code"),
    [
        ("//", "x = 2.0;  // why", "x=2.0;"),
        ("//", "x = 2.0; /* why */  ", "x=2.0;"),
        ("//", 'print("http://x"); // why', 'print("http://x");'),
        ("//", "c = '\"'; // why", "c='\"';"),
        ("//", "#pragma unroll 4  // why", "#pragmaunroll4"),
        ("#", "x = load(p)  # why", "x=load(p)"),
        ("#", "x = load('#', \"#\")  # why", "x=load('#',\"#\")"),
        ("#", "x = a // b  # why", "x=a//b"),
    ],
)
def test_a_comment_behind_code_changes_no_line(comment: str, line: str, code: str) -> None:
    assert line_keys(line, comment=comment) == (code,)


@pytest.mark.parametrize(
    ("comment", "line"),
    [
        ("//", "// all of it"),  # says where a block of lines is
        ("//", "x = 2.0; // and the next line \\"),
        ("//", 'end of a string"; // or more of it'),
        ("//", "end of a comment */ x = 2.0; // or more of it"),
        ("//", "f(/* first */ 1, 2);"),
        ("//", "x = 2.0; /* to be continued"),
        ("//", "#pragma unroll 4"),
        ("#", '"""what # is text'),
        ("#", "# all of it"),
    ],
)
def test_where_a_comment_is_in_doubt_the_whole_line_counts(comment: str, line: str) -> None:
    assert line_keys(line, comment=comment) == ("".join(line.split()),)


@given(lines, lines)
def test_matches_are_equal_lines_in_one_order(old: list[str], new: list[str]) -> None:
    matched = sorted(match_in_order(old, new).items())
    assert all(old[a] == new[b] for a, b in matched)
    assert all(one[1] < other[1] for one, other in pairwise(matched))


@given(statements, statements)
def test_moved_lines_are_equal_and_free(old: list[str], new: list[str]) -> None:
    matched = match_in_order(old, new)
    moved = match_moved(old, new, matched)
    assert not moved.keys() & matched.keys()
    assert len({*moved.values(), *matched.values()}) == len(moved) + len(matched)
    assert all(old[a] == new[b] for a, b in moved.items())


@given(lines, st.integers(0, 12), lines)
def test_an_insertion_or_a_deletion_leaves_everything_else(old: list[str], at: int, added: list[str]) -> None:
    new = [*old[:at], *added, *old[at:]]
    assert len(match_in_order(old, new)) == len(old)
    assert len(match_in_order(new, old)) == len(old)


def test_a_block_that_was_moved_keeps_its_lines() -> None:
    block = ["for (int i = 0; i < n; ++i) {", "sum += a[i];", "}"]
    old = ["int a;", *block, "use(sum);", "if (x) {", "y();", "}", "done();", "return;"]
    new = ["int a;", "use(sum);", "if (x) {", "y();", "}", "done();", *block, "return;"]
    matched = match_in_order(old, new)
    moved = match_moved(old, new, matched)
    assert {**matched, **moved} == {0: 0, 1: 6, 2: 7, 3: 8, 4: 1, 5: 2, 6: 3, 7: 4, 8: 5, 9: 9}


def test_a_block_of_repeated_lines_is_known_by_two_of_them_in_a_row() -> None:
    old = [
        "stage(a);",
        "fence();",
        "middle_of_the_code();",
        "another_line_here();",
        "stage(a);",
        "other(b);",
        "fence();",
        "return;",
    ]
    new = [
        "middle_of_the_code();",
        "another_line_here();",
        "stage(a);",
        "other(b);",
        "fence();",
        "stage(a);",
        "fence();",
        "return;",
    ]
    matched = match_in_order(old, new)
    assert match_moved(old, new, matched) == {0: 5, 1: 6}


def test_a_line_moves_with_one_block_alone() -> None:
    once = ["first_statement();", "fence();", "last_statement();"]
    twice = ["first_statement();", "fence();", "between", "fence();", "last_statement();"]
    assert match_moved(once, twice, {}) == {0: 0, 1: 1, 2: 4}
    assert match_moved(twice, once, {}) == {0: 0, 1: 1, 4: 2}


def test_a_moved_block_goes_on_through_lines_that_stand_elsewhere_too() -> None:
    block = ["fence();", "}", "first_statement();", "fence();", "}"]
    old, new = ["fence();", "}", "before", *block], [*block, "after", "fence();", "}"]
    assert match_moved(old, new, {}) == {3: 0, 4: 1, 5: 2, 6: 3, 7: 4}


def test_two_lines_in_a_row_move_together_or_not_at_all() -> None:
    old = ["x = something(a);", "fence();", "before", "x = something(a);"]
    new = ["after", "x = something(a);", "fence();", "x = something(a);"]
    assert match_moved(old, new, {}) == {0: 1, 1: 2}
    assert match_moved(old, new, {1: 2}) == {}


def test_a_block_that_was_copied_is_not_moved_in_doubt() -> None:
    old = ["first_statement();", "x = something(a);", "last_statement();"]
    new = ["x = something(a);", "first_statement();", "last_statement();", "x = something(a);"]
    matched = match_in_order(old, new)
    assert 1 not in match_moved(old, new, matched)


def test_a_brace_does_not_move() -> None:
    assert match_moved(["a", "}", "b"], ["}", "a", "b"], {0: 1, 2: 2}) == {}


def test_texts_made_to_be_expensive_are_given_up_in_part() -> None:
    random_ = random.Random(1)
    old = [random_.choice("ab") for _ in range(50_000)]
    new = [random_.choice("ab") for _ in range(50_000)]
    matched = match_in_order(old, new, steps=200_000)
    assert all(old[a] == new[b] for a, b in matched.items())
    equal = ["same"] * 30_000
    assert len(match_in_order(equal, equal[:-1])) == len(equal) - 1
    shuffled = [f"statement {at}" for at in range(20_000)]
    random_.shuffle(shuffled)
    ordered = sorted(shuffled)
    found = match_in_order(ordered, shuffled)
    assert len(found) + len(match_moved(ordered, shuffled, found)) == len(ordered)


def test_no_steps_left_means_lines_at_the_same_place() -> None:
    assert match_in_order(["x", "a", "b", "y"], ["p", "a", "c", "q"], steps=0) == {1: 1}
