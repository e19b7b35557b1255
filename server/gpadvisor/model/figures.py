# SPDX-License-Identifier: Apache-2.0
"""Speedups and shares in figures, the same in every output: no more digits than the interval supports."""

from __future__ import annotations

import math
from typing import Final

from gpadvisor.model.estimate import Estimate, Evidence

_HUNDREDTHS: Final = 0.25
"""Ends of a range closer than this differ in their second digit behind the point."""
_TENTHS: Final = 20.0
_LARGE: Final = 1e4
UNBOUNDED: Final = "unbounded"


def figure(value: float, places: int | None = None) -> str:
    """A speedup's digits, three at most where no interval says how many mean something."""
    if not math.isfinite(value):
        return UNBOUNDED
    if abs(value) >= _LARGE:
        return f"{value:.2g}"
    if places is None:
        places = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{places}f}"


def factor(value: float, places: int | None = None) -> str:
    """A speedup: ``1.31x``."""
    digits = figure(value, places)
    return digits if digits == UNBOUNDED else f"{digits}x"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent, ``12.3 %``, or a dash where it is not known."""
    return "-" if share is None or not math.isfinite(share) else percentage(100 * share, digits)


def percentage(value: float, digits: int = 0) -> str:
    """What is in percent already, as Nsight Compute counts the load of a unit: ``94 %``."""
    return f"{value:.{digits}f} %"


def short_percent(share: float) -> str:
    """``21 %``; one digit behind the point below ten, and ``<0.1 %`` where the first would be zero."""
    hundred = 100 * share
    if not math.isfinite(hundred):
        return "? %"
    if 0 < hundred < 0.1:
        return "<0.1 %"
    return percentage(hundred, 0 if hundred >= 10 or hundred == 0 else 1)


def part_of_run(share: float) -> str:
    """``the first 7 %``."""
    return "less than the first 1 %" if share < 0.005 else f"the first {percent(share, 0)}"


def places(estimate: Estimate) -> int:
    """Digits behind the point that an estimate's interval supports."""
    width = abs(estimate.high - estimate.low)
    if not math.isfinite(width):
        return 1
    if width >= _TENTHS or estimate.expected >= 100:
        return 0
    # A gain that is shown at all is not shown as 1.0x.
    return 2 if width < _HUNDREDTHS or figure(estimate.expected, 1) == "1.0" else 1


def expected(estimate: Estimate) -> str:
    """The number to plan with: ``8.2x``."""
    return factor(estimate.expected, places(estimate))


def span(estimate: Estimate) -> str:
    """The range: ``4.5-8.4``, or one number where both ends print alike."""
    digits = places(estimate)
    low, high = figure(estimate.low, digits), figure(estimate.high, digits)
    return high if low in {high, UNBOUNDED} else f"{low}-{high}"


def gain(estimate: Estimate) -> str:
    """The whole estimate: ``8.2x (4.5-8.4)``."""
    return f"{expected(estimate)} ({span(estimate)})"


def won(estimate: Estimate | None, evidence: Evidence) -> str:
    """What is gained, first in every line that tells of a suggestion; in words where it is not known."""
    if estimate is not None:
        return gain(estimate)
    return "code only" if evidence is Evidence.STATIC else "no gain known"


def explains(share: float, estimate: Estimate | None) -> bool:
    """Whether a share of the samples stands for at least half of a gain, as logarithms (GPA Eq. 2).

    Else the gain is of a full unit that has less to do, and the share beside it would look like a mistake.
    """
    if estimate is None or not estimate.expected > 1 or share >= 1:
        return True
    return -2 * math.log(1 - share) >= math.log(estimate.expected)
