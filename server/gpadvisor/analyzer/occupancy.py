# SPDX-License-Identifier: Apache-2.0
"""How many blocks and warps an SM holds, and what stops more (as NVIDIA's cuda_occupancy.h has it)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpadvisor.model.machine import MachineModel, SmLimits
from gpadvisor.model.occupancy import Occupancy
from gpadvisor.model.profile import KernelProfile
from gpadvisor.model.program import KernelFacts

WARPS: Final = "warps"
REGISTERS: Final = "registers"
SHARED_MEMORY: Final = "shared memory"
BLOCKS: Final = "blocks"
BARRIERS: Final = "barriers"
GRID: Final = "grid"
NO_LIMIT: Final = 1 << 30
"""Blocks per SM of a resource that the kernel does not use."""


def occupancy(
    sm: SmLimits,
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes: int,
    blocks: int | None = None,
    sms: int | None = None,
    carveout_bytes: int | None = None,
    block_barriers: int | None = None,
) -> Occupancy:
    """The theoretical occupancy of one launch; ``achieved`` is left None.

    Args:
        sm: limits of the architecture.
        threads_per_block: at least 1.
        registers_per_thread: as the compiler reports it, before rounding up.
        shared_bytes: static and dynamic, without what the driver reserves per block.
        blocks: size of the grid.
        sms: number of SMs; with ``blocks``, a grid too small to fill the GPU becomes the limiter.
        carveout_bytes: shared memory configured on the SM; None for the largest.
        block_barriers: named barriers per block; they limit on sm_90 and newer.

    Returns:
        Occupancy whose ``limits`` give the blocks per SM that each resource allows, tightest first, without
        resources that set no limit. ``limiter`` names every resource that allows no more than the result.
    """
    warps = -(-threads_per_block // sm.warp_size.value)
    limits = {
        WARPS: _by_warps(sm, threads_per_block, warps),
        REGISTERS: _by_registers(sm, registers_per_thread, warps),
        SHARED_MEMORY: _by_shared_memory(sm, shared_bytes, carveout_bytes),
        BLOCKS: sm.max_blocks.value,
        BARRIERS: _by_barriers(sm, block_barriers),
    }
    fits = min(limits.values())
    resident = fits
    if blocks is not None and sms is not None and sms > 0 and -(-blocks // sms) < fits:
        limits[GRID] = resident = -(-blocks // sms)  # the fullest SM holds this many
    tightest = tuple(sorted((name for name in limits if limits[name] == resident), key=_ORDER.index))
    warps_per_sm = resident * warps
    share = warps_per_sm / sm.max_warps.value
    full = warps_per_sm >= sm.max_warps.value
    return Occupancy(
        theoretical=share,
        achieved=None,
        limiter=None if full else ", ".join(tightest),
        blocks_per_sm=resident,
        warps_per_sm=warps_per_sm,
        limits=tuple(
            sorted(
                ((n, v) for n, v in limits.items() if v < NO_LIMIT),
                key=lambda row: (row[1], _ORDER.index(row[0])),
            )
        ),
    )


_ORDER: Final = (GRID, REGISTERS, SHARED_MEMORY, WARPS, BLOCKS, BARRIERS)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _by_warps(sm: SmLimits, threads_per_block: int, warps: int) -> int:
    if threads_per_block > sm.max_threads_per_block.value:
        return 0
    return min(sm.max_threads.value // sm.warp_size.value, sm.max_warps.value) // warps


def _by_registers(sm: SmLimits, registers_per_thread: int, warps: int) -> int:
    """Registers are given to whole warps, in each sub-partition of the SM by itself."""
    if registers_per_thread > sm.max_registers_per_thread.value:
        return 0
    per_warp = _round_up(registers_per_thread * sm.warp_size.value, sm.register_allocation_unit.value)
    if per_warp == 0:
        return NO_LIMIT
    partitions = sm.schedulers.value
    return sm.registers.value // partitions // per_warp * partitions // warps


def shared_carveout(sm: SmLimits, shared_bytes: int, blocks: int) -> int:
    """What the driver cuts off for the shared memory of so many blocks; the rest of the data cache is L1."""
    reserved = sm.reserved_shared_bytes_per_block.value
    per_block = _round_up(shared_bytes + reserved, sm.shared_allocation_unit_bytes.value)
    return _carveout(sm, per_block * blocks if shared_bytes else 0)


def _by_shared_memory(sm: SmLimits, shared_bytes: int, carveout_bytes: int | None) -> int:
    reserved = sm.reserved_shared_bytes_per_block.value
    per_block = _round_up(shared_bytes + reserved, sm.shared_allocation_unit_bytes.value)
    if per_block == 0:
        return NO_LIMIT
    if per_block > sm.shared_bytes_per_block.value + reserved:
        return 0
    configured = sm.shared_bytes.value if carveout_bytes is None else _carveout(sm, carveout_bytes)
    if configured < per_block:  # the driver raises a carveout that would not hold one block
        configured = _carveout(sm, per_block)
    return configured // per_block


def _carveout(sm: SmLimits, wanted: int) -> int:
    """The smallest configuration that holds the bytes wanted."""
    return next((size for size in sm.shared_carveouts_bytes.value if size >= wanted), sm.shared_bytes.value)


def _by_barriers(sm: SmLimits, block_barriers: int | None) -> int:
    if sm.block_barriers is None or not block_barriers:
        return NO_LIMIT
    return sm.block_barriers.value // block_barriers


def kernel_occupancy(
    machine: MachineModel,
    facts: KernelFacts | None,
    profile: KernelProfile | None,
    *,
    more_shared_bytes: int = 0,
) -> Occupancy:
    """The occupancy of one launch, as far as known, or with more shared memory in each block.

    Without a launch, that of the block size in the code's launch bounds. The driver configures as much shared
    memory as the blocks need that the other resources allow: what a run had is a limit only where it held
    fewer blocks than the largest configuration would, and none of a changed launch.
    """
    achieved = None if profile is None else achieved_occupancy(profile)
    threads, registers, shared = _launch_facts(facts, profile)
    if not threads or registers is None:
        return Occupancy(
            theoretical=None,
            achieved=achieved,
            limiter=None,
            blocks_per_sm=None,
            warps_per_sm=None,
            limits=(),
        )
    launch = None if profile is None else profile.launch
    configured = None if launch is None or more_shared_bytes else launch.carveout_shared_bytes
    largest, as_run = (
        occupancy(
            machine.sm,
            threads_per_block=threads,
            registers_per_thread=registers,
            shared_bytes=shared + more_shared_bytes,
            blocks=None if launch is None else launch.blocks,
            sms=None if profile is None else profile.device.sms,
            carveout_bytes=carveout,
            block_barriers=None if facts is None else facts.uses_barriers,
        )
        for carveout in (None, configured)
    )
    result = as_run if as_run.blocks < largest.blocks else largest
    return replace(result, achieved=achieved)


def achieved_occupancy(profile: KernelProfile) -> float | None:
    """Measured warps per active cycle as a share of what an SM holds."""
    percent = profile.metric("sm__warps_active.avg.pct_of_peak_sustained_active")
    if percent is not None:
        return percent / 100
    warps, most = profile.metric("sm__warps_active.avg.per_cycle_active"), profile.device.max_warps_per_sm
    return None if warps is None or not most else warps / most


def _launch_facts(
    facts: KernelFacts | None, profile: KernelProfile | None
) -> tuple[int | None, int | None, int]:
    """Threads per block, registers per thread and shared bytes; the launch knows better than the ELF."""
    if profile is not None and not profile.launch.failed:
        launch = profile.launch
        registers = launch.registers_per_thread
        if registers is None and facts is not None:
            registers = facts.registers_per_thread
        shared = (launch.static_shared_bytes or 0) + (launch.dynamic_shared_bytes or 0)
        return launch.threads_per_block, registers, shared
    if facts is None:
        return None, None, 0
    threads = facts.max_threads_per_block
    if facts.required_block is not None:
        x, y, z = facts.required_block
        threads = x * y * z
    return threads, facts.registers_per_thread, facts.static_shared_bytes or 0
