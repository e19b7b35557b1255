# SPDX-License-Identifier: Apache-2.0
"""The inner loop: four schedulers issue warps of real machine code, and a sampler watches them."""

from __future__ import annotations

from gpadvisor.model.machine import NAMED_BARRIERS
from gpadvisor.simulator.blocks import arrive, end_warp, release, start_block
from gpadvisor.simulator.compiled import compiled, entry, seldom
from gpadvisor.simulator.control import ControlRule
from gpadvisor.simulator.evaluate import evaluate
from gpadvisor.simulator.lowered import LoweredFlow, Packed
from gpadvisor.simulator.paths import (
    branch,
    call,
    converge,
    decide_guard,
    give_back,
    indirect,
    leave_barrier,
    mark,
    next_split,
    taken_lanes,
)
from gpadvisor.simulator.readiness import prepare
from gpadvisor.simulator.sampling import sample
from gpadvisor.simulator.state import (
    ACTIVE,
    ACTIVE_CYCLES,
    AGE,
    AT_BARRIER,
    BARRIER_COUNT,
    BARRIER_CYCLES,
    BARRIER_ID,
    BLOCK_SLOTS,
    BLOCKS,
    CAUSE,
    CHOSEN,
    CHOSEN_PC,
    CYCLE_LIMIT,
    DONE,
    DRAINING,
    FENCE,
    FINISHED_BLOCKS,
    FLOW,
    FORCED,
    GUARD,
    GUARD_NEGATED,
    HISTORY,
    HISTORY_AT,
    HISTORY_PC,
    IDLE_UNTIL,
    INSTRUCTION_LIMIT,
    INSTRUCTIONS,
    INTERVAL_NOW,
    ISSUED,
    LAST,
    LIVE,
    LIVE_WARPS,
    MAX_CYCLES,
    MAX_INSTRUCTIONS,
    NEVER,
    NEXT_BLOCK,
    NEXT_SAMPLE,
    NOW,
    PC,
    PHASE,
    RULE,
    RUNNING,
    RUNNING_STILL,
    SCHEDULERS,
    SLOT,
    STALL,
    STARTED,
    STATE,
    STATUS,
    STORE_DONE,
    STORE_PC,
    TARGET,
    U_FENCE,
    U_SLEEP,
    U_STALL,
    UNTIL,
    WAKE,
    WARP_CYCLES,
    WARPS,
    YIELDS,
    Machine,
    Results,
)
from gpadvisor.simulator.units import occupy, throttled
from gpadvisor.simulator.values import Slice, Values, lanes_of

# Compiled code compares numbers.
_BRANCH, _CALL, _RETURN = LoweredFlow.BRANCH.value, LoweredFlow.CALL.value, LoweredFlow.RETURN.value
_EXIT, _NOT_CODE, _INDIRECT = LoweredFlow.EXIT.value, LoweredFlow.NOT_CODE.value, LoweredFlow.INDIRECT.value
_MARK, _CONVERGE, _BREAK = LoweredFlow.MARK.value, LoweredFlow.CONVERGE.value, LoweredFlow.BREAK.value
_BARRIER, _ARRIVE = LoweredFlow.BARRIER.value, LoweredFlow.ARRIVE.value
_GUARDED = ControlRule.GUARD.value
_FENCE, _SLEEP = LoweredFlow.FENCE.value, LoweredFlow.SLEEP.value


# ---- units ----


# ---- one instruction ----


@seldom
def _other_flow(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, cycle: int) -> None:
    """Barriers, fences, sleep, calls."""
    fact, warp = p.fact[i], m.warp[w]
    flow = fact[FLOW]
    if flow in (_BARRIER, _ARRIVE):
        arrive(p, m, r, w, i, flow == _BARRIER, cycle)
    elif flow == _FENCE:
        warp[UNTIL + U_FENCE] = max(cycle + fact[FENCE], warp[STORE_DONE])
        warp[CAUSE + U_FENCE] = warp[STORE_PC] if warp[STORE_DONE] > cycle + fact[FENCE] else i
    elif flow == _SLEEP:
        warp[UNTIL + U_SLEEP] = cycle + fact[FENCE]
        warp[CAUSE + U_SLEEP] = i
    elif flow == _CALL:
        call(p, m, w, i, taken_lanes(p, m, v, r, w, i), cycle)
    elif flow == _RETURN:
        give_back(p, m, v, w, fact[TARGET], cycle)
    elif flow == _INDIRECT:
        indirect(p, m, w, i, cycle)
    elif flow == _BREAK:
        leave_barrier(p, m, w, i)


@seldom
def _exit(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, cycle: int) -> bool:
    """EXIT: some lanes end; True where the warp has none left."""
    warp = m.warp[w]
    ending = taken_lanes(p, m, v, r, w, i)
    warp[LIVE] &= ~ending
    warp[ACTIVE] &= ~ending
    if warp[ACTIVE]:
        return False
    if warp[LIVE] and next_split(m, w, cycle):
        return False
    if warp[STORE_DONE] > cycle:
        warp[STATE] = DRAINING
        warp[WAKE] = warp[STORE_DONE]
    else:
        end_warp(p, m, v, r, w, cycle)
    return True


@seldom
def _issue(p: Packed, c: Slice, m: Machine, v: Values, r: Results, w: int, cycle: int) -> None:
    """Issue the next instruction of a warp."""
    warp = m.warp[w]
    i = warp[PC]
    fact = p.fact[i]
    if fact[RULE] == _GUARDED:
        decide_guard(p, m, v, r, w, i)
    held, sure = lanes_of(v, w, fact[GUARD], fact[GUARD_NEGATED] != 0)
    lanes = warp[ACTIVE] & (held | ~sure)
    phase = warp[PHASE]
    r.executed[phase, i] += 1
    remaining = lanes
    while remaining:
        remaining &= remaining - 1
        r.threads[phase, i] += 1
    m.number[INSTRUCTIONS] += 1
    for k in range(6):
        warp[UNTIL + k] = 0
    warp[UNTIL + U_STALL] = cycle + fact[STALL]
    warp[CAUSE + U_STALL] = i
    entry = warp[ISSUED] % HISTORY
    warp[HISTORY_PC + entry] = i
    warp[HISTORY_AT + entry] = cycle
    warp[ISSUED] += 1
    occupy(p, m, v, r, w, lanes, cycle)
    if c.op[i]:
        evaluate(c, v, w, i, warp[ACTIVE])
    warp[PC] = i + 1
    flow = fact[FLOW]
    if flow == _BRANCH:
        target = fact[TARGET]
        branch(m, w, target if target >= 0 else i + 1, taken_lanes(p, m, v, r, w, i), cycle)
    elif flow == _EXIT:
        if _exit(p, m, v, r, w, i, cycle):
            return
    elif flow == _MARK:
        mark(p, m, w, i)
    elif flow == _CONVERGE:
        converge(p, m, w, i, cycle)
    elif flow == _NOT_CODE:
        warp[LIVE] = warp[ACTIVE] = 0
        end_warp(p, m, v, r, w, cycle)
        return
    elif flow:
        _other_flow(p, m, v, r, w, i, cycle)
    prepare(p, m, w, cycle)
    if warp[STATE] == AT_BARRIER:
        # The warp that came last has let all go, and takes as long as they do.
        open_still = m.block[warp[SLOT], BARRIER_COUNT + warp[BARRIER_ID]] > 0
        warp[WAKE] = NEVER if open_still else cycle + m.whole[BARRIER_CYCLES]


@seldom
def _leave_state(p: Packed, m: Machine, v: Values, r: Results, w: int, cycle: int) -> int:
    """The end of a warp that has drained, or of its time at a barrier; when it may issue."""
    warp = m.warp[w]
    if warp[STATE] == DRAINING:
        end_warp(p, m, v, r, w, cycle)
        return NEVER
    warp[STATE] = RUNNING
    for k in range(6):
        warp[WAKE] = max(warp[WAKE], warp[UNTIL + k])
    return int(warp[WAKE])


@compiled
def _pick(p: Packed, m: Machine, v: Values, r: Results, s: int, cycle: int) -> int:
    """Greedy, then youngest: the warp of the last cycle while it can, else the youngest that can."""
    scheduler = m.scheduler[s]
    previous = scheduler[LAST]
    goes_on = previous >= 0 and m.warp[previous, WAKE] <= cycle and m.warp[previous, STATE] == RUNNING
    if goes_on and throttled(p.fact, m.whole, m.scheduler, m.warp, previous, s, cycle) <= cycle:
        return int(previous)
    best, age, soonest = -1, -1, NEVER
    scheduler[IDLE_UNTIL] = NEVER
    for w in range(s, m.whole[WARPS], m.whole[SCHEDULERS]):
        ready = m.warp[w, WAKE]
        if ready <= cycle:
            if m.warp[w, STATE] != RUNNING:
                ready = _leave_state(p, m, v, r, w, cycle)
            if ready <= cycle:
                ready = throttled(p.fact, m.whole, m.scheduler, m.warp, w, s, cycle)
        if ready > cycle:
            soonest = min(soonest, ready)
        elif m.warp[w, AGE] > age:
            best, age = w, m.warp[w, AGE]
    if best < 0:
        # A block that started meanwhile asks to be looked at by setting this to 0.
        scheduler[IDLE_UNTIL] = min(scheduler[IDLE_UNTIL], soonest)
    else:
        scheduler[IDLE_UNTIL] = 0
    return best


@compiled
def _cycle(p: Packed, c: Slice, m: Machine, v: Values, r: Results, cycle: int) -> bool:
    """One cycle of all schedulers; whether anything was issued."""
    issued = False
    for s in range(m.whole[SCHEDULERS]):
        scheduler = m.scheduler[s]
        scheduler[CHOSEN] = -1
        if scheduler[IDLE_UNTIL] > cycle:
            continue
        w = _pick(p, m, v, r, s, cycle)
        if w >= 0:
            i = m.warp[w, PC]
            scheduler[CHOSEN] = w
            scheduler[CHOSEN_PC] = i
            scheduler[LAST] = -1 if p.fact[i, YIELDS] else w
            _issue(p, c, m, v, r, w, cycle)
            issued = True
    return issued


@seldom
def _force(m: Machine, r: Results, cycle: int) -> None:
    """Nobody can ever go on: open all barriers, and count that."""
    m.number[FORCED] += 1
    for slot in range(m.whole[BLOCK_SLOTS]):
        for barrier in range(NAMED_BARRIERS):
            if m.block[slot, BARRIER_COUNT + barrier]:
                release(m, r, slot, barrier, -1, -1, cycle)


@compiled
def _advance(m: Machine, r: Results, cycle: int, issued: bool) -> int:  # noqa: FBT001 - as above
    """The next cycle in which anything can happen."""
    if issued or m.number[FINISHED_BLOCKS] >= m.whole[BLOCKS]:
        return cycle + 1
    soonest = NEVER
    for s in range(m.whole[SCHEDULERS]):
        soonest = min(soonest, m.scheduler[s, IDLE_UNTIL])
    if soonest == NEVER:
        _force(m, r, cycle)
        return cycle + 1
    return int(max(cycle + 1, min(soonest, m.number[NEXT_SAMPLE])))


@seldom
def _begin(p: Packed, m: Machine, v: Values) -> None:
    """Fill the SM with blocks."""
    number, parameters = m.number, m.whole
    number[STARTED] = 1
    for slot in range(parameters[BLOCK_SLOTS]):
        if number[NEXT_BLOCK] < parameters[BLOCKS]:
            start_block(p, m, v, slot, number[NOW])
    number[NEXT_SAMPLE] = number[INTERVAL_NOW] // 2


@entry
def run(p: Packed, c: Slice, m: Machine, v: Values, r: Results, turns: int) -> None:
    """Go on until all blocks of one SM have run, a limit is reached, or for so many turns of the loop."""
    number, parameters = m.number, m.whole
    if number[STARTED] == 0:
        _begin(p, m, v)
    cycle = number[NOW]  # not a literal 0, for which everything would be compiled once more
    number[STATUS] = DONE
    while number[FINISHED_BLOCKS] < parameters[BLOCKS]:
        if turns == 0:
            number[STATUS] = RUNNING_STILL
            break
        turns -= 1
        issued = _cycle(p, c, m, v, r, cycle)
        if number[NEXT_SAMPLE] <= cycle:
            sample(p, m, r, cycle)
        following = _advance(m, r, cycle, issued)
        m.traffic[WARP_CYCLES] += float(number[LIVE_WARPS] * (following - cycle))
        m.traffic[ACTIVE_CYCLES] += float(following - cycle)
        cycle = following
        if cycle >= parameters[MAX_CYCLES]:
            number[STATUS] = CYCLE_LIMIT
            break
        if number[INSTRUCTIONS] >= parameters[MAX_INSTRUCTIONS]:
            number[STATUS] = INSTRUCTION_LIMIT
            break
    number[NOW] = cycle
