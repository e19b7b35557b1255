# SPDX-License-Identifier: Apache-2.0
"""A run along the clock, for a picture: a lane for each stream, each thread and each device that idles."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.advice.idleness import APPLICATION, gap_causes, idleness
from gpadvisor.estimators.run_facts import RunFacts
from gpadvisor.model.timeline import Operation, RunStrip, StripLane, Timeline

MOST_EVENTS: Final = 1_000_000
MOST_LANES: Final = 64
_GROUPS: Final = 9  # of seven bits, of a number
_SYSTEM_THREAD: Final = 1 << 24  # Nsight Systems has the process above, the thread below
_COPIES: Final = {
    Operation.SET: ("memset", "set"),
    Operation.TO_DEVICE: ("copy to the GPU", "copy"),
    Operation.TO_HOST: ("copy to the host", "copy"),
    Operation.OTHER_COPY: ("copy", "copy"),
    Operation.MIGRATION: ("migration to the host", "copy"),
}
_SEVERAL: Final = ("several, close together", "several")


@dataclass(frozen=True, slots=True)
class _Lane:
    kind: str
    label: str
    start: NDArray[np.int64]  # in order
    end: NDArray[np.int64]
    name: NDArray[np.int64]


def run_strip(timeline: Timeline, most: int = MOST_EVENTS) -> RunStrip:
    """The lanes of a run; where it has more events, those of a lane that stand closest together are one."""
    facts = RunFacts(timeline)
    lanes, names = _lanes(facts)
    chosen = _chosen(lanes)
    gap = _least_gap(chosen, most)
    if gap:
        names.append(_SEVERAL)
        chosen = [_merged(lane, gap, len(names) - 1) for lane in chosen]
    origin = min(int(lane.start[0]) for lane in chosen)
    return RunStrip(
        span_ns=max(int(lane.end.max()) for lane in chosen) - origin,
        names=tuple(names),
        lanes=tuple(
            StripLane(kind=lane.kind, label=lane.label, events=len(lane.start), data=_packed(lane, origin))
            for lane in chosen
        ),
        left_out=len(lanes) - len(chosen),
        merged_ns=gap,
        devices=idleness(timeline),
    )


def _lanes(facts: RunFacts) -> tuple[list[_Lane], list[tuple[str, str]]]:
    """All lanes in order; their names are kernels, calls, the application, then copies."""
    timeline, work = facts.timeline, facts.work
    calls, kernels = len(timeline.names), len(timeline.kernels)
    names = [(kernel.demangled or kernel.mangled, "kernel") for kernel in timeline.kernels]
    names += [(facts.call_name(call), facts.kind_of_call(call)) for call in range(calls)]
    names += [(APPLICATION, "application"), *_COPIES.values()]
    copies = {operation: kernels + calls + 1 + index for index, operation in enumerate(_COPIES)}
    by_operation = np.array([copies.get(operation, 0) for operation in Operation], np.int64)
    of_work = np.where(work.kernel >= 0, work.kernel, by_operation[work.operation])
    lanes: list[_Lane] = []
    for device in np.unique(work.device).tolist():
        begin, end, cause = gap_causes(timeline, device)
        if len(begin):
            name = np.where(cause < 0, kernels + calls, kernels + cause)
            lanes.append(_Lane("idle", f"GPU {device} idle", begin, end, name))
        for stream in np.unique(work.stream[work.device == device]).tolist():
            rows = np.flatnonzero((work.device == device) & (work.stream == stream))
            rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
            label = f"GPU {device}" if stream < 0 else f"GPU {device}, stream {stream}"
            lanes.append(_Lane("stream", label, work.start_ns[rows], work.end_ns[rows], of_work[rows]))
    for thread, of_thread in facts.threads.items():
        label = f"thread {thread % _SYSTEM_THREAD}"
        lanes.append(_Lane("thread", label, of_thread.start, of_thread.end, kernels + of_thread.name))
    return lanes, names


def _chosen(lanes: list[_Lane]) -> list[_Lane]:
    """Those with most time, in their order; idle time always."""
    weight = [-1 if lane.kind == "idle" else -int((lane.end - lane.start).sum()) for lane in lanes]
    first = sorted(range(len(lanes)), key=lambda index: (lanes[index].kind != "idle", weight[index], index))
    return [lanes[index] for index in sorted(first[:MOST_LANES])]


def _least_gap(lanes: list[_Lane], most: int) -> int:
    """The time between events of a lane up to which they are one, so that no more than ``most`` are left."""
    if sum(len(lane.start) for lane in lanes) <= most:
        return 0
    between = np.concatenate([_between(lane) for lane in lanes])
    room = max(0, most - len(lanes))
    return (
        int(np.partition(between, len(between) - room - 1)[len(between) - room - 1])
        if room
        else int(between.max())
    )


def _between(lane: _Lane) -> NDArray[np.int64]:
    return np.maximum(1, lane.start[1:] - np.maximum.accumulate(lane.end)[:-1])


def _merged(lane: _Lane, gap: int, name: int) -> _Lane:
    first = np.concatenate([[0], np.flatnonzero(_between(lane) > gap) + 1])
    count = np.diff(np.append(first, len(lane.start)))
    names = np.where(count == 1, lane.name[first], name)
    return _Lane(lane.kind, lane.label, lane.start[first], np.maximum.reduceat(lane.end, first), names)


def _packed(lane: _Lane, origin: int) -> str:
    since = np.diff(lane.start, prepend=origin)
    rows = np.stack([since, lane.end - lane.start, lane.name], axis=1)
    return base64.b64encode(_varints(rows.reshape(-1).astype(np.uint64))).decode("ascii")


def _varints(values: NDArray[np.uint64]) -> bytes:
    """Unsigned LEB128: seven bits in each byte, the lowest first; the eighth says that more follow."""
    size = 1 + sum((values >= np.uint64(1 << (7 * group))).astype(np.int64) for group in range(1, _GROUPS))
    size = np.asarray(size, np.int64)
    place = np.cumsum(size) - size
    out = np.zeros(int(size.sum()), np.uint8)
    for group in range(int(size.max())):
        rows = np.flatnonzero(size > group)
        bits = (values[rows] >> np.uint64(7 * group)) & np.uint64(127)
        out[place[rows] + group] = bits.astype(np.uint8) | ((size[rows] > group + 1) * 128).astype(np.uint8)
    return out.tobytes()
