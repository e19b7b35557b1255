# SPDX-License-Identifier: Apache-2.0
"""What a child process may use, and that it ends with the one that started it; the standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import Final

_SET_PARENT_DEATH_SIGNAL: Final = 1  # linux/prctl.h


def limit_memory(memory_bytes: int) -> None:
    """Bound the address space of this process where the system can; a crash leaves no core file."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 absent on Windows

        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_AS, memory_bytes)


def limit_time_and_files(cpu_seconds: int, file_bytes: int) -> None:
    """Bound the processor time of this process and the size of each file that it writes."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 absent on Windows

        _limit(resource.RLIMIT_CPU, cpu_seconds)
        _limit(resource.RLIMIT_FSIZE, file_bytes)


def _limit(kind: int, amount: int) -> None:
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 absent on Windows

        with contextlib.suppress(ValueError, OSError):  # a kind that macOS ignores
            _, hard = resource.getrlimit(kind)
            lowest = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
            resource.setrlimit(kind, (lowest, hard))


def end_with_parent() -> None:
    """Have the system kill this process when the one that started it is killed and cannot."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it has ended meanwhile
        os._exit(1)
