# SPDX-License-Identifier: Apache-2.0
"""The status line, what is stale, and how old a profile is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import pytest
from tests.editor_values import FILE, SOURCE, analysis, estimate, file_analysis, finding, kernel, placed

from gpadvisor.editor.show.options import Options, Severity
from gpadvisor.editor.show.status import age, bar_words, elsewhere_words, stale_note, stale_share, status
from gpadvisor.model.finding import EditorAnalysis, LedgerEntry, Place, ToolNote
from gpadvisor.model.profile import Evidence

NOW = datetime(2026, 11, 21, 7, 2, tzinfo=UTC)
NO_GAIN = finding(speedup=None)
EDITED = SOURCE.replace("scaled(in[j])", "twice(in[j])")


def test_device_age_and_findings() -> None:
    found = status(analysis(), [placed(analysis())], NOW)
    assert found.text == "GPA · A100 · 2 hours ago · 1 finding"
    assert found.stale_share == 0
    assert found.details == ("run.ncu-rep", "gather<1>: Limited by latency")


@pytest.mark.parametrize(
    ("value", "text", "wanted"),
    [
        (analysis(), SOURCE, "1 finding, best 1.15x"),
        (analysis(), EDITED, "1 finding, 61 % stale"),
        (analysis(kernel(evidence=Evidence.STATIC), files=(file_analysis(findings=(NO_GAIN,)),)), SOURCE,
         "1 finding, code only"),
        (analysis(kernel(evidence=Evidence.MODELLED)), SOURCE, "1 finding, best 1.15x, modelled"),
        (analysis(files=(file_analysis(findings=(finding(suppressed="known"),)),)), SOURCE, "no finding"),
    ],
)  # fmt: skip
def test_the_status_bar_says_how_many_and_the_best(value: EditorAnalysis, text: str, wanted: str) -> None:
    assert bar_words(value, placed(value, text), Options()) == wanted


def test_what_another_file_of_a_profile_has_to_offer_is_said_where_nothing_is() -> None:
    best = finding(speedup=estimate(2.0, 2.4, 3.0))
    values = [analysis(files=(file_analysis(findings=(finding(), best)),)), analysis(files=())]
    assert elsewhere_words(values, Options()) == "2.4x in gather.cu"
    off = Options(severity=MappingProxyType({"GPA202": Severity.OFF}))
    assert elsewhere_words(values, off) is None
    assert elsewhere_words([analysis(files=(file_analysis(findings=(NO_GAIN,)),))], Options()) is None


def test_a_rule_that_is_off_is_not_counted() -> None:
    off = Options(severity=MappingProxyType({"GPA202": Severity.OFF}))
    assert bar_words(analysis(), placed(analysis()), off) == "no finding"


def test_stale_samples_are_said() -> None:
    found = status(analysis(), [placed(analysis(), EDITED)], NOW)
    assert found.text == "GPA · A100 · 2 hours ago · 1 finding · 61 % stale"


def test_what_was_not_measured_says_so() -> None:
    value = analysis(kernel(evidence=Evidence.STATIC, device="sm_80"), collector=None, collected_at=None)
    assert status(value, [], NOW).text == "GPA · sm_80 · static · 1 finding"


def test_suppressed_findings_do_not_count() -> None:
    value = analysis(files=(file_analysis(findings=(finding(suppressed="known"), finding(9))),))
    assert "1 finding" in status(value, [], NOW).text


def test_notes_and_predictions_are_details() -> None:
    notes = (
        ToolNote(code="GPA901", message="no lines", place=None),
        ToolNote(code="GPA905", message="unused", place=Place(file="a.cu", line=1)),
    )
    entry = LedgerEntry(
        kernel="k", kernel_name="gather<1>", code="GPA202", predicted=estimate(), achieved=1.16,
        still_found=False, comparable=None,
    )  # fmt: skip
    came = "the kernel is at 1.16x of its old speed: inside the range"
    details = status(analysis(problems=notes), [], NOW, (entry,)).details
    assert details[2:] == (
        "GPA901: no lines",
        f"GPA202 promised 1.15x (1.12-1.19) for gather<1>; {came}",
    )


def test_many_kernels_and_devices_are_counted() -> None:
    kernels = [kernel(name=f"k{index}", device=f"GPU {index % 2}") for index in range(8)]
    found = status(analysis(*kernels), [], NOW)
    assert found.text.startswith("GPA · GPU 0 and 1 more")
    assert "and 3 more kernels" in found.details


def test_the_stale_note() -> None:
    assert stale_note(analysis(), [placed(analysis())]) is None
    note = stale_note(analysis(), [placed(analysis(), EDITED)])
    assert note is not None
    assert note.code == "GPA902"
    assert note.message == (
        "Profile taken 2026-11-21 05:02, before your last edits: 39 % of its samples in gather.cu are on "
        "unchanged lines, and 1 finding on edited ones. Profile again to renew them."
    )
    assert note.place == Place(file=FILE, line=7)


def test_what_has_no_samples_is_compiled_again_and_not_stale() -> None:
    value = analysis(files=(file_analysis(lines=()),))
    assert stale_note(value, [placed(value, EDITED)]) is None
    assert stale_share([placed(value, EDITED)]) is None


def test_a_profile_without_a_date_is_named() -> None:
    value = analysis(collected_at=None)
    note = stale_note(value, [placed(value, "")])
    assert note is not None
    assert note.message.startswith("run.ncu-rep was taken, before your last edits: 0 % of its samples")


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=2), "2 hours ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(seconds=-5), None),
    ],
)
def test_ages(delta: timedelta, words: str | None) -> None:
    assert age((NOW - delta).isoformat(), NOW) == words


def test_ages_of_times_with_and_without_zones() -> None:
    assert age("2026-11-21T06:02:00", NOW) == "1 hour ago"
    assert age("2026-11-21T06:02:00", NOW.astimezone(timezone(timedelta(hours=5)))) == "1 hour ago"
    assert age("2026-11-21T06:02:00", NOW.replace(tzinfo=None)) == "1 hour ago"
    assert age("yesterday", NOW) is None
    assert age(None, NOW) is None
