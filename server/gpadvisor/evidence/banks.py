# SPDX-License-Identifier: Apache-2.0
"""Which threads of a warp share banks of shared memory, and which padding of the array parts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from gpadvisor.evidence.access_shapes import (
    ARGUMENTS,
    MATRIX_ROW_BYTES,
    Lie,
    access_width,
    lane_addresses,
    run_of,
    steps_of,
)
from gpadvisor.evidence.accesses import is_shared
from gpadvisor.evidence.arrays import address_makers
from gpadvisor.evidence.lane_values import LaneArray
from gpadvisor.model.instruction import OpcodeClass, Register
from gpadvisor.model.machine import BANK_BYTES, BANK_ROW_BYTES, BANKS, WARP, CodeForm
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

_OFFSET: Final = re.compile(r"(?<!c)(?<!desc)\[(\w+(?:\.\w+)?(?:\+UR\d+)?)(?:\+?(-?0x[0-9a-f]+))?\]")
_DISTANCES: Final = tuple(1 << power for power in range(10))
"""That a loop which halves a distance has it go through: from the threads of a block down to one."""
_LOOKED, _PATTERNS = 2_000, 64
"""Accesses that a padding is held against, and different ones of these, the most frequent ones."""
_SHIFTS: Final = frozenset({"SHF", "USHF", "SHR"})
_COPIES: Final = frozenset({"MOV", "UMOV", "R2UR"})
_Patterns = Mapping[tuple[tuple[int, ...], int], int]
"""How often threads' addresses, from the first one on, and bytes of each are met with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """An access to shared memory in which threads of a warp go to different words of one bank."""

    turns: int  # that it takes for a warp; where a loop halves a distance, the sum over all distances
    row: int | None = None  # bytes after which padding is inserted; None where an argument decides
    pad: int | None = None  # bytes inserted, which part most of the banks; None where no padding does
    after: int | None = None  # turns with that padding
    several: bool = False  # whether ``row`` may be several of the array's: threads access shorter steps, too
    flat: bool = False  # whether threads go along no rows: padding is inserted into one dimension
    halved: bool = False  # whether a loop halves the distance between threads
    distance: int | None = None  # in bytes between neighbouring threads where they share banks within a row


def conflict(function: Function, index: int, form: CodeForm, launch: Launch) -> Conflict | Lie | None:
    """What shares banks in an access to shared memory; None where that is not known.

    A padding is a multiple of the widest access to shared memory in the function, so that all stay aligned.
    """
    addresses = lane_addresses(function, index, form, launch, ARGUMENTS[0], shared=True)
    if addresses is Lie.UNKNOWN:
        return _halved_distances(function, index, form, launch) or addresses
    if addresses is None or isinstance(addresses, Lie):
        return addresses
    width = access_width(function, index)
    turns = _turns(addresses, width)
    if turns <= _fewest(width):
        return None
    steps = steps_of(addresses)
    run = run_of(steps)
    pairs = list(_sharing(addresses, width))
    within = [
        abs(int(addresses[1] - addresses[0]))
        for lane, other_lane in pairs
        if lane // run == other_lane // run
    ]
    if run > 1 and within and 0 < within[0] < BANK_ROW_BYTES:
        return Conflict(turns=turns, distance=within[0])
    between = min(abs(int(addresses[lane] - addresses[other_lane])) for lane, other_lane in pairs)
    # Of a regular access its own steps are rows, or several of them.
    own = {
        int(step)
        for step in (abs(steps[0]), abs(addresses[run % WARP] - addresses[0]))
        if step >= BANK_ROW_BYTES
    }
    rows = dict(_row(function, index, step) for step in (own if run > 1 and own else {between}))
    if any(rows.values()):
        rows.update(dict.fromkeys(own, True))
    own_pattern, patterns = (_from_first(addresses), width), _patterns(function, form, launch)
    found = [
        (best, row)
        for row in rows
        if (
            best := _best(
                _of_array(patterns, row if own else None), own_pattern, row, widest_shared(function)
            )
        )
    ]
    if not found:
        return Conflict(turns=turns)
    (_, pad, after), row = min(found, key=lambda pair: (pair[0][0], pair[0][1] / pair[1]))
    other_addresses = lane_addresses(function, index, form, launch, ARGUMENTS[1], shared=True)
    same_steps = isinstance(other_addresses, np.ndarray) and bool((steps_of(other_addresses) == steps).all())
    row_of_array = row if same_steps else None
    return Conflict(turns=turns, row=row_of_array, pad=pad, after=after, several=rows[row], flat=not own)


def _best(
    patterns: _Patterns, own: tuple[tuple[int, ...], int] | None, row: int, step: int
) -> tuple[int, int, int] | None:
    """The smallest of the paddings with the fewest turns, which ends most of the needless ones."""

    def all_turns(pad: int) -> int:
        return sum(count * _padded_turns(*pattern, row, pad) for pattern, count in patterns.items())

    def own_turns(pad: int) -> int:
        return all_turns(pad) if own is None else _padded_turns(*own, row, pad)

    before, fewest = all_turns(0), sum(count * _fewest(width) for (_, width), count in patterns.items())
    after = {pad: all_turns(pad) for pad in range(step, BANK_ROW_BYTES, step)}
    pad = min(after, key=lambda padding: (after[padding], padding), default=None)
    if pad is None or 2 * (after[pad] - fewest) > before - fewest or own_turns(pad) >= own_turns(0):
        return None
    return after[pad], pad, own_turns(pad)


def _halved_distances(function: Function, index: int, form: CodeForm, launch: Launch) -> Conflict | None:
    """Of an access whose threads are apart by a distance that a loop halves: over all such distances."""
    makers = address_makers(function, index)
    variables = [
        writers
        for maker in sorted(makers)
        for register in function.instructions[maker].uses
        if (writers := _shifted_by_loop(function, maker, register))
    ]
    if len(variables) != 1:
        return None
    width = access_width(function, index)
    patterns: Counter[tuple[tuple[int, ...], int]] = Counter()
    for distance in _DISTANCES:
        addresses = lane_addresses(
            function, index, form, launch, ARGUMENTS[0], shared=True, carried=(variables[0], distance)
        )
        if not isinstance(addresses, np.ndarray):
            return None
        patterns[_from_first(addresses), width] += 1
    turns = sum(count * _turns_of(*pattern) for pattern, count in patterns.items())
    if turns <= _fewest(width) * len(_DISTANCES):
        return None
    best = _best(patterns, None, BANK_ROW_BYTES, widest_shared(function))
    if best is None:
        return Conflict(turns=turns, flat=True, halved=True)
    return Conflict(turns=turns, row=BANK_ROW_BYTES, pad=best[1], after=best[0], flat=True, halved=True)


def _shifted_by_loop(
    function: Function, shift: int, register: Register
) -> frozenset[tuple[int, Register]] | None:
    """What writes a register that a shift to the right makes smaller with each pass; None if it does not."""
    instruction = function.instructions[shift]
    if instruction.opcode not in _SHIFTS or "L" in instruction.modifiers:
        return None
    first = function.reaching.definitions(shift, register)
    pending, visited = [*first], set(first)
    while pending:
        writer = pending.pop()
        if writer == shift:
            return frozenset((definition, register) for definition in first)
        copy = function.instructions[writer]
        is_copy = copy.opcode in _COPIES or (copy.opcode == "IMAD" and "MOV" in copy.modifiers)
        for used in copy.uses if is_copy else ():
            more = function.reaching.definitions(writer, used) - visited
            visited |= more
            pending += more
    return None


@lru_cache(maxsize=32)
def _patterns(function: Function, form: CodeForm, launch: Launch) -> _Patterns:
    """Of the accesses to shared memory that can be followed."""
    patterns: Counter[tuple[tuple[int, ...], int]] = Counter()
    accesses = [index for index, instruction in enumerate(function.instructions) if is_shared(instruction)]
    for index in accesses[:_LOOKED]:
        addresses = lane_addresses(function, index, form, launch, ARGUMENTS[0], shared=True)
        if isinstance(addresses, np.ndarray):
            patterns[_from_first(addresses), access_width(function, index)] += 1
    return dict(patterns.most_common(_PATTERNS))


def _of_array(patterns: _Patterns, row: int | None) -> _Patterns:
    """Patterns that may be of an array with rows of so many bytes, or with none: what the padding moves."""
    return {
        pattern: count
        for pattern, count in patterns.items()
        if max(pattern[0]) >= (row or BANK_ROW_BYTES) and (row is None or _goes_along(pattern[0], row))
    }


def _goes_along(start: tuple[int, ...], row: int) -> bool:
    """Whether threads go from row to row, by whole ones or irregularly."""
    run = run_of(steps_of(np.array(start)))
    steps = {abs(start[1] - start[0]), abs(start[run % WARP] - start[0])}
    return run == 1 or any(step and step % row == 0 for step in steps)


def _from_first(addresses: LaneArray) -> tuple[int, ...]:
    return tuple((addresses - addresses.min()).tolist())


def _fewest(width: int) -> int:
    """Turns of a warp without conflicts."""
    return max(1, WARP * width // BANK_ROW_BYTES)


@lru_cache(maxsize=1 << 14)
def _padded_turns(start: tuple[int, ...], width: int, row: int, pad: int) -> int:
    addresses = np.array(start)
    return _turns(addresses + addresses // row * pad, width)


def _turns_of(start: tuple[int, ...], width: int) -> int:
    return _turns(np.array(start), width)


def shared_passes(function: Function, index: int, form: CodeForm, launch: Launch) -> tuple[int, int] | None:
    """Passes through shared memory that a warp's access takes, and the fewest for its words.

    Wide accesses go half a warp at a time. None where the addresses are not known.
    """
    addresses = lane_addresses(function, index, form, launch, ARGUMENTS[0], shared=True)
    if addresses is None or isinstance(addresses, Lie):
        return None
    width, turns, fewest = access_width(function, index), 0, 0
    together = WARP if width <= BANK_BYTES else WARP // 2
    for start in range(0, WARP, together):
        words = {word for lane in range(start, start + together) for word in _words(addresses, lane, width)}
        turns += int(np.bincount([word % BANKS for word in words], minlength=BANKS).max())
        fewest += -(-len(words) // BANKS)
    return turns, fewest


def _row(function: Function, index: int, between: int) -> tuple[int, bool]:
    """The length of a row where threads are ``between`` bytes apart: a thread may have several of its own.

    And whether it may be several rows: of steps shorter than all banks nobody knows what they are.
    """
    match = _OFFSET.search(function.instructions[index].operands)
    block = function.blocks[function.block_of[index]]
    offsets = {
        int(offset_match[2] or "0", 16)
        for instruction in function.instructions[block.start : block.end]
        if match is not None and is_shared(instruction)
        for offset_match in _OFFSET.finditer(instruction.operands)
        if offset_match[1] == match[1]
    }
    apart = {abs(offset - second) for offset in offsets for second in offsets}
    row = min(
        (row_bytes for row_bytes in apart if row_bytes >= BANK_ROW_BYTES and between % row_bytes == 0),
        default=between,
    )
    return row, row != between and any(row_bytes % row for row_bytes in apart)


def widest_shared(function: Function) -> int:
    """Bytes that padding must be a multiple of: the widest access, or a row of a fragment."""
    return max(
        (
            MATRIX_ROW_BYTES
            if instruction.info.opclass is OpcodeClass.TENSOR
            else access_width(function, index)
            for index, instruction in enumerate(function.instructions)
            if is_shared(instruction) or instruction.info.opclass is OpcodeClass.TENSOR
        ),
        default=BANK_BYTES,
    )


def _turns(addresses: LaneArray, width: int) -> int:
    """Passes through shared memory: the threads that fill the banks at a time, each bank one word a pass."""
    total = 0
    for start in range(0, WARP, _together(width)):
        words = {
            word for lane in range(start, start + _together(width)) for word in _words(addresses, lane, width)
        }
        total += int(np.bincount([word % BANKS for word in words], minlength=BANKS).max())
    return total


def _together(width: int) -> int:
    """Threads whose accesses fill the banks."""
    return WARP // max(1, width // BANK_BYTES)


def _words(addresses: LaneArray, lane: int, width: int) -> range:
    first = int(addresses[lane]) // BANK_BYTES
    return range(first, first + max(1, width // BANK_BYTES))


def _sharing(addresses: LaneArray, width: int) -> Iterator[tuple[int, int]]:
    """Threads that go to different words of one bank at a time."""
    for lane in range(WARP):
        for other_lane in range(lane + 1, (lane // _together(width) + 1) * _together(width)):
            mine, theirs = _words(addresses, lane, width), _words(addresses, other_lane, width)
            if mine != theirs and {word % BANKS for word in mine} & {word % BANKS for word in theirs}:
                yield lane, other_lane
