# SPDX-License-Identifier: Apache-2.0
"""Accesses that counters and machine code prove to take many passes of L1, without a sample."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.passes import passes
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import memory_transaction_reduction, thread_increase

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
ATOMIC = ROWS.replace("FADD R8, R2, R8", "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R10.64], R2")
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
    assert found.counted  # what stands before estimates that nothing counted
    assert found.title == (
        "global accesses of a warp are scattered over too many sectors: "
        "L1 takes 11.6 passes for a request of a warp, 1.0 are needed"
    )
    assert "(a warp or a block for each row, of short" in found.cure  # there is no second index to swap
    assert "L1 takes 11.6 passes" in found.advice
    assert [site.detail for site in found.static_sites] == ["LDG"]
    assert not found.regions  # no sample, no figure


def test_swapped_indices_are_not_proposed_beside_what_could_not_be_followed() -> None:
    found = _match(UNKNOWN)
    assert isinstance(found, Match)
    assert found.cure.startswith("fill tiles in shared memory with whole rows")


def test_banks_that_threads_share() -> None:
    found = _match(BANKS)
    assert isinstance(found, Match)
    assert found.title.startswith("shared memory accesses conflict on banks: L1 takes")
    assert "pad each row of 128 bytes" in found.cure


def test_rows_whose_length_an_argument_decides() -> None:
    """As ``cache[threadIdx.x * (end - begin) + k]``: two arguments are not one, nor their difference none."""
    text = BANKS.replace(
        "SHF.L.U32 R5, R3, 0x7, RZ",
        "MOV R6, c[0x0][0x178]\nIADD3 R6, -R6, c[0x0][0x17c], RZ\n"
        "IMAD R5, R3, R6, RZ\nSHF.L.U32 R5, R5, 0x3, RZ",
    )
    found = _match(text)
    assert isinstance(found, Match)
    assert "neighbouring threads are in different rows" in found.cure
    assert "131072" not in found.cure


def test_wide_accesses_conflict_below_a_full_l1() -> None:
    """As a product of matrices at 69 % of L1 with requests at 35 %: 16 bytes of each thread, 32 apart."""
    text = BANKS.replace("SHF.L.U32 R5, R3, 0x7, RZ", "SHF.L.U32 R5, R3, 0x5, RZ").replace(
        "LDS R2, [R5]", "LDS.128 R12, [R5]"
    )
    found = _match(text, full=69.0, requests=17.0)
    assert isinstance(found, Match)
    assert "let neighbouring threads take neighbouring elements of 16 bytes" in found.cure
    assert "L1 takes 8.1 passes for a request of a warp, 4.0 are needed" in found.title


def test_a_tile_that_is_stored_by_columns() -> None:
    """As a transpose through shared memory that stores ``out[x * height + y]``, at 52 % of L2."""
    text = (
        _HEAD
        + """SHF.L.U32 R5, R3, 0x2, RZ
    STS [R5], R3 // 3
    LDS R8, [R5] // 4
    IMAD R4, R0, c[0x0][0x170], RZ
    MOV R7, 0x4
    IMAD.WIDE R4, R4, R7, c[0x0][0x160]
    STG.E [R4.64], R8 // 6
    EXIT"""
    )
    found = _match(text, full=45.0, requests=12.0)
    assert isinstance(found, Match)
    assert found.cure.startswith("read the tile in shared memory the other way around")
    assert [site.detail for site in found.static_sites] == ["STG"]


def test_another_launch_waits_for_better_accesses() -> None:
    found = thread_increase.OPTIMIZER.match(_context(ROWS))
    assert isinstance(found, Rejection)
    assert "passes of L1" in found.reason


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (SIDE_BY_SIDE, {}),  # no access that takes many passes
        (WIDE, {"requests": 25.0}),  # four passes are what 16 bytes of each thread take
        (ROWS, {"full": 39.0}),  # nothing is busy
        (ROWS, {"requests": 140.0}),  # a pass for half a request
        (ROWS, {"sm__pipe_alu_cycles_active": 99.5}),  # something else is busier
        (BANKS, {"full": 59.0, "requests": 8.0}),
        (ROWS, {"l1tex__m_l1tex2xbar_req_cycles_active": 90.0}),  # what misses fills it
        (ATOMIC, {}),  # or what atomic operations do
    ],
)
def test_what_counters_do_not_prove_is_not_told(text: str, more: dict[str, float]) -> None:
    assert passes(_context(text, **more)) is None
    found = _match(text, **more)
    assert isinstance(found, Rejection)
    assert not found.looked


STORES = (
    _HEAD
    + """IMAD.WIDE R4, R0, {distance:#x}, c[0x0][0x160]
    STG.E [R4.64], R2 // 4
    STG.E [R4.64+0x4], R3 // 5
    EXIT"""
)
STORED = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
WRITTEN = "lts__t_sectors_srcunit_tex_op_write.sum"
SPILLED = "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum"


@pytest.mark.parametrize(
    ("distance", "sectors", "spilled", "busy", "found"),
    [
        (48, 32.0, 0.0, {}, True),
        (48, 5.0, 0.0, {}, False),  # nobody counted many
        (4, 12.0, 0.0, {}, False),  # and the code shows nothing
        (48, 32.0, 9.0, {}, False),  # spills are stores, too
        (48, 32.0, 0.0, {"sm__pipe_fp64_cycles_active": 95.0}, False),
    ],
)
def test_stores_that_write_many_sectors(
    distance: int, sectors: float, spilled: float, busy: dict[str, float], *, found: bool
) -> None:
    counts = {STORED: 1000.0, WRITTEN: 1000.0 * sectors, SPILLED: spilled}
    metrics = counts | {f"{name}.avg.pct_of_peak_sustained_active": value for name, value in busy.items()}
    context = context_of(listing(STORES.format(distance=distance)), [], metrics=metrics)
    match = memory_transaction_reduction.OPTIMIZER.match(replace(context, blame=None))
    assert isinstance(match, Match) is found
    if isinstance(match, Match):
        assert "they are 48 bytes apart" in match.advice
        assert "a store of a warp writes 32 sectors, 4 are needed" in match.title
        assert [site.index for site in match.static_sites] == [4, 5]
