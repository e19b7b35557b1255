# SPDX-License-Identifier: Apache-2.0
"""Random numbers of a run: 48-bit linear congruences, the same on every machine."""

from __future__ import annotations

from gpadvisor.simulator.compiled import compiled
from gpadvisor.simulator.state import DRAWN, RANDOM, SEED, Machine

_MASK = (1 << 48) - 1


@compiled
def following(value: int) -> int:
    """What comes behind a number of such a sequence, whose high bits are the best."""
    return (value * 0x5DEECE66D + 0xB) & _MASK


@compiled
def uniform(m: Machine) -> float:
    """A number from 0 to 1."""
    value = following(m.number[RANDOM])
    m.number[RANDOM] = value
    return float(value >> 16) / 4294967296.0


@compiled
def seed_warp(m: Machine, w: int, block: int, in_block: int) -> None:
    """Begin the sequence of a warp, which hangs on the launch's seed and its place in the grid alone."""
    value = (m.whole[SEED] << 40) ^ (block << 8) ^ in_block
    for _ in range(3):
        value = following(value ^ (value >> 23))
    m.warp[w, DRAWN] = value


@compiled
def guessed(m: Machine, w: int, chance: float) -> bool:
    """Whether what has this chance happens to warp w: its guesses are the same however fast anything is."""
    if chance <= 0.0 or chance >= 1.0:
        return chance >= 1.0
    value = following(m.warp[w, DRAWN])
    m.warp[w, DRAWN] = value
    return float(value >> 16) / 4294967296.0 < chance


@compiled
def cycles(m: Machine, low: int, high: int) -> int:
    """A latency of a range: mostly near the low end, with a tail to the high one."""
    if high <= low:
        return low
    share = uniform(m)
    return low + int((high - low) * share * share + 0.5)
