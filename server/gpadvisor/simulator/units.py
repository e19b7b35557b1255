# SPDX-License-Identifier: Apache-2.0
"""Pipes and queues: who may enter, how long an instruction takes, and which scoreboards it holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpadvisor.simulator.chance import cycles
from gpadvisor.simulator.compiled import compiled
from gpadvisor.simulator.lowered import LoweredFlow, Packed
from gpadvisor.simulator.memory import global_access, hold, shared_access, texture_access
from gpadvisor.simulator.resources import PIPES, Access, Unit
from gpadvisor.simulator.state import (
    ACCESS,
    ASYNC_DONE,
    ASYNC_PC,
    BULK_DONE,
    BULK_PC,
    FLOW,
    GROUP,
    INTERVAL,
    LATENCY,
    LG_FULL,
    LG_QUEUE,
    LSU_FREE,
    MATH,
    MATRIX_DONE,
    MATRIX_PC,
    MIO_DONE,
    MIO_FULL,
    MIO_QUEUE,
    OPERAND_READ,
    OPERANDS,
    PC,
    PIPE_FREE,
    PIPE_PC,
    QUEUE_AT,
    QUEUE_DEPTH,
    QUEUE_PC,
    QUEUE_START,
    READ_BARRIER,
    RESULT,
    SCHEDULERS,
    SERVED,
    SERVED_LSU,
    SERVED_TEX,
    SERVED_XU,
    SLOT,
    TEX_FULL,
    TEX_QUEUE,
    THROTTLE,
    THROTTLE_CAUSE,
    THROTTLE_REASON,
    UNIT,
    WAVEFRONT,
    WRITE_BARRIER,
    XU_FREE,
    Machine,
    Results,
)
from gpadvisor.simulator.values import Values

# Compiled code compares numbers.
_ASYNC_GROUP, _TRY_WAIT = LoweredFlow.ASYNC_GROUP.value, LoweredFlow.TRY_WAIT.value
_TENSOR, _LAST_PIPE, _NONE = Unit.TENSOR.value, PIPES - 1, Unit.NONE.value
_MIO, _LG, _TEX, _XU = Unit.MIO.value, Unit.LG.value, Unit.TEX.value, Unit.XU.value
_SHARED_LOAD, _SHARED_STORE = Access.SHARED_LOAD.value, Access.SHARED_STORE.value
_SHARED_ATOMIC = Access.SHARED_ATOMIC.value
_MAX_MATRIX = 1 << 12


@compiled
def _queue_of(unit: int) -> int:
    if unit == _LG:
        return 1
    return 2 if unit == _TEX else 0


@compiled
def _depth(parameters: NDArray[np.int64], queue: int) -> int:
    if queue == 1:
        return int(parameters[LG_QUEUE])
    return int(parameters[TEX_QUEUE] if queue == 2 else parameters[MIO_QUEUE])


@compiled
def throttled(
    facts: NDArray[np.int64],
    parameters: NDArray[np.int64],
    schedulers: NDArray[np.int64],
    warps: NDArray[np.int64],
    w: int,
    s: int,
    cycle: int,
) -> int:
    """Until when the unit of a warp's next instruction takes no more."""
    unit = facts[warps[w, PC], UNIT]
    if unit == _NONE:
        return 0
    if unit <= _LAST_PIPE:
        until = schedulers[s, PIPE_FREE + unit]
        if until > cycle:
            warps[w, THROTTLE_REASON] = MATH
            warps[w, THROTTLE_CAUSE] = schedulers[s, PIPE_PC + unit]
    else:
        queue = _queue_of(unit)
        entry = queue * QUEUE_DEPTH + schedulers[s, QUEUE_AT + queue] % _depth(parameters, queue)
        until = schedulers[s, QUEUE_START + entry]
        if until > cycle:
            warps[w, THROTTLE_REASON] = MIO_FULL if queue == 0 else (LG_FULL if queue == 1 else TEX_FULL)
            warps[w, THROTTLE_CAUSE] = schedulers[s, QUEUE_PC + entry]
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
    entry = queue * QUEUE_DEPTH + scheduler[QUEUE_AT + queue] % _depth(m.whole, queue)
    scheduler[QUEUE_START + entry] = start
    scheduler[QUEUE_PC + entry] = i
    scheduler[QUEUE_AT + queue] += 1


@compiled
def _behind_queue(
    p: Packed, m: Machine, v: Values, r: Results, w: int, lanes: int, cycle: int
) -> tuple[int, int, int]:
    """Start, end of reading and result of what goes through a queue."""
    i = m.warp[w, PC]
    fact = p.fact[i]
    unit, access = fact[UNIT], fact[ACCESS]
    if unit == _LG:
        return global_access(p, m, v, r, w, lanes, cycle)
    if unit == _TEX:
        return texture_access(p, m, i, cycle)
    if access in (_SHARED_LOAD, _SHARED_STORE, _SHARED_ATOMIC):
        return shared_access(p, m, v, r, w, lanes, cycle)
    if unit == _XU:
        s = w % m.whole[SCHEDULERS]
        start = max(cycle + 1, m.scheduler[s, XU_FREE])
        m.scheduler[s, XU_FREE] = start + fact[INTERVAL]
    else:
        start = max(cycle + 1, m.number[LSU_FREE])
        m.number[LSU_FREE] = start + m.whole[WAVEFRONT]
    done = start + cycles(m, fact[LATENCY], fact[LATENCY + 1])
    if unit == _MIO:
        done = max(done, m.warp[w, MIO_DONE])
        m.warp[w, MIO_DONE] = done
    return start, start + m.whole[OPERAND_READ], done


@compiled
def occupy(p: Packed, m: Machine, v: Values, r: Results, w: int, lanes: int, cycle: int) -> None:
    """Use the unit, and hold the scoreboards until the operands are read and the result is there."""
    i, s = m.warp[w, PC], w % m.whole[SCHEDULERS]
    fact = p.fact[i]
    unit = fact[UNIT]
    read, done = cycle + m.whole[OPERAND_READ], cycle + 2
    if lanes == 0:
        read = cycle + 2
    elif unit <= _LAST_PIPE:
        scheduler = m.scheduler[s]
        scheduler[PIPE_FREE + unit] = cycle + fact[INTERVAL]
        scheduler[PIPE_PC + unit] = i
        done = cycle + cycles(m, fact[LATENCY], fact[LATENCY + 1])
        if unit == _TENSOR and fact[WRITE_BARRIER] < 0:
            m.warp[w, MATRIX_DONE] = max(m.warp[w, MATRIX_DONE], cycle + min(fact[LATENCY + 1], _MAX_MATRIX))
            m.warp[w, MATRIX_PC] = i
    elif unit >= _MIO:
        start, read, done = _behind_queue(p, m, v, r, w, lanes, cycle)
        _enqueue(m, s, unit, start, i)
    else:
        done = cycle + cycles(m, fact[LATENCY], fact[LATENCY + 1])
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
