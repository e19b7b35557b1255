# SPDX-License-Identifier: Apache-2.0
"""What a note promises: nothing."""

from __future__ import annotations

from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Estimate, Match
from gpadvisor.model.sentence import sentences


def no_estimate(context: KernelContext, match: Match) -> Estimate:
    """A range without a gain; a note names a fact, and no change of the source with a known effect."""
    del context, match
    return Estimate(
        low=1.0,
        expected=1.0,
        high=1.0,
        paper=None,
        equation="none",
        reasons=sentences("a note: it promises nothing"),
    )
