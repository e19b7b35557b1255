# SPDX-License-Identifier: Apache-2.0
"""What files show, placed in today's texts: made in threads, as comparing large texts takes time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from gpadvisor.editor.place.placing import PlacedFile, place
from gpadvisor.editor.place.quieted import quieted
from gpadvisor.lsp.background import Background
from gpadvisor.lsp.layers import PlacedLayer, layers_of, settled
from gpadvisor.lsp.paths import file_path, read_text, resolved
from gpadvisor.lsp.snapshot import EntryFile, View
from gpadvisor.lsp.state import State
from gpadvisor.lsp.texts import Text


class Views:
    """The views of open files are kept until their text or an analysis changes."""

    def __init__(self, state: State, background: Background) -> None:
        self._state, self._background = state, background
        self._kept: dict[str, View] = {}
        self._making: dict[tuple[str, int], asyncio.Task[View | None]] = {}  # by path and revision

    async def asked(self, uri: str) -> View | None:
        """For a request: whoever has the file before them waits for its analysis."""
        path = file_path(uri)
        if path is not None:
            self._state.looked_at(path)
        return await self.of(uri)

    async def of(self, uri: str) -> View | None:
        """What a document shows now."""
        path = file_path(uri)
        return None if path is None else await self.view(path)

    def known(self, path: str) -> View | None:
        """The view of the text as it is, where it was made already."""
        view = self._kept.get(path)
        if view is not None and not self._state.now.is_current(view):
            del self._kept[path]
            return None
        return view

    async def view(self, path: str) -> View | None:
        """What a file shows now."""
        while True:
            made_view, snapshot = self.known(path), self._state.now
            if made_view is not None:
                return made_view
            analyses = snapshot.by_file.get(path)
            if not analyses:
                return None
            document = snapshot.documents.get(path)
            key = path, snapshot.revision  # one begun before the newest analysis does not have that in it
            making = self._making.get(key)
            if making is None or making.done():  # done, and not taken out yet: that does not happen in a wait
                uri, version = snapshot.uri_of(path), None if document is None else document.version
                work = asyncio.to_thread(make_view, path, uri, version, analyses, snapshot.texts())
                making = self._making[key] = asyncio.ensure_future(work)
                making.add_done_callback(partial(self._made, key))
            view = await asyncio.shield(making)
            if view is None or path not in self._state.now.documents:
                return view
            if self._state.now.is_current(view):
                self._kept[path] = view
                return view
            if self._background.closing:
                return None

    def _made(self, key: tuple[str, int], task: asyncio.Task[View | None]) -> None:
        if self._making.get(key) is task:
            del self._making[key]


def make_view(
    path: str, uri: str, version: int | None, analyses: Sequence[EntryFile], texts: Mapping[str, Text]
) -> View | None:
    """Place everything in today's texts; None where the file cannot be read. Safe in a thread."""
    text = texts.get(path)
    if text is None:
        source = read_text(path)
        if source is None:
            return None
        text = Text(source)
    placed = []
    for layer in layers_of(analyses):
        placed_files: dict[str, PlacedFile] = {}
        for file in layer.entry.analysis.files:
            local_path = None if file.local is None else resolved(file.local)
            if local_path is not None and local_path != path and local_path in texts:
                placed_files[file.path] = place(file, texts[local_path].source)
        placed_file = quieted(place(layer.file, text.source), text.source)
        placed.append(
            PlacedLayer(entry=layer.entry, analysis=layer.analysis, file=placed_file, files=placed_files)
        )
    return View(
        uri=uri, path=path, version=version, text=text, layers=settled(placed), made_of=tuple(analyses)
    )
