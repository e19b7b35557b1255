# SPDX-License-Identifier: Apache-2.0
"""Counters of a run under the names that Nsight Compute gives them: by instruction and of the whole grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.machine.timing import timing_of
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.model.machine import SECTOR_BYTES
from gpadvisor.model.profile import (
    MetricValue,
    PcCounts,
    PcMetric,
)
from gpadvisor.simulator import state
from gpadvisor.simulator.outcome import Outcome
from gpadvisor.simulator.resources import Unit

_ACCESSING: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION}
)

_MOST_COUNTED: Final = 2.0**63
"""The largest grids run more instructions than a column of counts holds."""
_MOST: Final = 0.8
_PIPE_METRICS: Final = {
    Unit.ALU: "sm__pipe_alu_cycles_active",
    Unit.FMA: "sm__pipe_fma_cycles_active",
    Unit.FP16: "sm__pipe_fp16_cycles_active",
    Unit.FP64: "sm__pipe_fp64_cycles_active",
    Unit.TENSOR: "sm__pipe_tensor_cycles_active",
    Unit.XU: "sm__inst_executed_pipe_xu",
}


def _scaled(outcome: Outcome, phases: NDArray[np.generic]) -> NDArray[np.float64]:
    """Counts of the whole grid from those of one SM."""
    per_sm = phases[0].astype(np.float64) * (1 + outcome.share.repeats / outcome.share.waves) + phases[1]
    return np.asarray(np.minimum(per_sm * (outcome.config.blocks / outcome.share.total), _MOST_COUNTED))


def counts_of(outcome: Outcome) -> PcCounts:
    """How often each instruction ran, by warps and threads of the whole grid."""
    warps, threads = _scaled(outcome, outcome.results.executed), _scaled(outcome, outcome.results.threads)
    places = np.array(sorted(outcome.lowered.instructions), dtype=np.int64)
    return PcCounts(
        section=np.zeros(len(places), dtype=np.uint16),
        pc=(places * INSTRUCTION_BYTES).astype(np.uint64),
        warps=np.rint(warps[places]).astype(np.uint64),
        threads=np.rint(threads[places]).astype(np.uint64),
    )


def pc_metrics_of(outcome: Outcome) -> Mapping[str, PcMetric]:
    """Sectors and wavefronts where addresses were followed or told; nothing where they were guessed."""
    names = (
        "memory_l2_theoretical_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal",
        "memory_l1_wavefronts_shared",
        "memory_l1_wavefronts_shared_ideal",
        "memory_l1_tag_requests_global",
    )
    executed = outcome.results.executed.sum(axis=0)
    scale = np.divide(
        _scaled(outcome, outcome.results.executed), executed, out=np.zeros(len(executed)), where=executed > 0
    )
    metrics = {}
    for name, column in zip(names, outcome.results.sectors * scale, strict=True):
        places = np.flatnonzero(column)
        if len(places):
            metrics[name] = PcMetric(
                name=name,
                section=np.zeros(len(places), dtype=np.uint16),
                pc=(places * INSTRUCTION_BYTES).astype(np.uint64),
                value=column[places].astype(np.float64),
            )
    local = _local_sectors(outcome)
    if local is not None:
        metrics[local.name] = local
    return metrics


def _local_sectors(outcome: Outcome) -> PcMetric | None:
    """Sectors of local memory, whose layout puts the words of a warp's lanes side by side."""
    threads = _scaled(outcome, outcome.results.threads)
    places = [
        place
        for place, instruction in sorted(outcome.lowered.instructions.items())
        if instruction.info.space is MemorySpace.LOCAL and threads[place]
    ]
    if not places:
        return None
    indices = np.array(places, dtype=np.int64)
    return PcMetric(
        name="memory_l2_theoretical_sectors_local",
        section=np.zeros(len(indices), dtype=np.uint16),
        pc=(indices * INSTRUCTION_BYTES).astype(np.uint64),
        value=threads[indices] * outcome.lowered.code.width[indices] / SECTOR_BYTES,
    )


def metrics_of(outcome: Outcome) -> dict[str, MetricValue]:
    """Of the whole launch; how long it takes only where it ended."""
    share, number, traffic = outcome.share, outcome.sm.number, outcome.sm.traffic
    active = max(1.0, float(traffic[state.ACTIVE_CYCLES]))
    schedulers = outcome.machine.sm.schedulers.value
    issue = float(number[state.INSTRUCTIONS]) / active / schedulers
    warps = float(traffic[state.WARP_CYCLES]) / active
    busy = min(1.0, outcome.config.blocks / share.sms)
    cycles, elapsed = outcome.cycles, outcome.elapsed_cycles
    running = cycles / elapsed if cycles and elapsed else 1.0  # of the elapsed time
    result: dict[str, MetricValue] = {
        "smsp__issue_active.avg.per_cycle_active": issue,
        "smsp__issue_active.avg.pct_of_peak_sustained_active": 100.0 * issue,
        "sm__warps_active.avg.per_cycle_active": warps,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100.0
        * warps
        / outcome.machine.sm.max_warps.value,
        "smsp__pcsamp_interval_cycles": int(number[state.INTERVAL_NOW]),
        "smsp__pcsamp_sample_count": int(number[state.SAMPLES]),
        "launch__registers_per_thread": share.registers,
        "launch__waves_per_multiprocessor": outcome.config.blocks
        / share.sms
        / (share.occupancy.blocks_per_sm or 1),
        "dram__bytes.sum.pct_of_peak_sustained_elapsed": 100.0
        * running
        * float(traffic[state.DRAM_MOVED])
        / active
        / float(outcome.sm.real[state.DRAM_RATE]),
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 100.0
        * running
        * busy
        * float(traffic[state.L1_PASSES])
        / active,
        # By what L2 takes in or by what it gives, whichever takes longer.
        "lts__throughput.avg.pct_of_peak_sustained_elapsed": 100.0
        * running
        * busy
        * float(traffic[state.L2_BUSY])
        / active,
    }
    result |= _pipes(outcome, active * schedulers)
    # Of the whole grid, as counters of caches and DRAM are.
    scale = outcome.config.blocks / len(share.blocks) / SECTOR_BYTES
    written = float(traffic[state.DRAM_WRITTEN])
    result |= {
        "lts__t_sectors_srcunit_tex.sum": float(traffic[state.L2_MOVED]) * scale,
        "dram__sectors_read.sum": (float(traffic[state.DRAM_MOVED]) - written) * scale,
        "dram__sectors_write.sum": written * scale,
    }
    result |= _hit_rates(outcome) | _atomic_slices(outcome, active / running)
    if cycles is not None and elapsed is not None:
        result["sm__cycles_active.avg"] = cycles * busy
        result["sm__cycles_elapsed.max"] = elapsed
        result["gpu__time_duration.sum"] = elapsed / outcome.device.clock_hz * 1e9
    return result


def _atomic_slices(outcome: Outcome, elapsed: float) -> dict[str, MetricValue]:
    """How busy the fullest slice of L2 is with atomic operations, and one on average, in percent."""
    taken = outcome.sm.hot[:, state.HOT_TAKEN]
    timing, _ = timing_of(outcome.program.arch)
    percent = 100.0 * taken * timing.atomic_cycles / elapsed
    return {
        f"lts__d_atomic_input_cycles_active.{name}.pct_of_peak_sustained_elapsed": float(value)
        for name, value in (("max", percent.max()), ("avg", percent.mean()))
        if taken.any()
    }


def _hit_rates(outcome: Outcome) -> dict[str, MetricValue]:
    """Of caches, where most of what went through them was found by its address."""
    level = outcome.results.level.sum(axis=1)
    result: dict[str, MetricValue] = {}
    if level[state.REQUESTS] < _MOST * (level[state.REQUESTS] + level[state.UNKNOWN_REQUESTS]):
        return result
    for name, found, all_sectors in (
        ("l1tex__t_sector_hit_rate.pct", state.L1_FOUND, state.L1_SECTORS),
        ("lts__t_sector_hit_rate.pct", state.L2_FOUND, state.TO_L2),
    ):
        if level[all_sectors]:
            result[name] = 100.0 * float(level[found]) / float(level[all_sectors])
    return result


def _pipes(outcome: Outcome, available: float) -> dict[str, MetricValue]:
    """How busy each pipe was, in percent of the cycles that its schedulers had."""
    code = outcome.lowered.code
    busy = outcome.results.executed.sum(axis=0) * code.interval
    return {
        f"{_PIPE_METRICS[unit]}.avg.pct_of_peak_sustained_active": 100.0
        * float(busy[code.unit == unit].sum())
        / available
        for unit in _PIPE_METRICS
        if (code.unit == unit).any()
    }
