# SPDX-License-Identifier: Apache-2.0
"""A modelled profile of one launch, shaped like a measured one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import CancelledError
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.profile import (
    Device,
    Evidence,
    KernelProfile,
    Launch,
    Profile,
    Sampling,
)
from gpadvisor.model.program import Program
from gpadvisor.model.stalls import stall_reason
from gpadvisor.simulator import state
from gpadvisor.simulator.assumptions import list_assumptions, list_problems
from gpadvisor.simulator.configuration import SimulationConfig
from gpadvisor.simulator.counters import counts_of, metrics_of, pc_metrics_of
from gpadvisor.simulator.engine import run
from gpadvisor.simulator.launch import (
    DEFAULT_WAVES,
    Share,
    find_kernel,
    real_parameters,
    share_of_sm,
    whole_parameters,
)
from gpadvisor.simulator.lowered import packed
from gpadvisor.simulator.lowering import lower
from gpadvisor.simulator.outcome import Outcome
from gpadvisor.simulator.truth import Truth, samples_of, truth_of

COLLECTOR: Final = "simulator"
_LITTLE: Final = 100_000
"""Instructions of an SM, which take some tens of milliseconds."""
_TURNS: Final = 100_000
"""Of the inner loop between two looks at the world, some tens of milliseconds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulation:
    """The outcome of one simulated launch."""

    profile: KernelProfile
    find_truth: Callable[[], Truth]
    cycles: float | None  # with a warp, of the whole launch; None where the run was cut off
    simulated_cycles: int  # of one SM, as far as simulated
    duration_seconds: float | None  # with what passes before the first warp and after the last one
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
    facts = program.facts.get(function.name)
    lowered = lower(program, function, machine, timing, config)

    def outcome_with(config: SimulationConfig) -> Outcome:
        share = share_of_sm(machine, facts, device, config)
        integers = whole_parameters(machine, timing, device, share, config, lowered.entry)
        sm = state.empty_machine(
            lowered, integers, real_parameters(timing, device, share, config), share.blocks, config.seed
        )
        sm.number[state.INTERVAL_NOW] = config.interval_cycles
        results = state.empty_results(lowered)
        values = state.empty_values(lowered, int(integers[state.WARPS]))
        code, status = packed(lowered.code), state.RUNNING_STILL
        while status == state.RUNNING_STILL:
            run(code, lowered.slice, sm, values, results, _TURNS)
            status = int(sm.number[state.STATUS])
            if progress is not None:
                progress(_share_done(sm.number, share, config))
            if cancelled is not None and cancelled():
                raise CancelledError(f"the simulation of {function.demangled} was cancelled")
        return Outcome(program, function, machine, config, share, device, lowered, sm, results, binary)

    outcome = outcome_with(config)
    if (
        config.waves is None
        and outcome.share.repeats
        and (more := _affordable(outcome.sm.number, config)) > 1
    ):
        # The first waves find empty caches and units: of short blocks more of them are simulated.
        outcome = outcome_with(replace(config, waves=DEFAULT_WAVES * more))
    return _simulation(outcome)


def _affordable(number: NDArray[np.int64], config: SimulationConfig) -> int:
    """How many times this run is still little work, and far from the limits."""
    return min(
        _LITTLE // max(1, int(number[state.INSTRUCTIONS])),
        config.max_cycles // max(1, 2 * int(number[state.NOW])),
    )


def _share_done(number: NDArray[np.int64], share: Share, config: SimulationConfig) -> float:
    """The share of the blocks that have ended, or of a limit where that is nearer."""
    return max(
        int(number[state.FINISHED_BLOCKS]) / len(share.blocks),
        int(number[state.NOW]) / config.max_cycles,
        int(number[state.INSTRUCTIONS]) / config.max_instructions,
    )


def _sampling(outcome: Outcome) -> Sampling:
    interval = int(outcome.sm.number[state.INTERVAL_NOW])
    cut = not outcome.finished
    return Sampling(
        interval_cycles=interval,
        buffer_bytes=None,
        dropped_samples=0,
        truncated=cut,
        truncation_evidence=outcome.cut() if cut else None,
        expected_samples=None,
    )


def _launch(outcome: Outcome, seconds: float | None) -> Launch:
    return Launch(
        index=0,
        kernel=outcome.function.name,
        demangled=outcome.function.demangled,
        grid=outcome.config.grid,
        block=outcome.config.block,
        cluster=None,
        registers_per_thread=outcome.share.registers,
        static_shared_bytes=outcome.share.static_shared,
        dynamic_shared_bytes=outcome.config.dynamic_shared_bytes,
        driver_shared_bytes=outcome.machine.sm.reserved_shared_bytes_per_block.value,
        carveout_shared_bytes=None,
        duration_ns=None if seconds is None else seconds * 1e9,
        context=None,
        stream=None,
        failed=False,
    )


def _device(outcome: Outcome) -> Device:
    sm = outcome.machine.sm
    return Device(
        name=f"modelled {outcome.program.arch} ({outcome.device.name})",
        arch=outcome.program.arch,
        sms=outcome.share.sms,
        clock_hz=outcome.device.clock_hz,
        max_warps_per_sm=sm.max_warps.value,
        schedulers_per_sm=sm.schedulers.value,
        registers_per_sm=sm.registers.value,
        shared_bytes_per_sm=sm.shared_bytes.value,
        l2_bytes=outcome.device.l2_bytes,
    )


def _simulation(outcome: Outcome) -> Simulation:
    """Everything about the run."""
    assumptions = list_assumptions(outcome)
    cycles, elapsed = outcome.cycles, outcome.elapsed_cycles
    seconds = None if elapsed is None else elapsed / outcome.device.clock_hz
    metrics = metrics_of(outcome)
    metrics["simulator__assumptions"] = json.dumps(assumptions)
    profile = KernelProfile(
        launch=_launch(outcome, seconds),
        device=_device(outcome),
        evidence=Evidence.MODELLED,
        binary=outcome.binary,
        sections=(outcome.function.section,),
        reasons=tuple(stall_reason(name) for name in state.REASONS),
        samples=samples_of(outcome),
        counts=counts_of(outcome),
        pc_metrics=pc_metrics_of(outcome),
        metrics=metrics,
        sampling=_sampling(outcome),
        rules=(),
        call_stack=(),
        problems=list_problems(outcome, assumptions),
    )
    return Simulation(
        profile=profile,
        find_truth=partial(truth_of, outcome),
        cycles=cycles,
        simulated_cycles=int(outcome.sm.number[state.NOW]),
        duration_seconds=seconds,
        assumptions=assumptions,
        instructions=int(outcome.sm.number[state.INSTRUCTIONS]),
        blocks=len(outcome.share.blocks),
        resident_blocks=outcome.share.resident,
    )
