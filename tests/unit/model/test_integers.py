# SPDX-License-Identifier: Apache-2.0
"""What integer instructions compute, by the numbers that come of it."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.model.integers import (
    MASK,
    Computation,
    IntegerOperand,
    IntegerOperation,
    computation,
    operand,
    signed,
)

VALUES = {"R2": 5, "R3": 7, "R6": 0x8000_0001, "R7": 0x10, "UR4": 3, "c[0x0][0x160]": 100, "c[0x4][0x0]": 9}


def _computed(text: str, word: int = 0) -> Computation | None:
    return computation(listing(f"{text}\nEXIT").program.functions[0].instructions[0], word)


def _value(one: IntegerOperand) -> int:
    return one.number if one.number is not None else VALUES[one.name] * one.sign + one.offset


def _sum(computed: Computation) -> int:
    total = 0
    for term in computed.terms:
        value = _value(term.operand) * term.factor
        value *= 1 if term.times is None else _value(term.times)
        total += value << (0 if term.shift is None else _value(term.shift))
    return total & MASK


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("MOV R4, R2", 5),
        ("UMOV UR5, 0xffffffff", MASK),
        ("R2UR UR5, R3", 7),
        ("IMAD.MOV.U32 R4, RZ, RZ, c[0x0][0x160]", 100),
        ("IADD3 R4, P0, R2, -R3, 0x2", 0),
        ("IADD3 R4, ~R2, R3, RZ", 1),
        ("VIADD R4, R2, 0xfffffffe", 3),
        ("UIADD3 UR5, UR4, 0x1, URZ", 4),
        ("IADD.64 R4, R2, R6", 0x8000_0006),
        ("IMAD R4, R2, -R3, R7", (16 - 35) & MASK),
        ("IMAD.WIDE R4, R2, 0x4, R6", 0x8000_0015),
        ("IMAD.SHL.U32 R4, R6, 0x2, RZ", 2),
        ("LEA R4, P1, R2, R7, 0x3", 56),
        ("LEA R4, R2, R7, UR4", 56),
        ("SHF.L.U32 R4, 0x1, R2, RZ", 32),
        ("SHF.L.U32 R4, R6, 0x1, RZ", 2),
        ("HFMA2.MMA R4, -RZ, RZ, 0, 2.384185791015625e-07", 4),
        ("ULDC UR5, c[0x0][0x160]", 100),
        ("LDC.64 R4, c[0x4][RZ]", 9),
        ("CS2R R4, SRZ", 0),
    ],
)
def test_sums(text: str, result: int) -> None:
    computed = _computed(text)
    assert computed is not None
    assert (computed.operation, _sum(computed)) == (IntegerOperation.SUM, result)
    reads = [
        one for term in computed.terms for one in (term.operand, term.times, term.shift) if one is not None
    ]
    assert list(computed.operands) == reads


@pytest.mark.parametrize(
    ("text", "operation", "operands", "is_signed"),
    [
        ("SEL R4, R2, R3, P0", IntegerOperation.CHOICE, "R2 R3", True),
        ("SHF.R.S32.HI R4, RZ, 0x1f, R2", IntegerOperation.RIGHT, "R2 0x1f", True),
        ("SHF.R.U32.HI R4, RZ, 0x1f, R2", IntegerOperation.RIGHT, "R2 0x1f", False),
        (
            "SHF.R.U32.HI R4, R3, 0x4, R2",
            IntegerOperation.RIGHT,
            "R2 0x4",
            False,
        ),  # the low word only shifts in
        ("SHF.R.S32 R4, R2, 0x4, RZ", IntegerOperation.RIGHT, "R2 0x4", False),
        ("SHF.R.U64 R4, R2, 0x4, R3", IntegerOperation.FUNNEL, "R2 0x4 R3", True),
        ("IMAD.HI.U32 R4, R2, R3, RZ", IntegerOperation.HIGH_PRODUCT, "R2 R3", False),
        ("LEA.HI R4, R2, R3, RZ, 0x5", IntegerOperation.HIGH_SUM, "R2 R3 RZ 0x5", True),
        ("LOP3.LUT P0, R4, R2, 0x3, RZ, 0xc0, !PT", IntegerOperation.LOGIC, "R2 0x3 RZ 0xc0", True),
        ("LOP3.LUT P0, RZ, R2, 0x3, RZ, 0xc0, !PT", IntegerOperation.LOGIC, "R2 0x3 RZ 0xc0", True),
        ("SGXT.U32 R4, R2, 0x4", IntegerOperation.FIELD, "R2 0x4", False),
        ("PRMT R4, R2, 0x7770, RZ", IntegerOperation.BYTES, "R2 0x7770 RZ", True),
        ("IABS R4, R2", IntegerOperation.ABSOLUTE, "R2", True),
        ("IMNMX.U32 R4, R2, R3, PT", IntegerOperation.MINIMUM, "R2 R3", False),
        ("VIADDMNMX R4, R2, 0x3, RZ, !PT", IntegerOperation.MAXIMUM, "R2 0x3 RZ", True),
    ],
)
def test_what_is_no_sum(text: str, operation: IntegerOperation, operands: str, is_signed: bool) -> None:
    computed = _computed(text)
    assert computed is not None
    assert computed.operation is operation
    assert (" ".join(one.name for one in computed.operands), computed.signed) == (operands, is_signed)


@pytest.mark.parametrize(
    "text",
    [
        "IADD3.X R4, R2, R3, RZ, P0, !PT",  # a carry
        "SHF.L.U64.HI R4, R2, 0x2, R3",  # the high word
        "SHF.L.U32 R4, R2, 0x20, RZ",  # all bits leave
        "IMAD.HI R4, R2, R3, R6",  # with the carry out of a pair
        "IMNMX R4, R2, R3, P0",  # either
        "VIMNMX.S16x2 R4, R2, R3, PT",  # two numbers
        "LDC.U8 R4, c[0x0][0x160]",  # a byte of an argument
        "LDC R4, c[0x0][R2+0x160]",  # one of several
        "LDG.E R4, [R2.64]",
        "FADD R4, R2, R3",
    ],
)
def test_what_is_not_followed(text: str) -> None:
    assert _computed(text) is None


def test_the_second_word_of_a_constant_is_the_next_one() -> None:
    second = _computed("LDC.64 R4, c[0x0][0x160]", 1)
    assert second is not None
    assert second.operands == (operand("c[0x0][0x164]"),)
    assert _computed("IMAD.WIDE R4, R2, 0x4, R6", 1) is None


@pytest.mark.parametrize(
    ("value", "number"), [(0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, -(1 << 31)), (MASK, -1), (1 << 32, 0)]
)
def test_signs(value: int, number: int) -> None:
    assert signed(value) == number
