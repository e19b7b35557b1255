# SPDX-License-Identifier: Apache-2.0
"""A run on the clock: what the streams of its devices did, and what its threads asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from gpadvisor.model.estimate import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Operation(IntEnum):
    """What a device does."""

    KERNEL = 0
    SET = 1
    TO_DEVICE = 2
    TO_HOST = 3
    OTHER_COPY = 4  # within a device, between two, or of unknown direction
    MIGRATION = 5  # of managed memory to the host, which touched it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceWork:
    """Kernels, copies and memsets as equal-length columns, in any order."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    device: NDArray[np.int64]
    correlation: NDArray[np.int64]  # of the call that launched it
    kernel: NDArray[np.int64]  # index into Timeline.kernels; -1 of a copy or a memset
    stream: NDArray[np.int64]  # -1 where it is not known
    operation: NDArray[np.int64]  # an Operation
    pageable: NDArray[
        np.int64
    ]  # 1 of a copy from or to pageable memory of the host, 0 of others, -1: not known
    shape: NDArray[np.int64]  # (n, 6): grid and block; -1 where they are not known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostCalls:
    """Calls of the CUDA API as equal-length columns, in any order."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    thread: NDArray[np.int64]
    correlation: NDArray[np.int64]
    name: NDArray[np.int64]  # index into Timeline.names
    place: NDArray[np.int64]  # index into Timeline.places; -1 where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlace:
    """Where the application is when it calls CUDA: the innermost frame of its own in the call path."""

    function: str
    file: str = ""
    line: int = 0  # 0 where the trace has no lines
    is_definition: bool = False  # whether the line is the function's first, not the call's
    module: str = ""  # the binary, where the trace has no lines
    address: int = 0  # in it; 0 where it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelName:
    """Of a kernel as a tracer has it; both are the same where it has but one."""

    mangled: str
    demangled: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFrame:
    """A frame of call paths below the one that called it."""

    above: int  # an index before its own; -1 of the outermost
    place: HostPlace
    is_python: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPaths:
    """How the application came to its calls of CUDA."""

    frames: tuple[PathFrame, ...]
    of_call: Sequence[int]  # by call an index into frames: the innermost; -1 where it is not known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """What a tracer recorded of a run."""

    work: DeviceWork
    calls: HostCalls
    names: tuple[str, ...]
    kernels: tuple[KernelName, ...] = ()
    launched_by: Mapping[int, int] = field(default_factory=dict)  # by correlation an index into names
    launched_at: Mapping[int, int] = field(default_factory=dict)  # by correlation an index into places
    places: tuple[HostPlace, ...] = ()
    paths: CallPaths | None = None  # where they were asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """What launches of one kernel take of a run, 0 <= ``alone_ns`` <= ``shared_ns`` <= ``union_ns``."""

    name: KernelName
    shape: tuple[int, ...] | None  # grid and block of these launches; None for all of the kernel
    launches: int
    alone_ns: int  # while nothing else works, on any stream of any device
    shared_ns: float  # the time in which several things work belongs to each in equal parts
    union_ns: int  # while at least one of them runs


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRelated:
    """Another place of host code that a finding has to do with."""

    place: HostPlace
    message: str  # "19 of the gaps behind, 0.114 ms, end with what is launched here"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinding:
    """What host code does that leaves a GPU idle, and what another way is worth for the whole run."""

    code: str  # "GPA501"
    slug: str
    name: str
    title: str  # what was seen, with its counts
    advice: str  # what to change
    place: HostPlace | None  # None where the trace has no call paths
    calls: int
    speedup: Estimate  # of the run
    related: tuple[RunRelated, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """What the kernels of a run take of it; ``shared_ns`` of all work adds up to ``busy_ns``."""

    span_ns: int  # from the first operation to the end of the last, over all devices
    busy_ns: int  # while any device works
    kernels: tuple[KernelTime, ...]  # of each kernel as a whole, and of each of its shapes
    findings: tuple[RunFinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """A kernel's part of a traced run."""

    trace: str  # name of the file
    span_ns: int
    busy_ns: int
    time: KernelTime

    @property
    def of_busy(self) -> float:
        """Its share of the time in which a GPU works."""
        return self.time.shared_ns / self.busy_ns if self.busy_ns else 0.0

    @property
    def busy(self) -> float:
        """The share of the run in which a GPU works."""
        return self.busy_ns / self.span_ns if self.span_ns else 0.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StripLane:
    """What one stream or thread did, or when a device was idle, for a picture."""

    kind: str  # "idle", "stream" or "thread"
    label: str
    events: int
    data: str  # base64 of LEB128: for each event start since the one before, length, number of its name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStrip:
    """A run along the clock, from its first event on."""

    span_ns: int
    names: tuple[tuple[str, str], ...]  # of events: text, and what it is (kernel, copy, wait, ...)
    lanes: tuple[StripLane, ...]
    left_out: int  # lanes beyond what is shown
    merged_ns: int  # events of a lane with no more than this between them are one; 0: none are
    devices: tuple[DeviceIdleness, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdleness:
    """What the devices of a run wait for, and what of that other host code would save."""

    devices: tuple[DeviceIdleness, ...]
    findings: tuple[RunFinding, ...]
