# SPDX-License-Identifier: Apache-2.0
"""The call of a library that has most of a kernel's samples: all that its caller can do is call another."""

from __future__ import annotations

from collections import Counter

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.library_code import library_loops
from gpadvisor.evidence.queries import kernel_functions, location_text, loop_indices
from gpadvisor.model.blame import NO_INDEX, Blame
from gpadvisor.model.figures import percentage
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import Function


def library_call(context: KernelContext) -> str:
    """Where most of the samples are in what one line calls, as a clause; empty where they are not."""
    blame = context.blame
    if blame is None or not blame.total_samples:
        return ""
    shares: Counter[SourceLocation] = Counter()
    inside: dict[SourceLocation, SourceLocation] = {}
    for function in kernel_functions(context.program, context.kernel):
        called = _called(function)
        inside.update(called)
        for index, samples in _samples(blame, function).items():
            line = function.lines[index]
            if line is not None and line.library and line.location in called:
                shares[line.location] += samples
    for place, samples in shares.most_common(1):
        if samples > constants.MAJORITY * blame.total_samples:
            part = 100 * samples / blame.total_samples
            library = inside[place].file.replace("\\", "/").rpartition("/")[2]
            return f"{percentage(part)} of the samples are in {library}, which {location_text(place)} calls"
    return ""


def _called(function: Function) -> dict[SourceLocation, SourceLocation]:
    """By line the library code that it calls, of calls with a loop inside."""
    lines = (
        function.lines[index] for loop in library_loops(function) for index in loop_indices(function, loop)
    )
    return {
        line.location: line.library[0]
        for line in lines
        if line is not None and line.location not in line.library
    }


def _samples(blame: Blame, function: Function) -> Counter[int]:
    """By instruction that was sampled."""
    rows, counts = blame.rows, Counter[int]()
    of_function = (rows.function == function.id) & (rows.use_index != NO_INDEX)
    for index, samples in zip(
        rows.use_index[of_function].tolist(), rows.samples[of_function].tolist(), strict=True
    ):
        counts[index] += samples
    return counts
