# SPDX-License-Identifier: Apache-2.0
"""Cache levels by shares of hits, where the addresses of a request are not known."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.machine import SECTOR_BYTES
from gpadvisor.simulator.caches import INTERLEAVED, packets_of, through_l2
from gpadvisor.simulator.chance import cycles, uniform
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.resources import Access
from gpadvisor.simulator.state import (
    ACCESS,
    BY_DATA,
    DRAM_CYCLES,
    DRAM_FREE,
    DRAM_MOVED,
    DRAM_RATE,
    DRAM_WRITTEN,
    L1_CYCLES,
    L1_HIT,
    L2_CYCLES,
    L2_HIT,
    LOOKED_UP,
    SECTORS,
    Machine,
)
from gpadvisor.simulator.values import population

_STORE: Final = Access.STORE.value
_ATOMIC: Final = Access.ATOMIC.value
_REDUCTION: Final = Access.REDUCTION.value


@seldom
def look_up_by_chance(
    p: Packed, m: Machine, i: int, lanes: int, start: int, sectors: float, lines: int
) -> int:
    """When a request comes back: as a whole from one level, or each lane's sector by itself."""
    kind, before = p.fact[i, ACCESS], m.traffic[DRAM_MOVED]
    if p.fact[i, BY_DATA] and p.fact[i, LOOKED_UP] != INTERLEAVED and p.rate[i, SECTORS] < 0.0:
        done = _apart(p, m, i, start, sectors)
    else:
        # The lanes of an atomic operation whose addresses are not known go to different lines.
        packets = (
            float(population(lanes))
            if kind in (_ATOMIC, _REDUCTION)
            else lines * packets_of(kind, int(sectors / lines))
        )
        done = together(p, m, i, start, sectors, packets, float(p.rate[i, L1_HIT]))
    if kind in (_STORE, _REDUCTION):
        m.traffic[DRAM_WRITTEN] += m.traffic[DRAM_MOVED] - before
    return done


@compiled
def together(p: Packed, m: Machine, i: int, start: int, sectors: float, packets: float, l1_hit: float) -> int:
    """When a request comes back: the level that has it, and the queues on the way."""
    parameters = m.whole
    if l1_hit > 0.0 and uniform(m) < l1_hit:
        return start + cycles(m, parameters[L1_CYCLES], parameters[L1_CYCLES + 1])
    traffic, bytes_moved = m.traffic, sectors * SECTOR_BYTES
    begin = through_l2(m, start, bytes_moved, packets)
    if uniform(m) < p.rate[i, L2_HIT]:
        return int(begin) + cycles(m, parameters[L2_CYCLES], parameters[L2_CYCLES + 1])
    begin = max(traffic[DRAM_FREE], begin)
    traffic[DRAM_FREE] = begin + bytes_moved / m.real[DRAM_RATE]
    traffic[DRAM_MOVED] += bytes_moved
    if p.fact[i, ACCESS] in (_STORE, _REDUCTION):
        # L2 is written back: it takes a store as soon as DRAM takes what has to leave for it.
        return int(begin) + cycles(m, parameters[L2_CYCLES], parameters[L2_CYCLES + 1])
    return int(begin) + cycles(m, parameters[DRAM_CYCLES], parameters[DRAM_CYCLES + 1])


@seldom
def _apart(p: Packed, m: Machine, i: int, start: int, sectors: float) -> int:
    """The same where each lane finds its sector by itself: the last of them counts."""
    parameters, traffic, kind = m.whole, m.traffic, p.fact[i, ACCESS]
    missed = sectors * (1.0 - p.rate[i, L1_HIT])
    absent = missed * (1.0 - p.rate[i, L2_HIT])
    if missed < 1.0:
        return start + cycles(m, parameters[L1_CYCLES], parameters[L1_CYCLES + 1])
    begin = through_l2(m, start, missed * SECTOR_BYTES, missed * packets_of(kind, 1))
    if absent > 0.0:
        begin = max(traffic[DRAM_FREE], begin)
        traffic[DRAM_FREE] = begin + absent * SECTOR_BYTES / m.real[DRAM_RATE]
        traffic[DRAM_MOVED] += absent * SECTOR_BYTES
    if absent < 1.0 or kind in (_STORE, _REDUCTION):
        return int(begin) + cycles(m, parameters[L2_CYCLES], parameters[L2_CYCLES + 1])
    return int(begin) + cycles(m, parameters[DRAM_CYCLES], parameters[DRAM_CYCLES + 1])
