# SPDX-License-Identifier: Apache-2.0
"""Kernel names made short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice_values import CUTLASS

from gpadvisor.report.names import base_name, short_name
from gpadvisor.report.words import cells

SCAN = "void cub::detail::scan_kernel<cub::Policy<int, float>, int *>(int *, unsigned long)"


@pytest.mark.parametrize(
    ("name", "width", "short"),
    [
        (SCAN, 200, SCAN),
        (SCAN, 80, SCAN.removeprefix("void ")),
        (SCAN, 60, "cub::detail::scan_kernel<cub::Policy<int, float>, int *>"),
        (SCAN, 50, "cub::detail::scan_kernel<cub::Policy<...>, int *>"),
        (SCAN, 30, "cub::detail::scan_kernel<...>"),
        (SCAN, 20, "scan_kernel<...>"),
        (SCAN, 10, "scan...<..."[:4] + "..." + "..>"),
        ("void gather<1>(float *)", 10, "gather<1>"),
        ("void (anonymous namespace)::f<int, 3>(int)", 34, "(anonymous namespace)::f<int, 3>"),
        ("bool ns::operator<(ns::B const &, ns::B const &)", 20, "ns::operator<"),
        ("f(int)::{lambda(int)#1}::operator()(int) const", 40, "f(int)::{lambda(int)#1}::operator()"),
    ],
)
def test_short_names(name: str, width: int, short: str) -> None:
    assert short_name(name, width) == short


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (SCAN, "scan_kernel"),
        (CUTLASS, "Kernel2"),
        ("void gather<1>(float *)", "gather"),
        ("gather", "gather"),
        ("std::ostream& a::operator<< <int>(std::ostream &)", "operator<<"),
        ("void k<(a)(3), (x)(2>1)>(int (*)(int))", "k"),
        ("", ""),
        ("(((", "((("),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(name) == base


bracket_soup = st.text(st.sampled_from("ab<>(),:{}[] *&~#0") | st.characters(), max_size=120)


@given(name=bracket_soup, width=st.integers(4, 60))
def test_any_text_becomes_short_enough(name: str, width: int) -> None:
    assert cells(short_name(name, width)) <= width
    assert len(base_name(name)) <= max(len(name), 0)


def test_a_name_as_long_as_a_file() -> None:
    assert cells(short_name("a<" * 200_000, 70)) <= 70
