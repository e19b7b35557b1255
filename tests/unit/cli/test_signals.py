# SPDX-License-Identifier: Apache-2.0
"""A signal ends a command without leaving tools or files behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.tiny_cubin import tiny_cubin

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no process groups on Windows")

TOOL = """#!/bin/sh
case "$1" in
  --version) echo "nvdisasm: V13.5.37"; exit;;
  --help) echo "'SM80' 'SM86' -json"; exit;;
esac
echo $$ > "{place}"
exec sleep 100
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
    deadline = time.monotonic() + 20
    while not (place.exists() and place.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == code, complaint
    assert b"Traceback" not in complaint
    assert not list(temporary.iterdir())
    assert not (tmp_path / "out.txt").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)
