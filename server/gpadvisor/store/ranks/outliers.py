# SPDX-License-Identifier: Apache-2.0
"""Which ranks differ: slow in everything (the node), or in one kernel (its data)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SLOWER: Final = 1.1
"""Of the median: less is not worth a programmer's while."""
_DEVIATIONS: Final = 5.0
_SIGMA: Final = 1.4826  # of a normal distribution, in median absolute deviations
FEWEST: Final = 4
"""Ranks below which a median says nothing about one of them."""


@dataclass(frozen=True, slots=True)
class SlowKernel:
    """A kernel that takes longer on some ranks than on others, beyond what these are slower in everything."""

    kernel: int
    ranks: tuple[int, ...]  # columns, the slowest first
    times: float  # of the slowest, as a multiple of the median


def slow_ranks(times: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """How much longer each rank takes in everything, and which of them stand out, the slowest first.

    The factor of a rank is the median over kernels of its time by the median over ranks, the lower one of
    two: half of the kernels, at least, are that much slower. Of one kernel nothing is told.

    Args:
        times: of kernels (rows) on ranks (columns), NaN where a rank does not run a kernel.
    """
    if len(times) < 2:
        return np.ones(times.shape[1]), ()
    shares = times / _median(times)[:, None]
    measured_kernels = np.isfinite(shares).sum(0)
    lower = np.sort(shares, 0)[
        np.maximum(measured_kernels - 1, 0) // 2, np.arange(times.shape[1])
    ]  # NaN comes last
    factors = np.where(np.isfinite(lower) & (lower > 0), lower, 1.0)
    return factors, _outside(factors)


def slow_kernels(times: NDArray[np.float64], factors: NDArray[np.float64]) -> tuple[SlowKernel, ...]:
    """The kernels that stand out on some ranks once each rank's own factor is taken out."""
    kernels = []
    for index, row in enumerate(times / factors):
        ranks = _outside(row)
        if ranks:
            kernels.append(SlowKernel(index, ranks, float(row[ranks[0]] / np.nanmedian(row))))
    return tuple(kernels)


def imbalance(row: NDArray[np.float64]) -> float:
    """The most by the mean, over the ranks that have a time."""
    return float(np.nanmax(row) / np.nanmean(row))


def _outside(values: NDArray[np.float64]) -> tuple[int, ...]:
    """By a tenth and five robust deviations above the median; mean and sigma would be moved by them."""
    measured = values[np.isfinite(values)]
    if len(measured) < FEWEST:
        return ()
    middle = float(np.median(measured))
    deviation = _SIGMA * float(np.median(np.abs(measured - middle)))
    limit = max(SLOWER * middle, middle + _DEVIATIONS * deviation)
    order: Sequence[int] = np.argsort(-np.nan_to_num(values, nan=-1.0), kind="stable").tolist()
    return tuple(index for index in order if np.isfinite(values[index]) and values[index] > limit)


def _median(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the ranks, of what is known; NaN where nothing is."""
    measured = [row[np.isfinite(row)] for row in times]
    return np.array([np.median(row) if len(row) else np.nan for row in measured], np.float64)
