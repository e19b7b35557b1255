# SPDX-License-Identifier: Apache-2.0
"""Frames of Python in a Chrome trace, and where the application was when it called CUDA."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.timeline import HostPlace, Timeline
from gpadvisor.store.timeline.columns import Numbers, TraceRows

_FRAME: Final = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
_NOT_OURS: Final = re.compile(
    r"(^|/)(torch|torchvision|site-packages|dist-packages)/|(^|/)python\d[\d.]*/|^<|^(contextlib|threading|runpy)\.py$"
)
_WIDTH: Final = 4


class FrameRows:
    """Frames as they are read: start, end, thread and place; those of libraries have no place."""

    def __init__(self) -> None:
        self._rows = TraceRows(_WIDTH)
        self._places = Numbers[HostPlace]()

    def add(self, start: int, end: int, thread: int, name: str) -> None:
        """One more, named ``file.py(12): function``; its line is the function's first."""
        match = _FRAME.fullmatch(name)
        if match is None or _NOT_OURS.search(match["file"]):
            return
        place = HostPlace(
            function=match["function"], file=match["file"], line=int(match["line"]), is_definition=True
        )
        self._rows.add(start, end, thread, self._places.of(place))

    def placed(self, timeline: Timeline) -> Timeline:
        """The timeline with the innermost frame of the application around each call."""
        rows, calls = self._rows.columns(), timeline.calls
        if not len(rows):
            return timeline
        place = np.full(len(calls.start_ns), -1, np.int64)
        for thread in np.unique(rows[:, 2]).tolist():
            of_thread = np.flatnonzero(calls.thread == thread)
            if len(of_thread):
                edges, places = _innermost(rows[rows[:, 2] == thread])
                at = np.searchsorted(edges, calls.start_ns[of_thread], side="right") - 1
                place[of_thread] = np.where(at < 0, -1, places[np.maximum(at, 0)])
        return replace(timeline, calls=replace(calls, place=place), places=tuple(self._places.found))


def _innermost(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When a thread enters or leaves a frame, and the innermost one's place from then on (-1: in none)."""
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
    edges: list[int] = []
    places: list[int] = []
    around: list[tuple[int, int]] = []  # end and place, the innermost last

    def close(until: int) -> None:
        while around and around[-1][0] <= until:
            edges.append(around.pop()[0])
            places.append(around[-1][1] if around else -1)

    for start, end, _, place in rows.tolist():
        close(start)
        edges.append(start)
        places.append(place)
        # A frame that ends after the one around it is cut where that ends.
        around.append((min(end, around[-1][0]) if around else end, place))
    close(np.iinfo(np.int64).max)
    return np.array(edges, np.int64), np.array(places, np.int64)
