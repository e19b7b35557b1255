# SPDX-License-Identifier: Apache-2.0
"""One estimate in full: the one that the screen numbers so, with its equation and what the letters mean."""

from __future__ import annotations

import re

import pytest
from tests import advice_values as values

from gpadvisor.errors import UsageError
from gpadvisor.report.text import render_text
from gpadvisor.report.why import render_why
from gpadvisor.report.words import cells


@pytest.mark.parametrize(
    ("wanted", "code"), [("1", "GPA201"), ("2", "GPA102"), ("GPA302", "GPA302"), ("gpa202", "GPA202")]
)
def test_a_number_is_that_of_the_screen_and_a_code_its_first(wanted: str, code: str) -> None:
    text = render_why(values.measured(), wanted, sources=values.SOURCES)
    assert text.splitlines()[0].split("  ")[2].split()[0] == code
    number = text.split()[0]
    screen = render_text(values.measured(), sources=values.SOURCES)
    assert re.search(rf"^ {number}  .*?{code}\)", screen, re.MULTILINE | re.DOTALL)


def test_the_equation_stands_with_its_numbers_and_its_letters() -> None:
    text = render_why(values.measured(), "1")
    assert "GPA Eq. 5: T / (T - min(A, M_L)) with T = 12034, A = 2100, M_L = 6450." in " ".join(text.split())
    assert "The paper's own value is 1.620." in " ".join(text.split())
    assert "   T      all PC samples of the kernel" in text
    assert "   A      active samples" in text
    assert " - the trip count is not known" in text


def test_what_holds_in_several_kernels_names_them() -> None:
    one = values.kernel(groups=(), suggestions=(values.LOOP_UNROLLING,))
    other = values.kernel(name="other()", groups=(), suggestions=(values.LOOP_UNROLLING,))
    assert render_why(values.advice(one, other), "1").splitlines()[2] == "and other()"


def test_a_finding_without_samples_has_its_places() -> None:
    text = render_why(values.static(), "1")
    assert "no estimate" in text
    assert "How the numbers came about" not in text
    assert "F2F.F64.F32" in text


@pytest.mark.parametrize("name", ["measured", "without_lines", "static", "several", "hostile"])
@pytest.mark.parametrize("width", [60, 80, 132])
def test_no_line_is_wider_than_the_page(name: str, width: int) -> None:
    text = render_why(getattr(values, name)(), "1", width=width, sources=values.SOURCES)
    assert [line for line in text.splitlines() if cells(line) > width or not line.isprintable()] == []


def test_a_number_that_nothing_has_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"has no suggestion 5: its suggestions are 1 to 4"):
        render_why(values.measured(), "5")
    with pytest.raises(UsageError, match="it has 0 suggestions"):
        render_why(values.counted(), "1")
