# SPDX-License-Identifier: Apache-2.0
"""Worker processes: started ahead, limited, replaced when they die, ended with everything they started."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from gpadvisor.errors import CancelledError, NoDeviceCodeError
from gpadvisor.files import scratch_folder
from gpadvisor.sandbox import frames
from gpadvisor.sandbox.children import SINGLE_THREADED, python_command
from gpadvisor.sandbox.codec import from_bytes
from gpadvisor.sandbox.lanes import Lane, Rank
from gpadvisor.sandbox.messages import (
    JobFailure,
    JobProgress,
    JobRequest,
    JobResult,
    OfServer,
    OfWorker,
    StartChild,
    StopChild,
)
from gpadvisor.sandbox.pool_limits import JobError, Limits, WorkerError
from gpadvisor.sandbox.processes import kill_tree
from gpadvisor.sandbox.starter import Starter

log: Final = logging.getLogger("gpadvisor.sandbox.pool")

_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from gpadvisor.sandbox.worker import main; sys.exit(main(sys.argv[1:]))"
)
_UNWIND_SECONDS: Final = 1.5
_SPARE_SECONDS: Final = 2.0
_LAST_WORDS_SECONDS: Final = 0.5
_MAX_IDLE: Final = 2
_MOST_CHILDREN: Final = 32
_BROKEN: Final = (EOFError, frames.FrameError, OSError, ValueError, TypeError)
"""What a worker says, or does not, that is none of what it should."""
_STDERR_LINE: Final = 1 << 16
_MOST_FRAMES: Final = 64
"""That wait to be looked at; then the worker waits."""


@dataclass(slots=True, eq=False)
class _Worker:
    """One child process."""

    process: asyncio.subprocess.Process
    starter: Starter  # of what it may not start itself
    held: contextlib.ExitStack  # what its folder goes with
    ending: bool = False
    printed: asyncio.Task[None] | None = None
    said: asyncio.Task[None] | None = None
    frames: asyncio.Queue[OfWorker | Exception] = field(default_factory=lambda: asyncio.Queue(_MOST_FRAMES))
    last_words: list[str] = field(default_factory=list)


class Workers:
    """The pool; every method belongs to one event loop."""

    def __init__(
        self, jobs: str, limits: Limits | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._jobs = jobs  # ``module:name`` of what the workers can do
        self._limits = limits or Limits()
        self._environment = dict(environment or {})
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._long = Lane(self._limits.count)
        self._quick = Lane(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._threads = ThreadPoolExecutor(_MOST_CHILDREN, thread_name_prefix="gpadvisor-child")
        self._closed = False
        self._is_adding = False  # a spare one
        self.warm_up: dict[str, Any] | None = None
        """Arguments of the job that a new worker does first, so that later ones find its results."""

    def configure(self, limits: Limits, environment: Mapping[str, str]) -> None:
        """Other limits or tools, for workers to come; idle ones of before are ended."""
        if limits == self._limits and dict(environment) == self._environment:
            return
        if limits.count != self._limits.count:
            self._long = Lane(limits.count)
        self._limits, self._environment = limits, dict(environment)
        idle, self._idle = self._idle, []
        for worker in idle:
            self._later(self._end(worker))
        if idle:
            self.keep_spare()

    @property
    def pids(self) -> list[int]:
        """Of all living workers."""
        return [worker.process.pid for worker in (*self._idle, *self._busy)]

    @property
    def busy(self) -> int:
        """How many are at work."""
        return len(self._busy)

    def keep_spare_later(self) -> None:
        """Have a worker ready in a while: at once, starting it takes processor time that a job wants."""
        asyncio.get_running_loop().call_later(_SPARE_SECONDS, self._keep_spare_where_there_is_room)

    def _keep_spare_where_there_is_room(self) -> None:
        if self._busy and os.getloadavg()[0] > (os.cpu_count() or 1):
            self.keep_spare_later()
        else:
            self.keep_spare()

    def keep_spare(self) -> None:
        """Have a worker ready before it is needed."""
        if not self._idle and not self._is_adding and not self._closed:
            self._is_adding = True
            self._later(self._add_spare())

    async def run(
        self,
        job: str,
        arguments: dict[str, Any],
        *,
        timeout_seconds: float,
        progress: Callable[[str], None] | None = None,
        quick: bool = False,
        rank: Rank = lambda: math.inf,
    ) -> Any:
        """Run a job in a worker and return its result, JSON values.

        Cancelling the caller ends the worker and what it has started. ``quick`` jobs have their own lane; of
        the others that wait, the one of the highest ``rank`` is next.

        Raises:
            JobError: the job says what is wrong with its input.
            WorkerError: the worker died, hung or ran out of memory.
        """
        async with (self._quick if quick else self._long).turn(rank):
            worker = await self._begin(job, arguments)
            try:
                async with asyncio.timeout(timeout_seconds):
                    answer = await self._answer(worker, progress)
            except TimeoutError as error:
                self._replace(worker)
                raise WorkerError(
                    f"{job} took longer than {timeout_seconds:g} s and was stopped; "
                    "raise gpadvisor.analysis.timeoutSeconds, or analyse fewer kernels"
                ) from error
            except _BROKEN as error:
                code = await self._end(worker)
                self.keep_spare()
                raise WorkerError(self._died(job, worker, code)) from error
            except BaseException:
                self._replace(worker)
                raise
            self._give_back(worker)
        return _result(answer)

    async def close(self) -> None:
        """End all workers."""
        self._closed = True
        everyone = [*self._idle, *self._busy]
        self._idle.clear()
        await asyncio.gather(*(self._end(worker) for worker in everyone), return_exceptions=True)
        # Those that are being started or ended: the first see that the pool is closed.
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False)

    async def _begin(self, job: str, arguments: dict[str, Any]) -> _Worker:
        """A worker that has begun the job; one that had died while it had nothing to do is passed over."""
        code = 0
        for _ in range(_MAX_IDLE + 2):
            worker = await self._take()
            if await self._begun(worker, job, arguments):
                return worker
            code = await self._end(worker)
        raise WorkerError(self._died(job, worker, code))

    async def _begun(self, worker: _Worker, job: str, arguments: dict[str, Any]) -> bool:
        """Hand a job to a worker; False where it does not live to begin."""
        try:
            await _tell(worker.process, JobRequest(job=job, arguments=arguments))
            await _next(worker)
        except _BROKEN:
            return False
        except BaseException:
            self._replace(worker)
            raise
        return True

    async def _answer(
        self, worker: _Worker, progress: Callable[[str], None] | None
    ) -> JobResult | JobFailure:
        while True:
            answer = await _next(worker)
            if isinstance(answer, JobResult | JobFailure):
                return answer
            if isinstance(answer, JobProgress) and progress is not None:
                progress(answer.progress)

    async def _take(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.process.returncode is None:
                break
            await self._end(worker)
        else:
            worker = await self._start()
        self._busy.add(worker)
        self.keep_spare_later()
        return worker

    def _give_back(self, worker: _Worker) -> None:
        self._busy.discard(worker)
        self._idle.append(worker)
        while len(self._idle) > _MAX_IDLE:
            self._later(self._end(self._idle.pop(0)))

    def _replace(self, worker: _Worker) -> None:
        self._later(self._end(worker))
        self.keep_spare()

    async def _add_spare(self) -> None:
        try:
            worker = await self._start()
        except WorkerError:
            return
        finally:
            self._is_adding = False
        if self._idle or self._closed:
            await self._end(worker)
        else:
            self._idle.append(worker)

    async def _start(self) -> _Worker:
        held = contextlib.ExitStack()
        folder = str(held.enter_context(scratch_folder()))
        command = python_command(_START, self._jobs, str(self._limits.memory_bytes), folder)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env={**os.environ, **SINGLE_THREADED, **self._environment, "TMPDIR": folder},
                start_new_session=True,
                limit=_STDERR_LINE,
            )
        except OSError as error:
            held.close()
            raise WorkerError(
                f"no process could be started for the analysis ({error.strerror or error}); free memory"
            ) from error
        starter = Starter(folder, self._limits.memory_bytes, self._threads, partial(_tell, process))
        worker = _Worker(process=process, starter=starter, held=held)
        worker.printed = asyncio.create_task(_copy_stderr(worker))
        worker.said = asyncio.create_task(_read_frames(worker))
        try:
            await _next(worker)
            if self.warm_up is not None:
                await self._begun(worker, "warm", self.warm_up)
                await self._answer(worker, None)
        except _BROKEN as error:
            code = await self._end(worker)
            raise WorkerError(self._died("starting it", worker, code)) from error
        except BaseException:
            await self._end(worker)
            raise
        return worker

    async def _end(self, worker: _Worker) -> int:
        """End a worker and all it has started; its exit status."""
        self._busy.discard(worker)
        process = worker.process
        if process.returncode is None:
            worker.ending = True
            # Not the library's send_signal: it polls the child first, and the status of one that is dead is
            # gone before the event loop's own watcher asks for it, which then makes one up.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(process.wait()), _UNWIND_SECONDS)
            except (TimeoutError, asyncio.CancelledError):
                kill_tree(process.pid)
        if process.stdin is not None:
            process.stdin.close()
        code = await process.wait()
        for task, seconds in ((worker.printed, _LAST_WORDS_SECONDS), (worker.said, 0.0)):
            if task is not None:
                with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                    await asyncio.wait_for(task, seconds)
        await worker.starter.close()
        # Somebody else may hold its standard error open: without this so would we.
        process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001 the library has no other way
        worker.held.close()
        return code

    def _died(self, job: str, worker: _Worker, code: int) -> str:
        how = f"ended with status {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                how = f"was ended by signal {signal.Signals(-code).name}"
        limit = self._limits.memory_bytes / (1 << 20)
        words = f" ({worker.last_words[-1]})" if worker.last_words else ""
        return (
            f"the process for {job} {how}{words} and was replaced; it may use {limit:.0f} MiB "
            "(gpadvisor.analysis.memoryMib)"
        )

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _tell(process: asyncio.subprocess.Process, message: OfServer) -> None:
    if process.stdin is None:
        raise EOFError
    process.stdin.write(frames.pack(message))
    await process.stdin.drain()


async def _next(worker: _Worker) -> OfWorker:
    """The next thing that a worker says."""
    value = await worker.frames.get()
    if isinstance(value, Exception):
        worker.frames.put_nowait(value)  # for whoever asks again
        raise value
    return value


async def _read_frames(worker: _Worker) -> None:
    """What a worker says of its jobs, in order; what it wants started is started beside that."""
    stdout = worker.process.stdout
    try:
        while stdout is not None:
            message = await _parse(await frames.read_body(stdout))
            if isinstance(message, StartChild | StopChild):
                worker.starter.take(message)
            else:
                await worker.frames.put(message)
        raise EOFError
    except _BROKEN as error:
        await worker.frames.put(error)


async def _parse(body: bytes) -> OfWorker:
    """The frame's message; a large one is parsed in a thread, so that requests are answered meanwhile."""
    large = len(body) >= 1 << 16
    message: OfWorker = (
        await asyncio.to_thread(from_bytes, body, OfWorker) if large else from_bytes(body, OfWorker)
    )
    return message


def _result(answer: JobResult | JobFailure) -> Any:
    if isinstance(answer, JobResult):
        return answer.result
    kind, message = answer.failure.error, answer.failure.message
    if kind == "CancelledError":
        raise CancelledError(message)
    if kind == "NoDeviceCodeError":
        raise NoDeviceCodeError(message)
    if kind in {"Memory", "Internal"}:
        raise WorkerError(message)
    raise JobError(message, kind, answer.messages)


async def _copy_stderr(worker: _Worker) -> None:
    """What workers and tools print goes to the log; the last lines say why one died."""
    stream = worker.process.stderr
    if stream is None:
        return
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than the limit: that part is dropped
            continue
        if not line:
            return
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            worker.last_words = [*worker.last_words[-4:], text[:300]]
            # What is said while it is ended, in the middle of something, is about that.
            level = logging.DEBUG if worker.ending else logging.INFO
            log.log(level, "worker %d: %s", worker.process.pid, text[:2000])
