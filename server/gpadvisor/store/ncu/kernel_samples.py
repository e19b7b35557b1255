# SPDX-License-Identifier: Apache-2.0
"""PC samples and counts of one kernel of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    EXTERNAL,
    PcCounts,
    PcSamples,
)
from gpadvisor.store.ncu import sampling
from gpadvisor.store.ncu.metrics import Metric
from gpadvisor.store.ncu.placement import Placement

WARPS: Final = "inst_executed"
THREADS: Final = "thread_inst_executed"
_MAX_EXECUTED: Final = float(1 << 62)  # of all instructions together: sums of more would overflow


class KernelSections:
    """Section names in the order of first use, the kernel's own first."""

    def __init__(self, kernel: str, placement: Placement) -> None:
        self.placement = placement
        self.index: dict[str, int] = {kernel: 0} if kernel in placement.names else {}

    @property
    def names(self) -> tuple[str, ...]:
        """Section names by index."""
        return tuple(self.index)

    def locate(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
        """Section index and offset of each address; EXTERNAL and the address where there is none."""
        row, offset = self.placement.locate(addresses)
        section = np.full(len(row), EXTERNAL, np.uint16)
        for number in np.flatnonzero(np.bincount(row[row >= 0])).tolist():
            name = self.placement.names[number]
            section[row == number] = self.index.setdefault(name, len(self.index))
        return section, offset


def kernel_samples(raw: sampling.RawSamples, sections: KernelSections) -> PcSamples:
    """Samples by place and reason, in order."""
    section, pc = sections.locate(raw.address)
    order = np.lexsort((raw.reason, pc, section))
    return PcSamples(
        section=section[order],
        pc=pc[order],
        reason=raw.reason[order],
        total=raw.total[order],
        latency=raw.latency[order],
    )


def kernel_counts(
    metrics: Mapping[str, Metric], sections: KernelSections
) -> tuple[PcCounts | None, tuple[Problem, ...]]:
    """Executed counts by place; None where the report has none."""
    counted = sampling.addressed(metrics.get(WARPS))
    if counted is None or len(counted[0]) == 0:
        return None, ()
    address, first = np.unique(counted[0], return_index=True)
    warps, bad = sampling.whole_numbers(np.asarray(counted[1].values)[first])
    threads = np.zeros(len(address), np.uint64)
    also = sampling.addressed(metrics.get(THREADS))
    if also is not None and len(also[0]):
        values, worse = sampling.whole_numbers(np.asarray(also[1].values))
        bad += worse
        row = np.minimum(np.searchsorted(address, also[0]), len(address) - 1)
        same = address[row] == also[0]
        threads[row[same]] = values[same]
    if max(float(column.sum(dtype=np.float64)) for column in (warps, threads)) > _MAX_EXECUTED:
        message = "the report contradicts itself: its executed counts are no counts, and all are left out"
        return None, (Problem(ProblemCode.INCONSISTENT_REPORT, message),)
    section, pc = sections.locate(address)
    order = np.lexsort((pc, section))
    problems: tuple[Problem, ...] = ()
    if bad or len(address) != len(counted[0]):
        message = "the report contradicts itself: some executed counts are no counts or stand twice"
        problems = (Problem(ProblemCode.INCONSISTENT_REPORT, message),)
    counts = PcCounts(section=section[order], pc=pc[order], warps=warps[order], threads=threads[order])
    return counts, problems
