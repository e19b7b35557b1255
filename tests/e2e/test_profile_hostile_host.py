# SPDX-License-Identifier: Apache-2.0
"""A host that answers what it likes: nothing but the folder that was made there is ever removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SSH = """#!/bin/sh
for last; do :; done
printf '%s\\n' "$last" >>"$LOG"
mark=$(printf '%s' "$last" | grep -o 'gpadvisor-[0-9a-f]*' | head -1)
echo "$mark"
case "$last" in *mkdir* | *mktemp*) printf '%s\\n' "$ANSWER" ;; esac
"""


@pytest.mark.parametrize(
    "answer",
    [
        "folder /",
        "folder /home",
        "folder /tmp/gpadvisor-0",
        "folder ../..",
        "folder",
        "welcome",
        "folder /a b",
    ],
)
def test_a_folder_that_is_not_ours_is_not_removed(tmp_path: Path, answer: str) -> None:
    (tmp_path / "ssh").write_text(_SSH, encoding="utf-8")
    (tmp_path / "ssh").chmod(0o755)
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-m", "gpadvisor", "profile", "--host", "box", "--", "./app"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "LOG": str(log),
            "ANSWER": f"{answer}\nncu /usr/bin/ncu",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "internal error" not in done.stderr
    asked = log.read_text(encoding="utf-8")
    assert "mkdir" in asked or "mktemp" in asked
    assert "rm -rf" not in asked
