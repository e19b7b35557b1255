# SPDX-License-Identifier: Apache-2.0
"""The estimators of GPA's released advisor (2021), number for number; kept to compare with.

They differ from the paper's equations: integer warps per scheduler, one warp per scheduler as the target of
block increase, no change of warps for thread increase. Samples that the blamer could not attribute are not in
their T.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SCHEDULERS: Final = 4
WARP_SIZE: Final = 32
MAX_WARPS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates2021:
    """One entry per region, and the kernel."""

    ratios: tuple[float, ...]
    speedups: tuple[float, ...]
    ratio: float
    speedup: float


def sequential(total: int, matched: Sequence[int]) -> Estimates2021:
    """Stall elimination, "SEQ": T / (T - m); infinite where everything matched, as in the original."""
    return Estimates2021(
        ratios=tuple(one / total for one in matched),
        speedups=tuple(_quotient(total, one) for one in matched),
        ratio=sum(matched) / total,
        speedup=_quotient(total, sum(matched)),
    )


def sequential_latency(total: int, regions: Sequence[tuple[int, int]], cap: int) -> Estimates2021:
    """Latency hiding, "SEQ_LAT": regions are (A, m) and ``cap`` is the A that the matcher appended."""
    hidden = sum(min(active, matched) for active, matched in regions)
    return Estimates2021(
        ratios=tuple(matched / total for _, matched in regions),
        speedups=tuple(_quotient(total, min(active, matched)) for active, matched in regions),
        ratio=sum(matched for _, matched in regions) / total,
        speedup=_quotient(total, min(cap, hidden)),
    )


def block_increase(
    *, warps_per_sm: int, issue_ratio: float, throttled: float, schedulers: int = SCHEDULERS
) -> float:
    """The kind "PARALLEL", to one warp per scheduler; ``throttled`` is the share of MTHR, NSEL and PIPE."""
    per_scheduler = warps_per_sm // schedulers
    issue = 1 - (1 - issue_ratio) ** per_scheduler
    return per_scheduler * issue_ratio / issue / (1 - throttled)


def thread_increase(
    *,
    warps_per_sm: int,
    threads_per_block: int,
    issue_ratio: float,
    schedulers: int = SCHEDULERS,
    max_warps: int = MAX_WARPS,
) -> float:
    """The kind "PARALLEL_LAT": up to the most warps of an SM, and no idle lanes in a warp."""
    balance = math.ceil(threads_per_block / WARP_SIZE) * WARP_SIZE / threads_per_block
    if warps_per_sm < schedulers:
        return schedulers / warps_per_sm * balance

    def issue(warps: int) -> float:
        return 1 - (1 - issue_ratio) ** (warps // schedulers)

    return issue(max_warps) / issue(warps_per_sm) * balance


def _quotient(total: int, removed: int) -> float:
    return total / (total - removed) if total > removed else math.inf
