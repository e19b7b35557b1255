# SPDX-License-Identifier: Apache-2.0
"""The rules' pages are what their modules say (``make docs``), and every setting has its row."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_type_hints

import pytest
from docs.generate import FOLDER, README, TRANSCRIPT_REPORT, pages, readme_with, transcript

from gpadvisor.pipeline.settings import Settings


def test_generated_pages_are_current() -> None:
    wanted = pages()
    stale = [
        name
        for name, text in wanted.items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run 'make docs': {stale}"


def test_no_page_of_a_rule_that_is_gone() -> None:
    wanted = pages()
    found = {f"rules/{path.name}" for path in (FOLDER / "rules").glob("*.md")}
    assert found <= set(wanted)


def test_every_setting_is_documented_with_its_own_words() -> None:
    text = (FOLDER / "settings.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip(" `"): line for line in text.splitlines() if line.startswith("| `")}
    assert set(rows) == {name.replace("_", "-") for name in Settings._fields}
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        assert hint.__metadata__[0] in rows[name.replace("_", "-")]


@pytest.mark.reports
@pytest.mark.nvdisasm
def test_the_transcript_in_the_readme_is_what_the_command_prints() -> None:
    """Written by ``make docs`` where GPADVISOR_REPORTS has the report."""
    reports = Path(os.environ["GPADVISOR_REPORTS"])
    if not (reports / TRANSCRIPT_REPORT).is_file():
        pytest.skip(f"GPADVISOR_REPORTS has no {TRANSCRIPT_REPORT}")
    assert README.read_text(encoding="utf-8") == readme_with(transcript(reports))
