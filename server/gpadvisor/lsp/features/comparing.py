# SPDX-License-Identifier: Apache-2.0
"""What lines have gained or lost between two profiles, in today's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpadvisor.editor.place.placing import line_map
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.page_protocol import CompareLine
from gpadvisor.lsp.snapshot import Snapshot, local_files
from gpadvisor.model.finding import ChangedLine, Freshness


def compared_lines(
    now: Snapshot, after: Entry, compared: Sequence[ChangedLine], read: Callable[[str], str | None]
) -> list[CompareLine]:
    """Lines that are in today's text as they were in the second run; comparing large texts takes time.

    Args:
        now: what is known.
        after: the second profile.
        compared: the two.
        read: the text of a file at a resolved path that no editor has open.
    """
    local, found = local_files(after), []
    for file in after.analysis.files:
        own, path = [one for one in compared if one.place.file == file.path], local.get(file.path)
        if path is None or not own:
            continue
        document = now.documents.get(path)
        text = read(path) if document is None else document.text.source
        if text is None:
            continue
        lines = line_map(file, text)
        for one in own:
            line, freshness = lines.now(one.place.line)
            if freshness is not Freshness.EDITED:
                found.append(CompareLine(uri=now.uri_of(path), line=line - 1, change_ns=one.change_ns))
    return sorted(found, key=lambda one: (-abs(one.change_ns), one.uri, one.line))
