# SPDX-License-Identifier: Apache-2.0
"""What is sent unasked: diagnostics, heat, status, and that lenses and hints are to be fetched anew."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from lsprotocol import types as lsp

from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.heat import heat
from gpadvisor.lsp.complaints import diagnostics_of
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.protocol import HEAT, OVERVIEW_CHANGED, STATUS, HeatLine, HeatParams, OverviewChangedParams
from gpadvisor.lsp.statuses import status_of
from gpadvisor.lsp.wire import to_wire
from gpadvisor.lsp.workspace import View, make_view, resolved

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session

log: Final = logging.getLogger("gpadvisor.lsp")
TYPING_SECONDS: Final = 0.15
"""How long after a key press diagnostics move; the client moves them itself meanwhile."""
_TOGETHER_SECONDS: Final = 0.1
"""Changes of the overview in this time are told as one."""


class Publisher:
    """Sends each state once, and nothing for a state that was replaced before it was ready."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._sent: dict[str, tuple[str, list[lsp.Diagnostic]]] = {}  # by path: uri and what it has
        self._heat: dict[str, object] = {}
        self._said: dict[str, object] = {}
        self._making: dict[tuple[str, int], asyncio.Task[View | None]] = {}  # by path and revision
        self._telling = False  # that the overview has changed

    def soon(self, paths: Iterable[str], delay: float = 0.0) -> None:
        """Publish files, as they will be then."""
        for path in paths:
            known = self._tasks.pop(path, None)
            if known is not None:
                known.cancel()
            self._tasks[path] = asyncio.ensure_future(self._later(path, delay))

    async def asked_view(self, path: str) -> View | None:
        """The same, for a request: whoever has the file before them waits for its analysis."""
        self._session.analyses.looked_at(path)
        return await self.view(path)

    async def view(self, path: str) -> View | None:
        """What a file shows now; made in a thread, as comparing large texts takes time."""
        session, workspace = self._session, self._session.workspace
        while True:
            known = workspace.known_view(path)
            if known is not None:
                return known
            revision, layers, texts = workspace.revision, workspace.layers(path), workspace.texts()
            if not layers:
                return None
            document = workspace.documents.get(path)
            key = path, revision  # one begun before the newest analysis does not have that in it
            making = self._making.get(key)
            if making is None or making.done():  # done, and not taken out yet: that does not happen in a wait
                uri, version = workspace.uri_of(path), None if document is None else document.version
                work = asyncio.to_thread(make_view, path, uri, version, layers, texts)
                making = self._making[key] = asyncio.ensure_future(work)
                making.add_done_callback(partial(self._made, key))
            view = await asyncio.shield(making)
            if view is None or path not in workspace.documents:
                return view
            if workspace.documents[path].text is view.text and workspace.revision == revision:
                workspace.keep_view(view)
                return view
            if session.closing:
                return None

    def _made(self, key: tuple[str, int], task: asyncio.Task[View | None]) -> None:
        if self._making.get(key) is task:
            del self._making[key]

    def converter(self) -> Converter:
        """For the client and the texts of this moment."""
        workspace = self._session.workspace
        return Converter(
            client=self._session.client,
            encoding=workspace.encoding,
            uri_of=workspace.uri_of,
            texts=workspace.texts(),
        )

    def diagnostics(self, view: View) -> list[lsp.Diagnostic]:
        """The diagnostics of a file."""
        converter, options = self.converter(), self._session.workspace.options(view.path)
        found = [
            converter.diagnostic(shown, view.text, layer, local_paths(layer))
            for layer in view.layers
            for shown in diagnostics(layer.analysis, layer.file, layer.files, options, view.text.source)
        ]
        return sorted(found, key=lambda one: (one.range.start.line, one.severity or 0))

    def complaints(self, path: str) -> list[lsp.Diagnostic]:
        """Why an open source was not analysed."""
        workspace = self._session.workspace
        wrong, document = self._session.analyses.complaints.get(path), workspace.documents.get(path)
        if wrong is None or document is None or not workspace.options(path).diagnostics:
            return []
        return diagnostics_of(wrong, document.text, self.converter())

    def published(self, path: str) -> list[lsp.Diagnostic]:
        """What the client has of a file."""
        return self._sent.get(path, ("", []))[1]

    async def _later(self, path: str, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        try:
            view = await self.view(path)
            self._send_diagnostics(path, view)
            self._send_heat(path, view)
            self.say_status(path, view)
            self.overview_changed()
        except Exception:
            log.exception("a file could not be published")
        finally:
            if self._tasks.get(path) is asyncio.current_task():
                del self._tasks[path]

    def _send_diagnostics(self, path: str, view: View | None) -> None:
        workspace = self._session.workspace
        uri = workspace.uri_of(path)
        found = [*self.complaints(path), *([] if view is None else self.diagnostics(view))]
        before_uri, before = self._sent.get(path, (uri, []))
        if before and before_uri != uri:  # opened under another name than the path's own
            self._publish(before_uri, None, [])
            before = []
        if found == before and (path in self._sent or not found):
            return
        self._sent[path] = uri, found
        self._publish(uri, None if view is None else view.version, found)

    def _publish(self, uri: str, version: int | None, found: list[lsp.Diagnostic]) -> None:
        params = lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        self._session.server.text_document_publish_diagnostics(params)

    def _send_heat(self, path: str, view: View | None) -> None:
        if not self._session.client.own:
            return
        workspace = self._session.workspace
        lines: dict[int, HeatLine] = {}
        options = workspace.options(path)
        for layer in layers_in(view):
            if not options.heat:
                break
            for one in heat(layer.analysis, layer.file, options):
                entry = HeatLine(
                    line=one.line - 1,
                    share=one.share,
                    level=one.level,
                    stale=one.freshness.value == "edited",
                    text=one.text,
                )
                if one.line not in lines or lines[one.line].share < one.share:
                    lines[one.line] = entry
        ordered = [lines[number] for number in sorted(lines)]
        version = None if view is None else view.version
        wire = to_wire(HeatParams(uri=workspace.uri_of(path), version=version, lines=ordered))
        if self._heat.get(path) != wire and (ordered or path in self._heat):
            self._heat[path] = wire
            self._session.server.protocol.notify(HEAT, wire)

    def say_status(self, path: str, view: View | None) -> None:
        """What the status item says about an open document."""
        session = self._session
        if not session.client.own or path not in session.workspace.documents:
            return
        wire = to_wire(status_of(session, path, view))
        if self._said.get(path) != wire:
            self._said[path] = wire
            session.server.protocol.notify(STATUS, wire)

    def refresh(self) -> None:
        """Have lenses and hints fetched again."""
        server, client = self._session.server, self._session.client
        if client.lens_refresh:
            self._session.later(_quietly(server.workspace_code_lens_refresh_async(None)))
        if client.hint_refresh:
            self._session.later(_quietly(server.workspace_inlay_hint_refresh_async(None)))

    def overview_changed(self) -> None:
        """Tell a client that lists what is known to ask again."""
        if self._session.client.own and not self._telling:
            self._telling = True
            self._session.later(self._tell_overview())

    async def _tell_overview(self) -> None:
        await asyncio.sleep(_TOGETHER_SECONDS)
        self._telling = False
        session = self._session
        paths = {one.analysis.origin for one in session.workspace.entries.values()}
        inputs = len({*paths, *session.analyses.reading, *session.analyses.errors})
        session.server.protocol.notify(OVERVIEW_CHANGED, to_wire(OverviewChangedParams(inputs=inputs)))

    def say_all(self) -> None:
        """The status of every open document, as after the start or the end of work."""
        self.overview_changed()
        workspace = self._session.workspace
        for path in list(workspace.documents):
            view = workspace.known_view(path)
            if view is None and workspace.layers(path):
                if path not in self._tasks:  # else it is said when the view is there
                    self.soon([path])
            else:
                self.say_status(path, view)

    def everything(self) -> None:
        """Publish all that is known, as after a change of settings."""
        workspace = self._session.workspace
        self.overview_changed()
        self.soon({*workspace.documents, *workspace.files(), *self._sent})
        self.refresh()

    def forget(self, path: str) -> None:
        """A document was closed: what was said about it is said again when it is opened."""
        self._heat.pop(path, None)
        self._said.pop(path, None)


def layers_in(view: View | None) -> tuple[PlacedLayer, ...]:
    """Those of a view, if there is one."""
    return () if view is None else view.layers


def local_paths(layer: PlacedLayer) -> Mapping[str, str]:
    """Resolved paths on this machine by the line table's."""
    return {file.path: resolved(file.local) for file in layer.entry.analysis.files if file.local is not None}


async def _quietly(request: Awaitable[object]) -> None:
    """A client that refuses to refresh shows old lenses, and that is all."""
    with contextlib.suppress(Exception):
        await request
