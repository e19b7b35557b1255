# SPDX-License-Identifier: Apache-2.0
"""The rules' pages are what their modules say (``make docs``), and every setting has its row."""

from __future__ import annotations

from dataclasses import fields

from docs.generate import FOLDER, pages

from gpadvisor.workflow.settings import Settings


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
    assert set(rows) == {entry.name.replace("_", "-") for entry in fields(Settings)}
    for entry in fields(Settings):
        assert entry.metadata["doc"] in rows[entry.name.replace("_", "-")]
