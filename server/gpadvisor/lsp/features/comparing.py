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
    snapshot: Snapshot, after: Entry, compared: Sequence[ChangedLine], read: Callable[[str], str | None]
) -> list[CompareLine]:
    """Lines that are in today's text as they were in the second run; comparing large texts takes time.

    Args:
        snapshot: what is known.
        after: the second profile.
        compared: the two.
        read: the text of a file at a resolved path that no editor has open.
    """
    local, lines_changed = local_files(after), []
    for file in after.analysis.files:
        in_file, path = (
            [change for change in compared if change.place.file == file.path],
            local.get(file.path),
        )
        if path is None or not in_file:
            continue
        document = snapshot.documents.get(path)
        text = read(path) if document is None else document.text.source
        if text is None:
            continue
        lines = line_map(file, text)
        for change in in_file:
            line, freshness = lines.now(change.place.line)
            if freshness is not Freshness.EDITED:
                lines_changed.append(
                    CompareLine(uri=snapshot.uri_of(path), line=line - 1, change_ns=change.change_ns)
                )
    return sorted(lines_changed, key=lambda line: (-abs(line.change_ns), line.uri, line.line))
