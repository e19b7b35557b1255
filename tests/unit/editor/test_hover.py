# SPDX-License-Identifier: Apache-2.0
"""The hover: what it says in which order, how long it gets, and where there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.editor_values import (
    FILE,
    FOUR,
    HEADER,
    SOURCE,
    analysis,
    estimate,
    file_analysis,
    finding,
    kernel,
    line_data,
    placed,
    stall,
)

from gpadvisor.editor.show.hover import MAX_LINES, hover
from gpadvisor.editor.show.options import Options, Stale
from gpadvisor.model.finding import BaselineKind, EditorAnalysis, LedgerEntry
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import Sentence, sentences

PAGES = Options(rule_page="https://rules/{code}-{slug}.md")
EDITED = SOURCE.replace("scaled(in[j])", "twice(in[j])")


def _hover(
    value: EditorAnalysis,
    line: int = 7,
    options: Options | None = None,
    text: str = SOURCE,
    history: tuple[LedgerEntry, ...] = (),
) -> str | None:
    file = placed(value, text)
    return hover(value, file, line, {FILE: file}, options or Options(), history)


def test_the_whole_hover() -> None:
    assert _hover(analysis(), options=PAGES) == (
        "**1.15x (1.12-1.19): Code Reordering** for `gather<1>`, 34 % of GPU time: 1.06x (1.05-1.07) "
        "of the run ([why](https://rules/GPA202-code-reordering.md))\n"
        "\n"
        "60 % of the 1,000 samples of `gather<1>` are on this line; it causes 2.0 %.\n"
        "\n"
        "| stall | samples | waits for |\n"
        "|--|--:|--|\n"
        "| [long scoreboard](https://rules/stall-long_scoreboard.md) | 580 (58 %) "
        "| line 6: LDG.E loads it here |\n"
        "| [selected](https://rules/stall-selected.md) | 20 (2.0 %) | plain selected |\n"
        "\n"
        "Change: Move the load at gather.cu:6 up.  \n"
        "Here: 58 % of the samples of gather\\<1\\> wait for LDG.E on this line.\n"
        "\n"
        "Range: held back\n"
        "\n"
        "Not suggested: GPA101 (no local memory); GPA104 (no library math).  \n"
        "Evidence: measured, 1,000 PC samples, A100, launch 1 of 1: 64 x 256 threads, the profile carries "
        "its source, taken 2026-11-21 05:02."
    )


def test_a_line_with_samples_alone_has_the_kernels_verdict() -> None:
    text = _hover(analysis(), 9)
    assert text is not None
    assert text.startswith("35 % of the 1,000 samples of `gather<1>` are on this line; it causes 10 %.")
    assert "lib.cuh:3: LDG.E loads it here" in text
    assert "Limited by latency." in text
    assert "Not suggested" not in text


@pytest.mark.parametrize("line", [1, 2, 4, 100])
def test_nothing_where_there_is_nothing(line: int) -> None:
    assert _hover(analysis(), line) is None


def test_it_can_be_switched_off() -> None:
    assert _hover(analysis(), options=Options(hover=False)) is None


def test_places_are_those_of_today() -> None:
    text = _hover(analysis(), 9, text="// one\n// two\n" + SOURCE)
    assert text is not None
    assert "line 8: LDG.E loads it here" in text
    assert "the load at gather.cu:8 up" in text


def test_an_edited_line_says_so() -> None:
    text = _hover(analysis(), text=EDITED)
    assert text is not None
    assert "**edited since the profile**" in text
    assert _hover(analysis(), text=EDITED, options=Options(stale=Stale.HIDE)) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (BaselineKind.HASHED, "unverified: the profile does not carry its source"),
        (BaselineKind.COMPILED, "compiled from this file"),
        (BaselineKind.UNKNOWN, "unverified: the source that was profiled is not known"),
    ],
)
def test_it_says_how_well_the_text_is_known(kind: BaselineKind, words: str) -> None:
    baseline = None if kind is BaselineKind.UNKNOWN else SOURCE
    text = _hover(analysis(files=(file_analysis(baseline=baseline, baseline_kind=kind),)))
    assert text is not None
    assert words in text


def test_models_state_what_they_assume() -> None:
    value = analysis(
        kernel(evidence=Evidence.MODELLED, time_share=None, assumptions=sentences("L2 hits 50 %"))
    )
    text = _hover(value)
    assert text is not None
    assert "Assumed: L2 hits 50 %" in text
    assert "Evidence: modelled" in text


def test_static_findings_have_no_number() -> None:
    file = file_analysis(
        findings=(finding(evidence=Evidence.STATIC, speedup=None, samples=0, importance=None),), lines=()
    )
    text = _hover(analysis(kernel(evidence=Evidence.STATIC), files=(file,)))
    assert text is not None
    assert text.startswith("**code only: Code Reordering** for `gather<1>` (GPA202)")
    assert "Range" not in text


def test_a_suppressed_finding_gives_the_reason() -> None:
    text = _hover(analysis(files=(file_analysis(findings=(finding(suppressed="double is needed"),)),)))
    assert text is not None
    assert "Suppressed in the source: double is needed" in text


def _came(code: str = "GPA202", *, achieved: float = 1.16, found: bool = False) -> LedgerEntry:
    return LedgerEntry(
        kernel=kernel().kernel, kernel_name="gather<1>", code=code, predicted=estimate(), achieved=achieved,
        still_found=found, comparable=None,
    )  # fmt: skip


def test_history_counts_what_was_followed() -> None:
    text = _hover(analysis(), history=(_came(), _came(achieved=1.5), _came("GPA102")))
    assert text is not None
    assert "History: 1 of 2 GPA202 predictions inside the range." in text
    assert "GPA102 promised 1.15x (1.12-1.19) for gather\\<1\\>; the kernel is at 1.16x" in text
    again = _hover(analysis(), history=(_came(found=True),))
    assert again is not None
    assert "History: GPA202 promised 1.15x (1.12-1.19) for gather\\<1\\> and is still found" in again


def test_what_was_followed_is_told_on_a_line_that_has_nothing_left_to_say() -> None:
    file = file_analysis(findings=(), lines=(line_data(7, 450, stall("long_scoreboard", 50, line=6)),))
    text = _hover(analysis(files=(file,)), history=(_came(), _came("GPA102", found=True)))
    assert text is not None
    assert "History: GPA202 promised 1.15x (1.12-1.19) for gather\\<1\\>; the kernel is at 1.16x" in text
    assert "GPA102" not in text  # it is still found, so it was not followed


def test_no_hover_is_longer_than_the_limit() -> None:
    stalls = tuple(stall(f"reason_{index}", 50, line=6) for index in range(9))
    findings = tuple(
        finding(code=f"GPA20{index}", id=str(index), message="long " * 200) for index in range(9)
    )
    loud = kernel(
        evidence=Evidence.MODELLED,
        assumptions=sentences("assumed " * 90),
        rejected=tuple((f"GPA10{index}", "because " * 30) for index in range(9)),
    )
    file = file_analysis(findings=findings, lines=(line_data(7, 450, *stalls),))
    text = _hover(analysis(loud, files=(file,)), history=(_came(),))
    assert text is not None
    lines = text.split("\n")
    assert len(lines) <= MAX_LINES
    assert lines[0].startswith("**1.15x (1.12-1.19): Code Reordering** for `gather<1>`")
    assert lines[-1].startswith("Evidence: modelled")
    assert sum(line.startswith("| reason") for line in lines) >= 3
    assert len(text) < 4_000


def test_the_chosen_instantiation_has_its_own_range() -> None:
    one = finding()
    four = replace(one.parts[0], kernel=FOUR, kernel_name="gather<4>", speedup=estimate(1.5, 1.6, 1.7))
    value = analysis(
        kernel(),
        kernel(kernel=FOUR, name="gather<4>", time_share=0.09),
        files=(file_analysis(findings=(replace(one, parts=(one.parts[0], four)),)),),
    )
    leading, chosen = _hover(value), _hover(value, options=Options(chosen={"gather": FOUR}))
    assert leading is not None
    assert chosen is not None
    assert leading.startswith("**1.15x (1.12-1.19): Code Reordering** for `gather<1>`, 34 %")
    assert chosen.startswith("**1.60x (1.50-1.70): Code Reordering** for `gather<4>`, 9.0 %")


def test_names_cannot_write_markdown() -> None:
    evil = "](command:evil) <img> `x` |"
    part = replace(finding().parts[0], kernel_name=evil)
    evil_one = finding(parts=(part,), message=evil, advice=Sentence(evil), name=evil)
    value = analysis(
        kernel(name=evil, verdict=Sentence(evil), device=evil),
        files=(file_analysis(findings=(evil_one,)),),
    )
    text = _hover(value)
    assert text is not None
    outside = text.replace("`` ](command:evil) <img> `x` \N{BROKEN BAR} ``", "")
    assert "](command" not in outside.replace("\\](command", "")
    assert "<img" not in outside.replace("\\<img", "")
    assert HEADER not in text
