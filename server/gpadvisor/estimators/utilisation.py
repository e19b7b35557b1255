# SPDX-License-Identifier: Apache-2.0
"""How busy each unit of a GPU is, as a report counts it or as samples tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import active_share, mean_active_share
from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.model.advice import Utilisation
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
CONSTANT_CACHE: Final = "constant cache"
ADU_PIPE: Final = "ADU pipe"

L1_PARTS: Final = {L1_DATA: "data", L1_REQUESTS: "requests", L1_TO_L2: "to L2"}
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
    CONSTANT_CACHE: ("idc__request_cycles_active", "idc__requests"),
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
PIPE_UNITS: Final = frozenset({*PIPES.values(), ADU_PIPE})
_OF_THE_DEVICE: Final = frozenset({DRAM, L2, MEMORY})
"""Units that all SMs share; a counter of any other is the mean over the SMs, idle ones among them."""
_WHOLES: Final = (MEMORY, SM)
_BUSIEST: Final = frozenset({L1_TO_L2})
_OTHER_PIPE: Final = re.compile(r"(?:sm|smsp)__(?:inst_executed_)?pipe_([a-z0-9]+)(?:_cycles_active)?$")
_ALWAYS: Final = frozenset({DRAM, L2, L1, L1_DATA, L1_REQUESTS, ISSUE})


@lru_cache(maxsize=16)
def utilisations(profile: KernelProfile) -> tuple[Utilisation, ...]:
    """The measured ones, busiest first; units that a report does not have are left out."""
    entries = list(_measured(profile))
    cache = max((entry.percent for entry in entries if entry.name == CONSTANT_CACHE), default=0.0)
    # The pipe that feeds the constant cache is as full as the cache makes it.
    entries = [
        entry
        for entry in entries
        if entry.name != ADU_PIPE or entry.percent > cache + constants.IN_USE_PERCENT
    ]
    parts = [entry.percent for entry in entries if entry.name not in _WHOLES]
    busiest = max(parts, default=0.0)
    entries = [
        entry for entry in entries if entry.name in _ALWAYS or entry.percent >= constants.IN_USE_PERCENT
    ]
    # A whole is the largest of its parts: it says something new only where that part is not known here.
    distinct = [
        entry if entry.name not in _WHOLES else _named_by_breakdown(profile, entry)
        for entry in entries
        if entry.name not in _WHOLES or entry.percent > busiest + constants.IN_USE_PERCENT
    ]
    return tuple(sorted(distinct, key=lambda entry: -entry.percent))


def where_work_is(profile: KernelProfile, measured: Sequence[Utilisation]) -> tuple[Utilisation, ...]:
    """Units where fewer blocks than SMs are: of each SM's own the busiest, else the mean of those with work.

    The mean over all SMs tells of a unit that is full nowhere, where some SMs have nothing to do.
    """
    sms, blocks = profile.device.sms or 0, profile.launch.blocks
    if not 0 < blocks < sms:
        return tuple(measured)
    loads = []
    for entry in measured:
        base, _, suffix = entry.metric.partition(".")
        most = profile.metric(f"{base}.max.{suffix.partition('.')[2]}")
        if entry.name not in _OF_THE_DEVICE and suffix.endswith("_elapsed"):
            share = max(entry.percent, min(constants.PEAK_PERCENT, entry.percent * sms / blocks))
            loads.append(replace(entry, percent=share if most is None else max(most, entry.percent)))
        else:
            loads.append(entry)
    return tuple(sorted(loads, key=lambda entry: -entry.percent))


def _measured(profile: KernelProfile) -> Iterator[Utilisation]:
    for name, bases in _METRICS.items():
        if name in PIPE_UNITS or name in _BUSIEST:
            entry = _busiest(profile, name, bases, is_pipe=name in PIPE_UNITS)
        else:
            entry = _first(profile, name, bases)
        if entry is None and name == ISSUE:
            per_cycle = profile.metric(_PER_CYCLE)
            if per_cycle is not None:
                entry = Utilisation(name=name, percent=100 * per_cycle, metric=_PER_CYCLE)
        if entry is not None and 0.0 <= entry.percent <= constants.MOST_PERCENT:
            yield entry
    yield from _others(profile)


_KNOWN_BASES: Final = frozenset(base for bases in _METRICS.values() for base in bases)


_NAMED_UNITS: Final = frozenset(base.partition("__")[0] for base in _KNOWN_BASES)


def _others(profile: KernelProfile) -> Iterator[Utilisation]:
    """Units that no resource here is named after, under the report's own names.

    These are pipes of the SM (ADU, CBU, uniform, ...), and units as a whole (``gcc``, ``nvlrx``, ...).
    """
    bases: dict[tuple[str, bool], list[str]] = {}
    for metric in profile.metrics:
        base, dot, suffix = metric.partition(".")
        if dot + suffix not in _SUFFIXES or base in _KNOWN_BASES:
            continue
        unit, pipe = base.partition("__")[0], _OTHER_PIPE.match(base)
        if pipe is not None:
            bases.setdefault((f"{pipe[1].upper()} pipe", True), []).append(base)
        elif unit.isalnum() and unit not in _NAMED_UNITS:
            bases.setdefault((unit, False), []).append(base)
    for (name, is_pipe), unit_bases in bases.items():
        entry = None if name in _METRICS else _busiest(profile, name, sorted(unit_bases), is_pipe=is_pipe)
        if entry is not None and 0.0 <= entry.percent <= constants.MOST_PERCENT:
            yield entry


def _first(profile: KernelProfile, name: str, bases: Sequence[str]) -> Utilisation | None:
    for base in bases:
        for suffix in _SUFFIXES:
            percent = profile.metric(base + suffix)
            if percent is not None:
                return Utilisation(name=name, percent=percent, metric=base + suffix)
    return None


def _busiest(profile: KernelProfile, name: str, bases: Sequence[str], *, is_pipe: bool) -> Utilisation | None:
    """A pipe has one metric per kind of operation; the largest one of equal basis says how full it is."""
    for suffix in _SUFFIXES:
        result = [
            Utilisation(name=name, percent=percent, metric=base + suffix, is_pipe=is_pipe)
            for base in bases
            if (percent := profile.metric(base + suffix)) is not None
        ]
        if result:
            return max(result, key=lambda entry: entry.percent)
    return None


def _named_by_breakdown(profile: KernelProfile, utilisation: Utilisation) -> Utilisation:
    """A whole under the name of its busiest part, where the report lists the parts."""
    listed = profile.metrics.get(f"breakdown:{utilisation.metric}")
    parts = listed.split(",") if isinstance(listed, str) else []
    values = [(value, part.strip()) for part in parts if (value := profile.metric(part.strip())) is not None]
    if not values:
        return utilisation
    return replace(utilisation, metric=max(values)[1])


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


@lru_cache(maxsize=1)
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
    device, mean_share = active_share(profile), mean_active_share(profile)
    return tuple(
        entry
        if share is None or not entry.metric.endswith("_elapsed")
        else replace(entry, percent=min(max(constants.PEAK_PERCENT, entry.percent), entry.percent / share))
        for entry in measured
        for share in (device if entry.name in _OF_THE_DEVICE else mean_share,)
    )
