# SPDX-License-Identifier: Apache-2.0
"""What scattered accesses cost by the loads of units, without a sample: worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import context_of, listing
from tests.unit.estimators.test_passes import BANKS, PCT, ROWS

from gpadvisor.model.advice import Estimate, Match
from gpadvisor.rules.memory_transaction_reduction import OPTIMIZER

STORES = """
    S2R R0, SR_TID.X
    MOV R7, 0x4
    IMAD.WIDE R4, R0, R7, c[0x0][0x160]
    LDG.E R2, [R4.64] // 5
    IMAD R6, R0, c[0x0][0x170], RZ
    IMAD.WIDE R8, R6, R7, c[0x0][0x168]
    STG.E [R8.64], R2 // 6
    EXIT"""
"""A copy whose rows are columns of what it writes: 4 sectors are read, 32 written where 4 would do."""


def _estimate(text: str, **metrics: float) -> Estimate:
    names = {
        name if "." in name or name.startswith("device") else f"{name}{PCT}": value
        for name, value in metrics.items()
    }
    context = replace(context_of(listing(text), [], metrics=names), blame=None)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert not found.regions
    return OPTIMIZER.estimate(context, found)


def test_what_l1_takes_its_requests_for_limits_next() -> None:
    """16 lanes: a request in two cycles, so 12 % are 0.06 for each cycle, with 0.99 passes: 16.5 for each.

    One is needed: the data stage then takes 6 %, its requests 12 % as before, and 1 % no unit fills.
    """
    found = _estimate(
        ROWS, l1tex__throughput=99, l1tex__data_pipe_lsu_wavefronts=99, l1tex__lsuin_requests=12
    )
    assert found.expected == pytest.approx(1 / (0.12 + 0.01), rel=1e-3)
    assert found.paper is None
    assert "needs samples" in found.equation
    assert "16.5 passes" in found.reason


def test_without_the_data_stage_l1_as_a_whole_is_as_full_as_its_requests() -> None:
    found = _estimate(ROWS, l1tex__throughput=99, l1tex__lsuin_requests=12)
    assert found.expected == pytest.approx(1 / (0.12 + 0.01), rel=1e-3)


def test_stores_write_every_sector_to_l2() -> None:
    """Of two requests one reads 4 sectors and one writes 32, 18 for each; 4 are needed, so 4/18 of L2 stays.

    At the low end half of the waste goes, at the high end the waits go as L2's load does.
    """
    found = _estimate(
        STORES,
        l1tex__throughput=45,
        l1tex__data_pipe_lsu_wavefronts=12,
        l1tex__lsuin_requests=3,
        l1tex__m_xbar2l1tex_read_sectors=1.5,  # 0.03 a cycle for 0.015 requests: 2 for each
        lts__throughput=90,
    )
    assert found.expected == pytest.approx(1 / (0.9 * 4 / 18 + 0.1), rel=0.01)
    assert found.low < 1 / (0.9 * 11 / 18 + 0.1) < found.expected < 18 / 4 < found.high


def test_what_l1_holds_is_not_read_from_l2_again() -> None:
    """Loads need 2 sectors of a request and read 1; with the 2 of stores 3 of the 17 moved stay."""
    found = _estimate(
        STORES,
        l1tex__throughput=45,
        l1tex__data_pipe_lsu_wavefronts=12,
        l1tex__lsuin_requests=3,
        l1tex__m_xbar2l1tex_read_sectors=0.75,
        lts__throughput=90,
    )
    assert found.expected == pytest.approx(1 / (0.9 * 3 / 17 + 0.1), rel=0.01)


def test_dram_moves_what_requests_need() -> None:
    """0.1 requests for each cycle need 4 sectors; DRAM gave twice as many, so half of its load can go."""
    clock, sms = 1e9, 80
    sectors = 2 * 4 * 0.1 * clock * sms
    found = _estimate(
        ROWS,
        l1tex__throughput=82,
        l1tex__data_pipe_lsu_wavefronts=82,
        l1tex__lsuin_requests=20,
        gpu__dram_throughput=80,
        **{
            "device__attribute_max_mem_frequency_khz": sectors * 32 / 0.8 / 2e3 / 48,
            "device__attribute_fb_bus_width": 384,
            "sm__cycles_elapsed.avg.per_second": clock,
        },
    )
    assert found.expected == pytest.approx(1 / (0.4 + 0.18), rel=0.01)


def test_conflicts_on_banks_may_have_delayed_nobody() -> None:
    found = _estimate(
        BANKS, l1tex__throughput=97, l1tex__data_pipe_lsu_wavefronts=97, l1tex__lsuin_requests=48
    )
    assert found.low < 1 < found.expected
    assert found.expected == pytest.approx(1 / (0.48 + 0.03), rel=0.01)
