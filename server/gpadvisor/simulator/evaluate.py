# SPDX-License-Identifier: Apache-2.0
"""The evaluator: integer and predicate instructions for the 32 lanes of a warp, with what is not known."""

from __future__ import annotations

from gpadvisor.model.machine import WARP
from gpadvisor.simulator.arithmetic import compared, logic, one_word, read_source, sum_and_carry, two_words
from gpadvisor.simulator.chance import following
from gpadvisor.simulator.compiled import compiled, seldom
from gpadvisor.simulator.meanings import ABSENT, IMMEDIATE, NOT_KNOWN, PLAIN, REGISTER
from gpadvisor.simulator.operations import (
    ADD,
    ADD_WIDE,
    BROADCAST,
    COMPARE,
    FIRST_BLOCK_INDEX,
    FLOAT_UP,
    LAST_BLOCK_INDEX,
    LOGIC,
    MUL_ADD,
    MUL_ADD_HIGH,
    MUL_ADD_WIDE,
    PERMUTE,
    PREDICATE_LOGIC,
    RECIPROCAL,
    SELECT_WIDE,
    SHIFT_ADD,
    SHIFT_ADD_HIGH,
    SPECIAL,
    TRUNCATE,
    UNKNOWN,
    VOTE,
)
from gpadvisor.simulator.values import ALL, WORD, Slice, Values, lanes_of

_TWO_WORDS = (MUL_ADD_WIDE, MUL_ADD_HIGH, ADD_WIDE, SELECT_WIDE, FLOAT_UP, RECIPROCAL, TRUNCATE)


@compiled
def _gather(code: Slice, values: Values, w: int, i: int, k: int) -> int:
    """Copy one source into scratch row k; returns the lanes in which it is known."""
    kind = code.source_kind[i, k]
    out = values.scratch[k]
    known_lanes = ALL
    if kind == REGISTER:
        slot = code.source_value[i, k]
        known_lanes = values.known[w, slot]
        row = values.word[w, slot]
        for lane in range(WARP):
            out[lane] = row[lane]
    elif kind == NOT_KNOWN:
        return 0
    else:
        value = code.source_value[i, k]
        for lane in range(WARP):
            out[lane] = value
    return known_lanes


@compiled
def _write(code: Slice, values: Values, w: int, i: int, k: int, lanes: int, known_lanes: int) -> None:
    """Scratch row 4 + k into the k-th result."""
    slot = code.result[i, k]
    if slot < 0:
        return
    target = values.word[w, slot]
    source = values.scratch[4 + k]
    for lane in range(WARP):
        if lanes >> lane & 1:
            target[lane] = source[lane]
    values.known[w, slot] = (values.known[w, slot] & ~lanes) | (known_lanes & lanes)
    values.known_low[w, slot] = (values.known_low[w, slot] & ~lanes) | (known_lanes & lanes)


@compiled
def _write_flag(values: Values, w: int, slot: int, mask: int, lanes: int, known_lanes: int) -> None:
    if slot < 0:
        return
    values.flag[w, slot] = (values.flag[w, slot] & ~lanes) | (mask & lanes)
    values.flag_known[w, slot] = (values.flag_known[w, slot] & ~lanes) | (known_lanes & lanes)


@seldom
def _forget(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """Results that are not followed."""
    for k in range(code.result.shape[1]):
        slot = code.result[i, k]
        if slot < 0:
            break
        values.known[w, slot] &= ~lanes
        values.known_low[w, slot] &= ~lanes
    for k in range(code.flag.shape[1]):
        slot = code.flag[i, k]
        if slot >= 0:
            values.flag_known[w, slot] &= ~lanes


@seldom
def _draw(code: Slice, values: Values, w: int, i: int, lanes: int, active: int) -> None:
    """Words for what a load brings, which stay not known: each evenly drawn for each lane."""
    bits = abs(int(code.drawn[i]))
    if bits:
        _note_axes(code, values, w, i, 0, lanes == active)
    for k in range(code.result.shape[1]):
        slot = code.result[i, k]
        if slot < 0 or not bits:
            break
        for lane in range(WARP):
            if lanes >> lane & 1:
                state = following(values.draws[w])
                values.draws[w] = state
                word = state >> 48 - bits
                if code.drawn[i] < 0 and word >> bits - 1:
                    word |= WORD << bits & WORD
                values.word[w, slot, lane] = word


@compiled
def _source_low(code: Slice, values: Values, w: int, i: int, k: int) -> int:
    """Lanes in which the low half of a source is known."""
    kind = code.source_kind[i, k]
    if kind == REGISTER:
        return int(values.known_low[w, code.source_value[i, k]])
    return 0 if kind == NOT_KNOWN else ALL


@seldom
def _permuted(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """PRMT, which puts bytes of two words together: a bool goes into the low half of a word of anything."""
    whole = low = _gather(code, values, w, i, 1)
    first, last = _gather(code, values, w, i, 0), _gather(code, values, w, i, 2)
    first_low, last_low = _source_low(code, values, w, i, 0), _source_low(code, values, w, i, 2)
    for place in range(4):
        selected = ALL
        for lane in range(WARP):
            nibble = values.scratch[1, lane] >> (4 * place) & 15
            whole_word, half = (last, last_low) if nibble & 4 else (first, first_low)
            sure = whole_word if nibble & 2 else half
            if not sure >> lane & 1:
                selected &= ~(1 << lane)
        whole &= selected
        if place < 2:
            low &= selected
    for lane in range(WARP):
        values.scratch[4, lane] = one_word(code, values, i, code.op[i], lane, 0)
    _write(code, values, w, i, 0, lanes, whole)
    slot = code.result[i, 0]
    if slot >= 0:
        values.known_low[w, slot] |= low & lanes


@compiled
def _is_low_mask(code: Slice, i: int) -> bool:
    """Whether an AND leaves the low half of its first source alone."""
    return bool(
        code.op[i] == LOGIC
        and code.table[i] == 0xC0
        and code.source_kind[i, 1] == IMMEDIATE
        and code.source_value[i, 1] >> 16 == 0
        and code.source_how[i, 0] == code.source_how[i, 1] == PLAIN
    )


@compiled
def _carries(code: Slice, values: Values, w: int, i: int) -> tuple[int, int, int]:
    """Two carry masks and where both are known."""
    known_lanes = ALL
    first = second = 0
    if code.read[i, 0] != -2:
        first, sure = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
        known_lanes &= sure
    if code.read[i, 1] != -2:
        second, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
        known_lanes &= sure
    return first, second, known_lanes


@seldom
def _predicates(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """PLOP3 and VOTE."""
    p, known_lanes = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
    if code.op[i] == VOTE:
        decided = ALL if known_lanes & lanes == lanes else 0
        held = p & lanes == lanes if code.mode[i] else p & lanes != 0
        _write_flag(
            values, w, code.flag[i, 0], ALL if held else 0, ALL if code.uniform[i] else lanes, decided
        )
        return
    q, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
    known_lanes &= sure
    r, sure = lanes_of(values, w, code.read[i, 2], code.read_negated[i, 2])
    known_lanes &= sure
    # A table that is all ones or all zeros asks for nothing.
    table = code.table[i]
    _write_flag(
        values, w, code.flag[i, 0], logic(table, p, q, r), lanes, ALL if table in (0, 255) else known_lanes
    )
    table = code.mode[i]
    _write_flag(
        values, w, code.flag[i, 1], logic(table, p, q, r), lanes, ALL if table in (0, 255) else known_lanes
    )


@seldom
def _comparison(code: Slice, values: Values, w: int, i: int, lanes: int, known_lanes: int) -> None:
    c, sure = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
    lower = 0
    mode, signed = int(code.mode[i]), int(code.signed[i])
    known_lanes &= sure
    if mode & 0x100:
        lower, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
        known_lanes &= sure
    held = 0
    for lane in range(WARP):
        a = read_source(code, values, i, 0, lane) & WORD
        b = read_source(code, values, i, 1, lane) & WORD
        if mode & 0x200:
            # Equal high words leave it to the low ones, which have no sign.
            x = read_source(code, values, i, 2, lane) & WORD
            y = read_source(code, values, i, 3, lane) & WORD
            low = int(compared(mode & 0xFF, 0, a, b, 0))
            holds = compared(mode | 0x100, signed, x, y, low)
        else:
            holds = compared(mode, signed, a, b, lower >> lane & 1)
        if holds:
            held |= 1 << lane
    how = mode >> 4 & 15
    complement = ~held & ALL
    if how == 0:
        held, complement = held & c, complement & c
    elif how == 1:
        held, complement = held | c, complement | c
    else:
        held, complement = held ^ c, complement ^ c
    _write_flag(values, w, code.flag[i, 0], held, lanes, known_lanes)
    _write_flag(values, w, code.flag[i, 1], complement, lanes, known_lanes)


@seldom
def _words(code: Slice, values: Values, w: int, i: int, lanes: int, known_lanes: int) -> None:
    """Operations with word results."""
    op = code.op[i]
    out = values.scratch[4]
    upper = values.scratch[5]
    first, second, sure = _carries(code, values, w, i)
    known_lanes &= sure
    carried = twice = 0
    if op in (ADD, MUL_ADD, SHIFT_ADD, SHIFT_ADD_HIGH):
        for lane in range(WARP):
            total = sum_and_carry(code, values, i, op, lane, (first >> lane & 1) + (second >> lane & 1))
            out[lane] = total & WORD
            # Three words may carry two, which a second flag holds.
            if total >> 32 & 1 or (total >> 33 and code.flag[i, 1] >= 0):
                carried |= 1 << lane
            if total >> 33:
                twice |= 1 << lane
    elif op in _TWO_WORDS:
        for lane in range(WARP):
            low, high = two_words(code, values, i, op, lane, first >> lane & 1)
            out[lane] = high if op == MUL_ADD_HIGH else low
            upper[lane] = high
            # The sum of two unsigned pairs is smaller than either where it has a carry.
            added = values.scratch[3, lane]
            if high < added or (high == added and low < values.scratch[2, lane]):
                carried |= 1 << lane
        if op != MUL_ADD_HIGH:
            _write(code, values, w, i, 1, lanes, known_lanes)
    else:
        for lane in range(WARP):
            out[lane] = one_word(code, values, i, op, lane, first >> lane & 1)
            if out[lane] != 0:
                carried |= 1 << lane
    _write(code, values, w, i, 0, lanes, known_lanes)
    _write_flag(values, w, code.flag[i, 0], carried, lanes, known_lanes)
    _write_flag(values, w, code.flag[i, 1], twice, lanes, known_lanes if op == ADD else 0)


@seldom
def _across(code: Slice, values: Values, w: int, i: int, lanes: int, active: int) -> None:
    """Special registers, and a word of the first active lane for the whole warp."""
    out = values.scratch[4]
    known_lanes = ALL
    if code.op[i] == SPECIAL:
        row = values.special[w, code.table[i]]
        for lane in range(WARP):
            out[lane] = row[lane]
    else:
        known_lanes = _gather(code, values, w, i, 0)
        first = 0
        while first < 31 and not active >> first & 1:
            first += 1
        value = values.scratch[0, first]
        known_lanes = ALL if known_lanes >> first & 1 else 0
        for lane in range(WARP):
            out[lane] = value
    if code.uniform[i]:
        first = 0
        while first < 31 and not active >> first & 1:
            first += 1
        value = out[first]
        for lane in range(WARP):
            out[lane] = value
    _write(code, values, w, i, 0, lanes, known_lanes)


@compiled
def _note_axes(code: Slice, values: Values, w: int, i: int, axes: int, whole: bool) -> None:  # noqa: FBT001 - no keywords in compiled code
    """Which indices of the block the results of an instruction hang on; lanes left out keep theirs."""
    for k in range(code.result.shape[1]):
        slot = code.result[i, k]
        if slot >= 0:
            values.axes[w, slot] = axes if whole else axes | values.axes[w, slot]


@compiled
def _axes_of(code: Slice, values: Values, w: int, i: int) -> int:
    """The indices of the block among what an instruction reads, itself or through its registers."""
    if code.op[i] == SPECIAL:
        axis = code.table[i] - FIRST_BLOCK_INDEX
        return 1 << axis if 0 <= axis <= LAST_BLOCK_INDEX - FIRST_BLOCK_INDEX else 0
    axes = 0
    for k in range(4):
        if code.source_kind[i, k] == REGISTER:
            axes |= values.axes[w, code.source_value[i, k]]
    return axes


@compiled
def _computed(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """Comparisons and operations with word results, of their sources."""
    known_lanes = ALL
    for k in range(4):
        if code.source_kind[i, k] == ABSENT:
            for lane in range(WARP):
                values.scratch[k, lane] = 0
        else:
            known_lanes &= _gather(code, values, w, i, k)
    if _is_low_mask(code, i):
        known_lanes = _source_low(code, values, w, i, 0)
    if code.op[i] == COMPARE:
        _comparison(code, values, w, i, lanes, known_lanes)
    else:
        _words(code, values, w, i, lanes, known_lanes)


@seldom
def evaluate(code: Slice, values: Values, w: int, i: int, active: int) -> None:
    """Do what instruction i of the slice does to the registers of warp w."""
    held, sure = lanes_of(values, w, code.guard[i], code.guard_negated[i])
    lanes = ALL if code.uniform[i] else active
    unsure = ~sure & lanes
    lanes &= held & sure
    op = code.op[i]
    if unsure:
        _forget(code, values, w, i, unsure)
    if not lanes:
        return
    if op == UNKNOWN:
        _forget(code, values, w, i, lanes)
        _draw(code, values, w, i, lanes, active)
        return
    _note_axes(code, values, w, i, _axes_of(code, values, w, i), lanes == active or code.uniform[i])
    if op in (SPECIAL, BROADCAST):
        _across(code, values, w, i, lanes, active)
    elif op in (PREDICATE_LOGIC, VOTE):
        _predicates(code, values, w, i, lanes)
    elif op == PERMUTE:
        _permuted(code, values, w, i, lanes)
    else:
        _computed(code, values, w, i, lanes)
