# SPDX-License-Identifier: Apache-2.0
"""Whole reports, reviewed as differences; ``pytest --snapshot-update`` rewrites them."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests import advice_values as values

from gpadvisor.report.jsonformat import render_json
from gpadvisor.report.markdown import render_markdown
from gpadvisor.report.placement import Repository
from gpadvisor.report.sarif import RuleMetadata, SarifOptions, SarifSources, render_sarif
from gpadvisor.report.text import render_text

RULES = (
    RuleMetadata(
        code="GPA201",
        slug="loop-unrolling",
        name="Loop Unrolling",
        summary="A load is waited for in the loop that it is in.",
        help_markdown="# GPA201\n\nUnroll.",
        help_uri="https://example.org/GPA201",
    ),
)


class Report(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


class Markdown(Report):
    file_extension = "md"


class Json(Report):
    file_extension = "json"


class Sarif(Report):
    file_extension = "sarif"


@pytest.fixture(autouse=True)
def _same_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("screen", "text", "jsonformat", "sarif"):
        monkeypatch.setattr(f"gpadvisor.report.{module}.__version__", "1.2.3")


@pytest.mark.parametrize(
    "name", ["measured", "suppressed", "without_lines", "static", "counted", "several", "hostile"]
)
def test_screen(name: str, snapshot: SnapshotAssertion) -> None:
    report = render_text(getattr(values, name)(), sources=values.SOURCES)
    assert report == snapshot(extension_class=Report)


@pytest.mark.parametrize(
    "name", ["measured", "suppressed", "without_lines", "static", "counted", "several", "hostile"]
)
def test_text(name: str, snapshot: SnapshotAssertion) -> None:
    report = render_text(getattr(values, name)(), sources=values.SOURCES, details=True)
    assert report == snapshot(extension_class=Report)


def test_text_on_a_wide_page_without_sources(snapshot: SnapshotAssertion) -> None:
    report = render_text(values.measured(), width=132, top=2, details=True)
    assert report == snapshot(extension_class=Report)


@pytest.mark.parametrize("details", [False, True])
def test_text_in_colour(details: bool, snapshot: SnapshotAssertion) -> None:
    report = render_text(values.suppressed(), color=True, details=details).replace("\x1b", "<ESC>")
    assert report == snapshot(extension_class=Report)


@pytest.mark.parametrize("name", ["measured", "suppressed", "without_lines", "several", "static", "hostile"])
def test_markdown(name: str, snapshot: SnapshotAssertion) -> None:
    report = render_markdown(getattr(values, name)(), sources=values.SOURCES)
    assert report == snapshot(extension_class=Markdown)


@pytest.mark.parametrize("name", ["measured", "static"])
def test_json(name: str, snapshot: SnapshotAssertion) -> None:
    assert render_json(getattr(values, name)()) == snapshot(extension_class=Json)


@pytest.mark.parametrize("name", ["suppressed", "without_lines", "static"])
def test_sarif(name: str, snapshot: SnapshotAssertion) -> None:
    options = SarifOptions(repository=Repository(root="/home/kim/spmv"), rules=RULES)
    report = render_sarif(getattr(values, name)(), options, SarifSources(texts=values.SOURCES))
    assert report == snapshot(extension_class=Sarif)
