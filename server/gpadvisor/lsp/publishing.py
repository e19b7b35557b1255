# SPDX-License-Identifier: Apache-2.0
"""What is sent unasked: diagnostics, heat, status, and that lenses and hints are to be fetched anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from lsprotocol import types as lsp

from gpadvisor.editor.show.status import best_words
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.client import Client
from gpadvisor.lsp.features.diagnostics import complaints, file_diagnostics, heat_params
from gpadvisor.lsp.features.status import status_of
from gpadvisor.lsp.protocol import HEAT, OVERVIEW_CHANGED, STATUS, OverviewChangedParams
from gpadvisor.lsp.snapshot import View
from gpadvisor.lsp.state import State
from gpadvisor.lsp.views import Views
from gpadvisor.lsp.wire import to_wire

log: Final = logging.getLogger("gpadvisor.lsp")
TYPING_SECONDS: Final = 0.15
"""How long after a key press diagnostics move; the client moves them itself meanwhile."""
_TOGETHER_SECONDS: Final = 0.1
"""Changes of the overview in this time are told as one."""


class Publisher:
    """Sends each state once, and nothing for a state that was replaced before it was ready."""

    def __init__(self, state: State, client: Client, views: Views, background: Background) -> None:
        self._state, self._client, self._views, self._background = state, client, views, background
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sent: dict[str, tuple[str, list[lsp.Diagnostic]]] = {}  # by path: uri and what it has
        self._heat: dict[str, object] = {}
        self._said: dict[str, object] = {}
        self._telling = False  # that the overview has changed

    def soon(self, paths: Iterable[str], delay: float = 0.0) -> None:
        """Publish files, as they will be then."""
        for path in paths:
            running = self._tasks.pop(path, None)
            if running is not None:
                running.cancel()
            self._tasks[path] = asyncio.ensure_future(self._later(path, delay))

    def analyses_changed(self, paths: Iterable[str]) -> None:
        """Analyses have changed what files show."""
        self.soon({*paths, *self._state.now.documents})
        self.overview_changed()
        self._client.refresh()

    async def published(self) -> None:
        """Wait until what is to be published soon has been."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def _later(self, path: str, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        try:
            view = await self._views.view(path)
            self._send_diagnostics(path, view)
            self._send_heat(path, view)
            self._send_status(path, view)
            self.overview_changed()
        except Exception:
            log.exception("a file could not be published")
        finally:
            if self._tasks.get(path) is asyncio.current_task():
                del self._tasks[path]

    def _send_diagnostics(self, path: str, view: View | None) -> None:
        snapshot = self._state.now
        uri = snapshot.uri_of(path)
        diagnostics = [
            *complaints(snapshot, path),
            *([] if view is None else file_diagnostics(snapshot, view)),
        ]
        before_uri, before = self._sent.get(path, (uri, []))
        if before and before_uri != uri:  # opened under another name than the path's own
            self._client.publish(before_uri, None, [])
            before = []
        if diagnostics == before and (path in self._sent or not diagnostics):
            return
        self._sent[path] = uri, diagnostics
        self._client.publish(uri, None if view is None else view.version, diagnostics)

    def _send_heat(self, path: str, view: View | None) -> None:
        if not self._state.now.client.own:
            return
        params = heat_params(self._state.now, path, view)
        wire = to_wire(params)
        if self._heat.get(path) != wire and (params.lines or path in self._heat):
            self._heat[path] = wire
            self._client.notify(HEAT, wire)

    def _send_status(self, path: str, view: View | None) -> None:
        """What the status item says about an open document."""
        snapshot = self._state.now
        if not snapshot.client.own or path not in snapshot.documents:
            return
        wire = to_wire(status_of(snapshot, path, view, datetime.now(UTC)))
        if self._said.get(path) != wire:
            self._said[path] = wire
            self._client.notify(STATUS, wire)

    def overview_changed(self) -> None:
        """Tell a client that lists what is known to ask again."""
        if self._state.now.client.own and not self._telling:
            self._telling = True
            self._background.start(self._tell_overview())

    async def _tell_overview(self) -> None:
        await asyncio.sleep(_TOGETHER_SECONDS)
        self._telling, snapshot = False, self._state.now
        paths = {entry.analysis.origin for entry in snapshot.entries.values() if not entry.is_run}
        inputs = len({*paths, *snapshot.reading, *snapshot.errors})
        best = best_words(entry.analysis for entry in snapshot.entries.values())
        self._client.notify(OVERVIEW_CHANGED, to_wire(OverviewChangedParams(inputs=inputs, best=best)))

    def say_all(self) -> None:
        """The status of every open document, as after the start or the end of work."""
        self.overview_changed()
        for path in list(self._state.now.documents):
            view = self._views.known(path)
            if view is None and self._state.now.layers(path):
                if path not in self._tasks:  # else it is said when the view is there
                    self.soon([path])
            else:
                self._send_status(path, view)

    def everything(self) -> None:
        """Publish all that is known, as after a change of settings."""
        self.overview_changed()
        self.soon({*self._state.now.documents, *self._state.now.by_file, *self._sent})
        self._client.refresh()

    def forget(self, path: str) -> None:
        """A document was closed: what was said about it is said again when it is opened."""
        self._heat.pop(path, None)
        self._said.pop(path, None)
