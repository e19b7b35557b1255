# SPDX-License-Identifier: Apache-2.0
"""``trace.db`` as a timeline: streams, threads, what launched, and what is damaged."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.hpctoolkit_writer import LEXICAL, LINE, Node, write_database
from tests.public_databases import needs_mirrors, public

from gpadvisor.advice.idleness import idleness
from gpadvisor.advice.in_run import run_times
from gpadvisor.cli import main
from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.timeline import read_timeline

APP = "/bin/app"
MAIN, SETUP, KERNEL, COPY, SYNC = 2, 3, 5, 8, 9
STREAM = {1: {"GPUCONTEXT": 1, "GPUSTREAM": 7}, 2: {"GPUCONTEXT": 1, "GPUSTREAM": 8}, 3: {"THREAD": 0}}


def database(
    folder: Path,
    traces: Mapping[int, Sequence[tuple[int, int]]],
    identifiers: Mapping[int, Mapping[str, int]] = STREAM,
) -> Path:
    """main() calls setup(), and at line 3 launches a kernel and a copy."""
    kernel = Node(KERNEL, function=("work()", "x.gpubin", 64), values={(1, "GKER (sec)"): 1.0})
    launch = Node(4, function=("<gpu kernel>", "", 0), children=[kernel])
    call = Node(6, function=("cudaLaunchKernel", APP, 1), children=[launch])
    others = [Node(COPY, function=("<gpu copy>", "", 0)), Node(SYNC, function=("<gpu sync>", "", 0))]
    line = Node(7, line=("app.cu", 3), relation=LEXICAL, lexical=LINE, children=[call, *others])
    tree = Node(MAIN, function=("main", APP, 0), children=[Node(SETUP, function=("setup", APP, 9)), line])
    return write_database(folder, [Node(1, children=[tree])], ranks=identifiers, traces=traces)


def test_streams_are_one_device_and_threads_say_what_they_did(tmp_path: Path) -> None:
    traces = {
        1: [(100, KERNEL), (140, 0), (160, KERNEL), (180, 0)],
        2: [(120, COPY), (150, 0), (155, SYNC), (158, 0)],
        3: [(90, SETUP), (155, MAIN), (200, 0)],
    }
    timeline = read_timeline(database(tmp_path / "db", traces))
    (device,) = idleness(timeline)
    assert (device.span_ns, device.busy_ns, device.gaps) == (80, 70, 1)
    assert {share.name: share.idle_ns for share in device.by_call} == {"setup": 5.0, "main": 5.0}
    assert {share.name: share.idle_ns for share in device.by_end} == {"cudaLaunchKernel at app.cu:3": 10.0}
    times = {time.name.mangled: time for time in run_times(timeline).kernels if time.shape is None}
    assert (times["work()"].launches, times["work()"].union_ns, times["work()"].alone_ns) == (2, 60, 40)


def test_contexts_of_gpus_are_devices_of_their_own(tmp_path: Path) -> None:
    two = {1: {"RANK": 0, "GPUCONTEXT": 1}, 2: {"RANK": 1, "GPUCONTEXT": 1}}
    traces = {1: [(1, KERNEL), (5, 0)], 2: [(3, KERNEL), (9, 0)]}
    timeline = read_timeline(database(tmp_path / "db", traces, two))
    assert [(one.span_ns, one.busy_ns) for one in idleness(timeline)] == [(4, 4), (6, 6)]


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([(100, KERNEL), (90, 0)], "ends before it begins"),
        ([(100, 77), (110, 0)], "context 77"),
        ([(100, 0), (110, 0)], "no kernel, copy or memset"),
        ([(1 << 63, KERNEL), ((1 << 63) + 1, 0)], "whole numbers"),
        ([], "no kernel, copy or memset"),
    ],
)
def test_bad_traces_are_told(tmp_path: Path, points: Sequence[tuple[int, int]], said: str) -> None:
    with pytest.raises(ProfileFormatError, match=said):
        read_timeline(database(tmp_path / "db", {1: points}))


def test_damage_and_absence_are_told(tmp_path: Path) -> None:
    folder = database(tmp_path / "db", {1: [(1, KERNEL), (5, 0)], 2: [(1, KERNEL), (5, 0)]})
    trace = folder / "trace.db"
    whole = trace.read_bytes()
    trace.write_bytes(whole[:-3])
    with pytest.raises(ProfileFormatError, match="cut short"):
        read_timeline(trace)
    changed = bytearray(whole)
    (section,) = struct.unpack_from("<Q", whole, 24)
    (rows,) = struct.unpack_from("<Q", whole, section)
    struct.pack_into("<Q", changed, rows + 16, 1 << 50)
    trace.write_bytes(changed)
    with pytest.raises(ProfileFormatError, match="ends within an element, or overlaps"):
        read_timeline(trace)
    trace.unlink()
    with pytest.raises(ProfileFormatError, match="hpcrun --trace"):
        read_timeline(folder)


@needs_mirrors
def test_busy_time_of_a_public_trace_is_that_of_its_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    folder = public() / "tests/data/dbase/loops-cuda-nvidia-t.d"
    (device,) = idleness(read_timeline(folder))
    assert (device.span_ns, device.gaps) == (31_340_541, 99)
    assert device.busy_ns == pytest.approx(29_794_428, rel=1e-6)  # GKER (sec), measured beside it
    assert main(["idle", str(folder)]) == 0
    assert "4.9 % of 31.341 ms idle: 1.546 ms in 99 gaps" in capsys.readouterr().out


@needs_mirrors
def test_a_change_has_its_worth_in_the_traced_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = public() / "tests/data/dbase/recursion-cuda-nvidiapc-t.nostruct.d"
    measured = public() / "tests/data/meas/recursion-cuda-nvidiapc-t.m"
    target = tmp_path / "run.gpadvisor"
    assert main(["import", str(folder), "--gpubins", str(measured), "-o", str(target)]) == 0
    traced = public() / "tests/data/dbase/recursion-cuda-nvidiapc-t.d"
    capsys.readouterr()
    assert main(["advise", str(target), "--timeline", str(traced), "--format", "json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["run"]["span_ns"] == 50_371_814
    assert kernel["run"]["busy_ns"] == kernel["run"]["shared_ns"] == pytest.approx(1_686_694, rel=1e-5)
