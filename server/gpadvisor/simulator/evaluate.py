# SPDX-License-Identifier: Apache-2.0
"""The evaluator: integer and predicate instructions for the 32 lanes of a warp, with what is not known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpadvisor.simulator.compiled import compiled, seldom

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
    guard: NDArray[np.int16]  # predicate slot; -1 = PT, -3 = not known
    guard_negated: NDArray[np.bool_]


class Values(NamedTuple):
    """What is known of each warp's registers; bits of masks are lanes."""

    word: NDArray[np.int64]  # [warps, slots, 32]
    known: NDArray[np.int64]  # [warps, slots]
    flag: NDArray[np.int64]  # [warps, predicate slots]
    flag_known: NDArray[np.int64]
    special: NDArray[np.int64]  # [warps, specials, 32]
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
def _gather(code: Slice, values: Values, w: int, i: int, k: int) -> int:
    """Copy one source into scratch row k; returns the lanes in which it is known."""
    kind = code.source_kind[i, k]
    out = values.scratch[k]
    known = ALL
    if kind == 1:
        slot = code.source_value[i, k]
        known = values.known[w, slot]
        row = values.word[w, slot]
        for lane in range(32):
            out[lane] = row[lane]
    elif kind == 3:
        return 0
    else:
        value = code.source_value[i, k]
        for lane in range(32):
            out[lane] = value
    return known


@compiled
def _signed(value: int) -> int:
    return value - 0x1_0000_0000 if value & SIGN else value


@compiled
def _read(code: Slice, values: Values, i: int, k: int, lane: int) -> int:
    """One source with its sign or inversion; minus is kept as inverted plus one, for the carry."""
    value = int(values.scratch[k, lane])
    how = code.source_how[i, k]
    if how == 1:
        return (value ^ WORD) + 1
    if how == 2:
        return value ^ WORD
    if how == 3:
        return -value & WORD if value & SIGN else value
    return value


@compiled
def _arithmetic(code: Slice, values: Values, i: int, op: int, lane: int, carry: int) -> int:
    """Results of more than 32 bits: the low word, the high word and the carry in one number."""
    a = _read(code, values, i, 0, lane)
    b = _read(code, values, i, 1, lane)
    c = _read(code, values, i, 2, lane)
    if op == 2:
        return a + b + c + carry
    if op == 3:
        return ((a & WORD) * (b & WORD) & WORD) + (c & WORD) + carry
    if op == 8:
        return ((a & WORD) << int(code.table[i]) & WORD) + b + carry
    high = c & WORD
    if code.signed[i]:
        high = WORD if a & SIGN else 0
    shift = int(code.table[i])
    return ((((high << shift) & WORD) | (((a & WORD) << shift) >> 32)) & WORD) + b + carry


@compiled
def _wide(code: Slice, values: Values, i: int, lane: int) -> tuple[int, int]:
    """Low and high word of a * b + {d, c}."""
    a = _read(code, values, i, 0, lane) & WORD
    b = _read(code, values, i, 1, lane) & WORD
    if code.signed[i]:
        product = _signed(a) * _signed(b)
    else:
        product = (a >> 16) * b
        low = (a & 0xFFFF) * b
        # Kept modulo 2^64 by two's complement, as the registers do.
        product = (product << 16) + low
    total = product + (values.scratch[2, lane] | values.scratch[3, lane] << 32)
    return total & WORD, (total >> 32) & WORD


@compiled
def _pairs(code: Slice, values: Values, i: int, lane: int) -> tuple[int, int]:
    """The sum of two pairs."""
    low = _read(code, values, i, 0, lane) + _read(code, values, i, 1, lane)
    high = _read(code, values, i, 2, lane) + _read(code, values, i, 3, lane) + (low >> 32)
    return low & WORD, high & WORD


@compiled
def _rounded_up(low: int, high: int) -> int:
    """The least float that is no smaller than a pair of words, as its bits."""
    value, lost, exponent = low, 0, 23
    if high:
        value, lost, exponent = high << 31 | low >> 1, low & 1, 24
    if value == 0:
        return 0
    while value >= 1 << 24:
        lost |= value & 1
        value >>= 1
        exponent += 1
    while value < 1 << 23:
        value <<= 1
        exponent -= 1
    # A carry out of the mantissa goes on into the exponent.
    return ((exponent + 127) << 23) + (value & 0x7F_FFFF) + (1 if lost else 0)


@compiled
def _reciprocal(bits: int) -> int:
    """Of a float that is not negative, rounded down; the GPU's own may be off by its last bit."""
    exponent = bits >> 23 & 0xFF
    if exponent == 0:
        return 0x7F80_0000
    quotient = (1 << 47) // (bits & 0x7F_FFFF | 1 << 23)
    if quotient == 1 << 24:
        return max(0, 254 - exponent) << 23
    return max(0, 253 - exponent) << 23 | quotient & 0x7F_FFFF


@compiled
def _truncated(bits: int, width: int) -> tuple[int, int]:
    """The integer part of a float that is not negative, as a pair of words; at most the largest of them."""
    exponent = (bits >> 23 & 0xFF) - 127
    if bits & SIGN or exponent < 0:
        return 0, 0
    if exponent >= width:
        return WORD, WORD
    mantissa = bits & 0x7F_FFFF | 1 << 23
    value = mantissa << (exponent - 23) if exponent > 23 else mantissa >> (23 - exponent)
    return value & WORD, value >> 32 & WORD


@compiled
def _of_floats(code: Slice, values: Values, i: int, op: int, lane: int) -> tuple[int, int]:
    """The steps of an integer division that go through floating point."""
    a = _read(code, values, i, 0, lane) & WORD
    if op == 22:
        return _rounded_up(a, _read(code, values, i, 1, lane) & WORD), 0
    if op == 23:
        return _reciprocal(a), 0
    return _truncated(a, int(code.mode[i]))


@compiled
def _pair(code: Slice, values: Values, i: int, op: int, lane: int, chosen: int) -> tuple[int, int]:
    """Results of two words."""
    if op == 19:
        return _pairs(code, values, i, lane)
    if op == 21:
        first = 0 if chosen else 1
        return _read(code, values, i, first, lane) & WORD, _read(code, values, i, first + 2, lane) & WORD
    if op >= 22:
        return _of_floats(code, values, i, op, lane)
    return _wide(code, values, i, lane)


@compiled
def _shifted(mode: int, low: int, amount: int, high: int) -> int:
    right, upper, arithmetic, wrap, wide = mode & 1, mode & 2, mode & 4, mode & 8, mode & 16
    most = 63 if wide else 31
    shift = amount & most if wrap else min(amount & WORD, most + 1)
    if right and upper:
        if shift >= 32:
            return WORD if arithmetic and high & SIGN else 0
        return (_signed(high) >> shift if arithmetic else high >> shift) & WORD
    if right:
        if shift >= 32:
            top = _signed(high) if arithmetic else high
            return (top >> min(shift - 32, 31)) & WORD
        return ((low >> shift) | (high << (32 - shift))) & WORD if shift else low
    if upper:
        if shift >= 32:
            return (low << (shift - 32)) & WORD if shift < 64 else 0
        return ((high << shift) | (low >> (32 - shift))) & WORD if shift else high
    return (low << shift) & WORD if shift < 32 else 0


@compiled
def _logic(table: int, a: int, b: int, c: int) -> int:
    out = 0
    for bit in range(8):
        if table >> bit & 1:
            out |= (a if bit & 4 else ~a) & (b if bit & 2 else ~b) & (c if bit & 1 else ~c)
    return out & WORD


@compiled
def _simple(code: Slice, values: Values, i: int, op: int, lane: int, chosen: int) -> int:
    """Results of one word."""
    a = _read(code, values, i, 0, lane) & WORD
    b = _read(code, values, i, 1, lane) & WORD
    if op == 6:
        return _logic(code.table[i], a, b, _read(code, values, i, 2, lane) & WORD)
    if op == 7:
        return _shifted(code.mode[i], a, b, _read(code, values, i, 2, lane) & WORD)
    if op == 11:
        return a if chosen else b
    if op == 20:
        a, b = (a + b) & WORD, _read(code, values, i, 2, lane) & WORD
    if op in (12, 20):
        less = _signed(a) < _signed(b) if code.signed[i] else a < b
        return a if less == (chosen != 0) else b
    if op == 15:
        return -a & WORD if a & SIGN else a
    return _permuted(a, b, values.scratch[2, lane])


@compiled
def _permuted(a: int, selector: int, b: int) -> int:
    out = 0
    for place in range(4):
        nibble = selector >> (4 * place) & 15
        source = b if nibble & 4 else a
        byte = source >> (8 * (nibble & 3)) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        out |= byte << (8 * place)
    return out


@compiled
def _compared(mode: int, signed: int, a: int, b: int, lower: int) -> bool:
    if signed:
        a, b = _signed(a), _signed(b)
    if mode & 0x100 and a == b:
        return lower != 0
    if a < b:
        return mode & 1 != 0
    return mode & 2 != 0 if a == b else mode & 4 != 0


@compiled
def _write(code: Slice, values: Values, w: int, i: int, k: int, row: int, lanes: int, known: int) -> None:
    slot = code.result[i, k]
    if slot < 0:
        return
    target = values.word[w, slot]
    source = values.scratch[row]
    for lane in range(32):
        if lanes >> lane & 1:
            target[lane] = source[lane]
    values.known[w, slot] = (values.known[w, slot] & ~lanes) | (known & lanes)


@compiled
def _write_flag(
    code: Slice, values: Values, w: int, i: int, k: int, mask: int, lanes: int, known: int
) -> None:
    slot = code.flag[i, k]
    if slot < 0:
        return
    values.flag[w, slot] = (values.flag[w, slot] & ~lanes) | (mask & lanes)
    values.flag_known[w, slot] = (values.flag_known[w, slot] & ~lanes) | (known & lanes)


@seldom
def _forget(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """Results that are not followed."""
    for k in range(code.result.shape[1]):
        slot = code.result[i, k]
        if slot < 0:
            break
        values.known[w, slot] &= ~lanes
    for k in range(code.flag.shape[1]):
        slot = code.flag[i, k]
        if slot >= 0:
            values.flag_known[w, slot] &= ~lanes


@compiled
def _carries(code: Slice, values: Values, w: int, i: int) -> tuple[int, int, int]:
    """Two carry masks and where both are known."""
    known = ALL
    first = second = 0
    if code.read[i, 0] != -2:
        first, sure = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
        known &= sure
    if code.read[i, 1] != -2:
        second, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
        known &= sure
    return first, second, known


@seldom
def _predicates(code: Slice, values: Values, w: int, i: int, lanes: int) -> None:
    """PLOP3 and VOTE."""
    p, known = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
    if code.op[i] == 18:
        decided = ALL if known & lanes == lanes else 0
        held = p & lanes == lanes if code.mode[i] else p & lanes != 0
        _write_flag(code, values, w, i, 0, ALL if held else 0, ALL if code.uniform[i] else lanes, decided)
        return
    q, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
    known &= sure
    r, sure = lanes_of(values, w, code.read[i, 2], code.read_negated[i, 2])
    known &= sure
    # A table that is all ones or all zeros asks for nothing.
    table = code.table[i]
    _write_flag(code, values, w, i, 0, _logic(table, p, q, r), lanes, ALL if table in (0, 255) else known)
    table = code.mode[i]
    _write_flag(code, values, w, i, 1, _logic(table, p, q, r), lanes, ALL if table in (0, 255) else known)


@seldom
def _comparison(code: Slice, values: Values, w: int, i: int, lanes: int, known: int) -> None:
    c, sure = lanes_of(values, w, code.read[i, 0], code.read_negated[i, 0])
    lower = 0
    mode, signed = int(code.mode[i]), int(code.signed[i])
    known &= sure
    if mode & 0x100:
        lower, sure = lanes_of(values, w, code.read[i, 1], code.read_negated[i, 1])
        known &= sure
    held = 0
    for lane in range(32):
        a = _read(code, values, i, 0, lane) & WORD
        b = _read(code, values, i, 1, lane) & WORD
        if mode & 0x200:
            # Equal high words leave it to the low ones, which have no sign.
            x = _read(code, values, i, 2, lane) & WORD
            y = _read(code, values, i, 3, lane) & WORD
            low = int(_compared(mode & 0xFF, 0, a, b, 0))
            found = _compared(mode | 0x100, signed, x, y, low)
        else:
            found = _compared(mode, signed, a, b, lower >> lane & 1)
        if found:
            held |= 1 << lane
    how = mode >> 4 & 15
    other = ~held & ALL
    if how == 0:
        held, other = held & c, other & c
    elif how == 1:
        held, other = held | c, other | c
    else:
        held, other = held ^ c, other ^ c
    _write_flag(code, values, w, i, 0, held, lanes, known)
    _write_flag(code, values, w, i, 1, other, lanes, known)


@seldom
def _words(code: Slice, values: Values, w: int, i: int, lanes: int, known: int) -> None:
    """Operations with word results."""
    op = code.op[i]
    out = values.scratch[4]
    upper = values.scratch[5]
    first, second, sure = _carries(code, values, w, i)
    known &= sure
    carried = 0
    if op in (2, 3, 8, 9):
        for lane in range(32):
            total = _arithmetic(code, values, i, op, lane, (first >> lane & 1) + (second >> lane & 1))
            out[lane] = total & WORD
            if total >> 32 & 1:
                carried |= 1 << lane
    elif op in (4, 5, 19, 21, 22, 23, 24):
        for lane in range(32):
            low, high = _pair(code, values, i, op, lane, first >> lane & 1)
            out[lane] = high if op == 5 else low
            upper[lane] = high
            # The sum of two unsigned pairs is smaller than either where it has a carry.
            added = values.scratch[3, lane]
            if high < added or (high == added and low < values.scratch[2, lane]):
                carried |= 1 << lane
        if op != 5:
            _write(code, values, w, i, 1, 5, lanes, known)
    else:
        for lane in range(32):
            out[lane] = _simple(code, values, i, op, lane, first >> lane & 1)
            if out[lane] != 0:
                carried |= 1 << lane
    _write(code, values, w, i, 0, 4, lanes, known)
    _write_flag(code, values, w, i, 0, carried, lanes, known)
    _write_flag(code, values, w, i, 1, 0, lanes, 0)


@seldom
def _across(code: Slice, values: Values, w: int, i: int, lanes: int, active: int) -> None:
    """Special registers, and a word of the first active lane for the whole warp."""
    out = values.scratch[4]
    known = ALL
    if code.op[i] == 14:
        row = values.special[w, code.table[i]]
        for lane in range(32):
            out[lane] = row[lane]
    else:
        known = _gather(code, values, w, i, 0)
        first = 0
        while first < 31 and not active >> first & 1:
            first += 1
        value = values.scratch[0, first]
        known = ALL if known >> first & 1 else 0
        for lane in range(32):
            out[lane] = value
    if code.uniform[i]:
        first = 0
        while first < 31 and not active >> first & 1:
            first += 1
        value = out[first]
        for lane in range(32):
            out[lane] = value
    _write(code, values, w, i, 0, 4, lanes, known)


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
    if op == 1:
        _forget(code, values, w, i, lanes)
    elif op in (14, 17):
        _across(code, values, w, i, lanes, active)
    elif op in (13, 18):
        _predicates(code, values, w, i, lanes)
    else:
        known = ALL
        for k in range(4):
            if code.source_kind[i, k] == 0:
                for lane in range(32):
                    values.scratch[k, lane] = 0
            else:
                known &= _gather(code, values, w, i, k)
        if op == 10:
            _comparison(code, values, w, i, lanes, known)
        else:
            _words(code, values, w, i, lanes, known)
