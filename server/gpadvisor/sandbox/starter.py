# SPDX-License-Identifier: Apache-2.0
"""Children that workers want: started by the process that has the workers, so that none is inside another."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gpadvisor.errors import ToolError, ToolFailedError
from gpadvisor.sandbox.children import ChildCall, start_child
from gpadvisor.sandbox.codec import from_json

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
        tell: Callable[[object], Awaitable[None]],
    ) -> None:
        self.folder, self._memory_bytes = Path(folder), memory_bytes
        self._threads, self._tell = threads, tell
        self._calls: dict[int, tuple[threading.Event, asyncio.Task[None]]] = {}

    def takes(self, message: Mapping[str, Any]) -> bool:
        """Begin or stop what a worker asks for; False where it says something else."""
        if "stop" in message:
            if message["stop"] in self._calls:
                self._calls[message["stop"]][0].set()
            return True
        if "start" not in message:
            return False
        number, stopped = int(message["start"]), threading.Event()
        self._calls[number] = stopped, asyncio.ensure_future(self._run(number, message.get("call"), stopped))
        return True

    async def _run(self, number: int, call: object, stopped: threading.Event) -> None:
        name, message = None, ""
        try:
            child_call = self._checked(call)
            loop, environment = asyncio.get_running_loop(), {"TMPDIR": str(self.folder)}
            await loop.run_in_executor(self._threads, start_child, child_call, stopped.is_set, environment)
        except (ToolError, OSError) as error:
            name, message = type(error).__name__, str(error)
        finally:
            self._calls.pop(number, None)
        try:
            await self._tell({"ended": number, "class": name, "message": message})
        except (EOFError, OSError):  # it has ended, too
            return

    def _checked(self, call: object) -> ChildCall:
        child_call = from_json(call, ChildCall)
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
