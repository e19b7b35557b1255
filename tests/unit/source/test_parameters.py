# SPDX-License-Identifier: Apache-2.0
"""Where a struct that a kernel takes by value can be read in place."""

from __future__ import annotations

import pytest
from tests.unit.source.test_edits import edited, sites

from gpadvisor.source.edits import SiteKind

TABLES = "struct Tables { float eps[9]; int kinds[4]; int count; float* rows; };\n"


def _kernel(body: str, parameters: str = "Tables t, float* x, int i") -> str:
    return f"{TABLES}__global__ void k({parameters}) {{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("parameters", "head"),
    [
        ("Tables t, float* x, int i", "k(const __grid_constant__ Tables t, float* x, int i)"),
        ("const Tables t, float* x, int i", "k(const __grid_constant__ Tables t, float* x, int i)"),
        ("struct Tables t, float* x, int i", "k(const __grid_constant__ struct Tables t, float* x, int i)"),
        ("lib::Tables<3> t, float* x, int i", "k(const __grid_constant__ lib::Tables<3> t, float* x, int i)"),
    ],
)
def test_a_struct_whose_array_is_indexed(parameters: str, head: str) -> None:
    text = _kernel("x[i] = t.eps[i];", parameters)
    (site,) = sites(text, SiteKind.GRID_CONSTANT)
    assert (site.name, site.words, site.exact) == ("k", ("t",), True)
    assert head in edited(text, site)
    assert not sites(edited(text, site), SiteKind.GRID_CONSTANT)


@pytest.mark.parametrize(
    "body",
    [
        "x[t.count] = t.eps[t.kinds[i]];",
        "x[i] = t.eps[i] + t.eps[0];",
        "float* rows = t.rows; x[i] = t.eps[i] * rows[0];",
        "t.rows[i] = t.eps[i];",  # what a pointer leads to is not the parameter
    ],
)
def test_reading_it_in_other_places_does_no_harm(body: str) -> None:
    assert len(sites(_kernel(body), SiteKind.GRID_CONSTANT)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "x[i] = t.eps[3];",  # no copy is made
        "x[i] = t.rows[i];",
        "x[i] = t.count;",
        "t.count = 1; x[i] = t.eps[i];",
        "t.kinds[i]++; x[i] = t.eps[i];",
        "t.eps[i] += 1.0f; x[i] = t.eps[i];",
        "change(&t); x[i] = t.eps[i];",
        "t = Tables(); x[i] = t.eps[i];",
    ],
)
def test_what_is_not_indexed_or_is_changed_stays(body: str) -> None:
    assert not sites(_kernel(body), SiteKind.GRID_CONSTANT)


@pytest.mark.parametrize("parameters", ["Tables* t, float* x, int i", "Tables& t, float* x, int i"])
def test_what_is_not_passed_by_value_stays(parameters: str) -> None:
    assert not sites(_kernel("x[i] = t.eps[i];", parameters), SiteKind.GRID_CONSTANT)


def test_a_kernel_that_is_declared_elsewhere_too_stays() -> None:
    text = f"{TABLES}__global__ void k(Tables t, float* x, int i);\n" + _kernel("x[i] = t.eps[i];")
    assert not sites(text, SiteKind.GRID_CONSTANT)
