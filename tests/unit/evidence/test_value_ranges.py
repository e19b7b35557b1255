# SPDX-License-Identifier: Apache-2.0
"""Between which numbers an address lies, as the instructions that make it tell."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.evidence.value_ranges import NumberRange, ValueRanges

BASE = ("c[0x0][0x168]",)
FOUR = "HFMA2.MMA R3, -RZ, RZ, 0, 2.384185791015625e-07"


def _address(text: str) -> NumberRange | None:
    (function,) = listing(f"{text}\nRED.E.ADD.STRONG.GPU [R4.64], R9\nEXIT").program.functions
    (index,) = [at for at, one in enumerate(function.instructions) if one.opcode == "RED"]
    return ValueRanges(function).address(index)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("LDG.E.U8 R2, [R6.64]\nIMAD.WIDE.U32 R4, R2, 0x4, R12", 0, 1020),
        ("LDG.E.S8 R2, [R6.64]\nIMAD.WIDE R4, R2, 0x4, R12", -512, 508),
        ("LDG.E R2, [R6.64]\nLOP3.LUT R3, R2, 0x3f, RZ, 0xc0, !PT\nIMAD.WIDE R4, R3, 0x4, R12", 0, 252),
        ("LDG.E R2, [R6.64]\nSHF.R.U32.HI R3, RZ, 0x1c, R2\nIMAD.WIDE R4, R3, 0x8, R12", 0, 120),
        ("LDG.E R2, [R6.64]\nSHF.R.S32.HI R3, RZ, 0x1c, R2\nIMAD.WIDE R4, R3, 0x8, R12", -64, 56),
        ("LDG.E R2, [R6.64]\nPRMT R3, R2, 0x7772, RZ\nLEA R4, P0, R3, R12, 0x2", 0, 1020),
        ("LDG.E R2, [R6.64]\nPRMT R3, R2, 0x9991, RZ\nLEA R4, P0, R3, R12, 0x2", -512, 508),
        ("LDG.E R2, [R6.64]\nSGXT.U32 R3, R2, 0x4\nLEA R4, P0, R3, R12, 0x2", 0, 60),
        ("LDG.E R2, [R6.64]\nIMNMX R3, RZ, R2, !PT\nIMNMX R3, R3, 0x9, PT\nLEA R4, R3, R12, 0x2", 0, 36),
        ("LDG.E R2, [R6.64]\nVIMNMX.RELU R3, R2, 0x9, PT\nLEA R4, R3, R12, 0x2", 0, 36),
        ("LDG.E R2, [R6.64]\nIMNMX.U32 R3, R2, 0x9, PT\nLEA R4, R3, R12, 0x2", 0, 36),
        ("LDG.E.U8 R2, [R6.64]\nVIADDMNMX R3, R2, -0x41, RZ, !PT\nLEA R4, R3, R12, 0x2", 0, 4 * 190),
        ("LDG.E.U8 R2, [R6.64]\nIADD3 R3, -R2, 0xff, RZ\nLEA R4, R3, R12, 0x2", 0, 1020),
        (f"LDG.E.U8 R2, [R6.64]\n{FOUR}\nIMAD.WIDE.U32 R4, R2, R3, R12", 0, 1020),
    ],
)
def test_what_bounds_an_address(text: str, low: int, high: int) -> None:
    assert _address(f"LDC.64 R12, c[0x0][0x168]\n{text}") == NumberRange(low, high, BASE)


def test_what_is_added_up_again_and_again_is_followed_once() -> None:
    # By each of its uses it would be followed 3 ** 18 times.
    sums = "\n".join(["IADD3 R2, R2, R2, R2"] * 18)
    bit = "LDG.E R2, [R6.64]\nLOP3.LUT R2, R2, 0x1, RZ, 0xc0, !PT"
    text = f"LDC.64 R12, c[0x0][0x168]\n{bit}\n{sums}\nLEA R4, R2, R12, 0x2"
    assert _address(text) == NumberRange(0, 4 * 3**18, BASE)


@pytest.mark.parametrize(
    "text",
    [
        "LDG.E R2, [R6.64]\nIMAD.WIDE R4, R2, 0x4, R12",  # any number
        "LDG.E R2, [R6.64]\nSHF.R.U32.HI R3, RZ, c[0x0][0x174], R2\nIMAD.WIDE R4, R3, 0x4, R12",
        "LDG.E R2, [R6.64]\nLOP3.LUT R3, R2, 0x3f, RZ, 0xfc, !PT\nIMAD.WIDE R4, R3, 0x4, R12",  # or
        "LDG.E R2, [R6.64]\nIMNMX R3, R2, 0x9, PT\nLEA R4, R3, R12, 0x2",  # from above alone
        "LDG.E.U8 R2, [R6.64]\nS2R R3, SR_CTAID.X\nIMAD R3, R3, 0x100, R2\nIMAD.WIDE R4, R3, 0x4, R12",
        "LDG.E R2, [R6.64]\nSHF.R.U64 R3, R2, 0x1c, R8\nIMAD.WIDE R4, R3, 0x4, R12",  # R8 shifts in
        "LDG.E.U8 R2, [R6.64]\nIMNMX R3, R8, R2, P1\nIMAD.WIDE R4, R3, 0x4, R12",  # either
        "LDG.E.U8 R2, [R6.64]\n@P0 LDG.E R2, [R6.64]\nIMAD.WIDE R4, R2, 0x4, R12",
    ],
)
def test_what_bounds_nothing(text: str) -> None:
    assert _address(f"LDC.64 R12, c[0x0][0x168]\n{text}") is None


@pytest.mark.parametrize(
    ("test", "high"),
    [
        ("ISETP.GT.U32.AND P0, PT, R2, 0x19, PT\n@P0 EXIT", 100),
        ("ISETP.GE.U32.AND P0, PT, R2, 0x19, PT\n@P0 BRA over", 96),
        ("ISETP.LT.U32.AND P0, PT, R2, 0x19, PT\n@!P0 BRA over", 96),
        ("ISETP.GT.U32.OR P0, PT, R2, 0x19, P1\n@P0 EXIT", 100),
        ("ISETP.GT.U32.AND P0, PT, R2, 0x19, P1\n@P0 EXIT", None),  # the other may have failed
        ("ISETP.GT.U32.AND P0, PT, R2, 0x19, PT\n@!P0 EXIT", None),
        ("ISETP.GT.AND P0, PT, R2, 0x19, PT\n@P0 EXIT", None),  # what is below zero is not excluded
        ("ISETP.GT.U32.AND P0, PT, UR2, 0x19, PT\n@P0 EXIT", None),  # a register of the other file
        ("ISETP.GT.U32.AND P1, P0, R2, 0x19, PT\n@P0 EXIT", None),  # its other result
        ("ISETP.GT.U32.AND P0, PT, R2, 0x19, PT\n@P0 EXIT\nLDG.E R2, [R6.64]", None),  # another value
    ],
)
def test_comparisons_on_the_way_bound_what_they_compare(test: str, high: int | None) -> None:
    text = f"LDC.64 R12, c[0x0][0x168]\nLDG.E R2, [R6.64]\n{test}\nIMAD.WIDE R4, R2, 0x4, R12"
    (function,) = listing(f"{text}\nRED.E.ADD.STRONG.GPU [R4.64], R9\nover:\nEXIT").program.functions
    (index,) = [at for at, one in enumerate(function.instructions) if one.opcode == "RED"]
    found = ValueRanges(function).address(index)
    assert found == (None if high is None else NumberRange(0, high, BASE))


def test_what_a_loop_adds_up_has_no_bound() -> None:
    (function,) = listing(
        "LDC.64 R12, c[0x0][0x168]\nMOV R2, RZ\nagain:\nIADD3 R2, R2, 0x1, RZ\nIMAD.WIDE R4, R2, 0x4, R12\n"
        "RED.E.ADD.STRONG.GPU [R4.64], R9\n@P0 BRA again\nEXIT"
    ).program.functions
    assert ValueRanges(function).address(4) is None
