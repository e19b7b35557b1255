# SPDX-License-Identifier: Apache-2.0
"""Comments that were just written, and comments that one analysis knows no use for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.editor_values import FILE, SOURCE, analysis, file_analysis, finding, placed

from gpadvisor.editor.place.quieted import is_useful, quieted
from gpadvisor.lsp.layers import Entry, PlacedLayer, settled
from gpadvisor.model.finding import EditorAnalysis, Place, ToolNote

LINE = "    acc += scaled(in[j]);"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SOURCE.replace(LINE, LINE + "  // gpadvisor: ignore[GPA202] known"), "known"),
        (SOURCE.replace(LINE, "    // gpadvisor: ignore-next-line[GPA202] known\n" + LINE), "known"),
        (SOURCE.replace(LINE, LINE + "  // gpadvisor: ignore[GPA102] another rule"), None),
        (SOURCE.replace("  float acc", "  // gpadvisor: ignore[GPA202] above\n  float acc"), None),
        (SOURCE, None),
    ],
)
def test_the_mark_goes_with_the_comment_before_anything_is_saved(text: str, reason: str | None) -> None:
    (found,) = quieted(placed(analysis(), text), text).findings
    assert found.finding.suppressed == reason


def test_a_finding_that_is_set_aside_keeps_the_reason_that_was_read_with_it() -> None:
    text = SOURCE.replace(LINE, LINE + "  // gpadvisor: ignore[GPA202] of today")
    file = file_analysis(findings=(finding(suppressed="of the analysis"),))
    (found,) = quieted(placed(analysis(files=(file,)), text), text).findings
    assert found.finding.suppressed == "of the analysis"


def _layer(value: EditorAnalysis, text: str, *, is_profile: bool) -> PlacedLayer:
    entry = Entry(key=str(is_profile), analysis=value, is_profile=is_profile, age=0.0)
    return PlacedLayer(entry=entry, analysis=value, file=placed(value, text))


@pytest.mark.parametrize(
    ("of_profile", "is_told"),
    [
        (finding(suppressed="known"), False),
        (finding(), False),
        (finding(code="GPA102", suppressed="known"), True),
        (finding(9), True),
    ],
    ids=["sets it aside", "will when it is read again", "another rule", "another line"],
)
def test_a_comment_that_another_analysis_has_a_use_for_is_not_useless(
    of_profile: object, is_told: bool
) -> None:
    note = ToolNote(
        code="GPA905",
        message=f"{FILE}:7 ignores GPA202, which says nothing there: remove it from the comment.",
        place=Place(file=FILE, line=7),
        rule="GPA202",
    )
    static = analysis(files=(file_analysis(findings=()),), problems=(note,))
    measured = analysis(files=(replace(file_analysis(), findings=(of_profile, finding(5, code="GPA103"))),))
    layers = settled([_layer(measured, SOURCE, is_profile=True), _layer(static, SOURCE, is_profile=False)])
    assert (note in layers[-1].analysis.problems) == is_told


def test_a_comment_whose_line_nobody_knows_sets_nothing_aside() -> None:
    note = ToolNote(code="GPA905", message="", place=None, rule="GPA202")
    file = placed(analysis(), SOURCE)
    assert not is_useful(note, file, (file,))
