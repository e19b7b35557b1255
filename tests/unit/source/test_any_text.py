# SPDX-License-Identifier: Apache-2.0
"""Any text makes facts, and any JSON either makes facts or is refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.damage import damage, damaged, document_of

from gpadvisor.sandbox.codec import from_json
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
    assert from_json(document_of(facts), SourceFacts).of_text(text.count("\n") + 1) == facts
    for token in (*facts.double_literals, *facts.divisions):
        assert "\n" not in token.text


GOOD = source_facts(
    "a.cu",
    """// gpadvisor: ignore[GPA102] why
template <int N> __global__ void __launch_bounds__(N) k(float *a, int n) {
    #pragma unroll 2
    for (int i = 0; i < n; ++i) a[i / n] += 0.5;
}
const int N = 64;
void f(float *a) { k<N><<<1, N>>>(a, 1); }
""",
)
LINES = 8


def test_the_good_one_has_everything() -> None:
    assert all(getattr(GOOD, field.name) for field in fields(GOOD))
    assert from_json(document_of(GOOD), SourceFacts).of_text(LINES) == GOOD


@given(damaged(GOOD))
def test_what_is_not_facts_is_a_value_error(document: object) -> None:
    try:
        facts = from_json(document, SourceFacts).of_text(LINES)
    except ValueError:
        return
    assert from_json(document_of(facts), SourceFacts).of_text(LINES) == facts
    sites = (*facts.comments, *facts.loops, *facts.kernels, *facts.launches, *facts.double_literals)
    assert all(1 <= site.line <= getattr(site, "last_line", LINES) <= LINES for site in sites)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("comments", 0, "codes", 0), "GPA10"),
        (("comments", 0, "codes"), ["GPA101"] * 101),
        (("comments", 0, "reason"), "x" * 401),
        (("comments", 0, "line"), 0),
        (("comments", 0, "line"), LINES + 1),
        (("comments", 0, "first_line"), 0),
        (("comments", 0, "last_line"), LINES + 1),
        (("double_literals", 0, "text"), "x" * 61),
        (("double_literals", 0, "line"), LINES + 1),
        (("divisions", 0, "line"), LINES + 1),
        (("loops", 0, "last_line"), 1),
        (("loops", 0, "unroll"), "x" * 61),
        (("kernels", 0, "line"), LINES + 1),
        (("kernels", 0, "launch_bounds"), "x" * 61),
        (("kernels", 0, "unrestricted"), ["a"] * 9),
        (("kernels", 0, "name"), "x" * 401),
        (("kernels", 0, "parameters"), ["a"] * 65),
        (("launches", 0, "line"), 0),
        (("launches", 0, "sizes", 0, "line"), LINES + 1),
        (("launches", 0, "sizes"), [{"text": "N", "line": 1}] * 4),
        (("launches", 0, "tile"), ["N"] * 4),
        (("loops",), [{"line": 1, "last_line": 1, "unroll": None}] * 10_001),
        (("comments",), None),
    ],
)
def test_facts_of_another_text_are_refused(path: tuple[Any, ...], value: object) -> None:
    document = damage(document_of(GOOD), *path, to=value)
    with pytest.raises(ValueError, match=r"no SourceFacts|other lines|no rule code"):
        from_json(document, SourceFacts).of_text(LINES)
