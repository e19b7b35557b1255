# SPDX-License-Identifier: Apache-2.0
"""Text that is longer than the terminal goes through a pager, as git has it: PAGER, else less with FRX."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading

_LINES = 24


def page(text: str) -> bool:
    """Show a text in a pager; False where none is wanted, needed or there."""
    command = _pager()
    if (
        not command
        or not sys.stdout.isatty()
        or text.count("\n") < shutil.get_terminal_size((80, _LINES)).lines
    ):
        return False
    import subprocess  # noqa: PLC0415 most text is short, or goes to a pipe

    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env={"LESS": "FRX", "LV": "-c", **os.environ},
            encoding="utf-8",
            errors="replace",
        )
    except OSError:
        return False
    # Ctrl-C is the pager's. It is ignored after the start, since a child would begin with that.
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main else None
    try:
        process.communicate(text)
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
    return True


def _pager() -> list[str]:
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return []
    return [] if command == ["cat"] else command
