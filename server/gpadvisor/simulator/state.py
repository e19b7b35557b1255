# SPDX-License-Identifier: Apache-2.0
"""Everything that changes during a run, in a few arrays that the inner loop passes around quickly."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.machine import CONVERGENCE_BARRIERS, NAMED_BARRIERS, WARP
from gpadvisor.simulator.lowered import Lowered
from gpadvisor.simulator.values import Values

NEVER: Final = 1 << 60
"""A time that does not come by itself."""
SCOREBOARDS: Final = 6
IN_FLIGHT: Final = 64
"""Operations of one scoreboard whose times are kept: for a partial wait, and for what holds a warp up."""
HISTORY: Final = 16
SPLITS: Final = 32
CALLS: Final = 64
"""Calls inside one another; deeper ones return at once."""
QUEUE_DEPTH: Final = 16
MAX_SAMPLES: Final = 1 << 17
MAX_BARRIERS: Final = 1 << 16
MAX_LATE: Final = 1 << 20
MAX_AWAITED: Final = 1 << 21
LINE: Final = 8
"""Instructions in one line of the instruction cache, 128 bytes."""

EMPTY, RUNNING, AT_BARRIER, DRAINING = 0, 1, 2, 3
"""States of a warp slot."""

REASONS: Final = (
    "selected", "not_selected", "wait", "long_scoreboard", "short_scoreboard", "barrier", "membar",
    "branch_resolving", "no_instructions", "math_pipe_throttle", "lg_throttle", "mio_throttle",
    "tex_throttle", "drain", "sleeping", "gmma",
)  # fmt: skip
"""Stall reasons of the model; the numbers below are their places."""
SELECTED, NOT_SELECTED, WAIT, LONG, SHORT, BARRIER, MEMBAR, BRANCH = 0, 1, 2, 3, 4, 5, 6, 7
FETCH, MATH, LG_FULL, MIO_FULL, TEX_FULL, DRAIN, SLEEPING, MATRIX = 8, 9, 10, 11, 12, 13, 14, 15

DONE, CYCLE_LIMIT, INSTRUCTION_LIMIT, RUNNING_STILL = 0, 1, 2, 3
"""How a run ended, if it did."""

# ---- columns of Packed.fact, in the order of lowering.FACTS ----
FLOW, TARGET, GUARD, GUARD_NEGATED, SECOND, SECOND_NEGATED, CONDITIONAL, STALL, YIELDS = range(9)
WAIT_MASK, WRITE_BARRIER, READ_BARRIER, KEEP, BARRIER_NUMBER, BARRIER_WARPS, UNIT, INTERVAL = range(9, 17)
ACCESS, LONG_REASON, WIDTH, BASE_OFFSET, FOLLOWED, RULE, TRIPS, COUNTER, FENCE, LOOKED_UP = range(17, 27)
BY_DATA: Final = 27
TARGETS, LATENCY, BASE, FIXED, DEFS, USES, BASE_SHIFT = range(28, 42, 2)
SECTORS, WAYS, L1_HIT, L2_HIT, TAKEN, OPERATION = range(6)

# ---- columns of Machine.warp ----
STATE, SLOT, AGE, PC, ACTIVE, LIVE, WAKE, ISSUED, THROTTLE, THROTTLE_REASON, THROTTLE_CAUSE = range(11)
SCOREBOARD_REASON, STORE_DONE, STORE_PC, ASYNC_DONE, ASYNC_PC, MATRIX_DONE, MATRIX_PC = range(11, 18)
MIO_DONE, SPLIT_COUNT, DEPTH, BARRIER_ID, BARRIER_EVENT, PHASE = range(18, 24)
UNTIL: Final = 24
"""Six times: of the stall count, a branch, instruction fetch, a fence, scoreboards, sleep."""
CAUSE: Final = 30
"""The instruction that each of the six is due to."""
RELEASE: Final = 36
RELEASE_PC: Final = 42
PENDING_COUNT: Final = 48  # by ring
RESULT, OPERANDS, GROUP = range(3)
"""What an operation is counted for: its result, its operands being read, a group of copies."""
COPIES, STORES = 6, 7
"""Rings behind those of the scoreboards: asynchronous copies and stores on their way."""
HISTORY_PC: Final = 56
HISTORY_AT: Final = HISTORY_PC + HISTORY
SPLIT_PC: Final = HISTORY_AT + HISTORY
SPLIT_LANES: Final = SPLIT_PC + SPLITS
JOINED: Final = SPLIT_LANES + SPLITS
ARRIVED: Final = JOINED + CONVERGENCE_BARRIERS
RESUME: Final = ARRIVED + CONVERGENCE_BARRIERS
RETURNS: Final = RESUME + CONVERGENCE_BARRIERS
DRAWN: Final = RETURNS + CALLS
"""Where the warp's own sequence of random numbers is."""
WARP_COLUMNS: Final = DRAWN + 1
U_STALL, U_BRANCH, U_FETCH, U_FENCE, U_SCOREBOARD, U_SLEEP = range(6)

# ---- columns of Machine.scheduler ----
LAST, IDLE_UNTIL, CHOSEN, CHOSEN_PC, XU_FREE, TURN, LINE_COUNT = range(7)
PIPE_FREE: Final = 8
PIPE_PC: Final = 14
QUEUE_AT: Final = 20  # three queues: MIO, LG, TEX
QUEUE_START: Final = 24
QUEUE_PC: Final = QUEUE_START + 3 * QUEUE_DEPTH
SCHEDULER_COLUMNS: Final = QUEUE_PC + 3 * QUEUE_DEPTH

# ---- columns of Machine.block ----
BLOCK_WARPS, BLOCK_INDEX, BLOCK_START, BULK_DONE, BULK_PC = range(5)
BARRIER_COUNT: Final = 5
BARRIER_OPEN: Final = BARRIER_COUNT + NAMED_BARRIERS
BLOCK_COLUMNS: Final = BARRIER_OPEN + NAMED_BARRIERS

# ---- rows of Machine.served: what units behind queues work off, in order ----
SERVED_LSU, SERVED_TEX, SERVED_XU = range(3)  # a row for each scheduler from the last one on
SERVED: Final = 256
"""More than all queues before one unit hold; the entry behind them counts those so far."""

# ---- Machine.number and Machine.traffic ----
NOW, RANDOM, LSU_FREE, NEXT_BLOCK, FINISHED_BLOCKS, INSTRUCTIONS, NEXT_SAMPLE, SAMPLE_TURN = range(8)
SAMPLES, INTERVAL_NOW, STATUS, FULL_WAVES_AT, BARRIERS, LAST_AGE, ISSUED_CYCLES, FORCED = range(8, 16)
LIVE_WARPS, PERIOD_START, TEX_FREE, LATE, AWAITED, STARTED, TOO_DEEP, TICK, SECTORS_IN_L2, AXES = range(
    16, 26
)
NEXT_LAUNCH: Final = 26
"""The first cycle in which the SM may be handed another block."""
L2_FREE, DRAM_FREE, L2_MOVED, DRAM_MOVED, WARP_CYCLES, ACTIVE_CYCLES, DRAM_WRITTEN, L1_PASSES, L2_BUSY = (
    range(9)
)

# ---- columns of Machine.sample ----
S_PC, S_REASON, S_CAUSE, S_LATENCY, S_PHASE, S_SERIAL = range(6)

# ---- parameters, whole and real ----
SCHEDULERS, WARPS, WARPS_PER_BLOCK, BLOCK_SLOTS, BLOCKS, THREADS, ENTRY, WAVEFRONT, LG_QUEUE = range(9)
MIO_QUEUE, TEX_QUEUE, OPERAND_READ, BRANCH_CYCLES, BARRIER_CYCLES, FETCH_L1, FETCH_L2, PREFETCH = range(9, 17)
L0_LINES, L1_LINES, LAUNCH_CYCLES, MAX_CYCLES, MAX_INSTRUCTIONS, L1_CYCLES = range(17, 23)
L2_CYCLES, DRAM_CYCLES = 24, 26
DIVERGENT, FULL_WAVES, BLOCK_SIZE, GRID_SIZE, L1_SETS, L2_SECTORS, BUSY_SMS = 28, 29, 30, 33, 36, 37, 38
SEED, LAUNCH_INTERVAL = 39, 40
PARAMETERS: Final = 41
L2_RATE, DRAM_RATE, L2_PACKETS, LAUNCH_BLOCKS, SHARING = range(5)
"""``SHARING``: SMs that ask for the same, by the indices of the block it hangs on; of a wave, then of all."""
REALS: Final = SHARING + 16

# ---- caches ----
L1_WAYS: Final = 16
L2_WAYS: Final = 4
HOT_SLICES: Final = 61
HOT_FREE, HOT_TAKEN = 0, 1
HOT_BYTES: Final = 512
"""What lies side by side in one slice of L2: 2^30 evenly drawn bytes take an H100 276 ms in 256 counters by
atomic operations (yencal/gpu-histogram-optimization), as of two slices, where one word takes 1.46 cycles."""
STORED: Final = 1021
"""Stores of warps to sectors that are told apart."""
JOINED_CYCLES: Final = 64
"""Stores of a warp to one sector that follow each other so soon go to L2 as one, as counted on an H100."""
L2_SETS: Final = 65_537
"""More lines than one SM is asked for while they stay; an odd number, over which powers of two spread."""

# ---- rows of Results.level ----
L1_SECTORS, L1_FOUND, TO_L2, L2_FOUND, REQUESTS, UNKNOWN_REQUESTS = range(6)


class Machine(NamedTuple):
    """State of one SM."""

    whole: NDArray[np.int64]  # parameters
    real: NDArray[np.float64]
    number: NDArray[np.int64]
    traffic: NDArray[np.float64]
    warp: NDArray[np.int64]  # [warps, WARP_COLUMNS]
    pending: NDArray[np.int64]  # [warps, 8, IN_FLIGHT, 3] release time, instruction and kind, rings
    trips: NDArray[np.int32]  # [warps, counters]
    scheduler: NDArray[np.int64]
    line_at: NDArray[np.int64]  # [schedulers + 1, lines] arrival of a line; the last row is the SM's cache
    line_order: NDArray[np.int32]
    block: NDArray[np.int64]
    blocks: NDArray[np.int64]  # grid indices of the blocks of this SM, in order
    served: NDArray[np.int64]  # [units, SERVED + 1, 2] start and instruction, rings
    l1: NDArray[np.int64]  # [lines, 6] line, when it was used, when each of its sectors arrives
    hot: NDArray[np.float64]  # [HOT_SLICES, 2] when an L2 slice has done its atomic operations; how many
    stored: NDArray[np.int64]  # [STORED, 2] sector and warp, and when it was last stored to
    l2: NDArray[np.int64]  # [lines, 5] line, how much L2 had taken when each was touched, and whether dirty


class Results(NamedTuple):
    """What a run leaves behind."""

    executed: NDArray[np.int64]  # [2, n] by phase of the block: of the first full wave, or behind it
    threads: NDArray[np.int64]
    undecided: NDArray[np.int64]  # [n] times a rule decided a branch
    sectors: NDArray[
        np.float64
    ]  # [5, n] sectors, the fewest possible, shared wavefronts, the fewest possible, lines of L1
    level: NDArray[np.int64]  # [6, n] of accesses by address: sectors by where they were; requests
    sample: NDArray[np.int32]  # [MAX_SAMPLES, 6]
    barrier: NDArray[np.int32]  # [MAX_BARRIERS, 2] by event: where the last warp arrived, and which it was
    late: NDArray[np.int32]  # [MAX_LATE, 3] sample, a warp that had not arrived then, what held it up
    awaited: NDArray[np.int32]  # [MAX_AWAITED, 3] sample, -1 or such a warp, what held it as well


def empty_values(lowered: Lowered, warps: int) -> Values:
    """Registers of which nothing is known."""
    return Values(
        word=np.zeros((warps, lowered.slots, WARP), dtype=np.int64),
        known=np.zeros((warps, lowered.slots), dtype=np.int64),
        known_low=np.zeros((warps, lowered.slots), dtype=np.int64),
        axes=np.zeros((warps, lowered.slots), dtype=np.int64),
        flag=np.zeros((warps, lowered.flags), dtype=np.int64),
        flag_known=np.zeros((warps, lowered.flags), dtype=np.int64),
        special=np.zeros((warps, 16, WARP), dtype=np.int64),
        draws=np.zeros(warps, dtype=np.int64),
        scratch=np.zeros((6, WARP), dtype=np.int64),
    )


def empty_machine(
    lowered: Lowered,
    parameters: NDArray[np.int64],
    real: NDArray[np.float64],
    blocks: NDArray[np.int64],
    seed: int,
) -> Machine:
    """An SM on which nothing runs yet."""
    warps, schedulers = int(parameters[WARPS]), int(parameters[SCHEDULERS])
    lines = len(lowered.code.flow) // LINE + 2
    number = np.zeros(NEXT_LAUNCH + 1, dtype=np.int64)
    number[RANDOM] = (seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
    scheduler = np.zeros((schedulers + 1, SCHEDULER_COLUMNS), dtype=np.int64)
    scheduler[:, LAST] = -1
    block = np.zeros((int(parameters[BLOCK_SLOTS]), BLOCK_COLUMNS), dtype=np.int64)
    block[:, BARRIER_OPEN:] = -1
    warp = np.zeros((warps, WARP_COLUMNS), dtype=np.int64)
    warp[:, WAKE] = NEVER
    return Machine(
        whole=parameters,
        real=real,
        number=number,
        traffic=np.zeros(9),
        warp=warp,
        pending=np.zeros((warps, SCOREBOARDS + 2, IN_FLIGHT, 3), dtype=np.int64),
        trips=np.zeros((warps, lowered.counters), dtype=np.int32),
        scheduler=scheduler,
        line_at=np.full((schedulers + 1, lines), NEVER, dtype=np.int64),
        line_order=np.full((schedulers + 1, lines), -1, dtype=np.int32),
        block=block,
        blocks=blocks,
        served=np.zeros((SERVED_XU + schedulers, SERVED + 1, 2), dtype=np.int64),
        l1=np.zeros((int(parameters[L1_SETS]) * L1_WAYS, 6), dtype=np.int64),
        hot=np.zeros((HOT_SLICES, 2)),
        stored=np.full((STORED, 2), -NEVER, dtype=np.int64),
        l2=np.zeros((L2_SETS * L2_WAYS, 5), dtype=np.int64),
    )


def empty_results(lowered: Lowered) -> Results:
    """Nothing counted and sampled yet."""
    n = len(lowered.code.flow)
    return Results(
        executed=np.zeros((2, n), dtype=np.int64),
        threads=np.zeros((2, n), dtype=np.int64),
        undecided=np.zeros(n, dtype=np.int64),
        sectors=np.zeros((5, n)),
        level=np.zeros((6, n), dtype=np.int64),
        sample=np.full((MAX_SAMPLES, 6), -1, dtype=np.int32),
        barrier=np.full((MAX_BARRIERS, 2), -1, dtype=np.int32),
        late=np.empty((MAX_LATE, 3), dtype=np.int32),
        awaited=np.empty((MAX_AWAITED, 3), dtype=np.int32),
    )
