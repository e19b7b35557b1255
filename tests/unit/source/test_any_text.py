# SPDX-License-Identifier: Apache-2.0
"""Sources that are no sources: the readers of comments and patterns take any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpadvisor.source import suppression_comments
from gpadvisor.source.patterns import CudaSource

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
    for comment in suppression_comments(path, text):
        assert 1 <= comment.line <= lines
        assert 1 <= comment.first_line <= comment.last_line <= lines
        assert all(code.startswith("GPA") for code in comment.codes)
        assert "\n" not in comment.reason


@settings(max_examples=150, deadline=None)
@given(text=texts, line=st.integers(-1, 30))
def test_patterns_lie_on_the_line_asked_for(text: str, line: int) -> None:
    source = CudaSource(text)
    loop, kernel = source.loop(line), source.kernel(line)
    assert loop is None or loop.line == line <= loop.last_line
    assert kernel is None or kernel.line <= line <= kernel.last_line
    for token in (*source.double_literals(line), *source.divisions(line)):
        assert "\n" not in token.text
