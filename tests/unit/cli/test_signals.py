# SPDX-License-Identifier: Apache-2.0
"""A signal ends a command without leaving tools or files behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tiny_cubin import tiny_cubin

from gpadvisor import cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no process groups on Windows")

TOOL = """#!/bin/sh
case "$1" in
  --version) echo "nvdisasm: V13.5.37"; exit;;
  --help) echo "'SM80' 'SM86' -json"; exit;;
esac
echo $$ > "{place}"
exec sleep 100
"""

STARTING = """
import subprocess, sys, time
from pathlib import Path
from gpadvisor import cli

def start(_):
    process = subprocess.Popen(["sleep", "100"], start_new_session=True)
    Path("{place}").write_text(str(process.pid))
    time.sleep(100)  # the constructor has not come back

cli._run = start
sys.exit(cli.main([]))
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_tool_and_the_files_go_too(tmp_path: Path, number: signal.Signals, code: int) -> None:
    place, tool, cubin, temporary = (tmp_path / name for name in ("pid", "nvdisasm", "a.cubin", "temporary"))
    tool.write_text(TOOL.format(place=place))
    tool.chmod(0o755)
    cubin.write_bytes(tiny_cubin({"k": []}))
    temporary.mkdir()
    environment = os.environ | {
        "GPADVISOR_NVDISASM": str(tool), "GPADVISOR_CACHE": "", "TMPDIR": str(temporary)
    }  # fmt: skip
    command = [sys.executable, "-m", "gpadvisor", "advise", str(cubin), "-o", str(tmp_path / "out.txt")]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    _await(lambda: place.exists() and bool(place.read_text().strip()))
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == code, complaint
    assert b"Traceback" not in complaint
    assert not list(temporary.iterdir())
    assert not (tmp_path / "out.txt").exists()
    _await(lambda: _gone(int(place.read_text())))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_tool_that_was_just_being_started_goes_too(tmp_path: Path, number: signal.Signals) -> None:
    place = tmp_path / "pid"
    process = subprocess.Popen([sys.executable, "-c", STARTING.format(place=place)], stderr=subprocess.PIPE)
    _await(lambda: place.exists() and bool(place.read_text().strip()))
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    _await(lambda: _gone(int(place.read_text())))


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Nobody may have asked for its status yet.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


class _Callback:
    """Something that is called from where an exception cannot go on."""

    def __del__(self) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_that_native_code_dropped_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        _Callback()
        raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(cli, "_run", run)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == "gpadvisor: error: interrupted\n"
