# SPDX-License-Identifier: Apache-2.0
"""The inner loop: four schedulers issue warps of real machine code, and a sampler watches them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpadvisor.simulator.chance import cycles
from gpadvisor.simulator.compiled import compiled, entry, seldom
from gpadvisor.simulator.evaluate import Slice, Values, evaluate, lanes_of
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.memory import global_access, hold, shared_access, texture_access
from gpadvisor.simulator.paths import (
    branch,
    call,
    converge,
    fetched,
    give_back,
    indirect,
    leave_barrier,
    mark,
    next_split,
    taken_lanes,
)
from gpadvisor.simulator.sampling import sample
from gpadvisor.simulator.state import (
    ACCESS,
    ACTIVE,
    ACTIVE_CYCLES,
    AGE,
    ASYNC_DONE,
    ASYNC_PC,
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
    BLOCK_SLOTS,
    BLOCK_START,
    BLOCK_WARPS,
    BLOCKS,
    BULK_DONE,
    BULK_PC,
    CAUSE,
    CHOSEN,
    CHOSEN_PC,
    CYCLE_LIMIT,
    DONE,
    DRAINING,
    EMPTY,
    ENTRY,
    FENCE,
    FINISHED_BLOCKS,
    FLOW,
    FORCED,
    FULL_WAVE,
    FULL_WAVE_AT,
    GRID_SIZE,
    GROUP,
    GUARD,
    GUARD_NEGATED,
    HISTORY,
    HISTORY_AT,
    HISTORY_PC,
    IDLE_UNTIL,
    IN_FLIGHT,
    INSTRUCTION_LIMIT,
    INSTRUCTIONS,
    INTERVAL,
    INTERVAL_NOW,
    ISSUED,
    KEEP,
    LAST,
    LAST_AGE,
    LATENCY,
    LAUNCH_CYCLES,
    LG_FULL,
    LG_QUEUE,
    LINE,
    LIVE,
    LIVE_WARPS,
    LONG,
    LONG_REASON,
    LSU_FREE,
    MATH,
    MATRIX,
    MATRIX_DONE,
    MATRIX_PC,
    MAX_BARRIERS,
    MAX_CYCLES,
    MAX_INSTRUCTIONS,
    MIO_DONE,
    MIO_FULL,
    MIO_QUEUE,
    NEVER,
    NEXT_BLOCK,
    NEXT_SAMPLE,
    NOW,
    OPERAND_READ,
    OPERANDS,
    PC,
    PENDING_COUNT,
    PHASE,
    PIPE_FREE,
    PIPE_PC,
    QUEUE_AT,
    QUEUE_DEPTH,
    QUEUE_PC,
    QUEUE_START,
    READ_BARRIER,
    RELEASE,
    RELEASE_PC,
    RESULT,
    RUNNING,
    RUNNING_STILL,
    SCHEDULERS,
    SCOREBOARD_REASON,
    SERVED,
    SERVED_LSU,
    SERVED_TEX,
    SERVED_XU,
    SHORT,
    SLOT,
    STALL,
    STARTED,
    STATE,
    STATUS,
    STORE_DONE,
    STORE_PC,
    TARGET,
    TEX_FULL,
    TEX_QUEUE,
    THREADS,
    THROTTLE,
    THROTTLE_CAUSE,
    THROTTLE_REASON,
    U_FENCE,
    U_FETCH,
    U_SCOREBOARD,
    U_SLEEP,
    U_STALL,
    UNIT,
    UNTIL,
    WAIT_MASK,
    WAKE,
    WARP_CYCLES,
    WARPS,
    WARPS_PER_BLOCK,
    WAVEFRONT,
    WRITE_BARRIER,
    XU_FREE,
    YIELDS,
    Machine,
    Results,
)

# Values of lowering.Flow, resources.Unit and resources.Access that are compared here.
_BRANCH, _EXIT, _CALL, _RETURN, _BARRIER, _ARRIVE, _MARK, _CONVERGE, _FENCE = 1, 2, 3, 4, 5, 6, 7, 8, 9
_PARTIAL, _ASYNC_GROUP, _SLEEP, _INDIRECT, _BREAK, _TRY_WAIT, _MATRIX_WAIT, _NOT_CODE = range(10, 18)
_TENSOR, _LAST_PIPE, _NONE, _MIO, _LG, _TEX, _XU = 4, 5, 6, 7, 8, 9, 10
_VARIABLE = 11
_MAX_MATRIX = 1 << 12


# ---- blocks and warps ----


@compiled
def _special(m: Machine, v: Values, w: int, first_thread: int, index: int) -> None:
    """Special registers of a warp's lanes."""
    whole = m.whole
    bx, by = whole[BLOCK_SIZE], whole[BLOCK_SIZE + 1]
    gx, gy = whole[GRID_SIZE], whole[GRID_SIZE + 1]
    rows = v.special[w]
    for lane in range(32):
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
            rows[8 + axis, lane] = whole[BLOCK_SIZE + axis]
            rows[11 + axis, lane] = whole[GRID_SIZE + axis]
        rows[14, lane] = w


@seldom
def _start_block(p: Packed, m: Machine, v: Values, slot: int, at: int) -> None:
    """Put the next block of this SM into a slot."""
    number, block = m.number, m.block[slot]
    index = m.blocks[number[NEXT_BLOCK]]
    number[NEXT_BLOCK] += 1
    warps = m.whole[WARPS_PER_BLOCK]
    block[BLOCK_WARPS] = warps
    block[BLOCK_INDEX] = index
    block[BLOCK_START] = at
    block[BULK_DONE] = 0
    for k in range(16):
        block[BARRIER_COUNT + k] = 0
        block[BARRIER_OPEN + k] = -1
    for one in range(warps):
        w = slot * warps + one
        warp = m.warp[w]
        warp[:] = 0
        lanes = m.whole[THREADS] - 32 * one
        warp[LIVE] = warp[ACTIVE] = 0xFFFF_FFFF if lanes >= 32 else (1 << lanes) - 1
        warp[STATE] = RUNNING
        warp[SLOT] = slot
        warp[PHASE] = 0 if number[NEXT_BLOCK] <= m.whole[FULL_WAVE] else 1
        number[LAST_AGE] += 1
        warp[AGE] = number[LAST_AGE]
        warp[PC] = m.whole[ENTRY]
        m.trips[w, :] = 0
        v.known[w, :] = 0
        v.flag_known[w, :] = 0
        _special(m, v, w, 32 * one, index)
        number[LIVE_WARPS] += 1
        prepare(p, m, w, w % m.whole[SCHEDULERS], at)
        warp[WAKE] = max(warp[WAKE], at)
    for s in range(m.whole[SCHEDULERS]):
        m.scheduler[s, IDLE_UNTIL] = 0


@seldom
def _release(m: Machine, r: Results, slot: int, barrier: int, i: int, last: int, now: int) -> None:
    """Everybody has come: let them go on."""
    event = m.block[slot, BARRIER_OPEN + barrier]
    if event >= 0:
        r.barrier[event, 0] = i
        r.barrier[event, 1] = last
    m.block[slot, BARRIER_OPEN + barrier] = -1
    m.block[slot, BARRIER_COUNT + barrier] = 0
    warps = m.whole[WARPS_PER_BLOCK]
    for w in range(slot * warps, (slot + 1) * warps):
        warp = m.warp[w]
        if warp[STATE] == AT_BARRIER and warp[BARRIER_ID] == barrier:
            warp[WAKE] = now + m.whole[BARRIER_CYCLES]
    for s in range(m.whole[SCHEDULERS]):
        m.scheduler[s, IDLE_UNTIL] = 0


@seldom
def _end_warp(p: Packed, m: Machine, v: Values, r: Results, w: int, now: int) -> None:
    """A warp is gone: barriers count it no more, and its block may be done."""
    warp, number = m.warp[w], m.number
    slot = warp[SLOT]
    warp[STATE] = EMPTY
    warp[WAKE] = NEVER
    number[LIVE_WARPS] -= 1
    m.block[slot, BLOCK_WARPS] -= 1
    left = m.block[slot, BLOCK_WARPS]
    if left > 0:
        for barrier in range(16):
            if m.block[slot, BARRIER_COUNT + barrier] >= left:
                _release(m, r, slot, barrier, warp[PC] - 1, w, now)
        return
    number[FINISHED_BLOCKS] += 1
    if number[FINISHED_BLOCKS] == m.whole[FULL_WAVE]:
        number[FULL_WAVE_AT] = now
    if number[NEXT_BLOCK] < m.whole[BLOCKS]:
        _start_block(p, m, v, slot, now + m.whole[LAUNCH_CYCLES])


@seldom
def _arrive(p: Packed, m: Machine, r: Results, w: int, i: int, waits: bool, now: int) -> None:  # noqa: FBT001 - no keywords in compiled code
    """BAR: count the warp; the last one lets the others go."""
    warp = m.warp[w]
    slot, barrier = warp[SLOT], p.fact[i, BARRIER_NUMBER]
    block = m.block[slot]
    block[BARRIER_COUNT + barrier] += 1
    wanted = p.fact[i, BARRIER_WARPS]
    if wanted == 0:
        wanted = block[BLOCK_WARPS]
    if waits:
        if block[BARRIER_OPEN + barrier] < 0 and m.number[BARRIERS] < MAX_BARRIERS:
            block[BARRIER_OPEN + barrier] = m.number[BARRIERS]
            m.number[BARRIERS] += 1
        warp[BARRIER_ID] = barrier
        warp[BARRIER_EVENT] = block[BARRIER_OPEN + barrier]
        warp[STATE] = AT_BARRIER
    if block[BARRIER_COUNT + barrier] >= wanted:
        _release(m, r, slot, barrier, i, w, now)


# ---- units ----


@compiled
def _queue_of(unit: int) -> int:
    if unit == _LG:
        return 1
    return 2 if unit == _TEX else 0


@compiled
def _depth(whole: NDArray[np.int64], queue: int) -> int:
    if queue == 1:
        return int(whole[LG_QUEUE])
    return int(whole[TEX_QUEUE] if queue == 2 else whole[MIO_QUEUE])


@compiled
def _throttled(
    facts: NDArray[np.int64],
    whole: NDArray[np.int64],
    schedulers: NDArray[np.int64],
    warps: NDArray[np.int64],
    w: int,
    s: int,
    now: int,
) -> int:
    """Until when the unit of a warp's next instruction takes no more."""
    unit = facts[warps[w, PC], UNIT]
    if unit == _NONE:
        return 0
    if unit <= _LAST_PIPE:
        until = schedulers[s, PIPE_FREE + unit]
        if until > now:
            warps[w, THROTTLE_REASON] = MATH
            warps[w, THROTTLE_CAUSE] = schedulers[s, PIPE_PC + unit]
    else:
        queue = _queue_of(unit)
        at = queue * QUEUE_DEPTH + schedulers[s, QUEUE_AT + queue] % _depth(whole, queue)
        until = schedulers[s, QUEUE_START + at]
        if until > now:
            warps[w, THROTTLE_REASON] = MIO_FULL if queue == 0 else (LG_FULL if queue == 1 else TEX_FULL)
            warps[w, THROTTLE_CAUSE] = schedulers[s, QUEUE_PC + at]
    warps[w, THROTTLE] = until
    return int(until)


@compiled
def _enqueue(m: Machine, s: int, unit: int, start: int, i: int) -> None:
    queue = _queue_of(unit)
    row = SERVED_XU + s if unit == _XU else SERVED_TEX if unit == _TEX else SERVED_LSU
    served = m.served[row]
    served[served[SERVED, 0] % SERVED, 0] = start
    served[served[SERVED, 0] % SERVED, 1] = i
    served[SERVED, 0] += 1
    scheduler = m.scheduler[s]
    at = queue * QUEUE_DEPTH + scheduler[QUEUE_AT + queue] % _depth(m.whole, queue)
    scheduler[QUEUE_START + at] = start
    scheduler[QUEUE_PC + at] = i
    scheduler[QUEUE_AT + queue] += 1


@compiled
def _behind_queue(
    p: Packed, m: Machine, v: Values, r: Results, w: int, s: int, i: int, lanes: int, now: int
) -> tuple[int, int, int]:
    """Start, end of reading and result of what goes through a queue."""
    fact = p.fact[i]
    unit, access = fact[UNIT], fact[ACCESS]
    if unit == _LG:
        return global_access(p, m, v, r, w, i, lanes, now)
    if unit == _TEX:
        return texture_access(p, m, i, now)
    if access in (3, 4, 7):
        return shared_access(p, m, v, r, w, i, lanes, now)
    if unit == _XU:
        start = max(now + 1, m.scheduler[s, XU_FREE])
        m.scheduler[s, XU_FREE] = start + fact[INTERVAL]
    else:
        start = max(now + 1, m.number[LSU_FREE])
        m.number[LSU_FREE] = start + m.whole[WAVEFRONT]
    done = start + cycles(m, fact[LATENCY], fact[LATENCY + 1])
    if unit == _MIO:
        done = max(done, m.warp[w, MIO_DONE])
        m.warp[w, MIO_DONE] = done
    return start, start + m.whole[OPERAND_READ], done


@compiled
def _occupy(
    p: Packed, m: Machine, v: Values, r: Results, w: int, s: int, i: int, lanes: int, now: int
) -> None:
    """Use the unit, and hold the scoreboards until the operands are read and the result is there."""
    fact = p.fact[i]
    unit = fact[UNIT]
    read, done = now + m.whole[OPERAND_READ], now + 2
    if lanes == 0:
        read = now + 2
    elif unit <= _LAST_PIPE:
        scheduler = m.scheduler[s]
        scheduler[PIPE_FREE + unit] = now + fact[INTERVAL]
        scheduler[PIPE_PC + unit] = i
        done = now + cycles(m, fact[LATENCY], fact[LATENCY + 1])
        if unit == _TENSOR and fact[WRITE_BARRIER] < 0:
            m.warp[w, MATRIX_DONE] = max(m.warp[w, MATRIX_DONE], now + min(fact[LATENCY + 1], _MAX_MATRIX))
            m.warp[w, MATRIX_PC] = i
    elif unit >= _MIO:
        start, read, done = _behind_queue(p, m, v, r, w, s, i, lanes, now)
        _enqueue(m, s, unit, start, i)
    else:
        done = now + cycles(m, fact[LATENCY], fact[LATENCY + 1])
    cause = i
    if fact[FLOW] == _TRY_WAIT and m.block[m.warp[w, SLOT], BULK_DONE] > done:
        done = m.block[m.warp[w, SLOT], BULK_DONE]
        cause = m.block[m.warp[w, SLOT], BULK_PC]
    if fact[FLOW] == _ASYNC_GROUP:
        done = max(done, m.warp[w, ASYNC_DONE])
        cause = m.warp[w, ASYNC_PC] if m.warp[w, ASYNC_DONE] else i
    if fact[WRITE_BARRIER] >= 0:
        hold(m, w, fact[WRITE_BARRIER], done, cause, GROUP if fact[FLOW] == _ASYNC_GROUP else RESULT)
    if fact[READ_BARRIER] >= 0:
        hold(m, w, fact[READ_BARRIER], read, i, OPERANDS)


# ---- one instruction ----


@seldom
def _partial(m: Machine, w: int, barrier: int, keep: int, now: int) -> tuple[int, int]:
    """When at most ``keep`` operations are left on a scoreboard, and which one that hangs on."""
    count = min(m.warp[w, PENDING_COUNT + barrier], IN_FLIGHT)
    ring = m.pending[w, barrier]
    running = 0
    for k in range(count):
        if ring[k, 0] > now:
            running += 1
    after, cause = now, -1
    while running > keep:
        soonest, which = NEVER, -1
        for k in range(count):
            if after < ring[k, 0] < soonest:
                soonest, which = ring[k, 0], k
        if which < 0:
            break
        after, cause = soonest, ring[which, 1]
        running = 0
        for k in range(count):
            if ring[k, 0] > after:
                running += 1
    return after, cause


@seldom
def prepare(p: Packed, m: Machine, w: int, s: int, now: int) -> None:
    """Find out when the next instruction of a warp may issue, as far as the warp itself decides that."""
    warp = m.warp[w]
    i = warp[PC]
    fact = p.fact[i]
    warp[THROTTLE] = 0
    warp[UNTIL + U_FETCH] = fetched(m, s, i // LINE, now)
    until, cause = 0, -1
    mask = fact[WAIT_MASK]
    for barrier in range(6):
        if mask >> barrier & 1 and warp[RELEASE + barrier] > until:
            until, cause = warp[RELEASE + barrier], warp[RELEASE_PC + barrier]
    if fact[FLOW] == _PARTIAL:
        later, by = _partial(m, w, fact[BARRIER_NUMBER], fact[KEEP], now)
        if later > until:
            until, cause = later, by
    warp[SCOREBOARD_REASON] = LONG if cause >= 0 and p.fact[cause, LONG_REASON] else SHORT
    if fact[FLOW] == _MATRIX_WAIT and warp[MATRIX_DONE] > until:
        until, cause = warp[MATRIX_DONE], warp[MATRIX_PC]
        warp[SCOREBOARD_REASON] = MATRIX
    warp[UNTIL + U_SCOREBOARD] = until
    warp[CAUSE + U_SCOREBOARD] = cause
    wake = now + 1
    for k in range(6):
        wake = max(wake, warp[UNTIL + k])
    warp[WAKE] = wake


@seldom
def _other_flow(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, now: int) -> None:
    """Barriers, fences, sleep, calls."""
    fact, warp = p.fact[i], m.warp[w]
    flow = fact[FLOW]
    if flow in (_BARRIER, _ARRIVE):
        _arrive(p, m, r, w, i, flow == _BARRIER, now)
    elif flow == _FENCE:
        warp[UNTIL + U_FENCE] = max(now + fact[FENCE], warp[STORE_DONE])
        warp[CAUSE + U_FENCE] = warp[STORE_PC] if warp[STORE_DONE] > now + fact[FENCE] else i
    elif flow == _SLEEP:
        warp[UNTIL + U_SLEEP] = now + fact[FENCE]
        warp[CAUSE + U_SLEEP] = i
    elif flow == _CALL:
        call(p, m, w, i, taken_lanes(p, m, v, r, w, i), now)
    elif flow == _RETURN:
        give_back(p, m, v, w, fact[TARGET], now)
    elif flow == _INDIRECT:
        indirect(p, m, w, i, now)
    elif flow == _BREAK:
        leave_barrier(p, m, w, i)


@seldom
def _exit(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, now: int) -> bool:
    """EXIT: some lanes end; True where the warp has none left."""
    warp = m.warp[w]
    ending = taken_lanes(p, m, v, r, w, i)
    warp[LIVE] &= ~ending
    warp[ACTIVE] &= ~ending
    if warp[ACTIVE]:
        return False
    if warp[LIVE] and next_split(m, w, now):
        return False
    if warp[STORE_DONE] > now:
        warp[STATE] = DRAINING
        warp[WAKE] = warp[STORE_DONE]
    else:
        _end_warp(p, m, v, r, w, now)
    return True


@seldom
def _issue(p: Packed, c: Slice, m: Machine, v: Values, r: Results, w: int, s: int, now: int) -> None:
    """Issue the next instruction of a warp."""
    warp = m.warp[w]
    i = warp[PC]
    fact = p.fact[i]
    held, sure = lanes_of(v, w, fact[GUARD], fact[GUARD_NEGATED] != 0)
    lanes = warp[ACTIVE] & (held | ~sure)
    phase = warp[PHASE]
    r.executed[phase, i] += 1
    one = lanes
    while one:
        one &= one - 1
        r.threads[phase, i] += 1
    m.number[INSTRUCTIONS] += 1
    for k in range(6):
        warp[UNTIL + k] = 0
    warp[UNTIL + U_STALL] = now + fact[STALL]
    warp[CAUSE + U_STALL] = i
    at = warp[ISSUED] % HISTORY
    warp[HISTORY_PC + at] = i
    warp[HISTORY_AT + at] = now
    warp[ISSUED] += 1
    _occupy(p, m, v, r, w, s, i, lanes, now)
    if c.op[i]:
        evaluate(c, v, w, i, warp[ACTIVE])
    warp[PC] = i + 1
    flow = fact[FLOW]
    if flow == _BRANCH:
        target = fact[TARGET]
        branch(m, w, target if target >= 0 else i + 1, taken_lanes(p, m, v, r, w, i), now)
    elif flow == _EXIT:
        if _exit(p, m, v, r, w, i, now):
            return
    elif flow == _MARK:
        mark(p, m, w, i)
    elif flow == _CONVERGE:
        converge(p, m, w, i, now)
    elif flow == _NOT_CODE:
        warp[LIVE] = warp[ACTIVE] = 0
        _end_warp(p, m, v, r, w, now)
        return
    elif flow:
        _other_flow(p, m, v, r, w, i, now)
    prepare(p, m, w, s, now)
    if warp[STATE] == AT_BARRIER:
        # The warp that came last has let all go, and takes as long as they do.
        open_still = m.block[warp[SLOT], BARRIER_COUNT + warp[BARRIER_ID]] > 0
        warp[WAKE] = NEVER if open_still else now + m.whole[BARRIER_CYCLES]


@seldom
def _leave_state(p: Packed, m: Machine, v: Values, r: Results, w: int, now: int) -> int:
    """The end of a warp that has drained, or of its time at a barrier; when it may issue."""
    warp = m.warp[w]
    if warp[STATE] == DRAINING:
        _end_warp(p, m, v, r, w, now)
        return NEVER
    warp[STATE] = RUNNING
    for k in range(6):
        warp[WAKE] = max(warp[WAKE], warp[UNTIL + k])
    return int(warp[WAKE])


@compiled
def _pick(p: Packed, m: Machine, v: Values, r: Results, s: int, now: int) -> int:
    """Greedy, then youngest: the warp of the last cycle while it can, else the youngest that can."""
    scheduler = m.scheduler[s]
    last = scheduler[LAST]
    goes_on = last >= 0 and m.warp[last, WAKE] <= now and m.warp[last, STATE] == RUNNING
    if goes_on and _throttled(p.fact, m.whole, m.scheduler, m.warp, last, s, now) <= now:
        return int(last)
    best, age, soonest = -1, -1, NEVER
    scheduler[IDLE_UNTIL] = NEVER
    for w in range(s, m.whole[WARPS], m.whole[SCHEDULERS]):
        at = m.warp[w, WAKE]
        if at <= now:
            if m.warp[w, STATE] != RUNNING:
                at = _leave_state(p, m, v, r, w, now)
            if at <= now:
                at = _throttled(p.fact, m.whole, m.scheduler, m.warp, w, s, now)
        if at > now:
            soonest = min(soonest, at)
        elif m.warp[w, AGE] > age:
            best, age = w, m.warp[w, AGE]
    if best < 0:
        # A block that started meanwhile asks to be looked at by setting this to 0.
        scheduler[IDLE_UNTIL] = min(scheduler[IDLE_UNTIL], soonest)
    else:
        scheduler[IDLE_UNTIL] = 0
    return best


@compiled
def _cycle(p: Packed, c: Slice, m: Machine, v: Values, r: Results, now: int) -> bool:
    """One cycle of all schedulers; whether anything was issued."""
    issued = False
    for s in range(m.whole[SCHEDULERS]):
        scheduler = m.scheduler[s]
        scheduler[CHOSEN] = -1
        if scheduler[IDLE_UNTIL] > now:
            continue
        w = _pick(p, m, v, r, s, now)
        if w >= 0:
            i = m.warp[w, PC]
            scheduler[CHOSEN] = w
            scheduler[CHOSEN_PC] = i
            scheduler[LAST] = -1 if p.fact[i, YIELDS] else w
            _issue(p, c, m, v, r, w, s, now)
            issued = True
    return issued


@seldom
def _force(m: Machine, r: Results, now: int) -> None:
    """Nobody can ever go on: open all barriers, and count that."""
    m.number[FORCED] += 1
    for slot in range(m.whole[BLOCK_SLOTS]):
        for barrier in range(16):
            if m.block[slot, BARRIER_COUNT + barrier]:
                _release(m, r, slot, barrier, -1, -1, now)


@compiled
def _advance(m: Machine, r: Results, now: int, issued: bool) -> int:  # noqa: FBT001 - as above
    """The next cycle in which anything can happen."""
    if issued or m.number[FINISHED_BLOCKS] >= m.whole[BLOCKS]:
        return now + 1
    soonest = NEVER
    for s in range(m.whole[SCHEDULERS]):
        soonest = min(soonest, m.scheduler[s, IDLE_UNTIL])
    if soonest == NEVER:
        _force(m, r, now)
        return now + 1
    return int(max(now + 1, min(soonest, m.number[NEXT_SAMPLE])))


@seldom
def _begin(p: Packed, m: Machine, v: Values) -> None:
    """Fill the SM with blocks."""
    number, whole = m.number, m.whole
    number[STARTED] = 1
    for slot in range(whole[BLOCK_SLOTS]):
        if number[NEXT_BLOCK] < whole[BLOCKS]:
            _start_block(p, m, v, slot, slot * whole[LAUNCH_CYCLES])
    number[NEXT_SAMPLE] = number[INTERVAL_NOW] // 2


@entry
def run(p: Packed, c: Slice, m: Machine, v: Values, r: Results, turns: int) -> None:
    """Go on until all blocks of one SM have run, a limit is reached, or for so many turns of the loop."""
    number, whole = m.number, m.whole
    if number[STARTED] == 0:
        _begin(p, m, v)
    now = number[NOW]  # not a literal 0, for which everything would be compiled once more
    number[STATUS] = DONE
    while number[FINISHED_BLOCKS] < whole[BLOCKS]:
        if turns == 0:
            number[STATUS] = RUNNING_STILL
            break
        turns -= 1
        issued = _cycle(p, c, m, v, r, now)
        if number[NEXT_SAMPLE] <= now:
            sample(p, m, r, now)
        following = _advance(m, r, now, issued)
        m.traffic[WARP_CYCLES] += float(number[LIVE_WARPS] * (following - now))
        m.traffic[ACTIVE_CYCLES] += float(following - now)
        now = following
        if now >= whole[MAX_CYCLES]:
            number[STATUS] = CYCLE_LIMIT
            break
        if number[INSTRUCTIONS] >= whole[MAX_INSTRUCTIONS]:
            number[STATUS] = INSTRUCTION_LIMIT
            break
    number[NOW] = now
