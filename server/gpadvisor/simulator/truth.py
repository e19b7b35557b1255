# SPDX-License-Identifier: Apache-2.0
"""Samples of a run, and what really held the warps up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.ids import INSTRUCTION_BYTES
from gpadvisor.model.profile import (
    PcSamples,
)
from gpadvisor.simulator import state
from gpadvisor.simulator.outcome import Outcome

_TAIL_REPEATS: Final = 3
"""With more repeats of the full waves than this, samples of the last partial wave are left out."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """For tests: sampled stalls with the instruction that the machine itself was waiting for."""

    pc: NDArray[np.int64]  # of the sampled instruction
    reason: NDArray[np.int64]  # index into the profile's reasons
    cause: NDArray[np.int64]  # Pc of what held it up, -1 where nothing did
    samples: NDArray[np.int64]
    latency: NDArray[np.int64]
    awaited: tuple[frozenset[int], ...]
    """By row, Pcs of all that held the warp in this wait: what the same counter waited for when it began.

    The cause is one of them. Rows that differ in this alone stand apart.
    """


def _rows(outcome: Outcome) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Samples as they were taken, and how often each counts."""
    rows = outcome.results.sample[: int(outcome.sm.number[state.SAMPLES])].astype(np.int64)
    repeats = outcome.share.repeats / outcome.share.waves
    # The full waves come again and again, the last partial one only once.
    full, tail = (1, 0) if repeats > _TAIL_REPEATS else (1 + round(repeats), 1)
    return rows, np.where(rows[:, state.S_PHASE] == 1, tail, full)


def samples_of(outcome: Outcome) -> PcSamples:
    """Samples by instruction and reason, as a profiler would deliver them."""
    rows, weight = _rows(outcome)
    keys = np.stack([rows[:, state.S_PC], rows[:, state.S_REASON]])
    unique, total_of, latency_of = _summed(keys, weight, weight * rows[:, state.S_LATENCY])
    return PcSamples(
        section=np.zeros(unique.shape[1], dtype=np.uint16),
        pc=(unique[0] * INSTRUCTION_BYTES).astype(np.uint64),
        reason=unique[1].astype(np.uint8),
        total=total_of.astype(np.uint64),
        latency=latency_of.astype(np.uint64),
    )


def truth_of(outcome: Outcome) -> Truth:
    """The same samples with what held the warps up."""
    rows, weight = _rows(outcome)
    cause, late = _late_causes(outcome, rows)
    held, sets = _awaited(outcome, rows, cause, late)
    keys = np.stack([rows[:, state.S_PC], rows[:, state.S_REASON], cause, held])
    unique, total_of, latency_of = _summed(keys, weight, weight * rows[:, state.S_LATENCY])
    return Truth(
        pc=unique[0] * INSTRUCTION_BYTES,
        reason=unique[1],
        cause=np.where(unique[2] < 0, -1, unique[2] * INSTRUCTION_BYTES),
        samples=total_of,
        latency=latency_of,
        awaited=tuple(sets[number] for number in unique[3].tolist()),
    )


def _late_causes(outcome: Outcome, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Causes of samples, and whose: at a barrier, what held up the last warp to come, or the barrier.

    Where the run ended before the barrier opened, nobody knows who would have been the last.
    """
    whose = np.full(len(rows), -1, dtype=np.int64)
    cause = rows[:, state.S_CAUSE].copy()
    at_barrier = np.flatnonzero(cause < -1)
    late = outcome.results.late[: int(outcome.sm.number[state.LATE])].astype(np.int64)
    held = {(serial, warp): by for serial, warp, by in late.tolist()}
    out: dict[int, list[tuple[int, int]]] = {}
    for serial, warp, by in late.tolist():
        out.setdefault(serial, []).append((warp, by))
    for row in at_barrier.tolist():
        arrived, latest = outcome.results.barrier[-2 - cause[row]].tolist()
        serial = int(rows[row, state.S_SERIAL])
        if arrived < 0:  # the run was cut off before: known where one warp alone was missing
            missing = out.get(serial, ())
            latest, arrived = missing[0] if len(missing) == 1 else (-1, -1)
        cause[row] = held.get((serial, latest), arrived)
        whose[row] = latest
    return cause, whose


def _awaited(
    outcome: Outcome, rows: NDArray[np.int64], cause: NDArray[np.int64], whose: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[frozenset[int]]]:
    """By sample, what held the warp in that wait, as a place in a list of sets of Pcs."""
    together: dict[tuple[int, int], set[int]] = {}
    for serial, warp, index in outcome.results.awaited[: int(outcome.sm.number[state.AWAITED])].tolist():
        together.setdefault((serial, warp), set()).add(index)
    places: dict[frozenset[int], int] = {}
    set_of_row = np.zeros(len(rows), dtype=np.int64)
    serials = rows[:, state.S_SERIAL]
    for row, key in enumerate(zip(serials.tolist(), whose.tolist(), cause.tolist(), strict=True)):
        indices = together.get(key[:2], ())
        awaited = frozenset(indices if key[2] in indices else [key[2]] if key[2] >= 0 else ())
        set_of_row[row] = places.setdefault(awaited, len(places))
    return set_of_row, [frozenset(INSTRUCTION_BYTES * index for index in place) for place in places]


def _summed(
    keys: NDArray[np.int64], total: NDArray[np.int64], latency: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Equal keys once, with their sums; rows without weight are left out."""
    mask = total > 0
    keys_of_mask = keys[:, mask]
    if not keys_of_mask.shape[1]:
        return keys_of_mask, total[mask], latency[mask]
    # One number for each column of keys sorts many times faster than columns do.
    least = keys_of_mask.min(axis=1, keepdims=True)
    sizes = tuple((keys_of_mask.max(axis=1) - least[:, 0] + 1).tolist())
    numbers, inverse = np.unique(
        np.ravel_multi_index(tuple(keys_of_mask - least), sizes), return_inverse=True
    )
    unique = np.stack(np.unravel_index(numbers, sizes)) + least
    count = len(numbers)
    return (
        unique,
        np.bincount(inverse, weights=total[mask], minlength=count).astype(np.int64),
        np.bincount(inverse, weights=latency[mask], minlength=count).astype(np.int64),
    )
