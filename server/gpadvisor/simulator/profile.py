# SPDX-License-Identifier: Apache-2.0
"""A modelled profile of one launch, shaped like a measured one, and what really held the warps up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import CancelledError
from gpadvisor.machine.timing import SimulatedDevice, timing_of
from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.instruction import Instruction, MemorySpace, OpcodeClass
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    Device,
    Evidence,
    KernelProfile,
    Launch,
    MetricValue,
    PcCounts,
    PcMetric,
    PcSamples,
    Profile,
    Sampling,
)
from gpadvisor.model.program import Function, Program
from gpadvisor.model.stalls import stall_reason
from gpadvisor.simulator import state
from gpadvisor.simulator.configuration import SimulationConfig
from gpadvisor.simulator.control import kernel_line, together
from gpadvisor.simulator.engine import run
from gpadvisor.simulator.launch import Share, find_kernel, real_parameters, share_of_sm, whole_parameters
from gpadvisor.simulator.lowered import Lowered, packed
from gpadvisor.simulator.lowering import lower
from gpadvisor.simulator.resources import Unit
from gpadvisor.simulator.state import Machine, Results

COLLECTOR: Final = "simulator"
_TAIL_REPEATS: Final = 3
"""With more repeats of the full waves than this, samples of the last partial wave are left out."""
_ACCESSING: Final = frozenset(
    {OpcodeClass.LOAD, OpcodeClass.STORE, OpcodeClass.ATOMIC, OpcodeClass.REDUCTION}
)
_SHOWN_ASSUMPTIONS: Final = 40
_SECTOR_BYTES: Final = 32
_MOST_COUNTED: Final = 2.0**63
"""The largest grids run more instructions than a column of counts holds."""
_TURNS: Final = 100_000
"""Of the inner loop between two looks at the world, some tens of milliseconds."""
_PIPE_METRICS: Final = {
    Unit.ALU: "sm__pipe_alu_cycles_active",
    Unit.FMA: "sm__pipe_fma_cycles_active",
    Unit.FP16: "sm__pipe_fp16_cycles_active",
    Unit.FP64: "sm__pipe_fp64_cycles_active",
    Unit.TENSOR: "sm__pipe_tensor_cycles_active",
    Unit.XU: "sm__inst_executed_pipe_xu",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """For tests: sampled stalls with the instruction that the machine itself was waiting for."""

    pc: NDArray[np.int64]  # of the sampled instruction
    reason: NDArray[np.int64]  # index into the profile's reasons
    cause: NDArray[np.int64]  # Pc of what held it up, -1 where nothing did
    samples: NDArray[np.int64]
    latency: NDArray[np.int64]
    holders: tuple[frozenset[int], ...]
    """By row, Pcs of all that held the warp in this wait: what the same counter waited for when it began.

    The cause is one of them. Rows that differ in this alone stand apart.
    """


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """The outcome of one simulated launch."""

    profile: KernelProfile
    find_truth: Callable[[], Truth]
    cycles: float | None  # of the whole launch; None where the run was cut off
    simulated_cycles: int  # of one SM, as far as simulated
    duration_seconds: float | None
    assumptions: tuple[str, ...]
    instructions: int  # warp-level ones that were simulated
    blocks: int  # that were simulated
    resident_blocks: int

    @cached_property
    def truth(self) -> Truth:
        """For tests: what really held the warps up; put together when it is first asked for."""
        return self.find_truth()

    def as_profile(self, cubin: bytes | None = None, listing: bytes | None = None) -> Profile:
        """A profile of this launch alone, with the machine code where given."""
        binary = self.profile.binary
        digest = hashlib.sha256(repr((self.profile.launch, self.assumptions)).encode())
        for column in (self.profile.samples.pc, self.profile.samples.total, self.profile.samples.latency):
            digest.update(column.tobytes())
        return Profile(
            sha256=digest.hexdigest(),
            collector=COLLECTOR,
            collector_version=None,
            command=None,
            host=None,
            created=None,
            kernels=(self.profile,),
            binaries={} if binary is None or cubin is None else {binary: cubin},
            disassemblies={} if binary is None or listing is None else {binary: listing},
            problems=(),
        )


def simulate(
    program: Program,
    kernel: str,
    machine: MachineModel,
    config: SimulationConfig,
    *,
    binary: str | None = None,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Simulation:
    """Run one launch of a kernel on the model of an SM.

    Args:
        program: the analysed cubin.
        kernel: mangled or plain name.
        machine: table of the architecture.
        config: the launch, and what is assumed of it.
        binary: sha256 of the cubin, for the profile.
        progress: told several times a second which share is done, at most: of the blocks, or of a limit.
        cancelled: asked as often; True stops the run.

    Raises:
        CancelledError: it was stopped.
        UsageError: no such kernel, or a launch that cannot run.
        UnknownArchitectureError: the simulator has no timing for this architecture.
    """
    function = find_kernel(program, kernel)
    timing, device = timing_of(program.arch)
    share = share_of_sm(machine, program.facts.get(function.name), device, config)
    lowered = lower(program, function, machine, timing, config)
    whole = whole_parameters(machine, timing, share, config, lowered.entry)
    sm = state.empty_machine(
        lowered, whole, real_parameters(timing, device, share, config), share.blocks, config.seed
    )
    sm.number[state.INTERVAL_NOW] = config.interval_cycles
    results = state.empty_results(lowered)
    values = state.empty_values(lowered, int(whole[state.WARPS]))
    code, status = packed(lowered.code), state.RUNNING_STILL
    while status == state.RUNNING_STILL:
        run(code, lowered.slice, sm, values, results, _TURNS)
        status = int(sm.number[state.STATUS])
        if progress is not None:
            progress(_share_done(sm.number, share, config))
        if cancelled is not None and cancelled():
            raise CancelledError(f"the simulation of {function.demangled} was cancelled")
    return _Outcome(
        program, function, machine, config, share, device, lowered, sm, results, binary
    ).simulation()


def _share_done(number: NDArray[np.int64], share: Share, config: SimulationConfig) -> float:
    """The share of the blocks that have ended, or of a limit where that is nearer."""
    return max(
        int(number[state.FINISHED_BLOCKS]) / len(share.blocks),
        int(number[state.NOW]) / config.max_cycles,
        int(number[state.INSTRUCTIONS]) / config.max_instructions,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """A finished run, to be put into words and columns."""

    program: Program
    function: Function
    machine: MachineModel
    config: SimulationConfig
    share: Share
    device: SimulatedDevice
    lowered: Lowered
    sm: Machine
    results: Results
    binary: str | None

    @property
    def finished(self) -> bool:
        """Whether all blocks of the share ended."""
        return int(self.sm.number[state.STATUS]) == state.DONE

    @property
    def cycles(self) -> float | None:
        """Cycles of the whole launch: the simulated ones, and repeats of the full wave."""
        if not self.finished:
            return None
        full = int(self.sm.number[state.FULL_WAVE_AT])
        waves = max(1, len(self.share.blocks) // self.share.resident)
        last = int(self.sm.number[state.NOW])
        per_wave = full if waves == 1 else max(full, 1)
        return float(last + self.share.repeats * per_wave)

    def simulation(self) -> Simulation:
        """Everything about the run."""
        assumptions = self._assumptions()
        sections = (self.function.section,)
        samples = self._samples()
        cycles = self.cycles
        seconds = None if cycles is None else cycles / self.device.clock_hz
        metrics = self._metrics(cycles)
        metrics["simulator__assumptions"] = json.dumps(assumptions)
        profile = KernelProfile(
            launch=self._launch(seconds),
            device=self._device(),
            evidence=Evidence.MODELLED,
            binary=self.binary,
            sections=sections,
            reasons=tuple(stall_reason(name) for name in state.REASONS),
            samples=samples,
            counts=self._counts(),
            pc_metrics=self._pc_metrics(),
            metrics=metrics,
            sampling=self._sampling(),
            rules=(),
            call_stack=(),
            problems=self._problems(assumptions),
        )
        return Simulation(
            profile=profile,
            find_truth=self._truth,
            cycles=cycles,
            simulated_cycles=int(self.sm.number[state.NOW]),
            duration_seconds=seconds,
            assumptions=assumptions,
            instructions=int(self.sm.number[state.INSTRUCTIONS]),
            blocks=len(self.share.blocks),
            resident_blocks=self.share.resident,
        )

    # ---- samples ----

    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Samples as they were taken, and how often each counts."""
        rows = self.results.sample[: int(self.sm.number[state.SAMPLES])].astype(np.int64)
        repeats = self.share.repeats
        weight = np.ones(len(rows), dtype=np.int64)
        if repeats:
            # The full waves come again and again, the last partial one only once.
            tail = rows[:, state.S_PHASE] == 1
            weight = np.where(
                tail, 0 if repeats > _TAIL_REPEATS else 1, 1 if repeats > _TAIL_REPEATS else 1 + repeats
            )
        return rows, weight

    def _samples(self) -> PcSamples:
        rows, weight = self._rows()
        keys = np.stack([rows[:, state.S_PC], rows[:, state.S_REASON]])
        unique, total_of, latency_of = _summed(keys, weight, weight * rows[:, state.S_LATENCY])
        return PcSamples(
            section=np.zeros(unique.shape[1], dtype=np.uint16),
            pc=(unique[0] * INSTRUCTION_BYTES).astype(np.uint64),
            reason=unique[1].astype(np.uint8),
            total=total_of.astype(np.uint64),
            latency=latency_of.astype(np.uint64),
        )

    def _truth(self) -> Truth:
        rows, weight = self._rows()
        cause, late = self._late_causes(rows)
        held, sets = self._holders(rows, cause, late)
        keys = np.stack([rows[:, state.S_PC], rows[:, state.S_REASON], cause, held])
        unique, total_of, latency_of = _summed(keys, weight, weight * rows[:, state.S_LATENCY])
        return Truth(
            pc=unique[0] * INSTRUCTION_BYTES,
            reason=unique[1],
            cause=np.where(unique[2] < 0, -1, unique[2] * INSTRUCTION_BYTES),
            samples=total_of,
            latency=latency_of,
            holders=tuple(sets[one] for one in unique[3].tolist()),
        )

    def _late_causes(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Causes of samples, and whose: at a barrier, what held up the last warp to come, or the barrier.

        Where the run ended before the barrier opened, nobody knows who would have been the last.
        """
        whose = np.full(len(rows), -1, dtype=np.int64)
        cause = rows[:, state.S_CAUSE].copy()
        at_barrier = np.flatnonzero(cause < -1)
        late = self.results.late[: int(self.sm.number[state.LATE])].astype(np.int64)
        held = {(serial, warp): by for serial, warp, by in late.tolist()}
        out: dict[int, list[tuple[int, int]]] = {}
        for serial, warp, by in late.tolist():
            out.setdefault(serial, []).append((warp, by))
        for row in at_barrier.tolist():
            arrived, last = self.results.barrier[-2 - cause[row]].tolist()
            serial = int(rows[row, state.S_SERIAL])
            if arrived < 0:  # the run was cut off before: known where one warp alone was missing
                missing = out.get(serial, ())
                last, arrived = missing[0] if len(missing) == 1 else (-1, -1)
            cause[row] = held.get((serial, last), arrived)
            whose[row] = last
        return cause, whose

    def _holders(
        self, rows: NDArray[np.int64], cause: NDArray[np.int64], whose: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[frozenset[int]]]:
        """By sample, what held the warp in that wait, as a place in a list of sets of Pcs."""
        together: dict[tuple[int, int], set[int]] = {}
        for serial, warp, at in self.results.holders[: int(self.sm.number[state.HOLDERS])].tolist():
            together.setdefault((serial, warp), set()).add(at)
        places: dict[frozenset[int], int] = {}
        found = np.zeros(len(rows), dtype=np.int64)
        serials = rows[:, state.S_SERIAL]
        for row, key in enumerate(zip(serials.tolist(), whose.tolist(), cause.tolist(), strict=True)):
            others = together.get(key[:2], ())
            own = frozenset(others if key[2] in others else [key[2]] if key[2] >= 0 else ())
            found[row] = places.setdefault(own, len(places))
        return found, [frozenset(INSTRUCTION_BYTES * at for at in one) for one in places]

    def _sampling(self) -> Sampling:
        interval = int(self.sm.number[state.INTERVAL_NOW])
        cut = not self.finished
        return Sampling(
            interval_cycles=interval,
            buffer_bytes=None,
            dropped_samples=0,
            truncated=cut,
            truncation_evidence=self._cut() if cut else None,
            expected_samples=None,
        )

    # ---- counts ----

    def _scaled(self, phases: NDArray[np.generic]) -> NDArray[np.float64]:
        """Counts of the whole grid from those of one SM."""
        one = phases[0].astype(np.float64) * (1 + self.share.repeats) + phases[1]
        return np.asarray(np.minimum(one * (self.config.blocks / self.share.total), _MOST_COUNTED))

    def _counts(self) -> PcCounts:
        warps, threads = self._scaled(self.results.executed), self._scaled(self.results.threads)
        places = np.array(sorted(self.lowered.instructions), dtype=np.int64)
        return PcCounts(
            section=np.zeros(len(places), dtype=np.uint16),
            pc=(places * INSTRUCTION_BYTES).astype(np.uint64),
            warps=np.rint(warps[places]).astype(np.uint64),
            threads=np.rint(threads[places]).astype(np.uint64),
        )

    def _pc_metrics(self) -> Mapping[str, PcMetric]:
        """Sectors and wavefronts where addresses were followed or told; nothing where they were guessed."""
        names = (
            "memory_l2_theoretical_sectors_global",
            "memory_l2_theoretical_sectors_global_ideal",
            "memory_l1_wavefronts_shared",
            "memory_l1_wavefronts_shared_ideal",
            "memory_l1_tag_requests_global",
        )
        executed = self.results.executed.sum(axis=0)
        scale = np.divide(
            self._scaled(self.results.executed), executed, out=np.zeros(len(executed)), where=executed > 0
        )
        found = {}
        for name, column in zip(names, self.results.sectors * scale, strict=True):
            places = np.flatnonzero(column)
            if len(places):
                found[name] = PcMetric(
                    name=name,
                    section=np.zeros(len(places), dtype=np.uint16),
                    pc=(places * INSTRUCTION_BYTES).astype(np.uint64),
                    value=column[places].astype(np.float64),
                )
        local = self._local_sectors()
        if local is not None:
            found[local.name] = local
        return found

    def _local_sectors(self) -> PcMetric | None:
        """Sectors of local memory, whose layout puts the words of a warp's lanes side by side."""
        threads = self._scaled(self.results.threads)
        places = [
            place
            for place, instruction in sorted(self.lowered.instructions.items())
            if instruction.info.space is MemorySpace.LOCAL and threads[place]
        ]
        if not places:
            return None
        at = np.array(places, dtype=np.int64)
        return PcMetric(
            name="memory_l2_theoretical_sectors_local",
            section=np.zeros(len(at), dtype=np.uint16),
            pc=(at * INSTRUCTION_BYTES).astype(np.uint64),
            value=threads[at] * self.lowered.code.width[at] / _SECTOR_BYTES,
        )

    def _metrics(self, cycles: float | None) -> dict[str, MetricValue]:
        share, number, traffic = self.share, self.sm.number, self.sm.traffic
        active = max(1.0, float(traffic[state.ACTIVE_CYCLES]))
        schedulers = self.machine.sm.schedulers.value
        issue = float(number[state.INSTRUCTIONS]) / active / schedulers
        warps = float(traffic[state.WARP_CYCLES]) / active
        busy = min(1.0, self.config.blocks / share.sms)
        found: dict[str, MetricValue] = {
            "smsp__issue_active.avg.per_cycle_active": issue,
            "smsp__issue_active.avg.pct_of_peak_sustained_active": 100.0 * issue,
            "sm__warps_active.avg.per_cycle_active": warps,
            "sm__warps_active.avg.pct_of_peak_sustained_active": 100.0
            * warps
            / self.machine.sm.max_warps.value,
            "smsp__pcsamp_interval_cycles": int(number[state.INTERVAL_NOW]),
            "smsp__pcsamp_sample_count": int(number[state.SAMPLES]),
            "launch__registers_per_thread": share.registers,
            "launch__waves_per_multiprocessor": self.config.blocks
            / share.sms
            / (share.occupancy.blocks_per_sm or 1),
            "dram__bytes.sum.pct_of_peak_sustained_elapsed": 100.0
            * float(traffic[state.DRAM_MOVED])
            / active
            / float(self.sm.real[state.DRAM_RATE]),
            "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 100.0
            * busy
            * float(traffic[state.L1_PASSES])
            / active,
            "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 100.0
            * busy
            * float(traffic[state.L2_MOVED])
            / active
            / float(self.sm.real[state.L2_RATE]),
        }
        found |= self._pipes(active * schedulers)
        # Of the whole grid, as counters of caches and DRAM are.
        scale = self.config.blocks / len(share.blocks) / _SECTOR_BYTES
        written = float(traffic[state.DRAM_WRITTEN])
        found |= {
            "lts__t_sectors_srcunit_tex.sum": float(traffic[state.L2_MOVED]) * scale,
            "dram__sectors_read.sum": (float(traffic[state.DRAM_MOVED]) - written) * scale,
            "dram__sectors_write.sum": written * scale,
        }
        if cycles is not None:
            found["sm__cycles_active.avg"] = cycles * busy
            found["gpu__time_duration.sum"] = cycles / self.device.clock_hz * 1e9
        return found

    def _pipes(self, available: float) -> dict[str, MetricValue]:
        """How busy each pipe was, in percent of the cycles that its schedulers had."""
        code = self.lowered.code
        busy = self.results.executed.sum(axis=0) * code.interval
        return {
            f"{_PIPE_METRICS[unit]}.avg.pct_of_peak_sustained_active": 100.0
            * float(busy[code.unit == unit].sum())
            / available
            for unit in _PIPE_METRICS
            if (code.unit == unit).any()
        }

    # ---- words ----

    def _launch(self, seconds: float | None) -> Launch:
        return Launch(
            index=0,
            kernel=self.function.name,
            demangled=self.function.demangled,
            grid=self.config.grid,
            block=self.config.block,
            cluster=None,
            registers_per_thread=self.share.registers,
            static_shared_bytes=self.share.static_shared,
            dynamic_shared_bytes=self.config.dynamic_shared_bytes,
            driver_shared_bytes=self.machine.sm.reserved_shared_bytes_per_block.value,
            carveout_shared_bytes=None,
            duration_ns=None if seconds is None else seconds * 1e9,
            context=None,
            stream=None,
            failed=False,
        )

    def _device(self) -> Device:
        sm = self.machine.sm
        return Device(
            name=f"modelled {self.program.arch} ({self.device.name})",
            arch=self.program.arch,
            sms=self.share.sms,
            clock_hz=self.device.clock_hz,
            max_warps_per_sm=sm.max_warps.value,
            schedulers_per_sm=sm.schedulers.value,
            registers_per_sm=sm.registers.value,
            shared_bytes_per_sm=sm.shared_bytes.value,
            l2_bytes=self.device.l2_bytes,
        )

    def _assumptions(self) -> tuple[str, ...]:
        config, share = self.config, self.share
        found = [
            f"modelled: one SM of {share.sms}, {len(share.blocks)} of its {share.total} blocks simulated"
            + (f", {share.repeats} more full waves taken to be like the first" if share.repeats else ""),
        ]
        found.append(
            f"global accesses hit L1 with {config.l1_hit_rate:.0%}, L2 with {config.l2_hit_rate:.0%}; "
            f"local ones hit L1 with {config.local_hit_rate:.0%}"
        )
        if self._lacks_shared():
            found.append("no size is stated for the dynamic shared memory that the code uses")
        guessed = self._guessed_addresses()
        if guessed:
            found.append(f"neighbouring lanes access neighbouring words {guessed}")
        undecided = np.flatnonzero(self.results.undecided)
        decided = self.lowered.decisions
        found += together(decided[place] for place in undecided.tolist() if place in decided)
        found += self.lowered.notes
        if self.sm.number[state.FORCED]:
            found.append(
                "warps that waited for each other for ever were let go "
                f"{int(self.sm.number[state.FORCED])} times"
            )
        deep = int(self.sm.number[state.TOO_DEEP])
        if deep:
            found.append(f"{deep} calls deeper than {state.CALLS} inside one another returned at once")
        return tuple(dict.fromkeys(found))

    def _lacks_shared(self) -> bool:
        return not (self.share.static_shared or self.config.dynamic_shared_bytes) and any(
            one.info.space is MemorySpace.SHARED and one.info.opclass in _ACCESSING
            for one in self.lowered.instructions.values()
        )

    def _guessed_addresses(self) -> str:
        executed = self.results.executed.sum(axis=0)
        lines = set()
        for function in self.lowered.functions:
            first = function.start // INSTRUCTION_BYTES
            for index, instruction in enumerate(function.instructions):
                place = first + index
                if executed[place] and _guessed(instruction, self.results, place):
                    entry = function.lines[index]
                    lines.add(f"line {kernel_line(entry)}" if entry else f"{int(instruction.pc):#x}")
        if not lines:
            return ""
        shown = sorted(lines, key=lambda text: (len(text), text))[:8]
        return f"where addresses do not follow from the launch: {', '.join(shown)}" + (
            f" and {len(lines) - 8} more" if len(lines) > 8 else ""
        )

    def _cut(self) -> str:
        config = self.config
        if int(self.sm.number[state.STATUS]) == state.CYCLE_LIMIT:
            return f"the kernel had not ended after {config.max_cycles:,} cycles"
        return f"the kernel had not ended after {config.max_instructions:,} warp instructions"

    def _problems(self, assumptions: tuple[str, ...]) -> tuple[Problem, ...]:
        shown = assumptions[:_SHOWN_ASSUMPTIONS]
        found = [Problem(ProblemCode.COMPILE_ASSUMPTION, text) for text in shown]
        if len(assumptions) > len(shown):
            text = f"{len(assumptions) - len(shown)} further assumptions are not listed"
            found.append(Problem(ProblemCode.COMPILE_ASSUMPTION, text))
        if not self.finished:
            text = f"{self._cut()} under these assumptions: what it did until then is shown, and no duration"
            found.append(Problem(ProblemCode.TRUNCATED_SAMPLES, text))
        for opcode, count in self.lowered.unknown.items():
            text = (
                f"opcode {opcode} is not known ({count} instructions): it is simulated as an ALU instruction"
            )
            found.append(Problem(ProblemCode.UNKNOWN_OPCODE, text))
        return tuple(found)


def _guessed(instruction: Instruction, results: Results, place: int) -> bool:
    """Whether the pattern of an access had to be guessed."""
    info = instruction.info
    if info.opclass not in _ACCESSING or info.space is None:
        return False
    return info.space.value in {"global", "generic", "shared"} and not results.sectors[:, place].any()


def _summed(
    keys: NDArray[np.int64], total: NDArray[np.int64], latency: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Equal keys once, with their sums; rows without weight are left out."""
    kept = total > 0
    found = keys[:, kept]
    if not found.shape[1]:
        return found, total[kept], latency[kept]
    # One number for each column of keys sorts many times faster than columns do.
    least = found.min(axis=1, keepdims=True)
    sizes = tuple((found.max(axis=1) - least[:, 0] + 1).tolist())
    numbers, inverse = np.unique(np.ravel_multi_index(tuple(found - least), sizes), return_inverse=True)
    unique = np.stack(np.unravel_index(numbers, sizes)) + least
    count = len(numbers)
    return (
        unique,
        np.bincount(inverse, weights=total[kept], minlength=count).astype(np.int64),
        np.bincount(inverse, weights=latency[kept], minlength=count).astype(np.int64),
    )
