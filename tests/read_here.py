# SPDX-License-Identifier: Apache-2.0
"""What a child process reads, read in the tests' own: for tests of what is made of it.

A child takes 0.1 to 0.4 s to start. That profiles, line tables, sources and traces are read in one, and what
becomes of one that fails, is tested of the sandbox, the store, the servers and the command (`e2e/test_cli`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from gpadvisor.errors import ToolFailedError
from gpadvisor.sandbox.children import Cancelled, ChildCall, let_start, start_child

_GIVES_UP_RIGHTS = "gpadvisor.toolchain.nvrtc_child:answer"


@contextmanager
def reading_here() -> Iterator[None]:
    """Answer what a child would be asked, until the end."""
    let_start(_answer)
    try:
        yield
    finally:
        let_start(start_child)


def _answer(child_call: ChildCall, cancelled: Cancelled) -> None:
    if child_call.entry == _GIVES_UP_RIGHTS:
        start_child(child_call, cancelled)
        return
    module, _, function = child_call.entry.partition(":")
    try:
        answer = getattr(import_module(module), function)(Path(child_call.request).read_bytes())
    except Exception as error:
        raise ToolFailedError(f"{child_call.entry} ended with {error!r}") from error
    Path(child_call.answer).write_bytes(answer)
