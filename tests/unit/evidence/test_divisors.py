# SPDX-License-Identifier: Apache-2.0
"""What divisions divide by: counted by value, at a cost in proportion to how many there are."""

from __future__ import annotations

import pytest
from tests.simulations import text_program

from gpadvisor.evidence import library_math
from gpadvisor.evidence.library_math import Divisor, divisions_alike, divisor_of
from gpadvisor.evidence.patterns import FLOAT_DIVISION, math_sequences

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]

NUMBER = 24
TEXT = f"""
extern "C" __global__ void k(const float* x, float* y) {{
    const int at = threadIdx.x;
    const float shared = x[at];
    y[at] = x[at + 100] / shared;
    y[at + 100] = x[at + 200] / shared;
#pragma unroll
    for (int i = 2; i < {NUMBER}; ++i) y[at + 100 * i] = x[at + 300 * i] / x[at + 300 * i + 77];
}}
"""


def test_divisions_by_one_value_are_counted_and_others_are_not() -> None:
    (function, *_) = text_program(TEXT).functions
    divisions = [one for one in math_sequences(function) if one.kind == FLOAT_DIVISION]
    assert len(divisions) == NUMBER
    assert sorted(divisions_alike(function, one) for one in divisions) == [1] * (NUMBER - 2) + [2, 2]
    assert [divisor_of(function, one) for one in divisions].count(Divisor.SHARED) == 2


def test_each_division_is_looked_at_a_few_times_however_many_there_are() -> None:
    (function, *_) = text_program(TEXT.replace("k(", "again(")).functions

    def asked() -> int:
        found = library_math._made_at.cache_info()
        return found.hits + found.misses

    before = asked()
    for one in math_sequences(function):
        divisor_of(function, one)
        divisions_alike(function, one)
    assert asked() - before <= 5 * NUMBER
