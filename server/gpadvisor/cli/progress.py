# SPDX-License-Identifier: Apache-2.0
"""Says on standard error what takes long."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from typing import Final

QUIET_SECONDS: Final = 1.0
PLAIN_SECONDS: Final = 20.0
_TICK_SECONDS: Final = 1.0
_COUNTED_SECONDS: Final = 3


class TerminalProgress:
    """One line on a terminal that is rewritten, and removed at the end; silent for the first second.

    Elsewhere a stage that takes longer than ``PLAIN_SECONDS`` gets a line of its own, once. With ``ticking``,
    how long a stage takes is counted, so that it never stands still; without, only a terminal is told.
    """

    def __init__(self, *, ticking: bool = True) -> None:
        self._start = self._since = time.monotonic()
        self._shown = 0
        self._stage: str | None = None
        self._on_terminal = sys.stderr.isatty()
        self._ticking = ticking
        self._ticker: threading.Thread | None = None
        self._lock = threading.Lock()

    def __call__(self, stage: str) -> None:
        """Show what is being done now."""
        if not (self._on_terminal or self._ticking):
            return
        with self._lock:
            self._stage, self._since = stage, time.monotonic()
            if self._on_terminal:
                self._draw()
            if self._ticking and self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, daemon=True)
                self._ticker.start()

    def clear(self) -> None:
        """Remove the line."""
        with self._lock:
            self._stage = self._ticker = None
            if self._shown:
                sys.stderr.write("\r" + " " * self._shown + "\r")
                sys.stderr.flush()
                self._shown = 0

    def _tick(self) -> None:
        while True:
            time.sleep(_TICK_SECONDS)
            with self._lock, contextlib.suppress(OSError, ValueError):  # a stream that is gone
                if self._ticker is not threading.current_thread():
                    return
                if self._on_terminal:
                    self._draw()
                else:
                    self._tell()

    def _tell(self) -> None:
        seconds = time.monotonic() - self._since
        if self._stage is not None and seconds >= PLAIN_SECONDS:
            sys.stderr.write(f"gpadvisor: {self._stage}, {int(seconds)} s so far\n")
            sys.stderr.flush()
            self._stage = None

    def _draw(self) -> None:
        time_now = time.monotonic()
        if self._stage is None or time_now - self._start < QUIET_SECONDS:
            return
        seconds = int(time_now - self._since)
        passed = f" {seconds} s" if seconds >= _COUNTED_SECONDS else ""
        columns = min(80, shutil.get_terminal_size().columns) - 1  # the last one would begin a line
        line = f"gpadvisor: {self._stage} ..."[: max(1, columns - len(passed))] + passed
        sys.stderr.write("\r" + line.ljust(self._shown))
        sys.stderr.flush()
        self._shown = len(line)
