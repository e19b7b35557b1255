# SPDX-License-Identifier: Apache-2.0
"""A run on the clock: what the streams of its devices did, and what its threads asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceWork:
    """Kernels, copies and memsets as equal-length columns, in any order."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    device: NDArray[np.int64]
    correlation: NDArray[np.int64]  # of the call that launched it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCalls:
    """Calls of the CUDA API as equal-length columns, in any order."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    correlation: NDArray[np.int64]
    name: NDArray[np.int64]  # index into Timeline.names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """What a tracer recorded of a run."""

    work: DeviceWork
    calls: HostCalls
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleShare:
    """Idle time of a device due to one thing."""

    name: str
    idle_ns: float
    gaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdleness:
    """The time in which no stream of a device worked; ``by_call`` and ``by_end`` each add up to it."""

    device: int
    span_ns: int  # from the first operation to the end of the last
    busy_ns: int
    gaps: int
    by_call: tuple[IdleShare, ...]  # what the threads did meanwhile, the most first
    by_end: tuple[IdleShare, ...]  # the call that launched what ended the gap

    @property
    def idle_ns(self) -> int:
        """What is left of the span."""
        return self.span_ns - self.busy_ns
