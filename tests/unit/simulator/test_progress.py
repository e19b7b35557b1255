# SPDX-License-Identifier: Apache-2.0
"""A running simulation says how far it is, and stops when it is asked to."""

from __future__ import annotations

import _thread
import threading

import pytest
from tests.kernels import KERNELS, compile_kernel
from tests.simulations import fixture_config, program_of, run_fixture, text_program

from gpadvisor import machine
from gpadvisor.errors import CancelledError
from gpadvisor.simulator import SimulationConfig, simulate

pytestmark = [pytest.mark.nvdisasm]

_ENDLESS = """
extern "C" __global__ void k(volatile int* flag, int rounds) {
    while (flag[0] == 0) flag[1] = rounds;
}
"""
_LONG = SimulationConfig(
    grid=(1, 1, 1), block=(256, 1, 1), default_trips=1 << 30, max_cycles=1 << 40, max_instructions=1 << 40
)


def test_progress_goes_up_to_the_end() -> None:
    told: list[float] = []
    kernel = KERNELS["reaction_rates"]
    simulate(
        program_of(compile_kernel("reaction_rates")), kernel.entry, machine.load("sm_80"),
        fixture_config("reaction_rates", max_cycles=400_000), progress=told.append,
    )  # fmt: skip
    assert len(told) > 2
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0, abs=0.01)


def test_watching_changes_nothing() -> None:
    kernel, name = KERNELS["cross_section"], "cross_section"
    watched = simulate(
        program_of(compile_kernel(name)), kernel.entry, machine.load("sm_80"), fixture_config(name),
        progress=[].append, cancelled=lambda: False,
    )  # fmt: skip
    alone = run_fixture(name)
    assert watched.cycles == alone.cycles
    assert watched.profile.samples.total.tobytes() == alone.profile.samples.total.tobytes()


def test_a_kernel_that_never_ends_is_stopped_when_asked() -> None:
    asked = iter([False, False, True])
    with pytest.raises(CancelledError, match="the simulation of k"):
        simulate(text_program(_ENDLESS), "k", machine.load("sm_80"), _LONG, cancelled=lambda: next(asked))


def test_an_interrupt_stops_it() -> None:
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            simulate(text_program(_ENDLESS), "k", machine.load("sm_80"), _LONG)
    finally:
        timer.cancel()
