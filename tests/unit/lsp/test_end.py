# SPDX-License-Identifier: Apache-2.0
"""The server's end is not held up by what was begun."""

from __future__ import annotations

import asyncio
import threading

from gpadvisor.lsp.server import Threads


def test_the_end_does_not_wait_for_a_search() -> None:
    go_on, begun, ended = threading.Event(), threading.Event(), threading.Event()

    def search() -> None:
        begun.set()
        go_on.wait(10)
        ended.set()

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Threads())
        searching = asyncio.ensure_future(asyncio.to_thread(search))
        while not begun.is_set():
            await asyncio.sleep(0)
        searching.cancel()

    asyncio.run(serve())
    assert not ended.is_set()
    go_on.set()
