# SPDX-License-Identifier: Apache-2.0
"""A finished run of one SM, as it was left."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.machine.every_gpu import every_gpu
from gpadvisor.machine.timing import SimulatedDevice
from gpadvisor.model.machine import MachineModel
from gpadvisor.model.program import Function, Program
from gpadvisor.simulator import state
from gpadvisor.simulator.configuration import SimulationConfig
from gpadvisor.simulator.launch import Share
from gpadvisor.simulator.lowered import Lowered
from gpadvisor.simulator.state import Machine, Results


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
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
        full, resident = int(self.sm.number[state.FULL_WAVES_AT]), self.share.resident
        interval = int(self.sm.whole[state.LAUNCH_INTERVAL])
        # In further waves no slot waits until those before it have been filled.
        per_wave = max((full - (resident - 1) * interval) / self.share.waves, resident * interval)
        return int(self.sm.number[state.NOW]) + self.share.repeats * per_wave

    @property
    def elapsed_cycles(self) -> float | None:
        """The same with what passes before its first warp and after its last one."""
        cycles = self.cycles
        return None if cycles is None else cycles + every_gpu().launch_gap_ns * 1e-9 * self.device.clock_hz

    def cut(self) -> str:
        """Where the run ended before the kernel did."""
        config = self.config
        if int(self.sm.number[state.STATUS]) == state.CYCLE_LIMIT:
            return f"the kernel had not ended after {config.max_cycles:,} cycles"
        return f"the kernel had not ended after {config.max_instructions:,} warp instructions"
