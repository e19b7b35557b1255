# SPDX-License-Identifier: Apache-2.0
"""Caches by address: the L1 of the simulated SM, and L2 as this SM sees it.

What the SM touched itself is remembered; how much has come into L2 since then follows from its own misses, as
if all SMs missed alike. A sector that is new to it may have been brought by another SM: by how many follows
from the indices of the block that its address was computed from.
"""

from __future__ import annotations

from gpadvisor.model.machine import SECTOR_BYTES
from gpadvisor.simulator.chance import cycles, uniform
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.resources import Access
from gpadvisor.simulator.state import (
    ACCESS,
    AXES,
    BUSY_SMS,
    DRAM_CYCLES,
    DRAM_FREE,
    DRAM_MOVED,
    DRAM_RATE,
    DRAM_WRITTEN,
    JOINED_CYCLES,
    L1_CYCLES,
    L1_FOUND,
    L1_SECTORS,
    L1_SETS,
    L1_WAYS,
    L2_BUSY,
    L2_CYCLES,
    L2_FOUND,
    L2_FREE,
    L2_MOVED,
    L2_PACKETS,
    L2_RATE,
    L2_SECTORS,
    L2_SETS,
    L2_WAYS,
    LAUNCH_BLOCKS,
    LOOKED_UP,
    NEXT_BLOCK,
    REQUESTS,
    SECTORS_IN_L2,
    SHARING,
    STORED,
    TICK,
    TO_L2,
    Machine,
    Results,
)
from gpadvisor.simulator.values import WORD, Values

THROUGH_L2, THROUGH_L1, INTERLEAVED = 1, 2, 3
"""Where a request with a known address is looked up: in L2 alone, or in L1 before that; and local memory,
where the words of a warp's threads lie side by side."""
_STORE, _ATOMIC, _REDUCTION = Access.STORE.value, Access.ATOMIC.value, Access.REDUCTION.value
_TAG, _USED, _ARRIVES = 0, 1, 2
_STAMP = 1
_L1, _L2, _DRAM = 0, 1, 2
"""Which level has a sector."""
_MISSED, _ABSENT, _WRITTEN, _PACKETS, _BELOW = 0, 1, 2, 3, 4
"""Sectors of a request that L1 lacks, that L2 lacks, and that leave L2 one day; what L2 takes in for it."""


@compiled
def _l1_way(m: Machine, line: int) -> int:
    """The row that holds a line; -1 without one."""
    first = line % m.whole[L1_SETS] * L1_WAYS
    for row in range(first, first + L1_WAYS):
        if m.l1[row, _TAG] == line + 1:
            return row
    return -1


@compiled
def _in_l1(m: Machine, sector: int) -> int:
    """When a sector is, or has been, there; -1 where it is not even on its way."""
    row = _l1_way(m, sector >> 2)
    if row < 0:
        return -1
    m.l1[row, _USED] = m.number[TICK]
    return int(m.l1[row, _ARRIVES + (sector & 3)])


@compiled
def _into_l1(m: Machine, sector: int, arrives: int) -> None:
    """Let a sector in: a new line takes an empty row, or of two drawn ones that which was used longer ago."""
    line = sector >> 2
    row = _l1_way(m, line)
    if row < 0:
        first = line % m.whole[L1_SETS] * L1_WAYS
        row, other = first + int(uniform(m) * L1_WAYS), first + int(uniform(m) * L1_WAYS)
        if m.l1[other, _USED] < m.l1[row, _USED]:
            row = other
        for other in range(first, first + L1_WAYS):
            if m.l1[other, _TAG] == 0:
                row = other
                break
        m.l1[row, _TAG] = line + 1
        for k in range(4):
            m.l1[row, _ARRIVES + k] = -1
    m.l1[row, _USED] = m.number[TICK]
    m.l1[row, _ARRIVES + (sector & 3)] = arrives


@compiled
def _l2_way(m: Machine, line: int) -> int:
    """The row for a line, which replaces the one that was touched longest ago."""
    first = line % L2_SETS * L2_WAYS
    oldest, age = first, -1
    for row in range(first, first + L2_WAYS):
        if m.l2[row, _TAG] == line + 1:
            return row
        latest = 0
        for k in range(4):
            latest = max(latest, m.l2[row, _STAMP + k])
        if age < 0 or latest < age:
            oldest, age = row, latest
    m.l2[oldest, _TAG] = line + 1
    for k in range(4):
        m.l2[oldest, _STAMP + k] = 0
    return oldest


@compiled
def _others_brought(m: Machine, axes: int) -> bool:
    """Whether another SM has asked for a sector before this one did so for the first time."""
    # Until L2 is full, what an earlier wave brought is still there.
    full = m.number[SECTORS_IN_L2] > m.whole[L2_SECTORS]
    return bool(uniform(m) * m.real[SHARING + axes + (0 if full else 8)] >= 1.0)


@compiled
def _overflows(m: Machine) -> bool:
    """Whether the launch brings more into L2 than fits, if it goes on like that: else stores stay there."""
    share = m.real[LAUNCH_BLOCKS] / max(1, m.number[NEXT_BLOCK])
    return bool(m.number[SECTORS_IN_L2] * share > m.whole[L2_SECTORS])


@compiled
def _in_l2(m: Machine, sector: int, axes: int, kind: int) -> tuple[bool, bool]:
    """Whether L2 has a sector; and whether this is the first store to it, which has to leave one day."""
    row = _l2_way(m, sector >> 2)
    stamp = m.l2[row, _STAMP + (sector & 3)]
    writes = kind in (_STORE, _ATOMIC, _REDUCTION)
    now = m.number[SECTORS_IN_L2]
    held = stamp > 0 and now - (stamp >> 1) < m.whole[L2_SECTORS]
    dirty = 1 if held and stamp & 1 else 0
    if not held:
        held = _others_brought(m, axes)
        if not held:
            m.number[SECTORS_IN_L2] += m.whole[BUSY_SMS]
        elif writes:
            dirty = 1
    m.l2[row, _STAMP + (sector & 3)] = (now + 1) << 1 | (1 if dirty or writes else 0)
    return held, writes and not dirty and _overflows(m)


@compiled
def packets_of(kind: int, sectors: int) -> int:
    """What a request for one line is on its way to L2: a store brings its sectors, and a mask if not all."""
    if kind != _STORE:
        return 1
    return 1 + min(sectors, 3)


@compiled
def through_l2(m: Machine, start: int, bytes_moved: float, packets: float) -> float:
    """When L2 gets to a request: it takes in packets, and gives bytes."""
    traffic = m.traffic
    begin = max(traffic[L2_FREE], float(start))
    taken = max(bytes_moved / m.real[L2_RATE], packets / m.real[L2_PACKETS])
    traffic[L2_FREE] = begin + taken
    traffic[L2_BUSY] += taken
    traffic[L2_MOVED] += bytes_moved
    return float(begin)


@seldom
def unjoined(m: Machine, v: Values, w: int, count: int, cycle: int) -> int:
    """How many sectors of a warp's store go to L2 by themselves; they are left first in the scratch row.

    The others go with its last store to them, as words that a thread stores one after the other do.
    """
    sectors, left = v.scratch[1], 0
    for k in range(count):
        store = (sectors[k] & WORD) << 6 | w
        entry = m.stored[store % STORED]
        if entry[0] != store or cycle - entry[1] >= JOINED_CYCLES:
            entry[0], entry[1] = store, cycle
            sectors[left] = sectors[k]
            left += 1
    return left


@seldom
def look_up(p: Packed, m: Machine, v: Values, r: Results, i: int, count: int, start: int) -> int:
    """When a request for the sectors of the scratch row comes back: level by level, with their queues."""
    kind, sectors = p.fact[i, ACCESS], v.scratch[1]
    by_l1 = p.fact[i, LOOKED_UP] == THROUGH_L1
    found_in, below = v.scratch[2], v.scratch[3]
    m.number[TICK] += 1
    done, line, of_line = start, -1, 0
    for k in range(_BELOW):
        below[k] = 0
    for k in range(count):
        sector = sectors[k] & WORD
        arrives = _in_l1(m, sector) if by_l1 else -1
        if arrives >= 0:
            found_in[k] = _L1
            done = max(done, arrives)
            continue
        of_line = of_line + 1 if sector >> 2 == line else 1
        line = sector >> 2
        below[_PACKETS] += packets_of(kind, of_line) - (packets_of(kind, of_line - 1) if of_line > 1 else 0)
        held, leaves = _in_l2(m, sector, m.number[AXES], kind)
        found_in[k] = _L2 if held or kind == _STORE else _DRAM
        below[_MISSED] += 1
        below[_ABSENT] += found_in[k] == _DRAM
        below[_WRITTEN] += leaves
    missed = below[_MISSED]
    if missed < count:
        done = max(done, start + cycles(m, m.whole[L1_CYCLES], m.whole[L1_CYCLES + 1]))
    if missed:
        done = max(done, _from_below(m, v, count, start, by_l1))
    level = r.level
    level[REQUESTS, i] += 1
    if by_l1:
        level[L1_SECTORS, i] += count
        level[L1_FOUND, i] += count - missed
    level[TO_L2, i] += missed
    level[L2_FOUND, i] += missed - below[_ABSENT]
    return int(done)


@compiled
def _from_below(m: Machine, v: Values, count: int, start: int, by_l1: bool) -> int:  # noqa: FBT001 - no keywords in compiled code
    """When L2 and DRAM have brought what L1 lacks, which is let in."""
    traffic, parameters, below = m.traffic, m.whole, v.scratch[3]
    begin = through_l2(m, start, below[_MISSED] * SECTOR_BYTES, below[_PACKETS])
    if below[_ABSENT] or below[_WRITTEN]:
        # L2 is written back: a store takes DRAM's bandwidth, but does not wait for more than its turn.
        moved = (below[_ABSENT] + below[_WRITTEN]) * SECTOR_BYTES
        begin = max(traffic[DRAM_FREE], begin)
        traffic[DRAM_FREE] = begin + moved / m.real[DRAM_RATE]
        traffic[DRAM_MOVED] += moved
        traffic[DRAM_WRITTEN] += below[_WRITTEN] * SECTOR_BYTES
    from_l2 = int(begin) + cycles(m, parameters[L2_CYCLES], parameters[L2_CYCLES + 1])
    from_dram = from_l2
    if below[_ABSENT]:
        from_dram = int(begin) + cycles(m, parameters[DRAM_CYCLES], parameters[DRAM_CYCLES + 1])
    if by_l1:
        for k in range(count):
            if v.scratch[2, k] != _L1:
                _into_l1(m, v.scratch[1, k] & WORD, from_l2 if v.scratch[2, k] == _L2 else from_dram)
    return from_dram
