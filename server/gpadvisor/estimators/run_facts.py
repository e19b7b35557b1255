# SPDX-License-Identifier: Apache-2.0
"""What rules on a run ask of its timeline: gaps, who ended them, and what the threads did then."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.estimators import constants
from gpadvisor.model.estimate import Estimate
from gpadvisor.model.sentence import sentences
from gpadvisor.model.timeline import HostPlace, Operation, Timeline

Times = NDArray[np.int64]
NOWHERE: Final = -1
_RELATED: Final = 2
_API: Final = r"(cuda|cu|hip)"
_WAIT: Final = re.compile(rf"{_API}(Device|Ctx|Stream|Event|Thread)Synchronize")
_BLOCKING: Final = re.compile(
    rf"{_API}(Memcpy(?!\w*Async)|(Malloc|Free|MemAlloc|MemFree|HostAlloc)(?!\w*Async)|Host(Register|Unregister)"
    r"|Module(Unl|L)oad|LibraryLoad|GraphInstantiate)"
)
_TIMED: Final = re.compile(rf"{_API}EventElapsedTime")
_KINDS: Final = {"launch": re.compile(r"Launch"), "copy": re.compile(r"Memcpy|Memset")}
_IN_CALL: Final = re.compile(rf"{_API}[A-Z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMatch:
    """A place of the host code, with the idle or serial time that another way would save."""

    place: int  # NOWHERE where the trace has no call paths
    calls: int
    title: str
    advice: str
    low_ns: float
    expected_ns: float
    high_ns: float
    reasons: tuple[str, ...]  # what the three rest on
    related: tuple[tuple[int, str], ...] = ()  # other places, each with what it has to do with this one


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRule:
    """A pattern in the timeline of a run."""

    code: str
    slug: str
    name: str
    match: Callable[[RunFacts], Iterable[RunMatch]]
    document: str  # the module docstring: the rule's page


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThreadCalls:
    """Calls of one thread that are in no other, in order; each ends before the next begins."""

    start: Times
    end: Times
    name: Times
    place: Times
    in_call: Times  # time in calls before each
    blocked: Times  # time in calls that wait, before each
    is_cuda: NDArray[np.bool_]
    is_blocking: NDArray[np.bool_]

    def passed(self, when: Times, *, blocked: bool = False) -> Times:
        """The time in calls until each of some times, of all or of those that wait."""
        counted = self.is_blocking if blocked else self.is_cuda
        before = self.blocked if blocked else self.in_call
        if not len(self.start):
            return np.zeros(len(when), np.int64)
        stretch = np.searchsorted(self.start, when, side="right") - 1
        inside = np.minimum(when, self.end[stretch]) - self.start[stretch]
        return np.where(stretch < 0, 0, before[stretch] + inside * counted[stretch])


class RunFacts:
    """A timeline with what rules ask of it, each worked out once."""

    def __init__(self, timeline: Timeline) -> None:
        """Nothing is worked out yet."""
        self.timeline = timeline
        self.work, self.calls = timeline.work, timeline.calls

    @cached_property
    def span_ns(self) -> int:
        """From the first operation of any device to the end of the last."""
        return int(self.work.end_ns.max() - self.work.start_ns.min())

    @cached_property
    def gaps(self) -> tuple[Times, Times, NDArray[np.intp]]:
        """When nothing works on any device: begin, end, and the row of the work that ends it."""
        order = np.lexsort((self.work.end_ns, self.work.start_ns))
        start, reached = self.work.start_ns[order], np.maximum.accumulate(self.work.end_ns[order])
        late = np.flatnonzero(start[1:] > reached[:-1]) + 1
        return reached[late - 1], start[late], order[late]

    @cached_property
    def launching(self) -> Times:
        """By row of work the row of the call that launched it, -1 where it is not known."""
        correlated = np.flatnonzero(self.calls.correlation >= 0)
        order = correlated[np.argsort(self.calls.correlation[correlated], kind="stable")]
        numbers = self.calls.correlation[order]
        if not len(numbers):
            return np.full(len(self.work.start_ns), -1)
        position = np.minimum(np.searchsorted(numbers, self.work.correlation), len(numbers) - 1)
        return np.where(numbers[position] == self.work.correlation, order[position], -1)

    @cached_property
    def launch_place(self) -> Times:
        """By row of work the place of the application that launched it."""
        if self.timeline.launched_at:
            place_of = self.timeline.launched_at
            return np.array(
                [place_of.get(correlation, NOWHERE) for correlation in self.work.correlation.tolist()],
                np.int64,
            )
        return self._of_call(self.calls.place)

    @cached_property
    def launch_thread(self) -> Times:
        """By row of work the thread that launched it, -1 where it is not known."""
        return self._of_call(self.calls.thread)

    def _of_call(self, column: Times) -> Times:
        if not len(column):
            return np.full(len(self.launching), -1)
        return np.where(self.launching >= 0, column[np.maximum(self.launching, 0)], -1)

    @cached_property
    def threads(self) -> dict[int, ThreadCalls]:
        """The calls of each thread."""
        return {thread: self._thread(thread) for thread in np.unique(self.calls.thread).tolist()}

    def _thread(self, thread: int) -> ThreadCalls:
        rows = np.flatnonzero(self.calls.thread == thread)
        rows = rows[np.lexsort((-self.calls.end_ns[rows], self.calls.start_ns[rows]))]
        ends = np.maximum.accumulate(self.calls.end_ns[rows])
        rows = rows[np.concatenate([[True], self.calls.end_ns[rows[1:]] > ends[:-1]])]
        start, end = self.calls.start_ns[rows], self.calls.end_ns[rows]
        end = np.minimum(end, np.append(start[1:], np.iinfo(np.int64).max))
        name = self.calls.name[rows]
        cuda, blocking = self.named(_IN_CALL)[name], (self.is_wait | self.named(_BLOCKING))[name]
        return ThreadCalls(
            start=start,
            end=end,
            name=name,
            place=self.calls.place[rows],
            in_call=np.cumsum((end - start) * cuda) - (end - start) * cuda,
            blocked=np.cumsum((end - start) * blocking) - (end - start) * blocking,
            is_cuda=cuda,
            is_blocking=blocking,
        )

    @cached_property
    def is_wait(self) -> NDArray[np.bool_]:
        """By name of a call whether it waits for the device and does nothing else."""
        return self.named(_WAIT)

    @cached_property
    def is_timed(self) -> NDArray[np.bool_]:
        """By name of a call whether it reads a time that was waited for."""
        return self.named(_TIMED)

    def named(self, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
        """By name of a call whether it begins so."""
        return np.array([bool(pattern.match(name)) for name in self.timeline.names], bool)

    def kind_of_call(self, name: int) -> str:
        """What a call does, in one word."""
        if self.is_wait[name]:
            return "wait"
        text = self.timeline.names[name]
        return next((word for word, pattern in _KINDS.items() if pattern.search(text)), "call")

    def call_name(self, name: int) -> str:
        """A name without the place that some traces have in it."""
        return self.timeline.names[name].partition(" at ")[0]

    @cached_property
    def _pieces(self) -> tuple[Times, Times, NDArray[np.bool_]]:
        """Where anything begins or ends, how many operations work from there, and whether only kernels do."""
        work = self.work
        edges = np.unique(np.concatenate([work.start_ns, work.end_ns]))
        counts = []
        for weight in (np.ones(len(work.start_ns), np.int64), (work.operation == Operation.KERNEL) * 1):
            change = np.zeros(len(edges), np.int64)
            np.add.at(change, np.searchsorted(edges, work.start_ns), weight)
            np.add.at(change, np.searchsorted(edges, work.end_ns), -weight)
            counts.append(np.cumsum(change)[:-1])
        return edges, counts[0], (counts[0] > 0) & (counts[0] == counts[1])

    def alone_before(self, when: Times) -> Times:
        """Time in which one operation works alone, until times at which something begins or ends."""
        edges, active, _ = self._pieces
        return self._before(edges, active == 1, when)

    def kernels_before(self, when: Times) -> Times:
        """The same of time in which only kernels work."""
        edges, _, kernels = self._pieces
        return self._before(edges, kernels, when)

    @staticmethod
    def _before(edges: Times, counted: NDArray[np.bool_], when: Times) -> Times:
        passed = np.concatenate([[0], np.cumsum(np.diff(edges) * counted)])
        return np.asarray(passed[np.searchsorted(edges, when)], np.int64)

    def place(self, number: int) -> HostPlace | None:
        """A place by its number."""
        return None if number == NOWHERE else self.timeline.places[number]

    @property
    def least_ns(self) -> float:
        """Less is not worth telling."""
        return self.span_ns * (1 - 1 / constants.SHOWN)

    def worth(self, match: RunMatch) -> Estimate | None:
        """What a saving is worth for the run; None where that is too little to tell."""
        if match.expected_ns < self.least_ns or match.high_ns >= self.span_ns:
            return None
        low, expected, high = (
            self.span_ns / (self.span_ns - saved)
            for saved in (match.low_ns, match.expected_ns, match.high_ns)
        )
        return Estimate(
            low=low,
            expected=expected,
            high=high,
            paper=None,
            equation=(
                f"Amdahl: R / (R - s) = {expected:.3f} with R = {self.span_ns / 1e6:,.3f} ms of the run,"
                f" s = {match.expected_ns / 1e6:,.3f} ms saved"
            ),
            reasons=sentences(*match.reasons),
        )


def heaviest(times: Counter[int], other_than: int) -> list[int]:
    """The places with the most time, as many as are shown beside a finding."""
    return [place for place, _ in times.most_common() if place not in {NOWHERE, other_than}][:_RELATED]


def milliseconds(time_ns: float) -> str:
    """A time as these rules tell it."""
    return f"{time_ns / 1e6:,.3f} ms"
