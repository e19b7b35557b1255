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


def file_diagnostics(now: Snapshot, view: View) -> list[lsp.Diagnostic]:
    """What analyses have found in a file, from the top."""
    converter, options = Converter(now), now.options(view.path)
    found = [
        converter.diagnostic(shown, view.text, layer, local_files(layer.entry))
        for layer in view.layers
        for shown in diagnostics(layer.analysis, layer.file, layer.files, options, view.text.source)
    ]
    return sorted(found, key=lambda one: (one.range.start.line, one.severity or 0))


def complaints(now: Snapshot, path: str) -> list[lsp.Diagnostic]:
    """Why an open source was not analysed."""
    wrong, document = now.complaints.get(path), now.documents.get(path)
    if wrong is None or document is None or not now.options(path).diagnostics:
        return []
    return complaint_diagnostics(wrong, document.text, Converter(now))


def heat_params(now: Snapshot, path: str, view: View | None) -> HeatParams:
    """How hot lines are: of several analyses, each line by what gives it the largest share."""
    lines: dict[int, HeatLine] = {}
    options = now.options(path)
    for layer in () if view is None or not options.heat else view.layers:
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
    return HeatParams(uri=now.uri_of(path), version=version, lines=ordered)
