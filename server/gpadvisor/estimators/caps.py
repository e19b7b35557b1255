# SPDX-License-Identifier: Apache-2.0
"""Measured use of DRAM, caches, pipes and issue slots, and what it leaves for any cure to gain.

A unit that is busy for a share u of the run takes u of the time again after a cure that leaves its load
alone, so no such cure gains more than 1 / u.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import active_share, mean_active_share
from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.model.advice import Relief, Utilisation
from gpadvisor.model.instruction import Pipe
from gpadvisor.model.profile import KernelProfile

DRAM: Final = "DRAM"
L2: Final = "L2"
L1: Final = "L1"
L1_DATA: Final = "L1 data"
L1_REQUESTS: Final = "L1 requests"
L1_TO_L2: Final = "L1 to L2"
TEXTURE: Final = "texture"
ISSUE: Final = "issue"
MEMORY: Final = "memory"
SM: Final = "SM"

MEMORY_RESOURCES: Final = (DRAM, L2, L1, L1_DATA, L1_REQUESTS, L1_TO_L2, TEXTURE)

# Names of one quantity over tool versions and chips, the preferred first; none of them is in every report.
_METRICS: Final[dict[str, tuple[str, ...]]] = {
    DRAM: (
        "gpu__dram_throughput",
        "dram__throughput",
        "dram__cycles_active",
        "dram__bytes",
        "fbpa__dram_sectors",
    ),
    L2: ("lts__throughput", "lts__t_sectors", "lts__d_sectors", "lts__lts2xbar_cycles_active"),
    L1: ("l1tex__throughput",),
    L1_DATA: ("l1tex__data_pipe_lsu_wavefronts", "l1tex__data_bank_reads"),
    L1_REQUESTS: ("l1tex__lsuin_requests",),
    L1_TO_L2: ("l1tex__m_l1tex2xbar_req_cycles_active", "l1tex__m_xbar2l1tex_read_sectors"),
    TEXTURE: (
        "l1tex__f_wavefronts",
        "l1tex__data_pipe_tex_wavefronts",
        "l1tex__texin_sm2tex_req_cycles_active",
    ),
    ISSUE: ("sm__issue_active", "smsp__issue_active", "sm__inst_issued", "smsp__inst_issued"),
    "ALU pipe": ("sm__pipe_alu_cycles_active", "sm__inst_executed_pipe_alu", "smsp__inst_executed_pipe_alu"),
    "FMA pipe": ("sm__pipe_fma_cycles_active", "sm__inst_executed_pipe_fma", "smsp__inst_executed_pipe_fma"),
    "FP16 pipe": ("sm__pipe_fp16_cycles_active", "sm__inst_executed_pipe_fp16"),
    "FP64 pipe": (
        "sm__pipe_fp64_cycles_active",
        "sm__pipe_fp64_op_fp64_cycles_active",
        "sm__inst_executed_pipe_fp64",
        "sm__inst_executed_pipe_fp64_op_fp64",
        "smsp__inst_executed_pipe_fp64",
    ),
    "tensor pipe": (
        "sm__pipe_tensor_cycles_active",
        "sm__pipe_tensor_op_hmma_cycles_active",
        "sm__pipe_tensor_op_imma_cycles_active",
        "sm__pipe_tensor_op_gmma_cycles_active",
        "sm__pipe_tensor_subpipe_hmma_cycles_active",
        "sm__pipe_tensor_subpipe_imma_cycles_active",
        "sm__inst_executed_pipe_tensor",
        "sm__inst_executed_pipe_tensor_op_hmma",
        "sm__inst_executed_pipe_tensor_op_imma",
        "sm__inst_executed_pipe_tensor_op_dmma",
        "sm__inst_executed_pipe_tensor_op_gmma",
        "sm__inst_executed_pipe_tensor_subpipe_hmma",
        "sm__inst_executed_pipe_tensor_subpipe_imma",
    ),
    "XU pipe": ("sm__inst_executed_pipe_xu", "smsp__inst_executed_pipe_xu"),
    "LSU pipe": ("sm__inst_executed_pipe_lsu", "smsp__inst_executed_pipe_lsu"),
    "constant cache": ("idc__request_cycles_active", "idc__requests"),
    MEMORY: ("gpu__compute_memory_throughput",),
    SM: ("sm__throughput",),
}

# A share of the elapsed time bounds the whole run; one of the active cycles stands in where that is missing.
_SUFFIXES: Final = (
    ".avg.pct_of_peak_sustained_elapsed",
    ".sum.pct_of_peak_sustained_elapsed",
    ".avg.pct_of_peak_sustained_active",
    ".sum.pct_of_peak_sustained_active",
)
_PER_CYCLE: Final = "smsp__issue_active.avg.per_cycle_active"

FROM_SAMPLES: Final = "samples taken while the scheduler issued"

PIPES: Final = {
    Pipe.ALU: "ALU pipe",
    Pipe.FMA: "FMA pipe",
    Pipe.FP16: "FP16 pipe",
    Pipe.FP64: "FP64 pipe",
    Pipe.TENSOR: "tensor pipe",
    Pipe.XU: "XU pipe",
    Pipe.LSU: "LSU pipe",
}
"""The resource that instructions of a pipe load; FMA and FP16 work of newer chips may share one."""

_PARTS: Final = {
    L1: (L1_DATA, L1_REQUESTS, L1_TO_L2),
    MEMORY: MEMORY_RESOURCES,
    "SHARED pipe": ("FP64 pipe", "FP16 pipe", "tensor pipe"),  # which share it, on sm_70
    "FMAHEAVY pipe": ("FMA pipe",),  # the half of it that multiplies integers, too
    "FMALITE pipe": ("FMA pipe",),
}
_OF_THE_DEVICE: Final = frozenset({DRAM, L2, MEMORY})
"""Units that all SMs share; a counter of any other is the mean over the SMs, idle ones among them."""
_WHOLES: Final = (MEMORY, SM)
_WHOLE_MARGIN_PERCENT: Final = 1.0
_BUSIEST: Final = frozenset({L1_TO_L2})
_OTHER_PIPE: Final = re.compile(r"(?:sm|smsp)__(?:inst_executed_)?pipe_([a-z0-9]+)(?:_cycles_active)?$")
_ALWAYS: Final = frozenset({DRAM, L2, L1, L1_DATA, L1_REQUESTS, ISSUE})
_NOTABLE_PERCENT: Final = 1.0
"""A pipe used less than this is not in use."""

PRACTICAL_PEAK: Final = 0.95
"""As full as a unit is expected to get: an assumption, since bursts and gaps keep units from their peak."""

BUSY_PERCENT: Final = 60.0
"""Nsight Compute's own line between a unit that limits a kernel and one that does not."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that a cure can give, and why."""

    speedup: float
    reason: str


@lru_cache(maxsize=16)
def utilisations(profile: KernelProfile) -> tuple[Utilisation, ...]:
    """The measured ones, busiest first; units that a report does not have are left out."""
    found = list(_measured(profile))
    parts = [entry.percent for entry in found if entry.name not in _WHOLES]
    busiest = max(parts, default=0.0)
    found = [entry for entry in found if entry.name in _ALWAYS or entry.percent >= _NOTABLE_PERCENT]
    # A whole is the largest of its parts: it says something new only where that part is not known here.
    kept = [
        entry if entry.name not in _WHOLES else _named_by_breakdown(profile, entry)
        for entry in found
        if entry.name not in _WHOLES or entry.percent > busiest + _WHOLE_MARGIN_PERCENT
    ]
    return tuple(sorted(kept, key=lambda entry: -entry.percent))


def _measured(profile: KernelProfile) -> Iterator[Utilisation]:
    for name, bases in _METRICS.items():
        several = name.endswith(" pipe") or name in _BUSIEST
        entry = (_busiest if several else _first)(profile, name, bases)
        if entry is None and name == ISSUE:
            per_cycle = profile.metric(_PER_CYCLE)
            if per_cycle is not None:
                entry = Utilisation(name=name, percent=100 * per_cycle, metric=_PER_CYCLE)
        if entry is not None and 0.0 <= entry.percent <= 1000.0:
            yield entry
    yield from _others(profile)


_KNOWN_BASES: Final = frozenset(base for bases in _METRICS.values() for base in bases)


_NAMED_UNITS: Final = frozenset(base.partition("__")[0] for base in _KNOWN_BASES)


def _others(profile: KernelProfile) -> Iterator[Utilisation]:
    """Units that no resource here is named after, under the report's own names.

    These are pipes of the SM (ADU, CBU, uniform, ...), and units as a whole (``gcc``, ``nvlrx``, ...).
    """
    bases: dict[str, list[str]] = {}
    for metric in profile.metrics:
        base, dot, suffix = metric.partition(".")
        if dot + suffix not in _SUFFIXES or base in _KNOWN_BASES:
            continue
        unit, pipe = base.partition("__")[0], _OTHER_PIPE.match(base)
        if pipe is not None:
            bases.setdefault(f"{pipe[1].upper()} pipe", []).append(base)
        elif unit.isalnum() and unit not in _NAMED_UNITS:
            bases.setdefault(unit, []).append(base)
    for name, known in bases.items():
        entry = None if name in _METRICS else _busiest(profile, name, sorted(known))
        if entry is not None and 0.0 <= entry.percent <= 1000.0:
            yield entry


def _first(profile: KernelProfile, name: str, bases: Sequence[str]) -> Utilisation | None:
    for base in bases:
        for suffix in _SUFFIXES:
            percent = profile.metric(base + suffix)
            if percent is not None:
                return Utilisation(name=name, percent=percent, metric=base + suffix)
    return None


def _busiest(profile: KernelProfile, name: str, bases: Sequence[str]) -> Utilisation | None:
    """A pipe has one metric per kind of operation; the largest one of equal basis says how full it is."""
    for suffix in _SUFFIXES:
        found = [
            Utilisation(name=name, percent=percent, metric=base + suffix)
            for base in bases
            if (percent := profile.metric(base + suffix)) is not None
        ]
        if found:
            return max(found, key=lambda entry: entry.percent)
    return None


def _named_by_breakdown(profile: KernelProfile, whole: Utilisation) -> Utilisation:
    """A whole under the name of its busiest part, where the report lists the parts."""
    listed = profile.metrics.get(f"breakdown:{whole.metric}")
    parts = listed.split(",") if isinstance(listed, str) else []
    values = [(value, part.strip()) for part in parts if (value := profile.metric(part.strip())) is not None]
    if not values:
        return whole
    return Utilisation(name=whole.name, percent=whole.percent, metric=max(values)[1])


def loads(context: KernelContext) -> tuple[Utilisation, ...]:
    """What caps an estimate: the measured utilisations, and issue slots from samples where not measured."""
    measured: tuple[Utilisation, ...] = ()
    if context.profile is not None:
        measured = at_half_rate(utilisations(context.profile), context.program, context.profile)
    blame = context.blame
    if blame is None or not blame.total_samples or any(entry.name == ISSUE for entry in measured):
        return measured
    issued = 1 - blame.latency_samples / blame.total_samples
    return (*measured, Utilisation(name=ISSUE, percent=100 * issued, metric=FROM_SAMPLES))


def active_loads(context: KernelContext) -> tuple[Utilisation, ...]:
    """What caps a stall cure: the loads of the units while the kernel's warps are there.

    A counter per elapsed cycle holds the time without warps, which no stall cure shortens, and one of a unit
    that each SM has is the mean over all SMs, those without a block among them.
    """
    return loads(context) if context.profile is None else while_active(context.profile, loads(context))


def measured_loads(context: KernelContext) -> tuple[Utilisation, ...]:
    """Of ``active_loads`` those that counters measured."""
    return tuple(entry for entry in active_loads(context) if entry.metric != FROM_SAMPLES)


def while_active(profile: KernelProfile, measured: Sequence[Utilisation]) -> tuple[Utilisation, ...]:
    """Utilisations per elapsed cycle as shares of the time in which warps are there."""
    device, each = active_share(profile), mean_active_share(profile)
    return tuple(
        entry
        if share is None or not entry.metric.endswith("_elapsed")
        else replace(entry, percent=min(max(100.0, entry.percent), entry.percent / share))
        for entry in measured
        for share in (device if entry.name in _OF_THE_DEVICE else each,)
    )


def cap_speedup(measured: Sequence[Utilisation], relieves: Sequence[Relief], *, best: bool) -> Cap | None:
    """The cap of the busiest unit after the cure; None where no unit was measured.

    Args:
        measured: what ``utilisations`` gave.
        relieves: loads that the cure lowers.
        best: the cap of the high end: the share left then, and a unit that gets to its very peak. Otherwise
            it gets as far as units do in practice, or as far as one of this kernel's is already.
    """
    after = busiest_after(measured, relieves, best=best)
    now = busiest_after(measured, ())
    if after is None or now is None or after.load <= 0:
        return None
    peak = 1.0 if best else max(PRACTICAL_PEAK, now.load)
    text = unit_text(after.unit)
    if after.left < 1:
        text += f", of which {100 * after.left:.0f} % would be left"
    return Cap(max(1.0, peak / after.load), text)


def unit_text(unit: Utilisation) -> str:
    """A unit and how full it is, with the metric that says so."""
    return f"{unit.name} is at {unit.percent:.0f} % of its peak ({unit.metric})"


@dataclass(frozen=True, slots=True)
class Busiest:
    """The unit that would limit a kernel, as a share of the present run time."""

    load: float
    unit: Utilisation
    left: float


def busiest_after(
    measured: Sequence[Utilisation], relieves: Sequence[Relief], *, best: bool = False
) -> Busiest | None:
    """The unit with the largest load after a cure; None where none was measured."""
    worst: Busiest | None = None
    for entry in _limits(measured):
        left = _left(entry, measured, relieves, best=best)
        load = min(1.0, entry.percent / 100) * left
        if worst is None or load > worst.load:
            worst = Busiest(load, entry, left)
    return worst


def _limits(measured: Sequence[Utilisation]) -> list[Utilisation]:
    """Every unit; L1 as a whole only where it is fuller than the parts of it that are known."""
    part = max((entry.percent for entry in measured if entry.name in _PARTS[L1]), default=0.0)
    return [one for one in measured if one.name != L1 or one.percent > part + _WHOLE_MARGIN_PERCENT]


def _left(
    entry: Utilisation, measured: Sequence[Utilisation], relieves: Sequence[Relief], *, best: bool
) -> float:
    """The share of a unit's load that a cure leaves; L1 as a whole stays as busy as the busiest of its parts.

    Its own counter may be a multiple of theirs: on sm_75 it is twice the busiest part's in real reports.
    """
    parts = [part for part in measured if entry.name == L1 and part.name in _PARTS[L1]]
    now = max((part.percent for part in parts), default=0.0)
    if not now:
        return remaining(entry.name, relieves, best=best)
    return max(part.percent * remaining(part.name, relieves, best=best) for part in parts) / now


_STAGES: Final = (frozenset({DRAM}), frozenset({L2}), frozenset({L1, *_PARTS[L1], TEXTURE}))
"""Units that work one behind the other; all others are the SM's own stage."""
OVERLAP: Final = 3.0
"""How well the stages of a kernel overlap: 1 would add their times up, infinity takes the longest alone.

Of 2, 3, 4 and 6 the one that fits 48 measured pairs of nine repositories best, whichever of them is left out;
``python -m tests.validation.pairs`` prints that.
"""


def together(measured: Sequence[Utilisation], relieves: Sequence[Relief], *, best: bool = False) -> float:
    """The time that all units need together after a cure, as a share of the present run time.

    The busiest stage alone is the least, and what is taken at the high end of a range (``best``); stages that
    are nearly as busy do not overlap perfectly.
    """
    stages: dict[int, float] = {}
    for entry in _limits(measured):
        stage = next((index for index, names in enumerate(_STAGES) if entry.name in names), len(_STAGES))
        left = _left(entry, measured, relieves, best=best)
        stages[stage] = max(stages.get(stage, 0.0), min(1.0, entry.percent / 100) * left)
    return float(np.linalg.norm(list(stages.values()), np.inf if best else OVERLAP)) if stages else 0.0


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The parts of the run time after a cure, as shares of the present one."""

    busy_now: float  # U: the busiest unit works for this share of the time
    busy: float  # U': what the work of all units takes then
    waiting: float  # W: what is left of the time by the samples alone, 1 / S of the paper's equations

    @property
    def apart(self) -> float:
        """Time if no wait that is left falls into the units' work: U' + (1 - U) W."""
        return max(self.busy + (1 - self.busy_now) * self.waiting, _LEAST_TIME)

    @property
    def overlapped(self) -> float:
        """Time if the waits that are left and the units' work overlap: the longer of them."""
        return max(self.busy, min(self.waiting, self.apart))

    @property
    def expected(self) -> float:
        """The geometric mean of both."""
        return float(np.sqrt(self.apart * self.overlapped))


_LEAST_TIME: Final = 1e-6
"""Of the run time: so that a cure of everything has an answer."""


def time_left(
    measured: Sequence[Utilisation], relieves: Sequence[Relief], waiting: float, *, best: bool = False
) -> TimeLeft:
    """What a cure leaves of the run time: the work of the units, and the waits that are left.

    Differs from GPA: its Eqs. 2 and 4 are the case of idle units (U = U' = 0). That of a full one (U = 1) is
    the roofline, where only less work for the unit helps.

    Args:
        measured: what ``active_loads`` gave.
        relieves: loads that the cure lowers.
        waiting: share of the samples that is left, 1 / S of the paper's equations.
        best: the high end of a range.
    """
    now = together(measured, (), best=True)
    return TimeLeft(busy_now=now, busy=min(now, together(measured, relieves, best=best)), waiting=waiting)


def remaining(resource: str, relieves: Sequence[Relief], *, best: bool) -> float:
    """The share of a unit's load that a cure leaves.

    Where a unit is known only as a whole, the relief of its part counts for it, and the other way round.
    """
    names = {resource, *_PARTS.get(resource, ())}
    left = [
        max(0.0, relief.remaining_best if best else relief.remaining)
        for relief in relieves
        if relief.resource in names or resource in _PARTS.get(relief.resource, ())
    ]
    return min(left, default=1.0)
