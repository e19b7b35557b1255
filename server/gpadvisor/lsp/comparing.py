# SPDX-License-Identifier: Apache-2.0
"""Two profiles side by side, and what their lines have gained or lost, in today's text."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gpadvisor.editor.place.placing import line_map
from gpadvisor.errors import UsageError
from gpadvisor.lsp.progress import with_progress
from gpadvisor.lsp.protocol import CompareLine, CompareParams, CompareResult
from gpadvisor.lsp.workspace import file_path, read_text, resolved
from gpadvisor.model.finding import ComparedLines, EditorAnalysis, Freshness
from gpadvisor.sandbox.codec import from_json

if TYPE_CHECKING:
    from gpadvisor.lsp.session import Session


async def compare_profiles(session: Session, asked: CompareParams) -> CompareResult:
    """What changed between two profiles; both are shown, too.

    Raises:
        GpadvisorError: one of them may not be read, or cannot.
    """
    before, after = (_profile(session, uri) for uri in (asked.before, asked.after))
    for path in (before, after):
        if f"profile:{path}" not in session.workspace.entries:
            await session.analyses.profile(path)
    folder = session.workspace.project_of(after)
    arguments = {"before": before, "after": after, "root": str(folder.path)}
    data = await with_progress(
        session.server if session.client.progress else None,
        "GPA: comparing two profiles",
        lambda said: session.workers.run(
            "compare", arguments, timeout_seconds=folder.settings.analysis_timeout_seconds, progress=said
        ),
    )
    compared = from_json(data, ComparedLines)
    lines = await _lines(session, session.workspace.entries[f"profile:{after}"].analysis, compared)
    return CompareResult(text=compared.text, lines=lines)


def _profile(session: Session, uri: str) -> str:
    path = file_path(uri)
    if path is None:
        raise UsageError(f"{uri} is no file on this machine")
    if not session.workspace.may_read(path):
        raise UsageError("the workspace is not trusted: no profile is read")
    return path


async def _lines(session: Session, shown: EditorAnalysis, compared: ComparedLines) -> list[CompareLine]:
    """Lines that are in today's text as they were in the second run."""
    workspace = session.workspace
    texts = {path: text.source for path, text in workspace.texts().items()}
    found = []
    for file in shown.files:
        own = [one for one in compared.lines if one.place.file == file.path]
        path = None if file.local is None or not own else resolved(file.local)
        text = None if path is None else texts.get(path) or await asyncio.to_thread(read_text, path)
        if path is None or text is None:
            continue
        lines = await asyncio.to_thread(line_map, file, text)
        for one in own:
            line, freshness = lines.now(one.place.line)
            if freshness is not Freshness.EDITED:
                found.append(CompareLine(uri=workspace.uri_of(path), line=line - 1, change_ns=one.change_ns))
    return sorted(found, key=lambda one: (-abs(one.change_ns), one.uri, one.line))
