# SPDX-License-Identifier: Apache-2.0
"""Hover: what is known of a line, and nothing where nothing is."""

from __future__ import annotations

import re
from typing import Final

from lsprotocol import types as lsp

from gpadvisor.editor.show.hover import hover
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.snapshot import Snapshot, View

_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARKS: Final = re.compile(r"\*\*|(?<!\\)`|\\(?=[\\`*_{}\[\]<>#|~!])")


def hover_at(snapshot: Snapshot, view: View, line: int) -> lsp.Hover | None:
    """What is known of a line from 1; None where nothing is."""
    options = snapshot.options(view.path)
    sections = [
        words
        for layer in view.layers
        if (words := hover(layer.analysis, layer.file, line, layer.files, options, layer.entry.history))
    ]
    if not sections:
        return None
    text, kind = "\n\n---\n\n".join(sections), lsp.MarkupKind.Markdown
    if not snapshot.client.markdown:
        text, kind = _MARKS.sub("", _LINK.sub(r"\1", text)), lsp.MarkupKind.PlainText
    extent = Converter(snapshot).range(view.text, line, 0, len(view.text.line(line - 1)))
    return lsp.Hover(contents=lsp.MarkupContent(kind=kind, value=text), range=extent)
