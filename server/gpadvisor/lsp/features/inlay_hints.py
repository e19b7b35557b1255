# SPDX-License-Identifier: Apache-2.0
"""Inlay hints: the share and the stall at the end of hot lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from gpadvisor.editor.show.hints import hints
from gpadvisor.lsp.publishing import local_paths
from gpadvisor.lsp.workspace import file_path

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server


def register(server: Server) -> None:
    """Register the handler."""
    session = server.session

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintOptions(resolve_provider=False))
    async def on_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint] | None:
        path = file_path(params.text_document.uri)
        view = None if path is None else await session.publisher.asked_view(path)
        if view is None:
            return None
        options, converter = session.workspace.options(view.path), session.publisher.converter()
        wanted = range(params.range.start.line + 1, params.range.end.line + 2)
        taken: set[int] = set()
        found: list[lsp.InlayHint] = []
        for layer in view.layers:
            for hint in hints(layer.analysis, layer.file, layer.files, options):
                if hint.line in wanted and hint.line not in taken:
                    taken.add(hint.line)
                    found.append(converter.hint(hint, view.text, local_paths(layer)))
        return found
