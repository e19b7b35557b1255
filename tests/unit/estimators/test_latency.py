# SPDX-License-Identifier: Apache-2.0
"""What a warp does one after the other, and where its loads are answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests import assembly
from tests import hand_made as made

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.latency import loads_in_turn, waits_for_dram
from gpadvisor.evidence.traffic import kernel_traffic
from gpadvisor.machine.timing import timing_of
from gpadvisor.model.profile import PcMetric

CODE = """
top: LDG.E R4, [R2] | S4 W0
    FADD R7, R7, R4 | S4 ?0
    LDG.E R5, [R2+0x4] | S4 W0
    FADD R7, R7, R5 | S4 ?0
    @P0 BRA top | S4
    EXIT
"""
PASSES, BLOCKS, CYCLES = 100, 16, 1e6
WARPS = BLOCKS * 8
SECTORS = "memory_l2_theoretical_sectors_global"


def _context(**metrics: float) -> KernelContext:
    """16 blocks of 8 warps, each of which loads 200 times one line."""
    program = assembly.program_of(assembly.function_of(CODE))
    counted = assembly.profile_of({}, counts=dict.fromkeys(range(5), PASSES * WARPS) | {5: WARPS})
    sectors = PcMetric(
        name=SECTORS,
        section=np.zeros(2, dtype=np.uint16),
        pc=np.array([0, 32], dtype=np.uint64),
        value=np.full(2, 4.0 * PASSES * WARPS),
    )
    profile = replace(
        counted,
        launch=made.launch(grid=(BLOCKS, 1, 1)),
        pc_metrics={SECTORS: sectors, f"{SECTORS}_ideal": sectors},
        metrics={"sm__cycles_elapsed.max": CYCLES, **metrics},
    )
    return replace(made.context(of=program, measured=profile), kernel=program.functions[0].name)


def _share(**metrics: float) -> float:
    context = _context(**metrics)
    assert context.profile is not None
    traffic = kernel_traffic(context.program, context.kernel, context.profile)
    assert traffic is not None
    return waits_for_dram(context, context.profile, traffic)


ASKED = 8.0 * PASSES * WARPS


def test_every_wait_of_a_pass_takes_a_latency_of_its_own() -> None:
    context = _context()
    assert context.profile is not None
    timing, _ = timing_of(assembly.ARCH)
    first, last, slowest = loads_in_turn(context, context.profile)
    assert first == pytest.approx(2 * PASSES * timing.l2_cycles[0] / CYCLES)
    assert last == pytest.approx(2 * PASSES * timing.dram_cycles[0] / CYCLES)
    from_dram = loads_in_turn(context, context.profile, 1.0)
    assert from_dram == pytest.approx((last, slowest, slowest))


def test_sectors_that_dram_sends_are_waited_for() -> None:
    assert _share() == 0.0
    assert _share(**{"dram__sectors_read.sum": ASKED}) == 1.0
    assert _share(**{"dram__sectors_read.sum": ASKED / 2}) == pytest.approx(0.5)


def test_without_the_count_the_rate_of_dram_tells() -> None:
    """As in reports without the tables of memory; the launch takes a millisecond."""
    rate = ASKED / 4 * 32 / 1e-3
    assert _share(**{"dram__bytes.sum.per_second": rate}) == pytest.approx(0.25)
