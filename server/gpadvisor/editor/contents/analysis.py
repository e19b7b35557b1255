# SPDX-License-Identifier: Apache-2.0
"""From a file to what an editor shows of it; runs in a worker process."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpadvisor.editor.contents.findings import FileFindings, FindingSources, KernelInput, findings
from gpadvisor.editor.contents.kernels import (
    display_name,
    kernel_view,
    launch_views,
    tool_notes,
)
from gpadvisor.editor.contents.lines import KernelLines, blame_rows, kernel_lines
from gpadvisor.editor.contents.machine_code import sass_view
from gpadvisor.editor.contents.places import (
    Places,
    ProfiledText,
    baselines,
    kernel_file,
    kernel_place,
    make_places,
)
from gpadvisor.editor.place.placing import line_map
from gpadvisor.editor.place.remarks import remarks
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.model.finding import (
    BaselineKind,
    EditorAnalysis,
    FileAnalysis,
    LineData,
    NoteCode,
    Place,
    SassView,
    ToolNote,
)
from gpadvisor.pipeline.advise import AdvisedFile, AdvisedKernel, advise_analysis, in_traced_run, sources_of
from gpadvisor.pipeline.analyse import AnalysedKernel, Analysis, analyse_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources.chosen import SourceChooser
from gpadvisor.pipeline.sources.facts import begin_reading
from gpadvisor.pipeline.sources.kernels import Definition
from gpadvisor.pipeline.sources.lookup import FoundSources, find_sources
from gpadvisor.pipeline.sources.seen import SeenSources
from gpadvisor.pipeline.timeline import with_own_timeline
from gpadvisor.report.names import base_name
from gpadvisor.source.facts import SourceFacts


def advise_and_show(
    path: Path, request: Request, progress: Progress, cache: Cache
) -> tuple[AdvisedFile, EditorAnalysis]:
    """Everything that an editor shows of a report, a snapshot, a cubin or a source, with its advice.

    All kernels are in the answer; the request's launch chooses among the launches of its kernel.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    return advise_wanted(path, request._replace(kernel=None, prefer_launch=True), progress, cache)


def advise_wanted(
    path: Path, request: Request, progress: Progress, cache: Cache
) -> tuple[AdvisedFile, EditorAnalysis]:
    """The same of the kernels that were asked for."""
    request = with_own_timeline(path, request)
    if input_kind(path) is InputKind.SOURCE:
        begin_reading(path)
    analysis = analyse_file(path, request, progress, cache)
    seen_sources = SeenSources(cache, request.root)
    sources = sources_of(analysis, request, progress, seen_sources)
    if analysis.profile is not None:
        seen_sources.remember(analysis.sha256, make_places(sources, request.root).local, sources.local)
    texts = _baselines(analysis, sources, request, cache)
    profiled = {file: text.text for file, text in texts.items() if text.text is not None}
    sources = replace(sources, profiled={**profiled, **sources.profiled})
    advised = advise_analysis(analysis, sources, request, progress, cache, _kernel_files(analysis))
    advised = in_traced_run(advised, request, progress, cache)
    progress("putting findings on their lines")
    return advised, _shown(advised, texts, make_places(sources, request.root))


def _baselines(
    analysis: Analysis, sources: FoundSources, request: Request, cache: Cache
) -> dict[str, ProfiledText]:
    """The texts that lines are of."""
    places = make_places(sources, request.root)
    return baselines(
        [match.report_path for match in sources.matches],
        places,
        sources,
        analysis.profile,
        cache,
        sha256=analysis.sha256,
        compiled=input_kind(analysis.path) is InputKind.SOURCE,
        unproved=analysis.source_lines.alike,
    )


def _shown(advised: AdvisedFile, texts: Mapping[str, ProfiledText], places: Places) -> EditorAnalysis:
    analysis = advised.analysis
    for analysed in analysis.kernels:
        places.know(analysed.context.program)
    facts = {places.name(file): source_facts for file, source_facts in advised.facts.items()}
    texts_then = {places.name(file): text for file, text in advised.texts.items()}
    definitions = analysis.source_lines.definitions
    kernels = [
        kernel_input
        if kernel_input.place is not None or kernel_input.kernel not in definitions
        else replace(kernel_input, place=_defined(definitions[kernel_input.kernel], places))
        for kernel_input in _kernels(advised, facts, texts_then, places)
    ]
    lines = [kernel_lines(kernel.advised.analysed.context, list(kernel.rows), places) for kernel in kernels]
    comments = {places.name(file): file_comments for file, file_comments in advised.comments.items()}
    file_findings = findings(
        kernels, FindingSources(places=places, texts=texts, facts=facts, comments=comments)
    )
    files = _files(file_findings, lines, kernels, texts, places, advised.sources.now)
    notes = tool_notes(advised.advice, kernels, texts, _deepest(analysis.kernels, places))
    profile = analysis.profile
    return EditorAnalysis(
        origin=str(analysis.path),
        sha256=analysis.sha256,
        collector=None if profile is None else profile.collector,
        collected_at=None if profile is None else profile.created,
        kernels=tuple(
            kernel_view(kernel, line, file_findings, analysis.launches)
            for kernel, line in zip(kernels, lines, strict=True)
        ),
        launches=launch_views(analysis.launches),
        files=files,
        problems=tuple(_as_baseline(note, files, advised.sources.now) for note in notes),
    )


def sass_for_editor(
    path: Path, request: Request, progress: Progress, cache: Cache, *, kernel: str
) -> SassView:
    """The machine code of one kernel, by its mangled name.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault, or there is no such kernel.
    """
    analysis = _one_kernel(path, request, progress, cache, kernel)
    analysed = analysis.kernels[0]
    compiled = path if input_kind(path) is InputKind.SOURCE else None
    named_files = {
        place.file
        for function in analysed.context.program.functions
        for line in dict.fromkeys(function.lines)
        if line is not None
        for place in (line.location, *(frame.call_site for frame in line.inline))
    }
    chooser = SourceChooser([analysed.context.program])
    sources = find_sources(named_files, analysis.profile, compiled, request, chooser=chooser)
    places = make_places(sources, request.root)
    places.know(analysed.context.program)
    return sass_view(analysed, display_name(analysed.demangled), places)


def _one_kernel(path: Path, request: Request, progress: Progress, cache: Cache, kernel: str) -> Analysis:
    exactly = re.compile(rf"\A{re.escape(kernel)}\Z")
    # The launch of another kernel may be stated, of this one not.
    request = request._replace(kernel=exactly, prefer_launch=True, model_needed=False)
    try:
        return analyse_file(path, request, progress, cache)
    except ProfileMismatchError as error:
        raise ProfileMismatchError(f"{path} has no kernel {kernel}; analyse it again") from error


def _kernel_files(analysis: Analysis) -> Collection[str]:
    """Files that kernels are defined in, under all their names in the line tables."""
    return {
        place.file
        for kernel in analysis.kernels
        for function in kernel.context.program.functions
        if function.name == kernel.context.kernel
        for line in dict.fromkeys(function.lines)
        if line is not None
        for place in (line.inline[-1].call_site if line.inline else line.location,)
    }


def _kernels(
    advised: AdvisedFile, facts: Mapping[str, SourceFacts], texts: Mapping[str, str], places: Places
) -> list[KernelInput]:
    """By share of GPU time, as the advice has them."""
    order = {id(advice): position for position, advice in enumerate(advised.advice.kernels)}
    kernels = sorted(advised.kernels, key=lambda kernel: order.get(id(kernel.advice), len(order)))
    return [_kernel(kernel, facts, texts, places) for kernel in kernels]


def _defined(definition: Definition, places: Places) -> Place:
    return Place(file=places.name(str(definition.path)), line=definition.line)


def _kernel(
    advised: AdvisedKernel, facts: Mapping[str, SourceFacts], texts: Mapping[str, str], places: Places
) -> KernelInput:
    context = advised.analysed.context
    first = kernel_file(places, context.program, context.kernel)
    return KernelInput(
        kernel=context.kernel,
        name=display_name(advised.advice.name),
        advised=advised,
        rows=[] if context.blame is None else blame_rows(context.program, context.blame),
        place=kernel_place(first, base_name(advised.advice.name), facts, texts),
        total=advised.advice.samples.total if context.blame is not None else 0,
    )


def _deepest(kernels: Sequence[AnalysedKernel], places: Places) -> dict[str, int]:
    """The largest line of each file that the line tables name."""
    result: dict[str, int] = {}
    entries = {
        line
        for kernel in kernels
        for function in kernel.context.program.functions
        for line in function.lines
        if line is not None
    }
    for entry in entries:
        for place in places.chain(entry):
            result[place.file] = max(result.get(place.file, 0), place.line)
    return result


def _files(
    file_findings: FileFindings,
    lines: Sequence[KernelLines],
    kernels: Sequence[KernelInput],
    texts: Mapping[str, ProfiledText],
    places: Places,
    texts_today: Mapping[str, str],
) -> tuple[FileAnalysis, ...]:
    """Every file with a finding, samples, or a kernel's definition."""
    data: dict[str, list[LineData]] = {}
    for of_kernel in lines:
        for place, line in of_kernel.lines.items():
            data.setdefault(place.file, []).append(line)
    names = {
        *data,
        *file_findings.by_file,
        *(kernel_input.place.file for kernel_input in kernels if kernel_input.place is not None),
    }
    unknown = ProfiledText(text=None, kind=BaselineKind.UNKNOWN)
    return tuple(
        FileAnalysis(
            path=file,
            local=places.local.get(file),
            baseline=texts.get(file, unknown).text,
            baseline_kind=texts.get(file, unknown).kind,
            findings=tuple(file_findings.by_file.get(file, ())),
            lines=tuple(sorted(data.get(file, ()), key=lambda line: (line.line, -line.samples, line.kernel))),
            remarks=remarks(texts_today.get(file, "")),
        )
        for file in sorted(names)
    )


def _as_baseline(note: ToolNote, files: Sequence[FileAnalysis], texts_today: Mapping[str, str]) -> ToolNote:
    """A note on a comment of today's text, on the line of the baseline that it stands on or above.

    A note on a file that shows nothing else has no line.
    """
    place = note.place
    if place is None:
        return note
    file = next((analysis for analysis in files if analysis.path == place.file), None)
    if file is None:
        return replace(note, place=None)
    if note.code != NoteCode.UNUSED_SUPPRESSION or file.baseline is None or file.path not in texts_today:
        return note
    lines_today = line_map(file, texts_today[file.path])
    below = sorted(
        (new, old)
        for old, new in (*lines_today.kept.items(), *lines_today.moved.items())
        if new >= place.line
    )
    line = next((old for _, old in below), None)
    return replace(note, place=None if line is None else Place(file=place.file, line=line))
