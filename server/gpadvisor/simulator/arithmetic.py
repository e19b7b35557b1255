# SPDX-License-Identifier: Apache-2.0
"""What one lane computes: words, pairs, shifts, comparisons, and the steps of a division."""

from __future__ import annotations

from gpadvisor.simulator.compiled import compiled
from gpadvisor.simulator.meanings import INVERTED, MAGNITUDE, NEGATED
from gpadvisor.simulator.operations import (
    ABSOLUTE,
    ADD,
    ADD_MINIMUM,
    ADD_WIDE,
    FLOAT_UP,
    LOGIC,
    MINIMUM,
    MUL_ADD,
    RECIPROCAL,
    SELECT,
    SELECT_WIDE,
    SHIFT,
    SHIFT_ADD,
    TRUNCATE,
)
from gpadvisor.simulator.values import SIGN, WORD, Slice, Values


@compiled
def _signed(value: int) -> int:
    return value - 0x1_0000_0000 if value & SIGN else value


@compiled
def read_source(code: Slice, values: Values, i: int, k: int, lane: int) -> int:
    """One source with its sign or inversion; minus is kept as inverted plus one, for the carry."""
    value = int(values.scratch[k, lane])
    how = code.source_how[i, k]
    if how == NEGATED:
        return (value ^ WORD) + 1
    if how == INVERTED:
        return value ^ WORD
    if how == MAGNITUDE:
        return -value & WORD if value & SIGN else value
    return value


@compiled
def sum_and_carry(code: Slice, values: Values, i: int, op: int, lane: int, carry: int) -> int:
    """Results of more than 32 bits: the low word, the high word and the carry in one number."""
    a = read_source(code, values, i, 0, lane)
    b = read_source(code, values, i, 1, lane)
    c = read_source(code, values, i, 2, lane)
    if op == ADD:
        return a + b + c + carry
    if op == MUL_ADD:
        return ((a & WORD) * (b & WORD) & WORD) + (c & WORD) + carry
    if op == SHIFT_ADD:
        return ((a & WORD) << int(code.table[i]) & WORD) + b + carry
    high = c & WORD
    if code.signed[i]:
        high = WORD if a & SIGN else 0
    shift = int(code.table[i])
    return ((((high << shift) & WORD) | (((a & WORD) << shift) >> 32)) & WORD) + b + carry


@compiled
def _wide(code: Slice, values: Values, i: int, lane: int) -> tuple[int, int]:
    """Low and high word of a * b + {d, c}."""
    a = read_source(code, values, i, 0, lane) & WORD
    b = read_source(code, values, i, 1, lane) & WORD
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
    low = read_source(code, values, i, 0, lane) + read_source(code, values, i, 1, lane)
    high = read_source(code, values, i, 2, lane) + read_source(code, values, i, 3, lane) + (low >> 32)
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
    a = read_source(code, values, i, 0, lane) & WORD
    if op == FLOAT_UP:
        return _rounded_up(a, read_source(code, values, i, 1, lane) & WORD), 0
    if op == RECIPROCAL:
        return _reciprocal(a), 0
    return _truncated(a, int(code.mode[i]))


@compiled
def two_words(code: Slice, values: Values, i: int, op: int, lane: int, chosen: int) -> tuple[int, int]:
    """Results of two words."""
    if op == ADD_WIDE:
        return _pairs(code, values, i, lane)
    if op == SELECT_WIDE:
        first = 0 if chosen else 1
        return read_source(code, values, i, first, lane) & WORD, read_source(
            code, values, i, first + 2, lane
        ) & WORD
    if op in (FLOAT_UP, RECIPROCAL, TRUNCATE):
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
def logic(table: int, a: int, b: int, c: int) -> int:
    """LOP3 and PLOP3: each bit by its row of the truth table."""
    out = 0
    for bit in range(8):
        if table >> bit & 1:
            out |= (a if bit & 4 else ~a) & (b if bit & 2 else ~b) & (c if bit & 1 else ~c)
    return out & WORD


@compiled
def one_word(code: Slice, values: Values, i: int, op: int, lane: int, chosen: int) -> int:
    """Results of one word."""
    a = read_source(code, values, i, 0, lane) & WORD
    b = read_source(code, values, i, 1, lane) & WORD
    if op == LOGIC:
        return logic(code.table[i], a, b, read_source(code, values, i, 2, lane) & WORD)
    if op == SHIFT:
        return _shifted(code.mode[i], a, b, read_source(code, values, i, 2, lane) & WORD)
    if op == SELECT:
        return a if chosen else b
    if op == ADD_MINIMUM:
        a, b = (a + b) & WORD, read_source(code, values, i, 2, lane) & WORD
    if op in (MINIMUM, ADD_MINIMUM):
        less = _signed(a) < _signed(b) if code.signed[i] else a < b
        return a if less == (chosen != 0) else b
    if op == ABSOLUTE:
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
def compared(mode: int, signed: int, a: int, b: int, lower: int) -> bool:
    """One comparison; ``lower`` is that of the low words where an extended one finds equal high words."""
    if signed:
        a, b = _signed(a), _signed(b)
    if mode & 0x100 and a == b:
        return lower != 0
    if a < b:
        return mode & 1 != 0
    return mode & 2 != 0 if a == b else mode & 4 != 0
