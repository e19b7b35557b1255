# SPDX-License-Identifier: Apache-2.0
"""Targets of direct branches and calls, from text or, where the text names a symbol, from the encoding."""

from __future__ import annotations

import re

from gpadvisor.model.ids import INSTRUCTION_BYTES, Pc
from gpadvisor.model.machine import CodeForm

_HEX = re.compile(r"0x[0-9a-f]+$", re.IGNORECASE)
_WORD_BITS = 64


def relative_target(form: CodeForm, pc: int, low: int, high: int, *, short: bool = False) -> int:
    """The address that the relative offset of BRA, BSSY and CALL.REL gives; ``short`` is that of BSSY."""
    next_pc, unit = pc + INSTRUCTION_BYTES, form.branch_unit_bytes
    if short:
        return next_pc + unit * _signed(low >> form.branch_offset_at, form.branch_short_bits)
    in_low = _WORD_BITS - form.branch_offset_at
    field = (low >> form.branch_offset_at) | (high & (1 << (form.branch_offset_bits - in_low)) - 1) << in_low
    bits, low_bits = form.branch_offset_bits, form.branch_low_bits
    if low_bits:
        field = field << low_bits | low >> form.branch_low_at & (1 << low_bits) - 1
        bits += low_bits
    return next_pc + unit * _signed(field, bits)


def _signed(field: int, bits: int) -> int:
    return field - (1 << bits) if field >> (bits - 1) else field


def printed_target(text: str) -> int | None:
    """The offset that an operand prints, None for a symbol or a label."""
    return int(text, 16) if _HEX.match(text) else None


def inside(target: int | None, length: int) -> Pc | None:
    """The target as an offset of its section, None where it lies outside."""
    if target is None or not 0 <= target < length or target % INSTRUCTION_BYTES:
        return None
    return Pc(target)
