# SPDX-License-Identifier: Apache-2.0
"""What full warps and longer rows of another block take off the memory's units."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.block_shapes import BlockShape
from gpadvisor.estimators.counted_accesses import Sectors, behind_l1, in_dram
from gpadvisor.estimators.launches import shape
from gpadvisor.estimators.row_loads import is_along_y, reduced_by_rows
from gpadvisor.estimators.utilisation import DRAM, ISSUE, L1, L1_DATA, L1_REQUESTS, L1_TO_L2, L2
from gpadvisor.model.profile import KernelProfile

CODE = listing("get| LDG.E R2, [R4.64] // 3\nput| STG.E [R6.64], R2 // 4\nEXIT")
SECTORS = "memory_l2_theoretical_sectors_global"
Left = dict[str, tuple[float, float]]


def _left(old: tuple[int, int, int], new: tuple[int, int, int], lanes: float, **measured: Any) -> Left:
    context = context_of(CODE, [Row("selected", "get", 10)], **measured)
    assert context.profile is not None
    profile = replace(context.profile, launch=replace(context.profile.launch, block=old))
    held = shape(context, profile, 1000, new[0] * new[1] * new[2])
    assert held is not None
    found = reduced_by_rows(context, profile, BlockShape(block=new, grid=None, held=held), lanes)
    return {one.resource: (one.remaining, one.remaining_best) for one in found}


def test_full_warps_are_fewer_instructions_and_requests() -> None:
    left = _left((16, 1, 1), (32, 1, 1), 2.0)
    for unit in (ISSUE, L1_REQUESTS, "LSU pipe", "FP64 pipe"):
        assert left[unit] == (0.5, 0.5)
    assert left[L1] == left[L1_DATA] == (0.5, 0.5)  # a row of a warp each
    assert L2 not in left  # as many bytes
    assert _left((16, 1, 1), (32, 1, 1), 1.0) == {}


def test_longer_rows_take_fewer_passes_and_share_sectors() -> None:
    """Rows of 4 values, 8 in a warp, become one of 32: an eighth of the passes, and half of the sectors."""
    left = _left((4, 8, 1), (32, 8, 1), 2.0)
    assert left[L1] == pytest.approx((sqrt(1 / 16 * 1 / 2), 1 / 16))
    for unit in (L1_TO_L2, L2, DRAM):
        assert left[unit] == pytest.approx((sqrt(1 / 2), 1 / 2))
    assert left[ISSUE] == (0.5, 0.5)


def test_rows_of_a_few_threads_of_a_block() -> None:
    left = _left((16, 2, 2), (32, 2, 1), 2.0)  # two rows of a warp
    assert left[L1_DATA] == pytest.approx((sqrt(1 / 4 * 1 / 2), 1 / 4))
    assert L2 not in left  # rows of whole sectors
    shorter = _left((32, 2, 1), (8, 8, 1), 2.0)  # shorter rows are no worse here
    assert shorter[L1] == (0.5, 0.5)


def test_counted_passes_bound_what_rows_take_off() -> None:
    """A request took two passes as counted, not eight: no fewer than half of them go."""
    counted = {
        "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 40.0,
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 40.0,
        "l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed": 100.0,
    }
    plain, left = _left((4, 8, 1), (32, 8, 1), 2.0), _left((4, 8, 1), (32, 8, 1), 2.0, metrics=counted)
    assert left[L1][0] > plain[L1][0]
    assert left[L1][1] == min(plain[L1][1], left[L1][0])
    assert left[L2][0] <= plain[L2][0]


def _counted(lanes: float = 1.0, new: tuple[int, int, int] = (64, 4, 1), **metrics: float) -> Left:
    return _left(
        (16, 16, 1), new, lanes,
        counts={"get": (1000, 32_000), "put": (1000, 32_000)},
        pc_metrics={
            SECTORS: {"get": 12_000.0, "put": 8_000.0},
            f"{SECTORS}_ideal": {"get": 4000.0, "put": 4000.0},
        },
        metrics=metrics,
    )  # fmt: skip


def test_counted_sectors_fall_to_those_of_the_bytes_asked_for() -> None:
    left = _counted()
    assert left[L1_TO_L2] == left[L2] == (0.4, 0.4)
    assert left[DRAM] == (0.4, 0.4)
    assert ISSUE not in left  # as many warps
    assert left[L1][0] < 1


def test_what_l2_joined_already_dram_does_not_lose() -> None:
    moved = {"dram__sectors_read.sum": 6000.0, "dram__sectors_write.sum": 4000.0}
    assert _counted(**moved)[DRAM] == (0.8, 0.8)
    assert _counted(lanes=2.0, **moved)[DRAM] == (0.4, 0.4)  # full warps ask for less
    assert DRAM not in _counted(**{name: count / 2 for name, count in moved.items()})


def test_rows_that_get_no_longer_share_no_more() -> None:
    assert L2 not in _counted(new=(16, 1, 1))  # as long as now
    assert L2 in _counted(new=(17, 1, 1))
    assert L2 in _counted(new=(16, 8, 1))  # rows along threadIdx.y


@pytest.mark.parametrize(("block", "along"), [((16, 2, 1), True), ((32, 2, 1), False), ((16, 1, 1), False)])
def test_neighbours_differ_in_y_where_rows_of_several_are_shorter_than_a_warp(
    block: tuple[int, int, int], along: bool
) -> None:
    context = context_of(CODE, [])
    assert context.profile is not None
    held = shape(context, context.profile, 1000, 64)
    assert held is not None
    assert is_along_y(BlockShape(block=block, grid=None, held=held)) is along


# ---- what a counter says of sectors behind L1 ----

READS = "l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed"


def _profile(**metrics: float) -> KernelProfile:
    profile = context_of(CODE, [Row("selected", "get", 10)], metrics=metrics).profile
    assert profile is not None
    return profile


def test_of_sectors_behind_l1_those_stay_that_requests_need() -> None:
    assert behind_l1(_profile(), Sectors(4.0, 16.0, 4.0), 0.5) == pytest.approx(8 / 20)
    assert behind_l1(_profile(), Sectors(4.0, 0.0, 0.0), 0.5) == 1
    assert behind_l1(_profile(), Sectors(0.0, 0.0, 0.0), 0.5) == 1
    half = _profile(**{READS: 50.0})  # of two sectors a cycle, by half a request: two each
    assert behind_l1(half, Sectors(4.0, 8.0, 2.0), 0.5) == pytest.approx((2 + 2) / (2 + 8))
    assert behind_l1(half, Sectors(1.0, 0.0, 0.0), 0.125) == pytest.approx(1 / 8)
    assert behind_l1(half, Sectors(4.0, 8.0, 2.0), 0.0) == pytest.approx(6 / 12)  # nobody counted requests


def test_of_sectors_of_dram_those_stay_that_requests_need() -> None:
    """Half of 800 GB/s by 80 SMs at 1 GHz: 5 bytes a cycle of an SM, for 1/32 of a request."""
    measured = {
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": 50.0,
        "device__attribute_max_mem_frequency_khz": 12_500_000.0,  # kHz, twice a clock
        "device__attribute_fb_bus_width": 256.0,
        "sm__cycles_elapsed.avg.per_second": 1e9,
    }
    profile = _profile(**measured)
    sectors = Sectors(2.0, 9.0, 1.0)
    assert in_dram(profile, sectors, 1 / 32) == pytest.approx(3 / 5)
    assert in_dram(profile, sectors, 1 / 8) == 1  # no more than all
    for name in measured:
        assert (
            in_dram(
                _profile(**{other: one for other, one in measured.items() if other != name}), sectors, 1 / 32
            )
            == 1
        )
    assert in_dram(profile, sectors, 0.0) == 1
    assert in_dram(replace(profile, device=replace(profile.device, sms=None)), sectors, 1 / 32) == 1
