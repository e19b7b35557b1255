# SPDX-License-Identifier: Apache-2.0
"""A profile, whatever tool took it: launches, PC samples, executed counts, metrics, binaries, sources."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from gpadvisor.model.estimate import Evidence as Evidence  # noqa: PLC0414 of this module, too
from gpadvisor.model.machine import WARP
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.stalls import StallReason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MetricValue: TypeAlias = float | int | str

EXTERNAL: Final = 0xFFFF
"""Section index of samples in code that is not in the cubin, such as the driver's printf."""

LAUNCHES: Final = "gpadvisor__launches"
CONFIGURATIONS: Final = "gpadvisor__configurations_max"
CONFIGURATION_SHARE: Final = "gpadvisor__configuration_share_ratio"
"""Metrics of an entry that stands for all launches of a kernel: how many there are, how many configurations
they have, and the share of their time (else of their number) that has the configuration of ``launch``. Their
last words say how they are merged: the first adds up, the others do not."""
SLOWEST: Final = "gpadvisor__slowest"
SLOWEST_SHARE: Final = "gpadvisor__slowest_share_ratio"
"""Metrics of a sum over ranks: the name of the rank with the most kernel time, the kernel's share of it."""
_NO_COUNT: Final = frozenset({"type", "avg", "ratio", "pct", "per", "max", "min", "rate"})


_LANES: Final = "smsp__thread_inst_executed_per_inst_executed.ratio"
_RENAMED: Final = re.compile(r"^(dram__(?:bytes|sectors)_)(?=read|write)")
"""Nsight Compute 2026 writes ``dram__sectors_op_read`` for ``dram__sectors_read``, and so on."""


def _freeze(**columns: NDArray[np.generic]) -> None:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name}={len(column)}" for name, column in columns.items())
        raise ValueError(f"columns differ in length: {sizes}")
    for column in columns.values():
        column.setflags(write=False)


LITTLE_OF_RUN: Final = 0.1
"""Samples of a tenth of a run or less say next to nothing of the rest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PcSamples:
    """PC samples of one launch as equal-length read-only columns; only non-zero rows."""

    section: NDArray[np.uint16]  # index into KernelProfile.sections, or EXTERNAL
    pc: NDArray[np.uint64]  # byte offset in that section; the absolute address where EXTERNAL
    reason: NDArray[np.uint8]  # index into KernelProfile.reasons
    total: NDArray[np.uint64]  # samples, issued ones included
    latency: NDArray[np.uint64]  # those taken while the scheduler issued nothing (GPA's latency samples)

    def __post_init__(self) -> None:
        _freeze(section=self.section, pc=self.pc, reason=self.reason, total=self.total, latency=self.latency)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PcCounts:
    """Executed counts of one launch as equal-length read-only columns."""

    section: NDArray[np.uint16]
    pc: NDArray[np.uint64]
    warps: NDArray[np.uint64]  # warp-level executions (inst_executed)
    threads: NDArray[np.uint64]  # thread-level executions; equal to 0 where not collected

    def __post_init__(self) -> None:
        _freeze(section=self.section, pc=self.pc, warps=self.warps, threads=self.threads)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PcMetric:
    """One per-instruction metric of a report, such as sectors, under its own name."""

    name: str
    section: NDArray[np.uint16]
    pc: NDArray[np.uint64]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        _freeze(section=self.section, pc=self.pc, value=self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The GPU of a launch; None where the profile does not say."""

    name: str | None
    arch: str  # "sm_86"
    sms: int | None
    clock_hz: float | None  # during the run where known, else the attribute
    max_warps_per_sm: int | None
    schedulers_per_sm: int | None
    registers_per_sm: int | None
    shared_bytes_per_sm: int | None
    l2_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel launch."""

    index: int  # position in the profile, from 0
    kernel: str  # mangled
    demangled: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    registers_per_thread: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int | None
    driver_shared_bytes: int | None
    carveout_shared_bytes: int | None  # shared memory configured on the SM
    duration_ns: float | None
    context: int | None
    stream: int | None
    failed: bool  # no launch metrics or NaN duration

    @property
    def blocks(self) -> int:
        """Number of thread blocks."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads_per_block(self) -> int:
        """Threads per block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the samples of a launch were taken, and what of them is missing."""

    interval_cycles: int | None
    buffer_bytes: int | None
    dropped_samples: int | None
    truncated: bool  # the buffer was full: samples cover only the first part of the run
    truncation_evidence: str | None  # how that was noticed, in words with numbers
    expected_samples: float | None  # sms * active cycles / interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """One result of NVIDIA's own rules as the report carries it."""

    identifier: str  # "HighPipeUtilization"
    name: str
    section: str | None
    kind: str  # "ok", "warning", "optimization", "error", as far as the report says
    message: str
    estimated_speedup: float | None  # as a factor (1.25), where the rule gives one
    title: str | None = None  # of the message; rules give several
    speedup_scope: str | None = None  # "global": of the launch; "local": of the unit the rule looks at


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFrame:
    """One frame of the host call stack of a launch."""

    module: str | None
    address: int | None
    function: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestRank:
    """Of the ranks that were added up, the one with the most kernel time."""

    name: str  # "rank 18", "node n3"
    time_share: float  # the kernel's, of that rank's kernel time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelProfile:
    """One launch with everything measured about it."""

    launch: Launch
    device: Device
    evidence: Evidence  # MEASURED, COUNTED, MODELLED, or STATIC when it has neither samples nor counts
    binary: str | None  # sha256 of its cubin, a key of Profile.binaries
    sections: tuple[str, ...]  # names of .text sections without the prefix; samples index into it
    reasons: tuple[StallReason, ...]  # every reason the profile has, samples index into it
    samples: PcSamples
    counts: PcCounts | None
    pc_metrics: Mapping[str, PcMetric]
    metrics: Mapping[str, MetricValue]  # scalars under the tool's names
    sampling: Sampling
    rules: tuple[RuleResult, ...]
    call_stack: tuple[CallFrame, ...]
    problems: tuple[Problem, ...]

    @property
    def sms(self) -> int:
        """SMs of the device; one where nobody says how many."""
        return self.device.sms or 1

    @property
    def total_samples(self) -> int:
        """T of the paper: every sample, issued and external ones too."""
        return int(self.samples.total.sum())

    @property
    def latency_samples(self) -> int:
        """L of the paper."""
        return int(self.samples.latency.sum())

    @property
    def picked(self) -> bool:
        """Whether its launch was asked for; where it was not, it has its time and nothing else."""
        return all(problem.code is not ProblemCode.NOT_PICKED for problem in self.problems)

    @property
    def slowest(self) -> SlowestRank | None:
        """Of a sum over ranks; None where there is none, or a time is missing."""
        name, share = self.metrics.get(SLOWEST), self.metric(SLOWEST_SHARE)
        if not isinstance(name, str) or not name.isprintable() or share is None or not 0 <= share <= 1:
            return None
        return SlowestRank(name=name[:80], time_share=share)

    @property
    def states_launch(self) -> bool:
        """Whether the launch is as large as stated: one thread stands for a size that the report lacks."""
        several = (self.metric(_LANES) or 0.0) > 1
        return self.launch.blocks * self.launch.threads_per_block > 1 or not several

    @property
    def has_blocks_of_one_warp(self) -> bool:
        """Whether no block has a second warp."""
        return self.launch.threads_per_block <= WARP and self.states_launch

    def metric(self, name: str) -> float | None:
        """A scalar metric as a float, by the name it had before 2026; None where absent or not a number."""
        value = self.metrics.get(name)
        if value is None and name.startswith("dram__"):
            value = self.metrics.get(_RENAMED.sub(r"\1op_", name))
        return None if value is None or isinstance(value, str) or math.isnan(value) else float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A source file: its path as the line table or report names it, and its text where embedded."""

    path: str
    sha256: str | None
    text: str | None


def source_text(path: str, text: str) -> SourceText:
    """A source whose text is known."""
    return SourceText(path=path, sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredLines:
    """Where the lines of a kernel are whose own code has none: in a cubin compiled from its source."""

    binary: str  # sha256 of the kernel's cubin
    kernel: str  # mangled
    source: str  # name of what was compiled
    compiler: str  # how, in words
    compiled: str  # sha256 of the cubin with lines, a key of Profile.binaries


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPath:
    """A call stack of the host to launches of a kernel whose samples are of all its launches."""

    kernel: str  # mangled
    binary: str | None  # as of the kernel
    launches: int
    duration_ns: float | None  # of these; None where not all were timed
    frames: tuple[CallFrame, ...]  # innermost first; none where it is not known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Profile:
    """Everything one file or one run holds."""

    sha256: str  # of the file it was read from
    collector: str  # "ncu", "cupti", "simulator", ...
    collector_version: str | None
    command: str | None
    host: str | None
    created: str | None  # ISO 8601
    kernels: tuple[KernelProfile, ...]  # in launch order
    binaries: Mapping[str, bytes] = field(default_factory=dict)  # sha256 -> cubin as stored
    disassemblies: Mapping[str, bytes] = field(default_factory=dict)  # sha256 -> listing, JSON
    sources: Mapping[str, SourceText] = field(default_factory=dict)  # by path
    problems: tuple[Problem, ...] = ()
    lines: tuple[RecoveredLines, ...] = ()  # that an import found
    launch_paths: tuple[LaunchPath, ...] = ()  # all of a kernel with more than one
    rank: int | None = None  # of the process among those of its job


def adds_up(name: str) -> bool:
    """Whether a metric is a count; types, averages, ratios and shares are not."""
    return _NO_COUNT.isdisjoint(name.replace(".", "_").split("_"))


def first_share(total: int, expected: float | None, *, truncated: bool) -> float | None:
    """Of a run, what its samples cover, where the buffer was full and the whole run's number is known."""
    return total / expected if truncated and expected and total < expected else None
