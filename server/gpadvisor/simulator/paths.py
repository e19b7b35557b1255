# SPDX-License-Identifier: Apache-2.0
"""Control flow of a warp: conditions, divergence and reconvergence, calls, the instruction caches."""

from __future__ import annotations

from gpadvisor.model.machine import CONVERGENCE_BARRIERS, WARP
from gpadvisor.simulator.chance import guessed, uniform
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.state import (
    ACTIVE,
    ARRIVED,
    BARRIER_NUMBER,
    BRANCH_CYCLES,
    CALLS,
    CONDITIONAL,
    COUNTER,
    DEPTH,
    DIVERGENT,
    FETCH_L1,
    FETCH_L2,
    GUARD,
    GUARD_NEGATED,
    JOINED,
    L0_LINES,
    L1_LINES,
    LINE_COUNT,
    LIVE,
    NEVER,
    PC,
    PREFETCH,
    RESUME,
    RETURNS,
    RULE,
    SCHEDULERS,
    SECOND,
    SECOND_NEGATED,
    SPLIT_COUNT,
    SPLIT_LANES,
    SPLIT_PC,
    SPLITS,
    TAKEN,
    TARGET,
    TARGETS,
    TOO_DEEP,
    TRIPS,
    U_BRANCH,
    UNTIL,
    Machine,
    Results,
)
from gpadvisor.simulator.values import ALL, Values, lanes_of


@seldom
def taken_lanes(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int) -> int:
    """The active lanes for which a branch, call or exit is taken."""
    fact = p.fact[i]
    active = m.warp[w, ACTIVE]
    if not fact[CONDITIONAL]:
        return int(active)
    first, sure = lanes_of(v, w, fact[GUARD], fact[GUARD_NEGATED] != 0)
    second, sure_too = lanes_of(v, w, fact[SECOND], fact[SECOND_NEGATED] != 0)
    known_lanes = (sure & sure_too) | (sure & ~first) | (sure_too & ~second)
    if active & ~known_lanes == 0:
        return int(first & second & active)
    r.undecided[i] += 1
    chance = p.rate[i, TAKEN]
    if fact[RULE] == 1:
        counter = fact[COUNTER]
        m.trips[w, counter] += 1
        stays = m.trips[w, counter] < fact[TRIPS]
        if not stays:
            m.trips[w, counter] = 0
        return int(active) if stays == (chance == 1.0) else 0
    if m.whole[DIVERGENT] and 0.0 < chance < 1.0:
        lanes = 0
        for lane in range(WARP):
            if guessed(m, w, chance):
                lanes |= 1 << lane
        return int(lanes & active)
    return int(active) if guessed(m, w, chance) else 0


@seldom
def decide_guard(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int) -> None:
    """Draw a guard that is not known for active lanes; it is from then on, until it is written again."""
    slot, lanes = p.fact[i, GUARD], m.warp[w, ACTIVE]
    if slot < 0 or lanes & ~v.flag_known[w, slot] == 0:
        return
    r.undecided[i] += 1
    lanes &= ~v.flag_known[w, slot]
    held = guessed(m, w, p.rate[i, TAKEN]) != (p.fact[i, GUARD_NEGATED] != 0)
    v.flag[w, slot] = (v.flag[w, slot] & ~lanes) | (lanes if held else 0)
    v.flag_known[w, slot] |= lanes


@compiled
def branch(m: Machine, w: int, target: int, jumping: int, cycle: int) -> None:
    """Go on at a target, behind the branch, or first at one and later at the other."""
    warp = m.warp[w]
    active = warp[ACTIVE]
    if jumping == 0:
        return
    if jumping != active and warp[SPLIT_COUNT] < SPLITS:
        depth = warp[SPLIT_COUNT]
        warp[SPLIT_PC + depth] = target
        warp[SPLIT_LANES + depth] = jumping
        warp[SPLIT_COUNT] = depth + 1
        warp[ACTIVE] = active & ~jumping
        return
    warp[PC] = target
    warp[UNTIL + U_BRANCH] = cycle + m.whole[BRANCH_CYCLES]


@seldom
def next_split(m: Machine, w: int, cycle: int) -> bool:
    """Go on with lanes that were left behind; False where there are none."""
    warp = m.warp[w]
    while warp[SPLIT_COUNT] > 0:
        depth = warp[SPLIT_COUNT] - 1
        warp[SPLIT_COUNT] = depth
        lanes = warp[SPLIT_LANES + depth] & warp[LIVE]
        if lanes:
            warp[ACTIVE] = lanes
            warp[PC] = warp[SPLIT_PC + depth]
            warp[UNTIL + U_BRANCH] = cycle + m.whole[BRANCH_CYCLES]
            return True
    for barrier in range(CONVERGENCE_BARRIERS):
        lanes = warp[ARRIVED + barrier] & warp[LIVE]
        if lanes:
            warp[ARRIVED + barrier] = 0
            warp[ACTIVE] = lanes
            warp[PC] = warp[RESUME + barrier]
            return True
    return False


@seldom
def converge(p: Packed, m: Machine, w: int, i: int, cycle: int) -> None:
    """BSYNC: wait for the other lanes of the barrier."""
    warp = m.warp[w]
    barrier = p.fact[i, BARRIER_NUMBER]
    arrived = (warp[ARRIVED + barrier] | warp[ACTIVE]) & warp[LIVE]
    expected = warp[JOINED + barrier] & warp[LIVE]
    warp[PC] = i + 1
    if expected & ~arrived == 0 or warp[SPLIT_COUNT] == 0:
        warp[ACTIVE] = arrived
        warp[ARRIVED + barrier] = 0
        return
    warp[ARRIVED + barrier] = arrived
    warp[RESUME + barrier] = i + 1
    next_split(m, w, cycle)


@compiled
def mark(p: Packed, m: Machine, w: int, i: int) -> None:
    """BSSY: the active lanes will meet again."""
    barrier = p.fact[i, BARRIER_NUMBER]
    m.warp[w, JOINED + barrier] = m.warp[w, ACTIVE]
    m.warp[w, ARRIVED + barrier] = 0


@seldom
def call(p: Packed, m: Machine, w: int, i: int, lanes: int, cycle: int) -> None:
    """Go to a function of this section; others return at once, as calls do that are too deep."""
    target = p.fact[i, TARGET]
    if target < 0 or lanes == 0:
        return
    warp = m.warp[w]
    if warp[DEPTH] >= CALLS:
        m.number[TOO_DEEP] += 1
        return
    warp[RETURNS + warp[DEPTH]] = i + 1
    warp[DEPTH] += 1
    branch(m, w, target, lanes, cycle)


@seldom
def give_back(p: Packed, m: Machine, v: Values, w: int, slot: int, cycle: int) -> None:
    """RET: to the address in its register where that is known, else behind the last call."""
    warp = m.warp[w]
    warp[DEPTH] = max(0, warp[DEPTH] - 1)
    target = warp[RETURNS + warp[DEPTH]]
    if slot >= 0 and warp[ACTIVE] & ~v.known[w, slot] == 0:
        first = 0
        while first < 31 and not warp[ACTIVE] >> first & 1:
            first += 1
        address = v.word[w, slot, first] // 16
        if 0 < address < len(p.fact) - 1:
            target = address
    warp[PC] = target
    warp[UNTIL + U_BRANCH] = cycle + m.whole[BRANCH_CYCLES]


@seldom
def indirect(p: Packed, m: Machine, w: int, i: int, cycle: int) -> None:
    """One of the targets that the code lists."""
    first, end = p.fact[i, TARGETS], p.fact[i, TARGETS + 1]
    if end > first:
        m.warp[w, PC] = p.listed[first + int(uniform(m) * (end - first))]
        m.warp[w, UNTIL + U_BRANCH] = cycle + m.whole[BRANCH_CYCLES]


@seldom
def leave_barrier(p: Packed, m: Machine, w: int, i: int) -> None:
    """BREAK: these lanes will not come to the barrier."""
    m.warp[w, JOINED + p.fact[i, BARRIER_NUMBER]] &= ~m.warp[w, ACTIVE] & ALL


# ---- instruction fetch ----


@seldom
def _bring(m: Machine, cache: int, line: int, arrival: int, capacity: int) -> None:
    """One line into a cache, the oldest one out."""
    place = m.scheduler[cache, LINE_COUNT] % capacity
    old = m.line_order[cache, place]
    if old >= 0:
        m.line_at[cache, old] = NEVER
    m.line_order[cache, place] = line
    m.line_at[cache, line] = arrival
    m.scheduler[cache, LINE_COUNT] += 1


@compiled
def fetched(m: Machine, s: int, line: int, cycle: int) -> int:
    """When a line is in the scheduler's instruction cache; those behind it come ahead of the warp."""
    lines, present = m.line_at.shape[1], m.line_at[s, line]
    ahead = min(line + m.whole[PREFETCH] // 2, lines - 1)
    if present != NEVER and m.line_at[s, ahead] != NEVER:
        return int(present)
    outer = m.whole[SCHEDULERS]
    inner_lines, outer_lines = min(m.whole[L0_LINES], lines), min(m.whole[L1_LINES], lines)
    for more in range(min(m.whole[PREFETCH], lines - line)):
        wanted = line + more
        if m.line_at[s, wanted] != NEVER:
            continue
        if m.line_at[outer, wanted] == NEVER:
            _bring(m, outer, wanted, cycle + m.whole[FETCH_L2] + 2 * more, outer_lines)
        _bring(m, s, wanted, max(cycle + m.whole[FETCH_L1], m.line_at[outer, wanted]) + 2 * more, inner_lines)
        if more == 0:
            present = m.line_at[s, line]
    return int(present)
