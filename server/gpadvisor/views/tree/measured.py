# SPDX-License-Identifier: Apache-2.0
"""What a kernel's profile has for each instruction, as columns that add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.profile import EXTERNAL, KernelProfile, adds_up
from gpadvisor.model.program import Program
from gpadvisor.views.tree.model import Floats, TreeColumn

TIME: Final = "time"
SAMPLES: Final = "samples"
LATENCY: Final = "latency"
INSTRUCTIONS: Final = "instructions"
THREADS: Final = "threads"
USUAL: Final = (TIME, SAMPLES, LATENCY, INSTRUCTIONS)
_WHAT: Final = {
    TIME: "share of the GPU time of the file, or of the traced run, by samples",
    SAMPLES: "PC samples",
    LATENCY: "PC samples while the scheduler issued nothing",
    INSTRUCTIONS: "instructions executed by warps",
    THREADS: "instructions executed by threads",
}
_SECTION_BITS: Final = 40
"""Bits of an offset in a section: no section has a terabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The columns of one kernel."""

    starts: tuple[int, ...]  # row of the first instruction of each function, and the number of rows
    values: Floats  # instructions by columns
    outside: Floats  # by column, of code that is not in the cubin
    elsewhere: Floats  # by column, of code that was not analysed
    itself: Floats  # by column, of the kernel as a whole


def available(profiles: Sequence[KernelProfile], *, timed: bool) -> dict[str, TreeColumn]:
    """The columns that some of the kernels have, by name."""
    descriptions: dict[str, str] = {}
    if any(profile.total_samples for profile in profiles):
        descriptions |= {name: _WHAT[name] for name in ((TIME,) if timed else ()) + (SAMPLES, LATENCY)}
    if any(profile.counts is not None for profile in profiles):
        descriptions[INSTRUCTIONS] = _WHAT[INSTRUCTIONS]
    if any(profile.counts is not None and profile.counts.threads.any() for profile in profiles):
        descriptions[THREADS] = _WHAT[THREADS]
    for profile in profiles:
        for index in np.unique(profile.samples.reason).tolist():
            reason = profile.reasons[index]
            descriptions.setdefault(reason.name, f"PC samples: {reason.plain}")
        for name in profile.pc_metrics:
            if adds_up(name):
                descriptions.setdefault(name, "of the report, under its name there")
    return {name: TreeColumn(name=name, what=text) for name, text in descriptions.items()}


def measure(
    program: Program, profile: KernelProfile, columns: Sequence[str], time_share: float | None
) -> Measured:
    """The columns of a kernel by instruction; a column that it does not have is zero."""
    sizes = [len(function.instructions) for function in program.functions]
    starts = np.cumsum([0, *sizes])
    rows = _Rows(program, profile, starts)
    values = np.zeros((int(starts[-1]), len(columns)))
    outside, elsewhere, itself = (np.zeros(len(columns)) for _ in range(3))
    for index, name in enumerate(columns):
        if name == TIME and not profile.total_samples:
            itself[index] = time_share or 0.0
            continue
        for section, pc, amount in _amounts(profile, name, time_share):
            place = rows.of(section, pc)
            inside = place >= 0
            values[:, index] += np.bincount(place[inside], amount[inside], len(values))
            external = section == EXTERNAL
            outside[index] += float(amount[external].sum())
            elsewhere[index] += float(amount[~inside & ~external].sum())
    return Measured(tuple(starts.tolist()), values, outside, elsewhere, itself)


_Columns = tuple[NDArray[np.uint16], NDArray[np.uint64], Floats]


def _amounts(profile: KernelProfile, name: str, time_share: float | None) -> tuple[_Columns, ...]:
    """Section, offset and amount of each row that a column has; nothing where it has none."""
    samples, counts = profile.samples, profile.counts
    if name == TIME:
        scale = (time_share or 0.0) / profile.total_samples
        return ((samples.section, samples.pc, samples.total.astype(np.float64) * scale),)
    if name in {SAMPLES, LATENCY}:
        amount = samples.total if name == SAMPLES else samples.latency
        return ((samples.section, samples.pc, amount.astype(np.float64)),)
    if name in {INSTRUCTIONS, THREADS}:
        if counts is None:
            return ()
        amount = counts.warps if name == INSTRUCTIONS else counts.threads
        return ((counts.section, counts.pc, amount.astype(np.float64)),)
    reasons = [index for index, reason in enumerate(profile.reasons) if reason.name == name]
    if reasons:
        mask = np.isin(samples.reason, reasons)
        return ((samples.section[mask], samples.pc[mask], samples.total[mask].astype(np.float64)),)
    metric = profile.pc_metrics.get(name)
    return () if metric is None else ((metric.section, metric.pc, np.nan_to_num(metric.value)),)


class _Rows:
    """From section and offset to the row of an instruction, for many at once."""

    def __init__(self, program: Program, profile: KernelProfile, starts: NDArray[np.int64]) -> None:
        sections = {name: index for index, name in enumerate(profile.sections)}
        by_start = sorted(
            (sections[function.section] << _SECTION_BITS | function.start, number)
            for number, function in enumerate(program.functions)
            if function.section in sections
        )
        self._keys = np.array([key for key, _ in by_start], dtype=np.int64)
        self._functions = np.array([number for _, number in by_start], dtype=np.int64)
        self._starts, self._sizes = starts, np.diff(starts)

    def of(self, section: NDArray[np.uint16], pc: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row of each; -1 where there is none."""
        if not len(self._keys):
            return np.full(len(pc), -1)
        offset = np.minimum(pc, np.uint64((1 << _SECTION_BITS) - 1)).astype(np.int64)
        key = section.astype(np.int64) << _SECTION_BITS | offset
        indices = np.searchsorted(self._keys, key, side="right") - 1
        function = self._functions[indices]
        index = (key - self._keys[indices]) // INSTRUCTION_BYTES
        inside = (indices >= 0) & (section != EXTERNAL) & (index < self._sizes[function])
        return np.where(inside, self._starts[function] + index, -1)


def costs(measured: Measured, columns: Mapping[str, int]) -> Floats:
    """What each instruction costs, for the order of contexts: its share of samples and of instructions."""
    total = np.zeros(len(measured.values))
    for name in (SAMPLES, INSTRUCTIONS):
        if name in columns:
            column = measured.values[:, columns[name]]
            total += column / max(1.0, float(column.sum()))
    return total
