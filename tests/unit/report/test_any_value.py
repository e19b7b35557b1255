# SPDX-License-Identifier: Apache-2.0
"""Whatever the names, paths and numbers are, every format is written and is what it claims to be."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import advice_values as values
from tests.schemas import published_schema

from gpadvisor.model.advice import Advice, Estimate, SourceMatch
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame
from gpadvisor.report.jsonformat import render_json
from gpadvisor.report.markdown import render_markdown
from gpadvisor.report.sarif import render_sarif
from gpadvisor.report.text import render_text
from gpadvisor.report.words import cells

SCHEMA = jsonschema.Draft202012Validator(published_schema("report", "advice"))

letters = st.text(st.characters(), max_size=60)
numbers = st.floats(allow_nan=True, allow_infinity=True)
lines = st.integers(0, 2**31)


@st.composite
def strange_advice(draw: st.DrawFn) -> Advice:
    name, path, words = draw(letters), draw(letters), draw(letters)
    location = draw(st.none() | st.builds(SourceLocation, st.just(path), lines))
    hotspots = tuple(
        replace(
            hotspot,
            reason=name,
            speedup=draw(numbers),
            definition=hotspot.definition
            and replace(hotspot.definition, location=location, function=name, text=words, opcode=words),
            use=hotspot.use
            and replace(
                hotspot.use, inline=(InlineFrame(draw(st.none() | letters), SourceLocation(path, 1)),)
            ),
        )
        for hotspot in draw(st.permutations(values.LOOP_UNROLLING.hotspots))
    )
    estimate = Estimate(
        low=draw(numbers),
        expected=draw(numbers),
        high=draw(numbers),
        paper=draw(st.none() | numbers),
        equation=words,
        reasons=(name,),
    )
    suggestion = replace(
        values.LOOP_UNROLLING,
        title=words,
        advice=name,
        speedup=draw(st.none() | st.just(estimate)),
        scope=replace(values.LOOP, name=name, location=location),
        hotspots=hotspots,
    )
    kernel = values.kernel(
        name=name,
        mangled=words,
        verdict=words,
        suggestions=(suggestion, values.THREAD_INCREASE),
        groups=(),
        duration_ns=draw(st.none() | numbers),
    )
    return values.advice(
        kernel, path=path, sources=(SourceMatch(report_path=path, local_path=name, method="path suffix"),)
    )


@settings(max_examples=40, deadline=None)
@given(strange_advice())
def test_every_format_is_written(advice: Advice) -> None:
    for details in (False, True):
        text = render_text(advice, details=details)
        assert all(char == "\n" or char.isprintable() or char.isspace() for char in text)
        assert [line for line in text.split("\n") if cells(line) > 80] == []
    render_markdown(advice).encode("utf-8")
    sarif = json.loads(render_sarif(advice), parse_constant=_refuse)
    assert len(sarif["runs"][0]["results"]) == 2
    document = json.loads(render_json(advice), parse_constant=_refuse)
    SCHEMA.validate(document)


def _refuse(constant: str) -> float:
    raise AssertionError(constant)


def test_the_refusal_above_is_reached() -> None:
    assert math.isnan(json.loads("NaN"))
