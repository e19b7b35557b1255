# SPDX-License-Identifier: Apache-2.0
"""The table of growth: slopes as worked out by hand, and inputs that advice takes."""

from __future__ import annotations

import pytest
from bench.growth import Point, measure, slope, table
from bench.measure import Run


def points(*rows: tuple[int, float]) -> list[Point]:
    return [Point(size, Run(seconds=2 * cpu, cpu_seconds=cpu, peak_mib=99.6)) for size, cpu in rows]


def test_what_every_run_costs_hides_no_growth() -> None:
    # Beyond the second that one takes: 3 s for 10 more and 27 s for 30 more, and 3 s and 9 s.
    assert slope(points((1, 1.0), (11, 4.0), (31, 28.0))) == pytest.approx(2.0)
    assert slope(points((1, 1.0), (11, 4.0), (31, 10.0))) == pytest.approx(1.0)


def test_two_sizes_or_no_growth_have_no_slope() -> None:
    assert slope(points((1, 1.0), (10, 4.0))) is None
    assert slope(points((1, 1.0), (10, 1.0), (30, 0.9))) is None


def test_the_table_has_what_each_more_costs() -> None:
    text = table("launches", points((1, 1.0), (10, 4.0), (1_010, 14.0)))
    assert "| 1,010 | 14.0 s | 10 ms | 28.0 s | 100 MiB |" in text
    assert "| 1 | 1.0 s |  | 2.0 s | 100 MiB |" in text
    assert text.endswith("\n\nslope of launches: 0.31")


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("what", ["kernels", "launches", "reports"])
def test_the_smallest_input_is_advised_on(what: str) -> None:
    (point,) = measure(what, 1)
    assert point.size == 1
    assert point.cost.cpu_seconds > 0
