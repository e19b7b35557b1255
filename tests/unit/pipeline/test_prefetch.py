# SPDX-License-Identifier: Apache-2.0
"""A profile and its cubins are opened in a thread, each once, and what is not wanted any more is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import CubinError, ProfileFormatError
from gpadvisor.pipeline import programs
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.prefetch import prefetched
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings

REQUEST = Request(settings=Settings())
CUBIN = tiny_cubin({"axpy": []})


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(write_report([LaunchSpec(kernel="axpy", cubin=CUBIN)] * 2))
    return path


def test_a_cubin_of_several_launches_is_opened_once(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def open_cubin(data: bytes, sections: frozenset[str], **_: Any) -> tuple[bytes, frozenset[str]]:
        threads.append(threading.current_thread())
        return data, sections

    monkeypatch.setattr(programs, "open_cubin", open_cubin)
    with prefetched(report, REQUEST, Cache(None)) as opened:
        (digest,) = {kernel.binary for kernel in opened.profile().kernels}
        assert digest is not None
        for _ in range(2):
            assert opened.cubin(digest) == (CUBIN, {"axpy"})
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


def test_errors_reach_who_asks(tmp_path: Path, report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_cubin(*_: Any, **__: Any) -> None:
        raise CubinError("torn")

    monkeypatch.setattr(programs, "open_cubin", open_cubin)
    with prefetched(report, REQUEST, Cache(None)) as opened:
        digest = opened.profile().kernels[0].binary
        assert digest is not None
        with pytest.raises(CubinError, match="torn"):
            opened.cubin(digest)
    with (
        prefetched(tmp_path / "absent.ncu-rep", REQUEST, Cache(None)) as opened,
        pytest.raises(ProfileFormatError, match="does not exist"),
    ):
        opened.profile()


def test_a_disassembly_that_nobody_waits_for_is_stopped(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = threading.Event(), threading.Event()

    def open_cubin(*_: Any, cancelled: Callable[[], bool], **__: Any) -> None:
        begun.set()
        while not cancelled():
            time.sleep(0.01)
        stopped.set()

    monkeypatch.setattr(programs, "open_cubin", open_cubin)
    with prefetched(report, REQUEST, Cache(None)) as opened:
        opened.profile()
        begun.wait()
    assert stopped.is_set()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists the threads of a process")
def test_numpy_starts_no_threads_and_the_environment_stays(report: Path) -> None:
    probe = (
        "import os, sys, threading, time; from pathlib import Path\n"
        "from gpadvisor.pipeline.cache import Cache; "
        "from gpadvisor.pipeline.prefetch import prefetched; from gpadvisor.pipeline.request import Request; "
        "from gpadvisor.pipeline.settings import Settings\n"
        "before = dict(os.environ)\n"
        "with prefetched(Path(sys.argv[1]), Request(settings=Settings()), Cache(None)) as opened:\n"
        "    opened.profile()\n"
        "    others = []\n"
        "    for _ in range(20):\n"  # one that ends is Python's no more before the system's
        "        others.append(len(os.listdir('/proc/self/task')) - threading.active_count())\n"
        "        time.sleep(0.01)\n"
        "    print('numpy' in sys.modules, before == dict(os.environ), min(others))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", probe, str(report)],
        capture_output=True, text=True, check=True, timeout=60, env=environment,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True", "0"]  # all threads are Python's
