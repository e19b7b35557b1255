# SPDX-License-Identifier: Apache-2.0
"""Modules of this package that run as a process of their own: what they read may crash or never end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from gpadvisor.files import scratch_folder
from gpadvisor.sandbox.tools import run_tool


def ask_child(
    module: str,
    request: bytes,
    *,
    timeout_seconds: float,
    memory_bytes: int,
    output_bytes: int,
    cancelled: Callable[[], bool] | None = None,
) -> bytes:
    """What a module of this package answers to a request, which it finds in the file that it is given.

    Raises:
        ToolError: it failed, took too long, said too much or was cancelled.
    """
    with scratch_folder() as folder:
        path = folder / "request"
        path.write_bytes(request)
        return run_tool(
            [sys.executable, "-P", "-s", "-m", f"gpadvisor.pipeline.{module}", path],
            timeout_seconds=timeout_seconds,
            memory_bytes=memory_bytes,
            output_bytes=output_bytes,
            cancelled=cancelled,
            directory=folder,
            environment={
                # The child must find this very package, wherever the caller found it.
                "PYTHONPATH": os.pathsep.join(str(Path(part).absolute()) for part in sys.path if part),
                "OPENBLAS_NUM_THREADS": "1",  # each reserves memory, which counts against the limit
            },
        ).stdout
