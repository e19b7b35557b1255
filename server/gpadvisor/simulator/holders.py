# SPDX-License-Identifier: Apache-2.0
"""What holds a warp up as much as the operation that will release it: all that its counter still waits for.

A scoreboard is a counter: the waiting instruction cannot tell which of the operations on it is missing.
"""

from __future__ import annotations

from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowering import Packed
from gpadvisor.simulator.state import (
    ACCESS,
    BARRIER_NUMBER,
    COPIES,
    DRAIN,
    FLOW,
    HOLDERS,
    IN_FLIGHT,
    LONG,
    MAX_HOLDERS,
    MEMBAR,
    PC,
    PENDING_COUNT,
    SAMPLE_TURN,
    SCOREBOARDS,
    SHORT,
    STORE_DONE,
    STORES,
    U_FENCE,
    U_SCOREBOARD,
    UNTIL,
    WAIT_MASK,
    Machine,
    Results,
)

_ASYNC_COPY = 9  # resources.Access
_PARTIAL_WAIT = 10  # lowering.Flow


@compiled
def note_holder(m: Machine, r: Results, whose: int, i: int) -> None:
    """One more instruction that holds the sampled warp, or one that is late at its barrier."""
    at = m.number[HOLDERS]
    if at < MAX_HOLDERS:
        row = r.holders[at]
        row[0], row[1], row[2] = m.number[SAMPLE_TURN], whose, i
        m.number[HOLDERS] += 1


@compiled
def _ends_at(m: Machine, w: int, ring: int, time: int) -> bool:
    """Whether an operation of a ring ends at this very time."""
    for k in range(min(m.warp[w, PENDING_COUNT + ring], IN_FLIGHT)):
        if m.pending[w, ring, k, 0] == time:
            return True
    return False


@compiled
def _note_ring(m: Machine, r: Results, w: int, whose: int, ring: int, now: int, until: int) -> None:
    """Operations of a ring that are still on their way, and not beyond the time that the warp waits for."""
    for k in range(min(m.warp[w, PENDING_COUNT + ring], IN_FLIGHT)):
        if now < m.pending[w, ring, k, 0] <= until:
            note_holder(m, r, whose, m.pending[w, ring, k, 1])


@compiled
def _note_groups(
    p: Packed, m: Machine, r: Results, w: int, whose: int, ring: int, now: int, until: int
) -> None:
    """The copies of committed groups: their commit is on a scoreboard with the time of the last of them."""
    for k in range(min(m.warp[w, PENDING_COUNT + ring], IN_FLIGHT)):
        end = m.pending[w, ring, k, 0]
        copy = p.fact[m.pending[w, ring, k, 1], ACCESS] == _ASYNC_COPY
        if copy and now < end <= until and _ends_at(m, w, COPIES, end):
            _note_ring(m, r, w, whose, COPIES, now, end)


@seldom
def note_holders(p: Packed, m: Machine, r: Results, w: int, whose: int, reason: int, now: int) -> None:
    """Note what is still running on the scoreboard that releases the warp last, or its stores."""
    warp = m.warp[w]
    if reason == DRAIN:
        _note_ring(m, r, w, whose, STORES, now, warp[STORE_DONE])
    elif reason == MEMBAR:
        _note_ring(m, r, w, whose, STORES, now, warp[UNTIL + U_FENCE])
    elif reason in (LONG, SHORT):
        fact, until = p.fact[warp[PC]], warp[UNTIL + U_SCOREBOARD]
        for barrier in range(SCOREBOARDS):
            partial = fact[FLOW] == _PARTIAL_WAIT and fact[BARRIER_NUMBER] == barrier
            if (partial or fact[WAIT_MASK] >> barrier & 1) and _ends_at(m, w, barrier, until):
                _note_ring(m, r, w, whose, barrier, now, until)
                _note_groups(p, m, r, w, whose, barrier, now, until)
