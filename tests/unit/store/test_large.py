# SPDX-License-Identifier: Apache-2.0
"""Reports of many launches: what reading them takes, by their size."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from tests.isolated import read_isolated
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.store.load import load_bytes

ROWS = 500


def report(least: int) -> tuple[bytes, bytes, int]:
    """The beginning of a report, what a run adds, and how many runs have so many bytes."""
    cubin = tiny_cubin({"k": []}, instructions=ROWS)
    places = [("k", 16 * row) for row in range(ROWS)]
    spec = LaunchSpec(
        kernel="k",
        cubin=cubin,
        samples={(*place, "wait"): (5, 4) for place in places},
        counts=dict.fromkeys(places, (4096, 131072)),
    )
    one = write_report([spec])
    begin = 8 + int.from_bytes(one[4:8], "little")
    return one[:begin], one[begin:], -(-least // (len(one) - begin))


def test_memory_is_in_proportion() -> None:
    """Nothing of the file is copied, whatever the columns take."""
    begin, body, times = report(20_000_000)
    data = begin + body * times
    tracemalloc.start()
    profile = load_bytes(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(profile.kernels) == times
    columns = sum(
        column.nbytes
        for kernel in profile.kernels
        for table in (kernel.samples, kernel.counts)
        for column in (getattr(table, name) for name in type(table).__slots__)
    )
    assert most < columns + 0.3 * len(data)


@pytest.mark.validate
def test_two_gigabytes(tmp_path: Path) -> None:
    """Read as any other file, within the same limits."""
    from gpadvisor.pipeline.opening import read_seconds

    begin, body, times = report(2_100_000_000)
    path = tmp_path / "large.ncu-rep"
    with path.open("wb") as stream:
        stream.write(begin)
        for _ in range(times):
            stream.write(body)
    profile = read_isolated(path, timeout_seconds=read_seconds(path))
    one = load_bytes(begin + body).kernels[0].total_samples
    assert [kernel.total_samples for kernel in profile.kernels] == [one] * times
