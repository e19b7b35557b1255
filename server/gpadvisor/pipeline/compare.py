# SPDX-License-Identifier: Apache-2.0
"""Two files, their advice, and what changed between them."""

from __future__ import annotations

from pathlib import Path

from gpadvisor.advice.compare import Comparison, compare
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import KernelAdvice
from gpadvisor.model.finding import ChangedLine, Place
from gpadvisor.pipeline.advise import AdvisedFile, advise_file
from gpadvisor.pipeline.cache import Cache, cache_folder
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.report.comparison import render_comparison_json, render_comparison_text


def _code(context: KernelContext) -> tuple[str, ...]:
    """The machine code of a kernel and of what it calls, one text per instruction."""
    return tuple(one.text for function in context.program.functions for one in function.instructions)


def compare_inputs(
    before: Path, request_before: Request, after: Path, request_after: Request, progress: Progress
) -> Comparison:
    """The comparison of two inputs.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    cache = Cache(cache_folder())
    first = advise_file(before, request_before, progress, cache)
    return compare_advised(first, advise_file(after, request_after, progress, cache))


def compare_advised(first: AdvisedFile, second: AdvisedFile) -> Comparison:
    """The comparison of two inputs whose advice is made."""
    codes = {id(one.advice): _code(one.analysed.context) for side in (first, second) for one in side.kernels}

    def same_code(one: KernelAdvice, other: KernelAdvice) -> bool | None:
        known = codes.get(id(one)), codes.get(id(other))
        return None if not all(known) else known[0] == known[1]

    return compare(first.advice.kernels, second.advice.kernels, first.texts, second.texts, same_code)


def compare_files(
    before: Path,
    request_before: Request,
    after: Path,
    request_after: Request,
    progress: Progress,
    *,
    output_format: str,
    rows: int | None,
    width: int,
) -> str:
    """The comparison, printed.

    Raises:
        GpadvisorError: an input or a tool is at fault.
    """
    result = compare_inputs(before, request_before, after, request_after, progress)
    if output_format == "json":
        return render_comparison_json(result)
    return render_comparison_text(result, rows=rows, width=width)


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
