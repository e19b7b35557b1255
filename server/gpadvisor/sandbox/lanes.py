# SPDX-License-Identifier: Apache-2.0
"""Who of several that wait goes next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

Rank: TypeAlias = Callable[[], float]


class Lane:
    """A number of slots; a free one goes to the waiting job of the highest rank, of equals to the first."""

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: list[tuple[Rank, asyncio.Future[None]]] = []

    @contextlib.asynccontextmanager
    async def turn(self, rank: Rank) -> AsyncIterator[None]:
        """Hold a slot; ``rank`` is asked whenever one is free."""
        if self._free:
            self._free -= 1
        else:
            ticket = asyncio.get_running_loop().create_future()
            entry = rank, ticket
            self._waiting.append(entry)
            try:
                await ticket
            except asyncio.CancelledError:
                if entry in self._waiting:
                    self._waiting.remove(entry)
                else:  # it was given at the same moment
                    self._give()
                raise
        try:
            yield
        finally:
            self._give()

    def _give(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        entry = max(self._waiting, key=lambda waiting: waiting[0]())
        self._waiting.remove(entry)
        entry[1].set_result(None)
