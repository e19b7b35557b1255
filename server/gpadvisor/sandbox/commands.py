# SPDX-License-Identifier: Apache-2.0
"""A command of the user, run beside an event loop, whose lines are passed on while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError
from gpadvisor.sandbox.processes import kill_tree

log: Final = logging.getLogger("gpadvisor.sandbox.commands")
_LINE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSettings:
    """The settings that an error names."""

    command: str
    timeout: str


async def run_command(
    command: Sequence[str],
    folder: Path,
    timeout_seconds: float,
    settings: CommandSettings,
    progress: Callable[[str], None],
) -> None:
    """Run a command in a session of its own; cancelling it ends all that it started.

    Raises:
        ToolError: it cannot be started, failed or took too long.
    """
    name = Path(command[0]).name
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"{command[0]} cannot be started ({error}); check {settings.command}") from error
    latest_line = ""
    try:
        async with asyncio.timeout(timeout_seconds):
            while process.stdout is not None and (line := await _line(process.stdout)) is not None:
                if line:
                    latest_line = line
                    log.info("%s: %s", name, line)
                    progress(line[:80])
            await process.wait()
    except TimeoutError as error:
        raise ToolError(
            f"{name} did not end within {timeout_seconds:g} s and was stopped; raise {settings.timeout}"
        ) from error
    finally:
        if process.returncode is None:
            kill_tree(process.pid)
            await process.wait()
    if process.returncode:
        raise ToolError(f"{name} ended with status {process.returncode}: {latest_line[:300]}")


async def _line(stream: asyncio.StreamReader) -> str | None:
    """The next line; empty for one that is too long; None at the end."""
    try:
        line = await stream.readline()
    except ValueError:
        return ""
    return line.decode("utf-8", "replace").strip() if line else None
