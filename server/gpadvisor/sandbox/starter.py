# SPDX-License-Identifier: Apache-2.0
"""Children that workers want: started by the process that has the workers, so that none is inside another."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpadvisor.errors import ToolError, ToolFailedError
from gpadvisor.sandbox.children import ChildCall, start_child
from gpadvisor.sandbox.codec import failure
from gpadvisor.sandbox.messages import ChildEnded, StartChild, StopChild

_ENTRY: Final = re.compile(r"gpadvisor(\.[a-z_]+)+:answer")
_MOST: Final = 8
"""Children of one worker at a time; it has a few threads that want one."""


class Starter:
    """Starts children for one worker: only of functions that answer, in its folder, within its memory."""

    def __init__(
        self,
        folder: str,
        memory_bytes: int,
        threads: Executor,
        tell: Callable[[ChildEnded], Awaitable[None]],
    ) -> None:
        self.folder, self._memory_bytes = Path(folder), memory_bytes
        self._threads, self._tell = threads, tell
        self._calls: dict[int, tuple[threading.Event, asyncio.Task[None]]] = {}

    def take(self, message: StartChild | StopChild) -> None:
        """Begin or stop what a worker asks for."""
        if isinstance(message, StopChild):
            if message.stop in self._calls:
                self._calls[message.stop][0].set()
            return
        stopped = threading.Event()
        task = asyncio.ensure_future(self._run(message.start, message.call, stopped))
        self._calls[message.start] = stopped, task

    async def _run(self, number: int, call: ChildCall, stopped: threading.Event) -> None:
        ended = ChildEnded(ended=number, failure=None)
        try:
            child_call = self._checked(call)
            loop, environment = asyncio.get_running_loop(), {"TMPDIR": str(self.folder)}
            await loop.run_in_executor(self._threads, start_child, child_call, stopped.is_set, environment)
        except (ToolError, OSError) as error:
            ended = ChildEnded(ended=number, failure=failure(error))
        finally:
            self._calls.pop(number, None)
        try:
            await self._tell(ended)
        except (EOFError, OSError):  # it has ended, too
            return

    def _checked(self, child_call: ChildCall) -> ChildCall:
        inside = all(
            Path(path).resolve().is_relative_to(self.folder.resolve())
            for path in (child_call.request, child_call.answer)
        )
        if not _ENTRY.fullmatch(child_call.entry) or not inside or len(self._calls) > _MOST:
            raise ToolFailedError(f"{child_call.entry} is not started for a worker")
        return replace(child_call, memory_bytes=min(child_call.memory_bytes, self._memory_bytes))

    async def close(self) -> None:
        """Stop everything; the worker has ended."""
        for stopped, _ in self._calls.values():
            stopped.set()
        await asyncio.gather(*(task for _, task in self._calls.values()), return_exceptions=True)
