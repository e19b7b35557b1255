# SPDX-License-Identifier: Apache-2.0
"""Diagnostics and heat of a file."""

from __future__ import annotations

from lsprotocol import types as lsp

from gpadvisor.editor.show.diagnostics import diagnostics
from gpadvisor.editor.show.heat import heat
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.features.complaints import complaint_diagnostics
from gpadvisor.lsp.protocol import HeatLine, HeatParams
from gpadvisor.lsp.snapshot import Snapshot, View, local_files


def file_diagnostics(snapshot: Snapshot, view: View) -> list[lsp.Diagnostic]:
    """What analyses have found in a file, from the top."""
    converter, options = Converter(snapshot), snapshot.options(view.path)
    result = [
        converter.diagnostic(finding_words, view.text, layer, local_files(layer.entry))
        for layer in view.layers
        for finding_words in diagnostics(layer.analysis, layer.file, layer.files, options, view.text.source)
    ]
    return sorted(result, key=lambda diagnostic: (diagnostic.range.start.line, diagnostic.severity or 0))


def complaints(snapshot: Snapshot, path: str) -> list[lsp.Diagnostic]:
    """Why an open source was not analysed."""
    wrong, document = snapshot.complaints.get(path), snapshot.documents.get(path)
    if wrong is None or document is None or not snapshot.options(path).diagnostics:
        return []
    return complaint_diagnostics(wrong, document.text, Converter(snapshot))


def heat_params(snapshot: Snapshot, path: str, view: View | None) -> HeatParams:
    """How hot lines are: of several analyses, each line by what gives it the largest share."""
    lines: dict[int, HeatLine] = {}
    options = snapshot.options(path)
    for layer in () if view is None or not options.heat else view.layers:
        for hot_line in heat(layer.analysis, layer.file, options):
            entry = HeatLine(
                line=hot_line.line - 1,
                share=hot_line.share,
                level=hot_line.level,
                stale=hot_line.freshness.value == "edited",
                text=hot_line.text,
            )
            if hot_line.line not in lines or lines[hot_line.line].share < hot_line.share:
                lines[hot_line.line] = entry
    ordered = [lines[number] for number in sorted(lines)]
    version = None if view is None else view.version
    return HeatParams(uri=snapshot.uri_of(path), version=version, lines=ordered)
