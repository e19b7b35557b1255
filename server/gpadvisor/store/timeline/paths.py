# SPDX-License-Identifier: Apache-2.0
"""What the GPU work of a traced run is due to: the host's ways to each launch, with times, as a tree."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final

from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind
from gpadvisor.model.timeline import CallPaths, Operation, Timeline
from gpadvisor.store.timeline import read_timeline

TIME: Final = "time_ns"
_UNITS: Final = {TIME: "nanoseconds of GPU work", "launches": "kernels, copies and memsets"}
_NAMES: Final = {
    Operation.SET: "memset",
    Operation.TO_DEVICE: "copy to the device",
    Operation.TO_HOST: "copy to the host",
    Operation.OTHER_COPY: "copy",
    Operation.MIGRATION: "migration of managed memory",
}


def run_contexts(path: Path) -> MeasuredContexts:
    """The tree of a trace: frames of the host, the call of CUDA, then kernels and copies.

    Raises:
        ProfileFormatError: it is none, damaged, or without work of a GPU.
    """
    timeline = read_timeline(path, paths=True)
    paths = timeline.paths or CallPaths(frames=(), of_call=[-1] * len(timeline.calls.start_ns))
    places = [
        MeasuredPlace(
            frame.above,
            PlaceKind.PYTHON if frame.is_python else PlaceKind.HOST,
            frame.place.function,
            frame.place.file,
            frame.place.line,
            module=frame.place.module,
            address=frame.place.address,
        )
        for frame in paths.frames
    ]
    spent: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    numbers: dict[MeasuredPlace, int] = {}

    def place_of(place: MeasuredPlace) -> int:
        number = numbers.setdefault(place, len(places))
        if number == len(places):
            places.append(place)
        return number

    for work, call in zip(_work(timeline), _calls(timeline, paths), strict=True):
        kernel, operation, lasts = work
        above = -1
        if call is not None:
            name = timeline.names[timeline.calls.name[call]]
            above = place_of(MeasuredPlace(paths.of_call[call], PlaceKind.HOST, name))
        if kernel >= 0:
            known = timeline.kernels[kernel]
            name, symbol = known.demangled or known.mangled, known.mangled
            row = place_of(MeasuredPlace(above, PlaceKind.KERNEL, name, symbol=symbol))
        else:
            row = place_of(MeasuredPlace(above, PlaceKind.COPY, _NAMES[Operation(operation)]))
        spent[row][0] += lasts
        spent[row][1] += 1
    return MeasuredContexts(
        metrics=tuple(_UNITS),
        units=tuple(_UNITS.values()),
        places=tuple(places),
        own=tuple(tuple(spent[row]) if row in spent else (0.0, 0.0) for row in range(len(places))),
    )


def _work(timeline: Timeline) -> list[tuple[int, int, int]]:
    """Kernel, operation and duration of all work."""
    work = timeline.work
    lasts = work.end_ns - work.start_ns
    return list(zip(work.kernel.tolist(), work.operation.tolist(), lasts.tolist(), strict=True))


def _calls(timeline: Timeline, paths: CallPaths) -> list[int | None]:
    """The call that launched each work, where it is known; of several the first with a call path."""
    numbers: dict[int, int] = {}
    for call, number in enumerate(timeline.calls.correlation.tolist()):
        before = numbers.setdefault(number, call)
        if paths.of_call[before] < 0 <= paths.of_call[call]:
            numbers[number] = call
    numbers.pop(-1, None)
    return [numbers.get(number) for number in timeline.work.correlation.tolist()]
