# SPDX-License-Identifier: Apache-2.0
"""Blocks and warps: how they start, meet at barriers and end."""

from __future__ import annotations

from gpadvisor.model.machine import NAMED_BARRIERS, WARP
from gpadvisor.simulator.chance import seed_warp
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.readiness import prepare
from gpadvisor.simulator.state import (
    ACTIVE,
    AGE,
    AT_BARRIER,
    BARRIER_COUNT,
    BARRIER_CYCLES,
    BARRIER_EVENT,
    BARRIER_ID,
    BARRIER_NUMBER,
    BARRIER_OPEN,
    BARRIER_WARPS,
    BARRIERS,
    BLOCK_INDEX,
    BLOCK_SIZE,
    BLOCK_START,
    BLOCK_WARPS,
    BLOCKS,
    BULK_DONE,
    DRAWN,
    EMPTY,
    ENTRY,
    FINISHED_BLOCKS,
    FULL_WAVES,
    FULL_WAVES_AT,
    GRID_SIZE,
    IDLE_UNTIL,
    LAST_AGE,
    LAUNCH_CYCLES,
    LAUNCH_INTERVAL,
    LIVE,
    LIVE_WARPS,
    MAX_BARRIERS,
    NEVER,
    NEXT_BLOCK,
    NEXT_LAUNCH,
    PC,
    PHASE,
    RUNNING,
    SCHEDULERS,
    SLOT,
    STATE,
    THREADS,
    WAKE,
    WARP_CYCLES,
    WARPS_PER_BLOCK,
    Machine,
    Results,
)
from gpadvisor.simulator.values import Values


@compiled
def _special(m: Machine, v: Values, w: int, first_thread: int, index: int) -> None:
    """Special registers of a warp's lanes."""
    parameters = m.whole
    bx, by = parameters[BLOCK_SIZE], parameters[BLOCK_SIZE + 1]
    gx, gy = parameters[GRID_SIZE], parameters[GRID_SIZE + 1]
    rows = v.special[w]
    for lane in range(WARP):
        thread = first_thread + lane
        rows[0, lane] = 0
        rows[1, lane] = thread % bx
        rows[2, lane] = thread // bx % by
        rows[3, lane] = thread // (bx * by)
        rows[4, lane] = index % gx
        rows[5, lane] = index // gx % gy
        rows[6, lane] = index // (gx * gy)
        rows[7, lane] = lane
        for axis in range(3):
            rows[8 + axis, lane] = parameters[BLOCK_SIZE + axis]
            rows[11 + axis, lane] = parameters[GRID_SIZE + axis]
        rows[14, lane] = w


@seldom
def start_block(p: Packed, m: Machine, v: Values, slot: int, now: int) -> None:
    """Put the next block of this SM into a free slot, once it is the SM's turn."""
    number, block = m.number, m.block[slot]
    index = m.blocks[number[NEXT_BLOCK]]
    number[NEXT_BLOCK] += 1
    warps = m.whole[WARPS_PER_BLOCK]
    cycle = max(now + m.whole[LAUNCH_CYCLES], number[NEXT_LAUNCH])
    number[NEXT_LAUNCH] = cycle + m.whole[LAUNCH_INTERVAL]
    m.traffic[WARP_CYCLES] -= float(warps * (cycle - now))  # they count as there from now on
    block[BLOCK_WARPS] = warps
    block[BLOCK_INDEX] = index
    block[BLOCK_START] = cycle
    block[BULK_DONE] = 0
    for k in range(NAMED_BARRIERS):
        block[BARRIER_COUNT + k] = 0
        block[BARRIER_OPEN + k] = -1
    for in_block in range(warps):
        w = slot * warps + in_block
        warp = m.warp[w]
        warp[:] = 0
        lanes = m.whole[THREADS] - WARP * in_block
        warp[LIVE] = warp[ACTIVE] = 0xFFFF_FFFF if lanes >= WARP else (1 << lanes) - 1
        warp[STATE] = RUNNING
        warp[SLOT] = slot
        warp[PHASE] = 0 if number[NEXT_BLOCK] <= m.whole[FULL_WAVES] else 1
        number[LAST_AGE] += 1
        warp[AGE] = number[LAST_AGE]
        warp[PC] = m.whole[ENTRY]
        seed_warp(m, w, index, in_block)
        m.trips[w, :] = 0
        v.axes[w, :] = 0
        v.known[w, :] = 0
        v.known_low[w, :] = 0
        v.draws[w] = warp[DRAWN]
        v.flag_known[w, :] = 0
        _special(m, v, w, WARP * in_block, index)
        number[LIVE_WARPS] += 1
        prepare(p, m, w, cycle)
        warp[WAKE] = max(warp[WAKE], cycle)
    for s in range(m.whole[SCHEDULERS]):
        m.scheduler[s, IDLE_UNTIL] = 0


@seldom
def release(m: Machine, r: Results, slot: int, barrier: int, i: int, latest: int, cycle: int) -> None:
    """Everybody has come: let them go on."""
    event = m.block[slot, BARRIER_OPEN + barrier]
    if event >= 0:
        r.barrier[event, 0] = i
        r.barrier[event, 1] = latest
    m.block[slot, BARRIER_OPEN + barrier] = -1
    m.block[slot, BARRIER_COUNT + barrier] = 0
    warps = m.whole[WARPS_PER_BLOCK]
    for w in range(slot * warps, (slot + 1) * warps):
        warp = m.warp[w]
        if warp[STATE] == AT_BARRIER and warp[BARRIER_ID] == barrier:
            warp[WAKE] = cycle + m.whole[BARRIER_CYCLES]
    for s in range(m.whole[SCHEDULERS]):
        m.scheduler[s, IDLE_UNTIL] = 0


@seldom
def end_warp(p: Packed, m: Machine, v: Values, r: Results, w: int, cycle: int) -> None:
    """A warp is gone: barriers count it no more, and its block may be done."""
    warp, number = m.warp[w], m.number
    slot = warp[SLOT]
    warp[STATE] = EMPTY
    warp[WAKE] = NEVER
    number[LIVE_WARPS] -= 1
    m.block[slot, BLOCK_WARPS] -= 1
    remaining = m.block[slot, BLOCK_WARPS]
    if remaining > 0:
        for barrier in range(NAMED_BARRIERS):
            if m.block[slot, BARRIER_COUNT + barrier] >= remaining:
                release(m, r, slot, barrier, warp[PC] - 1, w, cycle)
        return
    number[FINISHED_BLOCKS] += 1
    if number[FINISHED_BLOCKS] == m.whole[FULL_WAVES]:
        number[FULL_WAVES_AT] = cycle
    if number[NEXT_BLOCK] < m.whole[BLOCKS]:
        start_block(p, m, v, slot, cycle)


@seldom
def arrive(p: Packed, m: Machine, r: Results, w: int, i: int, waits: bool, cycle: int) -> None:  # noqa: FBT001 - no keywords in compiled code
    """BAR: count the warp; the last one lets the others go."""
    warp = m.warp[w]
    slot, barrier = warp[SLOT], p.fact[i, BARRIER_NUMBER]
    block = m.block[slot]
    block[BARRIER_COUNT + barrier] += 1
    expected = p.fact[i, BARRIER_WARPS]
    if expected == 0:
        expected = block[BLOCK_WARPS]
    if waits:
        if block[BARRIER_OPEN + barrier] < 0 and m.number[BARRIERS] < MAX_BARRIERS:
            block[BARRIER_OPEN + barrier] = m.number[BARRIERS]
            m.number[BARRIERS] += 1
        warp[BARRIER_ID] = barrier
        warp[BARRIER_EVENT] = block[BARRIER_OPEN + barrier]
        warp[STATE] = AT_BARRIER
    if block[BARRIER_COUNT + barrier] >= expected:
        release(m, r, slot, barrier, i, w, cycle)
