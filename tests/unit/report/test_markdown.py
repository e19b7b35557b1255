# SPDX-License-Identifier: Apache-2.0
"""The Markdown report: complete, and safe to post."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import advice_values as values

from gpadvisor.report.markdown import code, prose, render_markdown


@pytest.mark.parametrize("name", ["measured", "suppressed", "without_lines", "several", "hostile"])
def test_every_table_row_has_as_many_cells_as_its_header(name: str) -> None:
    report = render_markdown(getattr(values, name)(), sources=values.SOURCES)
    width = 0
    for line in report.splitlines():
        if not line.startswith("| "):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
        width = width or cells
        assert cells == width, line


def without_code(report: str) -> str:
    return re.sub(r"(?<![\\`])(`+)(?!`).+?(?<!`)\1(?!`)", "", report)


def test_hostile_names_stay_text() -> None:
    report = without_code(render_markdown(values.hostile()))
    assert "onerror" in report
    assert "<img" not in report
    assert not re.search(r"(?<!\\)\]\(http", report)
    assert "\x1b" not in report
    assert not re.search(r"@(?!<!-- -->)\w", report)


@given(st.text(st.sampled_from("`a |\\*_<@#1")))
def test_a_code_span_has_a_fence_that_its_text_does_not_have(text: str) -> None:
    span = code(text)
    if text:
        fence = re.match(r"`+", span)
        assert fence is not None
        length = len(fence.group())
        inner = span[length:-length]
        assert span.endswith("`" * length)
        assert length not in {len(run) for run in re.findall(r"`+", inner)}


@given(st.text(st.sampled_from("`a |\\*_<@#1")))
def test_prose_in_a_cell_has_no_bar_that_ends_it(text: str) -> None:
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", prose(text))


def test_prose_stays_readable() -> None:
    assert prose("long_scoreboard of T - M_L") == "long_scoreboard of T - M_L"
    assert prose("put __launch_bounds__(256)") == "put \\_\\_launch_bounds\\_\\_(256)"
    assert prose("launch #3 <b> a&b") == "launch #<!-- -->3 &lt;b&gt; a&amp;b"


def test_the_top_suggestions_only() -> None:
    report = render_markdown(values.measured(), top=1)
    assert "): Strength Reduction, 12.7 % of the samples" in report
    assert "Loop Unrolling, " not in report
    assert "3 more not shown; 1 below the thresholds" in report
