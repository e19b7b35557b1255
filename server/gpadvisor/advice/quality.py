# SPDX-License-Identifier: Apache-2.0
"""What the advice on one kernel rests on, and what a reader should know before believing it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.interval import Z_95
from gpadvisor.model.advice import SampleSummary
from gpadvisor.model.figures import percent
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Evidence

FEW_SAMPLES: Final = 1000
"""Below this a tenth of the samples is known to no better than two percentage points."""
_EXTERNAL_SHARE: Final = 0.01
_LEAST_PERIOD: Final = 5
"""Samples are 2**5 cycles apart at least; ncu's option counts from there."""
_CUPTI: Final = "cupti"


def evidence_reason(context: KernelContext, samples: SampleSummary) -> str:
    """Why the evidence is what it is, and not more."""
    profile = context.profile
    if context.evidence is Evidence.STATIC:
        if profile is None:
            return (
                "there is no profile: machine code alone, so nothing is weighed and no speedup is estimated"
            )
        if profile.total_samples and not context.program.functions:
            return f"{samples.total:,} PC samples, but no machine code could be read that they belong to"
        return "the launch has neither PC samples nor executed counts; collect them with " + (
            "gpadvisor profile, sampling more often (--period) where the kernel is short"
            if context.collector == _CUPTI
            else "ncu --section SourceCounters --section WarpStateStats"
        )
    if context.evidence is Evidence.COUNTED:
        counted = (
            "executed counts"
            if profile is not None and profile.counts is not None
            else "counters of its units"
        )
        refused = (
            [] if profile is None else [p for p in profile.problems if p.code is ProblemCode.LOWER_EVIDENCE]
        )
        if refused:
            return refused[0].message
        return f"the launch has {counted} but no PC samples, so no line is blamed; collect samples with " + (
            "gpadvisor profile" if context.collector == _CUPTI else "ncu --section SourceCounters"
        )
    interval = None if profile is None else profile.sampling.interval_cycles
    interval_text = "" if interval is None else f", one per SM every {interval} cycles"
    kind = "PC samples of a simulated run" if context.evidence is Evidence.MODELLED else "PC samples"
    return f"{samples.total:,} {kind}{interval_text}"


def problems(context: KernelContext, samples: SampleSummary, more: Iterable[Problem]) -> tuple[Problem, ...]:
    """Every problem once; of those found here only the ones that nobody has reported before."""
    problems: list[Problem] = []
    if context.profile is not None:
        problems += context.profile.problems
    problems += context.program.problems
    if context.blame is not None:
        problems += context.blame.problems
    problems += more
    reported = {problem.code for problem in problems}
    problems += [problem for problem in _own(context, samples) if problem.code not in reported]
    return tuple(dict.fromkeys(problems))


def _own(context: KernelContext, samples: SampleSummary) -> Sequence[Problem]:
    profile = context.profile
    result: list[Problem] = []
    if 0 < samples.total < FEW_SAMPLES:
        half = Z_95 * math.sqrt(0.1 * 0.9 / samples.total)
        result.append(
            Problem(
                ProblemCode.FEW_SAMPLES,
                f"only {samples.total:,} samples: a share of 10 % is known to about "
                f"+-{percent(half)}; {_how_to_get_more(context, samples.total)}",
            )
        )
    if samples.external > _EXTERNAL_SHARE * samples.total:
        result.append(
            Problem(
                ProblemCode.EXTERNAL_SAMPLES,
                f"{samples.external:,} of {samples.total:,} samples lie in code outside the cubin, such as "
                "the driver's printf or heap functions",
            )
        )
    if profile is not None and profile.sampling.truncated:
        evidence = profile.sampling.truncation_evidence
        result.append(
            Problem(
                ProblemCode.TRUNCATED_SAMPLES,
                "the sample buffer was full: samples and estimates hold for the first part of the run only"
                + (f" ({evidence})" if evidence else ""),
            )
        )
    return result


def _how_to_get_more(context: KernelContext, total: int) -> str:
    """What the collector that took the samples needs to be told to take more of them."""
    if context.evidence is Evidence.MODELLED:
        return "model a larger launch (--grid) or more passes of its loops (--loop)"
    add_up = "add launches of it up (--merge)"
    interval = None if context.profile is None else context.profile.sampling.interval_cycles
    if interval is not None and interval <= 1 << _LEAST_PERIOD:
        return f"no shorter interval than these {interval} cycles can be set: {add_up}"
    period, interval_text = None, ""
    if interval is not None:
        period = max(_LEAST_PERIOD, math.floor(math.log2(interval * total / FEW_SAMPLES)))
        interval_text = f": every {1 << period} cycles"
    if context.collector == _CUPTI:
        option = _option("gpadvisor profile --period", period)
    else:
        exponent = None if period is None else period - _LEAST_PERIOD
        option = _option("ncu --sampling-interval", exponent) + ", in newer ones --warp-sampling-interval"
    return f"sample more often ({option}{interval_text}) or {add_up}"


def _option(name: str, value: int | None) -> str:
    return name if value is None else f"{name} {value}"
