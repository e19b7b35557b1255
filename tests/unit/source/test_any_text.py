# SPDX-License-Identifier: Apache-2.0
"""Any text makes facts, and any JSON either makes facts or is refused."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gpadvisor.source.facts import SourceFacts
from gpadvisor.source.reading import source_facts

PIECES = [
    "// gpadvisor: ignore[GPA102] why",
    "/* gpadvisor: ignore[GPA201, GPA202]",
    "*/",
    "# gpadvisor: ignore[GPA101]",
    "\n",
    "\r\n",
    "\\\n",
    '"',
    "'",
    '"""',
    "#=",
    "=#",
    'R"(',
    ')"',
    "{",
    "}",
    "(",
    ")",
    "for (;;)",
    "if (x)",
    "__global__ void k(float *a)",
    "__launch_bounds__(1)",
    "#pragma unroll",
    "template <int N>",
    "0.5",
    "x / y;",
    "namespace n",
    "\x00",
    "\ud800",
    "\u4e2d",
    "#if 0\n",
    "#endif\n",
    "#define A \\\n",
    ";",
    " ",
]

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


@settings(max_examples=150, deadline=None)
@given(text=texts, path=st.sampled_from(["a.cu", "a.py", "a.jl", "a"]))
def test_comments_lie_in_the_text_and_cover_lines_of_it(text: str, path: str) -> None:
    lines = text.count("\n") + 1
    for comment in source_facts(path, text).comments:
        assert 1 <= comment.line <= lines
        assert 1 <= comment.first_line <= comment.last_line <= lines
        assert all(code.startswith("GPA") for code in comment.codes)
        assert "\n" not in comment.reason


@settings(max_examples=150, deadline=None)
@given(text=texts, path=st.sampled_from(["a.cu", "a.py"]))
def test_facts_lie_in_the_text_and_come_back_from_json(text: str, path: str) -> None:
    facts = source_facts(path, text)
    assert SourceFacts.from_json(json.loads(json.dumps(facts.to_json())), text.count("\n") + 1) == facts
    for token in (*facts.double_literals, *facts.divisions):
        assert "\n" not in token.text


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.text(max_size=3) | st.just("GPA101") | st.floats(),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=30,
)


@settings(max_examples=200, deadline=None)
@given(parts=st.lists(st.lists(values, max_size=3) | values, min_size=4, max_size=6) | values)
def test_what_is_not_facts_is_a_value_error(parts: object) -> None:
    try:
        facts = SourceFacts.from_json(parts, 3)
    except ValueError:
        return
    assert json.loads(json.dumps(facts.to_json())) == parts
