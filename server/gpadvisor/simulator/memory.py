# SPDX-License-Identifier: Apache-2.0
"""Memory instructions: sectors, bank conflicts, cache levels by shares of hits, bandwidth, scoreboards."""

from __future__ import annotations

from typing import Final

from gpadvisor.model.machine import BANK_BYTES, BANK_ROW_BYTES, BANKS, LINE_BYTES, SECTOR_BYTES, WARP
from gpadvisor.simulator.by_chance import look_up_by_chance, together
from gpadvisor.simulator.by_data import ByData
from gpadvisor.simulator.caches import INTERLEAVED, look_up, unjoined
from gpadvisor.simulator.chance import cycles, uniform
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.lowered import Packed
from gpadvisor.simulator.resources import Access
from gpadvisor.simulator.state import (
    ACCESS,
    ASYNC_DONE,
    ASYNC_PC,
    AXES,
    BASE,
    BASE_OFFSET,
    BASE_SHIFT,
    BULK_DONE,
    BULK_PC,
    BY_DATA,
    COPIES,
    FOLLOWED,
    HOT_BYTES,
    HOT_FREE,
    HOT_SLICES,
    HOT_TAKEN,
    IN_FLIGHT,
    L1_HIT,
    L1_PASSES,
    L2_BUSY,
    L2_FREE,
    L2_PACKETS,
    LATENCY,
    LOOKED_UP,
    LSU_FREE,
    MIO_DONE,
    OPERAND_READ,
    OPERATION,
    PC,
    PENDING_COUNT,
    RELEASE,
    RELEASE_PC,
    RESULT,
    SECTORS,
    SHARING,
    SLOT,
    STORE_DONE,
    STORE_PC,
    STORES,
    TEX_FREE,
    UNKNOWN_REQUESTS,
    WAVEFRONT,
    WAYS,
    WIDTH,
    Machine,
    Results,
)
from gpadvisor.simulator.values import WORD, Values, population

_DRAWN: Final = ByData.DRAWN.value
_STORE, _ATOMIC, _REDUCTION = Access.STORE.value, Access.ATOMIC.value, Access.REDUCTION.value
_ASYNC_COPY, _BULK_COPY = Access.ASYNC_COPY.value, Access.BULK_COPY.value
_SMALL: Final = 1 << 24
"""Bytes of an array that all SMs keep asking for in L2."""


@compiled
def note(m: Machine, w: int, ring: int, release: int, i: int, kind: int) -> None:
    """One more operation on its way."""
    warp = m.warp[w]
    entry = warp[PENDING_COUNT + ring] % IN_FLIGHT
    m.pending[w, ring, entry, 0] = release
    m.pending[w, ring, entry, 1] = i
    m.pending[w, ring, entry, 2] = kind
    warp[PENDING_COUNT + ring] += 1


@compiled
def hold(m: Machine, w: int, barrier: int, release: int, i: int, kind: int) -> None:
    """One more operation on a scoreboard."""
    note(m, w, barrier, release, i, kind)
    warp = m.warp[w]
    if release >= warp[RELEASE + barrier]:
        warp[RELEASE + barrier] = release
        warp[RELEASE_PC + barrier] = i


@seldom
def _address(p: Packed, m: Machine, v: Values, w: int, i: int, lanes: int) -> bool:
    """Low words of the addresses of all lanes into the scratch row, whether they are known; and what of."""
    fact, known = p.fact[i], True
    if not fact[FOLLOWED]:
        return False
    out = v.scratch[0]
    for lane in range(WARP):
        out[lane] = fact[BASE_OFFSET]
    m.number[AXES] = 0
    for k in range(2):
        slot = fact[BASE + k]
        if slot < 0:
            continue
        if lanes & ~v.known[w, slot]:
            known = False
        m.number[AXES] |= v.axes[w, slot]
        row = v.word[w, slot]
        for lane in range(WARP):
            out[lane] += row[lane] << fact[BASE_SHIFT + k]
    return known


@compiled
def _are_drawn(p: Packed, v: Values, i: int, lanes: int) -> bool:
    """Whether the addresses in the scratch row are computed from drawn words, all within a small array."""
    if p.fact[i, BY_DATA] != _DRAWN:
        return False
    lowest, highest = WORD, 0
    for lane in range(WARP):
        if lanes >> lane & 1:
            lowest = min(lowest, v.scratch[0, lane] & WORD)
            highest = max(highest, v.scratch[0, lane] & WORD)
    return highest - lowest < _SMALL


@seldom
def _distinct(v: Values, lanes: int, shift: int, width: int) -> int:
    """How many different units of 2**shift bytes the lanes touch."""
    units = v.scratch[1]
    count = 0
    for lane in range(WARP):
        if not lanes >> lane & 1:
            continue
        first = v.scratch[0, lane] >> shift
        end = (v.scratch[0, lane] + width - 1) >> shift
        for unit in range(first, end + 1):
            is_counted = False
            for k in range(min(count, WARP)):
                index = (count - 1 - k) & (WARP - 1)
                if units[index] == unit:
                    is_counted = True
                    break
            if not is_counted:
                units[count & (WARP - 1)] = unit
                count += 1
    return count


@compiled
def _sectors(
    p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, lanes: int
) -> tuple[float, int, bool]:
    """Sectors of a global access and its passes through L1: as told, by address, or of neighbouring lanes.

    A pass is for one line of 128 bytes, however few of its sectors are wanted. True where the scratch row has
    the sectors.
    """
    width = p.fact[i, WIDTH]
    ideal = float(max(1, -(-population(lanes) * width // SECTOR_BYTES)))
    if p.fact[i, LOOKED_UP] == INTERLEAVED:
        if not p.fact[i, FOLLOWED]:
            return ideal, max(1, int((ideal + 3.0) / 4.0)), False
        known = _address(p, m, v, w, i, lanes) or _are_drawn(p, v, i, lanes)
        sectors = float(
            (_interleaved(v, lanes) if known else population(lanes)) * max(1, width // BANK_BYTES)
        )
        # The same word of all threads lies side by side.
        return sectors, int(sectors) if sectors > ideal else max(1, int((ideal + 3.0) / 4.0)), False
    stated, known = float(p.rate[i, SECTORS]), False
    if stated >= 0.0:
        sectors = stated
        passes = int((sectors + 3.0) / 4.0)
    elif _address(p, m, v, w, i, lanes):
        known = True
        passes = _distinct(v, lanes, 7, width)
        sectors = float(_distinct(v, lanes, 5, width))
        # Lanes that share an address need fewer than neighbours do.
        ideal = min(ideal, sectors)
    elif _are_drawn(p, v, i, lanes):
        passes = _distinct(v, lanes, 7, width)
        return float(_distinct(v, lanes, 5, width)), max(1, passes), True
    elif p.fact[i, BY_DATA]:
        apart = population(lanes) * max(1, width // SECTOR_BYTES)
        return float(apart), max(1, apart), False
    else:
        return ideal, max(1, int((ideal + 3.0) / 4.0)), False
    r.sectors[0, i] += sectors
    r.sectors[1, i] += ideal
    r.sectors[4, i] += passes
    return sectors, max(1, passes), known


@seldom
def _interleaved(v: Values, lanes: int) -> int:
    """Sectors of the words of local memory that the lanes ask for: eight lanes' same word lies in one."""
    for lane in range(WARP):
        v.scratch[0, lane] = ((v.scratch[0, lane] & WORD) >> 2) << 2 | lane >> 3
    return _distinct(v, lanes, 0, 1)


@seldom
def _conflicts(v: Values, lanes: int, width: int) -> int:
    """Wavefronts of a shared access: lanes in groups of 128 bytes, the busiest bank of each group."""
    group = max(1, min(WARP, BANK_ROW_BYTES // width))
    banks = v.scratch[1]
    total = 0
    for start in range(0, WARP, group):
        for bank in range(BANKS):
            banks[bank] = 0
        most = 0
        for lane in range(start, min(WARP, start + group)):
            if not lanes >> lane & 1:
                continue
            word = v.scratch[0, lane] >> 2
            again = False
            for earlier in range(start, lane):
                if lanes >> earlier & 1 and v.scratch[0, earlier] >> 2 == word:
                    again = True
                    break
            if not again:
                bank = word & (BANKS - 1)
                banks[bank] += 1
                most = max(most, banks[bank])
        total += most
    return max(1, total)


@compiled
def _wavefronts(p: Packed, m: Machine, v: Values, r: Results, w: int, i: int, lanes: int) -> int:
    """Passes of a shared access: as told, by address, or the fewest."""
    width = int(p.fact[i, WIDTH])
    fewest = max(1, -(-population(lanes) * width // BANK_ROW_BYTES))
    stated = p.rate[i, WAYS]
    if stated >= 0.0:
        result = max(1, int(fewest * stated + 0.5))
    elif _address(p, m, v, w, i, lanes):
        result = _conflicts(v, lanes, width)
        fewest = min(fewest, result)
    elif _are_drawn(p, v, i, lanes):
        return _conflicts(v, lanes, width)
    else:
        return fewest
    r.sectors[2, i] += result
    r.sectors[3, i] += fewest
    return result


@seldom
def _operations(p: Packed, m: Machine, v: Values, i: int, lanes: int, start: int) -> int:
    """When L2 has done the lanes' operations: a slice does one after the other, those of other SMs between.

    Lanes on different words of a sector go together; those on the same word do not. HOT_BYTES side by side
    belong to one slice.
    """
    done, cost = float(start), p.rate[i, OPERATION] * m.real[SHARING + m.number[AXES]]
    for lane in range(WARP):
        if not lanes >> lane & 1:
            continue
        same = first = 0
        for earlier in range(lane):
            if lanes >> earlier & 1:
                same += v.scratch[0, earlier] == v.scratch[0, lane]
                first += v.scratch[0, earlier] >> 5 == v.scratch[0, lane] >> 5
        # The first lane of a sector, and each further one on a word that has been taken.
        if same or not first:
            hot = (v.scratch[0, lane] & WORD) // HOT_BYTES % HOT_SLICES
            begin = max(m.hot[hot, HOT_FREE], float(start))
            m.hot[hot, HOT_FREE] = begin + cost
            m.hot[hot, HOT_TAKEN] += m.real[SHARING + m.number[AXES]]
            if same:
                m.traffic[L2_FREE] += 1.0 / m.real[L2_PACKETS]
                m.traffic[L2_BUSY] += 1.0 / m.real[L2_PACKETS]
            done = max(done, begin + cost)
    return int(done)


@seldom
def global_access(
    p: Packed, m: Machine, v: Values, r: Results, w: int, lanes: int, cycle: int
) -> tuple[int, int, int]:
    """Start, end of reading the operands, and return of an access to local or global memory."""
    i = m.warp[w, PC]
    sectors, lines, known = _sectors(p, m, v, r, w, i, lanes)
    local = p.fact[i, LOOKED_UP] == INTERLEAVED
    # Lanes of local memory never share a bank: their lines are looked up four at a time.
    passes = max(-(-lines // 4) if local else lines, m.whole[WAVEFRONT])
    start = max(cycle + 1, m.number[LSU_FREE])
    m.number[LSU_FREE] = start + passes
    m.traffic[L1_PASSES] += passes
    kind = p.fact[i, ACCESS]
    warp = m.warp[w]
    if known and p.fact[i, LOOKED_UP]:
        count = min(int(sectors), WARP)
        if kind == _STORE:
            count = unjoined(m, v, w, count, start + passes)
        done = look_up(p, m, v, r, i, count, start + passes)
        if kind in (_ATOMIC, _REDUCTION):
            done = max(done, _operations(p, m, v, i, lanes, start + passes))
    else:
        r.level[UNKNOWN_REQUESTS, i] += p.fact[i, LOOKED_UP] != 0 and not local
        done = look_up_by_chance(p, m, i, lanes, start + passes, sectors, lines)
    if kind in (_STORE, _REDUCTION):
        note(m, w, STORES, done, i, RESULT)
        if done >= warp[STORE_DONE]:
            warp[STORE_DONE] = done
            warp[STORE_PC] = i
    elif kind == _ASYNC_COPY:
        note(m, w, COPIES, done, i, RESULT)
        if done >= warp[ASYNC_DONE]:
            warp[ASYNC_DONE] = done
            warp[ASYNC_PC] = i
    elif kind == _BULK_COPY:
        slot = warp[SLOT]
        if done >= m.block[slot, BULK_DONE]:
            m.block[slot, BULK_DONE] = done
            m.block[slot, BULK_PC] = i
    return start, start + passes + m.whole[OPERAND_READ], done


@seldom
def shared_access(
    p: Packed, m: Machine, v: Values, r: Results, w: int, lanes: int, cycle: int
) -> tuple[int, int, int]:
    """The same for shared memory, whose results return in order."""
    i = m.warp[w, PC]
    passes = max(_wavefronts(p, m, v, r, w, i, lanes), m.whole[WAVEFRONT])
    start = max(cycle + 1, m.number[LSU_FREE])
    m.number[LSU_FREE] = start + passes
    m.traffic[L1_PASSES] += passes
    done = start + passes - 1 + cycles(m, p.fact[i, LATENCY], p.fact[i, LATENCY + 1])
    done = max(done, m.warp[w, MIO_DONE])
    m.warp[w, MIO_DONE] = done
    return start, start + passes + m.whole[OPERAND_READ], done


@seldom
def texture_access(p: Packed, m: Machine, i: int, cycle: int) -> tuple[int, int, int]:
    """The same for the texture unit, a quad of lanes at a time."""
    start = max(cycle + 1, m.number[TEX_FREE])
    m.number[TEX_FREE] = start + 8
    if uniform(m) < p.rate[i, L1_HIT]:
        done = start + 8 + cycles(m, p.fact[i, LATENCY], p.fact[i, LATENCY + 1])
    else:
        done = together(p, m, i, start + 8, LINE_BYTES / SECTOR_BYTES, 1.0, 0.0)
    return start, start + 8 + m.whole[OPERAND_READ], done
