# SPDX-License-Identifier: Apache-2.0
"""Hover: what is known of a line, and nothing where nothing is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lsprotocol import types as lsp

from gpadvisor.editor.show.hover import hover
from gpadvisor.lsp.workspace import View, file_path

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server

_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"\*\*|(?<!\\)`|\\(?=[\\`*_{}\[\]<>#|~!])")


def register(server: Server) -> None:
    """Register the handler."""
    session = server.session

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: lsp.HoverParams) -> lsp.Hover | None:
        path = file_path(params.text_document.uri)
        view = None if path is None else await session.publisher.asked_view(path)
        if view is None:
            return None
        return _answer(server, view, params.position.line + 1)


def _answer(server: Server, view: View, line: int) -> lsp.Hover | None:
    options = server.session.workspace.options(view.path)
    said = [
        words
        for layer in view.layers
        if (words := hover(layer.analysis, layer.file, line, layer.files, options, layer.entry.history))
    ]
    if not said:
        return None
    text, kind = "\n\n---\n\n".join(said), lsp.MarkupKind.Markdown
    if not server.session.client.markdown:
        text, kind = _MARKS.sub("", _LINK.sub(r"\1", text)), lsp.MarkupKind.PlainText
    converter = server.session.publisher.converter()
    extent = converter.range(view.text, line, 0, len(view.text.line(line - 1)))
    return lsp.Hover(contents=lsp.MarkupContent(kind=kind, value=text), range=extent)
