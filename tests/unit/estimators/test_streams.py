# SPDX-License-Identifier: Apache-2.0
"""Code whose arithmetic DRAM hides: each thread has elements of its own, which come slower than it issues."""

from __future__ import annotations

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.streams import paced_by_memory

LOADS = (
    "IMAD.WIDE R2, R0, R9, c[0x0][0x160]\nLDG.E R6, [R2.64]\n"
    "IMAD.WIDE R4, R0, R9, c[0x0][0x168]\nLDG.E R7, [R4.64]\n"
)
WORK = "FFMA R8, R6, R7, R8\n"
STORE = "STG.E [R10.64], R8\n"
BY_GRID = "IMAD R0, R15, c[0x0][0xc], R0\n"
BY_BLOCK = "IADD3 R0, R0, c[0x0][0x0], RZ\n"
BY_ONE = "IADD3 R0, R0, 0x1, RZ\n"


def _loop(work: int = 4, step: str = BY_GRID, more: str = "") -> str:
    test = "ISETP.GE.U32.AND P0, PT, R0, c[0x0][0x178], PT\n@!P0 BRA again\n"
    return f"again:\n{LOADS}{WORK * work}{more}{STORE}{step}{test}EXIT"


@pytest.mark.parametrize(
    ("text", "arch", "paced"),
    [
        (_loop(), "sm_86", True),
        (_loop(step=BY_BLOCK), "sm_86", True),
        (_loop(step=BY_ONE), "sm_86", False),
        (_loop(work=400), "sm_86", False),
        (_loop(work=160), "sm_86", True),
        (_loop(work=160), "sm_90", False),
        (_loop(more="DFMA R20, R20, R22, R24\n" * 6), "sm_86", False),
        (_loop(more="DFMA R20, R20, R22, R24\n" * 6), "sm_80", True),
        (_loop(more="MUFU.EX2 R9, R8\n" * 30), "sm_86", False),
        (_loop(more="BAR.SYNC 0x0\n"), "sm_86", False),
        (_loop(more="RED.E.ADD.F32 [R10.64], R8\n"), "sm_86", False),
        (f"{LOADS}{WORK}{STORE}EXIT", "sm_86", True),
        (f"{LOADS}{WORK * 400}{STORE}EXIT", "sm_86", False),
        (f"{WORK}EXIT", "sm_86", False),
    ],
)
def test_dram_sets_the_pace_of_a_few_instructions_for_each_element(text: str, arch: str, paced: bool) -> None:
    context = context_of(listing(text, arch))
    assert bool(paced_by_memory(context, context.program.functions)) is paced


def test_an_array_counts_once() -> None:
    """Its other elements are those of neighbours, as in a stencil, which L1 has."""
    stencil = "".join(f"LDG.E R{20 + at}, [R2.64+{4 * at:#x}]\n" for at in range(16))
    context = context_of(listing(_loop(work=400, more=stencil), "sm_86"))
    assert not paced_by_memory(context, context.program.functions)


def test_what_loaded_words_decide_is_no_stream() -> None:
    """As of faces of cells, whose neighbours a list names: they may be in a cache."""
    gather = "".join(
        f"IMAD.WIDE R{16 + at}, R6, R9, c[0x0][{0x180 + 8 * at:#x}]\nLDG.E R{40 + at}, [R{16 + at}.64]\n"
        for at in (0, 2, 4, 6)
    )
    context = context_of(listing(_loop(work=400, more=gather), "sm_86"))
    assert not paced_by_memory(context, context.program.functions)
