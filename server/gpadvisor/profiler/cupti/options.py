# SPDX-License-Identifier: Apache-2.0
"""What is asked of a collection with CUPTI, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from gpadvisor.errors import UsageError
from gpadvisor.sandbox.application import Ending

MIN_PERIOD: Final = 5
MAX_PERIOD: Final = 31


class SamplingMode(Enum):
    """How CUPTI's PC Sampling API samples."""

    CONTINUOUS = "continuous"  # kernels run as they would; samples belong to a kernel
    SERIALIZED = "serialized"  # one kernel at a time; samples belong to a launch
    TIMELINE = "timeline"  # no samples: kernels, copies and calls on the clock


class KernelTimes(Enum):
    """Where start, end and resources of each kernel come from."""

    SERIAL = "serial"  # activity KERNEL: kernels run one at a time
    CONCURRENT = "concurrent"  # CONCURRENT_KERNEL, where the release gives it beside samples
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """How to collect; every default is CUPTI's own or the least intrusive one."""

    mode: SamplingMode = SamplingMode.CONTINUOUS
    period: int | None = None  # one sample per SM sub-partition every 2**period cycles; None: CUPTI chooses
    hardware_buffer_bytes: int | None = None  # per context, on the device; None: CUPTI's 512 MB
    call_stacks: bool = True  # host frames of each launch
    times: KernelTimes = KernelTimes.SERIAL
    timeout_seconds: float | None = None  # of the application; None: it may run as long as it likes
    grace_seconds: float = 10.0  # from SIGINT to SIGTERM, and half of it from there to SIGKILL
    directory: Path | None = None  # where the application runs
    environment: Mapping[str, str] = field(default_factory=dict)  # added to the caller's own
    cupti_library: Path | None = None  # libcupti to load; None: the one of the headers that were found

    def __post_init__(self) -> None:
        if self.period is not None and not MIN_PERIOD <= self.period <= MAX_PERIOD:
            raise UsageError(
                f"the sampling period {self.period} is outside {MIN_PERIOD} to {MAX_PERIOD};"
                " it is an exponent: one sample every 2**period cycles"
            )
        if self.timeout_seconds is not None and not self.timeout_seconds > 0:
            raise UsageError(f"the time limit {self.timeout_seconds} s is not positive; give more than zero")
        if self.hardware_buffer_bytes is not None and self.hardware_buffer_bytes < 1 << 20:
            raise UsageError(
                f"a hardware buffer of {self.hardware_buffer_bytes} bytes is too small; give at least 1 MiB"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """What has been collected so far; reported about twice a second while the application runs."""

    seconds: float  # since the application was started
    processes: int  # that loaded CUDA, and so wrote a file
    launches: int
    samples: int  # as CUPTI counts them, dropped ones included
    file_bytes: int
    stopping: bool  # the application was asked to end and has not ended yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A finished collection: a directory that ``store.load_profile`` reads."""

    path: Path
    status: int  # of the application; negative: ended by that signal
    ending: Ending
    seconds: float
    launches: int
    samples: int
    notes: tuple[str, ...]  # what stood in the way, a sentence each, without repetition
    kernels: frozenset[str]  # mangled names of what was launched
