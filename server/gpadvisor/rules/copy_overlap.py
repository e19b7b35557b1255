# SPDX-License-Identifier: Apache-2.0
"""Copy Overlap: copies between host and GPU during which no kernel works.

## What it finds

Copies to the GPU or to the host, by the place that launches them, that run while nothing else works on
any device, beside kernels that run while nothing is copied.

## Why the GPU idles

Copies have engines of their own, which work beside the SMs. They do so only where the copy is
asynchronous, its memory on the host is pinned, and it stands in another stream than the kernels:
`cudaMemcpy` holds the host, `cudaMemcpyAsync` of pageable memory goes through a buffer of the driver, and
one stream runs all in order.

## What to try

- Pinned memory (`cudaHostAlloc`, in PyTorch `pin_memory=True`) and `cudaMemcpyAsync`
  (`non_blocking=True`).
- Two buffers and two streams: the next piece is copied while kernels work on this one.
- Data that do not change, copied once; data that only the GPU uses, left there.

## Example

```
GPA502 1.12x (1.00-1.28)  app.cu:31 in step()
  50 copies to the GPU take 42.1 ms in which no kernel works
```

## When this advice is wrong

Where all of the data are needed before the first kernel can begin, or are known only after the last: then
the copy can be smaller, not hidden. Where the copies of one run are its set-up, and real runs are longer.

## How the gain is estimated

A copy can hide behind the kernels that run alone until the next copy from the same place (of copies to
the host: since the one before), and no more than its own time without anything else beside it. High: all
of that. Expected: half, as in two pieces of which only one has kernels to hide behind. Low: nothing, as
the data may be needed at once. The run gains R / (R - s) with s what is hidden.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators import constants
from gpadvisor.estimators.run_facts import RunFacts, RunMatch, RunRule, heaviest, milliseconds
from gpadvisor.model.timeline import Operation

_WORDS: Final = {Operation.TO_DEVICE: "to the GPU", Operation.TO_HOST: "to the host"}


def _match(facts: RunFacts) -> Iterator[RunMatch]:
    work = facts.work
    kernels = _kernel_times(facts)
    for direction, words in _WORDS.items():
        rows = np.flatnonzero(work.operation == direction)
        for place in np.unique(facts.launch_place[rows]).tolist():
            mine = rows[facts.launch_place[rows] == place]
            mine = mine[np.argsort(work.start_ns[mine], kind="stable")]
            alone = facts.alone_before(work.end_ns[mine]) - facts.alone_before(work.start_ns[mine])
            hidden = float(np.minimum(alone, _kernels_beside(facts, mine, direction)).sum())
            if hidden < facts.least_ns:
                continue
            number = f"{len(mine):,} {'copy' if len(mine) == 1 else 'copies'} {words}"
            takes = f"{'takes' if len(mine) == 1 else 'take'} {milliseconds(int(alone.sum()))}"
            expected = hidden * float(constants.HALVED)
            yield RunMatch(
                place=place,
                calls=len(mine),
                title=(f"{number} {takes} in which nothing else works{_why(facts, mine)}"),
                advice=(
                    "Copy in pieces with cudaMemcpyAsync from or to pinned memory, in another stream than the"
                    " kernels, while these work on the piece before."
                ),
                low_ns=0.0,
                expected_ns=expected,
                high_ns=hidden,
                reasons=(
                    "low: nothing, as the data may be needed at once",
                    f"expected: {milliseconds(expected)}, half of what kernels could hide, as in two pieces",
                    f"high: {milliseconds(hidden)}, as far as kernels run alone between these copies",
                ),
                related=tuple(
                    (
                        number,
                        f"kernels launched here work {milliseconds(kernels[number])} of the run",
                    )
                    for number in heaviest(kernels, place)
                ),
            )


def _kernel_times(facts: RunFacts) -> Counter[int]:
    """The time of kernels by the place that launched them."""
    rows = np.flatnonzero(facts.work.operation == Operation.KERNEL)
    places, positions = np.unique(facts.launch_place[rows], return_inverse=True)
    lasted = np.bincount(positions.reshape(-1), (facts.work.end_ns - facts.work.start_ns)[rows])
    return Counter(dict(zip(places.tolist(), lasted.astype(np.int64).tolist(), strict=True)))


def _kernels_beside(facts: RunFacts, mine: NDArray[np.intp], direction: Operation) -> NDArray[np.int64]:
    """The time of kernels alone behind each copy until the next, or of copies to the host before each."""
    work = facts.work
    if direction is Operation.TO_DEVICE:
        begin = work.end_ns[mine]
        end = np.append(work.start_ns[mine[1:]], work.end_ns.max())
    else:
        begin = np.append(work.start_ns.min(), work.end_ns[mine[:-1]])
        end = work.start_ns[mine]
    return facts.kernels_before(np.maximum(begin, end)) - facts.kernels_before(begin)


def _why(facts: RunFacts, mine: NDArray[np.intp]) -> str:
    """What holds them there, as far as the trace says it."""
    calls = facts.launching[mine]
    names = Counter(facts.call_name(int(facts.calls.name[call])) for call in calls[calls >= 0].tolist())
    pageable = bool((facts.work.pageable[mine] == 1).all())
    properties = [
        f"of {names.most_common(1)[0][0]}" if names else "",
        "of pageable memory" if pageable else "",
    ]
    properties = [words for words in properties if words]
    return f" ({', '.join(properties)})" if properties else ""


RULE: Final = RunRule(
    code="GPA502", slug="copy-overlap", name="Copy Overlap", match=_match, document=__doc__ or ""
)
