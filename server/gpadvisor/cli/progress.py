# SPDX-License-Identifier: Apache-2.0
"""Says on standard error what takes long, where somebody is looking."""

from __future__ import annotations

import sys
import time
from typing import Final

QUIET_SECONDS: Final = 1.0


class TerminalProgress:
    """One line on a terminal that is rewritten, and removed at the end; silent for the first second."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shown = 0
        self._enabled = sys.stderr.isatty()

    def __call__(self, stage: str) -> None:
        """Show what is being done now."""
        if not self._enabled or time.monotonic() - self._start < QUIET_SECONDS:
            return
        line = f"gpadvisor: {stage} ..."[:78]
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            sys.stderr.write("\r" + " " * self._shown + "\r")
            sys.stderr.flush()
            self._shown = 0
