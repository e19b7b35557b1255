# SPDX-License-Identifier: Apache-2.0
"""Keeps the protocol stream to the protocol: what anything in this process or its children prints is logged."""

from __future__ import annotations

import os
import sys
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
    """Import nothing from the current folder: it belongs to the project, and ``python -m`` lets it come first."""
    here = os.path.realpath(os.curdir)  # noqa: PTH118 as the interpreter has made it
    own = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120, PTH118 same
    sys.path[:] = [
        entry
        for entry in sys.path
        if os.path.realpath(entry or os.curdir) in {own} or os.path.realpath(entry or os.curdir) != here  # noqa: PTH118 same
    ]
