# SPDX-License-Identifier: Apache-2.0
"""An estimated speedup, and what a number rests on: all of an advice that an editor needs."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.model.kind import Kind
from gpadvisor.model.sentence import Sentence, joined


class Evidence(Kind):
    """What a number rests on."""

    MEASURED = "measured"  # PC samples of a real run
    COUNTED = "counted"  # counters of a real run (executed counts, loads of units), no samples
    MODELLED = "modelled"  # a simulated run
    STATIC = "static"  # the machine code alone


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateCap:
    """What a change leaves as it is, and what therefore bounds it: an estimate that was above was lowered."""

    limit: str  # "L2", "LSU pipe", "GPUPerf"
    speedup: float  # at most
    before: float  # what was expected without it
    reason: Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimated speedup of the kernel; ``low`` may lie below 1."""

    low: float
    expected: float
    high: float
    paper: float | None  # what the paper's equation gives, None where the paper has none
    equation: str  # "GPA Eq. 2: T / (T - M) with T = 1000, M = 200"
    reasons: tuple[
        Sentence, ...
    ]  # the steps from the paper's value to the range; empty where it is as the equation says
    cap: EstimateCap | None = None

    @property
    def reason(self) -> Sentence:
        """All steps in one line."""
        return joined(self.reasons) or Sentence("as the equation says")
