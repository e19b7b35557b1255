# SPDX-License-Identifier: Apache-2.0
"""Foreign files are read in a child process: same values, same errors, and no harm when the child fails."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.isolated import read_isolated
from tests.ncu_writer import LaunchSpec, RuleSpec, write_report
from tests.profile_values import assert_same_profile
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import CancelledError, ProfileError, ProfileFormatError
from gpadvisor.sandbox import children
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot

SPEC = LaunchSpec(
    kernel="k",
    cubin=tiny_cubin({"k": []}),
    samples={("k", 16, "wait"): (5, 4)},
    counts={("k", 0): (3, 96)},
    metrics={"nan": float("nan"), "big": (1 << 64) - 1},
    sources={"a.cu": "x"},
    rules=[RuleSpec(identifier="A", message="say")],
)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([SPEC]))
    return path


def child(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what the child does; it still gets root, entry, request, memory and time as arguments."""
    monkeypatch.setattr(children, "_START", code)


def test_the_same_profile_as_in_this_process(report: Path, tmp_path: Path) -> None:
    profile = load_profile(report)
    assert_same_profile(read_isolated(report), profile)
    snapshot = tmp_path / "run.gpadvisor"
    write_snapshot(profile, snapshot)
    assert_same_profile(read_isolated(snapshot), profile)


def test_the_same_error_as_in_this_process(report: Path) -> None:
    report.write_bytes(report.read_bytes()[:200])
    with pytest.raises(ProfileFormatError) as direct:
        load_profile(report)
    with pytest.raises(ProfileFormatError) as isolated:
        read_isolated(report)
    assert str(isolated.value) == str(direct.value)


def test_a_relative_path_is_taken_from_here(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(report.parent)
    assert read_isolated(Path(report.name)).kernels[0].total_samples == 5


def test_the_users_environment_does_not_reach_the_child(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read_isolated(report).kernels[0].total_samples == 5


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_crash_is_a_sentence(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", monkeypatch)
    with pytest.raises(ProfileFormatError, match=r"ended by signal SIGSEGV.*damaged"):
        read_isolated(report)


def test_a_hang_is_stopped(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child("import time; time.sleep(60)", monkeypatch)
    with pytest.raises(ProfileFormatError, match=r"longer than its time limit.*0\.3 s"):
        read_isolated(report, timeout_seconds=0.3)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_children_of_the_child_are_stopped_too(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = tmp_path / "pid"
    child(
        "import subprocess, sys, time, pathlib;"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        f"pathlib.Path({str(noted)!r}).write_text(str(p.pid)); time.sleep(60)",
        monkeypatch,
    )
    with pytest.raises(CancelledError):
        read_isolated(report, cancelled=lambda: noted.is_file() and bool(noted.read_text()))
    pid = int(noted.read_text())
    for _ in range(200):
        if _state(pid) in {"gone", "Z"}:
            return
        time.sleep(0.05)  # the kernel may take a moment to deliver the signal
    pytest.fail(f"process {pid} is still there")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "gone"


def test_cancelling(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child("import time; time.sleep(60)", monkeypatch)
    with pytest.raises(CancelledError, match="stopped as asked"):
        read_isolated(report, cancelled=lambda: True)


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(5)",
        "print('{\"blobs\": [], ')",
        "print('[]')",
        'print(\'{"document": {}, "blobs": []}\')',
    ],
)
def test_an_unfinished_or_wrong_answer_is_not_believed(
    code: str, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child(code, monkeypatch)
    with pytest.raises(ProfileFormatError, match="process that read"):
        read_isolated(report)


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux")
def test_memory_is_limited(report: Path) -> None:
    with pytest.raises(ProfileFormatError, match="GiB"):
        read_isolated(report, memory_bytes=60 << 20)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileFormatError, match="does not exist"):
        read_isolated(tmp_path / "absent.ncu-rep")


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes on Windows")
def test_a_full_folder_for_temporary_files_is_named(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv.pop(1)); sys.dont_write_bytecode = True;"
        "from gpadvisor.sandbox import child;"  # else what it compiles is kept, cut at the limit
        "child.limit_time_and_files = lambda *_: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024));"
        "child.main(sys.argv[1:])"
    )
    child(code, monkeypatch)
    with pytest.raises(ProfileError, match=r"cannot hold its parts \(File too large\); make room there"):
        read_isolated(report)
