# SPDX-License-Identifier: Apache-2.0
"""Functions of this package, called in a process of their own: what they read may crash them or never end."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import gpadvisor
from gpadvisor.errors import CancelledError, ToolFailedError, ToolNotFoundError, ToolTimeoutError
from gpadvisor.files import read_file, scratch_folder
from gpadvisor.sandbox.tools import run_tool

# The child imports this very package from where it is, and nothing from the user's environment or folder.
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from gpadvisor.sandbox.child import main; main(sys.argv[1:])"
)
_PRINTED_BYTES: Final = 1 << 20
# Each thread of a linear algebra library reserves memory that counts against the limit.
SINGLE_THREADED: Final = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def python_command(start: str, *arguments: str) -> list[str]:
    """The command of a child; ``start`` is a line of Python that takes the package's folder off argv."""
    root = str(Path(gpadvisor.__file__).resolve().parent.parent)
    return [sys.executable, "-I", "-c", start, root, *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCall:
    """One call of a function in a child, as it crosses from a worker to who starts the child."""

    entry: str  # ``module:function``
    request: str  # the file that has it, and the one that gets the answer
    answer: str
    timeout_seconds: float  # by the clock, and of processor time
    memory_bytes: int  # of the child's address space, and of each file that it writes
    directory: str  # where it runs


CHILD_ERRORS: Final = {
    error.__name__: error for error in (CancelledError, ToolNotFoundError, ToolFailedError, ToolTimeoutError)
}
"""What a call may raise, by the names under which a worker is told."""
Cancelled: TypeAlias = Callable[[], bool] | None


def start_child(
    child_call: ChildCall, cancelled: Cancelled, environment: Mapping[str, str] | None = None
) -> None:
    """Run a child of this process to its end; its answer is in the file then.

    Raises:
        ToolError: it failed, took too long or was cancelled.
    """
    limits = str(child_call.memory_bytes), str(math.ceil(child_call.timeout_seconds) + 1)
    run_tool(
        python_command(_START, child_call.entry, child_call.request, child_call.answer, *limits),
        timeout_seconds=child_call.timeout_seconds,
        memory_bytes=child_call.memory_bytes,
        output_bytes=_PRINTED_BYTES,
        cancelled=cancelled,
        directory=Path(child_call.directory),
        environment={**SINGLE_THREADED, **(environment or {})},
    )


_start: Callable[[ChildCall, Cancelled], None] = start_child


def let_start(start: Callable[[ChildCall, Cancelled], None]) -> None:
    """Have somebody else start the children of this process, as a worker does, which is a child itself."""
    global _start  # noqa: PLW0603 one for each process, set once
    _start = start


def call(
    entry: str,
    request: bytes,
    *,
    timeout_seconds: float,
    memory_bytes: int,
    output_bytes: int,
    cancelled: Cancelled = None,
    directory: Path | None = None,
) -> bytes:
    """What a function answers to a request.

    Args:
        entry: ``module:function``; it takes the request's bytes and gives those of the answer.
        request: handed over in a file.
        timeout_seconds: by the clock, and of processor time.
        memory_bytes: of the child's address space, and of each file that it writes.
        output_bytes: of the answer.
        cancelled: asked now and then; when true, the child is stopped.
        directory: where it runs; a folder of its own that is removed, if None.

    Raises:
        ToolError: it failed, took too long, said too much or was cancelled.
    """
    with scratch_folder() as folder:
        child_call = ChildCall(
            entry=entry,
            request=str(folder / "request"),
            answer=str(folder / "answer"),
            timeout_seconds=timeout_seconds,
            memory_bytes=memory_bytes,
            directory=str(directory or folder),
        )
        Path(child_call.request).write_bytes(request)
        _start(child_call, cancelled)
        try:
            return read_file(Path(child_call.answer), max_bytes=output_bytes)
        except OSError as error:
            raise ToolFailedError(f"the child's answer cannot be read ({error.strerror or error})") from error


@contextmanager
def meanwhile(ask: Callable[[Callable[[], bool]], bytes]) -> Iterator[Callable[[], bytes]]:
    """Ask in a thread that only waits; what is yielded waits for the answer, and raises what it raised.

    Args:
        ask: calls a child; the ``cancelled`` that it is given is true from the end of the context on.
    """
    ended = threading.Event()
    answers: list[bytes] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask(ended.is_set))
        except BaseException as error:  # noqa: BLE001 raised where the answer is asked for
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def answer() -> bytes:
        thread.join()
        if errors:
            raise errors[0]
        return answers[0]

    try:
        yield answer
    finally:
        ended.set()
        thread.join()
