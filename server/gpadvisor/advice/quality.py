# SPDX-License-Identifier: Apache-2.0
"""What the advice on one kernel rests on, and what a reader should know before believing it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.interval import Z_95
from gpadvisor.model.advice import SampleSummary
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Evidence, KernelProfile

FEW_SAMPLES: Final = 1000
"""Below this a tenth of the samples is known to no better than two percentage points."""
_EXTERNAL_SHARE: Final = 0.01


def evidence_reason(context: KernelContext, samples: SampleSummary) -> str:
    """Why the evidence is what it is, and not more."""
    profile = context.profile
    if context.evidence is Evidence.STATIC:
        if profile is None:
            return (
                "there is no profile: machine code alone, so nothing is weighed and no speedup is estimated"
            )
        return (
            "the launch has neither PC samples nor executed counts; collect them with "
            "ncu --section SourceCounters --section WarpStateStats"
        )
    if context.evidence is Evidence.COUNTED:
        refused = (
            [] if profile is None else [p for p in profile.problems if p.code is ProblemCode.LOWER_EVIDENCE]
        )
        if refused:
            return refused[0].message
        return (
            "the launch has executed counts but no PC samples, so no speedup is estimated; collect samples "
            "with ncu --section SourceCounters"
        )
    interval = None if profile is None else profile.sampling.interval_cycles
    every = "" if interval is None else f", one per SM every {interval} cycles"
    kind = "PC samples of a simulated run" if context.evidence is Evidence.MODELLED else "PC samples"
    return f"{samples.total:,} {kind}{every}"


def problems(context: KernelContext, samples: SampleSummary, more: Iterable[Problem]) -> tuple[Problem, ...]:
    """Every problem once; of those found here only the ones that nobody has reported before."""
    known: list[Problem] = []
    if context.profile is not None:
        known += context.profile.problems
    known += context.program.problems
    if context.blame is not None:
        known += context.blame.problems
    known += more
    reported = {problem.code for problem in known}
    known += [problem for problem in _own(context.profile, samples) if problem.code not in reported]
    return tuple(dict.fromkeys(known))


def _own(profile: KernelProfile | None, samples: SampleSummary) -> Sequence[Problem]:
    found: list[Problem] = []
    if 0 < samples.total < FEW_SAMPLES:
        half = Z_95 * math.sqrt(0.1 * 0.9 / samples.total)
        found.append(
            Problem(
                ProblemCode.FEW_SAMPLES,
                f"only {samples.total:,} samples: a share of 10 % is known to about "
                f"+-{100 * half:.1f} %; sample more often (ncu --sampling-interval) or add launches up "
                "(--merge)",
            )
        )
    if samples.external > _EXTERNAL_SHARE * samples.total:
        found.append(
            Problem(
                ProblemCode.EXTERNAL_SAMPLES,
                f"{samples.external:,} of {samples.total:,} samples lie in code outside the cubin, such as "
                "the driver's printf or heap functions",
            )
        )
    if profile is not None and profile.sampling.truncated:
        evidence = profile.sampling.truncation_evidence
        found.append(
            Problem(
                ProblemCode.TRUNCATED_SAMPLES,
                "the sample buffer was full: samples and estimates hold for the first part of the run only"
                + (f" ({evidence})" if evidence else ""),
            )
        )
    return found
