# SPDX-License-Identifier: Apache-2.0
"""What readers of timelines fill: columns of whole numbers, and names by number."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.timeline import DeviceWork, HostCalls, HostPlace, KernelName, Timeline

NameT = TypeVar("NameT")
MAX_ROWS: Final = 20_000_000
NO_SHAPE: Final = (None,) * 6  # of a grid and a block
_MOST: Final = 1 << 62
_WORK: Final = 14
_CALLS: Final = 6


class Numbers(Generic[NameT]):
    """Values by the number that the first of each got."""

    def __init__(self) -> None:
        self.found: dict[NameT, int] = {}

    def of(self, value: NameT) -> int:
        """The number of a value."""
        return self.found.setdefault(value, len(self.found))


class TraceRows:
    """TraceRows of as many whole numbers each."""

    def __init__(self, width: int) -> None:
        self._flat = array("q")
        self._width = width

    def add(self, *values: Any) -> None:
        """One more row; what is absent (None) is -1.

        Raises:
            ValueError: something else than whole numbers, or more rows than are read.
        """
        if len(self._flat) >= MAX_ROWS * self._width:
            raise ValueError(f"it has more than {MAX_ROWS:,} rows; trace a part of the run")
        numbers = [-1 if value is None else value for value in values]
        if not all(type(value) is int and -_MOST < value < _MOST for value in numbers):
            raise ValueError(f"a row has {values!r} where whole numbers are")
        self._flat.extend(numbers)

    def take(self, columns: NDArray[np.int64]) -> None:
        """Rows of numbers that lie in memory already.

        Raises:
            ValueError: they are of another width, too many, or too large.
        """
        if columns.ndim != 2 or columns.shape[1] != self._width or len(columns) > MAX_ROWS:
            raise ValueError(f"rows of the form {columns.shape}")
        if len(columns) and not -_MOST < int(columns.min()) <= int(columns.max()) < _MOST:
            raise ValueError("numbers that no run has")
        self._flat.frombytes(np.ascontiguousarray(columns, np.int64).tobytes())

    def columns(self) -> NDArray[np.int64]:
        """All of them, by row and column."""
        return np.frombuffer(self._flat, np.int64).reshape(-1, self._width)


def work_rows() -> TraceRows:
    """Start, end, device, correlation, kernel (-1: none), stream, operation, pageable, grid and block."""
    return TraceRows(_WORK)


def call_rows() -> TraceRows:
    """Start, end, thread, correlation, name and place."""
    return TraceRows(_CALLS)


def timeline(
    work: TraceRows,
    calls: TraceRows,
    kernels: Sequence[KernelName],
    names: Sequence[str],
    *,
    places: Sequence[HostPlace] = (),
    launched_by: Mapping[int, int] = MappingProxyType({}),
    launched_at: Mapping[int, int] = MappingProxyType({}),
) -> Timeline:
    """The rows as a timeline.

    Args:
        work: of devices.
        calls: of threads.
        kernels: by the number that work has.
        names: of calls, by the number that these have.
        places: of the application, by the number that calls have.
        launched_by: names of what launched work, by its correlation, where that is no call among these.
        launched_at: its places.

    Raises:
        ValueError: there is no work of a GPU, or a clock ran back.
    """
    of_device, of_host = work.columns(), calls.columns()
    if not len(of_device):
        raise ValueError("it has no kernel, copy or memset; trace CUDA as well")
    for rows in (of_device, of_host):
        if len(rows) and (bool((rows[:, 1] < rows[:, 0]).any()) or int(rows[:, 0].min()) < 0):
            raise ValueError("something in it ends before it begins")
    start, end, device, correlation, kernel, stream, operation, pageable = of_device[:, :8].T
    return Timeline(
        work=DeviceWork(
            start_ns=start,
            end_ns=end,
            device=device,
            correlation=correlation,
            kernel=kernel,
            stream=stream,
            operation=operation,
            pageable=pageable,
            shape=of_device[:, 8:],
        ),
        calls=HostCalls(
            start_ns=of_host[:, 0],
            end_ns=of_host[:, 1],
            thread=of_host[:, 2],
            correlation=of_host[:, 3],
            name=of_host[:, 4],
            place=of_host[:, 5],
        ),
        names=tuple(names),
        kernels=tuple(kernels),
        launched_by=dict(launched_by),
        launched_at=dict(launched_at),
        places=tuple(places),
    )
