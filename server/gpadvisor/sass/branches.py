# SPDX-License-Identifier: Apache-2.0
"""Targets of direct branches and calls, from text or, where the text names a symbol, from the encoding."""

from __future__ import annotations

import re
from typing import Final

from gpadvisor.model.ids import INSTRUCTION_BYTES, Pc

_HEX = re.compile(r"0x[0-9a-f]+$", re.IGNORECASE)
_OFFSET_BITS: Final = 48
_SHORT_BITS: Final = 30


def relative_target(low_bits: int, pc: int, low: int, high: int, *, short: bool = False) -> int:
    """The address that the relative offset field of BRA, BSSY and CALL.REL gives.

    The field counts 4 bytes from the next instruction: bits 34-81, below them ``low_bits`` from bit 16 on.
    ``short`` is the form of BSSY, with bits 34-63 alone.
    """
    if short:
        return pc + INSTRUCTION_BYTES + 4 * _signed(low >> 34, _SHORT_BITS)
    field = (low >> 34) | (high & (1 << (_OFFSET_BITS - 30)) - 1) << 30
    bits = _OFFSET_BITS
    if low_bits:
        field, bits = field << low_bits | low >> 16 & (1 << low_bits) - 1, bits + low_bits
    return pc + INSTRUCTION_BYTES + 4 * _signed(field, bits)


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
