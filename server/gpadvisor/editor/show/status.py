# SPDX-License-Identifier: Apache-2.0
"""One line for the status bar, with details: device, age of the profile, advice, what of it is stale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.show.ledger import entry_words
from gpadvisor.editor.show.options import Options, Severity
from gpadvisor.editor.show.severity import finding_severity, severity
from gpadvisor.editor.show.words import EVIDENCE_WORDS, clean, file_name, plural
from gpadvisor.model.estimate import Estimate, Evidence
from gpadvisor.model.figures import expected, gain, short_percent
from gpadvisor.model.finding import EditorAnalysis, Finding, Freshness, LedgerEntry, NoteCode, Place, ToolNote

_AGES: Final = ((86400 * 365, "year"), (86400, "day"), (3600, "hour"), (60, "minute"))
_DETAIL_KERNELS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the status item shows."""

    text: str  # "GPA A100 · 2 hours ago · 5 findings · 8 % stale"
    details: tuple[str, ...]
    stale_share: float | None  # of the samples that lie in the files; None without samples


def status(
    analysis: EditorAnalysis,
    files: Iterable[PlacedFile],
    time: datetime,
    history: Sequence[LedgerEntry] = (),
) -> Status:
    """The status of what is shown, at a time."""
    placed = tuple(files)
    stale = stale_share(placed)
    all_findings = [finding for file in analysis.files for finding in file.findings]
    findings = sum(1 for finding in all_findings if finding.leads and finding.suppressed is None)
    parts = ["GPA", *_devices(analysis)]
    age_words = age(analysis.collected_at, time)
    if age_words is not None:
        parts.append(age_words)
    evidences = {kernel.evidence for kernel in analysis.kernels}
    if len(evidences) == 1 and analysis.collector != "ncu":
        parts.append(EVIDENCE_WORDS[next(iter(evidences))])
    parts.append(plural(findings, "finding"))
    if stale:
        parts.append(f"{short_percent(stale)} stale")
    details = [clean(file_name(analysis.origin))]
    details += [clean(f"{kernel.name}: {kernel.verdict}") for kernel in analysis.kernels[:_DETAIL_KERNELS]]
    if len(analysis.kernels) > _DETAIL_KERNELS:
        details.append(f"and {plural(len(analysis.kernels) - _DETAIL_KERNELS, 'more kernel')}")
    details += [clean(f"{note.code}: {note.message}") for note in analysis.problems if note.place is None]
    details += [clean(entry_words(entry)) for entry in history]
    return Status(text=clean(" \N{MIDDLE DOT} ".join(parts)), details=tuple(details), stale_share=stale)


def bar_words(analysis: EditorAnalysis, file: PlacedFile, options: Options) -> str:
    """What of an analysis a file shows, for the status bar: ``3 findings, best 4.5x``."""
    open_ones = open_findings(file, options)
    words = [plural(len(open_ones), "finding") if open_ones else "no finding"]
    gains = [finding.speedup for finding in open_ones if finding.speedup is not None]
    evidences = {kernel.evidence for kernel in analysis.kernels}
    if stale := stale_share([file]):
        words.append(f"{short_percent(stale)} stale")
    elif gains:
        words.append(f"best {expected(max(gains, key=lambda estimate: estimate.expected))}")
    if evidences == {Evidence.STATIC}:
        words.append("code only")
    elif evidences == {Evidence.MODELLED}:
        words.append("modelled")
    return ", ".join(words)


def open_findings(file: PlacedFile, options: Options) -> list[Finding]:
    """The findings of a file that neither a comment nor a setting has set aside, each suggestion once."""
    all_placed = (*file.findings, *file.deleted_findings)
    return [
        placed.finding
        for placed in all_placed
        if placed.finding.leads and severity(placed, options) is not Severity.OFF
    ]


def elsewhere_words(analyses: Iterable[EditorAnalysis], options: Options) -> str | None:
    """The most that other files of these profiles have to offer, ``13.0x in b.cu``; None where nothing."""
    gains = [
        (finding.speedup, file_name(file.local))
        for analysis in analyses
        for file in analysis.files
        for finding in file.findings
        if file.local is not None and finding.leads and finding.speedup
        if finding_severity(finding, Freshness.FRESH, options) is not Severity.OFF
    ]
    if not gains:
        return None
    speedup, name = max(gains, key=lambda gain_and_file: gain_and_file[0].expected)
    return f"{expected(speedup)} in {clean(name)}"


def nowhere_words(analysis: EditorAnalysis) -> str | None:
    """What there is to say of an input none of whose lines is in a file here; None where one is."""
    if any(file.local is not None for file in analysis.files):
        return None
    open_ones = [
        suggestion
        for kernel in analysis.kernels
        for suggestion in kernel.suggestions
        if suggestion.suppressed is None
    ]
    summary = plural(len(open_ones), "suggestion") if open_ones else "no suggestion"
    if (best := _best([analysis])) is not None:
        summary += f", best {gain(best[0])}: {best[1]}"
    notes = sorted(analysis.problems, key=lambda note: (note.code != NoteCode.NO_LINES, note.quiet))
    why = notes[0].message if notes else "no file of it is here."
    where = (
        f"on no line of a file here ({file_name(analysis.origin)})"  # after what a narrow message must hold
    )
    return clean(f"{summary}, {where}: {why} gpadvisor advise tells all of it.")


def best_words(analyses: Iterable[EditorAnalysis]) -> str | None:
    """The most that any kernel of these inputs could gain, ``4.5x``; None where nothing is estimated."""
    best = _best(analyses)
    return None if best is None else expected(best[0])


def _best(analyses: Iterable[EditorAnalysis]) -> tuple[Estimate, str] | None:
    """The largest gain of the suggestions that no comment sets aside, and what it is called."""
    gains = [
        (suggestion.speedup, suggestion.name)
        for analysis in analyses
        for kernel in analysis.kernels
        for suggestion in kernel.suggestions
        if suggestion.suppressed is None and suggestion.speedup is not None
    ]
    return max(gains, key=lambda gain_and_name: gain_and_name[0].expected, default=None)


def _devices(analysis: EditorAnalysis) -> list[str]:
    names = list(dict.fromkeys(kernel.device for kernel in analysis.kernels if kernel.device))
    if not names:
        return []
    return [names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"]


def stale_share(files: Sequence[PlacedFile]) -> float | None:
    """The share of samples on lines that were edited or deleted since; None without samples."""
    samples = sum(file.samples for file in files)
    return sum(file.stale_samples for file in files) / samples if samples else None


def stale_note(analysis: EditorAnalysis, files: Iterable[PlacedFile]) -> ToolNote | None:
    """GPA902: how much of the profile still stands, on the first line that does not; None if all does.

    Without samples there is none: what was compiled is compiled again.
    """
    placed = tuple(files)
    share = stale_share(placed)
    if not share:
        return None
    when = _taken(analysis)
    where = f" in {file_name(placed[0].path)}" if len(placed) == 1 else ""
    unchanged = f"{short_percent(1 - share)} of its samples{where} are on unchanged lines"
    sentence = f"{when}, before your last edits: {unchanged}"
    findings = sum(file.stale_findings for file in placed)
    if findings:
        sentence += f", and {plural(findings, 'finding')} on edited ones"
    return ToolNote(
        code=NoteCode.STALE, message=f"{sentence}. Profile again to renew them.", place=_first_stale(placed)
    )


def _taken(analysis: EditorAnalysis) -> str:
    if analysis.collected_at is None:
        return f"{file_name(analysis.origin)} was taken"
    return f"Profile taken {analysis.collected_at[:16].replace('T', ' ')}"


def _first_stale(files: Sequence[PlacedFile]) -> Place | None:
    """The first line of the baseline that was edited or deleted."""
    for file in files:
        lines = [
            placed_line.data.line for placed_line in file.lines if placed_line.freshness is Freshness.EDITED
        ]
        lines += [placed.data.line for placed in file.deleted_lines]
        if lines:
            return Place(file=file.path, line=min(lines))
    return None


def age(collected_at: str | None, time: datetime) -> str | None:
    """``2 hours ago``; None where the time is not known or makes no sense."""
    if collected_at is None:
        return None
    try:
        then = datetime.fromisoformat(collected_at)
    except ValueError:
        return None
    then = then if then.tzinfo is not None else then.replace(tzinfo=UTC)
    time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    seconds = (time - then).total_seconds()
    if seconds < 0:
        return None
    for size, name in _AGES:
        if seconds >= size:
            return f"{plural(int(seconds // size), name)} ago"
    return "just now"
