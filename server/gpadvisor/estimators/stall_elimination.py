# SPDX-License-Identifier: Apache-2.0
"""Stall elimination: the matched stalls go (GPA Eq. 2)."""

from __future__ import annotations

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.matched import matched_samples
from gpadvisor.estimators.ranges import sampled_range, speedup
from gpadvisor.model.advice import Estimate, Match


def elimination_equation(total: int, matched: int) -> float:
    """GPA Eq. 2: S^e = T / (T - M); with M = T one sample is taken to stay, so that S^e = T."""
    return speedup(total, matched)


def stall_elimination(context: KernelContext, match: Match) -> Estimate:
    """The estimate of an optimizer that removes stalls; needs samples."""
    if context.blame is None:
        raise ValueError("stall elimination needs samples")
    total = context.blame.total_samples
    matched = matched_samples(context.blame, match)
    paper = elimination_equation(total, matched)
    result = sampled_range(context, match, total, lambda factor: matched * factor)
    return result.ordered(paper, elimination_text(total, matched, paper))


def elimination_text(total: int, matched: int, value: float) -> str:
    """Eq. 2 with its numbers."""
    text = f"GPA Eq. 2: S = T / (T - M) = {total} / ({total} - {matched}) = {value:.3f}"
    return text + " (one sample kept, since M = T)" if total and matched >= total else text
