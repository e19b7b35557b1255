# SPDX-License-Identifier: Apache-2.0
"""Accesses of a warp to rows of their own, where only the machine code is there."""

from __future__ import annotations

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.uncounted_accesses import uncounted_accesses
from gpadvisor.evidence.own_rows import width_of_blocks

TILE = """S2R R0, SR_CTAID.Y
S2R R3, SR_TID.X
S2R R2, SR_CTAID.X
S2R R5, SR_TID.Y
IMAD R0, R0, {side}, R3
IMAD R3, R2, {side}, R5
IMAD R0, R0, c[0x0][0x178], R3
MOV R5, 0x4
IMAD.WIDE R2, R0, R5, c[0x0][0x170]
LDG.E R2, [R2.64]
EXIT"""


@pytest.mark.parametrize(("side", "told"), [("0x4", False), ("0x10", True), ("c[0x0][0x0]", True)])
def test_a_tile_that_is_one_warp_has_the_same_sectors_either_way(side: str, told: bool) -> None:
    """As blocks of 4 x 4 pixels, of which the indices were told to be swapped."""
    sites, cure = uncounted_accesses(context_of(listing(TILE.format(side=side))))
    assert bool(sites) is told
    assert ("swap the indices" in cure) is told


@pytest.mark.parametrize(
    "in_loop", ["", "again:\nTEX.SCR.LL R8, R4, R6, 0x0, 0x58, 3D, 0x1\n@P1 BRA again\n"]
)
def test_a_result_that_is_stored_once_is_little_beside_a_loop_over_a_texture(in_loop: str) -> None:
    """As a ray through a volume, whose sum is stored to the detector column by column."""
    stored = f"{in_loop}STG.E [R2.64], R8"
    text = TILE.format(side="0x10").replace("LDG.E R2, [R2.64]", stored)
    sites, _ = uncounted_accesses(context_of(listing(text)))
    assert bool(sites) is not bool(in_loop)


ROW_EACH = """S2R R0, SR_TID.X
S2R R1, SR_TID.Y
IMAD R0, R1, {width}, R0
IMAD R2, R0, c[0x0][0x170], RZ
MOV R5, 0x20
IMAD.WIDE R2, R2, R5, c[0x0][0x160]
MOV R9, RZ
again:
LDG.E R4, [R2.64]
FADD R8, R8, R4
IADD3 R2, P1, R2, 0x20, RZ
IADD3.X R3, RZ, R3, RZ, P1, !PT
IADD3 R9, R9, 0x1, RZ
ISETP.GE.AND P0, PT, R9, c[0x0][0x170], PT
@!P0 BRA again
EXIT"""


def test_indices_are_not_swapped_where_neither_runs_along_the_row() -> None:
    """As the partial sums of superpixels: each has a row of them, whichever index is first."""
    sites, cure = uncounted_accesses(context_of(listing(ROW_EACH.format(width="c[0x0][0x178]"))))
    assert sites
    assert "a warp or a block for each row" in cure


@pytest.mark.parametrize(
    ("index", "width"),
    [
        ("LEA R2, R1, R0, 0x2", 4),
        ("IMAD R2, R1, 0x10, R0", 16),
        ("LEA R2, R0, R1, 0x2", None),  # threadIdx.x counts rows there
        ("IMAD R2, R1, c[0x0][0x0], R0", None),
    ],
)
def test_a_blocks_width_is_what_an_index_counts_its_threads_by(index: str, width: int | None) -> None:
    text = f"S2R R0, SR_TID.X\nS2R R1, SR_TID.Z\n{index}\nEXIT"
    assert width_of_blocks(listing(text).program.functions[0]) == width
