# SPDX-License-Identifier: Apache-2.0
"""What is asked of a collection with Nsight Compute."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpadvisor.errors import UsageError

MIN_INTERVAL = 0
MAX_INTERVAL = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuOptions:
    """How to collect."""

    kernel: str | None = None  # regular expression on the function's name
    launch_skip: int = 0
    launch_count: int | None = None
    interval: int | None = None  # one sample per SM every 2**(5 + interval) cycles; None: ncu chooses
    samples_only: bool = False  # one pass: samples without executed counts and utilisations
    counts_only: bool = False  # executed counts per instruction, which need no counter permission
    source_folders: tuple[Path, ...] = ()
    child_processes: bool = True

    def __post_init__(self) -> None:
        if self.interval is not None and not MIN_INTERVAL <= self.interval <= MAX_INTERVAL:
            raise UsageError(
                f"the sampling interval {self.interval} is outside {MIN_INTERVAL} to {MAX_INTERVAL}; "
                "it is an exponent: one sample every 2**(5 + interval) cycles"
            )
        if self.launch_skip < 0 or (self.launch_count is not None and self.launch_count < 1):
            raise UsageError("launches are skipped and counted in whole numbers; at least one is profiled")
        if self.samples_only and self.counts_only:
            raise UsageError("samples alone and counts alone exclude each other")
