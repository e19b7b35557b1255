# SPDX-License-Identifier: Apache-2.0
"""Running the user's application under a collector: its terminal, its signals, and its end.

The application runs in a process group of its own. Where there is a terminal, that group gets it, so that
Ctrl-C and typed input reach the application and not the collector, which then keeps what was collected.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolNotFoundError

_POLL_SECONDS: Final = 0.05


class Ending(Enum):
    """Why the application is no longer running."""

    EXITED = "exited"  # by itself; its status says how
    INTERRUPTED = "interrupted"  # Ctrl-C
    CANCELLED = "cancelled"  # the caller asked to stop
    TIMED_OUT = "timed out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An application that has ended."""

    status: int  # negative: ended by that signal
    ending: Ending
    seconds: float


def run_application(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    timeout_seconds: float | None = None,
    grace_seconds: float = 10.0,
    poll: Callable[[float, bool], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Ended:
    """Run a program to its end with the caller's standard streams; nothing of its group outlives this call.

    To stop it, SIGINT is sent first, since that is what Ctrl-C would do; SIGTERM after ``grace_seconds``,
    SIGKILL after half of them more.

    Args:
        command: the program and its arguments; no shell takes part.
        environment: added to the caller's own.
        directory: where it runs.
        timeout_seconds: after which it is stopped; None: it may run as long as it likes.
        grace_seconds: from one signal to the next.
        poll: called about twenty times a second with the seconds so far and whether it is being stopped.
        cancelled: asked as often; when true, the application is stopped.

    Raises:
        ToolNotFoundError: the program does not exist or may not be run.
    """
    try:
        process = subprocess.Popen(
            list(command),
            cwd=directory,
            env={**os.environ, **(environment or {})},
            process_group=0,
        )
    except (OSError, ValueError) as error:
        raise ToolNotFoundError(
            f"{command[0]} cannot be started ({getattr(error, 'strerror', None) or error}); check its path"
        ) from error
    run = _Run(process, timeout_seconds, grace_seconds)
    try:
        with _terminal_of(process.pid):
            return run.until_end(poll, cancelled)
    finally:
        _end_group(process)


class _Run:
    """One running application and the signals that it was sent."""

    def __init__(
        self, process: subprocess.Popen[bytes], timeout_seconds: float | None, grace_seconds: float
    ) -> None:
        self._process = process
        self._begun = time.monotonic()
        self._deadline = None if timeout_seconds is None else self._begun + timeout_seconds
        self._grace_seconds = grace_seconds
        self._ending = Ending.EXITED
        self._to_send = [
            (0.0, signal.SIGINT),
            (grace_seconds, signal.SIGTERM),
            (grace_seconds * 1.5, signal.SIGKILL),
        ]
        self._stopping_since: float | None = None

    def until_end(
        self, poll: Callable[[float, bool], None] | None, cancelled: Callable[[], bool] | None
    ) -> Ended:
        """Wait; a Ctrl-C that comes here, for want of a terminal, is passed on."""
        while True:
            try:
                status = self._wait(poll, cancelled)
            except KeyboardInterrupt:
                self._stop(Ending.INTERRUPTED)
                continue
            seconds = time.monotonic() - self._begun
            if status == -signal.SIGINT and self._ending is Ending.EXITED:
                self._ending = Ending.INTERRUPTED  # from the terminal, past this process
            return Ended(status=status, ending=self._ending, seconds=seconds)

    def _wait(self, poll: Callable[[float, bool], None] | None, cancelled: Callable[[], bool] | None) -> int:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(_POLL_SECONDS)
            now = time.monotonic()
            if cancelled is not None and cancelled():
                self._stop(Ending.CANCELLED)
            elif self._deadline is not None and now > self._deadline:
                self._stop(Ending.TIMED_OUT)
            self._send_what_is_due(now)
            if poll is not None:
                poll(now - self._begun, self._stopping_since is not None)

    def _stop(self, why: Ending) -> None:
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
            self._ending = why
            self._send_what_is_due(self._stopping_since)

    def _send_what_is_due(self, now: float) -> None:
        while (
            self._stopping_since is not None
            and self._to_send
            and now - self._stopping_since >= self._to_send[0][0]
        ):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, self._to_send.pop(0)[1])


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Nothing of the group stays; the application itself has ended unless an error came up here."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _terminal_of(group: int) -> Iterator[None]:
    """Give a process group the terminal, where this process has it, and take it back at the end."""
    terminal = _own_terminal()
    if terminal is None:
        yield
        return
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # taking it back from the background is no offence
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, before)


def _own_terminal() -> int | None:
    """The terminal on standard input, if this process group is in its foreground."""
    try:
        terminal = sys.stdin.fileno()
        return terminal if os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None
