# SPDX-License-Identifier: Apache-2.0
"""Frames of Python in a Chrome trace, and where the application was when it called CUDA."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.timeline import CallPaths, HostPlace, PathFrame, Timeline
from gpadvisor.store.timeline.columns import Numbers, TraceRows

_FRAME: Final = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)", re.DOTALL)
_NOT_OURS: Final = re.compile(
    r"(^|/)(torch|torchvision|site-packages|dist-packages)/|(^|/)python\d[\d.]*/|^<|^(contextlib|threading|runpy)\.py$"
)
_WIDTH: Final = 4
MAX_FRAMES: Final = 1_000_000
"""Of all call paths together, each of their beginnings once."""


class PathRows:
    """Call paths as they are read: frames below those that called them, each once."""

    def __init__(self) -> None:
        self._frames: dict[PathFrame, int] = {}

    def of(self, above: int, place: HostPlace, *, is_python: bool = False) -> int:
        """The number of a frame below another one (-1: of the outermost).

        Raises:
            ValueError: there are more than are read.
        """
        frame = PathFrame(above=above, place=place, is_python=is_python)
        number = self._frames.setdefault(frame, len(self._frames))
        if number >= MAX_FRAMES:
            raise ValueError(f"it has more than {MAX_FRAMES:,} call paths; trace a part of the run")
        return number

    def paths(self, of_call: Sequence[int]) -> CallPaths:
        """All of them, and the innermost frame of each call."""
        return CallPaths(frames=tuple(self._frames), of_call=of_call)


class FrameRows:
    """Frames as they are read: start, end, thread and place; without whole paths not those of libraries."""

    def __init__(self, *, paths: bool) -> None:
        self._rows = TraceRows(_WIDTH)
        self._places = Numbers[HostPlace]()
        self._paths = paths

    def add(self, start: int, end: int, thread: int, name: str) -> None:
        """One more, named ``file.py(12): function``; its line is the function's first."""
        match = _FRAME.fullmatch(name)
        if match is None or (not self._paths and is_library_of_python(match["file"])):
            return
        place = HostPlace(
            function=match["function"], file=match["file"], line=int(match["line"]), is_definition=True
        )
        self._rows.add(start, end, thread, self._places.of(place))

    def placed(self, timeline: Timeline) -> Timeline:
        """The timeline with the innermost frame of the application around each call, or with all of them."""
        rows, calls = self._rows.columns(), timeline.calls
        if not len(rows):
            return timeline
        trie, places = PathRows(), list(self._places.found)

        def enter(above: int, place: int) -> int:
            return trie.of(above, places[place], is_python=True) if self._paths else place

        innermost = np.full(len(calls.start_ns), -1, np.int64)
        for thread in np.unique(rows[:, 2]).tolist():
            of_thread = np.flatnonzero(calls.thread == thread)
            if len(of_thread):
                edges, frames = _innermost(rows[rows[:, 2] == thread], enter)
                index = np.searchsorted(edges, calls.start_ns[of_thread], side="right") - 1
                innermost[of_thread] = np.where(index < 0, -1, frames[np.maximum(index, 0)])
        if self._paths:
            return replace(timeline, paths=trie.paths(innermost.tolist()))
        return replace(timeline, calls=replace(calls, place=innermost), places=tuple(places))


def is_library_of_python(file: str) -> bool:
    """Whether a file of Python is of an installed package or of Python itself."""
    return _NOT_OURS.search(file) is not None


def _innermost(
    rows: NDArray[np.int64], enter: Callable[[int, int], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When a thread enters or leaves a frame, and the innermost one from then on (-1: in none).

    A frame is what ``enter`` makes of the one around it and of its place.
    """
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0]))]
    edges: list[int] = []
    frames: list[int] = []
    around: list[tuple[int, int]] = []  # end and frame, the innermost last

    def close(until: int) -> None:
        while around and around[-1][0] <= until:
            edges.append(around.pop()[0])
            frames.append(around[-1][1] if around else -1)

    for start, end, _, place in rows.tolist():
        close(start)
        frame = enter(around[-1][1] if around else -1, place)
        edges.append(start)
        frames.append(frame)
        # A frame that ends after the one around it is cut where that ends.
        around.append((min(end, around[-1][0]) if around else end, frame))
    close(np.iinfo(np.int64).max)
    return np.array(edges, np.int64), np.array(frames, np.int64)
