# SPDX-License-Identifier: Apache-2.0
"""The host's ways to the launches of kernels: by a traced run, else by the launches of the profile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gpadvisor.advice.in_run import is_same_kernel
from gpadvisor.model.contexts import MeasuredContexts, PlaceKind
from gpadvisor.model.profile import Profile
from gpadvisor.pipeline.advise import AdvisedKernel
from gpadvisor.views.tree.build import ContextKernel, LaunchWay, OtherWork, host_path
from gpadvisor.views.tree.contexts import place_row
from gpadvisor.views.tree.model import TreeRow

_TIME: Final = 0  # among what a traced run has of a place: nanoseconds, then launches
_LAUNCHES: Final = 1


def ways_of_profile(kernel: AdvisedKernel, profile: Profile | None) -> tuple[LaunchWay, ...]:
    """Ways to all launches of a kernel in its profile, the longest first; none where there is but one.

    What was measured is divided among them by time, or by number where not all were timed.
    """
    chosen = kernel.analysed.context.profile
    if profile is None or chosen is None:
        return ()
    key = chosen.launch.kernel, chosen.binary
    launched = [
        (path.frames, path.launches, path.duration_ns)
        for path in profile.launch_paths
        if (path.kernel, path.binary) == key
    ] or [
        (kernel_profile.call_stack, 1, kernel_profile.launch.duration_ns)
        for kernel_profile in profile.kernels
        if (kernel_profile.launch.kernel, kernel_profile.binary) == key
    ]
    by_time = all(duration is not None for *_, duration in launched)
    spent: defaultdict[tuple[TreeRow, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for frames, launches, duration in launched:
        way = spent[tuple(host_path(frames))]
        way[0] += (duration or 0.0) if by_time else launches
        way[1] += launches
    total = sum(part for part, _ in spent.values())
    if not total or len(spent) < 2:
        return ()
    ways = [LaunchWay(frames, part / total, int(launches)) for frames, (part, launches) in spent.items()]
    return tuple(sorted(ways, key=lambda way: -way.part))


class TracedRun:
    """What a traced run has of kernels and of all else that its GPUs did."""

    def __init__(self, contexts: MeasuredContexts) -> None:
        self._contexts = contexts
        self._rows = [place_row(place) for place in contexts.places]
        self._total = sum(own[_TIME] for own in contexts.own) or 1.0
        self._taken: set[int] = set()

    def placed(self, kernel: ContextKernel, mangled: str) -> ContextKernel:
        """A kernel with the ways to its launches in the run, and its share of the GPU's time there."""
        contexts = self._contexts
        found = [
            index
            for index, place in enumerate(contexts.places)
            if place.kind is PlaceKind.KERNEL
            and is_same_kernel(place.symbol or place.name, place.name, mangled, kernel.name)
        ]
        self._taken.update(found)
        time = sum(contexts.own[index][_TIME] for index in found)
        ways = [
            LaunchWay(
                self._above(index),
                contexts.own[index][_TIME] / time if time else 1 / len(found),
                int(contexts.own[index][_LAUNCHES]),
            )
            for index in found
        ]
        return replace(
            kernel,
            time_share=time / self._total,
            ways=tuple(sorted(ways, key=lambda way: -way.part)) or kernel.ways,
        )

    def others(self) -> Sequence[OtherWork]:
        """What is none of the kernels that were placed."""
        return [
            OtherWork(
                self._above(index),
                replace(self._rows[index], calls=float(own[_LAUNCHES])),
                own[_TIME] / self._total,
            )
            for index, own in enumerate(self._contexts.own)
            if own[_LAUNCHES] and index not in self._taken
        ]

    def _above(self, index: int) -> tuple[TreeRow, ...]:
        frames: list[TreeRow] = []
        while (index := self._contexts.places[index].parent) >= 0:
            frames.append(self._rows[index])
        return tuple(reversed(frames))
