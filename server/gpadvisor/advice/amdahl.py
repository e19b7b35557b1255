# SPDX-License-Identifier: Apache-2.0
"""What a kernel's speedup means for everything the report has: Amdahl's law."""

from __future__ import annotations

from gpadvisor.estimators.elapsed import whole
from gpadvisor.model.advice import Estimate
from gpadvisor.model.sentence import sentences


def program_estimate(
    estimate: Estimate | None, share: float | None, of: str = "in the report"
) -> Estimate | None:
    """The estimate for all kernel time of the report, or part of it; None without estimate or share."""
    if estimate is None or share is None:
        return None
    paper = None if estimate.paper is None else whole(estimate.paper, share)
    expected = whole(estimate.expected, share)
    return Estimate(
        low=whole(estimate.low, share),
        expected=expected,
        high=whole(estimate.high, share),
        paper=paper,
        equation=(
            f"Amdahl: 1 / (1 - p + p / S) = {expected:.3f} with p = {share:.4f}, S = {estimate.expected:.3f}"
        ),
        reasons=sentences(f"the kernel's share of all kernel time {of}"),
    )
