# SPDX-License-Identifier: Apache-2.0
"""Wall time and peak memory of a command, its own children included."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one command."""

    seconds: float
    cpu_seconds: float  # of all its processes; what a busy machine changes least
    peak_mib: float  # of the largest of its processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is run; the output goes nowhere."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def run(command: Command) -> Run:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; a time of something that failed would say nothing.
    """
    environment = {**os.environ, **command.environment}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody's command compiles all its imports each time
    started = time.perf_counter()
    with subprocess.Popen(
        command.arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command.arguments)} ended with {process.returncode}")
    cpu = usage.ru_utime + usage.ru_stime
    return Run(seconds=seconds, cpu_seconds=cpu, peak_mib=usage.ru_maxrss / 1024)


def interleaved(commands: Sequence[Command], rounds: int) -> dict[str, list[Run]]:
    """Run all commands in turn, round after round, so that a busy moment hits them alike."""
    runs: dict[str, list[Run]] = {command.name: [] for command in commands}
    for _ in range(rounds):
        for command in commands:
            runs[command.name].append(run(command))
    return runs


def median_seconds(runs: Sequence[Run]) -> float:
    """The median wall time."""
    return statistics.median(entry.seconds for entry in runs)


def median_ratio(runs: Sequence[Run], base: Sequence[Run]) -> float:
    """The median of the ratios of runs of the same round."""
    return statistics.median(a.seconds / b.seconds for a, b in zip(runs, base, strict=True))


def peak_mib(runs: Sequence[Run]) -> float:
    """The highest peak."""
    return max(entry.peak_mib for entry in runs)


def median_cpu_ratio(runs: Sequence[Run], base: Sequence[Run]) -> float:
    """The same of processor time."""
    return statistics.median(a.cpu_seconds / b.cpu_seconds for a, b in zip(runs, base, strict=True))
