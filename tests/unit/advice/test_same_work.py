# SPDX-License-Identifier: Apache-2.0
"""Another launch of the report that does the same work in less time is told as what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests import hand_made as made

from gpadvisor.advice.launches import chosen_launches
from gpadvisor.advice.same_work import faster_words
from gpadvisor.model.profile import KernelProfile, Launch, Profile

DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"


def _launch(index: int, block: int, ms: float, *, grid: int = 2048) -> KernelProfile:
    launch = made.launch(index, duration_ns=1e6 * ms, grid=(grid, 1, 1), block=(block, 1, 1))
    entry = made.profile(of=launch)
    return replace(entry, device=replace(entry.device, l2_bytes=6 << 20))


def _busy(index: int, block: int, ms: float, percent: float, *, grid: int = 2048) -> KernelProfile:
    entry = _launch(index, block, ms, grid=grid)
    return replace(entry, metrics={DRAM: percent})


def _faster(*entries: KernelProfile) -> Launch | None:
    report = Profile(
        sha256="0" * 64, collector="ncu", collector_version="2026.1", command=None, host=None, created=None,
        kernels=entries,
    )  # fmt: skip
    (chosen,) = chosen_launches(report)
    return chosen.faster


def test_larger_blocks_of_the_same_report() -> None:
    """As 2048 blocks of 32 threads in 6.43 ms, of which blocks of 256 took 4.47 ms in the same report."""
    slow, near = _busy(114, 32, 6.43, 69.7), _busy(119, 1024, 4.47, 99.5)
    best = _busy(142, 512, 4.46, 99.8, grid=32768)
    found = _faster(slow, near, best)
    assert found == near.launch  # as fast as the best, with the grid as it is
    assert faster_words(slow.launch, near.launch) == (
        "Blocks of 1024 threads do the same in 4.47 ms (launch 119 of the report)"
    )
    assert faster_words(slow.launch, best.launch).startswith("32768 blocks of 512 threads do the same")


def test_as_much_of_a_dram_that_is_not_busy() -> None:
    """As 36 launches of one product of vectors that kept DRAM busy for 13.4 ms each, in 14.5 to 22.7 ms."""
    slow, best = _busy(108, 32, 22.73, 59.0), _busy(137, 1024, 14.49, 92.4, grid=16384)
    assert _faster(slow, best) == best.launch
    assert _faster(_busy(0, 32, 0.02273, 59.0), _busy(1, 256, 0.01449, 92.4)) is None  # what L2 may hold


@pytest.mark.parametrize(
    "other",
    [
        _busy(1, 32, 4.47, 99.5),  # the same launch: times differ from run to run
        _busy(1, 256, 0.47, 99.5),  # a tenth of the bytes
        _busy(1, 256, 6.2, 72.3),  # hardly less time
        _busy(1, 256, 4.47, 20.0),  # a cache may have had what DRAM brought before
    ],
)
def test_other_work_or_no_less_time_is_no_answer(other: KernelProfile) -> None:
    assert _faster(_busy(0, 32, 6.43, 69.7), other) is None


def test_equal_bytes_are_the_same_work_where_no_cache_holds_them() -> None:
    slow, fast = _launch(0, 32, 6.4), _launch(1, 256, 4.4)
    large, names = {"dram__bytes.sum": 4e9}, {"dram__bytes.sum": 4e9, "smsp__inst_executed.sum": 1e9}
    assert _faster(replace(slow, metrics=large), replace(fast, metrics=large)) == fast.launch
    assert _faster(replace(slow, metrics=names), replace(fast, metrics=names)) == fast.launch
    more = {**names, "smsp__inst_executed.sum": 2e9}
    assert _faster(replace(slow, metrics=more), replace(fast, metrics=names)) is None
    # As layers of one network, which by chance executed about as many instructions.
    small = {"dram__bytes.sum": 1e6, "smsp__inst_executed.sum": 1e9}
    assert _faster(replace(slow, metrics=small), replace(fast, metrics=small)) is None
