# SPDX-License-Identifier: Apache-2.0
"""Figures of estimates worked by hand, at the edges where a formula could be another one."""

from __future__ import annotations

import pytest

from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.traffic_relief import millions
from gpadvisor.model.advice import Relief, Utilisation


def _unit(percent: float) -> Utilisation:
    return Utilisation(name="DRAM", percent=percent, metric="dram")


@pytest.mark.parametrize(("percent", "load"), [(60.0, 0.6), (100.0, 1.0), (104.0, 1.0), (149.0, 1.0)])
def test_no_unit_works_for_longer_than_the_kernel_runs(percent: float, load: float) -> None:
    """Counters of separate passes can put a unit above its peak."""
    found = busiest_after([_unit(percent)], ())
    assert found is not None
    assert found.load == pytest.approx(load)


def test_what_a_cure_takes_off_a_unit_is_a_share_of_its_load() -> None:
    found = busiest_after([_unit(104.0)], [Relief(resource="DRAM", remaining=0.5, remaining_best=0.25)])
    assert found is not None
    assert found.load == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("count", "text"), [(99_999, "99,999"), (100_000, "0.1 M"), (2_340_000, "2.3 M"), (7, "7")]
)
def test_counts_are_millions_from_a_tenth_of_one(count: float, text: str) -> None:
    assert millions(count) == text
