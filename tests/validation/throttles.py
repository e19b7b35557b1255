# SPDX-License-Identifier: Apache-2.0
"""Throttle blame beside what real reports counted for each instruction, and how much stays unattributed.

Run as ``python -m tests.validation.throttles [REPORT ...]``; without names on all of ``GPADVISOR_REPORTS``.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.unit.blamer.test_reports import kernels

from gpadvisor import machine
from gpadvisor.blamer import blame
from gpadvisor.errors import GpadvisorError
from gpadvisor.evidence.measured import metric
from gpadvisor.evidence.queries import causes
from gpadvisor.model.blame import NO_INDEX, Blame, Role
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import Program

COUNTED = {
    "lg_throttle": ("memory_l1_tag_requests_global", "memory_l2_theoretical_sectors_global"),
    "mio_throttle": ("memory_l1_wavefronts_shared",),
}
"""By stall reason, what passes through its queue, each by itself."""
NOTABLE = 0.02
FEW = 100
LOST = 0.01

Shares = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One throttle of one kernel."""

    kernel: str
    reason: str
    metric: str
    share: float  # of the kernel's samples
    blamed: float  # overlap of the blamed instructions with the traffic
    waiting: float  # of the waiting instructions with it


def overlap(one: Shares, other: Shares) -> float:
    """Of two distributions: 1 where they are the same."""
    whole, others = sum(one.values()), sum(other.values())
    return sum(min(value / whole, other.get(place, 0.0) / others) for place, value in one.items())


def throttles(name: str, program: Program, profile: KernelProfile, found: Blame) -> Iterator[Row]:
    """The throttles of a kernel with a notable share of its samples and counted traffic."""
    rows, at = found.rows, causes(found)
    for number, reason in enumerate(found.reasons):
        mine = np.flatnonzero((rows.reason == number) & (rows.use_index != NO_INDEX))
        share = int(rows.samples[mine].sum()) / max(1, found.total_samples)
        if share < NOTABLE:
            continue
        for counter in COUNTED.get(reason.name, ()):
            traffic = {
                (function.id, int(index)): float(column[index])
                for function in program.functions
                if (column := metric(profile, counter, function)) is not None
                for index in np.flatnonzero(column)
            }
            if traffic:
                yield Row(
                    kernel=name, reason=reason.name, metric=counter, share=share,
                    blamed=overlap(traffic, _shares(found, mine, at)),
                    waiting=overlap(traffic, _shares(found, mine, rows.use_index)),
                )  # fmt: skip


def _shares(found: Blame, rows: np.ndarray, column: np.ndarray) -> Shares:
    shares: dict[tuple[int, int], float] = defaultdict(float)
    for row in rows.tolist():
        shares[int(found.rows.function[row]), int(column[row])] += int(found.rows.samples[row])
    return shares


def look_at(reports: Sequence[Path]) -> tuple[list[Row], list[str]]:
    """The throttles of all kernels, and what there is to say of kernels that are not blamed whole."""
    found: list[Row] = []
    said: list[str] = []
    looked_at = lost = 0
    for report in reports:
        try:
            for kernel, program in kernels(report):
                result = blame(program, kernel, machine.load(program.arch.rstrip("af")))
                if result.total_samples < FEW:
                    continue
                nowhere = result.rows.samples[result.rows.role == Role.UNATTRIBUTED.value].sum()
                name = f"{report.name} {kernel.launch.demangled[:40]}"
                part = int(nowhere) / result.total_samples
                looked_at += 1
                if part > LOST:
                    lost += 1
                    said.append(f"unattributed {part:6.1%}  {name}")
                found.extend(throttles(name, program, kernel, result))
        except GpadvisorError as error:
            said.append(f"{report.name}: {error}")
    said.append(f"{lost} of {looked_at} kernels have more than {LOST:.0%} unattributed")
    return found, said


def text(found: Sequence[Row]) -> Iterator[str]:
    """A line for each throttle, and the medians."""
    for row in found:
        yield (
            f"{row.reason:13} {row.share:6.1%} of samples, {row.metric:36} "
            f"overlap of blamed {row.blamed:4.2f}, of waiting {row.waiting:4.2f}  {row.kernel}"
        )
    for counter in dict.fromkeys(row.metric for row in found):
        rows = [row for row in found if row.metric == counter]
        blamed, waiting = (
            statistics.median(getattr(row, part) for row in rows) for part in ("blamed", "waiting")
        )
        yield f"{counter}: median {blamed:.2f} blamed, {waiting:.2f} waiting ({len(rows)} kernels)"


def main() -> None:
    """Print all of it."""
    folder = os.environ.get("GPADVISOR_REPORTS")
    named = [Path(name) for name in sys.argv[1:]]
    found, said = look_at(named or (sorted(Path(folder).glob("*.ncu-rep*")) if folder else []))
    sys.stdout.write("\n".join([*text(found), *said, ""]))


if __name__ == "__main__":
    main()
