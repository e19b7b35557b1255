# SPDX-License-Identifier: Apache-2.0
"""Scheduling bits, by hand."""

from __future__ import annotations

import struct

import pytest

from gpadvisor.model.instruction import ControlCode
from gpadvisor.sass.control import code_words, control_codes, guard_fields


def _control(upper: int, lower: int = 0) -> ControlCode:
    return control_codes(code_words(struct.pack("<QQ", lower, upper)))[0]


@pytest.mark.parametrize(
    ("upper", "expected"),
    [
        # S2R R5, SR_TID.X: sets SB1, stall 2.
        (0x000E240000002100, ControlCode(2, True, 0, None, 0, 0)),
        # IMAD R3, R3, c[0x0][0x0], R5: waits for SB0, stall 4, end of group.
        (0x001FC800078E0205, ControlCode(4, False, None, None, 1, 0)),
        # LDG.E.CONSTANT: write barrier 2, stall 1.
        (0x000EA2000C1E9900, ControlCode(1, True, 2, None, 0, 0)),
        # STS [R5.X4], R8: read barrier 0, waits for SB2.
        (0x0041E80000004800, ControlCode(4, True, None, 0, 4, 0)),
        # CALL.REL.NOINC: waits for SB0 and SB1.
        (0x003FEA0003C00000, ControlCode(5, True, None, None, 3, 0)),
        # SHF.L.U64.HI R18, R3.reuse, 0x3, R6.reuse: operand slots 0 and 2.
        (0x140FE40000010206, ControlCode(2, True, None, None, 0, 5)),
        # BAR.SYNC: stall 6, end of group.
        (0x000FEC0000010000, ControlCode(6, True, None, None, 0, 0)),
        # NOP padding: stall 0, end of group.
        (0x000FC00000000000, ControlCode(0, False, None, None, 0, 0)),
    ],
)
def test_fields(upper: int, expected: ControlCode) -> None:
    assert _control(upper) == expected


@pytest.mark.parametrize("scoreboard", range(6))
def test_each_scoreboard_has_its_bit_in_the_wait_mask(scoreboard: int) -> None:
    assert _control(1 << 116 + scoreboard - 64) == ControlCode(0, False, 0, 0, 1 << scoreboard, 0)


def test_barrier_six_is_no_barrier() -> None:
    code = _control((6 << 110 | 6 << 113) >> 64)
    assert code.write_barrier is None
    assert code.read_barrier is None


def test_equal_codes_are_one_value() -> None:
    codes = control_codes(code_words(struct.pack("<6Q", 1, 0x000FE400078E00FF, 2, 0x000FE40000000000, 3, 0)))
    assert codes[0] is codes[1]
    assert codes[0] != codes[2]


def test_guard_bits() -> None:
    words = code_words(struct.pack("<6Q", 0x7947, 0, 0x0947, 0, 0x8947, 0))
    assert guard_fields(words).tolist() == [7, 0, 8]


def test_no_code() -> None:
    assert control_codes(code_words(b"")) == []
