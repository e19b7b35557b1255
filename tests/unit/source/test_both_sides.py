# SPDX-License-Identifier: Apache-2.0
"""Conditions both sides of which can be evaluated, and those where && guards the second."""

from __future__ import annotations

import pytest
from tests.unit.source.test_edits import edited, kernel, sites

from gpadvisor.source.edits import SiteKind

BOTH = SiteKind.BOTH_SIDES
BODY = "    int i = threadIdx.x;\n    if ({condition}) y[i] = w;"


@pytest.mark.parametrize(
    ("condition", "then"),
    [
        ("x[i] <= w && x[i + 1] > w", "x[i] <= w & x[i + 1] > w"),
        ("(x[i] <= w) && (x[i + 1] > w)", "(x[i] <= w) & (x[i + 1] > w)"),
        ("i < n && x[i] <= w && x[i + 1] > w", "i < n && x[i] <= w & x[i + 1] > w"),
        ("(x[i].a < w && x[i].b > w) || n == 0", "(x[i].a < w & x[i].b > w) || n == 0"),
    ],
)
def test_neighbours_are_compared_at_once(condition: str, then: str) -> None:
    text = kernel(BODY.format(condition=condition))
    (site,) = sites(text, BOTH)
    assert edited(text, site) == kernel(BODY.format(condition=then))
    assert site.first_line == site.last_line
    assert not site.exact


@pytest.mark.parametrize(
    "condition",
    [
        "i < n && x[i] > w",  # there may be no such element
        "x[i] > w && y[i] > w",  # another array, which need not be as long
        "x != nullptr && *x > w",
        "x[i] > w || x[i + 1] > w",
        "x[i] > w && x[i + 1]",  # & of what is no comparison counts its lowest bit
        "x[i] > w && x[i++] < w",
        "x[i] > w && (y[i] = x[i]) < w",
        "x[i] > w && atomicAdd(&x[i], w) < w",
        "x[i] > w && i < n",  # nothing is read
        "x[i] > w & x[i + 1] > w",
        "assert_that(x[i] > w) && x[i + 1] > w",
    ],
)
def test_what_the_first_side_guards_stays_behind_it(condition: str) -> None:
    assert not sites(kernel(BODY.format(condition=condition)), BOTH)


def test_volatile_memory_is_read_as_it_is_written() -> None:
    body = "    volatile float* v = x;\n    if (v[0] < w && v[1] > w) y[0] = w;"
    assert not sites(kernel(body), BOTH)
