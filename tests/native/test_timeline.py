# SPDX-License-Identifier: Apache-2.0
"""A run on the clock: what the stand-in delivered of kernels, copies and calls is what the timeline has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.injection import NATIVE, Stand

from gpadvisor.advice.run_findings import run_findings
from gpadvisor.cli import main
from gpadvisor.errors import NoTimelineError, ProfileFormatError
from gpadvisor.model.timeline import Operation, Timeline
from gpadvisor.profiler.cupti import CollectOptions, SamplingMode, collect
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot
from gpadvisor.store.timeline import read_timeline
from gpadvisor.store.timeline.recorded import recorded_notes
from gpadvisor.store.timeline.stored import write_with_timeline

STEPS = 10
TIMELINE = {"GPADVISOR_COLLECT_MODE": "timeline"}


def called(run: Timeline) -> Counter[str]:
    return Counter(run.names[name] for name in run.calls.name.tolist())


def test_everything_delivered_is_in_the_timeline(stand: Stand, tmp_path: Path) -> None:
    done, truth = stand.run(tmp_path / "out", "steps", STEPS, **TIMELINE)
    assert (done.returncode, done.stderr) == (0, "")
    run = read_timeline(tmp_path / "out")
    assert recorded_notes(tmp_path / "out") == ()
    kinds = Counter(run.work.operation.tolist())
    assert kinds == {Operation.KERNEL: truth.kernels, Operation.TO_DEVICE: 1, Operation.SET: 1}
    assert (truth.kernels, truth.copies, truth.samples_made) == (40, 2, 0), "no sample was asked for"
    # The driver's calls inside of the runtime's are the runtime's own.
    assert len(run.calls.name) + STEPS == truth.calls
    assert called(run) == {
        "cuLaunchKernel": 30,
        "cudaLaunchKernel": STEPS,
        "cudaDeviceSynchronize": STEPS,
        "cudaMemcpy": 1,
        "cudaMemset": 1,
    }
    assert {kernel.mangled for kernel in run.kernels} == {"alpha", "beta"}
    assert {tuple(shape) for shape in run.work.shape.tolist()} >= {(100, 1, 1, 128, 1, 1), (-1,) * 6}
    assert set(np.unique(run.calls.thread)) == {run.calls.thread[0]}
    (copy,) = np.flatnonzero(run.work.operation == Operation.TO_DEVICE)
    assert run.work.pageable[copy] == 1
    launched = set(run.calls.correlation.tolist())
    assert set(run.work.correlation.tolist()) <= launched, "each has the call that launched it"


def test_calls_have_the_place_of_the_application(stand: Stand, tmp_path: Path) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("no addr2line on PATH")
    options = CollectOptions(
        mode=SamplingMode.TIMELINE,
        environment={"LD_LIBRARY_PATH": str(stand.folder), "FAKE_TRUTH": str(tmp_path / "truth")},
        cupti_library=Path(stand.environment["GPADVISOR_CUPTI"]),
    )
    command = [str(stand.host), "steps", str(stand.image), str(STEPS)]
    run = read_timeline(collect(command, tmp_path / "out", options).path)
    source = (NATIVE / "host.c").read_text("utf-8").splitlines()
    lines = {
        run.names[name]: source[run.places[place].line - 1].strip()
        for name, place in zip(run.calls.name.tolist(), run.calls.place.tolist(), strict=True)
    }
    assert lines["cudaDeviceSynchronize"] == "fake_runtime_wait(200);"
    assert lines["cudaLaunchKernel"] == "fake_runtime_launch(function, 100, 128, NULL);"
    assert lines["cudaMemcpy"] == "fake_runtime_copy(100);"
    found = {one.code: one for one in run_findings(run)}
    assert found["GPA501"].place is not None
    assert found["GPA501"].place.function == "step"
    assert found["GPA501"].calls == STEPS


def test_python_is_in_the_way_of_a_call(stand: Stand, tmp_path: Path) -> None:
    program = NATIVE / "launching.py"
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [sys.executable, str(program), str(stand.folder), str(stand.image)],
        env={**stand.variables(tmp_path / "out", tmp_path / "truth", **TIMELINE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = read_timeline(tmp_path / "out")
    source = program.read_text("utf-8").splitlines()
    (place,) = {run.places[at] for at in run.calls.place.tolist()}
    assert Path(place.file) == program
    assert source[place.line - 1].endswith("# launch")
    assert place.function.endswith("launch")


def test_threads_are_told_apart(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "threads", 5, **TIMELINE)
    run = read_timeline(tmp_path / "out")
    assert len(np.unique(run.calls.thread)) == 8
    assert set(np.unique(run.work.device)) == {0, 1}


def test_what_cupti_dropped_is_told(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "steps", STEPS, FAKE_CUPTI="lost=3", **TIMELINE)
    assert recorded_notes(tmp_path / "out") == ("CUPTI dropped records of the timeline (3 or more)",)


def test_the_end_of_the_room_is_told_with_what_was_left_out(stand: Stand, tmp_path: Path) -> None:
    _, truth = stand.run(tmp_path / "out", "steps", STEPS, GPADVISOR_COLLECT_RECORDS="50", **TIMELINE)
    left_out = truth.kernels + truth.copies + truth.calls - 50
    (note,) = recorded_notes(tmp_path / "out")
    assert f"the timeline ends before the run: records beyond 50 were left out ({left_out})" in note
    assert 0 < len(read_timeline(tmp_path / "out").work.start_ns) < 50


def test_what_cupti_refuses_is_told(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "steps", STEPS, FAKE_CUPTI="untraced=27", **TIMELINE)
    notes = recorded_notes(tmp_path / "out")
    assert len(notes) == 4
    assert all(
        re.match(r"the timeline has no (copies|memsets|calls of the (runtime|driver)): ", one)
        for one in notes
    )
    run = read_timeline(tmp_path / "out")
    assert len(run.work.start_ns) == 40
    assert not len(run.calls.start_ns)


def test_without_kernels_it_is_none(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "steps", STEPS, FAKE_CUPTI="activity=27,untraced=27", **TIMELINE)
    with pytest.raises(ProfileFormatError, match="no kernel, copy or memset"):
        read_timeline(tmp_path / "out")


@pytest.mark.parametrize("way", ["killed", "segv"])
def test_what_was_delivered_before_a_crash_is_there(stand: Stand, tmp_path: Path, way: str) -> None:
    stand.run(tmp_path / "out", way, 3000, **TIMELINE)
    (said,) = recorded_notes(tmp_path / "out")
    assert "what CUPTI still held of the timeline is not" in said
    run = read_timeline(tmp_path / "out")
    assert 0 < len(run.work.start_ns) < 9000


def test_what_a_forked_child_does_is_missed_aloud(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "fork_use", 3, **TIMELINE)
    assert any("lacks what a child did" in note for note in recorded_notes(tmp_path / "out"))


def test_samples_are_no_timeline(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "out", "steps", STEPS)
    with pytest.raises(ProfileFormatError, match="has samples and no timeline"):
        read_timeline(tmp_path / "out")


def test_a_collection_of_it_is_a_timeline_and_no_profile(
    stand: Stand, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command line, whose children may have less memory than a file could take."""
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    for name, more in (("samples", {}), ("run", TIMELINE)):
        stand.run(tmp_path / name, "steps", STEPS, **more)
    assert main(["idle", str(tmp_path / "run")]) == 0
    assert "cudaDeviceSynchronize" in capsys.readouterr().out
    assert main(["advise", str(tmp_path / "samples"), "--timeline", str(tmp_path / "run")]) == 0
    assert "of the GPU's busy time" in capsys.readouterr().out
    assert main(["advise", str(tmp_path / "run")]) == 3
    assert "has a timeline and no samples" in capsys.readouterr().err


def test_a_snapshot_carries_it(stand: Stand, tmp_path: Path) -> None:
    stand.run(tmp_path / "samples", "steps", STEPS)
    stand.run(tmp_path / "run", "steps", STEPS, **TIMELINE)
    profile, run = load_profile(tmp_path / "samples"), read_timeline(tmp_path / "run")
    write_with_timeline(profile, run, tmp_path / "with.gpadvisor")
    again = read_timeline(tmp_path / "with.gpadvisor")
    assert (again.names, again.kernels, again.places) == (run.names, run.kernels, run.places)
    for name in ("start_ns", "end_ns", "device", "correlation", "kernel", "stream", "operation", "shape"):
        assert np.array_equal(getattr(again.work, name), getattr(run.work, name))
    for name in ("start_ns", "end_ns", "thread", "correlation", "name", "place"):
        assert np.array_equal(getattr(again.calls, name), getattr(run.calls, name))
    # The profile in it is what it is without.
    write_snapshot(profile, tmp_path / "without.gpadvisor")
    with_it, without = (load_profile(tmp_path / f"{name}.gpadvisor") for name in ("with", "without"))
    assert with_it.sha256 == without.sha256
    with pytest.raises(NoTimelineError, match="has no timeline"):
        read_timeline(tmp_path / "without.gpadvisor")


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("manifest.json", lambda text: re.sub(rb'"names": \[.*?\]', b'"names": []', text, flags=re.DOTALL)),
        (
            "manifest.json",
            lambda text: re.sub(rb'"kernels": \[.*?\]', b'"kernels": []', text, flags=re.DOTALL),
        ),
        ("manifest.json", lambda text: text.replace(b'"places"', b'"others"')),
        ("timeline_work.parquet", lambda data: data[: len(data) // 2]),
        ("timeline_calls.parquet", None),
    ],
)
def test_a_damaged_one_is_an_error(stand: Stand, tmp_path: Path, member: str, change: object) -> None:
    stand.run(tmp_path / "samples", "steps", 2)
    stand.run(tmp_path / "run", "steps", 2, **TIMELINE)
    good, bad = tmp_path / "good.gpadvisor", tmp_path / "bad.gpadvisor"
    write_with_timeline(load_profile(tmp_path / "samples"), read_timeline(tmp_path / "run"), good)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(bad, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == member and change is None:
                continue
            new.writestr(entry, change(data) if entry.filename == member and callable(change) else data)
    with pytest.raises(ProfileFormatError) as error:
        read_timeline(bad)
    assert "bad.gpadvisor" in str(error.value) or "timeline_" in str(error.value)
    assert os.linesep not in str(error.value)
