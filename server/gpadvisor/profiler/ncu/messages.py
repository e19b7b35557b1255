# SPDX-License-Identifier: Apache-2.0
"""What Nsight Compute says while it works, read line by line: progress, and why it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_PROFILING: Final = re.compile(r'^==PROF== Profiling "(?P<kernel>.*?)"(?: - (?P<index>\d+))?\b.*?:')
_PASSES: Final = re.compile(r"(?P<passes>\d+) pass(?:es)?\s*$")
_REPORT: Final = re.compile(r"^==PROF== Report: (?P<path>.+?)\s*$")
_ERROR: Final = re.compile(r"^==ERROR== (?P<text>.+?)\s*$")
_WARNING: Final = re.compile(r"^==WARNING== (?P<text>.+?)\s*$")
_MAX_KEPT: Final = 50


@dataclass(slots=True)
class Log:
    """What was said so far."""

    kernel: str | None = None  # profiled last
    launches: int = 0
    passes: int | None = None  # of the last finished launch
    report: str | None = None
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def take(self, lines: Iterable[str]) -> None:
        """Note complete lines; those of the application, which may stand between, say nothing here."""
        for line in lines:
            if match := _PROFILING.match(line):
                self.kernel, self.launches = match["kernel"], self.launches + 1
                if passes := _PASSES.search(line):
                    self.passes = int(passes["passes"])
            elif match := _REPORT.match(line):
                self.report = match["path"]
            elif (match := _ERROR.match(line)) and len(self.errors) < _MAX_KEPT:
                self.errors.append(match["text"])
            elif (match := _WARNING.match(line)) and len(self.warnings) < _MAX_KEPT:
                self.warnings.append(match["text"])


def kernel_of(line: str) -> str | None:
    """The kernel that a line, which may still be being written, says is profiled."""
    match = _PROFILING.match(line)
    return None if match is None else match["kernel"]


@dataclass(frozen=True, slots=True)
class NcuRefusal:
    """A known reason for which ncu collects nothing."""

    name: str
    sentence: str  # what stands in the way and the next step
    permission: bool = False  # executed counts may still be had


_KNOWN: Final = (
    (
        re.compile(r"ERR_NVGPUCTRPERM|does not have permission to (?:access|profile)", re.IGNORECASE),
        NcuRefusal(
            "permission",
            "the driver refuses performance counters to this user (ERR_NVGPUCTRPERM); gpadvisor doctor says "
            "who can change it",
            permission=True,
        ),
    ),
    (
        re.compile(
            r"driver resource was unavailable|in use by another|already.*(?:profil|attached)", re.IGNORECASE
        ),
        NcuRefusal(
            "busy",
            "something else holds the GPU's counters, such as DCGM or another profiler; end it, or run "
            "dcgmi profile --pause, and try again",
        ),
    ),
    (
        re.compile(
            r"not supported on (?:this )?(?:device|GPU)|unsupported (?:GPU|device|chip)", re.IGNORECASE
        ),
        NcuRefusal(
            "unsupported", "this ncu does not support the GPU; use one of its time, see gpadvisor doctor"
        ),
    ),
    (
        re.compile(r"Cannot lock GPU clock", re.IGNORECASE),
        NcuRefusal(
            "clocks",
            "the clocks of this GPU cannot be locked from here, as on a MIG instance; lock them with "
            "nvidia-smi --lock-gpu-clocks=tdp,tdp, or let them float with --clock-control none",
        ),
    ),
    (
        re.compile(r"\bMPS\b|Multi-Process Service", re.IGNORECASE),
        NcuRefusal("MPS", "clients of the Multi-Process Service cannot be profiled; stop it for the run"),
    ),
    (
        re.compile(
            r"Cuda driver is not compatible|driver is not compatible|cuda driver version", re.IGNORECASE
        ),
        NcuRefusal("driver", "the driver is too old for this ncu; use the ncu of your CUDA release"),
    ),
    (
        re.compile(
            r"no space left|disk full|failed to (?:write|save|create) .*(?:report|file)", re.IGNORECASE
        ),
        NcuRefusal("disk", "the report could not be written; make room or give another -o"),
    ),
    (
        re.compile(r"Out of memory|failed to allocate|not enough memory", re.IGNORECASE),
        NcuRefusal(
            "memory",
            "there was not enough memory to save and restore the kernel's data between passes; use "
            "--samples-only, which needs one pass",
        ),
    ),
    (
        re.compile(r"No kernels were profiled", re.IGNORECASE),
        NcuRefusal(
            "no kernels",
            "no kernel launch was profiled: the application launches none, or none that --kernel, "
            "--launch-skip and --launch-count let through",
        ),
    ),
)


def refusal(log: Log) -> NcuRefusal | None:
    """The known reason among what was said, the most telling first; None where nothing is known."""
    messages = [*log.errors, *log.warnings]
    for pattern, ncu_refusal in _KNOWN:
        if any(pattern.search(text) for text in messages):
            return ncu_refusal
    return None
