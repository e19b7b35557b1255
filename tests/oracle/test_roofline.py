# SPDX-License-Identifier: Apache-2.0
"""The roofline against reports: the report's own share of the issue peak, and numbers worked out by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from gpadvisor.errors import ProfileMismatchError
from gpadvisor.pipeline.analyse import Analysis, analyse_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.views.roofline.build import measured_roofline, roofline
from gpadvisor.views.roofline.device import dram_seen
from gpadvisor.views.roofline.model import LANES, Level, RegionKind, RegionPoint, Roofline, WallKind

pytestmark = [pytest.mark.reports, pytest.mark.nvdisasm]


def _reports() -> list[Path]:
    folder = os.environ.get("GPADVISOR_REPORTS")
    return sorted(Path(folder).glob("*.ncu-rep*")) if folder else []


@cache
def _analysis(path: Path) -> Analysis:
    request = Request(settings=Settings(), may_compile=False)
    return analyse_file(path, request, lambda _: None, Cache(None))


def _rooflines(path: Path, kind: RegionKind) -> Iterator[Roofline]:
    for kernel in _analysis(path).kernels:
        try:
            yield roofline(measured_roofline(kernel.context, kernel.demangled), kind)
        except ProfileMismatchError:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("path", _reports() or [Path("none")], ids=lambda path: path.stem)
def test_the_share_of_the_issue_peak_is_the_reports_own(path: Path) -> None:
    for found in _rooflines(path, RegionKind.LOOP):
        if found.issue_peak is not None and found.reported_use is not None:
            assert found.height / found.issue_peak.value == pytest.approx(found.reported_use, rel=1e-4)
        for kind in (RegionKind.LOOP, RegionKind.LINE):
            regions = next(one for one in _rooflines(path, kind) if one.kernel == found.kernel).regions
            _adds_up(found, [one for one in regions if one.depth <= 1])


def _adds_up(found: Roofline, parts: list[RegionPoint]) -> None:
    """All that was executed and sampled is in a region, and their heights by their time are the kernel's."""
    if not parts:
        return
    executed = sum(one.instructions for one in parts)
    assert executed == pytest.approx(found.instructions.value, rel=0.02)
    if any(one.share for one in parts):
        assert sum(one.share or 0 for one in parts) == pytest.approx(1)


@dataclass(frozen=True)
class Worked:
    """One kernel's numbers as they were worked out from its report."""

    report: str
    kernel: str
    gips: float
    issue: tuple[float, float]  # GIPS at the clock of the run and at the maximum clock
    lanes: tuple[float, float]
    transactions: tuple[float, float, float]  # sectors of global memory, of L2, of DRAM
    rates: tuple[float, float, float]  # GTXN/s of L1 by the paper's formula, of L2, of DRAM
    peaks: tuple[float, float]  # GB/s of L2 and of DRAM as counted
    per_sector: float  # global accesses
    nearest: tuple[str, float]
    mix: tuple[tuple[str, float], ...] = ()


A, B, C = "a100_selfjoin_susybin3.ncu-rep", "a40_julia_indexspaces.ncu-rep", "rtx3090_gemm_naive.ncu-rep"
WORKED = (
    Worked(
        A, "searchKernel", 173.588, (600.24, 609.12), (19.7904, 19.6298),
        (78.32e9, 15_755_014_564, 11_480_026_240), (25.66, 5.163, 3.762), (6809.5, 1621.2), 0.9552,
        ("FP64 pipe", 0.486),  # of the elapsed time, 56.2 % of the cycles in which an SM has warps
        (("FP64", 41.7), ("integer", 32.4), ("global memory", 14.2), ("control and synchronization", 11.7)),
    ),
    Worked(
        B, "julia__5", 76.383, (435.27, 584.64), (32, 30.1176), (8_257_536, 8_257_536, 9_491_372),
        (17.97, 17.97, 20.66), (1876.8, 690.8), 0.25, ("DRAM", 0.957),
    ),
    Worked(
        B, "julia_bb", 246.244, (437.83, 584.64), (32, 31.9502), (52_557_792, 52_556_785, 63_088_152),
        (99.10, 5.856, 7.030), (1886.7, 694.4), 0.06254, ("ALU pipe", 0.663),
        (("integer", 63.1), ("tensor", 23.9), ("shared memory", 9.5)),
    ),
    Worked(
        C, "gemm_non_coalesced", 26.601, (457.43, 555.96), (32, 31.9840),
        (1_109_389_463, 22_423_651, 572_548), (112.7, 2.277, 0.0581), (2096.3, 911.1), 0.06055,
        ("L1 tags", 0.985),
        (("integer", 58.1), ("global memory", 25.6), ("FP32", 12.8), ("control and synchronization", 3.3)),
    ),
    Worked(
        C, "gemm_coalesced", 217.954, (456.04, 555.96), (32, 31.9840), (168_034_304, 20_965_971, 569_184),
        (139.8, 17.45, 0.4737), (2095.3, 910.7), 0.3998, ("LSU pipe", 0.982),
    ),
)  # fmt: skip


def _found(report: str, kernel: str, kind: RegionKind = RegionKind.LOOP) -> Roofline:
    path = Path(os.environ["GPADVISOR_REPORTS"]) / report
    if not path.is_file():
        pytest.skip(f"GPADVISOR_REPORTS has no {report}")
    return next(one for one in _rooflines(path, kind) if kernel in one.kernel)


@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.kernel)
def test_a_kernel_has_the_numbers_worked_out_for_it(worked: Worked) -> None:
    found = _found(worked.report, worked.kernel)
    assert found.height / 1e9 == pytest.approx(worked.gips, rel=2e-5)
    assert found.issue_peak is not None
    assert found.issue_peak_maximum is not None
    peaks = (found.issue_peak.value / 1e9, found.issue_peak_maximum.value / 1e9)
    assert peaks == pytest.approx(worked.issue, rel=2e-5)
    assert found.lanes.active is not None
    assert found.lanes.predicated is not None
    assert (found.lanes.active.value * LANES, found.lanes.predicated.value * LANES) == pytest.approx(
        worked.lanes, rel=1e-5
    )
    points = {one.level: one for one in found.points}
    levels = (Level.L1_SECTORS, Level.L2, Level.DRAM)
    assert [points[level].transactions.value for level in levels] == pytest.approx(
        worked.transactions, rel=1e-4
    )
    shared = points[Level.SHARED].rate if Level.SHARED in points else 0.0
    rates = [(points[Level.L1_SECTORS].rate + 4 * shared) / 1e9]  # the paper's L1: shared at 4 sectors each
    rates += [points[level].rate / 1e9 for level in levels[1:]]
    assert rates == pytest.approx(worked.rates, rel=1e-3)
    assert found.global_intensity == pytest.approx(worked.per_sector, rel=1e-3)
    name, use = worked.nearest
    assert found.nearest is not None
    assert found.nearest.name == name
    assert found.nearest.use == pytest.approx(use, abs=0.002)
    mix = {one.name: 100 * one.share for one in found.mix}
    for kind, percent in worked.mix:
        assert mix[kind] == pytest.approx(percent, abs=0.7)  # where moves are counted differs


@pytest.mark.parametrize("worked", WORKED, ids=lambda worked: worked.kernel)
def test_peaks_of_l2_and_dram_are_worked_out_from_the_report(worked: Worked) -> None:
    found = _found(worked.report, worked.kernel)
    l2 = next(one for one in found.points if one.level is Level.L2)
    assert l2.peak is not None
    assert l2.peak.value * 32 / 1e9 == pytest.approx(worked.peaks[0], rel=1e-4)
    path = Path(os.environ["GPADVISOR_REPORTS"]) / worked.report
    kernel = next(one for one in _analysis(path).kernels if worked.kernel in one.demangled)
    assert kernel.context.profile is not None
    dram = dram_seen(kernel.context.profile)
    assert dram is not None
    assert dram.value / 1e9 == pytest.approx(worked.peaks[1], rel=1e-3)


def test_the_wall_of_each_access_is_known() -> None:
    for kernel, scattered, wall in (
        ("gemm_non_coalesced", 32.0, WallKind.EACH_LANE),
        ("gemm_coalesced", 1.0, WallKind.ONE_ADDRESS),
    ):
        accesses = {one.pc: one for one in _found(C, kernel).accesses}
        for pc in (0x330, 0x370, 0x3A0, 0x3C0):
            assert accesses[pc].instructions == 8_388_608
            assert accesses[pc].per_instruction == pytest.approx(scattered)
            assert accesses[pc].wall is wall
        assert accesses[0x330].fewest == pytest.approx(4.0 if scattered == 32 else 1.0)
    julia = _found(B, "julia_bb")
    assert julia.shared_intensity == pytest.approx(1.0)
    loads = [one for one in julia.accesses if one.text.startswith("LDG.E.128")]
    assert {(one.per_instruction, one.wall) for one in loads} == {(16.0, WallKind.STRIDE_1)}
    walk = {one.pc: one for one in _found(A, "searchKernel").accesses}[0xF90]
    assert walk.instructions == 8_727_887_820
    assert walk.per_instruction == pytest.approx(1.022, abs=1e-3)
    assert walk.wall is WallKind.ONE_ADDRESS


@pytest.mark.parametrize(
    ("report", "kernel", "share", "sectors", "tags", "shared", "gips"),
    [
        (C, "gemm_non_coalesced", 0.9972, 0.2348, None, None, 26.48),
        (C, "gemm_coalesced", 0.9865, 1.55, 3.875, None, 219.36),
        (B, "julia_bb", 0.9978, 42.24, None, 10.56, 246.68),
    ],
)
def test_the_hottest_loop_has_the_numbers_worked_out_for_it(
    report: str,
    kernel: str,
    share: float,
    sectors: float,
    tags: float | None,
    shared: float | None,
    gips: float,
) -> None:
    loop = _found(report, kernel).regions[0]
    assert loop.share == pytest.approx(share, abs=1e-4)
    assert loop.instructions / (loop.sectors or 1) == pytest.approx(sectors, rel=1e-3)
    if tags is not None:
        assert loop.instructions / (loop.tags or 1) == pytest.approx(tags, rel=1e-3)
    if shared is not None:
        assert loop.instructions / (loop.wavefronts or 1) == pytest.approx(shared, rel=1e-3)
    assert loop.height is not None
    assert loop.height.expected / 1e9 == pytest.approx(gips, rel=1e-3)


def test_samples_of_a_full_buffer_give_no_height_but_the_counts_stand() -> None:
    found = _found(A, "searchKernel")
    loop = next(one for one in found.regions if one.loop == 9)
    assert loop.share == pytest.approx(0.9902, abs=1e-4)
    assert loop.predicated_lanes == pytest.approx(0.613, abs=1e-3)
    assert loop.instructions / (loop.sectors or 1) == pytest.approx(6.928, rel=1e-3)
    assert loop.height is None
    assert loop.instructions / found.seconds / (loop.share or 1) / 1e9 == pytest.approx(173.70, rel=1e-3)
