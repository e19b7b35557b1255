# SPDX-License-Identifier: Apache-2.0
"""Run an application under Nsight Compute, follow what it says, and keep its report."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolFailedError
from gpadvisor.profiler.ncu.abilities import Abilities, find_ncu
from gpadvisor.profiler.ncu.command_line import command_line
from gpadvisor.profiler.ncu.messages import Log, NcuRefusal, kernel_of, refusal
from gpadvisor.profiler.ncu.options import NcuOptions
from gpadvisor.sandbox.application import Ended, Ending, run_application

_BEAT_SECONDS: Final = 1.0
_MAX_LOG_BYTES: Final = 64 << 20
_EXIT_CODE: Final = re.compile(r"application returned an error code \((-?\d+)\)")


class CounterPermissionError(ToolFailedError):
    """The driver refuses performance counters; executed counts may still be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuHeartbeat:
    """Where a collection is."""

    seconds: float
    kernel: str | None  # being profiled
    launches: int
    passes: int | None  # that the last launch took
    stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuCollection:
    """A finished collection."""

    report: Path
    ncu: Abilities
    command: tuple[str, ...]
    ending: Ending
    seconds: float
    launches: int
    passes: int | None
    notes: tuple[str, ...]  # what ncu warned of, and how the application ended


def collect_by_ncu(
    application: Sequence[str],
    folder: Path,
    options: NcuOptions,
    *,
    ncu: Abilities | None = None,
    timeout_seconds: float | None = None,
    progress: Callable[[NcuHeartbeat], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> NcuCollection:
    """Profile ``application``; the report and ncu's log are written to ``folder``.

    The application's own output passes through; ncu's goes to a file.

    Raises:
        ToolNotFoundError: there is no ncu, or no such application.
        CounterPermissionError: the driver refuses performance counters to this user.
        ToolFailedError: ncu ended without a report; the message says why and what to do.
    """
    ncu = ncu or find_ncu()
    # Without a suffix, releases write different ones: .ncu-rep, and from 2026.3 on .ncu-repz.
    report, log = folder / "report.ncu-rep", folder / "ncu.log"
    command = command_line(ncu, options, report=report, log=log, application=application)
    follow = _Follow(log, progress)
    ended = run_application(command, timeout_seconds=timeout_seconds, poll=follow.poll, cancelled=cancelled)
    ncu_log = follow.finish()
    result = next((path for path in sorted(folder.glob("report*")) if path.stat().st_size), None)
    if result is None:
        raise no_report(ncu, application, ncu_log, ended)
    return NcuCollection(
        report=result,
        ncu=ncu,
        command=command,
        ending=ended.ending,
        seconds=ended.seconds,
        launches=ncu_log.launches,
        passes=ncu_log.passes,
        notes=tuple(_notes(ncu_log, ended)),
    )


class _Follow:
    """Reads ncu's log as it grows."""

    def __init__(self, log: Path, progress: Callable[[NcuHeartbeat], None] | None) -> None:
        self._log, self._progress = log, progress
        self._said = Log()
        self._position = 0
        self._rest = ""
        self._last_beat = 0.0

    def poll(self, seconds: float, stopping: bool) -> None:  # noqa: FBT001 the runner calls it so
        """Called often; looks once a second."""
        if seconds - self._last_beat < _BEAT_SECONDS:
            return
        self._last_beat = seconds
        self._read()
        if self._progress is not None:
            self._progress(
                NcuHeartbeat(
                    seconds=seconds,
                    kernel=kernel_of(self._rest) or self._said.kernel,
                    launches=self._said.launches,
                    passes=self._said.passes,
                    stopping=stopping,
                )
            )

    def finish(self) -> Log:
        """Everything that was said."""
        self._read()
        self._said.take([self._rest])
        return self._said

    def _read(self) -> None:
        try:
            with self._log.open("rb") as file:
                file.seek(self._position)
                new = file.read(max(0, _MAX_LOG_BYTES - self._position))
        except OSError:  # ncu has not made it yet, or nobody may read it
            return
        self._position += len(new)
        *lines, self._rest = (self._rest + new.decode("utf-8", "replace")).split("\n")
        self._said.take(lines)


def no_report(ncu: Abilities, application: Sequence[str], log: Log, ended: Ended) -> ToolFailedError:
    """Why there is no report, from what was said."""
    ncu_refusal = refusal(log)
    if ncu_refusal is not None:
        return _refused(ncu_refusal, log)
    if ended.ending is not Ending.EXITED:
        return ToolFailedError(
            f"{ncu} wrote no report: the run was {ended.ending.value} before a kernel was profiled"
        )
    complaint = f": {log.errors[0]}" if log.errors else ""
    return ToolFailedError(
        f"{ncu} ended with status {ended.status} and without a report for {application[0]}{complaint}; "
        "gpadvisor doctor looks at this machine"
    )


def _refused(ncu_refusal: NcuRefusal, log: Log) -> ToolFailedError:
    kind = CounterPermissionError if ncu_refusal.permission else ToolFailedError
    message = log.errors[0] if log.errors else log.warnings[0]
    return kind(f"{ncu_refusal.sentence}; ncu said: {message}")


def _notes(log: Log, ended: Ended) -> list[str]:
    notes = [f"ncu warned: {text}" for text in dict.fromkeys(log.warnings)]
    for text in dict.fromkeys(log.errors):
        code = _EXIT_CODE.search(text)
        notes.append(f"the application ended with status {code[1]}" if code else f"ncu reported: {text}")
    if ended.ending is not Ending.EXITED:
        notes.append(f"the run was {ended.ending.value}; the report holds the launches until then")
    return notes
