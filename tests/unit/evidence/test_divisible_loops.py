# SPDX-License-Identifier: Apache-2.0
"""Loops whose passes other threads could do, told from those that hand something on."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.evidence.divisible_loops import divisible_loop

LOOP = """
    MOV R9, 0x4
    MOV R4, RZ
    images:
    MOV R21, RZ
    MOV R18, RZ
    taps:
    @P1 IMAD.WIDE R6, R18, R9, c[0x0][0x168]
    @P1 LDG.E R2, [R6.64]
    @!P1 MOV R2, RZ
    FADD R21, R21, R2
    IADD3 R18, R18, 0x1, RZ
    ISETP.NE.AND P2, PT, R18, c[0x0][0x178], PT
    @P2 BRA taps
    IMAD R0, R4, c[0x0][0x17c], R3
    IMAD.WIDE R12, R0, R9, c[0x0][0x160]
    STG.E [R12.64], R21
    IADD3 R4, R4, 0x1, RZ
    ISETP.NE.AND P0, PT, R4, c[0x0][0x174], PT
    @P0 BRA images
    EXIT
"""
"""After a convolution that loops over its images: a sum over the taps of each, and a result in each pass."""


def _found(text: str) -> bool:
    (function,) = listing(text).program.functions
    found = divisible_loop(function, None, None)
    assert found is None or function.loops[found.loop].depth == 1
    return found is not None


def test_a_result_in_each_pass_and_nothing_but_counters_between() -> None:
    assert _found(LOOP)
    moved = LOOP.replace("IMAD.WIDE R12, R0, R9, c[0x0][0x160]\n", "").replace(
        "IADD3 R4, R4, 0x1, RZ",
        "IADD3 R4, R4, 0x1, RZ\nIADD3 R14, P3, R12, R8, RZ\nIMAD.X R15, RZ, RZ, R13, P3\n"
        "MOV R12, R14\nMOV R13, R15",
    )
    assert moved != LOOP
    assert _found(moved)  # an address that moves on


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MOV R21, RZ", "NOP"),  # the sum goes on over all images
        ("IADD3 R4, R4, 0x1, RZ", "IADD3 R4, R4, 0x1, RZ\nIMAD R3, R3, 0x19660d, R4"),  # a random number
        ("STG.E", "STS"),  # nothing that stays
        ("STG.E [R12.64], R21", "STG.E [R12.64], R21\nBAR.SYNC 0x0"),
        ("STG.E [R12.64], R21", "STG.E [R12.64], R21\nSTL [R1], R21"),
        ("IMAD R0, R4, c[0x0][0x17c], R3", "MOV R0, R3"),  # all passes write one place
        ("STG.E [R12.64], R21", "FSETP.GT.AND P3, PT, R21, RZ, PT\n@P3 BRA found\nSTG.E [R12.64], R21"),
        ("c[0x0][0x168]", "c[0x0][0x160]"),  # one array
        ("@!P1 MOV R2, RZ", "NOP"),  # else the value of the pass before
    ],
)
def test_what_a_pass_needs_of_the_one_before(old: str, new: str) -> None:
    text = LOOP.replace(old, new)
    assert text != LOOP
    text = text.replace("IMAD.WIDE R6, R18", "IMAD.WIDE R6, R0") if "0x160" in new else text
    if "found" in new:
        text += "found:\nSTG.E [R12.64], R4\nEXIT\n"
    assert not _found(text)


def test_sums_in_memory_may_come_from_anybody() -> None:
    assert _found(
        LOOP.replace("IMAD R0, R4, c[0x0][0x17c], R3", "MOV R0, R3").replace(
            "STG.E [R12.64], R21", "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R12.64], R21"
        )
    )
