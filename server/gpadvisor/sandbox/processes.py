# SPDX-License-Identifier: Apache-2.0
"""Ending a process with everything it has started, whatever sessions and groups that has made."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h


def descendants(pid: int) -> list[int]:
    """Every process that a process has started, directly or not, as the system knows them now."""
    children: dict[int, list[int]] = defaultdict(list)
    with contextlib.suppress(OSError):
        for entry in _PROC.iterdir():
            if entry.name.isdigit() and (parent := _parent(entry)) is not None:
                children[parent].append(int(entry.name))
    result: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children[waiting.pop()]:
            result.append(child)
            waiting.append(child)
    return result


def _parent(entry: Path) -> int | None:
    """The parent of a process; its name in the file may hold blanks and brackets."""
    try:
        text = (entry / "stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rfind(b")") + 1 :].split()
    return int(fields[1]) if len(fields) > 1 else None


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants, leaders of sessions with their groups; nothing is left out.

    The process itself comes last, so that nobody has been given to another parent before it was seen.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if pid != os.getpid():
            os.kill(pid, signal.SIGSTOP)
    for child in descendants(pid):
        _kill(child)
    _kill(pid)


def kill_children() -> None:
    """Kill everything that this process has started and that still runs."""
    for child in descendants(os.getpid()):
        _kill(child)


def adopt_orphans() -> None:
    """Stay the ancestor of what children leave behind, so that it can be found."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
