# SPDX-License-Identifier: Apache-2.0
"""Which launches a kernel allows, as its machine code tells: each pattern as ptxas writes it."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.analyzer.thread_use import ThreadUse, thread_use

FLAT = """
    S2R R0, SR_CTAID.X
    S2R R10, SR_TID.X
    IMAD R0, R0, c[0x0][0x0], R10
    ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT
    @P0 EXIT
    MOV R7, 0x4
    IMAD.WIDE R2, R0, R7, c[0x0][0x160]
    load| LDG.E R9, [R2.64]
"""
END = "STG.E [R2.64], R9\nEXIT"


def _use(text: str, arch: str = "sm_86") -> ThreadUse:
    found = thread_use(listing(text, arch).program, "kernel")
    assert found.known
    return found


def test_one_thread_per_element_with_a_guard() -> None:
    use = _use(FLAT + END)
    assert (use.axes, use.flat, use.sized, use.guarded) == ("x", True, True, True)
    assert (use.grid_stride, use.tile, use.roles, use.teamwork, use.waits_for_blocks) == (None,) * 5


@pytest.mark.parametrize(
    ("arch", "block"), [("sm_90", "LDC R6, c[0x0][RZ]"), ("sm_120", "LDC R6, c[0x0][0x360]")]
)
def test_the_size_of_the_block_where_newer_chips_keep_it(arch: str, block: str) -> None:
    text = f"S2R R0, SR_TID.X\nS2UR UR4, SR_CTAID.X\n{block}\nIMAD R9, R6, UR4, R0\nSTG.E [R8.64], R9\nEXIT"
    use = _use(text, arch)
    assert (use.flat, use.sized) == (True, True)


def test_what_is_left_in_half_of_a_pair_is_nothing_that_is_read() -> None:
    """As ptxas leaves it: the number that is stored is loaded on the only way on which it counts."""
    text = FLAT.replace("R10", "R13").replace("load|", "@!P1 BRA after\nLDG.E.64 R12, [R2.64]\nafter:\nload|")
    use = _use(text + "DADD R14, R12, 1\n@P1 STG.E.64 [R2.64], R14\n" + END)
    assert (use.flat, use.roles) == (True, None)
    assert _use(text.replace("LDG.E.64 R12", "LDG.E R12") + "STG.E [R2.64], R13\n" + END).roles is not None


def test_two_to_the_power_of_a_threads_number_is_no_multiple_of_it() -> None:
    text = "S2R R10, SR_TID.X\nSHF.L.U32 R0, 0x1, R10, RZ\nSTG.E [R0.64], R9\nEXIT"
    assert _use(text).roles is not None


def test_a_loop_that_steps_by_the_grid() -> None:
    stride = """
        MOV R8, c[0x0][0x0]
        IMAD R8, R8, c[0x0][0xc], RZ
    again:
        MOV R7, 0x4
        IMAD.WIDE R2, R0, R7, c[0x0][0x160]
        STG.E [R2.64], R9
        step| IADD3 R0, R0, R8, RZ
        ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT
        @!P0 BRA again
        EXIT
    """
    use = _use(FLAT + stride)
    assert use.grid_stride is not None
    assert use.flat
    assert use.block_stride is None
    # The same loop by the block's own threads says nothing about the number of blocks.
    own = _use(FLAT + stride.replace("R8, R8, c[0x0][0xc], RZ", "R8, R8, 0x1, RZ"))
    assert own.grid_stride is None
    assert own.block_stride is not None
    # A sum of floats is no counter, whatever it adds.
    floats = stride.replace("again:", "I2F R8, R8\n    again:").replace(
        "IADD3 R0, R0, R8, RZ", "FADD R0, R8, R0"
    )
    assert _use(FLAT + floats).grid_stride is None
    one = _use(FLAT + stride.replace("IMAD R8, R8, c[0x0][0xc], RZ", "MOV R8, 0x1"))
    assert one.block_stride is None


def test_blocks_of_two_dimensions_may_be_numbered_along_one() -> None:
    row = "S2R R1, SR_CTAID.Y\nS2R R0, SR_CTAID.X\n"
    start = FLAT.index("S2R R10")
    use = _use(f"{row}IMAD R0, R1, c[0x0][0xc], R0\n{FLAT[start:]}{END}")
    assert (use.flat, use.roles, use.guarded) == (True, None, True)
    # By the grid's other size two blocks may be the same, and columns of blocks are no numbering.
    assert _use(f"{row}IMAD R0, R1, c[0x0][0x10], R0\n{FLAT[start:]}{END}").roles is not None
    assert _use(f"{row}IMAD R0, R0, c[0x0][0xc], R1\n{FLAT[start:]}{END}").roles is not None


def test_shared_memory_addressed_by_the_thread_is_a_tile() -> None:
    tile = "SHF.L.U32 R5, R10, 0x2, RZ\nplace| STS [R5], R9\nBAR.SYNC.DEFER_BLOCKING 0x0\n"
    code = listing(FLAT + tile + END)
    use = thread_use(code.program, "kernel")
    assert use.tile == code.tags["place"]
    # A table that data point into is none.
    assert _use(FLAT + "SHF.L.U32 R5, R9, 0x2, RZ\nLDS R9, [R5]\n" + END).tile is None


_TREE = f"""{FLAT}
    SHF.L.U32 R11, R10, 0x2, RZ
    STS [R11], R9
    BAR.SYNC.DEFER_BLOCKING 0x0
    MOV R12, c[0x0][0x0]
    SHF.R.U32.HI R12, RZ, 0x1, R12
again:
    ISETP.GE.AND P0, PT, R10, R12, PT
    LEA R13, R12, R11, 0x2
    @!P0 LDS R14, [R13]
    @!P0 LDS R15, [R11]
    @!P0 FADD R14, R14, R15
    @!P0 STS [R11], R14
    BAR.SYNC.DEFER_BLOCKING 0x0
    SHF.R.U32.HI R12, RZ, 0x1, R12
    ISETP.NE.AND P1, PT, R12, RZ, PT
    @P1 BRA again
    ISETP.NE.AND P0, PT, R10, RZ, PT
    @P0 EXIT
    S2R R16, SR_CTAID.X
    LDS R9, [RZ]
    IMAD.WIDE R18, R16, R7, c[0x0][0x168]
    STG.E [R18.64], R9
    EXIT
"""


def test_a_sum_over_the_block_is_one_over_a_smaller_block_too() -> None:
    use = _use(_TREE)
    assert use.sums
    assert (use.flat, use.tile is None, use.roles is None) == (False, False, False)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("ISETP.GE.AND P0, PT, R10, R12, PT", "ISETP.GE.AND P0, PT, R10, 0x20, PT"),  # a level of a set size
        ("ISETP.GE.AND P0, PT, R10, R12, PT", "ISETP.GE.AND P0, PT, R10, c[0x0][0x174], PT"),
        ("LDS R15, [R11]", "LDS R15, [R11+0x4]"),  # a neighbour
        ("LDS R15, [R11]", "MOV R17, 0x40\nLDS R15, [R17]"),  # another thread's
        ("ISETP.GE.AND P0, PT, R10, R12, PT", "ISETP.GE.AND P0, PT, R10, RZ, PT"),  # no levels
        ("MOV R12, c[0x0][0x0]", "MOV R12, c[0x0][0x174]"),  # by an argument
        ("LDS R9, [RZ]", "IMAD.WIDE R20, R16, R7, c[0x0][0x160]\nLDG.E R9, [R20.64]"),  # by the block alone
        ("LDS R9, [RZ]", "IMAD.WIDE R20, R10, R7, c[0x0][0x160]\nLDG.E R9, [R20.64]"),  # by the thread alone
    ],
)
def test_what_goes_by_a_set_number_of_threads_is_no_sum(part: str, other: str) -> None:
    assert part in _TREE
    assert not _use(_TREE.replace(part, other)).sums


@pytest.mark.parametrize(
    ("sum_of_both", "size"),
    [
        ("LEA R0, R0, R10, 0x8", 256),
        ("IMAD R0, R0, 0x60, R10", 96),
        ("SHF.L.U32 R0, R0, 0x9, RZ\nLOP3.LUT R0, R0, R10, RZ, 0xfc, !PT", 512),
        ("IMAD.SHL.U32 R0, R0, 0x20, RZ\nIADD3 R0, R0, R10, RZ", 32),
    ],
)
def test_a_size_that_is_compiled_in(sum_of_both: str, size: int) -> None:
    use = _use(FLAT.replace("IMAD R0, R0, c[0x0][0x0], R10", sum_of_both) + END)
    assert (use.sized, use.sizes, use.flat, use.roles, use.guarded) == (
        False,
        {("x", size)},
        True,
        None,
        True,
    )


@pytest.mark.parametrize(
    "sum_of_both", ["LEA R0, R10, R0, 0x6", "SHF.L.U32 R10, R10, 0x6, RZ\nIADD3 R0, R0, R10, RZ"]
)
def test_threads_that_are_a_column_apart_have_no_place_in_the_grid(sum_of_both: str) -> None:
    use = _use(FLAT.replace("IMAD R0, R0, c[0x0][0x0], R10", sum_of_both) + END)
    assert use.sizes == frozenset()
    assert use.roles is not None


def test_a_block_for_each_row() -> None:
    row = """
        S2R R0, SR_CTAID.X
        S2R R3, SR_TID.X
        MOV R6, c[0x0][0x0]
        IMAD R0, R0, c[0x0][0x170], R3
        MOV R7, 0x4
        IMAD.WIDE R2, R0, R7, c[0x0][0x160]
        STG.E [R2.64], R6
        EXIT
    """
    use = _use(row)
    assert use.sized
    assert use.roles is not None  # the thread's number is that of the column


def test_sums_that_the_compiler_has_turned_around() -> None:
    # (row * width + threadIdx) + blockIdx * 1024, as ptxas writes an index that is used in a loop.
    turned = """
        S2R R0, SR_CTAID.X
        S2R R10, SR_TID.X
        IMAD R5, R9, c[0x0][0x170], R10
        LEA R6, R0, R5, 0xa
        IMAD.WIDE R2, R6, R7, c[0x0][0x160]
        STG.E [R2.64], R9
        EXIT
    """
    use = _use(turned)
    assert (use.sizes, use.roles, use.flat) == ({("x", 1024)}, None, True)


def test_a_result_for_each_block() -> None:
    each = FLAT + "S2R R12, SR_CTAID.X\nIMAD.WIDE R4, R12, R7, c[0x0][0x168]\nSTG.E [R4.64], R9\nEXIT"
    assert not _use(each).flat


def test_threads_with_a_part_of_their_own() -> None:
    alone = FLAT + "ISETP.NE.AND P1, PT, R10, RZ, PT\n@P1 EXIT\n" + END
    assert _use(alone).roles is not None
    # The number of a lane is the same in every block of whole warps.
    lane = alone.replace(
        "ISETP.NE.AND P1, PT, R10", "LOP3.LUT R11, R10, 0x1f, RZ, 0xc0, !PT\nISETP.NE.AND P1, PT, R11"
    )
    assert _use(lane).roles is None


def test_blocks_that_wait_for_one_another() -> None:
    spin = "again:\nspin| LDG.E.STRONG.GPU R8, [R2.64]\nISETP.NE.AND P1, PT, R8, RZ, PT\n@!P1 BRA again\n"
    code = listing(FLAT + spin + END)
    assert thread_use(code.program, "kernel").waits_for_blocks == code.tags["spin"]
    # A loop that adds to memory until it succeeds waits for nobody in particular.
    retry = spin.replace("ISETP", "ATOMG.E.CAS.STRONG.GPU PT, R8, [R2.64], R8, R9\nISETP")
    assert _use(FLAT + retry + END).waits_for_blocks is None
    assert _use(FLAT.replace("LDG.E ", "LDG.E.SYS ") + END, "sm_75").waits_for_blocks is None


@pytest.mark.parametrize(
    "text", ["BAR.SYNC.DEFER_BLOCKING 0x1, 0x80", "HMMA.16816.F32 R4, R8, R12, R4", "BAR.ARV 0x2, 0x40"]
)
def test_warps_with_set_parts(text: str) -> None:
    assert _use(f"{FLAT}{text}\n{END}").teamwork is not None
    assert _use(f"{FLAT}BAR.SYNC.DEFER_BLOCKING 0x0\n{END}").teamwork is None


def test_clusters() -> None:
    assert _use(f"{FLAT}UCGABAR_ARV\nUCGABAR_WAIT\n{END}", "sm_90").cluster is not None


def test_what_is_called_counts_too_and_a_callers_values_are_not_known() -> None:
    called = (
        FLAT
        + "CALL.REL.NOINC lookup\n"
        + END
        + "\n.function lookup device\nplace| STS [R5], R9\nRET.REL.NODEC R20 0x0"
    )
    code = listing(called)
    assert thread_use(code.program, "kernel").tile == code.tags["place"]
    pointer = listing(FLAT + "CALL.REL.NOINC nowhere\n" + END)
    assert not thread_use(pointer.program, "kernel").known


def test_a_kernel_that_is_not_there() -> None:
    assert not thread_use(listing(FLAT + END).program, "other").known
