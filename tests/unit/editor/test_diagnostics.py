# SPDX-License-Identifier: Apache-2.0
"""Findings and notes as diagnostics: words, places, tags, how many, and what becomes of edited ones."""

from __future__ import annotations

from tests.editor_values import FILE, SOURCE, analysis, estimate, file_analysis, finding, kernel, placed

from gpadvisor.editor.show.diagnostics import Shown, diagnostics
from gpadvisor.editor.show.options import Options, Severity, Stale
from gpadvisor.model.finding import BaselineKind, EditorAnalysis, Place, ToolNote
from gpadvisor.model.profile import Evidence

EDITED = SOURCE.replace("scaled(in[j])", "twice(in[j])")


def _shown(value: EditorAnalysis, text: str = SOURCE, options: Options | None = None) -> tuple[Shown, ...]:
    file = placed(value, text)
    return diagnostics(value, file, {FILE: file}, options or Options(), text)


def test_a_finding_says_gain_cure_cause_and_evidence() -> None:
    one = _shown(analysis())[0]
    assert one.message == (
        "1.15x (1.12-1.19): Code Reordering, 58 % of samples: value used too soon. "
        "Move the load at gather.cu:6 up. [measured, fresh, A100, gather<1>]"
    )
    assert (one.line, one.start, one.end, one.severity) == (7, 4, 25, Severity.WARNING)
    assert [(entry.place.line, entry.message) for entry in one.related] == [
        (6, "LDG.E loads it here"),
        (3, "FFMA waits here for LDG.E"),
    ]


def test_lines_inside_of_sentences_move_too() -> None:
    one = _shown(analysis(), "// new\n" + SOURCE)[0]
    assert "the load at gather.cu:7 up" in one.message
    assert one.line == 8
    assert [entry.place.line for entry in one.related] == [7, 3]


def test_an_edited_line_says_so_and_is_faded() -> None:
    one = _shown(analysis(), EDITED)[0]
    assert one.message.endswith("[measured, edited since the profile, A100, gather<1>]")
    assert one.faded
    assert one.severity is Severity.INFORMATION
    assert not _shown(analysis(), EDITED, Options(stale=Stale.REMAP))[0].faded
    assert [one.code for one in _shown(analysis(), EDITED, Options(stale=Stale.HIDE))] == ["GPA902"]


def test_how_much_of_the_profile_stands_is_a_hint_on_the_first_edited_line() -> None:
    stale = _shown(analysis(), "// new\n" + EDITED)[-1]
    assert (stale.code, stale.severity, stale.line) == ("GPA902", Severity.HINT, 8)
    assert "39 % of its samples in gather.cu are on unchanged lines" in stale.message
    assert [one.code for one in _shown(analysis(), EDITED, Options(stale=Stale.REMAP))] == [
        "GPA202",
        "GPA902",
    ]


def test_a_deleted_line_keeps_its_finding_where_it_stood() -> None:
    gone = SOURCE.replace("    acc += scaled(in[j]);\n", "")
    assert [(one.code, one.line) for one in _shown(analysis(), gone)] == [("GPA202", 7), ("GPA902", 7)]
    assert [one.code for one in _shown(analysis(), gone, Options(stale=Stale.HIDE))] == ["GPA902"]


def test_evidence_and_freshness_are_tags() -> None:
    static = file_analysis(findings=(finding(evidence=Evidence.STATIC, speedup=None),))
    one = _shown(analysis(files=(static,)))[0]
    assert one.message.endswith("[static, A100, gather<1>]")
    assert one.message.startswith("code only: Code Reordering")
    assert one.severity is Severity.INFORMATION
    edited = _shown(analysis(files=(static,)), EDITED)[0]
    assert edited.message.endswith("[static, edited since it was compiled, A100, gather<1>]")
    hashed = file_analysis(baseline_kind=BaselineKind.HASHED)
    shown = _shown(analysis(files=(hashed,)))[0]
    assert shown.message.endswith("[measured, unverified, A100, gather<1>]")


def test_a_further_line_of_a_suggestion_says_where_the_change_is() -> None:
    file = file_analysis(findings=(finding(leads=False, lead=Place(file=FILE, line=6)), finding(9)))
    shown = {one.line: one for one in _shown(analysis(files=(file,)), "// new\n" + SOURCE)}
    assert shown[8].message.startswith("Part of 1.15x (1.12-1.19): Code Reordering, 58 % of samples: ")
    assert "The change is at gather.cu:7." in shown[8].message
    assert (shown[8].severity, shown[10].severity) == (Severity.HINT, Severity.WARNING)
    static = finding(leads=False, lead=Place(file=FILE, line=6), evidence=Evidence.STATIC, speedup=None)
    (one,) = _shown(analysis(files=(file_analysis(findings=(static,)),)))
    assert one.message.startswith("Part of Code Reordering: ")


def test_suppressed_findings_are_not_shown() -> None:
    file = file_analysis(findings=(finding(suppressed="known"),))
    assert _shown(analysis(files=(file,))) == ()


def test_of_too_many_the_best_are_shown_and_the_others_counted() -> None:
    findings = tuple(finding(line, samples=line) for line in range(1, 10))
    shown = _shown(analysis(files=(file_analysis(findings=findings),)), options=Options(max_per_file=3))
    assert [one.line for one in shown] == [7, 8, 9]
    assert sum("6 findings of less weight in this file not shown" in one.message for one in shown) == 1


def test_the_limit_is_not_used_up_by_further_lines_nor_by_what_gains_least() -> None:
    """Forty lines of one small suggestion, which all have more samples than the ones that are worth it."""
    small = estimate(1.01, 1.04, 1.06)
    many = tuple(
        finding(line % 9 + 1, id=f"m{line}", leads=line == 0, speedup=small, whole=small)
        for line in range(40)
    )
    worth = tuple(finding(9, id=f"w{code}", code=code, samples=20) for code in ("GPA106", "GPA301"))
    shown = _shown(
        analysis(files=(file_analysis(findings=(*many, *worth)),)), options=Options(max_per_file=3)
    )
    assert {one.id for one in shown} == {"m0", "wGPA106", "wGPA301"}


def test_of_equally_loud_findings_on_a_line_the_strongest_is_first() -> None:
    some = finding(code="GPA101", token=None, speedup=estimate(1.2, 1.3, 1.4), id="some")
    most = finding(code="GPA202", token=None, speedup=estimate(1.2, 1.5, 1.9), id="most")
    shown = _shown(analysis(files=(file_analysis(findings=(some, most)),)))
    assert [one.id for one in shown if one.line == 7] == ["most", "some"]


def test_notes_stand_on_their_lines() -> None:
    note = ToolNote(code="GPA905", message="a.cu:9 ignores GPA102", place=Place(file=FILE, line=9))
    elsewhere = ToolNote(code="GPA901", message="no lines", place=None)
    shown = _shown(analysis(problems=(note, elsewhere)), "// new\n" + SOURCE)
    assert [(one.code, one.line, one.start) for one in shown] == [("GPA202", 8, 4), ("GPA905", 10, 2)]


def test_pages_of_rules_are_linked() -> None:
    one = _shown(analysis(), options=Options(rule_page="https://rules/{code}-{slug}.md"))[0]
    assert one.page == "https://rules/GPA202-code-reordering.md"


def test_one_switch_turns_them_off() -> None:
    assert _shown(analysis(), options=Options(diagnostics=False)) == ()


def test_names_of_foreign_files_stay_on_one_line() -> None:
    hostile = kernel(device="A\n100\u202e")
    assert "\n" not in _shown(analysis(hostile))[0].message


def test_what_is_hovered_over_first_is_what_gains_most() -> None:
    """Whole-line findings begin where the warning's expression does; those of edited lines stay whole."""
    strong = finding(token="scaled")
    weak = finding(code="GPA105", token=None, speedup=estimate(1.0, 1.01, 1.02), id="weak")
    file = file_analysis(findings=(weak, strong))
    shown = [one for one in _shown(analysis(files=(file,))) if one.line == 7]
    assert [(one.code, one.start) for one in shown] == [("GPA202", 11), ("GPA105", 11)]
    assert shown[0].end < shown[1].end
