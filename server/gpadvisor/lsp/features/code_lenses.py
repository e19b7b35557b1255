# SPDX-License-Identifier: Apache-2.0
"""Code lenses: each kernel in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.lenses import Lens, LensAction, lenses
from gpadvisor.lsp import protocol
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.workspace import View, file_path

if TYPE_CHECKING:
    from gpadvisor.lsp.server import Server

MAX_PER_LINE = 3


def register(server: Server) -> None:
    """Register the handler."""
    session = server.session

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def on_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens] | None:
        path = file_path(params.text_document.uri)
        view = None if path is None else await session.publisher.asked_view(path)
        if view is None:
            return None
        options, reading = session.workspace.options(view.path), session.analyses.profile_being_read
        counts: dict[int, int] = {}
        found: list[lsp.CodeLens] = []
        for layer in view.layers:
            shown = diagnostics(layer.analysis, layer.file, layer.files, options)
            underlined = {one.id for one in shown}
            for lens in lenses(layer.analysis, layer.file, options, underlined=underlined, reading=reading):
                command = _command(server, view, layer, lens)
                counts[lens.line] = counts.get(lens.line, 0) + (command is not None)
                if command is not None and counts[lens.line] <= MAX_PER_LINE:
                    found.append(_lens(server, view, lens, command))
        return found


def _lens(server: Server, view: View, lens: Lens, command: lsp.Command) -> lsp.CodeLens:
    converter = server.session.publisher.converter()
    extent = converter.range(view.text, lens.line, 0, len(view.text.line(lens.line - 1)))
    return lsp.CodeLens(range=extent, command=command)


def _command(server: Server, view: View, layer: PlacedLayer, lens: Lens) -> lsp.Command | None:
    """What a click does; None where only our client can do it."""
    own = server.session.client.own
    if lens.action is LensAction.IMPORT:
        return lsp.Command(title=lens.title, command=protocol.CLIENT_IMPORT_PROFILE) if own else None
    if lens.action is LensAction.MODEL:
        name, words = (protocol.CLIENT_MODEL_FILE, None) if own else (protocol.MODEL_FILE, [view.uri])
        return lsp.Command(title=lens.title, command=name, arguments=words)
    if lens.action in {LensAction.PICK_KERNEL, LensAction.PICK_LAUNCH}:
        name = protocol.CLIENT_SELECT_KERNEL if own else protocol.SELECT_KERNEL
        return lsp.Command(title=lens.title, command=name, arguments=[view.uri])
    best = next((one for one in layer.file.findings if one.finding.id == lens.finding), None)
    if best is not None and own:
        at = server.session.publisher.converter().position(view.text, best.line, best.start)
        place = [view.uri, at.line, at.character]
        return lsp.Command(title=lens.title, command=protocol.CLIENT_SHOW_LOCATION, arguments=place)
    code = None if best is None else best.finding.code
    if code is not None:
        name = protocol.CLIENT_EXPLAIN if own else protocol.EXPLAIN_COMMAND
        return lsp.Command(title=lens.title, command=name, arguments=[code])
    if own:
        return lsp.Command(
            title=lens.title, command=protocol.CLIENT_OPEN_SASS, arguments=[view.uri, lens.line - 1]
        )
    return lsp.Command(title=lens.title, command=protocol.SELECT_KERNEL, arguments=[view.uri])
