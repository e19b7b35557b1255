# SPDX-License-Identifier: Apache-2.0
"""Idle time of a GPU: worked out by hand, on real traces, and of bad ones."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from gpadvisor.advice.idleness import APPLICATION, NOBODY, idleness
from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.timeline import DeviceIdleness, DeviceWork, HostCalls, Timeline
from gpadvisor.pipeline.timeline import idle_of

pytestmark = pytest.mark.usefixtures("reads_here")

SCHEMA = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, correlationId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start, end, deviceId, correlationId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId",
    "StringIds": "id, value",
}
Row = tuple[int, ...]


def timeline(work: list[Row], calls: list[Row], names: tuple[str, ...]) -> Timeline:
    """Work by start, end, device, correlation; calls by start, end, thread, correlation, name."""
    w = np.array(work, np.int64).reshape(-1, 4)
    c = np.array(calls, np.int64).reshape(-1, 5)
    return Timeline(
        work=DeviceWork(
            start_ns=w[:, 0],
            end_ns=w[:, 1],
            device=w[:, 2],
            correlation=w[:, 3],
            kernel=np.full(len(w), -1),
            stream=np.full(len(w), -1),
            operation=np.full(len(w), 1),
            pageable=np.full(len(w), -1),
            shape=np.full((len(w), 6), -1),
        ),
        calls=HostCalls(
            start_ns=c[:, 0],
            end_ns=c[:, 1],
            thread=c[:, 2],
            correlation=c[:, 3],
            name=c[:, 4],
            place=np.full(len(c), -1),
        ),
        names=names,
    )


def shares(device: DeviceIdleness) -> dict[str, tuple[float, int]]:
    return {one.name: (one.idle_ns, one.gaps) for one in device.by_call}


def test_by_hand() -> None:
    """Two streams overlap from 10 to 30; a gap to 50, of which sync and launch take 5 each; one to 70."""
    (found,) = idleness(
        timeline(
            [(10, 25, 0, 1), (20, 30, 0, 2), (50, 60, 0, 3), (70, 80, 0, 9)],
            [
                (0, 5, 7, 1, 0),
                (5, 9, 7, 2, 0),
                (12, 35, 7, 4, 1),
                (45, 49, 7, 3, 0),
                (49, 50, 7, 5, 0),
                (75, 76, 7, 6, 1),
            ],
            ("launch", "sync"),
        )
    )
    assert (found.span_ns, found.busy_ns, found.idle_ns, found.gaps) == (70, 40, 30, 2)
    assert shares(found) == {APPLICATION: (20.0, 2), "sync": (5.0, 1), "launch": (5.0, 1)}
    assert [(one.name, one.idle_ns) for one in found.by_end] == [("launch", 20.0), (NOBODY, 10.0)]


def test_threads_share_a_gap_and_the_innermost_call_has_it() -> None:
    (found,) = idleness(
        timeline(
            [(0, 10, 0, -1), (30, 40, 0, -1)],
            [(0, 40, 1, 1, 0), (15, 20, 1, 2, 1), (0, 20, 2, 3, 2)],
            ("outer", "inner", "other"),
        )
    )
    # 10 to 15: outer and other; 15 to 20: inner and other; 20 to 30: outer alone, thread 2 has ended.
    assert shares(found) == {"outer": (12.5, 1), "other": (5.0, 1), "inner": (2.5, 1)}


def test_devices_are_apart_and_nobody_is_the_application() -> None:
    first, second = idleness(timeline([(0, 10, 0, -1), (5, 6, 1, -1), (9, 20, 1, -1)], [], ()))
    assert (first.idle_ns, first.by_call) == (0, ())
    assert shares(second) == {APPLICATION: (3.0, 1)}


def test_what_is_shared_out_is_what_was_idle() -> None:
    draw = np.random.default_rng(3)
    work = [(int(at), int(at + length), 0, -1) for at, length in draw.integers(0, 900, (60, 2)) // [1, 60]]
    calls = [
        (int(at), int(at + length), int(thread), -1, int(name))
        for at, length, thread, name in draw.integers(0, 900, (300, 4)) // [1, 20, 300, 300]
    ]
    (found,) = idleness(timeline(work, calls, ("a", "b", "c")))
    busy = np.zeros(2000, bool)
    for start, end, *_ in work:
        busy[start:end] = True
    first, last = min(row[0] for row in work), max(row[1] for row in work)
    assert found.idle_ns == int((~busy[first:last]).sum())
    assert sum(one.idle_ns for one in found.by_call) == pytest.approx(found.idle_ns)
    assert sum(one.idle_ns for one in found.by_end) == pytest.approx(found.idle_ns)


def export(path: Path, rows: dict[str, list[tuple[object, ...]]]) -> Path:
    with sqlite3.connect(path) as database:
        for table, columns in SCHEMA.items():
            if table in rows:
                database.execute(
                    f"CREATE TABLE {table} ({columns.replace('end', chr(34) + 'end' + chr(34))})"
                )
                for row in rows[table]:
                    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    database.close()
    return path


KERNELS: list[tuple[object, ...]] = [(10, 20, 0, 1), (30, 40, 0, 2)]
CALLS: list[tuple[object, ...]] = [(0, 5, 7, 1, 1), (22, 29, 7, 2, 1)]
WHOLE = {
    "CUPTI_ACTIVITY_KIND_KERNEL": KERNELS,
    "CUPTI_ACTIVITY_KIND_RUNTIME": CALLS,
    "StringIds": [(1, "cudaLaunchKernel_v7000")],
}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(tmp_path / "run.sqlite", WHOLE)
    before = path.read_bytes()
    assert main(["idle", str(path)]) == 0
    text = capsys.readouterr().out
    assert "33.3 % of 0.000 ms idle" in text
    assert "cudaLaunchKernel\n" in text
    assert main(["idle", str(path), "--format", "json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert device["idle_ns"] == 10
    assert {one["name"]: one["idle_ns"] for one in device["by_call"]} == {
        "cudaLaunchKernel": 7.0,
        APPLICATION: 3.0,
    }
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["run.sqlite"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"CUPTI_ACTIVITY_KIND_RUNTIME": CALLS, "StringIds": []}, "no kernel, copy or memset"),
        ({"CUPTI_ACTIVITY_KIND_KERNEL": KERNELS, "StringIds": []}, "no calls of CUDA"),
        ({**WHOLE, "CUPTI_ACTIVITY_KIND_KERNEL": [(20, 10, 0, 1)]}, "ends before it begins"),
        ({**WHOLE, "CUPTI_ACTIVITY_KIND_KERNEL": [("x", 10, 0, 1)]}, "where whole numbers are"),
        ({**WHOLE, "CUPTI_ACTIVITY_KIND_KERNEL": [(1, 1 << 62, 0, 1)]}, "where whole numbers are"),
        (
            {"CUPTI_ACTIVITY_KIND_KERNEL": KERNELS, "CUPTI_ACTIVITY_KIND_RUNTIME": CALLS},
            "no export of Nsight",
        ),
    ],
)
def test_bad_traces(tmp_path: Path, rows: dict[str, list[tuple[object, ...]]], words: str) -> None:
    with pytest.raises(ProfileFormatError, match=words):
        idle_of(export(tmp_path / "run.sqlite", rows))


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    path = export(tmp_path / "run.sqlite", WHOLE)
    data = path.read_bytes()
    for content in (data[:5000], data[:100] + b"\xff" * 900 + data[1000:]):
        path.write_bytes(content)
        with pytest.raises(ProfileFormatError, match="cannot be read as an export"):
            idle_of(path)
    path.write_bytes(b"text")
    with pytest.raises(ProfileFormatError, match="is no timeline"):
        idle_of(path)
    with pytest.raises(ProfileFormatError, match="cannot be read: No such file"):
        idle_of(tmp_path / "none")


TRACES = Path(os.environ.get("GPADVISOR_TRACES", ""))


@pytest.mark.skipif(
    not (TRACES / "perlmutter-cloverleaf-cuda.sqlite").is_file(),
    reason="GPADVISOR_TRACES has no perlmutter-cloverleaf-cuda.sqlite (hpcgroup/pipit, pull request 138)",
)
def test_cloverleaf() -> None:
    (found,) = idle_of(TRACES / "perlmutter-cloverleaf-cuda.sqlite").devices
    assert (found.span_ns, found.busy_ns, found.gaps) == (342_407_810, 303_795_463, 1590)
    told = {one.name: round(one.idle_ns / 1e6, 3) for one in found.by_call}
    assert told == {
        APPLICATION: 16.633,
        "cudaMemcpy": 10.868,
        "cudaDeviceSynchronize": 5.230,
        "cudaLaunchKernel": 5.000,
        "cudaMalloc": 0.747,
        "cudaFree": 0.134,
    }


@pytest.mark.skipif(
    not (TRACES / "saxpy-mpi-cuda_nsys_perlmutter0.sqlite").is_file(),
    reason="GPADVISOR_TRACES has no saxpy-mpi-cuda_nsys_perlmutter0.sqlite (hpcgroup/pipit)",
)
def test_saxpy() -> None:
    (found,) = idle_of(TRACES / "saxpy-mpi-cuda_nsys_perlmutter0.sqlite").devices
    assert found.idle_ns / found.span_ns == pytest.approx(0.66, abs=0.001)
    assert found.by_call[0].name == APPLICATION
    assert found.by_call[0].idle_ns / found.idle_ns == pytest.approx(0.993, abs=0.001)
