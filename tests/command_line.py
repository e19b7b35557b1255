# SPDX-License-Identifier: Apache-2.0
"""The command line, run in this process: for what it says and writes, which takes no start of Python."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from gpadvisor.cli import main


class Done(NamedTuple):
    """How a command ended."""

    code: int
    said: str  # on standard output
    complained: str  # on standard error


def gpadvisor(*words: str, cwd: Path) -> Done:
    """Run a command in a folder, with a cache below it."""
    said, complained = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, GPADVISOR_CACHE=str(cwd / "cache")),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
    ):
        code = main(words)
    return Done(code, said.getvalue(), complained.getvalue())
