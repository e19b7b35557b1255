# SPDX-License-Identifier: Apache-2.0
"""Needless Wait: the host waits for the GPU and takes nothing from it, then the GPU waits for the host.

## What it finds

Calls of `cudaDeviceSynchronize`, `cudaStreamSynchronize`, `cudaEventSynchronize` and their like before
which nothing was copied to the host since the thread's last wait, and after which the GPU has nothing to
do until the host has launched again. A wait that ends a measurement of time (`cudaEventElapsedTime` comes
next) is none, nor is one behind which managed memory migrates to the host. All calls of one place must be
like that.

## Why the GPU idles

Launches are asynchronous: a host that does not wait prepares the next launches while the GPU works on the
last. A wait takes that lead away, and what the host does until its next launch arrives is idle time of
the GPU.

## What to try

- Leave the wait out: kernels and copies of one stream run in order without it.
- For order between streams, `cudaEventRecord` and `cudaStreamWaitEvent`, which hold the stream and not
  the host.
- For errors, `cudaGetLastError` after launches, and a wait in debug builds alone.

## Example

```
GPA501 1.43x (1.03-1.50)  app.cu:12 in solve()
  100 calls of cudaDeviceSynchronize wait 81.2 ms, and the GPU idles 33.1 ms behind them
```

## When this advice is wrong

Where the host reads what kernels wrote without a copy: managed memory that does not migrate, or mapped
memory of the host. Where it must know that the GPU is done: before memory is freed or given to another
process or network card.

## How the gain is estimated

Without the wait the host is ahead by the time that it waited, and each gap that this thread's launches
end shrinks by that until it is used up; another wait of the thread sets it to nothing. A gap is time in
which nothing works on any device. Low: only the part of the first gap behind each wait in which the host
is in a call of CUDA, as its own work may need the wait. High: all of these gaps. The run gains R / (R -
s) with R from the first operation of a GPU to the end of the last and s what is saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators.run_facts import (
    NOWHERE,
    RunFacts,
    RunMatch,
    RunRule,
    ThreadCalls,
    Times,
    heaviest,
    milliseconds,
)
from gpadvisor.model.timeline import Operation

_ADVICE: Final = (
    "Leave the wait out if the host reads nothing that the GPU wrote: kernels and copies of a stream run"
    " in order without it. Between streams, let cudaStreamWaitEvent wait."
)


@dataclass(slots=True)
class _Waits:
    """What the waits of one place cost."""

    calls: int = 0
    waited_ns: int = 0
    low_ns: float = 0.0
    expected_ns: float = 0.0
    high_ns: float = 0.0
    names: Counter[str] = field(default_factory=Counter)
    ended_ns: Counter[int] = field(default_factory=Counter)  # first gaps behind, by what launched their end


def _match(facts: RunFacts) -> Iterator[RunMatch]:
    cost_by_place: dict[int, _Waits] = {}
    needed = set[int]()
    for thread, calls in facts.threads.items():
        waits = np.flatnonzero(facts.is_wait[calls.name])
        if len(waits):
            needless = _needless(facts, calls, waits)
            needed |= set(calls.place[waits[~needless]].tolist()) - {NOWHERE}
            _add(facts, thread, waits[needless], cost_by_place)
    for place, cost in cost_by_place.items():
        if place not in needed and cost.expected_ns:
            name = cost.names.most_common(1)[0][0]
            times = "call" if cost.calls == 1 else "calls"
            low_ns = min(cost.low_ns, cost.expected_ns)
            yield RunMatch(
                place=place,
                calls=cost.calls,
                title=(
                    f"{cost.calls:,} {times} of {name} wait {milliseconds(cost.waited_ns)} though nothing was"
                    f" copied to the host, and the GPU idles {milliseconds(cost.high_ns)} behind"
                ),
                advice=_ADVICE,
                low_ns=low_ns,
                expected_ns=cost.expected_ns,
                high_ns=cost.high_ns,
                reasons=(
                    f"low: {milliseconds(low_ns)}, first gaps, while the host is in calls of CUDA",
                    f"expected: {milliseconds(cost.expected_ns)}, gaps as far as what was waited reaches",
                    f"high: {milliseconds(cost.high_ns)}, all gaps until the next wait",
                ),
                related=tuple(
                    (
                        number,
                        f"what is launched here ends gaps of {milliseconds(cost.ended_ns[number])} behind",
                    )
                    for number in heaviest(cost.ended_ns, place)
                ),
            )


def _needless(facts: RunFacts, calls: ThreadCalls, waits: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Of each wait whether nothing came to the host before it, or is known to be read behind it."""
    holds = np.flatnonzero(calls.is_blocking)
    position = np.searchsorted(holds, waits)
    before = np.where(position > 0, calls.end[holds[position - 1]], np.iinfo(np.int64).min)
    until = np.append(calls.start[holds], np.iinfo(np.int64).max)[position + 1]
    work = facts.work
    copied = np.sort(work.end_ns[work.operation == Operation.TO_HOST])
    moved = np.sort(work.start_ns[work.operation == Operation.MIGRATION])
    needed = _between(copied, before, calls.end[waits]) | _between(moved, before, until)
    following = np.minimum(waits + 1, len(calls.name) - 1)
    return np.asarray(~(needed | facts.is_timed[calls.name[following]]))


def _between(times: Times, after: Times, until: Times) -> NDArray[np.bool_]:
    return np.searchsorted(times, until, side="right") > np.searchsorted(times, after, side="right")


def _add(facts: RunFacts, thread: int, waits: NDArray[np.intp], cost_by_place: dict[int, _Waits]) -> None:
    """The cost of a thread's waits, by place."""
    calls = facts.threads[thread]
    begins, ends, ending = facts.gaps
    by = facts.launch_thread[ending]
    of_thread = (by == thread) | (by == -1)
    begins, ends, ended_at = begins[of_thread], ends[of_thread], facts.launch_place[ending[of_thread]]
    length = calls.end - calls.start
    holds = np.flatnonzero(calls.is_blocking)
    for place in np.unique(calls.place[waits]).tolist():
        mine = waits[calls.place[waits] == place]
        waited = int(length[mine].sum())
        if waited < facts.least_ns:
            continue
        cost = cost_by_place.setdefault(place, _Waits())
        cost.calls += len(mine)
        cost.waited_ns += waited
        for name, number in zip(*np.unique(calls.name[mine], return_counts=True), strict=True):
            cost.names[facts.call_name(int(name))] += int(number)
        remaining = np.setdiff1d(holds, mine)
        saved, behind = _ahead(calls.end[mine], length[mine], calls.end[remaining], begins, ends)
        cost.expected_ns += saved
        cost.high_ns += behind
        cost.low_ns += _first_gaps(calls, mine, begins, ends)
        first = np.unique(np.searchsorted(ends, calls.end[mine], side="right"))
        for gap in first[first < len(ends)].tolist():
            cost.ended_ns[int(ended_at[gap])] += int(ends[gap] - begins[gap])


def _ahead(waits: Times, waited: Times, remaining: Times, begins: Times, ends: Times) -> tuple[float, float]:
    """What a host that is ahead by what it waited takes from gaps, and all gaps until its next other wait."""
    times = np.concatenate([waits, remaining, ends])
    kind = np.repeat([0, 1, 2], [len(waits), len(remaining), len(ends)])
    value = np.concatenate([waited, np.zeros(len(remaining), np.int64), ends - begins])
    order = np.lexsort((kind, times))
    lead = saved = behind = 0
    is_after = False
    for event, amount in zip(kind[order].tolist(), value[order].tolist(), strict=True):
        if event == 0:
            lead, is_after = lead + amount, True
        elif event == 1:
            lead, is_after = 0, False
        elif is_after:
            used = min(amount, lead)
            lead, saved, behind = lead - used, saved + used, behind + amount
    return float(saved), float(behind)


def _first_gaps(calls: ThreadCalls, waits: NDArray[np.intp], begins: Times, ends: Times) -> float:
    """Of the first gap that ends behind each wait the time in calls of CUDA, as long as it waited at most."""
    if not len(ends):
        return 0.0
    gap = np.searchsorted(ends, calls.end[waits], side="right")
    before_gap = gap < len(ends)
    gap, waits = gap[before_gap], waits[before_gap]
    gap, first = np.unique(gap, return_index=True)
    inside = calls.passed(ends[gap]) - calls.passed(begins[gap])
    return float(np.minimum(inside, (calls.end - calls.start)[waits[first]]).sum())


RULE: Final = RunRule(
    code="GPA501", slug="needless-wait", name="Needless Wait", match=_match, document=__doc__ or ""
)
