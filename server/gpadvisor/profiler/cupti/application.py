# SPDX-License-Identifier: Apache-2.0
"""One application in a process group of its own: terminal, signals, and an end to all of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolNotFoundError

_LAST_SECONDS: Final = 2.0  # from SIGTERM to SIGKILL for what the application left behind
_POLL_SECONDS: Final = 0.02


class Application:
    """The running application; ``end`` leaves nothing of its process group."""

    def __init__(
        self, command: Sequence[str], *, directory: Path | None, environment: Mapping[str, str]
    ) -> None:
        try:
            self._process = subprocess.Popen(
                list(command), cwd=directory, env=dict(environment), process_group=0
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ToolNotFoundError(
                f"{command[0]} cannot be started ({reason}); check the program after --"
            ) from error
        self._terminal = _Terminal(self._process.pid)

    def poll(self) -> int | None:
        """The exit status once it has ended; negative: by that signal."""
        status = self._process.poll()
        if status is None:
            self._terminal.follow_stops()
        return status

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
            os.killpg(self._process.pid, signal.SIGCONT)  # a stopped process would not hear of it

    def end(self, patience_seconds: float) -> int:
        """Wait for what is left of the group, then stop it; returns the application's exit status."""
        try:
            for number, seconds in ((None, patience_seconds), (signal.SIGTERM, _LAST_SECONDS)):
                if number is not None:
                    self.send(number)
                if self._gone_within(seconds):
                    break
        finally:
            self.send(signal.SIGKILL)
            status = self._process.wait()
            self._terminal.take_back()
        return status

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._process.poll()
            try:
                os.killpg(self._process.pid, 0)
            except ProcessLookupError:
                return True
            except PermissionError:  # members that run as another user
                return False
            time.sleep(_POLL_SECONDS)
        return False


class _Terminal:
    """The terminal, lent to the application's group: it reads keys, and Ctrl-C and Ctrl-Z go to it."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._own = os.getpgrp()
        self._descriptor = self._controlling()
        self._give()

    def _controlling(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            descriptor = sys.__stdin__.fileno()  # type: ignore[union-attr]  # None without a standard input
            if os.isatty(descriptor) and os.tcgetpgrp(descriptor) == self._own:
                return descriptor
        return None

    def _give(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(self._descriptor, self._group)
            # It may have tried to read before that, which stops a background process.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, signal.SIGCONT)

    def take_back(self) -> None:
        """Make the caller's group the one in the foreground again."""
        if self._descriptor is None:
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            with contextlib.suppress(OSError):
                os.tcsetpgrp(self._descriptor, self._own)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def follow_stops(self) -> None:
        """Where Ctrl-Z stopped the application, stop too, so that the shell notices; go on together."""
        if self._descriptor is None:
            return
        try:
            stopped = os.waitid(os.P_PID, self._group, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:
            return
        if stopped is not None and stopped.si_status == signal.SIGTSTP:
            self.take_back()
            os.kill(os.getpid(), signal.SIGSTOP)
            self._give()
