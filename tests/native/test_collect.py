# SPDX-License-Identifier: Apache-2.0
"""Running applications under the collector: progress, time limits, signals, and nothing left behind."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import leap
from tests.injection import NATIVE, Stand

from gpadvisor.errors import ProfileError, ToolFailedError, ToolNotFoundError, UsageError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.profiler.cupti import Collection, CollectOptions, Ending, Heartbeat, SamplingMode, collect
from gpadvisor.profiler.cupti.options import KernelTimes
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot


@pytest.fixture
def run(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Collection]:
    """``collect`` with the stand-in in place of driver and CUPTI."""
    monkeypatch.setenv("GPADVISOR_CACHE", str(stand.folder / "cache"))  # where the library is already
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)

    def collected(way: str, count: int = 10, /, **more: Any) -> Collection:
        keywords = {name: more.pop(name) for name in ("progress", "cancelled") if name in more}
        library = Path(stand.environment["GPADVISOR_CUPTI"])
        options = CollectOptions(
            environment={"LD_LIBRARY_PATH": str(stand.folder), "FAKE_TRUTH": str(tmp_path / "truth")},
            cupti_library=library,
            **more,
        )
        command = [str(stand.host), way, str(stand.image), str(count)]
        return collect(command, tmp_path / "out", options, **keywords)

    return collected


def _alive(stand: Stand) -> list[int]:
    """Processes that still run the host program."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "exe").readlink() == stand.host:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_a_run_that_ends_by_itself(run: Callable[..., Collection], tmp_path: Path) -> None:
    collection = run("status7")
    assert (collection.status, collection.ending, collection.notes) == (7, Ending.EXITED, ())
    assert collection.launches == 30
    assert sorted(entry.name for entry in collection.path.iterdir() if entry.is_dir()) == ["cubins"]


def test_native_frames_have_functions_and_lines(run: Callable[..., Collection]) -> None:
    if shutil.which("addr2line") is None:
        pytest.skip("no addr2line on PATH")
    frames = load_profile(run("slowly").path).kernels[0].call_stack
    named = {frame.function: (Path(frame.file or "").name, frame.line) for frame in frames}
    source = (NATIVE / "host.c").read_text("utf-8").splitlines()
    file, line = named["run_one"]  # a static function, of which the loader knows nothing
    assert file == "host.c"
    assert "launch_some(alpha, count, 100, 128);" in source[(line or 0) - 1]
    assert named["main"][0] == "host.c"


def test_options_reach_cupti(run: Callable[..., Collection]) -> None:
    collection = run(
        "plain",
        mode=SamplingMode.SERIALIZED,
        period=9,
        hardware_buffer_bytes=64 << 20,
        call_stacks=False,
        times=KernelTimes.NONE,
    )
    kernel = load_profile(collection.path).kernels[0]
    assert (kernel.sampling.interval_cycles, kernel.sampling.buffer_bytes) == (512, 64 << 20)
    assert (kernel.call_stack, kernel.launch.duration_ns) == ((), None)
    assert len(load_profile(collection.path).kernels) == 30


def test_the_time_limit(
    run: Callable[..., Collection], stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[Heartbeat] = []
    leap(monkeypatch, lambda: bool(beats) and beats[-1].launches > 30)
    collection = run("for_ever", timeout_seconds=1000, progress=beats.append)
    assert (collection.ending, collection.status) == (Ending.TIMED_OUT, -signal.SIGINT)
    assert collection.launches > 30
    assert [beat.launches for beat in beats] == sorted(beat.launches for beat in beats)
    assert not beats[0].stopping
    assert not _alive(stand)
    assert load_profile(collection.path).problems == ()  # SIGINT let it end its file


def test_a_stubborn_application_is_killed_in_the_end(
    run: Callable[..., Collection], stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[Heartbeat] = []
    leap(monkeypatch, lambda: bool(beats) and beats[-1].launches == 30)
    collection = run("stubborn", timeout_seconds=1000, grace_seconds=0.2, progress=beats.append)
    assert (collection.ending, collection.status) == (Ending.TIMED_OUT, -signal.SIGKILL)
    assert not _alive(stand)
    profile = load_profile(collection.path)
    assert ProblemCode.UNFINISHED_COLLECTION in {problem.code for problem in profile.problems}
    assert len(collection.notes) == 1


def test_cancelling(run: Callable[..., Collection], stand: Stand) -> None:
    beats: list[Heartbeat] = []
    collection = run(
        "waits", progress=beats.append, cancelled=lambda: bool(beats) and beats[-1].launches == 30
    )
    assert collection.ending is Ending.CANCELLED
    assert collection.launches == 30
    assert not _alive(stand)


def test_an_interrupt_of_the_profiler_reaches_the_application(
    run: Callable[..., Collection], stand: Stand
) -> None:

    def on_main_thread(beat: Heartbeat) -> None:
        if not sent and beat.launches == 30:
            sent.append(True)
            raise KeyboardInterrupt

    sent: list[bool] = []
    collection = run("waits", progress=on_main_thread)
    assert (collection.ending, collection.status) == (Ending.INTERRUPTED, -signal.SIGINT)
    assert collection.launches == 30
    assert not _alive(stand)


def test_children_left_behind_are_ended(
    run: Callable[..., Collection], stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpadvisor.profiler.cupti.collecting._STRAGGLER_SECONDS", 0.3)
    assert run("orphan").status == 0
    while _alive(stand):  # it was killed, and may take a moment to die
        time.sleep(0.01)


def test_an_error_in_the_callers_code_leaves_nothing_running(
    run: Callable[..., Collection], stand: Stand
) -> None:
    def fails(_: Heartbeat) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run("waits", progress=fails)
    assert not _alive(stand)


def test_a_collection_becomes_a_snapshot(run: Callable[..., Collection], tmp_path: Path) -> None:
    profile = load_profile(run("runtime").path)
    write_snapshot(profile, tmp_path / "run.gpadvisor")
    again = load_profile(tmp_path / "run.gpadvisor")
    assert [k.launch for k in again.kernels] == [k.launch for k in profile.kernels]
    assert [k.call_stack for k in again.kernels] == [k.call_stack for k in profile.kernels]
    assert [k.metrics for k in again.kernels] == [k.metrics for k in profile.kernels]


def test_the_library_is_built_once_and_without_a_cache_for_the_run_only(
    run: Callable[..., Collection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPADVISOR_CACHE", str(tmp_path / "cache"))
    run("plain")
    (built,) = (tmp_path / "cache").iterdir()
    stamp = built.stat().st_mtime_ns
    (tmp_path / "out").rename(tmp_path / "first")
    run("plain")
    assert [entry.stat().st_mtime_ns for entry in (tmp_path / "cache").iterdir()] == [stamp]
    (tmp_path / "out").rename(tmp_path / "second")
    monkeypatch.setenv("GPADVISOR_CACHE", "")
    assert run("plain").launches == 30
    assert not (tmp_path / "out" / "library").exists()


_PAYLOAD = """
#include <stdio.h>
#include <stdlib.h>
int InitializeInjection(void) { return fclose(fopen(getenv("PWNED"), "w")) == 0; }
"""


def test_a_library_that_others_could_write_never_runs(
    run: Callable[..., Collection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the right name, in a folder that others can write: it would run in the application."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("GPADVISOR_CACHE", str(cache))
    run("plain")
    (planted,) = cache.iterdir()
    (tmp_path / "payload.c").write_text(_PAYLOAD)
    subprocess.run(["gcc", "-shared", "-fPIC", str(tmp_path / "payload.c"), "-o", str(planted)], check=True)
    pwned = tmp_path / "pwned"
    monkeypatch.setenv("PWNED", str(pwned))
    shutil.rmtree(tmp_path / "out")
    run("plain")
    assert pwned.exists(), "of this user, in a folder of this user alone, it is taken"
    pwned.unlink()
    shutil.rmtree(tmp_path / "out")
    cache.chmod(0o777)
    with pytest.raises(ToolFailedError, match="others can write there"):
        run("plain")
    assert not pwned.exists()
    cache.chmod(0o700)
    planted.chmod(0o777)
    assert run("plain").launches == 30, "built anew"
    assert not pwned.exists()


def test_what_cannot_be_started(run: Callable[..., Collection], tmp_path: Path, stand: Stand) -> None:
    with pytest.raises(ToolNotFoundError, match="cannot be started"):
        collect([str(tmp_path / "absent")], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(ProfileError, match="not an empty directory"):
        run("plain")
    with pytest.raises(ProfileError, match="no application was named"):
        collect([], tmp_path / "new")
    with pytest.raises(ProfileError, match="cannot be made"):
        collect(["true"], tmp_path / "absent" / "out")


def test_another_injection_is_not_overridden(
    run: Callable[..., Collection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/other/libtool.so")
    with pytest.raises(ToolFailedError, match="libtool"):
        run("plain")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("period", [4, 32])
def test_periods_that_cupti_does_not_know(period: int) -> None:
    with pytest.raises(UsageError, match="exponent"):
        CollectOptions(period=period)


def test_an_application_without_cuda(tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)
    collection = collect([sys.executable, "-c", "print()"], tmp_path / "out")
    assert collection.launches == 0
    assert len(collection.notes) == 1
    assert "did not use CUDA" in collection.notes[0]


_AT_A_TERMINAL = """
import sys
from pathlib import Path
from gpadvisor.profiler.cupti import CollectOptions, collect
host, image, folder, library, out = sys.argv[1:]
options = CollectOptions(environment={"LD_LIBRARY_PATH": folder}, cupti_library=Path(library))
collection = collect([host, "waits", image, "10"], Path(out), options)
print(collection.ending.value, collection.status, collection.launches, flush=True)
"""


@pytest.fixture
def at_a_terminal(stand: Stand, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A profiler in the foreground of a terminal whose application waits, and the terminal's other end."""
    master, slave = pty.openpty()
    arguments = [
        stand.host,
        stand.image,
        stand.folder,
        stand.environment["GPADVISOR_CUPTI"],
        tmp_path / "out",
    ]
    environment = {**os.environ, "GPADVISOR_CACHE": str(stand.folder / "cache")}
    environment.pop("CUDA_INJECTION64_PATH", None)
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL + _AT_A_TERMINAL, *map(str, arguments)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env=environment,
    )
    os.close(slave)
    try:
        _read_until(master, b"ready")
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def test_ctrl_c_at_a_terminal_goes_to_the_application(
    at_a_terminal: tuple[subprocess.Popen[bytes], int], stand: Stand
) -> None:
    process, master = at_a_terminal
    (application,) = _alive(stand)
    _await_foreground(master, application)
    os.write(master, b"\x03")
    _read_until(master, b"interrupted -2 30")
    assert process.wait() == 0


def test_ctrl_z_stops_both_and_they_go_on_together(
    at_a_terminal: tuple[subprocess.Popen[bytes], int], stand: Stand
) -> None:
    process, master = at_a_terminal
    (application,) = _alive(stand)
    _await_foreground(master, application)
    os.write(master, b"\x1a")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert _state(application) == "T"
    process.send_signal(signal.SIGCONT)
    _await_foreground(master, application)
    while _state(application) == "T":
        time.sleep(0.01)
    os.write(master, b"\x03")  # the terminal is the application's again
    _read_until(master, b"interrupted -2 30")
    assert process.wait() == 0


def _await_foreground(master: int, group: int) -> None:
    """Until the terminal belongs to a process group: its leader may be ready before that."""
    while os.tcgetpgrp(master) != group:
        time.sleep(0.01)


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0]


# Makes the terminal the session's own, as a login shell does.
_OWN_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"


def _read_until(descriptor: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        chunk = os.read(descriptor, 4096)
        assert chunk, seen
        seen += chunk
    return seen
