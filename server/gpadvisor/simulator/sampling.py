# SPDX-License-Identifier: Apache-2.0
"""The sampler of an SM, and what each sampled warp really waits for (GPA section II-A)."""

from __future__ import annotations

from gpadvisor.simulator.awaited import note_all_awaited, note_awaited
from gpadvisor.simulator.chance import uniform
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.state import (
    ACCESS,
    AT_BARRIER,
    BARRIER,
    BARRIER_EVENT,
    BLOCK_START,
    BRANCH,
    CAUSE,
    CHOSEN,
    CHOSEN_PC,
    DEFS,
    DRAIN,
    DRAINING,
    EMPTY,
    FETCH,
    FIXED,
    HISTORY,
    HISTORY_AT,
    HISTORY_PC,
    INTERVAL_NOW,
    ISSUED,
    LATE,
    MAX_LATE,
    MAX_SAMPLES,
    MEMBAR,
    NEXT_SAMPLE,
    NOT_SELECTED,
    PC,
    PERIOD_START,
    PHASE,
    RUNNING,
    S_CAUSE,
    S_LATENCY,
    S_PC,
    S_PHASE,
    S_REASON,
    S_SERIAL,
    SAMPLE_TURN,
    SAMPLES,
    SCHEDULERS,
    SCOREBOARD_REASON,
    SELECTED,
    SERVED,
    SERVED_LSU,
    SERVED_TEX,
    SERVED_XU,
    SLEEPING,
    SLOT,
    STATE,
    STORE_PC,
    THROTTLE,
    THROTTLE_CAUSE,
    THROTTLE_REASON,
    TURN,
    U_BRANCH,
    U_FENCE,
    U_FETCH,
    U_SCOREBOARD,
    U_SLEEP,
    U_STALL,
    UNIT,
    UNTIL,
    USES,
    WAIT,
    WARPS,
    WARPS_PER_BLOCK,
    Machine,
    Results,
)

_MIO, _TEX, _XU = 7, 9, 10  # resources.Unit


@compiled
def _needs(p: Packed, i: int, j: int) -> bool:
    """Whether instruction i reads a register that j writes."""
    for use in range(p.fact[i, USES], p.fact[i, USES + 1]):
        for definition in range(p.fact[j, DEFS], p.fact[j, DEFS + 1]):
            if p.registers[use] == p.registers[definition]:
                return True
    return False


@compiled
def _running_result(p: Packed, m: Machine, w: int) -> tuple[int, int]:
    """What a stall count waits for, and until when: the result that comes last, of those read next.

    Without one, the count is the doing of the instruction that bears it.
    """
    warp = m.warp[w]
    i = warp[PC]
    issued = warp[ISSUED]
    before = warp[HISTORY_AT + (issued - 1) % HISTORY]
    producer = warp[HISTORY_PC + (issued - 1) % HISTORY]
    latest = before + 1
    for distance in range(1, min(issued, HISTORY) + 1):
        j, ready = _result(p, m, w, distance)
        if ready > latest and p.fact[j, FIXED] and _needs(p, i, j):
            latest = ready
            producer = j
    return int(producer), int(latest)


@compiled
def _result(p: Packed, m: Machine, w: int, distance: int) -> tuple[int, int]:
    """The instruction that a warp issued so many before, and when its result can be read by the next one."""
    warp = m.warp[w]
    i = warp[PC]
    entry = (warp[ISSUED] - distance) % HISTORY
    j, when = warp[HISTORY_PC + entry], warp[HISTORY_AT + entry]
    other_unit = p.fact[i, ACCESS] != 0 or p.fact[i, UNIT] != p.fact[j, UNIT]
    return int(j), int(when + p.fact[j, FIXED + (1 if other_unit else 0)])


@seldom
def _note_results(p: Packed, m: Machine, r: Results, w: int, whose: int) -> None:
    """Results that come at the very time of the last one hold the warp as well."""
    _, latest = _running_result(p, m, w)
    for distance in range(1, min(m.warp[w, ISSUED], HISTORY) + 1):
        j, ready = _result(p, m, w, distance)
        if ready == latest and p.fact[j, FIXED] and _needs(p, m.warp[w, PC], j):
            note_awaited(m, r, whose, j)


@compiled
def _served(p: Packed, m: Machine, w: int, first: int, cycle: int) -> int:
    """What keeps the unit busy that the first of a queue waits for: the last that it started with."""
    unit = p.fact[first, UNIT]
    row = SERVED_XU + w % m.whole[SCHEDULERS] if unit == _XU else SERVED_TEX if unit == _TEX else SERVED_LSU
    served = m.served[row]
    count = served[SERVED, 0]
    for distance in range(1, min(count, SERVED) + 1):
        entry = (count - distance) % SERVED
        if served[entry, 0] <= cycle:
            return int(served[entry, 1])
    return first


@compiled
def _classify(p: Packed, m: Machine, w: int, cycle: int) -> tuple[int, int]:
    """Why a warp does not issue, and the instruction that this is due to."""
    warp = m.warp[w]
    if warp[STATE] == AT_BARRIER:
        return BARRIER, -2 - int(warp[BARRIER_EVENT]) if warp[BARRIER_EVENT] >= 0 else int(warp[PC]) - 1
    if warp[STATE] == DRAINING:
        return DRAIN, int(warp[STORE_PC])
    if warp[UNTIL + U_STALL] > cycle:
        return WAIT, _running_result(p, m, w)[0]
    if warp[UNTIL + U_BRANCH] > cycle:
        return BRANCH, int(warp[CAUSE + U_STALL])
    if warp[UNTIL + U_FETCH] > cycle:
        return FETCH, int(warp[PC])
    if warp[UNTIL + U_FENCE] > cycle:
        return MEMBAR, int(warp[CAUSE + U_FENCE])
    if warp[UNTIL + U_SLEEP] > cycle:
        return SLEEPING, int(warp[CAUSE + U_SLEEP])
    if warp[UNTIL + U_SCOREBOARD] > cycle:
        return int(warp[SCOREBOARD_REASON]), int(warp[CAUSE + U_SCOREBOARD])
    if warp[THROTTLE] > cycle:
        first = int(warp[THROTTLE_CAUSE])
        queued = p.fact[first, UNIT] >= _MIO
        return int(warp[THROTTLE_REASON]), _served(p, m, w, first, cycle) if queued else first
    return NOT_SELECTED, -1


@compiled
def _next_warp(m: Machine, s: int, cycle: int) -> int:
    """The next live warp of a scheduler, in turn."""
    scheduler = m.scheduler[s]
    count = (m.whole[WARPS] - s + m.whole[SCHEDULERS] - 1) // m.whole[SCHEDULERS]
    for _ in range(count):
        w = s + scheduler[TURN] % count * m.whole[SCHEDULERS]
        scheduler[TURN] += 1
        started = m.warp[w, STATE] != EMPTY and m.block[m.warp[w, SLOT], BLOCK_START] < cycle
        if started or scheduler[CHOSEN] == w:
            return int(w)
    return -1


@seldom
def _thin_out(m: Machine, r: Results) -> None:
    """The buffer is full: keep every second round of the schedulers, and sample half as often."""
    remaining = 0
    schedulers = m.whole[SCHEDULERS]
    for k in range(m.number[SAMPLES]):
        if k // schedulers % 2 == 0:
            for column in range(6):
                r.sample[remaining, column] = r.sample[k, column]
            remaining += 1
    m.number[SAMPLES] = remaining
    m.number[INTERVAL_NOW] *= 2


@seldom
def _note_all_awaited(p: Packed, m: Machine, r: Results, w: int, whose: int, reason: int) -> None:
    if reason == WAIT:
        _note_results(p, m, r, w, whose)
    else:
        note_all_awaited(p, m, r, w, whose, reason)


@compiled
def _late_comers(p: Packed, m: Machine, r: Results, waiting: int, serial: int, cycle: int) -> None:
    """What holds up the warps that a barrier still waits for: one of them will be the last."""
    slot = m.warp[waiting, SLOT]
    for w in range(slot * m.whole[WARPS_PER_BLOCK], (slot + 1) * m.whole[WARPS_PER_BLOCK]):
        if m.warp[w, STATE] != RUNNING or m.number[LATE] >= MAX_LATE:
            continue
        reason, cause = _classify(p, m, w, cycle)
        _note_all_awaited(p, m, r, w, w, reason)
        row = r.late[m.number[LATE]]
        row[0], row[1], row[2] = serial, w, cause if cause >= 0 else m.warp[w, PC]
        m.number[LATE] += 1


@seldom
def sample(p: Packed, m: Machine, r: Results, cycle: int) -> None:
    """One warp of the scheduler whose turn it is.

    The next sample falls on a random cycle of the next period: here, unlike on a GPU, nothing else keeps the
    period from beating with loops and pipes.
    """
    number = m.number
    number[PERIOD_START] += number[INTERVAL_NOW]
    number[NEXT_SAMPLE] = number[PERIOD_START] + int(uniform(m) * number[INTERVAL_NOW])
    s = number[SAMPLE_TURN] % m.whole[SCHEDULERS]
    number[SAMPLE_TURN] += 1
    w = _next_warp(m, s, cycle)
    if w < 0:
        return
    if number[SAMPLES] == MAX_SAMPLES:
        _thin_out(m, r)
    row = r.sample[number[SAMPLES]]
    number[SAMPLES] += 1
    chosen = m.scheduler[s, CHOSEN]
    if chosen == w:
        row[S_PC], row[S_REASON], row[S_CAUSE] = m.scheduler[s, CHOSEN_PC], SELECTED, -1
    else:
        reason, cause = _classify(p, m, w, cycle)
        row[S_PC], row[S_REASON], row[S_CAUSE] = m.warp[w, PC], reason, cause
        if cause < -1:
            _late_comers(p, m, r, w, number[SAMPLE_TURN], cycle)
        else:
            _note_all_awaited(p, m, r, w, -1, reason)
    row[S_LATENCY] = 1 if chosen < 0 else 0
    row[S_SERIAL] = number[SAMPLE_TURN]
    row[S_PHASE] = m.warp[w, PHASE]
