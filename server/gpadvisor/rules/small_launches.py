# SPDX-License-Identifier: Apache-2.0
"""Small Launches: kernels that are done before the host has launched the next one.

## What it finds

Places that launch ten kernels or more, most of which find the GPU without work, though the host was not
waiting: since the GPU ran out of work the launching thread was in no call that waits, allocates, frees or
copies in its own time.

## Why the GPU idles

A launch costs the host some microseconds, whatever it launches. Where the kernel takes less, the GPU is
done before the next one arrives, and the speed of the host is that of the run.

## What to try

- A CUDA graph of launches that repeat (`cudaStreamBeginCapture`, in PyTorch `torch.cuda.graphs` or
  `torch.compile` with `mode="reduce-overhead"`): one call launches all of them.
- Fewer and larger kernels: several items, steps or operations in one launch.
- Less work of the host between launches: no allocation, no lookup, no output there.

## Example

```
GPA503 1.31x (1.13-2.05)  model.py:40 in forward()
  2,000 launches of 3.1 us (median), of which 1,874 find the GPU without work, 4.2 us each
```

## When this advice is wrong

Where the host decides what to launch by what comes from elsewhere, so that it has nothing to launch
earlier. A tracer makes each launch slower than it is without: what is saved may be less.

## How the gain is estimated

Of each gap that such a launch ends, with the median for all, so that first launches, which load code, do
not count. Expected: the part in which the launching thread is in calls of CUDA, which a graph spares.
Low: half of that, as with two launches in one. High: the whole gap, where the host's own work between
launches goes, too. The run gains R / (R - s).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators import constants
from gpadvisor.estimators.run_facts import RunFacts, RunMatch, RunRule, milliseconds
from gpadvisor.model.timeline import Operation

_FEWEST: Final = 10


def _match(facts: RunFacts) -> Iterator[RunMatch]:
    work = facts.work
    kernels = np.flatnonzero(work.operation == Operation.KERNEL)
    length, inside = _gaps(facts)
    places = facts.launch_place[kernels]
    for place, launches in zip(*np.unique(places, return_counts=True), strict=True):
        if launches < _FEWEST:
            continue
        mine = kernels[places == place]
        late = mine[length[mine] > 0]
        if len(late) <= constants.MAJORITY * launches:
            continue
        number = len(late)
        gap = min(float(np.median(length[late])) * number, float(length[late].sum()))
        expected = min(float(np.median(inside[late])) * number, gap)
        took = float(np.median(work.end_ns[mine] - work.start_ns[mine]))
        yield RunMatch(
            place=int(place),
            calls=int(launches),
            title=(
                f"{launches:,} launches of {_us(took)} (median), of which {number:,} find the GPU without"
                f" work, {_us(gap / number)} each"
            ),
            advice=(
                "Launch what repeats as a CUDA graph, or more work in each launch; keep the host's own work"
                " away from there."
            ),
            low_ns=expected * float(constants.HALVED),
            expected_ns=expected,
            high_ns=gap,
            reasons=(
                f"low: {milliseconds(expected * float(constants.HALVED))}, as with two launches in one",
                f"expected: {milliseconds(expected)}, gaps while the host is in calls of CUDA",
                f"high: {milliseconds(gap)}, all of these gaps",
            ),
        )


def _gaps(facts: RunFacts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By row of work the gap that it ends, if the host did not wait in it, and of that the time in calls."""
    begins, ends, ending = facts.gaps
    length, inside = np.zeros((2, len(facts.work.start_ns)), np.int64)
    threads = facts.launch_thread[ending]
    for thread, calls in facts.threads.items():
        mine = (threads == thread) | ((threads == -1) & (len(facts.threads) == 1))
        begin, end, row = begins[mine], ends[mine], ending[mine]
        busy = calls.passed(end, blocked=True) - calls.passed(begin, blocked=True) == 0
        length[row[busy]] = (end - begin)[busy]
        inside[row[busy]] = (calls.passed(end) - calls.passed(begin))[busy]
    return length, inside


def _us(time_ns: float) -> str:
    return f"{time_ns / 1e3:,.1f} us"


RULE: Final = RunRule(
    code="GPA503", slug="small-launches", name="Small Launches", match=_match, document=__doc__ or ""
)
