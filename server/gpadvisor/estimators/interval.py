# SPDX-License-Identifier: Apache-2.0
"""How far a share of samples can be off by chance: the Wilson score interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

Z_95: Final = 1.959964
"""Standard normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval of a share; samples are taken as independent draws."""

    low: float
    high: float


def wilson(matched: float, total: float, z: float = Z_95) -> Interval:
    """The interval of ``matched / total``; the whole of [0, 1] without samples."""
    if total <= 0:
        return Interval(0.0, 1.0)
    share = min(max(matched / total, 0.0), 1.0)
    spread = z * z / total
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    # Rounding must not push an end past the share itself: at 0 and 1 they are equal.
    return Interval(min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))
