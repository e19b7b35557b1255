# SPDX-License-Identifier: Apache-2.0
"""GitLab's Code Quality report: what its documentation asks of each finding, and identities that stay."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from tests import advice_values as values
from tests.unit.report.test_sarif import shifted

from gpadvisor.model.advice import Advice
from gpadvisor.report.codequality import joined_findings, render_codequality
from gpadvisor.report.placement import Repository

ROOT = "/home/kim/spmv"
# Of docs.gitlab.com, Code Quality report format.
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "pattern": r"^GPA\d{3}$"},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./|/|\.\./)[^\\]+$"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                        "additionalProperties": False,
                    },
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    },
}


def findings(advice: Advice, changed: Any = None, sources: Any = values.SOURCES) -> Any:
    text = render_codequality(advice, Repository(root=ROOT, folder=ROOT, changed=changed), sources=sources)
    found = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert len({one["fingerprint"] for one in found}) == len(found)
    return found


@pytest.mark.parametrize(
    "name", ["measured", "suppressed", "without_lines", "static", "counted", "several", "hostile"]
)
def test_output_validates(name: str) -> None:
    findings(getattr(values, name)())


def test_what_has_a_line_is_there_and_what_is_silenced_is_not() -> None:
    assert [one["check_name"] for one in findings(values.measured())] == [
        one.code for one in values.measured().kernels[0].suggestions
    ]
    silenced = [one.code for one in values.suppressed().kernels[0].suggestions if one.suppressed]
    assert silenced
    assert not set(silenced) & {one["check_name"] for one in findings(values.suppressed())}
    assert findings(values.without_lines()) == []


def test_severities_follow_the_low_end() -> None:
    (kernel,) = values.measured().kernels
    estimate = kernel.suggestions[0].speedup
    assert estimate is not None

    def severity(low: float) -> str:
        gain = replace(estimate, low=low, expected=low + 0.1, high=low + 0.2)
        one = replace(kernel.suggestions[0], speedup=gain, program_speedup=None)
        found = findings(values.advice(values.kernel(suggestions=(one,))))
        return str(found[0]["severity"])

    assert [severity(low) for low in (1.5, 1.06, 1.04)] == ["major", "minor", "info"]
    assert {one["severity"] for one in findings(values.static())} <= {"info"}


def test_fingerprints_survive_lines_moving() -> None:
    moved, sources = shifted(values.measured())
    before, after = findings(values.measured()), findings(moved, sources=sources)
    assert [one["fingerprint"] for one in before] == [one["fingerprint"] for one in after]
    assert before != after


def test_a_changed_line_is_the_place() -> None:
    changed = findings(values.measured(), {"src/gather.cu": ((10, 10),)})[1]
    assert changed["location"] == {"path": "src/gather.cu", "lines": {"begin": 10}}
    assert changed["fingerprint"] == findings(values.measured())[1]["fingerprint"]


def test_several_lists_are_one_without_doubles() -> None:
    found = findings(values.measured())
    assert json.loads(joined_findings([found, found])) == found
