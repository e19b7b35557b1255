# SPDX-License-Identifier: Apache-2.0
"""Addresses of functions that are called: whether what the caller loaded for each thread chooses them."""

from __future__ import annotations

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.callers import is_chosen_by_callers_data, is_searched
from gpadvisor.model.advice import Match
from gpadvisor.rules.memory_transaction_reduction import OPTIMIZER

THREAD = "S2R R0, SR_TID.X\nIMAD.WIDE R8, R0, 0x4, R6\n"
LOADED = "LDG.E R4, [R8.64]\n"
LOOKUP = (
    "F2I.TRUNC.NTZ R2, R4\nIMAD.WIDE R2, R2, 0x10, R6\nat| LDG.E.128 R12, [R2.64] // 9\nRET.REL.NODEC R20"
)
THROUGH = ".function middle device\nIADD3 R4, R4, 0x1, RZ\nCALL.REL.NOINC lookup\nRET.REL.NODEC R20\n"


def _context(kernel: str, *, through: bool = False) -> KernelContext:
    text = f".function kernel\n{THREAD}{kernel}CALL.REL.NOINC {'middle' if through else 'lookup'}\nEXIT\n"
    text += f"{THROUGH if through else ''}.function lookup device\n{LOOKUP}\n"
    return context_of(
        listing(text),
        [Row("lg_throttle", "at", 500, 500), Row("selected", "at", 100)],
        counts={"at": (1000, 32000)},
        pc_metrics={
            "memory_l2_theoretical_sectors_global": {"at": 32000.0},
            "memory_l2_theoretical_sectors_global_ideal": {"at": 16000.0},
        },
    )


@pytest.mark.parametrize(
    ("kernel", "through", "chosen"),
    [
        (LOADED, False, True),
        (LOADED, True, True),
        ("MOV R4, R0\n", False, False),  # the thread's number
        ("MOV R4, c[0x0][0x170]\n", True, False),
        ("LDG.E R4, [R6.64]\n", False, False),  # one value for all threads
    ],
)
def test_what_each_thread_loaded_is_followed_into_calls(kernel: str, through: bool, chosen: bool) -> None:
    context = _context(kernel, through=through)
    lookup = context.program.functions[-1]
    assert context.profile is not None
    assert is_chosen_by_callers_data(context.program, lookup, 2, context.profile.launch) is chosen


def test_no_order_of_threads_is_advised_where_data_choose_the_address_of_a_called_function() -> None:
    """As tables that particles look up by their energy: sorting alone brings neighbours together."""
    assert not getattr(OPTIMIZER.match(_context(LOADED)), "cure", "")
    found = OPTIMIZER.match(_context("MOV R4, R0\n"))
    assert isinstance(found, Match)
    assert "neighbouring threads" in found.cure


@pytest.mark.parametrize(("compared", "searched"), [("R12", True), ("R10", False)])
def test_where_a_search_goes_next_its_last_load_decides(compared: str, searched: bool) -> None:
    """As in a binary search: a comparison with what was found moves one end."""
    text = (
        "again:\nIMAD.WIDE R2, R5, 0x4, R6\nat| LDG.E R12, [R2.64] // 9\n"
        f"FSETP.GT.AND P0, PT, R11, {compared}, PT\n@P0 IADD3 R5, R5, R8, RZ\n@P1 BRA again\nEXIT"
    )
    code = listing(text)
    assert is_searched(code.program.functions[0], code.tags["at"][1]) is searched


def test_a_merge_of_sorted_lists_is_no_search() -> None:
    """As an intersection of two rows: each pass goes on by one in the list with the smaller element."""
    text = (
        "again:\nSHF.R.S32.HI R9, RZ, 0x1f, R5\nLEA R2, P2, R5, c[0x0][0x160], 0x2\n"
        "LEA.HI.X R3, R5, c[0x0][0x164], R9, 0x2, P2\nat| LDG.E R12, [R2.64] // 9\n"
        "ISETP.GT.AND P0, PT, R11, R12, PT\n@P0 IADD3 R5, R5, {step}, RZ\n@P1 BRA again\nEXIT"
    )
    for step, searched in (("0x1", False), ("R8", True)):
        code = listing(text.format(step=step))
        assert is_searched(code.program.functions[0], code.tags["at"][1]) is searched


def test_what_is_searched_for_is_to_be_sorted() -> None:
    """Queries of four binary searches, sorted, gave 3.2x to 4.0x on an H100."""
    text = (
        "again:\nIMAD.WIDE R2, R5, 0x4, R6\nat| LDG.E R12, [R2.64] // 9\n"
        "FSETP.GT.AND P0, PT, R11, R12, PT\n@P0 IADD3 R5, R5, R8, RZ\n@P1 BRA again\nEXIT"
    )
    rows = [Row("lg_throttle", "at", 500, 500), Row("selected", "at", 100)]
    name = "memory_l2_theoretical_sectors_global"
    sectors = {name: {"at": 32000.0}, f"{name}_ideal": {"at": 4000.0}}
    found = OPTIMIZER.match(context_of(listing(text), rows, counts={"at": (1000, 32000)}, pc_metrics=sectors))
    assert isinstance(found, Match)
    assert found.cure.startswith("sort what the threads look for")
