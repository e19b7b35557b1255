# SPDX-License-Identifier: Apache-2.0
"""Two files, their advice, and what changed between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpadvisor.advice.compare import Comparison, compare
from gpadvisor.estimators.context import KernelContext
from gpadvisor.files import cache_folder
from gpadvisor.gate.formats import gate_json, gate_junit, gate_markdown, gate_text
from gpadvisor.gate.ledger import PredictionOutcome
from gpadvisor.gate.limits import GateLimit, GateOutcome, verdict
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.finding import ChangedLine, Place
from gpadvisor.pipeline.advise import AdvisedFile, advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.gate import check_advised
from gpadvisor.pipeline.ledger import outcomes
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.report.comparison import (
    render_comparison_json,
    render_comparison_markdown,
    render_comparison_text,
)


def _code(context: KernelContext) -> tuple[str, ...]:
    """The machine code of a kernel and of what it calls, one text per instruction."""
    return tuple(
        instruction.text for function in context.program.functions for instruction in function.instructions
    )


def compare_inputs(
    before: Path, request_before: Request, after: Path, request_after: Request, progress: Progress
) -> Comparison:
    """The comparison of two inputs.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    return compare_advised(*_advised(before, request_before, after, request_after, progress))


def _advised(
    before: Path, request_before: Request, after: Path, request_after: Request, progress: Progress
) -> tuple[AdvisedFile, AdvisedFile]:
    cache = Cache(cache_folder())
    first = advise_file(before, request_before, progress, cache)
    return first, advise_file(after, request_after, progress, cache)


def compare_advised(first: AdvisedFile, second: AdvisedFile) -> Comparison:
    """The comparison of two inputs whose advice is made."""
    codes = {
        id(kernel.advice): _code(kernel.analysed.context)
        for side in (first, second)
        for kernel in side.kernels
    }

    def same_code(before: KernelAdvice, after: KernelAdvice) -> bool | None:
        digests = codes.get(id(before)), codes.get(id(after))
        return None if not all(digests) else digests[0] == digests[1]

    return compare(first.advice.kernels, second.advice.kernels, first.texts, second.texts, same_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """How a comparison is printed, and what must hold for it."""

    format: str  # "text", "markdown", "json", "junit"
    rows: int | None  # source lines for each kernel; None for all
    width: int
    limits: tuple[GateLimit, ...] = ()
    applied: tuple[str, ...] | None = (
        None  # codes and fingerprints of what was; None: nobody asks for outcomes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A comparison of two files."""

    text: str
    outcome: GateOutcome
    came: tuple[PredictionOutcome, ...]


def compare_files(
    before: Path,
    request_before: Request,
    after: Path,
    request_after: Request,
    progress: Progress,
    options: CompareOptions,
) -> Compared:
    """The comparison, printed with its gate, what that says, and what came of predictions.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    first, second = _advised(before, request_before, after, request_after, progress)
    result, checks = compare_advised(first, second), check_advised(first, second, options.limits)
    if options.format == "junit":
        text = gate_junit(checks)
    elif options.format == "json":
        more = {"gate": gate_json(checks)} if options.limits else {}
        text = render_comparison_json(result, **more)
    elif options.format == "markdown":
        gate = gate_markdown(checks) if options.limits else ""
        text = "\n".join(filter(None, (gate, render_comparison_markdown(result))))
    else:
        gate = "\n" + gate_text(checks, options.width) if options.limits else ""
        text = render_comparison_text(result, rows=options.rows, width=options.width) + gate
    came = () if options.applied is None else outcomes(first, second, options.applied)
    return Compared(text=text, outcome=verdict(checks), came=came)


def compare_for_editor(
    before: Path, request_before: Request, after: Path, request_after: Request, progress: Progress
) -> tuple[ChangedLine, ...]:
    """What each line of the second run has gained or lost.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    result = compare_inputs(before, request_before, after, request_after, progress)
    totals: dict[Place, float] = {}
    for kernel in result.kernels:
        for line in kernel.lines:
            if line.after is not None and line.change_ns:
                place = Place(file=line.after.file, line=line.after.line)
                totals[place] = totals.get(place, 0.0) + line.change_ns
    return tuple(ChangedLine(place=place, change_ns=change) for place, change in totals.items())
