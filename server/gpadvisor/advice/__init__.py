# SPDX-License-Identifier: Apache-2.0
"""From matches and estimates to ranked advice with its evidence (GPA section III, "advice report")."""

from __future__ import annotations

from gpadvisor.advice.compose import advise, by_time
from gpadvisor.advice.evaluate import Evaluated, evaluate
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.launches import (
    ChosenLaunch,
    chosen_launches,
    launch_summaries,
    merge_launches,
    time_shares,
)
from gpadvisor.advice.same_work import faster_words
from gpadvisor.advice.standing import MIN_IMPORTANCE, MIN_SAMPLES, MIN_SPEEDUP, NO_THRESHOLDS, Thresholds
from gpadvisor.advice.suppressed import without_suppressed

__all__ = [
    "MIN_IMPORTANCE",
    "MIN_SAMPLES",
    "MIN_SPEEDUP",
    "NO_THRESHOLDS",
    "ChosenLaunch",
    "Evaluated",
    "Thresholds",
    "advise",
    "advise_kernel",
    "by_time",
    "chosen_launches",
    "evaluate",
    "faster_words",
    "launch_summaries",
    "merge_launches",
    "time_shares",
    "without_suppressed",
]
