# SPDX-License-Identifier: Apache-2.0
"""The numbers that GPA's released estimators give for inputs worked by hand."""

from __future__ import annotations

import math

import pytest

from gpadvisor.estimators import gpa2021


def test_stall_elimination() -> None:
    found = gpa2021.sequential(1000, [200])
    assert found.ratio == pytest.approx(0.2)
    assert found.speedup == pytest.approx(1.25)


def test_stall_elimination_has_no_guard() -> None:
    assert gpa2021.sequential(1000, [600, 400]).speedup == math.inf


def test_latency_hiding_with_scopes() -> None:
    found = gpa2021.sequential_latency(1000, [(150, 300), (400, 100)], cap=450)
    assert found.speedup == pytest.approx(1.333, abs=5e-4)
    assert found.ratio == pytest.approx(0.4)
    assert found.speedups == (pytest.approx(1.176, abs=5e-4), pytest.approx(1.111, abs=5e-4))


def test_latency_hiding_is_capped_by_the_active_samples_of_the_whole() -> None:
    assert gpa2021.sequential_latency(1000, [(150, 300), (400, 100)], cap=100).speedup == pytest.approx(
        1 / 0.9
    )


def test_block_increase() -> None:
    found = gpa2021.block_increase(warps_per_sm=16, issue_ratio=0.05, throttled=0.10)
    assert found == pytest.approx(1.198, abs=5e-4)
    found = gpa2021.block_increase(warps_per_sm=16, issue_ratio=0.30, throttled=0.0)
    assert found == pytest.approx(1.579, abs=5e-4)


def test_block_increase_divides_warps_as_integers() -> None:
    whole = gpa2021.block_increase(warps_per_sm=16, issue_ratio=0.05, throttled=0.0)
    assert gpa2021.block_increase(warps_per_sm=19, issue_ratio=0.05, throttled=0.0) == whole


def test_thread_increase() -> None:
    found = gpa2021.thread_increase(warps_per_sm=32, threads_per_block=16, issue_ratio=0.02)
    assert found == pytest.approx(3.70, abs=5e-3)
    assert gpa2021.thread_increase(warps_per_sm=2, threads_per_block=64, issue_ratio=0.02) == pytest.approx(
        2.0
    )
