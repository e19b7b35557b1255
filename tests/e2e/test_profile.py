# SPDX-License-Identifier: Apache-2.0
"""``gpadvisor profile`` from the command line: a stand-in for Nsight Compute with a real report behind it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import stand_in_ncu as stand_in
from tests.ncu_writer import without_samples, write_report
from tests.sampled import sampled_launch
from tests.stand_in_ncu import stand_in_ncu
from tests.tools import program

from gpadvisor.model.profile import Evidence
from gpadvisor.store.load import load_profile

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]
_GPADVISOR = [sys.executable, "-m", "gpadvisor"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "measured.ncu-rep"
    path.write_bytes(write_report([sampled_launch("thermal_stencil", scale=10)]))
    return path


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "counted.ncu-rep"
    path.write_bytes(write_report([without_samples(sampled_launch("thermal_stencil"))]))
    return path


def _run(
    ncu: Path, folder: Path, *arguments: str, application: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    application = application or [str(program(folder / "app", "print('the application speaks')"))]
    return subprocess.run(
        [*_GPADVISOR, "profile", "--collector", "ncu", *arguments, "--", *application],
        cwd=folder,
        env={**os.environ, "GPADVISOR_NCU": str(ncu)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_advice_on_an_application(tmp_path: Path, report: Path) -> None:
    done = _run(stand_in_ncu(tmp_path / "ncu", report=report), tmp_path, "--kernel", "stencil")
    assert done.returncode == 0, done.stderr
    assert "the application speaks" in done.stdout
    assert "GPA" in done.stdout
    assert "replayed several times" in done.stderr  # the cost is said
    assert done.stderr.count("GPU time they are is not known") == 1  # launches were picked
    assert "cover" not in done.stderr
    profile = load_profile(tmp_path / "profile.gpadvisor")
    assert profile.kernels[0].evidence is Evidence.MEASURED
    assert profile.disassemblies


def test_a_refusal_of_the_counters_takes_the_next_step_and_says_so(tmp_path: Path, counts: Path) -> None:
    ncu = stand_in_ncu(tmp_path / "ncu", report=counts, refuses_counters=stand_in.PERMISSION)
    done = _run(ncu, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ERR_NVGPUCTRPERM" in done.stderr
    assert "Going on with" in done.stderr
    assert "these executed counts cover 100.0 % of the GPU time that was seen" in done.stderr
    profile = load_profile(tmp_path / "profile.gpadvisor")
    assert profile.kernels[0].evidence is Evidence.COUNTED
    assert "! Executed counts only: the driver refuses performance counters" in " ".join(done.stdout.split())


def test_no_ncu_is_one_sentence_with_the_next_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [*_GPADVISOR, "profile", "--collector", "ncu", "--", "true"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert "Nsight Compute was not found" in done.stderr
    assert not (tmp_path / "profile.gpadvisor").exists()


def test_a_damaged_report_leaves_no_snapshot(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ncu-rep"
    broken.write_bytes(b"NVR\0garbage")
    done = _run(stand_in_ncu(tmp_path / "ncu", report=broken), tmp_path)
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "profile.gpadvisor").exists()


def test_the_report_is_kept_when_asked(tmp_path: Path, report: Path) -> None:
    ncu = stand_in_ncu(tmp_path / "ncu", report=report)
    done = _run(ncu, tmp_path, "--keep-report", "kept.ncu-rep", "--no-advice", "-o", "run.gpadvisor")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept.ncu-rep").read_bytes() == report.read_bytes()
    assert (tmp_path / "run.gpadvisor").is_file()
    assert done.stdout == "the application speaks\n"


def test_ctrl_c_on_a_terminal_reaches_the_application_and_keeps_the_data(
    tmp_path: Path, report: Path
) -> None:
    """The application ends as it would want; gpadvisor goes on and writes the snapshot."""
    application = program(
        tmp_path / "app",
        "def end(*_):\n    print('asked to end', flush=True)\n    sys.exit(3)\n"
        "signal.signal(signal.SIGINT, end)\nprint('ready', flush=True)\ntime.sleep(600)",
    )
    ncu = stand_in_ncu(tmp_path / "ncu", report=report)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["GPADVISOR_NCU"] = str(ncu)
        os.execv(
            sys.executable,
            [*_GPADVISOR, "profile", "--collector", "ncu", "--no-advice", "--", str(application)],
        )
    said = _read_until(terminal, b"ready")
    while os.tcgetpgrp(terminal) == pid:  # not handed over yet
        time.sleep(0.01)
    os.write(terminal, b"\x03")
    said += _read_until(terminal, b"samples by")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said.decode()
    assert b"asked to end" in said
    assert b"ended with status 3" in said
    assert (tmp_path / "profile.gpadvisor").is_file()


def _read_until(terminal: int, words: bytes) -> bytes:
    said = b""
    deadline = time.monotonic() + 250
    while words not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:  # the other end is gone
                break
    assert words in said, said.decode()
    return said
