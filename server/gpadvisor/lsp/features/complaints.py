# SPDX-License-Identifier: Apache-2.0
"""Why a source was not analysed, as diagnostics at their places in today's text."""

from __future__ import annotations

from typing import Final

from lsprotocol import types as lsp

from gpadvisor.editor.place.placing import extent, line_map
from gpadvisor.editor.show.diagnostics import SOURCE
from gpadvisor.editor.show.words import clean, shorten
from gpadvisor.lsp.complaints import Complaint
from gpadvisor.lsp.convert import Converter
from gpadvisor.lsp.paths import resolved
from gpadvisor.lsp.texts import Text
from gpadvisor.model.compiler_message import CompilerMessage
from gpadvisor.model.finding import BaselineKind, FileAnalysis, NoteCode

MISSING_HEADER: Final = "missingHeader"
"""What ``data`` of a diagnostic has where folders of headers are to be set."""
_SHOWN: Final = 20
_LETTERS: Final = 400


def complaint_diagnostics(wrong: Complaint, text: Text, converter: Converter) -> list[lsp.Diagnostic]:
    """Where today's text has what was complained about; on its first line what has no place in it.

    They are warnings: what the build does may be fine, and with its flags would be here.
    """
    file = FileAnalysis(
        path=wrong.path,
        local=wrong.path,
        baseline=wrong.text,
        baseline_kind=BaselineKind.COMPILED if wrong.text is not None else BaselineKind.UNKNOWN,
        findings=(),
        lines=(),
    )
    lines = line_map(file, text.source)
    if not wrong.messages:
        return [_diagnostic(wrong.sentence, 1, None, text, converter)]
    diagnostics = []
    for message in wrong.messages[:_SHOWN]:
        line, column = _place(message, wrong.path)
        line_today = lines.now(line)[0]
        diagnostics.append(
            _diagnostic(_words(message, wrong.path), line_today, column, text, converter, message)
        )
    return diagnostics


def _place(message: CompilerMessage, path: str) -> tuple[int, int | None]:
    """Line and column in the source, of a header the line that includes it."""
    if message.file is not None and message.line is not None and resolved(message.file) == path:
        return message.line, message.column
    if message.included_at is not None and resolved(message.included_at[0]) == path:
        return message.included_at[1], None
    return 1, None


def _words(complaint: CompilerMessage, path: str) -> str:
    where = (
        ""
        if complaint.file is None or resolved(complaint.file) == path
        else f"{complaint.file}:{complaint.line}: "
    )
    sentence = f"{where}{complaint.message}".rstrip(".")
    if complaint.missing_header is not None:
        return f"Not analysed: {sentence}. Name the header's folder by -I in gpadvisor.analysis.flags."
    return f"Not analysed: {sentence}."


def _diagnostic(
    words: str,
    line: int,
    column: int | None,
    text: Text,
    converter: Converter,
    message: CompilerMessage | None = None,
) -> lsp.Diagnostic:
    start, end = extent(text.line(line - 1), None)
    if column is not None and start < column <= end:
        start = column - 1
    header = None if message is None else message.missing_header
    return lsp.Diagnostic(
        range=converter.range(text, line, start, end),
        message=clean(shorten(words, _LETTERS)),
        severity=lsp.DiagnosticSeverity.Warning,
        code=NoteCode.NOT_ANALYSED,
        source=SOURCE,
        data={MISSING_HEADER: header} if header is not None and converter.client.diagnostic_data else None,
    )
