# SPDX-License-Identifier: Apache-2.0
"""Which launch is analysed, time shares, and launches added up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests import hand_made as made

from gpadvisor.advice.launches import chosen_launches, launch_summaries, merge_launches, time_shares
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.model.profile import Evidence, KernelProfile, Profile
from gpadvisor.model.stalls import stall_reason


def one(index: int, duration: float | None, **changes: object) -> KernelProfile:
    evidence = changes.pop("evidence", Evidence.MEASURED)
    assert isinstance(evidence, Evidence)
    return made.profile(of=made.launch(index, duration_ns=duration, **changes), evidence=evidence)


def report(*kernels: KernelProfile) -> Profile:
    return Profile(
        sha256="0" * 64, collector="ncu", collector_version="2026.1", command=None, host=None, created=None,
        kernels=kernels,
    )  # fmt: skip


def test_the_longest_launch_of_each_kernel_by_gpu_time() -> None:
    profile = report(one(0, 10.0), one(1, 30.0), one(2, 35.0, kernel="b"), one(3, 25.0))
    chosen = chosen_launches(profile)
    assert [entry.indices for entry in chosen] == [(1,), (2,)]
    assert [entry.time_share for entry in chosen] == [0.65, 0.35]
    assert [row.analysed for row in launch_summaries(profile, chosen)] == [False, True, True, False]


def test_a_launch_with_samples_comes_before_a_longer_one_without() -> None:
    profile = report(
        one(0, 90.0, evidence=Evidence.COUNTED), one(1, 10.0), one(2, 99.0, evidence=Evidence.STATIC)
    )
    assert chosen_launches(profile)[0].indices == (1,)
    failed = report(one(0, None, failed=True), one(1, 10.0, evidence=Evidence.COUNTED))
    assert chosen_launches(failed)[0].indices == (1,)


def test_a_kernel_whose_launches_all_failed_is_left_out() -> None:
    launches = (one(0, None, failed=True, kernel="b"), one(1, 10.0))
    assert [entry.indices for entry in chosen_launches(report(*launches))] == [(1,)]
    assert [entry.indices for entry in chosen_launches(report(*launches), launch=0)] == [(0,)]
    assert [entry.indices for entry in chosen_launches(report(*launches), prefer=0)] == [(1,), (0,)]
    assert [entry.indices for entry in chosen_launches(report(launches[0]))] == [(0,)]


def test_one_launch_by_its_index_and_one_kernel_by_its_name() -> None:
    profile = report(one(0, 10.0), one(1, 30.0), one(2, 60.0, kernel="b"))
    assert [entry.indices for entry in chosen_launches(profile, launch=0)] == [(0,)]
    (chosen,) = chosen_launches(profile, wants=lambda launch: launch.kernel == "b")
    assert (chosen.indices, chosen.time_share) == ((2,), 0.6)
    assert chosen_launches(profile, launch=9) == ()


def test_shares_leave_out_what_has_no_time() -> None:
    assert time_shares(report(one(0, None), one(1, float("nan"), kernel="b", failed=True))) == {}
    assert time_shares(report(one(0, 5.0), one(1, None, kernel="b"))) == {(made.KERNEL, None): 1.0}


def sampled(
    index: int, sections: tuple[str, ...], rows: list[tuple[int, int, int, int, int]]
) -> KernelProfile:
    found = made.profile(
        {
            "memory_l2_theoretical_sectors_global": 10,
            "lts__throughput.avg.pct_of_peak_sustained_elapsed": 20.0 * index,
            "smsp__inst_executed.sum": 5,
            "launch__grid_size": 4096,
        },
        of=made.launch(index, duration_ns=100.0 * index),
        rows=rows,
        counted=made.counts([(0, 0, 3), (0, 16, 4)]),
    )  # fmt: skip
    return replace(found, sections=sections)


def test_merged_launches_add_up() -> None:
    first = sampled(1, ("k", "f"), [(0, 0, 0, 5, 4), (1, 16, 1, 7, 0), (0xFFFF, 1 << 40, 0, 1, 1)])
    second = sampled(3, ("f", "k"), [(1, 0, 0, 10, 8), (0, 16, 1, 1, 0), (0, 32, 0, 2, 2)])
    merged = merge_launches([first, second])
    assert merged.total_samples == first.total_samples + second.total_samples == 26
    assert merged.latency_samples == 15
    rows = {
        (int(s), int(pc), int(reason)): int(total)
        for s, pc, reason, total in zip(
            merged.samples.section,
            merged.samples.pc,
            merged.samples.reason,
            merged.samples.total,
            strict=True,
        )
    }
    assert merged.sections == ("k", "f")
    assert rows == {(0, 0, 0): 15, (1, 16, 1): 8, (1, 32, 0): 2, (0xFFFF, 1 << 40, 0): 1}
    assert merged.launch.duration_ns == 400.0
    assert merged.launch.index == 3  # the longest one
    assert merged.metrics["memory_l2_theoretical_sectors_global"] == 20
    assert merged.metrics["smsp__inst_executed.sum"] == 10
    assert merged.metrics["lts__throughput.avg.pct_of_peak_sustained_elapsed"] == pytest.approx(50.0)
    assert merged.metrics["launch__grid_size"] == 4096
    assert merged.counts is not None
    assert int(merged.counts.warps.sum()) == 14
    assert merged.samples.total.dtype == np.uint64


def test_merging_takes_equal_configurations_only() -> None:
    alike, other = [one(0, 10.0), one(1, 30.0)], one(2, 35.0, grid=(1, 1, 1))
    (chosen,) = chosen_launches(report(*alike, other), merge=True)
    assert (chosen.merged_launches, chosen.indices) == (2, (0, 1))
    with pytest.raises(ValueError, match="different configurations"):
        merge_launches([alike[0], other])
    with pytest.raises(ValueError, match="no launch"):
        merge_launches([])
    assert merge_launches(alike[:1]) is alike[0]


def test_more_reasons_than_a_table_can_number_are_not_added_up() -> None:
    first, second = one(0, 10.0), one(1, 20.0)
    many = [replace(entry, reasons=tuple(stall_reason(f"r{number}_{index}") for index in range(200)))
            for number, entry in enumerate((first, second))]  # fmt: skip
    with pytest.raises(ProfileMismatchError, match="400 stall reasons between them"):
        merge_launches(many)
