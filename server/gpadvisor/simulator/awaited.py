# SPDX-License-Identifier: Apache-2.0
"""What held a warp in one wait beside the operation that ended it: all that the same counter waited for.

A scoreboard is a counter: the waiting instruction cannot tell which of the operations on it is missing.
"""

from __future__ import annotations

from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import LoweredFlow, Packed
from gpadvisor.simulator.state import (
    AWAITED,
    BARRIER_NUMBER,
    COPIES,
    DRAIN,
    FLOW,
    GROUP,
    IN_FLIGHT,
    LONG,
    MAX_AWAITED,
    MEMBAR,
    PC,
    PENDING_COUNT,
    RESULT,
    SAMPLE_TURN,
    SCOREBOARDS,
    SHORT,
    STORE_DONE,
    STORES,
    U_BRANCH,
    U_FENCE,
    U_FETCH,
    U_SCOREBOARD,
    U_SLEEP,
    U_STALL,
    UNTIL,
    WAIT_MASK,
    Machine,
    Results,
)

_PARTIAL_WAIT = LoweredFlow.PARTIAL_WAIT.value


@compiled
def note_awaited(m: Machine, r: Results, whose: int, i: int) -> None:
    """One more instruction that holds the sampled warp, or one that is late at its barrier."""
    count = m.number[AWAITED]
    if count < MAX_AWAITED:
        row = r.awaited[count]
        row[0], row[1], row[2] = m.number[SAMPLE_TURN], whose, i
        m.number[AWAITED] += 1


@compiled
def _kind_of_last(m: Machine, w: int, ring: int, until: int) -> int:
    """What the operation that ends at this very time is counted for; -1 without one."""
    for k in range(min(m.warp[w, PENDING_COUNT + ring], IN_FLIGHT)):
        if m.pending[w, ring, k, 0] == until:
            return int(m.pending[w, ring, k, 2])
    return -1


@compiled
def _note_ring(m: Machine, r: Results, w: int, whose: int, ring: int, kind: int, until: int) -> None:
    """Operations of a ring that still ran when the wait began, and that it is for."""
    since = _began(m, w)
    for k in range(min(m.warp[w, PENDING_COUNT + ring], IN_FLIGHT)):
        if m.pending[w, ring, k, 2] == kind and since < m.pending[w, ring, k, 0] <= until:
            note_awaited(m, r, whose, m.pending[w, ring, k, 1])


@compiled
def _began(m: Machine, w: int) -> int:
    """When nothing but what it waits for held a warp any more."""
    since = m.warp[w, UNTIL + U_STALL]
    since = max(since, m.warp[w, UNTIL + U_BRANCH], m.warp[w, UNTIL + U_FETCH])
    return int(max(since, m.warp[w, UNTIL + U_SLEEP]))


@seldom
def note_all_awaited(p: Packed, m: Machine, r: Results, w: int, whose: int, reason: int) -> None:
    """Note what the scoreboard that releases the warp last was waiting for, or its stores."""
    warp = m.warp[w]
    if reason == DRAIN:
        _note_ring(m, r, w, whose, STORES, RESULT, warp[STORE_DONE])
    elif reason == MEMBAR:
        _note_ring(m, r, w, whose, STORES, RESULT, warp[UNTIL + U_FENCE])
    elif reason in (LONG, SHORT):
        fact, until = p.fact[warp[PC]], warp[UNTIL + U_SCOREBOARD]
        for barrier in range(SCOREBOARDS):
            partial = fact[FLOW] == _PARTIAL_WAIT and fact[BARRIER_NUMBER] == barrier
            if not (partial or fact[WAIT_MASK] >> barrier & 1):
                continue
            kind = _kind_of_last(m, w, barrier, until)
            if kind == GROUP:
                _note_ring(m, r, w, whose, COPIES, RESULT, until)
            elif kind >= 0:
                _note_ring(m, r, w, whose, barrier, kind, until)
