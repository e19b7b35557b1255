# SPDX-License-Identifier: Apache-2.0
"""Random numbers of a run: one 48-bit linear congruence, the same on every machine."""

from __future__ import annotations

from gpadvisor.simulator.compiled import compiled
from gpadvisor.simulator.state import RANDOM, Machine

_MASK = (1 << 48) - 1


@compiled
def uniform(m: Machine) -> float:
    """A number from 0 to 1."""
    value = (m.number[RANDOM] * 0x5DEECE66D + 0xB) & _MASK
    m.number[RANDOM] = value
    return float(value >> 16) / 4294967296.0


@compiled
def cycles(m: Machine, low: int, high: int) -> int:
    """A latency of a range: mostly near the low end, with a tail to the high one."""
    if high <= low:
        return low
    share = uniform(m)
    return low + int((high - low) * share * share + 0.5)
