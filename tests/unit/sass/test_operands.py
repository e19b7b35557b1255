# SPDX-License-Identifier: Apache-2.0
"""Defs and uses, worked by hand: one case per rule."""

from __future__ import annotations

import struct

import pytest

from gpadvisor.model.instruction import Instruction, register_name
from gpadvisor.sass import SassLine, decode

PLAIN_CONTROL = 0x000FE20000000000


def one(arch: str, text: str, *, low: int = 0, high: int = PLAIN_CONTROL) -> Instruction:
    """The instruction that ``text`` prints; its guard is put into the encoding."""
    predicate, rest = text.split(None, 1) if text.startswith("@") else (None, text)
    opcode, _, operands = rest.partition(" ")
    guard = 7
    if predicate is not None:
        guard = int(predicate[-1]) if predicate[-1] != "T" else 7
        guard |= 8 if "!" in predicate else 0
    code = struct.pack("<QQ", low & ~0xF000 | guard << 12, high)
    (instruction,), _ = decode(arch, code, [SassLine(predicate, opcode, operands)])
    return instruction


def names(registers: tuple[int, ...]) -> str:
    return " ".join(register_name(r) for r in registers)


def check(arch: str, text: str, defs: str, uses: str) -> None:
    found = one(arch, text)
    order = lambda listed: sorted(listed.split())  # noqa: E731 - one line beside its only use
    assert (sorted(names(found.defs).split()), sorted(names(found.uses).split())) == (
        order(defs),
        order(uses),
    )


@pytest.mark.parametrize(
    ("text", "defs", "uses"),
    [
        ("FFMA R0, R7.reuse, -R2, |R6|", "R0", "R7 R2 R6"),
        ("@!P3 MOV R4, 0x100", "R4", "P3"),
        ("MOV R4, RZ", "R4", ""),
        ("DFMA R12, R12, 2, -R18", "R12 R13", "R12 R13 R18 R19"),
        ("DSETP.MIN.AND P0, P1, R10, R22, PT", "P0 P1", "R10 R11 R22 R23"),
        ("ISETP.GE.OR P0, PT, R0, 0x1, !P2", "P0", "R0 P2"),
        ("ISETP.NE.AND.EX P0, PT, R3, RZ, PT, P1", "P0", "R3 P1"),
        ("IADD3 R7, P1, P2, R2, R8, RZ", "R7 P1 P2", "R2 R8"),
        ("IADD3.X R16, P0, R7, R9, RZ, P0, !PT", "R16 P0", "R7 R9 P0"),
        ("LEA.HI.X R13, R10, c[0x0][0x174], R11, 0x3, P0", "R13", "R10 R11 P0"),
        ("IMAD.WIDE.U32 R12, P0, R10, R17, R12", "R12 R13 P0", "R10 R17 R12 R13"),
        ("IMAD.WIDE R2, R16, R17, c[0x0][0x160]", "R2 R3", "R16 R17"),
        ("IMAD.HI.U32 R11, R11, R15, R10", "R11", "R11 R15 R10"),
        ("IMAD.HI R0, R3, 0x5555, R10", "R0", "R3 R10 R11"),
        ("LOP3.LUT P0, RZ, R5, 0x1f, RZ, 0xc0, !PT", "P0", "R5"),
        ("SEL R6, R6, R9, !P0", "R6", "R6 R9 P0"),
        ("PLOP3.LUT P0, PT, P0, P1, PT, 0xf8, 0x8f", "P0", "P0 P1"),
        ("VOTE.ANY R0, PT, P3", "R0", "P3"),
        ("VOTE.ALL P0, P1", "P0", "P1"),
        ("SHFL.DOWN P2, R20, R18, R17, R16", "P2 R20", "R18 R17 R16"),
        ("F2F.F64.F32 R8, R0", "R8 R9", "R0"),
        ("F2I.S64.F64.TRUNC R14, R16", "R14 R15", "R16 R17"),
        ("I2F.U64.RP R14, R6", "R14", "R6 R7"),
        ("CS2R R14, SRZ", "R14 R15", ""),
        ("CS2R.32 R6, SR_CLOCKLO", "R6", ""),
        ("FCHK P0, R0, R3", "P0", "R0 R3"),
        ("R2P PR, R2, 0x3", "P0 P1", "R2"),
        ("P2R R10, PR, R3, 0x8", "R10", "R3 P3"),
        ("LDS.128 R4, [R2+UR4+0x7f0]", "R4 R5 R6 R7", "R2 UR4"),
        ("STL.64 [R1+0x8], R8", "", "R1 R8 R9"),
        ("STG.E.64 [R18.64+UR4], RZ", "", "R18 R19 UR4 UR5"),
        ("LDG.E.U8 R2, desc[UR6][R2.64]", "R2", "R2 R3 UR6 UR7"),
        ("ATOMG.E.CAS.64.STRONG.GPU PT, R10, [R2], R8, R12", "R10 R11", "R2 R3 R8 R9 R12 R13"),
        ("ATOMS.CAST.SPIN R7, [R4], R6, R7", "R7", "R4 R6 R7"),
        ("RED.E.ADD.F64.RN.STRONG.GPU [UR8], R10", "", "UR8 UR9 R10 R11"),
        ("LDGSTS.E.128 [R28+0x800], [R10.64]", "", "R28 R10 R11"),
        ("LDSM.16.M88.4 R8, [R6]", "R8 R9 R10 R11", "R6"),
        ("HMMA.16816.F32 R4, R12.reuse, R24, R4", "R4 R5 R6 R7", "R12 R13 R14 R15 R24 R25 R4 R5 R6 R7"),
        ("HMMA.16816.F16 R14, R8, R16, RZ", "R14 R15", "R8 R9 R10 R11 R16 R17"),
        ("IMMA.16816.S8.S8 R8, R18.reuse.ROW, R3.COL, RZ", "R8 R9 R10 R11", "R18 R19 R3"),
        ("DMMA.884 R4, R22, R24, R4", "R4 R5 R6 R7", "R22 R23 R24 R25 R4 R5 R6 R7"),
        ("TEX.SCR.LL R14, R12, R6, R9, 0x0, 0x58, 2D", "R12 R13 R14 R15", "R6 R7 R9"),
        ("TLD4.SCR.R RZ, R8, R4, R5, 0x0, 0x58, 2D, 0x3", "R8 R9", "R4 R5"),
        ("TXD RZ, R31, R6, R28, 0x0, 0x58, 2D, 0x1", "R31", "R6 R7 R28 R29 R30 R31"),
        ("CALL.ABS.NOINC R2", "", "R2 R3"),
        ("RET.REL.NODEC R20, _Z1kPf", "", "R20 R21"),
        ("BRX R6, -0x930", "", "R6 R7"),
        ("LEPC R20, 0x1b0", "R20 R21", ""),
        ("BMOV.32.CLEAR R25, B8", "R25", ""),
        ("BSSY B0, 0x7c0", "", ""),
        ("B2R.RESULT RZ, P0", "P0", ""),
        ("BRA P1, 0x0", "", "P1"),
        ("BAR.RED.OR.DEFER_BLOCKING 0x0, !P0", "", "P0"),
        ("NANOSLEEP R22", "", "R22"),
        ("@!PT LDS RZ, [RZ]", "", ""),
    ],
)
def test_sm_75_and_up(text: str, defs: str, uses: str) -> None:
    check("sm_75", text, defs, uses)


@pytest.mark.parametrize(
    ("arch", "text", "defs", "uses"),
    [
        ("sm_90", "LDG.E R5, [R2]", "R5", "R2 R3"),
        ("sm_90", "ULDC.64 UR6, c[0x0][0x208]", "UR6 UR7", ""),
        ("sm_90", "@UP1 UMOV UR4, UR5", "UR4", "UP1 UR5"),
        ("sm_90", "ELECT P0, URZ, PT", "P0", ""),
        ("sm_90", "UTMALDG.2D [UR4], [UR8]", "", "UR4 UR5 UR6 UR7 UR8 UR9"),
        ("sm_90", "UBLKCP.S.G [UR6], [UR10], UR8", "", "UR6 UR7 UR10 UR11 UR8"),
        ("sm_90", "UBLKCP.G.S [UR4], [UR8], UR9", "", "UR4 UR5 UR8 UR9"),
        ("sm_90", "SYNCS.ARRIVE.TRANS64.A1T0 R4, [UR8], RZ", "R4 R5", "UR8"),
        ("sm_90", "SYNCS.EXCH.64 URZ, [UR8], UR4", "", "UR8 UR4 UR5"),
        ("sm_90", "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R4", "P0", "UR9 R4"),
        ("sm_90", "LDGSTS.E.BYPASS.128 [R28], desc[UR10][R2.64]", "", "R28 UR10 UR11 R2 R3"),
        (
            "sm_90a",
            "HGMMA.64x16x16.F32 R24, gdesc[UR16], R24, gsb0",
            "R24 R25 R26 R27 R28 R29 R30 R31",
            "R24 R25 R26 R27 R28 R29 R30 R31 UR16 UR17 UR18 UR19",
        ),
        (
            "sm_90a",
            "HGMMA.64x8x16.F16 R24, R8, gdesc[UR16], RZ",
            "R24 R25",
            "R8 R9 R10 R11 UR16 UR17 UR18 UR19",
        ),
        (
            "sm_100",
            "LDG.E.ENL2.256 R4, R8, desc[UR6][R20.64]",
            "R4 R5 R6 R7 R8 R9 R10 R11",
            "R20 R21 UR6 UR7",
        ),
        ("sm_100a", "LDTM.x8 R4, tmem[UR7]", "R4 R5 R6 R7 R8 R9 R10 R11", "UR7"),
        ("sm_100a", "LDTM.16dp256bit R12, tmem[UR6]", "R12 R13 R14 R15", "UR6"),
        (
            "sm_100a",
            "UTCHMMA gdesc[UR10], gdesc[UR12], tmem[UR7], tmem[UR8], idesc[UR9], UP1",
            "",
            "UR10 UR11 UR12 UR13 UR7 UR8 UR9 UP1",
        ),
        ("sm_100", "FFMA2 R4, R2, R6, R4", "R4 R5", "R2 R3 R6 R7 R4 R5"),
        ("sm_120", "IADD.64.X R6, P0, R6, R14, P1", "R6 R7 P0", "R6 R7 R14 R15 P1"),
        ("sm_120", "UIMNMX.U64 UPT, UPT, UR10, UR6, UR12, UPT, !UPT", "UR10 UR11", "UR6 UR7 UR12 UR13"),
        ("sm_120", "SHF.R.U64 R5, R6, 0x1e, R7", "R5", "R6 R7"),
        ("sm_120", "SUST.D.BA.2D.128.STRONG.SM [R2], R8, UR6", "", "R2 R3 R8 R9 R10 R11 UR6"),
    ],
)
def test_newer_architectures(arch: str, text: str, defs: str, uses: str) -> None:
    check(arch, text, defs, uses)


@pytest.mark.parametrize(
    ("text", "low", "high", "defs", "uses"),
    [
        # No uniform registers: a bare 64-bit address, and the stall count in the upper word.
        ("LDG.E.64.SYS R2, [R2]", 0x0000000002027381, 0x000EA800001EEB00, "R2 R3", "R2 R3"),
        ("STG.E.64.SYS [R6], R8", 0x0000000806007386, 0x000FE2000010EB00, "", "R6 R7 R8 R9"),
        ("LDG.E.SYS R2, [R6]", 0x0000000000067381, 0x000EA200001EE900, "R2", "R6 R7"),
        # A step holds half of an FP32 result; A and B are pairs.
        (
            "HMMA.884.F32.F32.STEP0 R16, R22.reuse.ROW, R14.reuse.COL, R16",
            0x0000000E16107236,
            0x0E0FE40000005410,
            "R16 R17",
            "R22 R23 R14 R15 R16 R17",
        ),
        (
            "HMMA.884.F32.F32.STEP3 R6, R20.ROW, R12.COL, RZ",
            0x0000000C14067236,
            0x000F64000001D4FF,
            "R6 R7",
            "R20 R21 R12 R13",
        ),
        ("IADD3 R20, P0, P1, -R20, R3, R8", 0x0000000314147210, 0x000FE2000791E108, "R20 P0 P1", "R20 R3 R8"),
    ],
)
def test_sm_70_by_hand(text: str, low: int, high: int, defs: str, uses: str) -> None:
    found = one("sm_70", text, low=low, high=high)
    assert sorted(names(found.defs).split()) == sorted(defs.split())
    assert sorted(names(found.uses).split()) == sorted(uses.split())
    assert found.info.known


def test_sm_70_matrix_steps_are_of_variable_latency() -> None:
    last = one("sm_70", "HMMA.884.F32.F32.STEP3 R6, R20.ROW, R12.COL, RZ", high=0x000F64000001D4FF)
    assert last.info.variable_latency
    assert last.control.write_barrier == 5
    assert not one("sm_80", "HMMA.16816.F32 R4, R12, R24, R4").info.variable_latency


@pytest.mark.parametrize(
    ("arch", "text", "low", "high", "uses"),
    [
        # Loads name the pair at bits 32-37, stores and atomics at bits 64-69.
        ("sm_86", "LDG.E R8, [R8.64]", 0x0000000A08087981, PLAIN_CONTROL, "R8 R9 UR10 UR11"),
        ("sm_80", "STG.E [R12.64], R8", 0x000000080C007986, PLAIN_CONTROL | 0x0A, "R8 R12 R13 UR10 UR11"),
        ("sm_89", "LDGSTS.E.128 [R0], [R12.64]", 0x0000000C00007FAE, PLAIN_CONTROL | 6, "R0 R12 R13 UR6 UR7"),
        ("sm_86", "LDG.E R8, desc[UR4][R8.64]", 0x0000000A08087981, PLAIN_CONTROL, "R8 R9 UR4 UR5"),
        ("sm_86", "LDG.E R8, [R8.64]", 0x0000003F08087981, PLAIN_CONTROL, "R8 R9"),
        ("sm_75", "LDG.E R8, [R8.64]", 0x0000000A08087981, PLAIN_CONTROL, "R8 R9"),
        ("sm_86", "LDS R8, [R8.X4]", 0x0000000A08087981, PLAIN_CONTROL, "R8"),
    ],
)
def test_descriptors_that_only_the_encoding_names(
    arch: str, text: str, low: int, high: int, uses: str
) -> None:
    assert sorted(names(one(arch, text, low=low, high=high).uses).split()) == sorted(uses.split())


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("LDG.E.64 R2, [R2.64]", 8), ("LDS.U16 R2, [R4]", 2), ("STG.E.U8 [R2.64], R0", 1),
        ("LDL R0, [R1]", 4),
        ("LDG.E.ENL2.256 R4, R8, [R2.64]", 32), ("ATOMG.E.ADD.F16x2.RN.STRONG.GPU PT, R0, [R2.64], R4", 4),
        ("RED.E.ADD.F64.RN.STRONG.GPU [R2.64], R4", 8), ("LDSM.16.M88.4 R8, [R6]", 16),
        ("FADD R0, R1, R2", None),
        ("LDGSTS.E.BYPASS.128 [R0], [R2.64]", 16), ("TEX RZ, R8, R8, UR4, 2D, 0x1", None),
        ("CCTL.IVALL", None), ("LDC.64 R2, c[0x0][0x380]", 8),
    ],
)  # fmt: skip
def test_access_widths(text: str, width: int | None) -> None:
    assert one("sm_90", text).width_bytes == width


def test_unknown_opcodes_write_their_first_register() -> None:
    found = one("sm_90", "@P2 FROB.64 P0, R4, R5, [R6+UR4], c[0x0][R8]")
    assert names(found.defs) == "R4"
    assert sorted(names(found.uses).split()) == sorted(["P0", "P2", "R5", "R6", "R8", "UR4"])
    assert not found.info.known


def test_registers_never_pass_the_end_of_the_file() -> None:
    assert names(one("sm_75", "LDG.E.128 R253, [R254.64]").defs) == "R253 R254"
