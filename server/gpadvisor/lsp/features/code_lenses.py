# SPDX-License-Identifier: Apache-2.0
"""Code lenses: each kernel in a line."""

from __future__ import annotations

from lsprotocol import types as lsp

from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.lenses import Lens, LensAction, lenses
from gpadvisor.lsp import protocol
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.snapshot import Snapshot, View

MAX_PER_LINE = 3


def code_lenses(snapshot: Snapshot, view: View) -> list[lsp.CodeLens]:
    """The lenses of a file, few on a line."""
    options = snapshot.options(view.path)
    counts: dict[int, int] = {}
    result: list[lsp.CodeLens] = []
    for layer in view.layers:
        underlined = {
            diagnostic.id for diagnostic in diagnostics(layer.analysis, layer.file, layer.files, options)
        }
        for lens in lenses(
            layer.analysis, layer.file, options, underlined=underlined, reading=snapshot.profile_being_read
        ):
            command = _command(snapshot, view, layer, lens)
            counts[lens.line] = counts.get(lens.line, 0) + (command is not None)
            if command is not None and counts[lens.line] <= MAX_PER_LINE:
                result.append(_lens(snapshot, view, lens, command))
    return result


def _lens(snapshot: Snapshot, view: View, lens: Lens, command: lsp.Command) -> lsp.CodeLens:
    extent = Converter(snapshot).range(view.text, lens.line, 0, len(view.text.line(lens.line - 1)))
    return lsp.CodeLens(range=extent, command=command)


def _command(snapshot: Snapshot, view: View, layer: PlacedLayer, lens: Lens) -> lsp.Command | None:
    """What a click does; None where only our client can do it."""
    is_own_client = snapshot.client.own
    if lens.action is LensAction.IMPORT:
        return (
            lsp.Command(title=lens.title, command=protocol.CLIENT_IMPORT_PROFILE) if is_own_client else None
        )
    if lens.action is LensAction.MODEL:
        name, words = (
            (protocol.CLIENT_MODEL_FILE, None) if is_own_client else (protocol.MODEL_FILE, [view.uri])
        )
        return lsp.Command(title=lens.title, command=name, arguments=words)
    if lens.action in {LensAction.PICK_KERNEL, LensAction.PICK_LAUNCH}:
        name = protocol.CLIENT_SELECT_KERNEL if is_own_client else protocol.SELECT_KERNEL
        return lsp.Command(title=lens.title, command=name, arguments=[view.uri])
    best = next((placed for placed in layer.file.findings if placed.finding.id == lens.finding), None)
    if best is not None and is_own_client:
        position = Converter(snapshot).position(view.text, best.line, best.start)
        place = [view.uri, position.line, position.character]
        return lsp.Command(title=lens.title, command=protocol.CLIENT_SHOW_LOCATION, arguments=place)
    code = None if best is None else best.finding.code
    if code is not None:
        name = protocol.CLIENT_EXPLAIN if is_own_client else protocol.EXPLAIN_COMMAND
        return lsp.Command(title=lens.title, command=name, arguments=[code])
    if is_own_client:
        return lsp.Command(
            title=lens.title, command=protocol.CLIENT_OPEN_SASS, arguments=[view.uri, lens.line - 1]
        )
    return lsp.Command(title=lens.title, command=protocol.SELECT_KERNEL, arguments=[view.uri])
