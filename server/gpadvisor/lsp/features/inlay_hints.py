# SPDX-License-Identifier: Apache-2.0
"""Inlay hints: the share and the stall at the end of hot lines."""

from __future__ import annotations

from lsprotocol import types as lsp

from gpadvisor.editor.show.hints import hints
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.snapshot import Snapshot, View, local_files


def inlay_hints(snapshot: Snapshot, view: View, visible: lsp.Range) -> list[lsp.InlayHint]:
    """Hints on the lines of a range, one each."""
    options, converter = snapshot.options(view.path), Converter(snapshot)
    lines = range(visible.start.line + 1, visible.end.line + 2)
    hinted: set[int] = set()
    result: list[lsp.InlayHint] = []
    for layer in view.layers:
        for hint in hints(layer.analysis, layer.file, layer.files, options):
            if hint.line in lines and hint.line not in hinted:
                hinted.add(hint.line)
                result.append(converter.hint(hint, view.text, local_files(layer.entry)))
    return result
