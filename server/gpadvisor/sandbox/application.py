# SPDX-License-Identifier: Apache-2.0
"""Running the user's application under a collector: its terminal, its signals, and its end.

The application runs in a process group of its own. Where there is a terminal, that group gets it, so that
Ctrl-C, Ctrl-Z and typed input reach the application and not the collector, which keeps what was collected.
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

from gpadvisor.sandbox.tools import not_started

_POLL_SECONDS: Final = 0.05
_DEATH_SECONDS: Final = 2.0  # of the last of a group that was killed; nobody may be there to reap it
_FIRMER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_TERMINAL_STOPS: Final = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


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
    straggler_seconds: float = 0.0,
    poll: Callable[[float, bool], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Ended:
    """Run a program to its end with the caller's standard streams; nothing of its group outlives this call.

    To stop it, SIGINT is sent first, since that is what Ctrl-C would do; SIGTERM after ``grace_seconds``,
    SIGKILL after half of them more. Each Ctrl-C that comes here goes one step further at once.

    Args:
        command: the program and its arguments; no shell takes part.
        environment: added to the caller's own.
        directory: where it runs.
        timeout_seconds: after which it is stopped; None: it may run as long as it likes.
        grace_seconds: from one signal to the next.
        straggler_seconds: how long children of an application that has ended by itself may go on.
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
        raise not_started(command[0], error) from error
    try:
        with _terminal_of(process.pid) as follow_stops:
            run = _Run(process, timeout_seconds, grace_seconds, follow_stops)
            ended = run.until_end(poll, cancelled)
            if ended.ending is Ending.EXITED:
                _await_group(process.pid, straggler_seconds)
            return ended
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        _await_group(process.pid, _DEATH_SECONDS)


class _Run:
    """One running application and the signals that it was sent."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        timeout_seconds: float | None,
        grace_seconds: float,
        follow_stops: Callable[[], None],
    ) -> None:
        self._process = process
        self._begun = time.monotonic()
        self._deadline = None if timeout_seconds is None else self._begun + timeout_seconds
        self._grace_seconds = grace_seconds
        self._follow_stops = follow_stops
        self._ending = Ending.EXITED
        self._sent = 0  # signals so far
        self._next_at = 0.0

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
            self._follow_stops()
            time_now = time.monotonic()
            if self._sent:
                if time_now >= self._next_at:
                    self._stop(self._ending)
            elif cancelled is not None and cancelled():
                self._stop(Ending.CANCELLED)
            elif self._deadline is not None and time_now > self._deadline:
                self._stop(Ending.TIMED_OUT)
            if poll is not None:
                poll(time_now - self._begun, self._sent > 0)

    def _stop(self, why: Ending) -> None:
        """Ask the group to end, more firmly each time."""
        if not self._sent:
            self._ending = why
        _signal_group(self._process.pid, _FIRMER[min(self._sent, len(_FIRMER) - 1)])
        self._sent += 1
        self._next_at = time.monotonic() + self._grace_seconds / (1 if self._sent == 1 else 2)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        os.killpg(group, signal.SIGCONT)  # a stopped process would not hear of it


def _await_group(group: int, seconds: float) -> None:
    """Wait for the last member of a group whose leader has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except OSError:  # none is left, or none that is ours to signal
            return
        time.sleep(_POLL_SECONDS)


@contextmanager
def _terminal_of(group: int) -> Iterator[Callable[[], None]]:
    """Give a process group the terminal, where this process has it, and take it back at the end.

    What is yielded follows the application's stops. After a Ctrl-Z this process stops too, so that the shell
    notices, and both go on together. An application that used the terminal before it was given to it, which
    stops a process in the background, just goes on.
    """
    terminal = _own_terminal()
    if terminal is None:
        yield lambda: None
        return
    own_group = os.getpgrp()

    def follow() -> None:
        with contextlib.suppress(ChildProcessError):
            stopped = os.waitid(os.P_PID, group, os.WSTOPPED | os.WNOHANG)
            if stopped is None or stopped.si_status not in _TERMINAL_STOPS:
                return
            if stopped.si_status == signal.SIGTSTP:
                _hand_over(terminal, own_group)
                os.kill(os.getpid(), signal.SIGSTOP)
                _hand_over(terminal, group)
            _signal_group(group, signal.SIGCONT)

    try:
        _hand_over(terminal, group)
        yield follow
    finally:
        _hand_over(terminal, own_group)


def _hand_over(terminal: int, group: int) -> None:
    # Asking from the background would stop this process; blocked, the signal does no harm in any thread.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(terminal, group)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _own_terminal() -> int | None:
    """The terminal on standard input, if this process group is in its foreground."""
    try:
        terminal = sys.stdin.fileno()
        return terminal if os.isatty(terminal) and os.tcgetpgrp(terminal) == os.getpgrp() else None
    except (OSError, ValueError, AttributeError):
        return None
