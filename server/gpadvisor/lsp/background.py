# SPDX-License-Identifier: Apache-2.0
"""Work beside the messages: its failure is logged, and it ends with the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

log: Final = logging.getLogger("gpadvisor.lsp")


class Background:
    """Everything that runs and that nobody waits for."""

    def __init__(self) -> None:
        self.closing = False
        self._tasks: set[asyncio.Future[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Run something."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    async def stop(self, ours: asyncio.Task[Any] | None) -> None:
        """Stop everything but the task that asks for it."""
        running = [task for task in self._tasks if task is not ours]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
