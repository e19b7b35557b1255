# SPDX-License-Identifier: Apache-2.0
"""Progress of what takes longer than a second, where the client shows it; its button stops the work."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

from lsprotocol import types as lsp

from gpadvisor.editor.show.words import middle_out

SHOWN_AFTER_SECONDS: Final = 1.0
_BEAT_SECONDS: Final = 2.0
_TITLE: Final = 36  # a narrow window has one line for it and for all that others say there
T = TypeVar("T")


class Reporter(Protocol):
    """What this module needs of a server."""

    @property
    def work_done_progress(self) -> Any:
        """The library's progress."""


async def with_progress(
    server: Reporter | None, title: str, work: Callable[[Callable[[str], None]], Awaitable[T]]
) -> T:
    """Run work that reports in words; ``server`` is None where the client shows no progress."""
    words = [""]
    task = asyncio.ensure_future(work(lambda sentence: words.__setitem__(0, sentence)))
    display = None if server is None else asyncio.ensure_future(_show(server, title, words, task))
    try:
        return await task
    except asyncio.CancelledError:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        raise
    finally:
        if display is not None:
            display.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await display


async def _show(server: Reporter, title: str, words: list[str], task: asyncio.Future[Any]) -> None:
    await asyncio.sleep(SHOWN_AFTER_SECONDS)
    from gpadvisor.report.words import no_link  # noqa: PLC0415 what it needs takes long to import

    progress, token = server.work_done_progress, f"gpadvisor-{uuid.uuid4()}"
    await progress.create_async(token)
    first, short = no_link(words[0]) or None, no_link(middle_out(title, _TITLE))
    progress.begin(token, lsp.WorkDoneProgressBegin(title=short, message=first, cancellable=True))
    begun = asyncio.get_running_loop().time()
    try:
        while not task.done():
            if progress.tokens[token].cancelled():
                task.cancel()
                return
            await asyncio.wait({task}, timeout=0.2)
            seconds = asyncio.get_running_loop().time() - begun + SHOWN_AFTER_SECONDS
            if int(seconds / _BEAT_SECONDS) != int((seconds - 0.2) / _BEAT_SECONDS):
                sentence = no_link(f"{words[0]} ({seconds:.0f} s)".strip())
                progress.report(token, lsp.WorkDoneProgressReport(message=sentence, cancellable=True))
    finally:
        progress.end(token, lsp.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)
