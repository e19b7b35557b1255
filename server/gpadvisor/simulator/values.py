# SPDX-License-Identifier: Apache-2.0
"""What the evaluator works on: the instructions it follows, and what is known of each warp's registers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.simulator.compiled import compiled

ALL = 0xFFFF_FFFF


WORD = 0xFFFF_FFFF


SIGN = 0x8000_0000


class Slice(NamedTuple):
    """The instructions that decide branches and addresses, by instruction; slots instead of registers."""

    op: NDArray[np.int16]  # semantics.Op, 0 where the instruction does not matter
    source_kind: NDArray[np.int8]  # [n, 4]
    source_value: NDArray[np.int64]  # [n, 4] slot or word
    source_how: NDArray[np.int8]  # [n, 4]
    read: NDArray[np.int16]  # [n, 3] predicate slots; -1 = PT, -2 = absent, -3 = not known
    read_negated: NDArray[np.bool_]  # [n, 3]
    result: NDArray[np.int16]  # [n, r] register slots written
    flag: NDArray[np.int16]  # [n, 8] predicate slots written
    uniform: NDArray[np.bool_]  # writes for the whole warp
    mode: NDArray[np.int64]
    table: NDArray[np.int64]
    signed: NDArray[np.bool_]
    drawn: NDArray[np.int8]  # bits of the words that a load brings, negative with a sign; 0: nothing is drawn
    guard: NDArray[np.int16]  # predicate slot; -1 = PT, -3 = not known
    guard_negated: NDArray[np.bool_]


class Values(NamedTuple):
    """What is known of each warp's registers; bits of masks are lanes."""

    word: NDArray[np.int64]  # [warps, slots, 32]
    known: NDArray[np.int64]  # [warps, slots]
    known_low: NDArray[np.int64]  # [warps, slots] lanes in which the low half of the word is known
    axes: NDArray[np.int64]  # [warps, slots] indices of the block that a value was computed from, as bits
    flag: NDArray[np.int64]  # [warps, predicate slots]
    flag_known: NDArray[np.int64]
    special: NDArray[np.int64]  # [warps, specials, 32]
    draws: NDArray[np.int64]  # [warps] where each warp's sequence of loaded words is
    scratch: NDArray[np.int64]  # [6, 32]


@compiled
def lanes_of(values: Values, w: int, slot: int, negated: bool) -> tuple[int, int]:  # noqa: FBT001 - no keywords in compiled code
    """Lanes in which a predicate holds, and those in which that is known."""
    if slot == -1:
        return (0 if negated else ALL), ALL
    if slot < 0:
        return 0, 0
    mask = values.flag[w, slot]
    if negated:
        mask = ~mask & ALL
    return mask, values.flag_known[w, slot]


@compiled
def population(mask: int) -> int:
    """How many lanes a mask has."""
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count
