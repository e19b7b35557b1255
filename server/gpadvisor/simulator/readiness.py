# SPDX-License-Identifier: Apache-2.0
"""When the next instruction of a warp may issue, as far as the warp itself decides that."""

from __future__ import annotations

from gpadvisor.simulator.compiled import seldom
from gpadvisor.simulator.lowered import LoweredFlow, Packed
from gpadvisor.simulator.paths import (
    fetched,
)
from gpadvisor.simulator.state import (
    BARRIER_NUMBER,
    CAUSE,
    FLOW,
    IN_FLIGHT,
    KEEP,
    LINE,
    LONG,
    LONG_REASON,
    MATRIX,
    MATRIX_DONE,
    MATRIX_PC,
    NEVER,
    PC,
    PENDING_COUNT,
    RELEASE,
    RELEASE_PC,
    SCHEDULERS,
    SCOREBOARD_REASON,
    SHORT,
    THROTTLE,
    U_FETCH,
    U_SCOREBOARD,
    UNTIL,
    WAIT_MASK,
    WAKE,
    Machine,
)

_PARTIAL, _MATRIX_WAIT = LoweredFlow.PARTIAL_WAIT.value, LoweredFlow.MATRIX_WAIT.value


@seldom
def _partial(m: Machine, w: int, barrier: int, keep: int, cycle: int) -> tuple[int, int]:
    """When at most ``keep`` operations are left on a scoreboard, and which one that hangs on."""
    count = min(m.warp[w, PENDING_COUNT + barrier], IN_FLIGHT)
    ring = m.pending[w, barrier]
    running = 0
    for k in range(count):
        if ring[k, 0] > cycle:
            running += 1
    after, cause = cycle, -1
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
def prepare(p: Packed, m: Machine, w: int, cycle: int) -> None:
    """Find out when the next instruction of a warp may issue, as far as the warp itself decides that."""
    warp = m.warp[w]
    i = warp[PC]
    fact = p.fact[i]
    warp[THROTTLE] = 0
    warp[UNTIL + U_FETCH] = fetched(m, w % m.whole[SCHEDULERS], i // LINE, cycle)
    until, cause = 0, -1
    mask = fact[WAIT_MASK]
    for barrier in range(6):
        if mask >> barrier & 1 and warp[RELEASE + barrier] > until:
            until, cause = warp[RELEASE + barrier], warp[RELEASE_PC + barrier]
    if fact[FLOW] == _PARTIAL:
        later, by = _partial(m, w, fact[BARRIER_NUMBER], fact[KEEP], cycle)
        if later > until:
            until, cause = later, by
    warp[SCOREBOARD_REASON] = LONG if cause >= 0 and p.fact[cause, LONG_REASON] else SHORT
    if fact[FLOW] == _MATRIX_WAIT and warp[MATRIX_DONE] > until:
        until, cause = warp[MATRIX_DONE], warp[MATRIX_PC]
        warp[SCOREBOARD_REASON] = MATRIX
    warp[UNTIL + U_SCOREBOARD] = until
    warp[CAUSE + U_SCOREBOARD] = cause
    wake = cycle + 1
    for k in range(6):
        wake = max(wake, warp[UNTIL + k])
    warp[WAKE] = wake
