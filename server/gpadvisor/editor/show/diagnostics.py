# SPDX-License-Identifier: Apache-2.0
"""Findings and tool notes as diagnostics: which are shown, with what words, where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpadvisor.editor.place.placing import PlacedFile, PlacedFinding, extent, lines_today, related_now
from gpadvisor.editor.show.headline import headline, run_gain
from gpadvisor.editor.show.options import Options, Severity, Stale
from gpadvisor.editor.show.severity import note_severity, severity
from gpadvisor.editor.show.status import stale_note
from gpadvisor.editor.show.words import EVIDENCE_WORDS, FRESHNESS_WORDS, clean, plural, shorten
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.finding import (
    EditorAnalysis,
    Finding,
    Freshness,
    KernelView,
    NoteCode,
    Place,
    Related,
    ToolNote,
)
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.sentence import Sentence, line_mark
from gpadvisor.source.line_map import split_lines

SOURCE: Final = "gpadvisor"
_ADVICE: Final = 240
_RELATED: Final = 2
"""Places beside a diagnostic: an editor shows them above the hover, whose table has all."""
_LOUDNESS: Final = {Severity.WARNING: 0, Severity.INFORMATION: 1, Severity.HINT: 2, Severity.OFF: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One diagnostic; places are those of today's text."""

    id: str  # of the finding, "" for a tool note
    code: str
    page: str | None
    severity: Severity  # never OFF
    line: int
    start: int  # column from 0, in code points
    end: int
    message: str
    related: tuple[Related, ...]
    faded: bool  # the line was edited since the profile


def diagnostics(
    analysis: EditorAnalysis,
    file: PlacedFile,
    files: Mapping[str, PlacedFile],
    options: Options,
    text: str | None = None,
) -> tuple[Shown, ...]:
    """The diagnostics of a file: the loudest and best ones where there are more than the settings allow.

    Args:
        analysis: What is shown.
        file: The file in today's text.
        files: All placed files by path, for related places.
        options: What the user wants to see.
        text: Today's text, for the columns of tool notes.
    """
    if not options.diagnostics:
        return ()
    kernels = {kernel.kernel: kernel for kernel in analysis.kernels}
    candidates = [(severity(placed, options), placed) for placed in (*file.findings, *_gone(file, options))]
    candidates = [
        (loudness, placed)
        for loudness, placed in candidates
        if loudness is not Severity.OFF
        and not (options.stale is Stale.HIDE and placed.freshness is Freshness.EDITED)
    ]
    ranked = sorted(candidates, key=lambda pair: (_LOUDNESS[pair[0]], *rank(pair[1].finding)))
    result = [
        _shown(loudness, placed, kernels.get(placed.finding.kernel), file, files, options)
        for loudness, placed in ranked[: options.max_per_file]
    ]
    hidden = ranked[options.max_per_file :]
    if hidden and result:
        result[-1] = _and_more(result[-1], len(hidden))
    stale = stale_note(analysis, [file])
    notes = analysis.problems if stale is None else (*analysis.problems, stale)
    result += _notes(notes, file, options, text)
    return _loudest_first(result)


def _loudest_first(diagnostics: Sequence[Shown]) -> tuple[Shown, ...]:
    """By line, as ranked. Editors list by column what they hover over: nothing begins before the loudest."""
    first: dict[int, int] = {}
    result = []
    for diagnostic in sorted(
        diagnostics, key=lambda diagnostic: (diagnostic.line, _LOUDNESS[diagnostic.severity])
    ):
        start = max(diagnostic.start, first.setdefault(diagnostic.line, diagnostic.start))
        result.append(
            diagnostic if diagnostic.faded or start >= diagnostic.end else replace(diagnostic, start=start)
        )
    return tuple(result)


def tags(finding: Finding, freshness: Freshness, kernel: KernelView | None) -> tuple[str, ...]:
    """What a reader must know before believing the numbers."""
    labels = [EVIDENCE_WORDS[finding.evidence]]
    profiled = finding.evidence in {Evidence.MEASURED, Evidence.COUNTED}
    if profiled or freshness is Freshness.UNVERIFIED:
        labels.append(FRESHNESS_WORDS[freshness])
    elif freshness is Freshness.EDITED:
        labels.append("edited since it was compiled")
    if kernel is not None and kernel.device:
        labels.append(kernel.device)
    return (*labels, finding.run or finding.kernel_name)


def message(
    finding: Finding,
    freshness: Freshness,
    kernel: KernelView | None,
    line_today: Callable[[SourceLocation], str | None],
) -> str:
    """The diagnostic's one line: gain, cure, cause, the change, and what that rests on.

    Lists cut it at a hundred letters: by then all but the change has been said.
    """
    rests_on = ", ".join(tags(finding, freshness, kernel))
    if finding.lead is not None and not finding.leads:
        lead = Sentence(line_mark(SourceLocation(finding.lead.file, finding.lead.line))).at(line_today)
        part = finding.name if finding.speedup is None else headline(finding)
        return clean(f"Part of {part}: {finding.title}. The change is at {lead}. [{rests_on}]")
    change = finding.cure.at(line_today) or shorten(finding.advice.at(line_today), _ADVICE)
    return clean(f"{headline(finding)}: {finding.title}. {change.rstrip('.')}. [{rests_on}]")


def _gone(file: PlacedFile, options: Options) -> Sequence[PlacedFinding]:
    """Findings whose lines were deleted: they stay where the lines stood, unless edited ones are hidden."""
    return () if options.stale is Stale.HIDE else file.deleted_findings


def rank(finding: Finding) -> tuple[bool, bool, float, float, int, bool, str, str]:
    """What gives the run most first, lines that lead their suggestion before all others."""
    gain = 0.0 if finding.speedup is None else finding.speedup.expected
    return (
        finding.suppressed is not None,
        not finding.leads,
        -run_gain(finding),
        -gain,
        -finding.samples,
        finding.token is None,
        finding.code,
        finding.id,
    )


def _shown(
    loudness: Severity,
    placed: PlacedFinding,
    kernel: KernelView | None,
    file: PlacedFile,
    files: Mapping[str, PlacedFile],
    options: Options,
) -> Shown:
    finding = placed.finding
    edited = placed.freshness is Freshness.EDITED
    placed_files = {**files, file.path: file}
    return Shown(
        id=finding.id,
        code=finding.code,
        page=options.page(finding.code, finding.slug),
        severity=loudness,
        line=placed.line,
        start=placed.start,
        end=placed.end,
        message=message(finding, placed.freshness, kernel, lines_today(placed_files)),
        related=related_now(
            finding.related[:_RELATED], placed_files, Place(file=file.path, line=finding.line)
        ),
        faded=edited and options.stale is Stale.DIM,
    )


def _and_more(final: Shown, more: int) -> Shown:
    sentence = f"{final.message} ({plural(more, 'finding')} of less weight in this file not shown)"
    return replace(final, message=sentence)


def _notes(
    notes: Sequence[ToolNote], file: PlacedFile, options: Options, text: str | None
) -> Sequence[Shown]:
    result = []
    lines = [] if text is None else split_lines(text)
    for note in notes:
        if note.place is None or note.place.file != file.path:
            continue
        loudness = note_severity(note, options)
        if loudness is Severity.OFF:
            continue
        line, freshness = file.map.now(note.place.line)
        edited = freshness is Freshness.EDITED and note.code != NoteCode.STALE
        start, end = extent(lines[line - 1] if line <= len(lines) else "", None)
        result.append(
            Shown(
                id="",
                code=note.code,
                page=None,
                severity=loudness,
                line=line,
                start=start,
                end=end,
                message=clean(note.message),
                related=(),
                faded=edited and options.stale is Stale.DIM,
            )
        )
    return result
