# SPDX-License-Identifier: Apache-2.0
"""Settings as editors send them: nested, flat, wrong, or of a workspace that is not trusted."""

from __future__ import annotations

import pytest

from gpadvisor.lsp.settings import EditorSettings, read_settings


@pytest.mark.parametrize(
    "section",
    [
        {"report": {"maxPerFile": 3}, "severity": {"GPA102": "off"}},
        {"report.maxPerFile": 3, "severity": {"GPA102": "off"}},
        {"gpadvisor.report.maxPerFile": 3, "gpadvisor.severity": {"GPA102": "off"}},
    ],
)
def test_all_spellings_are_read(section: dict[str, object]) -> None:
    settings, wrong = read_settings(section, trusted=True)
    assert (settings.report_max_per_file, dict(settings.severity)) == (3, {"GPA102": "off"})
    assert wrong == ()


def test_a_wrong_value_costs_itself_alone() -> None:
    section = {
        "report": {"maxPerFile": "many", "minSpeedup": float("nan")},
        "enable": 1,
        "severity": {"GPA102": "error"},
        "profiles": {"patterns": "x"},
        "stale": "hide",
    }
    settings, wrong = read_settings(section, trusted=True)
    assert settings == EditorSettings(stale="hide")
    assert len(wrong) == 5
    assert any("severity" in sentence and "GPA102" in sentence for sentence in wrong)


@pytest.mark.parametrize(
    "section", [None, [], "x", {"report": None}, {"report": []}, {"unknown": {"key": 1}}]
)
def test_strange_sections_are_no_settings(section: object) -> None:
    assert read_settings(section, trusted=True) == (EditorSettings(), ())


def test_nothing_restricted_is_read_without_trust() -> None:
    section = {"nvcc": {"path": "/evil"}, "profile": {"command": ["/evil"], "onSave": True}, "stale": "hide"}
    assert read_settings(section, trusted=False) == (EditorSettings(stale="hide"), ())
    trusted, _ = read_settings(section, trusted=True)
    assert trusted.nvcc_path == "/evil"
