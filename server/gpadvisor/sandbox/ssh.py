# SPDX-License-Identifier: Apache-2.0
"""Another machine over the user's own ssh: its configuration, keys and jump hosts hold as they are.

One connection carries everything (ssh's multiplexing), so that a password is asked for once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolFailedError, ToolNotFoundError, ToolTimeoutError, UsageError
from gpadvisor.sandbox.application import Ended, run_application

_QUESTION_SECONDS: Final = 120.0  # somebody may have to type a password
_CONNECTION_FAILED: Final = 255
_CHUNK_BYTES: Final = 1 << 20
_MAX_ANSWER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Remote:
    """An open connection to a host."""

    host: str
    command: tuple[str, ...]  # ssh with its options, without the host
    mark: bytes  # a line before every answer: what a shell's start-up file prints stands before it

    def ask(self, script: str) -> str:
        """What a shell script prints there; it runs in the host's POSIX shell.

        Raises:
            ToolFailedError: the connection or the script failed.
            ToolTimeoutError: there was no answer.
        """
        try:
            done = subprocess.run(
                [*self.command, "--", self.host, f"sh -c {shlex.quote(self._marked(script))}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_QUESTION_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolTimeoutError(f"{self.host} did not answer within {_QUESTION_SECONDS:g} s") from error
        if done.returncode != 0:
            raise ToolFailedError(self.failure(done.returncode, done.stderr.decode("utf-8", "replace")))
        _, mark, answer = done.stdout.partition(self.mark)
        if not mark:
            raise ToolFailedError(f"{self.host} runs no POSIX shell as sh; what it answered is no answer")
        return answer[:_MAX_ANSWER_BYTES].decode("utf-8", "replace")

    def _marked(self, script: str) -> str:
        return f"echo {self.mark.decode().strip()}\n{script}"

    def run(
        self,
        arguments: Sequence[str],
        *,
        directory: str | None,
        timeout_seconds: float | None,
        cancelled: Callable[[], bool] | None,
    ) -> Ended:
        """Run a command there with the caller's standard streams; each argument arrives as it is."""
        line = shlex.join(arguments)
        if directory is not None:
            line = f"cd {shlex.quote(directory)} && exec {line}"
        # With a terminal here the command gets one there, and Ctrl-C travels as a key.
        terminal = ["-t"] if sys.stdin is not None and sys.stdin.isatty() else []
        return run_application(
            [*self.command, *terminal, "--", self.host, line],
            timeout_seconds=timeout_seconds,
            cancelled=cancelled,
        )

    def fetch(self, path: str, target: Path, *, progress: Callable[[int], None] | None = None) -> int:
        """Copy a file from there; the number of bytes. Nothing is left here where it fails.

        Raises:
            ToolFailedError: the connection was lost, or the file cannot be read there.
        """
        answer = self.ask(f"wc -c < {shlex.quote(path)}").strip()
        if not answer.isdecimal():
            raise ToolFailedError(f"{self.host} does not say how large {path} is: {answer[:200]!r}")
        size = int(answer)
        partial = target.with_name(target.name + ".partial")
        try:
            status, message = self._copy(path, partial, progress)
            got = partial.stat().st_size
            if status != 0 or got != size:
                raise ToolFailedError(
                    f"{self.failure(status, message)}; {got:,} of {size:,} bytes of {path} arrived"
                )
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return size

    def _copy(self, path: str, target: Path, progress: Callable[[int], None] | None) -> tuple[int, str]:
        script = self._marked(f"cat < {shlex.quote(path)}")
        command = [*self.command, "--", self.host, f"sh -c {shlex.quote(script)}"]
        done = 0
        with (
            target.open("wb") as file,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            ) as process,
        ):
            if process.stdout is None or process.stderr is None:  # they are pipes: asked for above
                raise ToolFailedError("ssh has no output")
            for line in process.stdout:
                if line.endswith(self.mark):
                    break
            while chunk := process.stdout.read(_CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done)
            message = process.stderr.read(4096).decode("utf-8", "replace")
        return process.returncode, message

    def failure(self, status: int, message: str) -> str:
        """One sentence about a command that failed there, or a connection that did."""
        sentence = next((line.strip() for line in reversed(message.splitlines()) if line.strip()), "")[:200]
        sentence = f": {sentence}" if sentence else ""
        if status == _CONNECTION_FAILED:
            return f"no connection to {self.host}{sentence}; try: ssh {self.host} true"
        return f"a command on {self.host} ended with status {status}{sentence}"


@contextmanager
def connect(host: str, options: Sequence[str] = ()) -> Iterator[Remote]:
    """A connection for the time of the context; ``options`` are ssh's own, as ``Port=2222``.

    Raises:
        UsageError: the host or an option is no such thing.
        ToolNotFoundError: there is no ssh here.
        ToolFailedError: the host cannot be reached.
    """
    if not host or host.startswith("-") or any(character.isspace() for character in host):
        raise UsageError(f"'{host}' is no host; give one as in user@gpu-box")
    for option in options:
        if "=" not in option or option.startswith("-"):
            raise UsageError(f"'{option}' is no option of ssh; give KEY=VALUE as in Port=2222")
    program = shutil.which("ssh")
    if program is None:
        raise ToolNotFoundError("ssh was not found on PATH; install OpenSSH's client")
    # A socket's path is limited to about a hundred bytes: its own short folder.
    place = "/tmp" if os.name == "posix" else None  # noqa: S108 a fresh folder of its own is made in it
    with tempfile.TemporaryDirectory(prefix="gpadvisor-", dir=place) as folder:
        command = [program]
        for option in (
            *options,  # the first value of an option wins
            "ConnectTimeout=20",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=3",
            "ControlMaster=auto",
            f"ControlPath={folder}/%C",
            "ControlPersist=60",
            *([] if sys.stdin is not None and sys.stdin.isatty() else ["BatchMode=yes"]),
        ):
            command += ["-o", option]
        remote = Remote(host, tuple(command), f"gpadvisor-{secrets.token_hex(8)}\n".encode())
        remote.ask("true")
        try:
            yield remote
        finally:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [*command, "-O", "exit", "--", host], capture_output=True, timeout=10, check=False
                )
