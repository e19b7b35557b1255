# SPDX-License-Identifier: Apache-2.0
"""The figures on estimates mean what they say, and the traps come out as traps."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.test_traps import TRAPS
from tests.kernels import KERNELS
from tests.validation.estimates import LOW_EXPECTED, Pair, figures, pair_of, report

from gpadvisor.cli import main
from gpadvisor.store.load import load_profile

PAIR = Pair(
    name="a", arch="sm_80", code="GPA201", trap=False, achieved=1.2, least=1.1, most=1.3, advised=True,
    low=1.0, expected=1.5, high=2.0, paper=1.8, reason="a reason",
)  # fmt: skip
NO_ADVICE = replace(PAIR, advised=False, low=1.0, expected=1.0, high=1.0, paper=1.0, reason="no match")


def test_a_perfect_promise_has_no_error() -> None:
    found = figures([replace(PAIR, low=1.2, expected=1.2, high=1.2, paper=1.2)])
    assert (found.error, found.bias, found.high, found.log_error, found.log_error_paper) == (0, 0, 0, 0, 0)
    assert (found.inside, found.width) == (1.0, 1.0)
    assert found.log_error_one == pytest.approx(math.log(1.2))


def test_errors_count_either_way_and_the_bias_cancels() -> None:
    high, low = replace(PAIR, expected=1.5), replace(PAIR, expected=0.9, low=0.8, high=1.0)
    found = figures([high, low])
    assert found.error == pytest.approx(0.25)
    assert found.bias == pytest.approx(0.0)
    assert found.high == 1
    assert found.inside == 0.5
    assert found.width == pytest.approx((2.0 + 1.25) / 2)


def test_no_advice_promises_nothing_and_is_counted() -> None:
    found = figures([NO_ADVICE])
    assert found.without_advice == 1
    assert found.inside == 0.0
    assert found.log_error == found.log_error_one == pytest.approx(math.log(1.2))


def test_the_report_tells_traps_apart_and_says_why() -> None:
    text = report("some", [PAIR, replace(NO_ADVICE, name="b", trap=True), replace(PAIR, name="c", trap=True)])
    assert "b sm_80 GPA201: comes out, no advice" in text
    assert "c sm_80 GPA201: IS MISSED" in text
    assert text.count("no match") == 1
    assert f"{'pairs':44} {1:8}" in text


@pytest.mark.slow
@pytest.mark.nvdisasm
@pytest.mark.parametrize("name", sorted(TRAPS.keys() - {"row_softmax"}))
def test_a_trap_is_not_advised_or_little_is_expected_of_it(name: str) -> None:
    found = pair_of(name, "sm_80", seeds=1)
    assert found.reason
    assert not found.advised or found.expected <= LOW_EXPECTED
    assert found.achieved < 1.1


@pytest.mark.slow
@pytest.mark.nvdisasm
def test_more_blocks_of_a_kernel_that_loops_by_the_grid_gain_where_halved_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are what is told, with more than they gain: as on an H100 (1.34x of 2.2x), rows leave L1."""
    found = pair_of("row_softmax", "sm_80", seeds=1)
    assert found.achieved == pytest.approx(1.0, abs=0.05)  # halved blocks
    source = KERNELS["row_softmax"].source()
    monkeypatch.chdir(source.parents[2])  # where its launch is stated
    times = []
    for blocks, passes in ((107, 64), (864, 8)):
        snapshot = tmp_path / f"{blocks}.gpadvisor"
        launch = ["--arch", "sm_80", "--grid", str(blocks), "--loop", f"15={passes}"]
        assert main(["simulate", str(source), *launch, "-o", str(snapshot), "--no-cache"]) == 0
        times.append(load_profile(snapshot).kernels[0].launch.duration_ns or 0.0)
    assert 1.3 <= times[0] / times[1] <= found.high * 1.1
