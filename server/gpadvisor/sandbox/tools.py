# SPDX-License-Identifier: Apache-2.0
"""Running one external tool: no shell, an own process group, limits of time, memory and output."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from gpadvisor.errors import CancelledError, ToolFailedError, ToolNotFoundError, ToolTimeoutError

DEFAULT_MEMORY_BYTES: Final = 8 << 30
DEFAULT_OUTPUT_BYTES: Final = 1 << 30

_ERROR_TEXT_BYTES: Final = 1 << 16
_CHUNK_BYTES: Final = 1 << 18
_POLL_SECONDS: Final = 0.05
# How long to read on when the tool has ended but something that it started still holds its output open.
_STRAGGLER_SECONDS: Final = 0.5
# What a compiler needs to find its own parts; everything else that could steer it stays outside.
_ENVIRONMENT: Final = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
# By the system's error; any other is of the path.
_STEPS: Final = {
    errno.E2BIG: "give it fewer or shorter arguments, or a smaller environment",
    errno.ENOEXEC: "give a program of this machine, or a script that names its interpreter",
    errno.EINVAL: "leave out the characters that no argument can have",
    **dict.fromkeys((errno.ENOMEM, errno.EAGAIN), "end what else runs here, and try again"),
}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool printed, and how it ended."""

    stdout: bytes
    stderr: str  # its first 64 KiB
    status: int  # exit status; negative: ended by that signal
    seconds: float


def run_tool(
    command: Sequence[str | Path],
    *,
    timeout_seconds: float,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    output_bytes: int = DEFAULT_OUTPUT_BYTES,
    cancelled: Callable[[], bool] | None = None,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> ToolOutput:
    """Run a tool to its end, and nothing of it survives this call.

    With ``check``, an exit status other than zero is a ToolFailedError.

    Raises:
        ToolNotFoundError: the program does not exist or may not be run.
        ToolFailedError: it failed, or printed more than ``output_bytes``.
        ToolTimeoutError: it did not end in time and was stopped.
        CancelledError: ``cancelled`` returned True.
    """
    arguments = [os.fspath(part) for part in command]
    name = Path(arguments[0]).name
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=_clean_environment(environment),
            start_new_session=True,
            close_fds=True,
        )
    except (OSError, ValueError) as error:
        raise not_started(arguments[0], error) from error
    try:
        _limit_memory(process.pid, memory_bytes)
        run = _Run(name, process, begun + timeout_seconds, timeout_seconds, output_bytes, cancelled)
        stdout, stderr = run.collect()
    finally:
        _end(process)
    output = ToolOutput(stdout, stderr, process.returncode, time.monotonic() - begun)
    if check and output.status != 0:
        raise ToolFailedError(describe_failure(name, output))
    return output


def not_started(program: str, error: OSError | ValueError) -> ToolNotFoundError:
    """The sentence about a program that the system did not start, with what to do about it."""
    number = error.errno if isinstance(error, OSError) else errno.EINVAL
    step = _STEPS.get(number or 0, "check its path")
    return ToolNotFoundError(
        f"{program} cannot be started ({getattr(error, 'strerror', None) or error}); {step}"
    )


def describe_failure(name: str, output: ToolOutput) -> str:
    """One sentence: how the tool ended and the first thing it complained about."""
    if output.status < 0:
        try:
            how = f"was ended by signal {signal.Signals(-output.status).name}"
        except ValueError:
            how = f"was ended by signal {-output.status}"
    else:
        how = f"ended with status {output.status}"
    complaint = first_error(output.stderr)
    return f"{name} {how}" + (f": {complaint}" if complaint else "")


def first_error(text: str) -> str:
    """The first line of an output that speaks of an error, or its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (wrong or lines or [""])[0][:300]


class _Run:
    """Collects the output of one running process until it ends or breaks a limit."""

    def __init__(
        self,
        name: str,
        process: subprocess.Popen[bytes],
        deadline: float,
        timeout_seconds: float,
        output_bytes: int,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._name = name
        self._process = process
        self._deadline = deadline
        self._timeout_seconds = timeout_seconds
        self._output_bytes = output_bytes
        self._cancelled = cancelled
        self._stdout = bytearray()
        self._stderr = bytearray()

    def collect(self) -> tuple[bytes, str]:
        """Both outputs, once the process has ended."""
        with selectors.DefaultSelector() as selector:
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, selectors.EVENT_READ)
            ended_at: float | None = None
            while selector.get_map():
                self._check()
                for key, _ in selector.select(_POLL_SECONDS):
                    if not self._read(key.fileobj):  # type: ignore[arg-type]  # only the pipes registered above
                        selector.unregister(key.fileobj)
                if ended_at is None and self._process.poll() is not None:
                    ended_at = time.monotonic()
                if ended_at is not None and time.monotonic() - ended_at > _STRAGGLER_SECONDS:
                    break
        while self._process.poll() is None:
            self._check()
            time.sleep(_POLL_SECONDS / 10)
        return bytes(self._stdout), self._stderr.decode("utf-8", "replace")

    def _check(self) -> None:
        """Raise when the caller or the clock says stop."""
        if self._cancelled is not None and self._cancelled():
            raise CancelledError(f"{self._name} was stopped because the request was cancelled")
        if time.monotonic() > self._deadline:
            raise ToolTimeoutError(
                f"{self._name} did not end within {self._timeout_seconds:g} s and was stopped; "
                "raise the time limit or try another version of it"
            )

    def _read(self, pipe: IO[bytes]) -> bool:
        """Take what a pipe has; False at its end."""
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if pipe is self._process.stdout:
            self._stdout += chunk
            if len(self._stdout) > self._output_bytes:
                raise ToolFailedError(
                    f"{self._name} printed more than {self._output_bytes} bytes and was stopped; "
                    "ask for fewer functions"
                )
        elif len(self._stderr) < _ERROR_TEXT_BYTES:
            self._stderr += chunk[: _ERROR_TEXT_BYTES - len(self._stderr)]
        return bool(chunk)


def _clean_environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    """The few variables a tool needs, messages in English."""
    inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**inherited, "LC_ALL": "C", **(extra or {})}


def _limit_memory(pid: int, memory_bytes: int) -> None:
    """Bound the address space of a child that has just started, and forbid core files."""
    if sys.platform != "linux":
        return
    import resource  # noqa: PLC0415  # exists on POSIX systems only

    # The child may have ended already, or run as another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group, reap the tool, close the pipes."""
    # The group outlives its leader while any member lives; when none does there is nothing to kill.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
