# SPDX-License-Identifier: Apache-2.0
"""The child process that compiles and analyses: one job at a time, stopped by ending it.

It is started by ``pool``. Its standard input and output carry frames; whatever it or a tool prints goes to
standard error. When the server is gone, its input ends, and so does it with all that it has started.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType
from typing import IO, Any, Final, TypeAlias

from gpadvisor.errors import GpadvisorError, ToolFailedError
from gpadvisor.sandbox import frames
from gpadvisor.sandbox.children import CHILD_ERRORS, Cancelled, ChildCall, let_start
from gpadvisor.sandbox.codec import Failure, failure
from gpadvisor.sandbox.limits import limit_memory
from gpadvisor.sandbox.messages import (
    ChildEnded,
    JobBegun,
    JobFailure,
    JobProgress,
    JobRequest,
    JobResult,
    OfWorker,
    StartChild,
    StopChild,
    WorkerReady,
)
from gpadvisor.sandbox.processes import adopt_orphans, kill_children, kill_tree

JobFunction: TypeAlias = Callable[[dict[str, Any], Callable[[str], None]], object]

_UNWIND_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05


class WorkerStopped(BaseException):
    """The server has ended this process; unwinding stops tools and removes temporary files."""


def main(arguments: list[str]) -> int:
    """Serve jobs until the pipe is closed.

    ``arguments``: ``module:name`` of the jobs by name, memory limit in bytes, temporary folder.
    """
    text, memory_bytes, folder = arguments[0], int(arguments[1]), arguments[2]
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not get between frames
    source = os.fdopen(os.dup(0), "rb")
    _close_standard_input()
    jobs: queue.SimpleQueue[JobRequest | None] = queue.SimpleQueue()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server
    signal.signal(signal.SIGTERM, lambda *_: _leave(folder))
    try:
        limit_memory(memory_bytes)
        adopt_orphans()
        server = _Server(wire)
        let_start(server.start)
        threading.Thread(target=_listen, args=(source, jobs, server, folder), daemon=True).start()
        return _serve(server, jobs, text)
    except WorkerStopped:
        return 0
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    finally:
        kill_children()
        shutil.rmtree(folder, ignore_errors=True)


def _close_standard_input() -> None:
    """Tools that ask a question get an end of file, not a frame."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _serve(server: _Server, jobs: queue.SimpleQueue[JobRequest | None], text: str) -> int:
    # What is imported lives as long as the process; going through it again and again costs time.
    gc.set_threshold(200_000, 20, 100)
    module, _, name = text.partition(":")
    table: Mapping[str, JobFunction] = getattr(import_module(module), name)
    gc.freeze()
    signal.signal(signal.SIGTERM, _stop)
    server.send(WorkerReady(ready=os.getpid()))
    while True:
        request = jobs.get()
        if request is None:
            return 0
        server.send(JobBegun(begun=request.job))
        server.send(_answer(table[request.job], request.arguments, server))


def _answer(job: JobFunction, arguments: dict[str, Any], server: _Server) -> JobResult | JobFailure:
    try:
        return JobResult(result=job(arguments, lambda words: server.send(JobProgress(progress=words))))
    except GpadvisorError as error:
        return JobFailure(failure=failure(error), messages=getattr(error, "messages", ()))  # a compiler's
    except OSError as error:  # such as a file that was removed meanwhile
        name = f"{error.filename}: " if error.filename else ""
        return _failed("OSError", f"{name}{error.strerror or error}")
    except MemoryError:
        return _failed("Memory", "it needs more memory than gpadvisor.analysis.memoryMib allows")
    except Exception as error:  # noqa: BLE001  # the border of the process: one sentence for what is not foreseen
        if os.environ.get("GPADVISOR_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
        return _failed("Internal", f"internal error, {type(error).__name__}: {error}")


def _failed(kind: str, message: str) -> JobFailure:
    return JobFailure(failure=Failure(error=kind, message=message))


class _Server:
    """The one at the other end of the pipe, who also starts what this process may not."""

    def __init__(self, wire: IO[bytes]) -> None:
        self._wire = wire
        self._one = threading.Lock()
        self._numbers = itertools.count()
        self._ended: dict[int, queue.SimpleQueue[ChildEnded]] = {}

    def send(self, message: OfWorker) -> None:
        """Say one thing."""
        data = frames.pack(message)
        with self._one:
            self._wire.write(data)
            self._wire.flush()

    def start(self, call: ChildCall, cancelled: Cancelled) -> None:
        """Have a child started, and wait for its end; see ``children.start_child``."""
        number, stopped = next(self._numbers), False
        ended = self._ended[number] = queue.SimpleQueue()
        try:
            self.send(StartChild(start=number, call=call))
            while True:
                with contextlib.suppress(queue.Empty):
                    message = ended.get(timeout=_POLL_SECONDS)
                    break
                if not stopped and cancelled is not None and cancelled():
                    stopped = True
                    self.send(StopChild(stop=number))
        finally:
            del self._ended[number]
        if message.failure is not None:
            raise CHILD_ERRORS.get(message.failure.error, ToolFailedError)(message.failure.message)

    def has_ended(self, message: ChildEnded) -> None:
        """A child has come to its end."""
        waiting = self._ended.get(message.ended)
        if waiting is not None:
            waiting.put(message)


def _listen(
    source: IO[bytes], jobs: queue.SimpleQueue[JobRequest | None], server: _Server, folder: str
) -> None:
    """Hand on what the server asks; end everything when it is gone."""
    with contextlib.suppress(OSError, ValueError, frames.FrameError):
        while (message := frames.read_blocking(source)) is not None:
            if isinstance(message, ChildEnded):
                server.has_ended(message)
            else:
                jobs.put(message)
    jobs.put(None)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_UNWIND_SECONDS)
    # The main thread is deep in something that does not listen.
    kill_children()  # what writes into the folder first
    shutil.rmtree(folder, ignore_errors=True)
    kill_tree(os.getpid())


def _leave(folder: str) -> None:
    """End while nothing runs yet: an exception in the middle of imports may be lost."""
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise WorkerStopped


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
