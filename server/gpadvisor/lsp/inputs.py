# SPDX-License-Identifier: Apache-2.0
"""Inputs that workers look at: one job each, a newer wish ending an older one, results kept by content."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeAlias

from gpadvisor.errors import GpadvisorError, NoDeviceCodeError
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.complaints import complaint
from gpadvisor.lsp.publishing import Publisher
from gpadvisor.lsp.snapshot import PROFILE, SOURCE, SOURCES
from gpadvisor.lsp.state import State
from gpadvisor.model.finding import EditorAnalysis
from gpadvisor.model.fix import LaunchFacts
from gpadvisor.sandbox.codec import from_json
from gpadvisor.sandbox.pool import Workers
from gpadvisor.sandbox.pool_limits import JobError, WorkerError

log: Final = logging.getLogger("gpadvisor.lsp")
AnalysisAnswer: TypeAlias = tuple[EditorAnalysis, dict[str, LaunchFacts]]
_REMEMBERED: Final = 32


class Inputs:
    """Runs what ``Sources`` and ``Profiles`` ask for, and tells what went wrong with it."""

    def __init__(
        self, state: State, client: Client, publisher: Publisher, workers: Workers, background: Background
    ) -> None:
        self._state, self._client, self._publisher = state, client, publisher
        self._workers, self._background = workers, background
        self._tasks: dict[str, asyncio.Task[None]] = {}  # by key of the input
        self._newer: dict[asyncio.Task[None], asyncio.Task[None]] = {}  # by what gave way to it
        self._remembered: OrderedDict[str, AnalysisAnswer] = OrderedDict()
        self._looking = 0  # how many look for what is known of profiles
        self._all_looked = asyncio.Event()

    def start(self, key: str, path: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Look at an input; an older wish for the same is given up: who has it gets what this one does."""
        task = asyncio.ensure_future(self._guarded(path, work))
        answer = asyncio.ensure_future(self._answer(task))
        answer.add_done_callback(_heard)
        running = self._tasks.get(key)
        if running is not None:
            self._newer[running] = answer
            running.cancel()
        task.add_done_callback(lambda _: work.close())  # where the task was cancelled before it began
        self._tasks[key] = task
        self._state.begun(key)
        task.add_done_callback(lambda done: self._ended(key, done))
        return answer

    async def _answer(self, task: asyncio.Task[None]) -> None:
        try:
            await task
        except asyncio.CancelledError:
            newer, waiting = self._newer.pop(task, None), asyncio.current_task()
            if newer is None or waiting is None or waiting.cancelling():
                raise
            await newer

    def cancel_all(self) -> None:
        """Stop everything that runs."""
        for task in self._tasks.values():
            task.cancel()

    async def profiles_read(self, matches: Callable[[str], bool] = lambda _: True) -> None:
        """Wait for the profiles that are being read, or those of them at certain paths."""
        reading = [
            task
            for key, task in self._tasks.items()
            if key.startswith(PROFILE) and matches(key.removeprefix(PROFILE))
        ]
        if reading:
            await asyncio.wait(reading)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """While it is looked for what is known of profiles, no worker is started for anything else."""
        self._looking += 1
        self._all_looked.clear()
        try:
            yield
        finally:
            self._looking -= 1
            if not self._looking:
                self._all_looked.set()

    async def all_looked(self) -> None:
        """Wait until what is known of profiles is shown; what has to be read may take longer."""
        while self._looking:
            await self._all_looked.wait()
        await self._publisher.published()

    def _ended(self, key: str, done: asyncio.Task[None]) -> None:
        if self._tasks.get(key) is done:
            del self._tasks[key]
            self._state.ended(key)
        if not self._background.closing:
            self._publisher.say_all()
            if key.startswith(PROFILE):  # lenses say so while one is read
                self._client.refresh()

    async def _guarded(self, path: str, work: Coroutine[Any, Any, None]) -> None:
        """Keep the sentence of what went wrong for the status; say aloud what concerns the server itself."""
        self._state.has_kernels(path, has=True)
        try:
            await work
        except asyncio.CancelledError:
            raise
        except NoDeviceCodeError as error:
            log.info("%s: %s", path, error)
            self._well(path)
            self._state.has_kernels(path, has=False)
            self._publisher.analyses_changed(self._state.remove(SOURCE + path))
            raise
        except GpadvisorError as error:
            log.warning("%s: %s", path, error)
            await self._failed(path, error)
            raise
        except Exception as error:
            log.exception("%s: analysis failed", path)
            self._state.failed(path, f"internal error, {type(error).__name__}: {error}")
            raise
        else:
            self._well(path)

    async def _failed(self, path: str, error: GpadvisorError) -> None:
        self._state.failed(path, str(error))
        if path.endswith(SOURCES):
            messages = error.messages if isinstance(error, JobError) else ()
            self._state.failed(
                path, str(error), await asyncio.to_thread(complaint, path, str(error), messages)
            )
            self._publisher.soon([path])
        if isinstance(error, WorkerError):
            self._client.say_once(str(error))

    def _well(self, path: str) -> None:
        """Nothing is wrong with an input any more."""
        if self._state.well(path):
            self._publisher.soon([path])

    # Results

    async def run(self, job: str, arguments: dict[str, Any], title: str, seconds: float) -> Any:
        """What a worker answers; what was looked at last goes first."""
        self._publisher.say_all()

        def begin(progress: Callable[[str], None]) -> Any:
            return self._workers.run(
                job,
                arguments,
                timeout_seconds=seconds,
                progress=progress,
                rank=lambda: self._state.rank(arguments["path"]),
            )

        return await self._client.with_progress(title, begin)

    def remembered(self, digest: str) -> AnalysisAnswer | None:
        """The result of the same content."""
        return self._remembered.get(digest)

    def remember(self, digest: str, result: AnalysisAnswer) -> None:
        """Keep a result, and forget older ones."""
        self._remembered[digest] = result
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)

    def forget(self, matches: Callable[[str], bool]) -> None:
        """Forget results by their digests."""
        for digest in [digest for digest in self._remembered if matches(digest)]:
            del self._remembered[digest]


def _heard(done: asyncio.Task[None]) -> None:
    """Whoever waits for a task gets its error; to all others it was reported."""
    if not done.cancelled():
        done.exception()


async def read_result(data: dict[str, Any]) -> AnalysisAnswer:
    """A worker's answer; takes a while for a large analysis, so not in the event loop."""
    return await asyncio.to_thread(_read, data)


def _read(data: dict[str, Any]) -> AnalysisAnswer:
    launches = from_json(data["launches"], dict[str, LaunchFacts])
    return from_json(data["analysis"], EditorAnalysis), launches
