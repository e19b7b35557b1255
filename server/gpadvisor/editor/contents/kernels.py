# SPDX-License-Identifier: Apache-2.0
"""Kernels, launches and tool notes as the editor shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpadvisor.editor.contents.findings import FileFindings, KernelInput
from gpadvisor.editor.contents.lines import KernelLines
from gpadvisor.editor.contents.places import ProfiledText
from gpadvisor.editor.contents.words import trace_of
from gpadvisor.editor.show.words import clean, count, file_name, plural
from gpadvisor.model.advice import Advice, KernelAdvice, LaunchSummary, StallSummary, Suggestion
from gpadvisor.model.finding import (
    KernelView,
    LaunchView,
    NoteCode,
    Place,
    StallShare,
    SuggestionView,
    ToolNote,
)
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import Device, Evidence, Launch
from gpadvisor.model.sentence import Sentence, capitalised, sentences
from gpadvisor.report.caveats import CAVEATS
from gpadvisor.report.names import base_name, core_name, short_name
from gpadvisor.report.words import duration

NAME_WIDTH: Final = 60
_NOTE_CODES: Final = {
    ProblemCode.NO_LINE_INFO: NoteCode.NO_LINES,
    ProblemCode.LINES_RECOVERED: NoteCode.NO_LINES,
    ProblemCode.FEW_SAMPLES: NoteCode.FEW_SAMPLES,
    ProblemCode.LOWER_EVIDENCE: NoteCode.LOWER_EVIDENCE,
    ProblemCode.UNCOVERED_TIME: NoteCode.UNCOVERED_TIME,
    ProblemCode.UNUSED_SUPPRESSION: NoteCode.UNUSED_SUPPRESSION,
}
_LOUD: Final = CAVEATS - {ProblemCode.SOURCE_UNMATCHED}
"""What the numbers hang on; a header that is not here takes nothing from the lines that are."""
_NAMED: Final = 2


def display_name(demangled: str) -> str:
    """A kernel's name with its template arguments, in at most `NAME_WIDTH` letters."""
    return clean(short_name(core_name(demangled), NAME_WIDTH))


def kernel_view(
    kernel: KernelInput, lines: KernelLines, findings: FileFindings, summaries: Sequence[LaunchSummary]
) -> KernelView:
    """One kernel."""
    advice = kernel.advised.advice
    open_ones = [suggestion for suggestion in advice.suggestions if suggestion.suppressed is None]
    best = next((suggestion for suggestion in open_ones if suggestion.speedup is not None), None)
    groups = [group for group in advice.groups if len(group.suggestions) > 1]
    together = max(groups, key=lambda group: group.speedup.expected, default=None)
    assumed = [problem for problem in advice.problems if problem.code is ProblemCode.COMPILE_ASSUMPTION]
    not_assumed = [
        problem for problem in advice.problems if problem.code is not ProblemCode.COMPILE_ASSUMPTION
    ]
    modelled = advice.evidence is Evidence.MODELLED
    return KernelView(
        kernel=kernel.kernel,
        name=kernel.name,
        base_name=clean(base_name(advice.name)),
        place=kernel.place,
        evidence=advice.evidence,
        evidence_reason=advice.evidence_reason,
        device=device_name(advice.device),
        arch=advice.device.arch,
        launch=_launch_words(advice, summaries),
        launch_index=None if advice.launch is None or modelled else advice.launch.index,
        duration_ns=advice.duration_ns,
        time_share=advice.time_share,
        run=trace_of(advice),
        run_busy=0.0 if advice.in_run is None else advice.in_run.busy,
        samples=advice.samples.total,
        latency=advice.samples.latency,
        unplaced=lines.unplaced if kernel.total else advice.samples.total,
        suggestions=tuple(_suggestion(suggestion) for suggestion in advice.suggestions),
        best=None if best is None else findings.leading.get((kernel.kernel, best.code)),
        best_code=None if best is None else best.code,
        best_speedup=None if best is None else best.speedup,
        together=None if together is None else together.speedup,
        together_codes=() if together is None else together.suggestions,
        verdict=Sentence(advice.verdict),
        stalls=lines.stalls or tuple(_stall(stall) for stall in advice.stalls),
        hidden=advice.hidden,
        rejected=tuple((rejection.code, rejection.reason) for rejection in advice.rejected),
        assumptions=sentences(*(problem.message for problem in assumed)) if modelled else (),
        problems=tuple(
            problem.message for problem in (not_assumed if modelled else (*not_assumed, *assumed))
        ),
    )


def _suggestion(suggestion: Suggestion) -> SuggestionView:
    sampled = suggestion.matched_samples > 0
    return SuggestionView(
        code=suggestion.code,
        slug=suggestion.slug,
        name=suggestion.name,
        title=suggestion.title,
        advice=suggestion.advice,
        importance=suggestion.importance if sampled else None,
        speedup=suggestion.speedup,
        suppressed=None if suggestion.suppressed is None else suggestion.suppressed.reason,
    )


def _stall(stall: StallSummary) -> StallShare:
    """A stall of a kernel whose code is not at hand: nothing can be blamed."""
    return StallShare(
        reason=stall.reason, plain=stall.plain, samples=stall.samples, latency=stall.latency, cause=None
    )


def device_name(device: Device) -> str:
    """The GPU as people call it."""
    if device.name is None:
        return device.arch
    name = device.name
    for maker in ("modelled ", "NVIDIA ", "GeForce "):
        name = name.removeprefix(maker)
    return clean(name)


def _size(launch: Launch) -> str:
    return f"{count(launch.blocks)} x {count(launch.threads_per_block)} threads"


def _launch_words(advice: KernelAdvice, summaries: Sequence[LaunchSummary]) -> str | None:
    launch = advice.launch
    if launch is None:
        return None
    if advice.evidence is Evidence.MODELLED:
        return f"modelled launch: {_size(launch)}"
    if advice.merged_launches > 1:
        return f"{advice.merged_launches} launches added up: {_size(launch)}"
    indices = [summary.launch.index for summary in summaries if summary.launch.kernel == launch.kernel]
    number = indices.index(launch.index) + 1 if launch.index in indices else 1
    return f"launch {number} of {max(len(indices), 1)}: {_size(launch)}"


def launch_views(summaries: Sequence[LaunchSummary]) -> tuple[LaunchView, ...]:
    """All launches of the profile, in their order."""
    return tuple(
        LaunchView(
            index=summary.launch.index,
            kernel=summary.launch.kernel,
            name=display_name(summary.launch.demangled or summary.launch.kernel),
            label=f"{_size(summary.launch)}, {duration(summary.launch.duration_ns)}",
            duration_ns=summary.launch.duration_ns,
            analysed=summary.analysed,
        )
        for summary in summaries
    )


def tool_notes(
    advice: Advice,
    kernels: Sequence[KernelInput],
    texts: Mapping[str, ProfiledText],
    deepest: Mapping[str, int],
) -> tuple[ToolNote, ...]:
    """What the numbers lack, each once: of the input as a whole, then of its kernels. Nothing is left out.

    What concerns all of an input stands on the kernel that takes most of the time; what takes nothing from
    the numbers has no line but its own.

    Args:
        advice: With its problems.
        kernels: For where each is defined.
        texts: Baselines by file.
        deepest: The largest line number that the line tables have, by file.
    """
    first = next((kernel.place for kernel in kernels if kernel.place is not None), None)
    of_kernels: dict[tuple[Problem, Place | None], list[str]] = {}
    for kernel in kernels:
        for problem in kernel.advised.advice.problems:
            if not _of_a_model(problem, kernel):
                of_kernels.setdefault((problem, kernel.place), []).append(kernel.name)
    notes = [_note(problem, first) for problem in advice.problems]
    notes += [_note(problem, place, names) for (problem, place), names in of_kernels.items()]
    for file, line in sorted(deepest.items()):
        text = texts[file].text if file in texts else None
        if text is not None and line > text.count("\n") + 1:
            has = plural(text.count("\n") + 1, "line")
            sentence = (
                f"The line table names line {line} of {file_name(file)}, which has {has}: it is not the "
                "source that was compiled, and its lines may be wrong."
            )
            notes.append(
                ToolNote(code=NoteCode.OTHER_SOURCE, message=sentence, place=Place(file=file, line=1))
            )
    return tuple(dict.fromkeys(notes))


def _of_a_model(problem: Problem, kernel: KernelInput) -> bool:
    """Whether a note is on samples that nobody can take more of."""
    modelled = kernel.advised.advice.evidence is Evidence.MODELLED
    return modelled and problem.code is ProblemCode.FEW_SAMPLES


def _note(problem: Problem, place: Place | None, kernels: Sequence[str] = ()) -> ToolNote:
    """A problem of some kernels, or of the input as a whole."""
    code = _NOTE_CODES.get(problem.code, NoteCode.OTHER)
    text = problem.message.rstrip(".")
    if problem.location is not None:
        place = Place(file=problem.location.file, line=problem.location.line)
    elif kernels:
        text = f"{_named(kernels)}: {text}"
    elif text.partition(" ")[0].isalpha():  # no name of a file
        text = capitalised(text)
    quiet = problem.code not in _LOUD and code == NoteCode.OTHER
    note_place = None if quiet and problem.location is None else place
    return ToolNote(code=code, message=f"{text}.", place=note_place, quiet=quiet, rule=problem.rule)


def _named(kernels: Sequence[str]) -> str:
    more = len(kernels) - _NAMED
    return ", ".join(kernels[:_NAMED]) + (f" and {plural(more, 'more kernel')}" if more > 0 else "")
