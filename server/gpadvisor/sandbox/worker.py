# SPDX-License-Identifier: Apache-2.0
"""The child process that compiles and analyses: one job at a time, stopped by ending it.

It is started by ``pool``. Its standard input and output carry frames; whatever it or a tool prints goes to
standard error. When the server is gone, its input ends, and so does it with all that it has started.
"""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from types import FrameType
from typing import IO, Any, Final, TypeAlias

from gpadvisor.errors import GpadvisorError
from gpadvisor.sandbox import frames
from gpadvisor.sandbox.limits import limit_memory
from gpadvisor.sandbox.processes import adopt_orphans, kill_children, kill_tree

Job: TypeAlias = Callable[[dict[str, Any], Callable[[str], None]], object]

_UNWIND_SECONDS: Final = 1.0


class WorkerStopped(BaseException):
    """The server has ended this process; unwinding stops tools and removes temporary files."""


def main(arguments: list[str]) -> int:
    """Serve jobs until the pipe is closed.

    ``arguments``: ``module:name`` of the jobs by name, memory limit in bytes, temporary folder.
    """
    known, memory_bytes, folder = arguments[0], int(arguments[1]), arguments[2]
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not get between frames
    source = os.fdopen(os.dup(0), "rb")
    _close_standard_input()
    jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server
    signal.signal(signal.SIGTERM, lambda *_: _leave(folder))
    try:
        limit_memory(memory_bytes)
        adopt_orphans()
        threading.Thread(target=_listen, args=(source, jobs, folder), daemon=True).start()
        return _serve(wire, jobs, known)
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


def _serve(wire: IO[bytes], jobs: queue.SimpleQueue[Any], known: str) -> int:
    module, _, name = known.partition(":")
    table: Mapping[str, Job] = getattr(import_module(module), name)

    # What is there now lives as long as the process; going through it again and again costs time.
    gc.freeze()
    gc.set_threshold(200_000, 20, 100)
    signal.signal(signal.SIGTERM, _stop)
    _send(wire, {"ready": os.getpid()})
    while True:
        asked = jobs.get()
        if asked is None:
            return 0
        _send(wire, {"begun": True})
        _send(wire, _answer(table[asked["job"]], asked["arguments"], wire))


def _answer(job: Job, arguments: dict[str, Any], wire: IO[bytes]) -> dict[str, object]:
    try:
        return {"result": job(arguments, lambda words: _send(wire, {"progress": words}))}
    except GpadvisorError as error:
        said = getattr(error, "messages", ())  # a compiler's
        return {"error": str(error), "class": type(error).__name__, "messages": list(map(asdict, said))}
    except OSError as error:  # such as a file that was removed meanwhile
        name = f"{error.filename}: " if error.filename else ""
        return {"error": f"{name}{error.strerror or error}", "class": "OSError"}
    except MemoryError:
        return {"error": "it needs more memory than gpadvisor.analysis.memoryMib allows", "class": "Memory"}
    except Exception as error:  # noqa: BLE001  # the border of the process: one sentence for what is not foreseen
        if os.environ.get("GPADVISOR_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
        return {"error": f"internal error, {type(error).__name__}: {error}", "class": "Internal"}


def _send(wire: IO[bytes], value: object) -> None:
    wire.write(frames.pack(value))
    wire.flush()


def _listen(source: IO[bytes], jobs: queue.SimpleQueue[Any], folder: str) -> None:
    """Hand on what the server asks; end everything when it is gone."""
    with contextlib.suppress(OSError, ValueError, frames.FrameError):
        while (value := frames.read_blocking(source)) is not None:
            jobs.put(value)
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
