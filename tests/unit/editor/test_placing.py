# SPDX-License-Identifier: Apache-2.0
"""Findings and samples in today's text, one kind of change at a time."""

from __future__ import annotations

import pytest
from tests.editor_values import FILE, HEADER, SOURCE, analysis, file_analysis, finding, line_data

from gpadvisor.editor.place import placing
from gpadvisor.editor.place.placing import extent, place, place_now, related_now
from gpadvisor.model.finding import BaselineKind, Freshness, Place, Related


def test_the_same_text_is_fresh() -> None:
    found = place(file_analysis(), SOURCE)
    assert [(one.line, one.freshness, one.moved) for one in found.findings] == [(7, Freshness.FRESH, False)]
    assert found.stale_samples == 0
    assert found.samples == 980


def test_lines_go_down_with_what_is_inserted_above() -> None:
    found = place(file_analysis(), "// one\n// two\n" + SOURCE)
    assert [(one.line, one.freshness) for one in found.findings] == [(9, Freshness.FRESH)]


def test_an_edited_line_stays_and_is_edited() -> None:
    found = place(file_analysis(), SOURCE.replace("scaled(in[j])", "scaled(in[j + 1])"))
    assert [(one.line, one.freshness) for one in found.findings] == [(7, Freshness.EDITED)]
    assert found.stale_samples == 600
    assert found.stale_findings == 1


def test_the_first_line_of_a_text_may_be_edited() -> None:
    file = file_analysis(baseline="a(1);\nb;\n", findings=(finding(1),), lines=())
    assert [entry.line for entry in place(file, "a(2);\nb;\n").findings] == [1]


def test_a_blank_line_that_went_has_not_become_the_line_that_came() -> None:
    file = file_analysis(baseline="a;\n\nqwert;\nb;\n", findings=(finding(3),), lines=())
    assert [entry.line for entry in place(file, "a;\nzxcv;\nb;\n").findings] == [2]


@pytest.mark.parametrize(("bound", "line"), [(4, 3), (3, 2)])
def test_likeness_is_looked_at_within_the_bound_of_pairs(
    bound: int, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lines that went and two that came are four pairs; beyond the bound lines are taken in order."""
    monkeypatch.setattr(placing, "_MAX_PAIRS", bound)
    baseline, text = f"a;\nfirst(1);\nsecond(2);\n// {bound}\n", f"a;\nother;\nfirst(3);\n// {bound}\n"
    file = file_analysis(baseline=baseline, findings=(finding(2),), lines=())
    assert [entry.line for entry in place(file, text).findings] == [line]


def test_an_edited_line_is_found_behind_a_new_one() -> None:
    text = SOURCE.replace("    acc += scaled(in[j]);", "    prefetch(idx);\n    acc += twice(in[j]);")
    assert place(file_analysis(), text).findings[0].line == 8


@pytest.mark.parametrize(("same", "line"), [(9, 3), (8, 2)])
def test_a_line_with_two_fifths_in_common_is_the_edited_one(same: int, line: int) -> None:
    was = (
        "abcdefghijklmnopqrst"  # one word, 19 pairs of letters; nine equal letters are eight pairs of 2 x 20
    )
    now = was[:same] + "ABCDEFGHIJKLMNOPQRST"[same:]
    file = file_analysis(baseline=f"a;\n{was}\nb;\n", findings=(finding(2),), lines=())
    found = place(file, f"a;\n0123456789\n{now}\nb;\n")
    assert [(one.line, one.freshness) for one in found.findings] == [(line, Freshness.EDITED)]


def test_a_deleted_line_is_listed_where_it_stood() -> None:
    found = place(file_analysis(), SOURCE.replace("    acc += scaled(in[j]);\n", ""))
    assert found.findings == ()
    assert [(one.line, one.freshness) for one in found.deleted_findings] == [(7, Freshness.EDITED)]
    assert found.samples == 980
    assert found.stale_samples == 600
    assert found.map.is_deleted(7)


def test_a_deleted_line_before_all_that_is_left_stood_at_the_top() -> None:
    file = file_analysis(baseline="a;\nb;\nc;\n", findings=(finding(1),), lines=())
    assert [entry.line for entry in place(file, "b;\nc;\n").deleted_findings] == [1]


@pytest.mark.parametrize("baseline", ["first;\nmiddle;\nlast;", "first;\nlast;\n"])
def test_every_line_of_an_unchanged_text_is_kept_and_no_other(baseline: str) -> None:
    count = baseline.count("\n") + 1
    found = placing.line_map(file_analysis(baseline=baseline), baseline)
    assert dict(found.kept) == {line: line for line in range(1, count + 1)}


def test_of_two_lines_alike_one_became_the_line_that_came() -> None:
    file = file_analysis(
        baseline="a;\nsum += value[i];\nsum += value[j];\nb;\n", findings=(finding(2), finding(3)), lines=()
    )
    found = place(file, "a;\nsum += value[k];\nb;\n")
    assert [entry.line for entry in found.findings] == [2]
    assert len(found.deleted_findings) == 1


def test_of_lines_as_much_alike_the_nearest_is_the_edited_one() -> None:
    file = file_analysis(baseline="a;\n0123456789\nfoo(bar);\nb;\n", findings=(finding(3),), lines=())
    assert [entry.line for entry in place(file, "a;\nfoo(baz);\nfoo(bay);\nb;\n").findings] == [3]


@pytest.mark.parametrize(("lines", "now"), [(40, 3), (41, 2)])
def test_where_more_than_forty_lines_went_those_that_came_are_taken_in_their_order(
    lines: int, now: int
) -> None:
    gone = [f"value{index * 7919}=0;" for index in range(lines)]
    file = file_analysis(baseline="\n".join(["a;", *gone, "b;"]), findings=(finding(2),), lines=())
    assert place(file, f"a;\n0123456789;\n{gone[0]}+1;\nb;").findings[0].line == now


@pytest.mark.parametrize(("lines", "now"), [(40, 41), (41, 2)])
def test_where_more_than_forty_lines_came_they_are_taken_in_their_order(lines: int, now: int) -> None:
    came = [f"value{index * 7919}=0;" for index in range(lines)]
    text = "\n".join(["a;", *came, "b;"])
    file = file_analysis(baseline=f"a;\n{came[-1]}+1;\nother;\nb;", findings=(finding(2),), lines=())
    assert place(file, text).findings[0].line == now


def test_lines_are_alike_by_how_they_begin() -> None:
    begin, end = "x" * 240, "y" * 300
    file = file_analysis(baseline=f"a;\n{begin}{end}\nb;\n", findings=(finding(2),), lines=())
    text = f"a;\n{'z' * 240}{end}\n{begin}{'z' * 300}\nb;\n"
    assert [entry.line for entry in place(file, text).findings] == [3]


def test_the_last_of_several_deleted_lines_stands_where_the_first_stood() -> None:
    lines = SOURCE.splitlines(keepends=True)
    found = place(file_analysis(), "".join(lines[:4] + lines[7:]))  # without lines 5 to 7
    assert [one.line for one in found.deleted_findings] == [5]


def test_a_reformatted_line_is_the_same_line() -> None:
    found = place(file_analysis(), SOURCE.replace("    acc += scaled(in[j]);", "\tacc+=scaled( in[ j ] ) ;"))
    assert found.findings[0].freshness is Freshness.FRESH


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("k.cu", "  acc += in[k];", "  acc += in[k];  // measured"),
        ("k.py", "  acc += x", "  acc += x  # why"),
    ],
)
def test_a_comment_behind_a_line_is_no_edit(name: str, line: str, said: str) -> None:
    file = file_analysis(
        path=name, baseline=f"a;\n{line}\nb;\n", findings=(finding(2),), lines=(line_data(2, 10),)
    )
    found = place(file, f"a;\n{said}\nb;\n")
    assert [one.freshness for one in (*found.findings, *found.lines)] == [Freshness.FRESH] * 2
    assert found.stale_findings == found.stale_samples == 0
    other = place(file, f"a;\n{said.replace('acc', 'sum')}\nb;\n")
    assert {one.freshness for one in other.findings} == {Freshness.EDITED}


def test_a_moved_loop_keeps_its_numbers() -> None:
    lines = SOURCE.splitlines()
    loop = lines[4:8]
    text = "\n".join([*lines[:3], *loop, lines[3], *lines[8:]])
    found = place(file_analysis(), text)
    assert [(one.line, one.freshness) for one in found.findings] == [(6, Freshness.FRESH)]
    assert found.stale_samples == 0


def test_everything_can_be_deleted() -> None:
    found = place(file_analysis(), "")
    assert found.findings == ()
    assert [one.line for one in found.deleted_findings] == [1]
    assert found.stale_samples == found.samples == 980


def test_a_hashed_baseline_is_unverified_where_it_is_unchanged() -> None:
    file = file_analysis(baseline_kind=BaselineKind.HASHED)
    assert place(file, SOURCE).findings[0].freshness is Freshness.UNVERIFIED
    edited = place(file, SOURCE.replace("scaled", "twice"))
    assert edited.findings[0].freshness is Freshness.EDITED


def test_without_a_baseline_lines_are_taken_as_they_are() -> None:
    file = file_analysis(baseline=None, baseline_kind=BaselineKind.UNKNOWN)
    assert [(one.line, one.freshness) for one in place(file, SOURCE).findings] == [(7, Freshness.UNVERIFIED)]
    short = place(file, "one\ntwo")
    assert [(one.line, one.freshness) for one in short.deleted_findings] == [(2, Freshness.EDITED)]
    assert short.samples == 980


@pytest.mark.parametrize(("line", "inside"), [(0, False), (1, True), (2, True), (3, False)])
def test_without_a_baseline_every_line_of_the_text_is_there(line: int, inside: bool) -> None:
    file = file_analysis(baseline=None, baseline_kind=BaselineKind.UNKNOWN)
    lines = placing.line_map(file, "first\nsecond")
    assert lines.is_deleted(line) is not inside
    assert lines.now(line)[1] is (Freshness.UNVERIFIED if inside else Freshness.EDITED)


def test_a_deleted_line_is_listed_behind_the_first_one_that_is_left() -> None:
    file = file_analysis(baseline="a;\nb;\nc;\n", findings=(finding(2),), lines=())
    placed = place(file, "x;\na;\nc;\n")
    assert [entry.line for entry in placed.deleted_findings] == [3]


def test_an_edited_line_is_no_blank_one() -> None:
    file = file_analysis(baseline="a;\nfoo(bar);\nb;\n", findings=(finding(2),), lines=())
    assert place(file, "a;\n\n1234567;\nb;\n").findings[0].line == 3


def test_lines_beyond_the_baseline_are_not_lost() -> None:
    file = file_analysis(findings=(finding(900),), lines=(line_data(900, 5),))
    found = place(file, SOURCE)
    assert len(found.deleted_findings) == 1
    assert found.samples == found.stale_samples == 5


def test_windows_line_ends_change_nothing() -> None:
    found = place(file_analysis(), SOURCE.replace("\n", "\r\n"))
    assert found.findings[0].freshness is Freshness.FRESH
    assert found.map.line_count == SOURCE.count("\n") + 1


@pytest.mark.parametrize(
    ("line", "token", "expected"),
    [
        ("  x = 0.5 * y;", "0.5", (6, 9)),
        ("  x = 0.5 + 0.5;", "0.5", (2, 16)),  # twice: which of them is not known
        ("  x = y;  ", None, (2, 8)),
        ("  x = y;", "0.5", (2, 8)),
        ("0.5 * x;", "0.5", (0, 3)),
        ("x*x*x;", "x*x", (0, 6)),  # twice, one over the other
        ("   ", None, (3, 3)),
        ("", None, (0, 0)),
    ],
)
def test_the_extent_is_the_expression_or_the_statement(
    line: str, token: str | None, expected: tuple[int, int]
) -> None:
    assert extent(line, token) == expected


def test_an_expression_of_an_edited_line_is_not_looked_for() -> None:
    file = file_analysis(findings=(finding(9, token="0.5"),))
    fresh = place(file, SOURCE).findings[0]
    assert (fresh.start, fresh.end) == (17, 20)
    edited = place(file, SOURCE.replace("acc * 0.5 + 1.0f", "0.5 * acc")).findings[0]
    assert edited.start == 2


def test_related_places_follow_their_files() -> None:
    found = place(file_analysis(), "// new\n" + SOURCE)
    files = {FILE: found}
    assert place_now(Place(file=FILE, line=6), files) == Place(file=FILE, line=7)
    assert place_now(Place(file=HEADER, line=3), files) == Place(file=HEADER, line=3)
    moved = related_now(analysis().files[0].findings[0].related, files)
    assert [one.place.line for one in moved] == [7, 3]
    edited = {FILE: place(file_analysis(), SOURCE.replace("int j = idx[k]", "int j = idx[k + 1]"))}
    said = related_now((Related(place=Place(file=FILE, line=6), message="loads it"),), edited)
    assert said[0].message == "loads it (edited since the profile)"
    own = Place(file=FILE, line=6)
    assert related_now((Related(place=own, message="loads it"),), edited, own)[0].message == "loads it"
    assert related_now((Related(place=own, message="loads it"),), {FILE: found})[0].message == "loads it"


def test_long_lines_and_many_lines_are_placed_too() -> None:
    wide = "\n".join(f"{'x' * 100_000}{at}" for at in range(20))
    file = file_analysis(baseline=wide, findings=(finding(3),), lines=())
    assert place(file, "new\n" + wide).findings[0].line == 4
    many = "same();\n" * 50_000
    file = file_analysis(baseline=many, findings=(finding(40_000),), lines=())
    found = place(file, "first\n" + many)
    assert len(found.findings) + len(found.deleted_findings) == 1


@pytest.mark.parametrize("bound", [len(SOURCE), 10])
def test_a_text_beyond_all_bounds_is_edited_as_a_whole(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "MAX_CHARACTERS", bound)
    found = place(file_analysis(), SOURCE + "// more\n")
    assert [one.freshness for one in found.findings] == [Freshness.EDITED]
    assert found.stale_samples == found.samples


def test_a_text_as_long_as_the_bound_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SOURCE + "// more\n"
    monkeypatch.setattr(placing, "MAX_CHARACTERS", len(text))
    monkeypatch.setattr(placing, "MAX_LINES", text.count("\n") + 1)
    assert [one.freshness for one in place(file_analysis(), text).findings] == [Freshness.FRESH]


def test_of_a_text_too_long_to_compare_every_line_counts_as_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "MAX_LINES", 3)
    file = file_analysis(baseline="a\nb\nc\nd", findings=(), lines=())
    found = placing.line_map(file, "a\nb\nc")
    assert found.edited == {1: 1, 2: 2, 3: 3, 4: 3}
    assert not found.kept
