# SPDX-License-Identifier: Apache-2.0
"""Promises of the text report that hold for every value, and of its details."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from tests import advice_values as values

from gpadvisor.model.advice import Advice
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.report.text import render_text
from gpadvisor.report.words import cells

details = partial(render_text, details=True)
VIEWS = (render_text, details, partial(render_text, everything=True))
NAMES = ("measured", "suppressed", "without_lines", "static", "counted", "several", "hostile")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [10, 60, 72, 80, 100, 132, 500])
def test_no_line_is_wider_than_the_page(view: Callable[..., str], name: str, width: int) -> None:
    report = view(getattr(values, name)(), width=width, sources=values.SOURCES)
    page = min(max(width, 60), 132)
    assert [line for line in report.splitlines() if cells(line) > page] == []


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_colour_adds_nothing_but_colour(view: Callable[..., str], name: str) -> None:
    advice = getattr(values, name)()
    plain = view(advice, sources=values.SOURCES)
    coloured = view(advice, color=True, sources=values.SOURCES)
    assert "\x1b[" in coloured
    stripped = re.sub(r"\x1b\[\d+m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_without_colour_there_is_no_control_character(view: Callable[..., str], name: str) -> None:
    report = view(getattr(values, name)(), sources=values.SOURCES)
    assert [char for char in report if char != "\n" and not char.isprintable()] == []
    report.encode("utf-8")


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_cannot_colour_the_coloured_report_either(view: Callable[..., str]) -> None:
    report = view(values.hostile(), color=True)
    ours = {f"\x1b[{code}m" for code in (0, 1, 2, 31, 32, 33, 36)}
    assert set(re.findall(r"\x1b\[?[^m]*m?", report)) <= ours


def test_hostile_source_lines_are_escaped() -> None:
    sources = {values.GATHER_FILE: "\n" * 9 + "\x1b[31m acc \u202e = 0;\n"}
    report = details(values.measured(), sources=sources)
    assert "| \\x1b[31m acc \\u202e = 0;" in report


def test_the_top_suggestions_only() -> None:
    report = details(values.measured(), top=1)
    assert "GPA102 Strength Reduction" in report
    assert "GPA201 Loop Unrolling" not in report
    assert "3 more suggestions not shown (--top); 1 below the thresholds" in report


def test_estimates_are_shown_with_the_equation_they_depart_from() -> None:
    report = details(values.measured())
    assert "1.2x (1.0-1.3), GPA Eq. 5: 1.62x" in report
    assert "Together 1.2x (1.0-1.4): GPA201 + GPA202 share 6,630 of 6,630 samples" in report


def test_static_findings_have_no_number() -> None:
    report = details(values.static())
    assert "no estimate" in report
    assert not re.search(r"\d\.\d\dx", report)


def test_a_suppressed_suggestion_is_one_line() -> None:
    report = details(values.suppressed())
    assert "GPA102 Strength Reduction" not in report
    assert "GPA102 is ignored at src/gather.cu:10: the reference needs double" in report


def test_when_nothing_helps_it_says_why() -> None:
    nothing = values.kernel(suggestions=(), groups=(), hidden=0)
    report = " ".join(details(values.advice(nothing)).split())
    assert "3 rules looked at this kernel and rejected it; the conditions" in report
    hidden = replace(nothing, hidden=2)
    assert "less than the thresholds ask for" in details(values.advice(hidden))
    (ignored,) = values.suppressed().kernels
    ignored = replace(ignored, suggestions=ignored.suggestions[:1])
    assert "Comments in the source ignore every suggestion" in details(values.advice(ignored))
    assert "No rule looked" in details(values.advice(replace(nothing, rejected=())))


def test_a_full_sample_buffer_is_said() -> None:
    report = " ".join(details(values.without_lines()).split())
    assert "The sample buffer was full: 6,000 of about 48,212 samples" in report


def test_all_launches_are_listed_and_runs_are_folded() -> None:
    report = details(values.several())
    table = report[report.index("Launches (8)") :].splitlines()[2:7]
    assert [line.split()[0] for line in table] == ["0-3", "4", "5", "6", "9"]
    assert [line.split()[-1] for line in table] == ["3", "4", "no", "no", "9"]


def test_the_name_of_the_local_file_is_shown_where_it_was_found() -> None:
    report = details(values.measured())
    assert "def src/gather.cu:9 " in report
    assert "def /home/kim/spmv/src/load.cuh:4 " in report


def test_the_source_line_is_quoted_once_for_def_and_use_on_the_same_line() -> None:
    kernel = values.kernel(suggestions=(values.STRENGTH_REDUCTION,), scopes=(), groups=())
    report = details(values.advice(kernel), sources=values.SOURCES)
    assert report.count("| acc += load(in, j) * 0.5;") == 1


def test_nothing_analysed() -> None:
    assert "No kernel was analysed." in details(values.advice())


def test_many_kernels_cost_linear_time() -> None:
    advice: Advice = values.advice(*[values.kernel() for _ in range(50)])
    assert details(advice).count("Verdict") == 50


def test_kernels_in_which_no_gain_could_be_noticed_are_only_in_the_table() -> None:
    big = values.kernel(time_share=0.6)
    tiny = values.kernel(
        name="tiny()", time_share=0.004, problems=(Problem(ProblemCode.NO_COUNTS, "no counts of it"),)
    )
    report = details(values.advice(big, tiny))
    assert "tiny()" in report
    assert "Kernel 2 of 2" not in report
    assert "Only in the table above: 1 kernel with less than 1 % of the time" in report
    assert report.count("no_counts: no counts of it") == 1


def test_a_small_kernel_is_shown_among_its_like_and_alone() -> None:
    tiny = values.kernel(time_share=0.004)
    other = values.kernel(name="other()", time_share=0.003)
    assert "Kernel 2 of 2" in details(values.advice(tiny, other))
    assert "Only in the table" not in details(values.advice(tiny))


def test_static_kernels_without_a_finding_are_only_in_the_table() -> None:
    (found,) = values.static().kernels
    empty = replace(found, name="empty()", suggestions=())
    report = details(values.advice(found, empty))
    assert "1 kernel without a finding (--kernel NAME shows one)" in " ".join(report.split())
    assert "Kernel 2 of 2" not in report


def test_hotspots_that_an_earlier_suggestion_has_are_not_repeated() -> None:
    again = replace(values.CODE_REORDERING, hotspots=values.LOOP_UNROLLING.hotspots)
    report = details(values.advice(values.kernel(suggestions=(values.LOOP_UNROLLING, again))))
    assert "the hotspots are those of GPA201" in report
    assert report.count("IMAD.WIDE R2, R2, R9") == 1


def test_hotspots_of_hardly_any_sample_are_left_out() -> None:
    report = details(values.measured())
    assert "drain, store in flight" not in report
    alone = replace(values.LOOP_UNROLLING, hotspots=(values.STORE_HOTSPOT,))
    assert "drain, store in flight" in details(values.advice(values.kernel(suggestions=(alone,))))


def test_rule_results_with_one_answer_stand_together_disagreements_first() -> None:
    agrees, other = values.RULES
    disagrees = replace(agrees, agreement="disagrees", explanation="ours sees none", ours=())
    report = details(values.advice(values.kernel(rules=(other, agrees, disagrees, disagrees))))
    section = report[report.index("NVIDIA's own rules") :]
    assert "(optimization, 1.41x, 2 times): disagrees" in section
    assert section.index("disagrees") < section.index("agrees GPA201") < section.index("not comparable")
    assert section.count("On average, each warp") == 1  # what ours says too is not repeated


def test_the_kernel_is_not_named_again_where_demanglers_differ() -> None:
    kernel = values.without_lines().kernels[0]
    (suggestion,) = kernel.suggestions
    scope = replace(suggestion.scope, name="cutlass::Kernel2<" + kernel.name.partition("<")[2])
    report = details(values.advice(replace(kernel, suggestions=(replace(suggestion, scope=scope),))))
    assert "where       the kernel's own code\n" in report
    assert "def 0x1e00  LDSM" in report
