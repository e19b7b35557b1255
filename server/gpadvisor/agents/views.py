# SPDX-License-Identifier: Apache-2.0
"""What limits kernels, what a change achieved, what works here: `limits`, `compare`, `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpadvisor.advice.compare import Comparison, KernelComparison
from gpadvisor.agents.advising import advised
from gpadvisor.agents.answers import NAME, TEXT, Answer, Json, number, short
from gpadvisor.agents.request import ToolCall
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.pipeline.compare import compare_advised
from gpadvisor.pipeline.potential import shown_potential
from gpadvisor.pipeline.roofline import shown_roofline
from gpadvisor.profiler.doctor.examine import examine_machine
from gpadvisor.views.potential.model import Benefit
from gpadvisor.views.potential.words import WHAT
from gpadvisor.views.roofline.model import RegionKind

_LINES: Final = 5
_FROM_MODEL: Final = "GPUPerf's model on counters of the report"


def limits(call: ToolCall) -> Answer:
    """Ceilings nearest first, then what could be saved."""
    file = advised(call)
    items: list[Json] = []
    skipped: list[str] = []
    for kernel in file.kernels:
        for view in (_roofline, _potential):
            try:
                items += view(kernel)
            except ProfileMismatchError as error:
                skipped.append(str(error))
    if not items:
        raise ProfileMismatchError(skipped[0] if skipped else f"{call.path().name} has no kernel")
    return Answer(
        items=items,
        evidence=", ".join(dict.fromkeys(str(item["evidence"]) for item in items)),
        source="counters of the report, peaks of the device",
        verify=call.command("roofline", str(call.path()), "--format", "json"),
        skipped=[*skipped, *(problem.message for problem in file.advice.problems)],
    )


def _roofline(kernel: AdvisedKernel) -> list[Json]:
    of = shown_roofline(kernel, RegionKind.LOOP).roofline
    return [
        _limit(
            "roofline", kernel, ceiling.name, ceiling.use, ceiling.factor, (of.evidence.value, ceiling.source)
        )
        for ceiling in of.ceilings
    ]


def _potential(kernel: AdvisedKernel) -> list[Json]:
    of = shown_potential(kernel).potential
    return [
        _limit(
            "potential",
            kernel,
            f"{benefit.value}: {WHAT[benefit]}",
            of.share(benefit),
            of.bound(benefit),
            ("modelled", _FROM_MODEL),
        )
        for benefit in Benefit
    ]


def _limit(
    view: str, kernel: AdvisedKernel, name: str, share: float, factor: float, origin: tuple[str, str]
) -> Json:
    evidence, source = origin
    return {
        "view": view,
        "kernel": short(kernel.advice.name, NAME),
        "name": short(name, NAME),
        "share": number(share),
        "factor_at_most": number(factor),
        "evidence": evidence,
        "source": short(source, NAME),
    }


def compare(call: ToolCall) -> Answer:
    """Kernels, predictions and the lines that changed most."""
    first, second = advised(call, "before"), advised(call, "after")
    result = compare_advised(first, second)
    items = [item for kernel in result.kernels for item in _compared(kernel)]
    return Answer(
        items=items,
        evidence=", ".join(dict.fromkeys(str(item["evidence"]) for item in items)) or "none",
        source="durations of the two profiles, and the advice on the first",
        verify=call.command("compare", str(call.path("before")), str(call.path("after"))),
        skipped=list(_alone(result)),
    )


def _alone(result: Comparison) -> Iterator[str]:
    yield from (f"only before: {name}" for name in result.only_before)
    yield from (f"only after: {name}" for name in result.only_after)
    for kernel in result.kernels:
        yield from (f"{short(kernel.after, 40)}: {words}" for words in kernel.differences)
        if kernel.line_mapping is None:
            yield f"{short(kernel.after, 40)}: lines of the two runs cannot be put together"


def _compared(kernel: KernelComparison) -> Iterator[Json]:
    sides = dict.fromkeys((kernel.evidence_before.value, kernel.evidence_after.value))
    empty: Json = dict.fromkeys(("before_ns", "after_ns", "achieved", "low", "expected", "high"))
    base = {"kernel": short(kernel.after, NAME), **empty, "verdict": "", "evidence": ", ".join(sides)}
    achieved = kernel.achieved
    words = "no duration" if achieved is None else "faster" if achieved > 1 else "not faster"
    yield {
        **base,
        "kind": "kernel",
        "name": "",
        "before_ns": number(kernel.duration_before_ns),
        "after_ns": number(kernel.duration_after_ns),
        "achieved": number(achieved),
        "verdict": words,
        "source": "durations of one launch each",
    }
    for prediction in kernel.predictions:
        yield {
            **base,
            "kind": "prediction",
            "name": f"{prediction.code} {prediction.name}",
            "before_ns": number(prediction.time_before_ns),
            "after_ns": number(prediction.time_after_ns),
            "achieved": number(prediction.achieved),
            "low": number(prediction.predicted.low),
            "expected": number(prediction.predicted.expected),
            "high": number(prediction.predicted.high),
            "verdict": prediction.verdict,
            "source": "the advice on the first run; its stalls in both",
        }
    for line in kernel.lines[:_LINES]:
        place = line.after or line.before
        yield {
            **base,
            "kind": "line",
            "name": "" if place is None else short(f"{place.file}:{place.line}", NAME),
            "before_ns": number(line.time_before_ns),
            "after_ns": number(line.time_after_ns),
            "verdict": "edited" if line.edited else "",
            "source": f"share of the samples: {line.samples_before} before, {line.samples_after} after",
        }


def doctor(_call: ToolCall) -> Answer:
    """Each check with what it means."""
    diagnosis = examine_machine()
    items: list[Json] = [
        {
            "name": short(check.name, NAME),
            "status": check.status.value,
            "found": short(check.found, TEXT // 2),
            "meaning": short(check.meaning, TEXT // 2),
            "action": short(check.action, TEXT // 2),
            "evidence": "observed",
            "source": "this machine",
        }
        for check in diagnosis.checks
    ]
    return Answer(
        items=items,
        evidence="observed",
        source=(
            f"best evidence here: {diagnosis.step.value}, because {diagnosis.reason}; next:"
            f" {diagnosis.next_command}"
        ),
        verify=["gpadvisor", "doctor"],
    )
