# SPDX-License-Identifier: Apache-2.0
"""Stall elimination: the matched stalls go (GPA Eq. 2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import remaining
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.matched import matched_rows, matched_samples, waiting_in_turn
from gpadvisor.estimators.ranges import measured_range, sampled_range, speedup
from gpadvisor.estimators.utilisation import ISSUE
from gpadvisor.model.advice import Estimate, Match, ReducedLoad
from gpadvisor.model.blame import Blame
from gpadvisor.model.figures import percent
from gpadvisor.model.stalls import StallClass

_COUNTED: Final = (
    "GPA Eq. 2 needs samples; by counters: S = 1 / (U' + 1 - U), U and U' the busiest unit's load"
)


def elimination_equation(total: int, matched: int) -> float:
    """GPA Eq. 2: S^e = T / (T - M); with M = T one sample is taken to stay, so that S^e = T."""
    return speedup(total, matched)


def stall_elimination(context: KernelContext, match: Match) -> Estimate:
    """The estimate of an optimizer that removes stalls; needs samples, or what counters bound it by."""
    if context.blame is None:
        if match.measured_bound is None:
            raise ValueError("stall elimination needs samples or counters")
        return measured_range(context, match.measured_bound).ordered(None, _COUNTED)
    total = context.blame.total_samples
    matched = matched_samples(context.blame, match)
    paper = elimination_equation(total, matched)
    text = elimination_text(total, matched, paper)
    if match.measured_bound is not None:
        return measured_range(context, match.measured_bound).ordered(paper, text)
    reduced_loads = reduced_issue(context.blame, match)
    issue_left = remaining(ISSUE, (*match.reduced_loads, *reduced_loads), best=False)
    contending = contention(context.blame, match) * (1 - issue_left)
    result = sampled_range(
        context, match, total, lambda factor: (matched + contending) * factor, reduced_loads
    )
    if contending > constants.ANY_END * total:
        result.reasons.append(
            f"{percent(1 - issue_left, 0)} of the issued instructions go with it, and with them "
            f"{contending:.0f} samples of other instructions that waited for their turn"
        )
    return result.ordered(paper, text)


def contention(blame: Blame, match: Match) -> int:
    """Samples of what did not match that were ready, but waited for an issue slot or a pipe.

    Differs from GPA: Eq. 2 keeps them all. They get fewer as the instructions do that took their turn.
    """
    rows = waiting_in_turn(blame)
    rows[matched_rows(match)] = False
    return int(blame.rows.samples[rows].sum())


def reduced_issue(blame: Blame, match: Match) -> tuple[ReducedLoad, ...]:
    """Issue slots that go with matched instructions: those whose issued samples matched, too.

    A match that names the issue slots itself knows better which instructions stay.
    """
    if any(reduced.resource == ISSUE for reduced in match.reduced_loads):
        return ()
    issued = np.array([reason.stall_class is StallClass.ISSUED for reason in blame.reasons], dtype=bool)
    if not issued.any():
        return ()
    rows = blame.rows
    total = int(rows.samples[issued[rows.reason]].sum())
    matched = matched_rows(match)
    gone = int(rows.samples[matched[issued[rows.reason[matched]]]].sum())
    if not gone:
        return ()
    share_left = 1 - gone / total
    return (ReducedLoad(resource=ISSUE, remaining=share_left, remaining_best=share_left),)


def elimination_text(total: int, matched: int, value: float) -> str:
    """Eq. 2 with its numbers."""
    text = f"GPA Eq. 2: S = T / (T - M) = {total} / ({total} - {matched}) = {value:.3f}"
    return text + " (one sample kept, since M = T)" if total and matched >= total else text
