# SPDX-License-Identifier: Apache-2.0
"""What crosses the border of a process: the same value comes back, and nothing else is let in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.editor_values import analysis, estimate, file_analysis, finding
from tests.unit.editor.test_sass import VIEW

from gpadvisor.model.finding import EditorAnalysis, Place, SassView, ToolNote
from gpadvisor.model.fix import LaunchFacts
from gpadvisor.sandbox.codec import CodecError, from_json, to_json

NOTE = ToolNote(code="GPA905", message="unused", place=Place(file="a.cu", line=3))


@pytest.mark.parametrize(
    "value",
    [
        analysis(problems=(NOTE,)),
        analysis(files=(file_analysis(findings=(finding(speedup=estimate(1.0, 2.0, math.inf)),)),)),
        analysis(files=(file_analysis(baseline="// \N{GREEK SMALL LETTER MU}s \ud800\n"),)),
    ],
)
def test_an_analysis_comes_back_as_it_was(value: EditorAnalysis) -> None:
    assert from_json(json.loads(json.dumps(to_json(value))), EditorAnalysis) == value


def test_machine_code_comes_back_as_it_was() -> None:
    assert from_json(json.loads(json.dumps(to_json(VIEW))), SassView) == VIEW


def test_numbers_of_lines_come_back_as_numbers() -> None:
    facts = {"k": LaunchFacts(block_threads=32, trips={3: 4}, copies={5: 1, -1: 2})}
    document = json.loads(json.dumps(to_json(facts)))
    assert from_json(document, dict[str, LaunchFacts]) == facts
    for key in ("x", "03", " 3", "3.0", ""):
        document["k"]["trips"] = {key: 4}
        with pytest.raises(CodecError):
            from_json(document, dict[str, LaunchFacts])


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("origin", to=7),
        _set("unknown", to=7),
        _set("kernels", to="text"),
        _set("kernels", to={}),
        _set("kernels", 0, "samples", to="12"),
        _set("kernels", 0, "samples", to=1.5),
        _set("kernels", 0, "samples", to=True),
        _set("kernels", 0, "evidence", to="guessed"),
        _set("kernels", 0, "rejected", to=[["GPA101"]]),
        _set("files", 0, "findings", 0, "speedup", "low", to="1.2"),
        _set("files", 0, "baseline_kind", to=None),
    ],
)
def test_anything_else_is_refused(change: Callable[[Any], None]) -> None:
    document = json.loads(json.dumps(to_json(analysis())))
    change(document)
    with pytest.raises(CodecError):
        from_json(document, EditorAnalysis)


def test_a_missing_key_is_refused() -> None:
    document = json.loads(json.dumps(to_json(analysis())))
    del document["files"][0]["path"]
    with pytest.raises(CodecError):
        from_json(document, EditorAnalysis)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.data(), JSON)
def test_a_damaged_document_is_refused_or_is_an_analysis(data: st.DataObject, value: object) -> None:
    document = json.loads(json.dumps(to_json(analysis(problems=(NOTE,)))))
    at, path = document, []
    while isinstance(at, dict | list) and at and (not path or data.draw(st.booleans())):
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        path.append(key)
        at = at[key]
    _set(*path, to=value)(document)
    try:
        read = from_json(document, EditorAnalysis)
    except CodecError:
        return
    assert from_json(json.loads(json.dumps(to_json(read))), EditorAnalysis) == read
