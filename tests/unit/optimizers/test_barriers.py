# SPDX-License-Identifier: Apache-2.0
"""Barriers that protect nothing, and barriers at the levels of a tree."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.blamer.barriers import redundant_barriers, tree_barriers

EITHER_WAY = """STS [R9], R0
BAR.SYNC 0x0
@P0 BRA other
{left}
BRA join
other:
FADD R1, R1, R2
join:
BAR.SYNC 0x0
LDS R4, [R9]
EXIT"""

LOOP = """STS [R9], R0
again:
{first}
BAR.SYNC 0x0
IADD3 R3, R3, -0x1, RZ
ISETP.NE.AND P0, PT, R3, RZ, PT
@P0 BRA again
EXIT"""

TREE = """again:
ISETP.GE.U32.AND P0, PT, R4, R9, PT
@P0 BRA skip
LDS R7, [R5]
STS [R4], R7
skip:
BAR.SYNC 0x0
ISETP.GT.U32.AND P1, PT, R9, 0x1, PT
{step}
@P1 BRA again
EXIT"""


def _level(bound: int) -> str:
    return (
        f"ISETP.GT.AND P0, PT, R0, 0x{bound - 1:x}, PT\n@!P0 LDS R7, [R5]\n@!P0 STS [R4], R7\nBAR.SYNC 0x0\n"
    )


@pytest.mark.parametrize(
    ("text", "redundant"),
    [
        (EITHER_WAY.format(left="FMUL R1, R1, R2"), [6]),
        (EITHER_WAY.format(left="STS [R10], R1"), []),  # one path writes
        (EITHER_WAY.format(left="LDG.E R1, [R2.64]"), []),
        (EITHER_WAY.format(left="MEMBAR.SC.GPU"), []),
        (LOOP.format(first="FADD R1, R1, R2"), []),  # the first pass follows a store
        (LOOP.format(first="BAR.SYNC 0x0"), [2]),  # the second one, on every pass
        ("BAR.SYNC 0x0\nBAR.SYNC 0x1\nEXIT", []),  # another barrier
        ("BAR.SYNC 0x0\nBAR.RED.POPC.DEFER_BLOCKING 0x0, P0\nEXIT", []),
        ("BAR.SYNC 0x0\nEXIT", []),
        ("LDS R4, [R9]\n@!P0 BAR.SYNC 0x0\n@!P0 BRA away\nBAR.SYNC 0x0\naway:\nEXIT", []),  # one or the other
        ("BAR.SYNC 0x0\n@!P0 BAR.SYNC 0x0\nBAR.SYNC 0x0\nEXIT", [1, 2]),
    ],
)
def test_barriers_that_protect_nothing(text: str, redundant: list[int]) -> None:
    (function,) = listing(text).program.functions
    assert list(redundant_barriers(function)) == redundant


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (TREE.format(step="SHF.R.U32.HI R9, RZ, 0x1, R9"), 1),
        (TREE.format(step="IMAD.SHL.U32 R9, R9, 0x2, RZ"), 1),
        (TREE.format(step="IADD3 R9, R9, -0x1, RZ"), 0),  # a loop over tiles
        (TREE.format(step="SHF.R.U32.HI R9, RZ, 0x1, R9").replace("STS [R4], R7", "FADD R7, R7, R7"), 0),
        ("".join(_level(bound) for bound in (128, 64, 32, 16, 8)) + "EXIT", 3),
        ("".join(_level(bound) for bound in (128, 64)) + "EXIT", 0),
        ("".join(_level(bound) for bound in (16, 16, 16, 16)) + "EXIT", 0),
        ("".join(_level(bound) for bound in (1024, 256, 32, 16)) + "EXIT", 0),  # bounds of other things
        ("".join(_level(bound) for bound in (128, 64, 32)).replace(".GT.", ".GE.") + "EXIT", 0),
    ],
)
def test_trees_over_the_whole_block(text: str, levels: int) -> None:
    (function,) = listing(text).program.functions
    assert len(tree_barriers(function)) == levels
