# SPDX-License-Identifier: Apache-2.0
"""How often a GPU gained what two simulated versions give, within the range that a what-if is told with."""

from __future__ import annotations

from collections.abc import Sequence

from gpadvisor.estimators import constants


def within_range(ratios: Sequence[float]) -> str:
    """A line for the speedups that were achieved, each over that of its two simulated versions."""
    inside = sum(constants.SIMULATED_LEAST <= ratio <= constants.SIMULATED_MOST for ratio in ratios)
    ends = f"{constants.SIMULATED_LEAST:g} to {constants.SIMULATED_MOST:g}"
    return f"gained {ends} times what is simulated: {inside} of {len(ratios)} ({inside / len(ratios):.0%})"
