# SPDX-License-Identifier: Apache-2.0
"""Work in front of a barrier that few warps do: how few, and which of several pieces."""

from __future__ import annotations

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.uneven_work import uneven_work

TEXT = """
    first| FADD R1, R1, R2 // 4
    @P0 BRA other
    few| FMUL R2, R2, R3 // 5
    BRA join
    other:
    @P1 BRA join
    long| FMUL R2, R2, R3 // 7
    longer| FMUL R2, R2, R3 // 7
    join:
    wait| BAR.SYNC 0x0 // 9
    EXIT
"""


def _told(few: int, long: int = 1000, at_barrier: int = 1000) -> str:
    warps = {"first": 1000, "few": few, "long": long, "longer": long, "wait": at_barrier}
    context = context_of(listing(TEXT), [], counts={tag: (count, 32 * count) for tag, count in warps.items()})
    (function,) = context.program.functions
    (barrier,) = [index for index, one in enumerate(function.instructions) if one.opcode == "BAR"]
    return uneven_work(context, (function,), {(function.id, barrier)})[0]


@pytest.mark.parametrize(
    ("warps", "told"),
    [
        (10, False),  # one in a hundred: with the whole wait gone that would be 1.01x
        (11, True),
        (499, True),
        (500, False),  # half of them are not few
    ],
)
def test_few_are_more_than_a_hundredth_and_fewer_than_half(warps: int, told: bool) -> None:
    assert ("kernel.cu:5" in _told(warps)) is told


def test_the_piece_with_most_work_is_told() -> None:
    """Fifty warps run two instructions: as much as a hundred do with one."""
    assert _told(99, 50).startswith("Only 5.0 % of the warps at the barrier run \x02kernel.cu:7")
    assert _told(101, 50).startswith("Only 10.1 % of the warps at the barrier run \x02kernel.cu:5")


def test_a_barrier_that_no_warp_reaches_says_nothing() -> None:
    assert not _told(100, at_barrier=0)
