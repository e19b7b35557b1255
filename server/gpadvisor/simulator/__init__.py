# SPDX-License-Identifier: Apache-2.0
"""One SM simulated from the real machine code of a kernel: a profile without a GPU, with the true causes."""

from __future__ import annotations

from gpadvisor.machine.timing import SimulatedDevice, Timing, timing_of
from gpadvisor.simulator.configuration import Argument, SimulationConfig, argument_words
from gpadvisor.simulator.profile import Simulation, simulate
from gpadvisor.simulator.truth import Truth

__all__ = [
    "Argument",
    "SimulatedDevice",
    "Simulation",
    "SimulationConfig",
    "Timing",
    "Truth",
    "argument_words",
    "simulate",
    "timing_of",
]
