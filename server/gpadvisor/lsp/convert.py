# SPDX-License-Identifier: Apache-2.0
"""The editor's values as LSP's, in the client's units and as far as the client knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from lsprotocol import types as lsp

from gpadvisor.editor.show.diagnostics import SOURCE, Shown
from gpadvisor.editor.show.hints import Hint, HintPart
from gpadvisor.editor.show.options import Severity
from gpadvisor.lsp.capabilities import ClientFeatures
from gpadvisor.lsp.layers import PlacedLayer
from gpadvisor.lsp.snapshot import Snapshot
from gpadvisor.lsp.texts import Text
from gpadvisor.model.finding import Place

_SEVERITIES: Final = {
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFORMATION: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}


@dataclass(frozen=True, slots=True)
class Converter:
    """For the client and the open texts of a snapshot."""

    snapshot: Snapshot

    @property
    def client(self) -> ClientFeatures:
        """What the client understands."""
        return self.snapshot.client

    def position(self, text: Text, line: int, column: int) -> lsp.Position:
        """A place with a line from 1 and a column in code points."""
        return lsp.Position(line=line - 1, character=text.units(line - 1, column, self.snapshot.encoding))

    def range(self, text: Text, line: int, start: int, end: int) -> lsp.Range:
        """Part of one line."""
        return lsp.Range(start=self.position(text, line, start), end=self.position(text, line, end))

    def line_end(self, text: Text, line: int) -> lsp.Position:
        """Behind the last letter of a line."""
        return self.position(text, line, len(text.line(line - 1)))

    def location(self, place: Place, local: Mapping[str, str]) -> lsp.Location | None:
        """A place in today's text; None where its file is not on this machine."""
        path = local.get(place.file)
        if path is None:
            return None
        document, line = self.snapshot.documents.get(path), max(place.line, 1)
        start = end = lsp.Position(line=line - 1, character=0)
        if document is not None:
            text = document.text
            words = text.line(line - 1)
            start = self.position(text, line, len(words) - len(words.lstrip()))
            end = self.line_end(text, line)
        return lsp.Location(uri=self.snapshot.uri_of(path), range=lsp.Range(start=start, end=end))

    def diagnostic(
        self, finding_words: Shown, text: Text, layer: PlacedLayer, local: Mapping[str, str]
    ) -> lsp.Diagnostic:
        """One diagnostic; related places go into the message where the client shows none."""
        message = finding_words.message
        related = None
        if self.client.related_information:
            related = [
                lsp.DiagnosticRelatedInformation(location=location, message=entry.message)
                for entry in finding_words.related
                if (location := self.location(entry.place, local)) is not None
            ]
        elif finding_words.related:
            lines = [
                f"{PurePath(entry.place.file).name}:{entry.place.line}: {entry.message}"
                for entry in finding_words.related
            ]
            message = "\n".join([message, *lines])
        page = None
        if finding_words.page is not None and self.client.code_description:
            page = lsp.CodeDescription(href=finding_words.page)
        return lsp.Diagnostic(
            range=self.range(text, finding_words.line, finding_words.start, finding_words.end),
            message=message,
            severity=_SEVERITIES[finding_words.severity],
            code=finding_words.code,
            code_description=page,
            source=SOURCE,
            tags=[lsp.DiagnosticTag.Unnecessary] if finding_words.faded else None,
            related_information=related or None,
            data={"finding": finding_words.id, "profile": layer.analysis.sha256}
            if self.client.diagnostic_data
            else None,
        )

    def hint(self, hint: Hint, text: Text, local: Mapping[str, str]) -> lsp.InlayHint:
        """One hint behind its line."""
        parts = [self._part(part, local) for part in hint.parts]
        return lsp.InlayHint(
            position=self.line_end(text, hint.line), label=parts, tooltip=hint.tooltip, padding_left=True
        )

    def _part(self, part: HintPart, local: Mapping[str, str]) -> lsp.InlayHintLabelPart:
        place = None if part.place is None else self.location(part.place, local)
        return lsp.InlayHintLabelPart(value=part.text, tooltip=part.tooltip, location=place)


def overlaps(diagnostics: Sequence[lsp.Diagnostic], selection: lsp.Range) -> list[lsp.Diagnostic]:
    """Those on lines of a range."""
    return [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.range.start.line <= selection.end.line
        and diagnostic.range.end.line >= selection.start.line
    ]
