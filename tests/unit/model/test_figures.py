# SPDX-License-Identifier: Apache-2.0
"""Speedups and shares with the digits that mean something."""

from __future__ import annotations

import math

import pytest

from gpadvisor.model.advice import Estimate
from gpadvisor.model.figures import expected, explains, factor, gain, percent, percentage, short_percent, span


def estimate(low: float, value: float, high: float) -> Estimate:
    return Estimate(low=low, expected=value, high=high, paper=None, equation="", reasons=())


@pytest.mark.parametrize(
    ("low", "value", "high", "text"),
    [
        (1.19, 1.513, 1.94, "1.5x (1.2-1.9)"),
        (4.54, 8.246, 8.37, "8.2x (4.5-8.4)"),
        (1.12, 1.2, 1.314, "1.20x (1.12-1.31)"),
        (0.976, 1.01, 1.02, "1.01x (0.98-1.02)"),
        (0.9, 1.04, 1.4, "1.04x (0.90-1.40)"),  # not 1.0x: a gain that is shown is a gain
        (1.001, 1.002, 1.004, "1.00x (1.00)"),
        (12.0, 20.0, 61.0, "20x (12-61)"),
        (110.0, 123.4, 126.0, "123x (110-126)"),
        (0.5, 2.0, 2.5e57, "2x (0-2.5e+57)"),
        (1.5, 2.0, float("inf"), "2.0x (1.5-unbounded)"),
        (float("nan"), 2.0, 3.0, "2.0x (3.0)"),
    ],
)
def test_no_digit_is_more_than_the_interval_supports(
    low: float, value: float, high: float, text: str
) -> None:
    assert gain(estimate(low, value, high)) == text


def test_parts_of_the_whole() -> None:
    one = estimate(1.19, 1.513, 1.94)
    assert (expected(one), span(one)) == ("1.5x", "1.2-1.9")


@pytest.mark.parametrize(
    ("value", "text"), [(1.314, "1.31x"), (12.34, "12.3x"), (123.4, "123x"), (1e6, "1e+06x")]
)
def test_a_measured_value_has_three_digits(value: float, text: str) -> None:
    assert factor(value) == text


def test_no_number_is_none() -> None:
    assert factor(float("inf")) == "unbounded"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.0004, "<0.1 %"), (0.034, "3.4 %"), (0.21, "21 %"), (1, "100 %"), (math.nan, "? %")],
)
def test_a_small_share_keeps_a_digit_or_says_less_than(share: float, text: str) -> None:
    assert short_percent(share) == text


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [(0.1234, 1, "12.3 %"), (0.1234, 0, "12 %"), (0.0, 1, "0.0 %"), (None, 1, "-"), (math.inf, 1, "-")],
)
def test_a_percent_has_its_digits(share: float | None, digits: int, text: str) -> None:
    assert percent(share, digits) == text


def test_what_is_in_percent_already_is_not_multiplied() -> None:
    assert (percentage(94.4), percentage(94.44, 1)) == ("94 %", "94.4 %")


@pytest.mark.parametrize(
    ("share", "gained", "told"),
    [
        (0.75, 4.0, True),  # Eq. 2 gives all of it
        (0.75, 16.0, True),  # half of its logarithm
        (0.75, 16.1, False),
        (0.01, 2.3, False),  # what a full unit gives, of next to no samples
        (1.0, 100.0, True),
        (0.0, 0.9, True),
        (0.0, 1.1, False),
    ],
)
def test_a_share_of_the_samples_explains_a_gain_or_is_not_told(
    share: float, gained: float, told: bool
) -> None:
    assert explains(share, estimate(gained, gained, gained)) is told
    assert explains(share, None)  # beside no gain it stands for itself
