# SPDX-License-Identifier: Apache-2.0
"""Functions of this package, called in a process of their own: what they read may crash them or never end."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import gpadvisor
from gpadvisor.files import scratch_folder
from gpadvisor.sandbox.tools import run_tool

# The child imports this very package from where it is, and nothing from the user's environment or folder.
_START: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "from gpadvisor.sandbox.child import main; main(sys.argv[1:])"
)
# Each thread of a linear algebra library reserves memory that counts against the limit.
SINGLE_THREADED: Final = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def python_command(start: str, *arguments: str) -> list[str]:
    """The command of a child; ``start`` is a line of Python that takes the package's folder off argv."""
    root = str(Path(gpadvisor.__file__).resolve().parent.parent)
    return [sys.executable, "-I", "-c", start, root, *arguments]


def call(
    entry: str,
    request: bytes,
    *,
    timeout_seconds: float,
    memory_bytes: int,
    output_bytes: int,
    cancelled: Callable[[], bool] | None = None,
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
        path = folder / "request"
        path.write_bytes(request)
        limits = str(memory_bytes), str(math.ceil(timeout_seconds) + 1)
        return run_tool(
            python_command(_START, entry, str(path), *limits),
            timeout_seconds=timeout_seconds,
            memory_bytes=memory_bytes,
            output_bytes=output_bytes,
            cancelled=cancelled,
            directory=directory or folder,
            environment=SINGLE_THREADED,
        ).stdout


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
