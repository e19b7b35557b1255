# SPDX-License-Identifier: Apache-2.0
"""Standard streams that are closed or full."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpadvisor.cli import main
from gpadvisor.cli.options import write_output


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_stream_is_no_error(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["rules"]) == 0
    assert main(["advise", "absent.ncu-rep", "--no-cache"]) == 3
    getattr(sys, stream).close()


def test_a_full_standard_output_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="No space left on device") as error:
        write_output("text", None)
    assert error.value.filename == "standard output"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["advise", "--help"], [], ["rules"]])
def test_what_is_lost_in_the_buffer_is_an_error(arguments: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "gpadvisor", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
