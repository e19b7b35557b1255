# SPDX-License-Identifier: Apache-2.0
"""What a kernel takes of a traced run, and what a change of it is worth there (Amdahl's law)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators.elapsed import whole
from gpadvisor.model.advice import Estimate, KernelAdvice
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.sentence import sentences
from gpadvisor.model.timeline import KernelTime, RunPart, RunTimes, Timeline

_CAST: Final = re.compile(r"\((?:unsigned |signed )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")


def run_times(timeline: Timeline) -> RunTimes:
    """What each kernel takes of a run, as a whole and by grid and block."""
    work = timeline.work
    edges, active = _active(work.start_ns, work.end_ns)
    length = np.diff(edges)
    busy = length[active > 0].sum()
    shapes, shape = np.unique(work.shape, axis=0, return_inverse=True)
    times: list[KernelTime] = []
    shape_key = work.kernel * len(shapes) + shape.reshape(-1)
    for by_shape, groups in ((False, work.kernel), (True, shape_key)):
        chosen = np.flatnonzero(work.kernel >= 0)
        if by_shape:
            chosen = chosen[work.shape[chosen, 0] >= 0]
        # What is no launch of these kernels is a group of its own.
        keys, group = np.unique(np.where(work.kernel >= 0, groups, -1), return_inverse=True)
        alone = _alone(work.start_ns, work.end_ns, group.reshape(-1), edges, active, len(keys))
        shared = _shared(work.start_ns, work.end_ns, group.reshape(-1), edges, active, len(keys))
        union = _union(work.start_ns, work.end_ns, group.reshape(-1), len(keys))
        launches = np.bincount(group.reshape(-1), minlength=len(keys))
        for position in np.unique(group.reshape(-1)[chosen]).tolist():
            key = int(keys[position])
            times.append(
                KernelTime(
                    name=timeline.kernels[key // len(shapes) if by_shape else key],
                    shape=tuple(shapes[key % len(shapes)].tolist()) if by_shape else None,
                    launches=int(launches[position]),
                    alone_ns=int(alone[position]),
                    shared_ns=float(shared[position]),
                    union_ns=int(union[position]),
                )
            )
    return RunTimes(span_ns=int(edges[-1] - edges[0]), busy_ns=int(busy), kernels=tuple(times))


def _active(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where anything begins or ends, and how many operations work from each of these to the next."""
    edges = np.unique(np.concatenate([start, end]))
    return edges, _summed(start, end, np.ones(len(start), np.int64), edges)


def _summed(
    start: NDArray[np.int64], end: NDArray[np.int64], value: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The sum of a value over what works between each edge and the next."""
    change = np.zeros(len(edges), np.int64)
    np.add.at(change, np.searchsorted(edges, start), value)
    np.add.at(change, np.searchsorted(edges, end), -value)
    return np.cumsum(change)[:-1]


def _alone(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    group: NDArray[np.intp],
    edges: NDArray[np.int64],
    active: NDArray[np.int64],
    groups: int,
) -> NDArray[np.int64]:
    """The time in which all that works is of one group, by group."""
    total = _summed(start, end, group.astype(np.int64), edges)
    squares = _summed(start, end, group.astype(np.int64) ** 2, edges)
    mean = total // np.maximum(active, 1)
    # All numbers are the same where they have no variance; both sums are exact.
    single = (active > 0) & (mean * active == total) & (mean * total == squares)
    alone = np.zeros(groups, np.int64)
    np.add.at(alone, mean[single], np.diff(edges)[single])
    return alone


def _shared(
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    group: NDArray[np.intp],
    edges: NDArray[np.int64],
    active: NDArray[np.int64],
    groups: int,
) -> NDArray[np.float64]:
    """The busy time with each piece divided equally among what works in it, by group."""
    passed = np.concatenate([[0.0], np.cumsum(np.diff(edges) / np.maximum(active, 1) * (active > 0))])
    parts = passed[np.searchsorted(edges, end)] - passed[np.searchsorted(edges, start)]
    return np.bincount(group, weights=parts, minlength=groups).astype(np.float64)


def _union(
    start: NDArray[np.int64], end: NDArray[np.int64], group: NDArray[np.intp], groups: int
) -> NDArray[np.int64]:
    """The time in which at least one of a group works, by group."""
    order = np.lexsort((start, group))
    union = np.zeros(groups, np.int64)
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    for rows in np.split(order, cuts):
        begins, reached = start[rows], np.maximum.accumulate(end[rows])
        before = np.concatenate([[begins[0]], reached[:-1]])
        union[group[rows[0]]] = np.maximum(0, end[rows] - np.maximum(begins, before)).sum()
    return union


def part_of(kernel: KernelAdvice, times: RunTimes, trace: str) -> RunPart | None:
    """A kernel's part of a run, by mangled name, else by its readable one; None where it has none.

    Launches of its grid and block are taken, and all of the kernel's where the run has none of these.
    """
    kernel_times = [
        kernel_time for kernel_time in times.kernels if kernel_time.name.mangled == kernel.mangled
    ] or [time for time in times.kernels if _plain(time.name.demangled) == _plain(kernel.name)]
    shape = None if kernel.launch is None else (*kernel.launch.grid, *kernel.launch.block)
    matching = [time for time in kernel_times if shape is not None and time.shape == shape]
    matching = matching or [time for time in kernel_times if time.shape is None]
    if not matching:
        return None
    return RunPart(trace=trace, span_ns=times.span_ns, busy_ns=times.busy_ns, time=matching[0])


def is_same_kernel(symbol: str, name: str, mangled: str, readable: str) -> bool:
    """Whether a trace's kernel is one of a profile, by mangled name, else by its readable one."""
    return symbol == mangled or _plain(name) == _plain(readable)


def _plain(name: str) -> str:
    """A readable name without what demanglers differ in."""
    return "".join(_CAST.sub("", name).removeprefix("void ").split())


def in_run(kernel: KernelAdvice, part: RunPart | None) -> KernelAdvice:
    """The advice with the run's share of time, and with what each suggestion is worth for the run."""
    if part is None:
        missing = Problem(
            ProblemCode.NOT_IN_TIMELINE,
            "the timeline has no launch of this kernel: what a change is worth for the run is not known",
        )
        suggestions = [replace(suggestion, program_speedup=None) for suggestion in kernel.suggestions]
        return replace(
            kernel,
            time_share=None,
            suggestions=tuple(suggestions),
            problems=(*kernel.problems, missing),
        )
    of_run = [
        replace(suggestion, program_speedup=worth(suggestion.speedup, part))
        for suggestion in kernel.suggestions
    ]
    return replace(kernel, time_share=part.of_busy, in_run=part, suggestions=tuple(of_run))


def worth(estimate: Estimate | None, part: RunPart) -> Estimate | None:
    """An estimate for the kernel as one for the run.

    Gains count at the low end only where nothing else works at the time, and at the high end whenever one of
    the launches runs; a loss the other way round. Idle time stays as it is.
    """
    if estimate is None or not part.span_ns:
        return None
    alone, shared, union = (
        time / part.span_ns for time in (part.time.alone_ns, part.time.shared_ns, part.time.union_ns)
    )
    expected = whole(estimate.expected, shared)
    overlap = f"{alone:.4f} to {union:.4f} with what other streams do meanwhile; " if alone < union else ""
    return Estimate(
        low=min(whole(estimate.low, alone), whole(estimate.low, union)),
        expected=expected,
        high=max(whole(estimate.high, alone), whole(estimate.high, union)),
        paper=None if estimate.paper is None else whole(estimate.paper, shared),
        equation=(
            f"Amdahl: 1 / (1 - p + p / S) = {expected:.3f} with p = {shared:.4f}, S = {estimate.expected:.3f}"
        ),
        reasons=sentences(
            f"p = {part.of_busy:.4f} of the busy time x {part.busy:.4f} of the run; {overlap}idle time stays",
        ),
    )


def untold(kernels: Sequence[KernelAdvice]) -> bool:
    """Whether no kernel is in the run: it is of another program."""
    return bool(kernels) and all(kernel.in_run is None for kernel in kernels)
