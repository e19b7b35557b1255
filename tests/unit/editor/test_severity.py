# SPDX-License-Identifier: Apache-2.0
"""How loudly findings are shown: a warning only where a gain is likely, measured, and of this very text."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from tests.editor_values import SOURCE, analysis, estimate, file_analysis, finding, placed

from gpadvisor.editor.place.placing import PlacedFinding, place
from gpadvisor.editor.show.options import Options, Severity
from gpadvisor.editor.show.severity import note_severity, severity
from gpadvisor.model.finding import BaselineKind, Finding, ToolNote
from gpadvisor.model.profile import Evidence

EDITED = SOURCE.replace("scaled(in[j])", "twice(in[j])")


def _placed(value: Finding, text: str = SOURCE, kind: BaselineKind = BaselineKind.EMBEDDED) -> PlacedFinding:
    return place(file_analysis(findings=(value,), baseline_kind=kind), text).findings[0]


def test_measured_fresh_and_likely_is_a_warning() -> None:
    assert severity(_placed(finding()), Options()) is Severity.WARNING


@pytest.mark.parametrize(
    "value",
    [
        _placed(finding(whole=estimate(1.04, 1.2, 1.4))),
        _placed(finding(speedup=None)),
        _placed(finding(), EDITED),
        _placed(finding(), SOURCE, BaselineKind.HASHED),
        _placed(finding(evidence=Evidence.COUNTED, speedup=None)),
        _placed(finding(whole=estimate(float("nan"), 1.2, 1.4))),
        _placed(finding(evidence=Evidence.STATIC, speedup=None)),
        _placed(finding(evidence=Evidence.MODELLED)),
    ],
    ids=[
        "unlikely",
        "no estimate",
        "edited",
        "unverified",
        "counted",
        "not a number",
        "code only",
        "modelled",
    ],
)
def test_everything_else_is_information(value: PlacedFinding) -> None:
    assert severity(value, Options()) is Severity.INFORMATION


@pytest.mark.parametrize(
    "value",
    [
        finding(whole=estimate(1.0, 1.02, 1.04)),
        finding(whole=None, speedup=estimate(1.0, 1.02, 1.04)),
        finding(leads=False),
    ],
    ids=["of the run", "of the kernel, where the run is not known", "a further line"],
)
def test_what_the_run_does_not_notice_is_a_hint(value: Finding) -> None:
    assert severity(_placed(value), Options()) is Severity.HINT


def test_a_rule_has_its_own_severity() -> None:
    options = Options(severity=MappingProxyType({"GPA202": Severity.HINT, "GPA905": Severity.OFF}))
    assert severity(_placed(finding()), options) is Severity.HINT
    assert severity(_placed(finding(code="GPA102")), options) is Severity.WARNING
    assert note_severity(ToolNote(code="GPA905", message="", place=None), options) is Severity.OFF


def test_what_the_source_sets_aside_is_off() -> None:
    options = Options(severity=MappingProxyType({"GPA202": Severity.WARNING}))
    assert severity(_placed(finding(suppressed="known")), options) is Severity.OFF


def test_the_threshold_is_a_setting() -> None:
    assert severity(_placed(finding(whole=estimate())), Options(warning_low=1.2)) is Severity.INFORMATION


def test_stale_and_quiet_notes_are_hints_and_others_information() -> None:
    assert note_severity(ToolNote(code="GPA902", message="", place=None), Options()) is Severity.HINT
    assert note_severity(ToolNote(code="GPA901", message="", place=None), Options()) is Severity.INFORMATION
    quiet = ToolNote(code="GPA900", message="", place=None, quiet=True)
    assert note_severity(quiet, Options()) is Severity.HINT


def test_there_is_no_error() -> None:
    assert not any(entry.value == "error" for entry in Severity)
    assert placed(analysis()).findings
