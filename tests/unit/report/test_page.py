# SPDX-License-Identifier: Apache-2.0
"""No text and no link of a file here that is not what was profiled."""

from __future__ import annotations

from tests.advice_values import GATHER_FILE, advice, at, code, kernel

from gpadvisor.model.advice import SourceMatch
from gpadvisor.report.page import Page, make_page


def _page(odd_lines: int) -> Page:
    match = SourceMatch(
        report_path=GATHER_FILE,
        local_path="/here/gather.cu",
        method="path suffix",
        is_unsure=True,
        odd_lines=odd_lines,
    )
    found = advice(kernel(), sources=(match,))
    return make_page(found, width=80, color=False, sources={GATHER_FILE: "a\nb = in[i];\n# note\n"})


def test_a_file_with_lines_that_cannot_be_is_neither_quoted_nor_linked() -> None:
    page = _page(2)
    assert page.quote(at(2)) is None
    assert page.place(at(2)) == "gather.cu:2 as profiled"


def test_one_odd_line_may_be_the_compilers() -> None:
    page = _page(1)
    assert page.quote(at(2)) == "b = in[i];"
    assert page.place(at(2)) == "/here/gather.cu:2"


def test_a_comment_is_no_loop_around_an_instruction() -> None:
    package = code(0x200, "LDL R4, [R1]", at(40, "base.jl"))
    assert _page(1).is_doubtful(at(3), package)
    assert not _page(1).is_doubtful(at(2), package)
