# SPDX-License-Identifier: Apache-2.0
"""The inputs of the adapted model from report, machine code and tables; what is missing is named."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from gpadvisor.errors import ProfileMismatchError, UnknownArchitectureError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.half_rate import at_half_rate
from gpadvisor.estimators.utilisation import DRAM, L1_DATA, L2, PIPES, utilisations, while_active
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.advice import Utilisation
from gpadvisor.model.instruction import OpcodeClass, Pipe
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.stalls import StallClass
from gpadvisor.views.columns import Columns, columns
from gpadvisor.views.potential.code import loads_and_stores, loads_in_flight, stall_cycles
from gpadvisor.views.potential.model import ModelInputs

_SECTIONS: Final = "--section SourceCounters --section SpeedOfLight --section MemoryWorkloadAnalysis_Tables"
_REQUESTS: Final = "l1tex__t_requests_pipe_lsu_mem_{}_op_{}.sum"
_SECTORS: Final = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"
_KINDS: Final = ("ld", "st", "atom", "red")
_SPACES: Final = ("global", "local")
_HIT_L1: Final = "l1tex__t_sector_hit_rate.pct"
_HIT_L2: Final = "lts__t_sector_hit_rate.pct"
_WARPS: Final = "sm__warps_active.avg.pct_of_peak_sustained_active"
_ISSUE_WIDTH: Final = "device__attribute_max_ipc_per_multiprocessor"
_PIPE: Final = re.compile(r"pipe_\w+\.\w+\.pct_of_peak_sustained")
_ESSENTIAL: Final = {
    "FP64": (OpcodeClass.FLOAT64, Pipe.FP64),
    "tensor": (OpcodeClass.TENSOR, Pipe.TENSOR),
    "FP32": (OpcodeClass.FLOAT32, Pipe.FMA),
    "FP16": (OpcodeClass.FLOAT16, Pipe.FMA),
    "special functions": (OpcodeClass.TRANSCENDENTAL, Pipe.XU),
    "integer": (OpcodeClass.INTEGER, Pipe.ALU),
}
ESSENTIAL: Final = tuple(_ESSENTIAL)
"""Classes that may be what a kernel is for."""
_SOME: Final = 0.01
"""Of the instructions: fewer are not what a kernel is for."""
_SOURCES: Final = {
    "instructions": "sum of inst_executed / SMs with blocks",
    "stall_cycles": "control codes, weighted by inst_executed",
    "loads": "inst_executed of loads from global and local memory",
    "mlp": "loads for each wait on their scoreboards, in the code, by inst_executed",
    "requests": "l1tex__t_requests_pipe_lsu_mem_{global,local}_op_* / SMs",
    "issue_width": _ISSUE_WIDTH,
    "data_cycles": "the report's share of the peak of DRAM * measured cycles",
}
"""Of inputs that always come from the same."""
SERIAL: Final = frozenset(
    {StallClass.SYNCHRONIZATION, StallClass.MEMORY_BARRIER, StallClass.SLEEP, StallClass.BRANCH}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Latency:
    """Of a mean load, and what of it passes in L1."""

    cycles: float
    l1_cycles: float


@dataclass(slots=True)
class Gathered:
    """ModelInputs with where they are from."""

    cycles: float
    essential: str
    sources: dict[str, str]
    collected: bool  # by a tool, that would have had more with other sections
    missing: list[str] = field(default_factory=list)

    def lacks(self, quantity: str, section: str) -> None:
        """Name an input that is missing, what stands in, and the section that has it."""
        self.missing.append(f"{quantity} (--section {section})" if self.collected else quantity)


def gather(context: KernelContext, kernel: str, essential: str | None) -> tuple[ModelInputs, Gathered]:
    """The inputs of a kernel.

    ``essential`` is the class that is the work; None for the floating-point or tensor class that keeps its
    pipe busiest, integers where there is none.

    Raises:
        ProfileMismatchError: the profile has no counts by instruction, no cycles or no warps of this kernel.
    """
    profile = context.profile
    rows = None if profile is None else columns(context.program, profile)
    if profile is None or rows is None or not rows.warps.any():
        raise ProfileMismatchError(
            f"the profile has no executed counts by instruction of {kernel}; collect it with ncu {_SECTIONS}"
        )
    sms = _active_sms(profile)
    gathered = Gathered(
        cycles=_cycles(profile, kernel),
        essential="",
        sources=dict(_SOURCES),
        collected=profile.evidence is not Evidence.MODELLED,
    )
    units = _units(context, profile, gathered)
    busy = {unit.name: gathered.cycles * min(1.0, unit.percent / 100) for unit in units}
    resident = _resident(context, profile, gathered, kernel)
    executed = float(rows.warps.sum()) / sms
    stall = stall_cycles(rows)
    loads, stores = (store / sms for store in loads_and_stores(rows))
    latency = _latency(context, profile, gathered)
    pipe, pipe_cycles = max(
        ((unit.name, busy[unit.name]) for unit in units if unit.is_pipe),
        key=lambda name_and_value: name_and_value[1],
        default=("no pipe", 0.0),
    )
    requests = _sum(profile, _REQUESTS) / sms or loads + stores
    tightest = max((DRAM, L2, L1_DATA), key=lambda name: busy.get(name, 0.0))
    gathered.sources["request_cycles"] = f"busy cycles of {tightest} / requests"
    gathered.essential, essential_cycles = _essential(rows, busy, essential)
    gathered.sources["essential_cycles"] = f"its part of the busy cycles of the pipe of {gathered.essential}"
    return (
        ModelInputs(
            issue_width=profile.metric(_ISSUE_WIDTH) or float(context.machine.sm.schedulers.value),
            instructions=executed,
            loads=loads if latency is not None else 0.0,
            requests=requests,
            stall_cycles=max(1.0, stall),
            resident_warps=resident,
            mlp=loads_in_flight(rows) or 1.0,
            latency=0.0 if latency is None else latency.cycles,
            l1_latency=0.0 if latency is None else latency.l1_cycles,
            request_cycles=busy.get(tightest, 0.0) / requests if requests else 0.0,
            request_in_l1=tightest == L1_DATA,
            pipe_cycles=pipe_cycles,
            pipe=pipe,
            serial_cycles=_serial(profile, gathered),
            essential_cycles=essential_cycles,
            data_cycles=busy.get(DRAM, 0.0),
        ),
        gathered,
    )


def _active_sms(profile: KernelProfile) -> float:
    sms = profile.metric("device__attribute_multiprocessor_count") or profile.device.sms or 1
    return float(max(1, min(sms, profile.launch.blocks)))


def _cycles(profile: KernelProfile, kernel: str) -> float:
    """Of a mean SM, while it has warps; idle SMs, where blocks are fewer, do not count."""
    counted = profile.metric("sm__cycles_active.avg")
    sms = profile.metric("device__attribute_multiprocessor_count") or profile.device.sms
    if not counted or not counted > 0:
        raise ProfileMismatchError(
            f"the profile has no active cycles of {kernel}; collect it with ncu --section SpeedOfLight"
        )
    return counted * max(1.0, (sms or 1) / max(1, profile.launch.blocks))


def _units(context: KernelContext, profile: KernelProfile, gathered: Gathered) -> tuple[Utilisation, ...]:
    """The units, by the time for which an SM has warps."""
    shares_of_time = at_half_rate(utilisations(profile), context.program, profile)
    shares = while_active(profile, shares_of_time)
    for name in (DRAM, L2, L1_DATA):
        if all(share.name != name for share in shares):
            gathered.lacks(f"use of {name}: its bandwidth bounds nothing", "SpeedOfLight")
    if not any(_PIPE.search(name) for name in profile.metrics):
        gathered.lacks("use of pipes: none bounds the compute time", "ComputeWorkloadAnalysis")
    gathered.sources["pipe_cycles"] = "the report's share of the peak * measured cycles"
    return shares


def _resident(context: KernelContext, profile: KernelProfile, gathered: Gathered, kernel: str) -> float:
    percent, most = profile.metric(_WARPS), context.machine.sm.max_warps.value
    if percent:
        gathered.sources["resident_warps"] = f"{_WARPS} * warps of an SM"
        return percent / 100 * most
    if context.occupancy.warps_per_sm:
        gathered.lacks("achieved occupancy: that of the launch stands in", "Occupancy")
        gathered.sources["resident_warps"] = "occupancy of the launch"
        return float(context.occupancy.warps_per_sm)
    raise ProfileMismatchError(f"the warps of {kernel} on an SM are not known; collect --section Occupancy")


def _latency(context: KernelContext, profile: KernelProfile, gathered: Gathered) -> _Latency | None:
    """AMAT with a cycle for each further sector of a request (Eqs. 12, 13); None without hit rates."""
    first, second = profile.metric(_HIT_L1), profile.metric(_HIT_L2)
    if first is None or second is None:
        gathered.lacks(
            "hit rates: no latency of loads, memory is bounded by its throughput alone",
            "MemoryWorkloadAnalysis",
        )
        return None
    try:
        timing, _ = timing_of(context.program.arch)
    except UnknownArchitectureError:
        gathered.missing.append(
            f"latencies of {context.program.arch}: memory is bounded by its throughput alone"
        )
        return None
    l1, l2, dram = timing.l1_cycles[0], timing.l2_cycles[0], timing.dram_cycles[0]
    missed, far = 1 - first / 100, (1 - first / 100) * (1 - second / 100)
    requests, sectors = _sum(profile, _REQUESTS), _sum(profile, _SECTORS)
    more = max(0.0, sectors / requests - 1) if requests else 0.0
    gathered.sources["l1_latency"] = "L1, and a cycle for each further sector of a request"
    gathered.sources["latency"] = (
        f"L1 {l1}, L2 {l2}, DRAM {dram} cycles of {context.program.arch} by {_HIT_L1} and {_HIT_L2}"
    )
    return _Latency(cycles=l1 + missed * (l2 - l1) + far * (dram - l2) + more, l1_cycles=l1 + more)


def _sum(profile: KernelProfile, form: str) -> float:
    names = (form.format(space, kind) for space in _SPACES for kind in _KINDS)
    return sum(profile.metric(name) or 0.0 for name in names)


def _serial(profile: KernelProfile, gathered: Gathered) -> float:
    """Cycles in which a scheduler issued nothing and the warp it looked at was serialized."""
    if not profile.total_samples:
        gathered.lacks("samples: serialization is left out", "SourceCounters")
        return 0.0
    gathered.sources["serial_cycles"] = (
        "latency samples of barriers, fences, sleep and branches / all samples"
    )
    chosen = [index for index, reason in enumerate(profile.reasons) if reason.stall_class in SERIAL]
    latency = sum(int(profile.samples.latency[profile.samples.reason == index].sum()) for index in chosen)
    return gathered.cycles * latency / profile.total_samples


def _essential(rows: Columns, busy: dict[str, float], limiting: str | None) -> tuple[str, float]:
    """The class that does the work, and the cycles of its pipe for it, each instruction alike."""
    by_class: dict[OpcodeClass, float] = defaultdict(float)
    by_pipe: dict[Pipe, float] = defaultdict(float)
    pairs: dict[tuple[OpcodeClass, Pipe], float] = defaultdict(float)
    for row, _, _, instruction in rows.rows():
        executed = float(rows.warps[row])
        by_class[instruction.info.opclass] += executed
        by_pipe[instruction.info.pipe] += executed
        pairs[instruction.info.opclass, instruction.info.pipe] += executed

    def cycles(name: str) -> float:
        opclass, _ = _ESSENTIAL[name]
        return sum(
            busy.get(PIPES.get(pipe, ""), 0.0) * count / by_pipe[pipe]
            for (opcode_class, pipe), count in pairs.items()
            if opcode_class is opclass and by_pipe[pipe]
        )

    if limiting is not None:
        return limiting, cycles(limiting)
    total = sum(by_class.values())
    work = [name for name in ESSENTIAL[:-1] if by_class[_ESSENTIAL[name][0]] >= _SOME * total]
    best = max(work, key=cycles, default=ESSENTIAL[-1])
    return best, cycles(best)
