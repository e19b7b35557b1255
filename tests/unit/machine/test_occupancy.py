# SPDX-License-Identifier: Apache-2.0
"""Occupancy by hand: limiters, small grids, carveouts, and what a profile knows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import hand_made as made

from gpadvisor import machine
from gpadvisor.analyzer.occupancy import kernel_occupancy, occupancy
from gpadvisor.model.program import KernelFacts

SM_86 = machine.load("sm_86").sm


def test_registers_limit() -> None:
    # 64 registers: 2048 per warp, 8 warps per partition, 32 per SM, so 4 blocks of 8 warps.
    found = occupancy(SM_86, threads_per_block=256, registers_per_thread=64, shared_bytes=0)
    assert (found.blocks_per_sm, found.warps_per_sm, found.limiter) == (4, 32, "registers")
    assert found.theoretical == pytest.approx(32 / 48)
    assert found.limits[0] == ("registers", 4)


def test_a_full_sm_has_no_limiter() -> None:
    found = occupancy(SM_86, threads_per_block=256, registers_per_thread=32, shared_bytes=0)
    assert (found.theoretical, found.limiter) == (1.0, None)


def test_two_limits_at_once() -> None:
    found = occupancy(SM_86, threads_per_block=768, registers_per_thread=64, shared_bytes=60_000)
    assert found.limiter == "registers, shared memory"


def test_a_small_grid_limits() -> None:
    found = occupancy(
        SM_86, threads_per_block=256, registers_per_thread=32, shared_bytes=0, blocks=100, sms=82
    )
    assert (found.blocks_per_sm, found.limiter) == (2, "grid")
    full = occupancy(
        SM_86, threads_per_block=256, registers_per_thread=32, shared_bytes=0, blocks=9999, sms=82
    )
    assert full.limiter is None


def test_a_block_that_does_not_fit() -> None:
    found = occupancy(SM_86, threads_per_block=1024, registers_per_thread=128, shared_bytes=0)
    assert (found.blocks_per_sm, found.theoretical, found.limiter) == (0, 0.0, "registers")


def test_a_carveout_as_configured_limits() -> None:
    small = occupancy(
        SM_86, threads_per_block=128, registers_per_thread=16, shared_bytes=7168, carveout_bytes=16384
    )
    assert (small.blocks_per_sm, small.limiter) == (2, "shared memory")


def test_barriers_limit_on_hopper() -> None:
    found = occupancy(
        machine.load("sm_90").sm,
        threads_per_block=32,
        registers_per_thread=16,
        shared_bytes=0,
        block_barriers=16,
    )
    assert (found.blocks_per_sm, found.limiter) == (4, "barriers")


def test_the_launch_knows_more_than_the_code() -> None:
    facts = KernelFacts(
        registers_per_thread=64, static_shared_bytes=0, stack_bytes=0, max_threads_per_block=256,
        required_block=(16, 16, 1), min_blocks_per_sm=None, uses_barriers=None,
    )  # fmt: skip
    model = machine.load("sm_86")
    measured = made.profile({"sm__warps_active.avg.pct_of_peak_sustained_active": 90.0})
    assert kernel_occupancy(model, facts, None).blocks_per_sm == 4
    launched = kernel_occupancy(model, facts, measured)
    assert (launched.theoretical, launched.achieved) == (1.0, 0.9)
    assert kernel_occupancy(model, None, None).theoretical is None
    rate = made.profile({"sm__warps_active.avg.per_cycle_active": 24.0})
    assert kernel_occupancy(model, None, rate).achieved == 0.5


def test_a_configuration_limits_only_where_it_holds_fewer_blocks_than_would_fit() -> None:
    """The driver configures what the blocks need that other resources allow; a program may ask for less."""

    def limits(shared: int, configured: int, more: int = 0) -> tuple[int | None, str | None]:
        launch = made.launch(block=(1024, 1, 1), static_shared_bytes=shared, carveout_shared_bytes=configured)
        measured = replace(made.profile({}), launch=launch)
        found = kernel_occupancy(machine.load("sm_86"), None, measured, more_shared_bytes=more)
        return found.blocks_per_sm, found.limiter

    assert limits(16384, 32768) == (1, "warps")  # 1024 of 1536 threads
    assert limits(16384, 32768, more=16384) == (1, "warps")
    assert limits(16384, 32768, more=100_000)[0] == 0
    small = replace(made.launch(static_shared_bytes=7168, carveout_shared_bytes=16384), block=(128, 1, 1))
    asked = kernel_occupancy(machine.load("sm_86"), None, replace(made.profile({}), launch=small))
    assert (asked.blocks_per_sm, asked.limiter) == (2, "shared memory")
