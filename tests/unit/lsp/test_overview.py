# SPDX-License-Identifier: Apache-2.0
"""The overview lists what is known once, in today's lines, and what could not be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.editor_values import FILE, FOUR, SOURCE, analysis, estimate, file_analysis, finding, kernel

from gpadvisor.lsp.features.overview import overview
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.paths import read_text
from gpadvisor.lsp.protocol import OverviewEntry
from gpadvisor.lsp.state import State
from gpadvisor.model.finding import EditorAnalysis


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "gather.cu"
    path.write_text(SOURCE)
    return path


def listed(state: State, profile: str | None = None) -> list[OverviewEntry]:
    return overview(state.now, profile, read_text)


def put(state: State, value: EditorAnalysis, *, is_profile: bool = True, age: float = 1.0) -> None:
    key = f"{'profile' if is_profile else 'source'}:{value.origin}"
    state.put(Entry(key=key, analysis=value, is_profile=is_profile, age=age))


def test_findings_stand_at_the_heaviest_line_as_it_is_today(source: Path) -> None:
    lines = file_analysis(local=str(source), findings=(finding(line=6, leads=False, samples=10), finding()))
    state = State()
    put(state, analysis(files=(lines,)))
    state.open(source.as_uri(), f"// new\n{SOURCE}", 1)
    (entry,) = listed(state)
    (one,) = entry.kernels
    (found,) = one.findings
    assert (entry.name, entry.profile, one.name, one.duration_ns) == ("run.ncu-rep", True, "gather<1>", 1e3)
    assert found.place is not None
    assert (found.place.uri, found.place.line, found.place.stale) == (source.as_uri(), 7, False)
    assert (found.gain, found.gain_and_range) == ("1.15x", "1.15x (1.12-1.19)")
    assert one.place is not None
    assert one.place.line == 3

    state.open(source.as_uri(), SOURCE.replace("scaled(in[j])", "in[j]"), 2)
    (entry,) = listed(state)
    place = entry.kernels[0].findings[0].place
    assert place is not None
    assert (place.line, place.stale) == (6, True)


def test_a_share_of_samples_is_named_where_it_explains_the_gain() -> None:
    def share(expected: float) -> float | None:
        (one,) = kernel().suggestions
        state = State()
        half = replace(one, importance=0.5, speedup=estimate(1.0, expected, 5.0))
        put(state, analysis(kernel(suggestions=(half,))))
        return listed(state)[0].kernels[0].findings[0].share

    assert (share(3.9), share(4.1)) == (0.5, None)  # half of the samples give at most 2x (GPA Eq. 2)


def test_without_its_source_a_finding_has_no_line() -> None:
    state = State()
    put(state, analysis(files=(file_analysis(local=None),)))
    (entry,) = listed(state)
    assert entry.kernels[0].findings[0].place is None
    assert entry.kernels[0].place is None
    assert entry.kernels[0].findings[0].change == "Move it."


def test_machine_code_lists_what_no_profile_tells_of(source: Path) -> None:
    state = State()
    other = kernel(kernel=FOUR, name="gather<4>", suggestions=())
    put(state, replace(analysis(kernel(), other), origin=str(source)), is_profile=False)
    put(state, replace(analysis(), origin="/data/old.ncu-rep"), age=1.0)
    put(state, replace(analysis(), origin="/data/new.ncu-rep"), age=2.0)
    found = listed(state)
    assert [one.name for one in found] == ["new.ncu-rep", "old.ncu-rep", "gather.cu"]
    assert [one.name for one in found[2].kernels] == ["gather<4>"]
    put(state, replace(analysis(kernel()), origin=str(source)), is_profile=False)
    assert [one.name for one in listed(state)] == ["new.ncu-rep", "old.ncu-rep"]


def test_what_could_not_be_read_is_listed_with_the_reason(tmp_path: Path) -> None:
    state = State()
    bad = str(tmp_path / "bad\u202e.ncu-rep")
    state.failed(bad, "it is cut off")
    put(state, analysis())
    assert [(one.path, one.error) for one in listed(state)] == [
        ("/data/run.ncu-rep", None),
        (bad, "it is cut off"),
    ]
    (only,) = listed(state, bad)
    assert only.name == "bad\N{REPLACEMENT CHARACTER}.ncu-rep"
    assert listed(state, "/data/other.ncu-rep") == []


def test_names_and_sentences_have_nothing_that_reorders_text() -> None:
    state = State()
    put(state, analysis(kernel(verdict="a\u202eb", problems=("c\nd",)), files=(file_analysis(path=FILE),)))
    (entry,) = listed(state)
    assert entry.kernels[0].verdict == "a\N{REPLACEMENT CHARACTER}b"
    assert entry.kernels[0].problems == ["c d"]
