# SPDX-License-Identifier: Apache-2.0
"""What crosses the border of a process: the same value comes back, and nothing else is let in."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from hypothesis import given
from tests.damage import damaged, document_of
from tests.editor_values import analysis, estimate, file_analysis, finding
from tests.unit.editor.test_sass import VIEW

from gpadvisor.model.finding import EditorAnalysis, Place, SassView, ToolNote
from gpadvisor.model.fix import LaunchFacts
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence, line_mark
from gpadvisor.sandbox.codec import (
    CodecError,
    Failure,
    MaxLength,
    from_answer,
    from_bytes,
    from_json,
    to_bytes,
)

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
    assert from_json(document_of(value), EditorAnalysis) == value


def test_machine_code_comes_back_as_it_was() -> None:
    assert from_json(document_of(VIEW), SassView) == VIEW


def test_numbers_of_lines_come_back_as_numbers() -> None:
    facts = {"k": LaunchFacts(block_threads=32, trips={3: 4}, copies={5: 1, -1: 2})}
    document = document_of(facts)
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
    document = document_of(analysis())
    change(document)
    with pytest.raises(CodecError):
        from_json(document, EditorAnalysis)


def test_a_missing_key_is_refused() -> None:
    document = document_of(analysis())
    del document["files"][0]["path"]
    with pytest.raises(CodecError):
        from_json(document, EditorAnalysis)


@given(damaged(analysis(problems=(NOTE,))))
def test_a_damaged_document_is_refused_or_is_an_analysis(document: object) -> None:
    try:
        read = from_json(document, EditorAnalysis)
    except CodecError:
        return
    assert from_json(document_of(read), EditorAnalysis) == read


@dataclass(frozen=True, kw_only=True)
class _Tree:
    """A value of each form that an annotation has, and others of its kind in it."""

    name: Annotated[str, MaxLength(3)]
    size: int | float | None
    inner: Annotated[tuple[_Tree, ...], MaxLength(2)] = ()
    by_name: Mapping[str, _Tree] = field(default_factory=dict)
    more: Any = None


LEAF = _Tree(name="a", size=1)
TREE = _Tree(name="abc", size=0.5, inner=(LEAF, _Tree(name="", size=None)), by_name={"x": LEAF}, more=[1, {}])


def test_values_within_values_come_back_as_they_were() -> None:
    assert from_bytes(to_bytes(TREE), _Tree) == TREE
    assert type(from_bytes(to_bytes(LEAF), _Tree).size) is int
    assert from_json({"name": "a", "size": 1}, _Tree) == LEAF  # what has a default may be missing


@dataclass(frozen=True, kw_only=True)
class _Words:
    """Sentences, and fields that promise no more than text."""

    told: Sentence
    by_line: Mapping[str, tuple[Sentence, ...]]
    plain: str
    rows: tuple[str, ...]
    perhaps: str | None


def test_a_sentence_names_its_lines_only_where_a_sentence_is_read() -> None:
    sentence = Sentence(f"See {line_mark(SourceLocation('a.cu', 3))}.")
    value = _Words(
        told=sentence, by_line={"3": (sentence,)}, plain=sentence, rows=(sentence,), perhaps=sentence
    )
    back = from_bytes(to_bytes(value), _Words)
    assert back == value
    assert [one.marked for one in (back.told, *back.by_line["3"])] == [sentence.marked] * 2
    assert {type(text) for text in (back.plain, *back.rows, back.perhaps)} == {str}


@given(damaged(TREE))
def test_a_damaged_tree_is_refused_or_is_a_tree(document: object) -> None:
    try:
        read = from_json(document, _Tree)
    except CodecError:
        return
    # NaN is equal to nothing.
    assert json.dumps(document_of(from_json(document_of(read), _Tree))) == json.dumps(document_of(read))
    assert len(read.name) <= 3
    assert len(read.inner) <= 2


@pytest.mark.parametrize(
    "change",
    [
        _set("name", to="abcd"),
        _set("name", to=["a"]),
        _set("size", to=True),
        _set("size", to="1"),
        _set("inner", to=[document_of(LEAF)] * 3),
        _set("inner", to={}),
        _set("inner", 0, "inner", to=None),
        _set("by_name", to=[]),
        _set("by_name", "x", to=[]),
        _set("by_name", "x", "title", to=""),
    ],
)
def test_nothing_else_is_a_tree(change: Callable[[Any], None]) -> None:
    document = document_of(TREE)
    change(document)
    with pytest.raises(CodecError, match="no _Tree: "):
        from_json(document, _Tree)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000, b"null", b"{}", b"[]"])
def test_a_text_that_is_no_value_is_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        from_bytes(data, _Tree)


def test_a_child_answers_a_value_or_an_error() -> None:
    assert from_answer(to_bytes(TREE), _Tree) == TREE
    failure = Failure(error="ToolError", message="no room")
    assert from_answer(to_bytes(failure), _Tree) == failure
    for damage_of in ({"error": "ToolError"}, {"error": 1, "message": ""}, {"message": "no room"}, []):
        with pytest.raises(CodecError):
            from_answer(json.dumps(damage_of).encode(), _Tree)
