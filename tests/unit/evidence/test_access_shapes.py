# SPDX-License-Identifier: Apache-2.0
"""How a warp's addresses lie to each other, and which padding parts those that share a bank."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.evidence.access_shapes import (
    AccessShape,
    Lie,
    access_shape,
    feeds_tensor_cores,
    sectors_of_a_warp,
)
from gpadvisor.evidence.banks import Conflict, conflict
from gpadvisor.machine import code_form
from gpadvisor.model.profile import Launch
from gpadvisor.model.program import Function

FLAT = (256, 1, 1)
SQUARE = (16, 16, 1)


def _access(text: str, block: tuple[int, int, int], arch: str) -> tuple[Function, int, Launch]:
    """The access tagged ``at``, and a launch."""
    code = listing(f"{text}\nEXIT", arch)
    context = context_of(code, [Row("selected", "at", 1)])
    assert context.profile is not None
    return code.program.functions[0], code.tags["at"][1], replace(context.profile.launch, block=block)


def _shape(text: str, block: tuple[int, int, int] = FLAT, arch: str = "sm_86") -> AccessShape:
    function, index, launch = _access(text, block, arch)
    return access_shape(function, index, code_form(arch), launch)


def _conflict(text: str, block: tuple[int, int, int] = FLAT) -> Conflict | Lie | None:
    function, index, launch = _access(text, block, "sm_86")
    return conflict(function, index, code_form("sm_86"), launch)


RECIPROCAL = "I2F.U32.RP R3, c[0x0][0x170]\nMUFU.RCP R3, R3\nF2I.FTZ.U32.TRUNC.NTZ R3, R3\n"
DIVISION = f"""{RECIPROCAL}IMAD.MOV R5, RZ, RZ, -R3
MOV R2, RZ
IMAD R5, R5, c[0x0][0x170], RZ
IMAD.HI.U32 R3, R3, R5, R2
IMAD.HI.U32 R4, R3, R0, RZ
IMAD.MOV R7, RZ, RZ, -R4
IMAD R6, R7, c[0x0][0x170], R0
"""
THREAD = "S2R R0, SR_TID.X\n"
ROW_AND_COLUMN = "S2R R0, SR_TID.X\nS2R R1, SR_TID.Y\n"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("IMAD.WIDE R2, R0, 0x4, R8\nat| LDG.E R4, [R2.64]", AccessShape(Lie.NEIGHBOURS, 4)),
        ("IMAD.WIDE R2, R0, 0x4, R8\nat| LDG.E R4, [R2.64+-0x4]", AccessShape(Lie.NEIGHBOURS, 4)),
        ("IMAD.WIDE R2, R0, 0xc, R8\nat| LDG.E R4, [R2.64]", AccessShape(Lie.APART, 12)),
        ("SHF.L.U32 R2, R0, 0x4, RZ\nat| LDG.E.128 R4, [R2.64]", AccessShape(Lie.NEIGHBOURS, 16)),
        ("IMAD R2, R0, c[0x0][0x170], RZ\nLEA R2, R2, R8, 0x2\nat| STG.E [R2.64], R4",
         AccessShape(Lie.ROWS, 16384)),
        ("at| LDG.E R4, [R8.64]", AccessShape(Lie.SAME)),
        ("S2R R1, SR_CTAID.X\nIMAD.WIDE R2, R1, 0x4, R8\nat| LDG.E R4, [R2.64]", AccessShape(Lie.SAME)),
        ("LOP3.LUT R1, R0, 0x1f, RZ, 0xc0, !PT\nLEA R2, R1, R8, 0x2\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.NEIGHBOURS, 4)),
        ("SHF.R.U32.HI R1, RZ, 0x5, R0\nLEA R2, R1, R8, 0x2\nat| LDG.E R4, [R2.64]", AccessShape(Lie.SAME)),
        ("IMAD.WIDE R2, R0, 0x4, R8\nLDG.E R3, [R2.64]\nIMAD.WIDE R2, R3, 0x4, R10\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.BY_DATA)),
        # An offset that all threads load alike shifts them together.
        ("LDG.E R3, [R8.64]\nIMAD.IADD R3, R3, 0x1, R0\nIMAD.WIDE R2, R3, 0x4, R10\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.NEIGHBOURS, 4)),
        # Division by an argument, which stands for more than a warp: the quotient, the remainder, both.
        (f"{DIVISION}LEA R2, R4, R8, 0x2\nat| LDG.E R4, [R2.64]", AccessShape(Lie.SAME)),
        (f"{DIVISION}IMAD.WIDE R2, R6, 0x4, R8\nat| LDG.E R4, [R2.64]", AccessShape(Lie.NEIGHBOURS, 4)),
        (f"{DIVISION}IMAD R6, R6, c[0x0][0x174], R4\nIMAD.WIDE R2, R6, 0x4, R8\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.ROWS, 0xC000)),
        # Of a reciprocal that was not made an integer one nothing is known.
        (f"{RECIPROCAL}IMAD.HI.U32 R4, R3, R0, RZ\nLEA R2, R4, R8, 0x2\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.UNKNOWN)),
    ],
)  # fmt: skip
def test_threads_in_a_row(text: str, shape: AccessShape) -> None:
    assert _shape(THREAD + text) == shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("IMAD R3, R1, c[0x0][0x170], R0\nIMAD.WIDE R2, R3, 0x4, R8\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.NEIGHBOURS, 4, 16)),
        ("IMAD R3, R0, c[0x0][0x170], R1\nIMAD.WIDE R2, R3, 0x4, R8\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.ROWS, 16384, 16)),
        ("IMAD R3, R1, c[0x0][0x170], RZ\nIMAD.WIDE R2, R3, 0x4, R8\nat| LDG.E R4, [R2.64]",
         AccessShape(Lie.SAME, 0, 16)),
    ],
)  # fmt: skip
def test_narrow_blocks_start_anew_with_each_row(text: str, shape: AccessShape) -> None:
    assert _shape(ROW_AND_COLUMN + text, SQUARE) == shape


@pytest.mark.parametrize(("arch", "size"), [("sm_86", "c[0x0][0x0]"), ("sm_120", "c[0x0][0x360]")])
def test_the_size_of_the_block_is_known(arch: str, size: str) -> None:
    text = f"{THREAD}IMAD R3, R0, {size}, RZ\nLEA R2, R3, R8, 0x2\nat| LDG.E R4, [R2.64]"
    assert _shape(text, FLAT, arch) == AccessShape(Lie.APART, 1024)


def test_a_loop_is_looked_at_in_its_first_pass() -> None:
    text = f"""
        {THREAD}
        MOV R5, 0x1
        again:
        IMAD R3, R0, R5, RZ
        at| LDS R4, [R3.X8]
        SHF.L.U32 R5, R5, 0x1, RZ
        @P0 BRA again
    """
    assert _shape(text) == AccessShape(Lie.APART, 8)


def test_a_value_that_the_data_decide_later_is_by_data() -> None:
    text = f"""
        {THREAD}
        MOV R5, RZ
        again:
        IMAD.WIDE R2, R5, 0x4, R8
        at| LDG.E R4, [R2.64]
        IMAD.WIDE R6, R0, 0x4, R10
        LDG.E R5, [R6.64]
        @P0 BRA again
    """
    assert _shape(text) == AccessShape(Lie.BY_DATA)


def test_a_write_under_a_condition_does_not_hide_the_other() -> None:
    text = f"{THREAD}I2F R3, R0\n@P0 MOV R3, 0x1\nLEA R2, R3, R8, 0x2\nat| LDG.E R4, [R2.64]"
    assert _shape(text) == AccessShape(Lie.UNKNOWN)


def test_columns_of_a_tile_want_one_element_of_padding() -> None:
    found = _conflict(f"{THREAD}SHF.L.U32 R2, R0, 0x7, RZ\nat| LDS R4, [R2]")
    assert found == Conflict(turns=32, row=128, pad=4, after=1)


def test_padding_is_as_wide_as_the_widest_access_and_follows_the_threads_own_rows() -> None:
    # Four values of a thread go to four rows of 256 bytes, and those of the next thread to the next four.
    stores = "\n".join(f"{'at| ' * (not i)}STS [R2{f'+{256 * i:#x}' if i else ''}], R4" for i in range(4))
    text = f"{ROW_AND_COLUMN}SHF.L.U32 R2, R0, 0xa, RZ\nLEA R2, R1, R2, 0x2\n{stores}\nLDS.128 R8, [R3]"
    assert _conflict(text, SQUARE) == Conflict(turns=16, row=256, pad=16, after=8)
    # With values between these rows, too, nobody knows which step is a row: what parts more banks is told.
    between = text.replace("LDS.128", "STS [R2+0x20], R4\nLDS.128")
    assert _conflict(between, SQUARE) == Conflict(turns=16, row=1024, pad=16, after=2, several=True)


@pytest.mark.parametrize(
    ("access", "block", "turns", "distance"),
    [
        ("SHF.L.U32 R2, R0, 0x5, RZ\nat| LDS.128 R4, [R2]", SQUARE, 8, 32),  # each thread eight in a row
        ("SHF.L.U32 R2, R0, 0x3, RZ\nat| LDS R4, [R2]", FLAT, 2, 8),
    ],
)
def test_no_padding_of_rows_parts_the_banks_within_one(
    access: str, block: tuple[int, int, int], turns: int, distance: int
) -> None:
    assert _conflict(ROW_AND_COLUMN + access, block) == Conflict(turns=turns, distance=distance)


ROWS_OF_640 = "IMAD R2, R1, 0x280, RZ\nLEA R2, R0, R2, 0x2\nat| LDS R4, [R2]"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # Two rows of 160 floats: only half of the banks parts them.
        (ROWS_OF_640, Conflict(turns=2, row=640, pad=64, after=1)),
        # Columns of an array whose rows were padded to 81 floats: one more, as x * 17 + y share banks.
        ("IMAD R2, R0, 0x144, RZ\nLEA R2, R1, R2, 0x2\nat| LDS R4, [R2]",
         Conflict(turns=2, row=324, pad=4, after=1)),
    ],
)  # fmt: skip
def test_all_paddings_up_to_the_banks_are_tried_the_smallest_first(text: str, found: Conflict) -> None:
    assert _conflict(ROW_AND_COLUMN + text, SQUARE) == found


def test_a_padding_that_breaks_another_access_of_the_array_is_not_told() -> None:
    columns = "IMAD R3, R0, 0x280, RZ\nLEA R3, R1, R3, 0x2\n"
    rows = f"{ROW_AND_COLUMN}{ROWS_OF_640}\n{columns}LDS R5, [R3]"
    assert _conflict(rows, SQUARE) == Conflict(turns=2)  # 64 bytes would leave 8 turns of the columns
    both = f"{ROW_AND_COLUMN}{ROWS_OF_640.replace('at| ', '')}\n{columns}at| LDS R5, [R3]"
    assert _conflict(both, SQUARE) == Conflict(turns=16, row=640, pad=8, after=1)
    # An array with rows of another length is another one.
    other = "IMAD R3, R0, 0x300, RZ\nLEA R3, R1, R3, 0x2\n"
    rows = f"{ROW_AND_COLUMN}{ROWS_OF_640}\n{other}LDS R5, [R3]"
    assert _conflict(rows, SQUARE) == Conflict(turns=2, row=640, pad=64, after=1)


def _halved(radix: int, by: int = 1) -> str:
    """A loop over an exchange of the elements that are a distance apart, which each pass makes smaller."""
    return f"""
        {THREAD}
        UMOV UR4, c[0x0][0x170]
        again:
        UIADD3 UR5, UR4, -0x1, URZ
        LOP3.LUT R9, R0, UR5, RZ, 0xc0, !PT
        IMAD.IADD R2, R0, 0x1, -R9
        IMAD R2, R2, {radix:#x}, R9
        LEA R2, R2, UR6, 0x2
        at| LDS R4, [R2]
        USHF.R.U32.HI UR4, URZ, {by:#x}, UR4
        @P0 BRA again
    """


def test_a_distance_that_a_loop_halves_is_padded_where_that_cures_most() -> None:
    found = _conflict(_halved(4))
    assert found == Conflict(turns=23, row=128, pad=20, after=14, flat=True, halved=True)
    assert _conflict(_halved(2)) == Conflict(turns=15, flat=True, halved=True)
    assert _conflict(_halved(1)) is Lie.UNKNOWN  # neighbours at every distance


def test_one_dimension_has_no_rows() -> None:
    text = """
        LOP3.LUT R9, R0, 0x3, RZ, 0xc0, !PT
        IMAD.IADD R2, R0, 0x1, -R9
        IMAD R2, R2, 0x2, R9
        at| LDS R4, [R2.X4]
    """
    found = _conflict(THREAD + text)
    assert found == Conflict(turns=2, row=128, pad=16, after=1, flat=True)


def test_rows_of_a_fragment_stay_aligned() -> None:
    # Four threads are side by side, and the next four a row of 128 bytes further.
    rows = "SHF.R.U32.HI R1, RZ, 0x2, R0\nLOP3.LUT R2, R0, 0x3, RZ, 0xc0, !PT\nSHF.L.U32 R1, R1, 0x7, RZ\n"
    text = f"{THREAD}{rows}LEA R2, R2, R1, 0x3\nat| LDS.64 R4, [R2]\nHMMA.16816.F32 R4, R8, R12, R4"
    found = _conflict(text)
    assert isinstance(found, Conflict)
    assert (found.row, found.pad) == (128, 32)


@pytest.mark.parametrize("text", ["at| LDS R4, [R0.X4]", "at| LDS.128 R4, [R0.X16]", "at| LDS R4, [R9]"])
def test_what_takes_its_fewest_turns_has_no_conflict(text: str) -> None:
    assert _conflict(THREAD + text) is None


def test_a_table_that_the_data_index_has_none_that_could_be_cured() -> None:
    assert _conflict(f"{THREAD}LDG.E R2, [R0.64]\nat| LDS R4, [R2.X4]") is Lie.BY_DATA


def test_the_shared_side_of_an_asynchronous_copy_is_its_first_address() -> None:
    text = f"{THREAD}SHF.L.U32 R2, R0, 0x7, RZ\nat| LDGSTS.E [R2], [R8.64]"
    found = _conflict(text)
    assert isinstance(found, Conflict)
    assert found.turns == 32


@pytest.mark.parametrize(
    ("between", "fed"),
    [("", True), ("MOVM.16.MT88 R4, R4\n", True), ("HADD2 R4, R4, R5\n", False)],
)
def test_fragments_come_as_they_are(between: str, fed: bool) -> None:
    text = f"at| LDG.E R4, [R8.64]\n{between}HMMA.1688.F32 R12, R4, R6, R12"
    function, index, _ = _access(text, FLAT, "sm_86")
    assert feeds_tensor_cores(function, index) is fed


@pytest.mark.parametrize(
    ("setting", "shape"),
    [
        # 6 as the FP16 pipe sets it: three values of two bytes for each thread.
        ("HFMA2.MMA R3, -RZ, RZ, 0, 3.5762786865234375e-07", AccessShape(Lie.APART, 6)),
        ("HFMA2.MMA R3, -RZ, RZ, 0, 2.384185791015625e-07", AccessShape(Lie.NEIGHBOURS, 4)),
        # What an instruction that nobody follows makes of constants is no length of a row.
        ("BREV R3, 0x20000000", AccessShape(Lie.UNKNOWN)),
        ("MOV R3, c[0x0][0x170]\nBREV R3, R3", AccessShape(Lie.ROWS, 3 * 4096)),
    ],
)
def test_constants_are_no_arguments(setting: str, shape: AccessShape) -> None:
    """As pixels of 6 bytes side by side, of which the threads were told to be in different rows."""
    text = f"{THREAD}{setting}\nIMAD.WIDE R2, R0, R3, R8\nat| LDG.E R4, [R2.64]"
    assert _shape(text) == shape


@pytest.mark.parametrize(
    ("block", "along_x", "along_y"),
    [((32, 8, 1), 4, 32), ((8, 32, 1), 4, 8), ((2, 128, 1), 16, 4), ((4, 4, 1), 4, 4), ((1, 256, 1), 32, 4)],
)
def test_sectors_go_by_the_shape_of_the_block(
    block: tuple[int, int, int], along_x: int, along_y: int
) -> None:
    """Rows of 16 KiB, of which threads take neighbouring values along x or along y."""
    for row, column, wanted in (("R1", "R0", along_x), ("R0", "R1", along_y)):
        address = f"IMAD R2, {row}, c[0x0][0x170], {column}\nIMAD.WIDE R2, R2, 0x4, R8"
        function, index, launch = _access(f"{ROW_AND_COLUMN}{address}\nat| LDG.E R4, [R2.64]", block, "sm_86")
        found = sectors_of_a_warp(function, index, code_form("sm_86"), launch)
        assert found == (wanted, 2 if block == (4, 4, 1) else 4)
