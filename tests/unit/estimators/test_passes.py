# SPDX-License-Identifier: Apache-2.0
"""Accesses that counters and machine code prove to take many passes of L1, without a sample."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.passes import passes
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import memory_transaction_reduction

PCT = ".avg.pct_of_peak_sustained_elapsed"
_HEAD = """
    S2R R0, SR_CTAID.X
    S2R R3, SR_TID.X
    IMAD R0, R0, c[0x0][0x0], R3
"""
ROWS = (
    _HEAD
    + """IMAD R4, R0, c[0x0][0x170], RZ
    MOV R7, 0x4
    IMAD.WIDE R4, R4, R7, c[0x0][0x160]
again:
    load| LDG.E R2, [R4.64] // 6
    IADD3 R4, R4, 0x4, RZ
    FADD R8, R2, R8 // 6
    ISETP.LT.AND P1, PT, R4, c[0x0][0x174], PT
    @P1 BRA again
    STG.E [R10.64], R8
    EXIT"""
)
SIDE_BY_SIDE = ROWS.replace("IMAD R4, R0, c[0x0][0x170], RZ", "MOV R4, R0")
WIDE = SIDE_BY_SIDE.replace("LDG.E R2", "LDG.E.128 R12").replace("MOV R7, 0x4", "MOV R7, 0x10")
ATOMIC = ROWS.replace("STG.E [R10.64], R8", "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R10.64], R8")
UNKNOWN = ROWS.replace(
    "FADD R8, R2, R8", "I2F R20, R3\nF2I R20, R20\nLDG.E R16, [R20.64] // 7\nFFMA R8, R2, R16, R8"
)
BANKS = (
    _HEAD
    + """SHF.L.U32 R5, R3, 0x7, RZ
again:
    LDS R2, [R5] // 4
    IADD3 R5, R5, 0x4, RZ
    FADD R8, R2, R8
    ISETP.LT.AND P1, PT, R5, c[0x0][0x174], PT
    @P1 BRA again
    EXIT"""
)


def _context(text: str, *, full: float = 99.0, requests: float = 17.0, **more: float) -> KernelContext:
    names = {"l1tex__throughput": full, "l1tex__lsuin_requests": requests, **more}
    metrics = {f"{name}{PCT}": value for name, value in names.items()}
    return replace(context_of(listing(text), [], metrics=metrics), blame=None)


def _match(text: str, **more: float) -> Match | Rejection:
    return memory_transaction_reduction.OPTIMIZER.match(_context(text, **more))


def test_a_full_l1_with_few_requests_is_scattered_accesses() -> None:
    """As a product of matrices with L1 at 99 % and requests at 17 %, of which nothing was told."""
    found = _match(ROWS)
    assert isinstance(found, Match)
    assert found.title == "global accesses of a warp are scattered over too many sectors"
    assert "threadIdx.x run along a row" in found.cure
    assert "L1 is at 99 % of its peak and requests at 17 %, so that each takes 6 passes" in found.advice
    assert [site.detail for site in found.static_sites] == ["LDG"]
    assert not found.regions  # no sample, no figure


def test_swapped_indices_are_not_proposed_beside_what_could_not_be_followed() -> None:
    found = _match(UNKNOWN)
    assert isinstance(found, Match)
    assert found.cure.startswith("fill tiles in shared memory with whole rows")


def test_banks_that_threads_share() -> None:
    found = _match(BANKS)
    assert isinstance(found, Match)
    assert found.title == "shared memory accesses conflict on banks"
    assert "pad each row of 128 bytes" in found.cure


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (SIDE_BY_SIDE, {}),  # no access that takes many passes
        (WIDE, {"requests": 25.0}),  # four passes are what 16 bytes of each thread take
        (ROWS, {"full": 70.0}),
        (ROWS, {"requests": 60.0}),
        (ROWS, {"l1tex__m_l1tex2xbar_req_cycles_active": 90.0}),  # what misses fills it
        (ATOMIC, {}),  # or what atomic operations do
    ],
)
def test_what_counters_do_not_prove_is_not_told(text: str, more: dict[str, float]) -> None:
    assert passes(_context(text, **more)) is None
    found = _match(text, **more)
    assert isinstance(found, Rejection)
    assert not found.looked
