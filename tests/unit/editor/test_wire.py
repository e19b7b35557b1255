# SPDX-License-Identifier: Apache-2.0
"""Analyses as JSON: the same value comes back, and nothing else is let in."""

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

from gpadvisor.editor import wire
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.finding import Place, ToolNote

NOTE = ToolNote(code="GPA905", message="unused", place=Place(file="a.cu", line=3))


def test_an_analysis_comes_back_as_it_was() -> None:
    value = analysis(problems=(NOTE,))
    assert wire.read_analysis(wire.write_analysis(value)) == value
    assert wire.read_sass(wire.write_sass(VIEW)) == VIEW


def test_bounds_that_json_cannot_say_come_back() -> None:
    value = analysis(files=(file_analysis(findings=(finding(speedup=estimate(1.0, 2.0, math.inf)),)),))
    data = wire.write_analysis(value)
    assert b"Infinity" not in data
    assert wire.read_analysis(data) == value


def test_the_bytes_are_ascii_and_the_same_each_time() -> None:
    value = analysis(files=(file_analysis(baseline="// \N{GREEK SMALL LETTER MU}s \ud800\n"),))
    data = wire.write_analysis(value)
    assert data.isascii()
    assert data == wire.write_analysis(value)
    assert wire.read_analysis(data) == value


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("schema", to="gpadvisor.editor/2"),
        _set("kind", to="sass"),
        _set("more", to=1),
        _set("value", to=[]),
        _set("value", "origin", to=7),
        _set("value", "unknown", to=7),
        _set("value", "kernels", to="text"),
        _set("value", "kernels", to={}),
        _set("value", "kernels", 0, "samples", to="12"),
        _set("value", "kernels", 0, "samples", to=1.5),
        _set("value", "kernels", 0, "samples", to=True),
        _set("value", "kernels", 0, "evidence", to="guessed"),
        _set("value", "kernels", 0, "rejected", to=[["GPA101"]]),
        _set("value", "files", 0, "findings", 0, "speedup", "low", to="1.2"),
        _set("value", "files", 0, "baseline_kind", to=None),
    ],
)
def test_anything_else_is_refused(change: Callable[[Any], None]) -> None:
    document = json.loads(wire.write_analysis(analysis()))
    change(document)
    with pytest.raises(ProfileFormatError, match="analyse again"):
        wire.read_analysis(json.dumps(document).encode())


def test_a_missing_key_is_refused() -> None:
    document = json.loads(wire.write_analysis(analysis()))
    del document["value"]["files"][0]["path"]
    with pytest.raises(ProfileFormatError):
        wire.read_analysis(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"null", b"[" * 100_000, b"{", b"\xff", b'{"schema": NaN}'])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(ProfileFormatError):
        wire.read_analysis(data)


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = wire.write_analysis(analysis())
    monkeypatch.setattr(wire, "MAX_ITEMS", 1)
    with pytest.raises(ProfileFormatError, match="no list of the length expected"):
        wire.read_analysis(data)
    monkeypatch.setattr(wire, "MAX_BYTES", 100)
    with pytest.raises(ProfileFormatError, match="more than an editor shows"):
        wire.read_analysis(data)


@given(st.data())
def test_damaged_bytes_are_refused_or_are_an_analysis(data: st.DataObject) -> None:
    good = bytearray(wire.write_analysis(analysis(problems=(NOTE,))))
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    try:
        value = wire.read_analysis(bytes(good))
    except ProfileFormatError:
        return
    assert wire.read_analysis(wire.write_analysis(value)) == value
