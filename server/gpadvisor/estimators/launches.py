# SPDX-License-Identifier: Apache-2.0
"""What a launch keeps on the GPU: blocks and warps that are resident, as counted and as the limits allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypedDict

from gpadvisor.analyzer.occupancy import GRID, occupancy
from gpadvisor.estimators import constants
from gpadvisor.estimators.caps import busiest_after
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.elapsed import active_share, elapsed_cycles
from gpadvisor.estimators.utilisation import measured_loads
from gpadvisor.evidence.measured import registers_per_thread, shared_bytes
from gpadvisor.machine import every_gpu
from gpadvisor.model.profile import Evidence, KernelProfile

_HELD = "smsp__warps_active.avg.per_cycle_active"
_HELD_BY_SM = "sm__warps_active.avg.per_cycle_active"


ONE_THREAD: Final = (
    "one thread was launched, or the report does not say how many: nothing tells what others would do"
)


def is_as_short_as_a_launch(profile: KernelProfile) -> bool:
    """Whether most of a kernel's time may be its launch, which no change of its blocks takes away."""
    duration = profile.launch.duration_ns
    return duration is not None and duration < every_gpu().launch_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchShape:
    """A number of blocks of a size, and what an SM holds of them."""

    blocks: int
    threads: int  # in a block
    fits: int  # blocks that an SM has room for
    resident: int  # blocks that the fullest SM holds at once
    busy_sms: int
    limiter: str | None
    warps: float  # resident for each scheduler of the fullest SM

    def waves(self, sms: int) -> float:
        """How many times the grid fills the GPU."""
        return self.blocks / (self.fits * sms) if self.fits else 0.0


class _Sizes(TypedDict):
    warps_now: float
    blocks_now: int
    blocks_new: int
    threads_now: int
    threads_new: int
    busy_sms_now: int
    busy_sms_new: int


def sizes(old: LaunchShape, new: LaunchShape) -> _Sizes:
    """What a ``ParallelTarget`` says of a launch and of the one in its place."""
    return {
        "warps_now": old.warps,
        "blocks_now": old.blocks,
        "blocks_new": new.blocks,
        "threads_now": old.threads,
        "threads_new": new.threads,
        "busy_sms_now": old.busy_sms,
        "busy_sms_new": new.busy_sms,
    }


def shape(context: KernelContext, profile: KernelProfile, blocks: int, threads: int) -> LaunchShape | None:
    """What an SM would hold of a launch; None where registers, the block or the SMs are not known.

    Dynamic shared memory is taken to grow with the block, static shared memory to stay.
    """
    launch, sms, sm = profile.launch, profile.device.sms, context.machine.sm
    registers = registers_per_thread(context.program, context.kernel, profile)
    if not sms or registers is None or threads < 1 or launch.threads_per_block < 1:
        return None
    dynamic = (launch.dynamic_shared_bytes or 0) * threads // launch.threads_per_block
    limits = occupancy(
        sm,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes=(launch.static_shared_bytes or 0) + dynamic,
    )
    fits = limits.blocks
    resident = min(fits, -(-blocks // sms))
    return LaunchShape(
        blocks=blocks,
        threads=threads,
        fits=fits,
        resident=resident,
        busy_sms=min(blocks, sms),
        limiter=limits.limiter,
        warps=resident * -(-threads // sm.warp_size.value) / sm.schedulers.value,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """What lets one more block of the same threads onto an SM; None where that resource allows it already."""

    blocks: int  # on an SM then
    registers: int | None  # the most for each thread
    shared_bytes: int | None  # the most for each block


def next_block(context: KernelContext, profile: KernelProfile) -> Step | None:
    """The step to one more block per SM; None where no registers and shared memory would do."""
    launch, sm = profile.launch, context.machine.sm
    registers = registers_per_thread(context.program, context.kernel, profile)
    if registers is None or launch.threads_per_block < 1:
        return None
    threads, shared = launch.threads_per_block, shared_bytes(context.program, context.kernel, profile) or 0

    def blocks(registers: int, shared: int) -> int:
        return occupancy(
            sm, threads_per_block=threads, registers_per_thread=registers, shared_bytes=shared
        ).blocks

    target_blocks = blocks(registers, shared) + 1
    # Registers and bytes are given in units, so the most that would do is just above a unit's border.
    fewer = next(
        (candidate for candidate in range(registers, 0, -1) if blocks(candidate, 0) >= target_blocks), None
    )
    unit = sm.shared_allocation_unit_bytes.value
    less = next(
        (
            candidate
            for candidate in (shared, *range(shared // unit * unit, -1, -unit))
            if blocks(0, candidate) >= target_blocks
        ),
        None,
    )
    if fewer is None or less is None:
        return None
    return Step(target_blocks, None if fewer == registers else fewer, None if less == shared else less)


def lacks_warps(context: KernelContext) -> bool:
    """Whether the grid gives an SM fewer blocks than it has room for, and no unit is full.

    Nothing but the loads that a thread itself has in flight can fill its waits then.
    """
    full = busiest_after(measured_loads(context), ())
    return (
        context.occupancy.limiter == GRID and full is not None and full.unit.percent < constants.BUSY_PERCENT
    )


def held_warps(context: KernelContext, profile: KernelProfile) -> float | None:
    """Warps that a scheduler of a busy SM held on average, as counted."""
    held = profile.metric(_HELD)
    if held is None:
        by_sm = profile.metric(_HELD_BY_SM)
        held = None if by_sm is None else by_sm / context.machine.sm.schedulers.value
    return held or None


def idle_share(profile: KernelProfile) -> float | None:
    """Of the elapsed cycles of all SMs that had a block the share without a warp; None where not counted.

    Of a simulated launch it is not: one SM is simulated, as full as any.
    """
    if profile.evidence is Evidence.MODELLED:
        return None
    elapsed, mean, sms = elapsed_cycles(profile), profile.metric("sm__cycles_active.avg"), profile.device.sms
    if not elapsed or mean is None or not sms or profile.launch.blocks < 1:
        return None
    return max(0.0, 1 - mean * sms / min(sms, profile.launch.blocks) / elapsed)


def outside_share(profile: KernelProfile) -> float:
    """Of the elapsed cycles those without a warp on any SM, 0 where not counted."""
    active = active_share(profile)
    return 0.0 if active is None else 1 - active


def handed_out_share(profile: KernelProfile) -> float | None:
    """Of the cycles in which SMs hold a warp those that handing out the grid's blocks takes, one by one.

    Returns:
        None where the profile does not count these cycles.
    """
    active = profile.metric("sm__cycles_active.avg")
    return min(1.0, profile.launch.blocks / every_gpu().blocks_per_cycle / active) if active else None


def best_split(blocks: int, threads: int, sms: int, enough: int) -> tuple[int, int]:
    """Blocks and threads of the split whose fullest SM has the fewest; of equals the largest blocks."""
    warps = -(-threads // 32)
    best = (blocks, threads)
    fullest = threads
    for parts in range(2, warps + 1):
        if warps % parts or warps // parts * 32 < enough:
            continue
        size, count = warps // parts * 32, blocks * parts
        load = -(-count // sms) * size
        if load < fullest or best[0] == blocks:
            best, fullest = (count, size), load
    if best[0] == blocks:  # an odd number of warps: one warp per scheduler, rounded up
        best = (-(-blocks * threads // enough), enough)
    return best
