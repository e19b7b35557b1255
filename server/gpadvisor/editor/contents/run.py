# SPDX-License-Identifier: Apache-2.0
"""From a timeline to what an editor shows of it: host code that leaves the GPU idle, on its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpadvisor.editor.contents.places import ProfiledText, baselines, make_places
from gpadvisor.editor.place.remarks import remarks
from gpadvisor.editor.show.words import clean, file_name, plural
from gpadvisor.model.estimate import Evidence
from gpadvisor.model.figures import gain
from gpadvisor.model.finding import (
    BaselineKind,
    EditorAnalysis,
    FileAnalysis,
    Finding,
    NoteCode,
    Place,
    Related,
    ToolNote,
)
from gpadvisor.model.sentence import Sentence
from gpadvisor.model.timeline import HostPlace, RunFinding
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Progress, Request, trace_digest
from gpadvisor.pipeline.sources.facts import read_source_facts
from gpadvisor.pipeline.sources.hosts import host_sources
from gpadvisor.pipeline.sources.suppressions import comments_as_profiled
from gpadvisor.pipeline.timeline import run_times_of
from gpadvisor.report.run_findings import fingerprint, place_words
from gpadvisor.source.facts import MARKER, SuppressionComment

_ID_DIGITS: Final = 16


def show_run(trace: Path, request: Request, progress: Progress, cache: Cache) -> EditorAnalysis:
    """What an editor shows of a timeline: findings on host code, in the files of this machine.

    Raises:
        GpadvisorError: it is no timeline, or damaged.
    """
    progress("reading the timeline")
    findings = run_times_of(trace, cache).findings
    hosts = host_sources(findings, request)
    sources, places = hosts.sources, make_places(hosts.sources, request.root)
    digest = trace_digest(trace)
    local_paths = [match.report_path for match in sources.matches if match.local_path is not None]
    texts = baselines(local_paths, places, sources, None, cache, sha256=digest, compiled=False)
    commented = [(path, text) for path, text in sources.now.items() if MARKER in text]
    comments = comments_as_profiled(sources, read_source_facts(commented)[0]) if commented else {}
    by_file = _findings(hosts.findings, trace.name, comments)
    unknown = ProfiledText(text=None, kind=BaselineKind.UNKNOWN)
    return EditorAnalysis(
        origin=str(trace),
        sha256=digest,
        collector=None,
        collected_at=None,
        kernels=(),
        launches=(),
        files=tuple(
            FileAnalysis(
                path=file,
                local=places.local.get(file),
                baseline=texts.get(file, unknown).text,
                baseline_kind=texts.get(file, unknown).kind,
                findings=tuple(by_file[file]),
                lines=(),
                remarks=remarks(sources.now.get(file, "")),
            )
            for file in sorted(by_file)
        ),
        problems=() if local_paths or not findings else (_nowhere(findings, trace.name),),
    )


def _findings(
    findings: Sequence[RunFinding],
    trace: str,
    comments: Mapping[str, Sequence[SuppressionComment]],
) -> dict[str, list[Finding]]:
    """By file as the trace names it; what has no line is left out."""
    by_file: dict[str, list[Finding]] = {}
    occurrences = Counter[str]()
    for finding in findings:
        digest, key = fingerprint(finding, occurrences)
        occurrences[key] += 1
        place = finding.place
        if place is None or not place.line:
            continue
        reasons = (
            comment.reason
            for comment in comments.get(place.file, ())
            if finding.code in comment.codes and comment.covers(place.line)
        )
        by_file.setdefault(place.file, []).append(
            Finding(
                id=digest[:_ID_DIGITS],
                code=finding.code,
                slug=finding.slug,
                name=finding.name,
                title=finding.title,
                message=_where(place),
                advice=Sentence(finding.advice),
                leads=True,
                line=place.line,
                token=None,
                kernel="",
                kernel_name="",
                evidence=Evidence.MEASURED,
                samples=0,
                importance=None,
                matched=None,
                speedup=finding.speedup,
                parts=(),
                related=tuple(
                    Related(
                        place=Place(file=related.place.file, line=related.place.line),
                        message=clean(related.message),
                    )
                    for related in finding.related
                    if related.place.line
                ),
                scope=None,
                suppressed=next(reasons, None),
                run=clean(trace),
            )
        )
    return by_file


def _where(place: HostPlace) -> str:
    """What of the place is known."""
    if place.is_definition:
        return f"somewhere in {clean(place.function)}, as the trace has no lines of calls."
    return f"{clean(place_words(place))}."


def _nowhere(findings: Sequence[RunFinding], trace: str) -> ToolNote:
    """Why findings are on no line of a file here."""
    best = max(findings, key=lambda finding: finding.speedup.expected)
    places = [finding.place for finding in findings if finding.place is not None]
    if not places:
        why = "the trace has no call paths (docs/idle.md says how they are recorded)"
    else:
        why = f"{place_words(places[0])} is in no file here"
    text = (
        f"{plural(len(findings), 'finding')} on host code, best {gain(best.speedup)} of the whole run:"
        f" {best.name}, on no line of a file here ({file_name(trace)}): {why}. gpadvisor idle tells all."
    )
    return ToolNote(code=NoteCode.OTHER, message=clean(text), place=None)
