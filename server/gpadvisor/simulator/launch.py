# SPDX-License-Identifier: Apache-2.0
"""From a launch to the share of one SM: occupancy, blocks in waves, the parameters of the inner loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.analyzer.occupancy import occupancy, shared_carveout
from gpadvisor.errors import UsageError
from gpadvisor.machine.every_gpu import every_gpu
from gpadvisor.machine.timing import SimulatedDevice, Timing
from gpadvisor.model.advice import Occupancy
from gpadvisor.model.machine import LINE_BYTES, SECTOR_BYTES, MachineModel
from gpadvisor.model.program import Function, FunctionKind, KernelFacts, Program
from gpadvisor.simulator import state
from gpadvisor.simulator.configuration import SimulationConfig

DEFAULT_REGISTERS: Final = 32
DEFAULT_WAVES: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one SM gets of a launch, and how much of that is simulated."""

    sms: int
    resident: int  # blocks at a time
    total: int  # blocks of the SM in the whole launch
    blocks: NDArray[np.int64]  # grid indices of those simulated
    waves: int  # full ones that are simulated
    repeats: int  # further full waves that are taken to be like these
    warps_per_block: int
    registers: int
    static_shared: int
    occupancy: Occupancy


def find_kernel(program: Program, kernel: str) -> Function:
    """The kernel of that mangled or plain name."""
    kernels = [function for function in program.functions if function.kind is FunctionKind.KERNEL]
    for function in kernels:
        if kernel in {function.name, function.demangled, function.demangled.partition("(")[0]}:
            return function
    names = ", ".join(kernel.demangled for kernel in kernels) or "none"
    raise UsageError(f"the program has no kernel {kernel!r}; it has {names}")


def share_of_sm(
    machine: MachineModel, facts: KernelFacts | None, device: SimulatedDevice, config: SimulationConfig
) -> Share:
    """The blocks of an SM that holds as many as any.

    Raises:
        UsageError: the launch cannot run; the message says which limit it breaks.
    """
    sm, threads = machine.sm, config.threads_per_block
    sms = config.sms or device.sms
    registers = (
        DEFAULT_REGISTERS
        if facts is None or facts.registers_per_thread is None
        else facts.registers_per_thread
    )
    static = 0 if facts is None else facts.static_shared_bytes or 0
    shared = static + config.dynamic_shared_bytes
    _check(machine, facts, config, threads, shared)
    result = occupancy(
        sm,
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_bytes=shared,
        block_barriers=None if facts is None else facts.uses_barriers,
    )
    resident = result.blocks_per_sm or 0
    if resident < 1:
        raise UsageError(
            f"the launch cannot run on {machine.arch}: a block of {threads} threads with {registers} "
            f"registers each and {shared} bytes of shared memory does not fit an SM "
            f"(limited by {result.limiter})"
        )
    total = -(-config.blocks // sms)
    resident = min(resident, total)
    tail = (total - 1) % resident + 1
    waves = min(config.waves or DEFAULT_WAVES, -(-total // resident))
    # The full waves that are simulated come first, then the last one, which may be partial.
    full = max(1, waves - 1)
    simulated = resident * full + (tail if waves > 1 else 0)
    blocks = _middle_sm(config, sms, simulated) + sms * np.arange(simulated, dtype=np.int64)
    return Share(
        sms=sms,
        resident=resident,
        total=total,
        blocks=np.minimum(blocks, config.blocks - 1),
        waves=full,
        repeats=-(-(total - simulated) // resident),
        warps_per_block=-(-threads // sm.warp_size.value),
        registers=registers,
        static_shared=static,
        occupancy=result,
    )


_AS_OFTEN: Final = 0.125
"""Shares of blocks at the grid's border that are about the same."""


def _middle_sm(config: SimulationConfig, sms: int, simulated: int) -> int:
    """The middle SM of those with most blocks, and fewest at the border of the grid."""
    width, height, _ = config.grid
    last = (config.blocks - 1) % sms
    candidates = np.array(sorted(range(last + 1), key=lambda sm: abs(sm - last // 2)), dtype=np.int64)
    blocks = np.minimum(candidates[:, None] + sms * np.arange(simulated), config.blocks - 1)
    places = (blocks % width, blocks // width % height, blocks // (width * height))
    border = np.zeros(blocks.shape, dtype=np.bool_)
    for place, size in zip(places, config.grid, strict=True):
        if size > 2:  # else all blocks are there
            border |= (place == 0) | (place == size - 1)
    return int(candidates[(border.mean(axis=1) // _AS_OFTEN).argmin()])


def _check(
    machine: MachineModel, facts: KernelFacts | None, config: SimulationConfig, threads: int, shared: int
) -> None:
    sm = machine.sm
    if threads > sm.max_threads_per_block.value:
        raise UsageError(
            f"the launch cannot run: {threads} threads per block, {machine.arch} takes at most "
            f"{sm.max_threads_per_block.value}"
        )
    if shared > sm.shared_bytes_per_block.value:
        raise UsageError(
            f"the launch cannot run: {shared} bytes of shared memory per block, {machine.arch} takes at most "
            f"{sm.shared_bytes_per_block.value}"
        )
    if facts is None:
        return
    if facts.required_block is not None and facts.required_block != config.block:
        raise UsageError(
            f"the launch cannot run: the kernel was compiled for blocks of {facts.required_block}"
        )
    if facts.max_threads_per_block is not None and threads > facts.max_threads_per_block:
        raise UsageError(
            f"the launch cannot run: {threads} threads per block, the kernel's launch bounds allow "
            f"{facts.max_threads_per_block}"
        )
    registers = facts.registers_per_thread
    if registers is not None and registers > sm.max_registers_per_thread.value:
        raise UsageError(
            f"the launch cannot run: {registers} registers per thread, {machine.arch} takes at most "
            f"{sm.max_registers_per_thread.value}"
        )


def l1_bytes(machine: MachineModel, timing: Timing, share: Share, config: SimulationConfig) -> int:
    """What shared memory leaves of an SM's data cache."""
    shared = share.static_shared + config.dynamic_shared_bytes
    data_bytes = timing.data_cache_bytes - shared_carveout(machine.sm, shared, share.resident)
    return max(data_bytes, state.L1_WAYS * LINE_BYTES)


def whole_parameters(
    machine: MachineModel,
    timing: Timing,
    device: SimulatedDevice,
    share: Share,
    config: SimulationConfig,
    entry: int,
) -> NDArray[np.int64]:
    """Whole numbers that the inner loop reads."""
    sm = machine.sm
    result = np.zeros(state.PARAMETERS, dtype=np.int64)
    slots = min(share.resident, len(share.blocks))
    values = {
        state.SCHEDULERS: sm.schedulers.value,
        state.WARPS: slots * share.warps_per_block,
        state.WARPS_PER_BLOCK: share.warps_per_block,
        state.BLOCK_SLOTS: slots,
        state.BLOCKS: len(share.blocks),
        state.THREADS: config.threads_per_block,
        state.ENTRY: entry,
        state.WAVEFRONT: timing.wavefront_cycles,
        state.LG_QUEUE: min(timing.lg_queue, state.QUEUE_DEPTH),
        state.MIO_QUEUE: min(timing.mio_queue, state.QUEUE_DEPTH),
        state.TEX_QUEUE: min(timing.tex_queue, state.QUEUE_DEPTH),
        state.OPERAND_READ: timing.operand_read_cycles,
        state.BRANCH_CYCLES: timing.branch_cycles,
        state.BARRIER_CYCLES: timing.barrier_cycles,
        state.FETCH_L1: timing.fetch_l1_cycles,
        state.FETCH_L2: timing.fetch_l2_cycles,
        state.PREFETCH: timing.prefetched_lines,
        state.L0_LINES: max(1, sm.instruction_cache_l0_bytes.value // LINE_BYTES),
        state.L1_LINES: max(1, sm.instruction_cache_l1_bytes.value // LINE_BYTES),
        state.LAUNCH_CYCLES: timing.block_launch_cycles,
        # The GPU hands out one block at a time, to each SM in turn.
        state.LAUNCH_INTERVAL: max(
            timing.block_launch_cycles, round(min(share.sms, config.blocks) / every_gpu().blocks_per_cycle)
        ),
        state.MAX_CYCLES: config.max_cycles,
        state.MAX_INSTRUCTIONS: config.max_instructions,
        state.DIVERGENT: int(config.divergent_branches),
        state.FULL_WAVES: share.resident * share.waves,
        # An odd number of sets, over which strides of powers of two spread.
        state.L1_SETS: (l1_bytes(machine, timing, share, config) // LINE_BYTES // state.L1_WAYS - 1) | 1,
        state.L2_SECTORS: device.l2_bytes // SECTOR_BYTES,
        state.BUSY_SMS: min(share.sms, config.blocks),
        state.SEED: config.seed,
    }
    for place, value in values.items():
        result[place] = value
    result[state.L1_CYCLES : state.L1_CYCLES + 2] = timing.l1_cycles
    result[state.L2_CYCLES : state.L2_CYCLES + 2] = timing.l2_cycles
    result[state.DRAM_CYCLES : state.DRAM_CYCLES + 2] = timing.dram_cycles
    result[state.BLOCK_SIZE : state.BLOCK_SIZE + 3] = config.block
    result[state.GRID_SIZE : state.GRID_SIZE + 3] = config.grid
    return result


def real_parameters(
    timing: Timing, device: SimulatedDevice, share: Share, config: SimulationConfig
) -> NDArray[np.float64]:
    """Bytes per cycle that one SM may take from L2 and from DRAM; how many SMs ask for the same."""
    busy = min(share.sms, config.blocks)
    result = np.zeros(state.REALS)
    # Fewer SMs share the same DRAM; one alone can take no more than its way to L2 carries.
    dram = device.dram_bytes_per_second / device.clock_hz / busy
    result[state.L2_RATE] = max(timing.l2_bytes_per_cycle, 1e-6)
    result[state.DRAM_RATE] = min(dram, timing.l2_bytes_per_cycle)
    # A request that is alone on its way takes a cycle.
    packets = timing.l2_packets_per_cycle * max(1.0, device.sms / busy)
    result[state.L2_PACKETS] = min(1.0, packets)
    result[state.LAUNCH_BLOCKS] = config.blocks / busy
    result[state.SHARING :] = _sharing(share, config)
    return result


def _sharing(share: Share, config: SimulationConfig) -> NDArray[np.float64]:
    """Of how many first requests for a sector one goes to DRAM, by the block's indices it hangs on.

    The first eight: where L2 holds what the blocks of one wave ask for; then that of all waves.
    """
    wave = np.arange(min(config.blocks, share.resident * share.sms), dtype=np.int64)
    width, height, _ = config.grid
    first_block = int(share.blocks[0])

    def index(blocks: NDArray[np.int64] | int, axis: int) -> NDArray[np.int64]:
        return np.asarray((blocks % width, blocks // width % height, blocks // (width * height))[axis])

    result = np.ones(16)
    for axes in range(8):
        alike = np.ones(len(wave), dtype=np.bool_)
        every = 1
        for axis in range(3):
            if axes >> axis & 1:
                alike &= index(wave, axis) == index(first_block, axis)
            else:
                every *= config.grid[axis]
        result[axes] = len(np.unique(wave[alike] % share.sms))
        result[8 + axes] = result[axes] * max(1.0, every / np.count_nonzero(alike))
    return result
