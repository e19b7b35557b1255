# SPDX-License-Identifier: Apache-2.0
"""Idleness of a GPU, blamed on the CPU threads (Zhou et al., HPCToolkit on GPUs, sections 4.5 and 6).

Time in which no stream of a device works is shared equally among the threads that run then: each has the
call of CUDA that it is in, the innermost, else the application's own code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.timeline import DeviceIdleness, HostCalls, IdleShare, Timeline

APPLICATION: Final = "application code"
NOBODY: Final = "no call known"
_OUTSIDE: Final = -2  # before a thread's first call and after its last
_OWN: Final = -1


def idleness(timeline: Timeline) -> tuple[DeviceIdleness, ...]:
    """The idle time of each device, by device."""
    threads = [_innermost(timeline.calls, thread) for thread in np.unique(timeline.calls.thread)]
    return tuple(_of(timeline, int(device), threads) for device in np.unique(timeline.work.device))


def _of(
    timeline: Timeline, device: int, threads: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> DeviceIdleness:
    rows = timeline.work.device == device
    start, end = timeline.work.start_ns[rows], timeline.work.end_ns[rows]
    order = np.lexsort((end, start))
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    late = np.flatnonzero(start[1:] > reached[:-1]) + 1  # what ends a gap
    begins, ends = reached[late - 1], start[late]
    span = int(reached[-1] - start[0])
    names = timeline.names
    callers = dict(zip(timeline.calls.correlation.tolist(), timeline.calls.name.tolist(), strict=True))
    callers |= timeline.launched_by
    by_end, ended = Counter[str](), Counter[str]()
    for correlation, length in zip(
        timeline.work.correlation[rows][order][late].tolist(), (ends - begins).tolist(), strict=True
    ):
        called = callers.get(correlation)
        name = NOBODY if called is None else names[called]
        by_end[name] += length
        ended[name] += 1
    return DeviceIdleness(
        device=device,
        span_ns=span,
        busy_ns=span - int((ends - begins).sum()),
        gaps=len(late),
        by_call=_blamed(begins, ends, threads, names),
        by_end=_shares(by_end, ended),
    )


def gap_causes(
    timeline: Timeline, device: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The gaps of a device: begin, end, and what threads did in most of each (-1: the application's code)."""
    rows = timeline.work.device == device
    order = np.lexsort((timeline.work.end_ns[rows], timeline.work.start_ns[rows]))
    start, reached = timeline.work.start_ns[rows][order], timeline.work.end_ns[rows][order]
    reached = np.maximum.accumulate(reached)
    late = np.flatnonzero(start[1:] > reached[:-1]) + 1
    begins, ends = reached[late - 1], start[late]
    cause = np.full(len(begins), _OWN, np.int64)
    if not len(begins):
        return begins, ends, cause
    threads = [_innermost(timeline.calls, thread) for thread in np.unique(timeline.calls.thread)]
    length, gap, doing, running = _pieces(begins, ends, threads)
    number = len(timeline.names) + 1
    keys = np.concatenate([(gap * number + calls + 1)[calls != _OUTSIDE] for calls in doing])
    times = np.concatenate([(length / running)[calls != _OUTSIDE] for calls in doing])
    keys, where = np.unique(keys, return_inverse=True)
    total = np.bincount(where.reshape(-1), weights=times)
    by_time = np.argsort(total, kind="stable")  # the largest of a gap is written last
    cause[keys[by_time] // number] = keys[by_time] % number - 1
    return begins, ends, cause


def _blamed(
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    threads: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    names: tuple[str, ...],
) -> tuple[IdleShare, ...]:
    """The time of all gaps by what was done in them."""
    if not len(begins):
        return ()
    length, gap, doing, running = _pieces(begins, ends, threads)
    times: dict[str, float] = {}
    gaps = Counter[str]()
    for calls in doing:
        for call in np.unique(calls[calls != _OUTSIDE]).tolist():
            these = calls == call
            name = APPLICATION if call == _OWN else names[call]
            times[name] = times.get(name, 0.0) + float((length[these] / running[these]).sum())
            gaps[name] += len(np.unique(gap[these]))
    return _shares(times, gaps)


def _pieces(
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    threads: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]], NDArray[np.int64]]:
    """Gaps, cut where any thread changes what it does: length, gap, by thread what, and how many do."""
    cuts = np.unique(np.concatenate([begins, ends, *(edges for edges, _ in threads)]))
    starts, length = cuts[:-1], np.diff(cuts)
    gap = np.searchsorted(begins, starts, side="right") - 1
    inside = (gap >= 0) & (starts < ends[gap])
    starts, length, gap = starts[inside], length[inside], gap[inside]
    doing = [
        names[np.searchsorted(edges, starts, side="right") - 1]
        if len(edges)
        else np.full(len(starts), _OUTSIDE)
        for edges, names in threads
    ]
    running = (
        np.sum([thread != _OUTSIDE for thread in doing], axis=0) if doing else np.zeros(len(starts), int)
    )
    if not doing or bool((running == 0).any()):  # nobody is known to run: the application, as far as is known
        doing.append(np.where(running == 0, _OWN, _OUTSIDE))
        running = np.maximum(running, 1)
    return length, gap, doing, running


def _innermost(calls: HostCalls, thread: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When a thread changes what it does, and from then on its call, its own code, or nothing known."""
    rows = np.flatnonzero(calls.thread == thread)
    rows = rows[np.lexsort((-calls.end_ns[rows], calls.start_ns[rows]))]
    edges: list[int] = [np.iinfo(np.int64).min]
    names: list[int] = [_OUTSIDE]
    open_calls: list[tuple[int, int]] = []  # end and name, the innermost last

    def close(until: int) -> None:
        while open_calls and open_calls[-1][0] <= until:
            ended, _ = open_calls.pop()
            edges.append(ended)
            names.append(open_calls[-1][1] if open_calls else _OWN)

    for start, end, name in zip(
        calls.start_ns[rows].tolist(), calls.end_ns[rows].tolist(), calls.name[rows].tolist(), strict=True
    ):
        close(start)
        edges.append(start)
        names.append(name)
        # A call that ends after the one around it is cut where that ends.
        open_calls.append((min(end, open_calls[-1][0]) if open_calls else end, name))
    close(np.iinfo(np.int64).max)
    names[-1] = _OUTSIDE
    return np.array(edges, np.int64), np.array(names, np.int64)


def _shares(times: Mapping[str, float], gaps: Counter[str]) -> tuple[IdleShare, ...]:
    order = sorted(times, key=lambda name: (-times[name], name))
    return tuple(IdleShare(name=name, idle_ns=float(times[name]), gaps=gaps[name]) for name in order)
