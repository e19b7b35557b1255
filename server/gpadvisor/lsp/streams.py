# SPDX-License-Identifier: Apache-2.0
"""Keeps the protocol stream to the protocol: what this process or its children print is logged."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO


def take_wire() -> tuple[BinaryIO, BinaryIO]:
    """The streams to the client, under other numbers; 0 reads nothing and 1 writes to standard error."""
    source, wire = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return source, wire


def leave_workspace() -> None:
    """Import nothing from the current folder: ``python -m`` puts it first, and it belongs to the project."""
    workspace, package_root = Path.cwd().resolve(), Path(__file__).resolve().parents[2]
    if workspace != package_root:
        sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != workspace]
