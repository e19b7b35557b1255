# SPDX-License-Identifier: Apache-2.0
"""From a file to its ``Advice``: analysis, optimizers, sources found on this machine, suppressions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from gpadvisor.advice.compose import advise, by_time
from gpadvisor.advice.evaluate import Evaluated, evaluate
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.same_work import faster_words
from gpadvisor.advice.standing import NO_THRESHOLDS, Thresholds
from gpadvisor.advice.suppressed import without_suppressed
from gpadvisor.errors import ProfileError
from gpadvisor.model.advice import Advice, KernelAdvice, Match
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.pipeline.analyse import AnalysedKernel, Analysis, analyse_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.inputs import InputKind, input_kind
from gpadvisor.pipeline.limits import EstimateLimits, within_limits
from gpadvisor.pipeline.prefetch import Opened
from gpadvisor.pipeline.request import Progress, Request
from gpadvisor.pipeline.sources.chosen import SourceChooser
from gpadvisor.pipeline.sources.facts import read_source_facts
from gpadvisor.pipeline.sources.hosts import host_sources
from gpadvisor.pipeline.sources.lookup import FoundSources, find_sources
from gpadvisor.pipeline.sources.moved import with_todays_lines
from gpadvisor.pipeline.sources.seen import SeenSources
from gpadvisor.pipeline.sources.suppressions import comments_as_profiled
from gpadvisor.pipeline.time_coverage import coverage_problems
from gpadvisor.pipeline.timeline import in_timeline, with_own_timeline
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.source.facts import MARKER, SourceFacts, SuppressionComment
from gpadvisor.source.naming import files_asked_about, name_source_tokens
from gpadvisor.source.suppression import apply_suppressions

_NAMING: Final = {rule.code: rule.naming for rule in OPTIMIZERS if rule.naming is not None}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvisedFile:
    """Advice, with the sources it may quote."""

    advice: Advice
    texts: Mapping[str, str]  # source text by the path that the line table names
    sources: FoundSources
    facts: Mapping[str, SourceFacts]  # of the sources that were parsed, as they were profiled
    comments: Mapping[str, tuple[SuppressionComment, ...]]  # with the lines that they cover as profiled
    analysis: Analysis
    kernels: tuple[AdvisedKernel, ...]  # in the order of the analysis
    lasting: (
        bool  # whether the same inputs would give the same advice; False where a process failed in passing
    )

    @property
    def wanted_sources(self) -> Mapping[str, list[str] | list[int]]:
        """What the search on this machine looked for."""
        beside = self.analysis.source_lines.beside
        return self.sources.wanted if beside is None else {**self.sources.wanted, "beside": [beside]}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvisedKernel:
    """One kernel's advice with what it was made from."""

    advice: KernelAdvice
    analysed: AnalysedKernel
    matches: Mapping[str, Match]  # by rule code, those hidden by the thresholds included
    limits: EstimateLimits


def advise_file(
    path: Path, request: Request, progress: Progress, cache: Cache, *, opened: Opened | None = None
) -> AdvisedFile:
    """Advice for a report, a snapshot, a cubin or a source.

    Args:
        path: the input.
        request: what is asked of it.
        progress: told the stages.
        cache: of disassembly.
        opened: the profile, where it is being read already.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    request = with_own_timeline(path, request)
    analysis = analyse_file(path, request, progress, cache, opened=opened)
    sources = sources_of(analysis, request, progress)
    advised = advise_analysis(analysis, sources, request, progress, cache)
    return with_host_sources(in_traced_run(advised, request, progress, cache), request)


def in_traced_run(advised: AdvisedFile, request: Request, progress: Progress, cache: Cache) -> AdvisedFile:
    """Advice with what it is worth for the run whose timeline is asked for; as it is without one.

    Raises:
        GpadvisorError: the timeline cannot be read, or is of another program, and it is needed.
    """
    if request.timeline is None:
        return advised
    progress("reading the timeline")
    try:
        before = [kernel.advice for kernel in advised.kernels]
        answers, findings = in_timeline(before, request.timeline, cache)
    except ProfileError:
        if request.timeline_needed:
            raise
        return advised
    kernels = tuple(replace(kernel, advice=new) for kernel, new in zip(advised.kernels, answers, strict=True))
    advice = replace(advised.advice, kernels=by_time(answers), run_findings=findings)
    return replace(advised, kernels=kernels, advice=advice)


def with_host_sources(advised: AdvisedFile, request: Request) -> AdvisedFile:
    """Advice with the sources of this machine that its findings on host code are in."""
    if not advised.advice.run_findings:
        return advised
    hosts = host_sources(advised.advice.run_findings, request)
    matched_paths = {match.report_path for match in advised.advice.sources}
    host_matches = (
        match
        for match in hosts.sources.matches
        if match.local_path and match.report_path not in matched_paths
    )
    sources = (*advised.advice.sources, *host_matches)
    wanted = (*advised.sources.wanted["names"], *hosts.sources.wanted["names"])
    names = sorted({str(name) for name in wanted})
    return replace(
        advised,
        advice=replace(advised.advice, run_findings=hosts.findings, sources=sources),
        sources=replace(advised.sources, wanted={**advised.sources.wanted, "names": names}),
        lasting=advised.lasting and not hosts.are_by_name,
    )


def sources_of(
    analysis: Analysis, request: Request, progress: Progress, seen_sources: SeenSources | None = None
) -> FoundSources:
    """The sources of an analysis on this machine; ``seen`` finds those renamed since they were last seen."""
    progress("looking for the sources")
    compiled = analysis.path if input_kind(analysis.path) is InputKind.SOURCE else None
    lines = analysis.source_lines
    files = _analysed_lines(analysis).keys() | {
        str(definition.path) for definition in lines.definitions.values()
    }
    programs = [kernel.context.program for kernel in analysis.kernels]
    if seen_sources is None:
        sources = find_sources(files, analysis.profile, compiled, request, chooser=SourceChooser(programs))
    else:
        chooser = SourceChooser(programs, partial(seen_sources.beside, analysis.sha256))
        renamed = partial(seen_sources.renamed, analysis.sha256)
        sources = find_sources(files, analysis.profile, compiled, request, renamed, chooser)
    return replace(sources, profiled={**lines.texts, **sources.profiled})


def advise_analysis(
    analysis: Analysis,
    sources: FoundSources,
    request: Request,
    progress: Progress,
    cache: Cache,
    parsed: Collection[str] = (),
) -> AdvisedFile:
    """Advice on kernels that were analysed.

    Args:
        analysis: the kernels.
        sources: of it, on this machine.
        request: what is asked.
        progress: told the stages.
        cache: of disassembly.
        parsed: files of the line tables whose facts the caller wants, beside those that advice quotes.
    """
    progress("looking for what to change")
    limits = [EstimateLimits(kernel.context, kernel.demangled) for kernel in analysis.kernels]
    evaluated = [within_limits(limit, evaluate(limit.context, OPTIMIZERS)) for limit in limits]
    if any(kernel.modelled is not None for kernel in analysis.kernels):
        evaluated = _simulated_changes(analysis, evaluated, request, progress, cache)
    pairs = list(zip(analysis.kernels, evaluated, strict=True))
    kernels = tuple(_advise(kernel, findings, request) for kernel, findings in pairs)
    asked_files, texts = {*files_asked_about(kernels, _NAMING), *parsed}, sources.texts
    quoted = {path: (path, texts[path]) for path in asked_files & texts.keys()}
    commented = [(path, text) for path, text in sources.now.items() if MARKER in text]
    facts, unread = read_source_facts({*quoted.values(), *commented})
    known_facts = {path: facts[source] for path, source in quoted.items() if source in facts}
    kernels = name_source_tokens(kernels, known_facts.get, _NAMING)
    comments = comments_as_profiled(sources, facts)
    kernels, unused = _without_suppressed(analysis, kernels, evaluated, comments, request)
    problems = (*analysis.problems, *sources.problems, *unread, *unused)
    return AdvisedFile(
        advice=advise(
            kernels,
            path=str(analysis.path),
            sha256=analysis.sha256,
            profile=analysis.profile,
            launches=analysis.launches,
            sources=sources.matches if analysis.profile is None else with_todays_lines(sources, kernels),
            more_problems=(*coverage_problems(analysis.profile), *problems),
        ),
        texts=texts,
        sources=sources,
        facts=known_facts,
        comments=comments,
        analysis=analysis,
        kernels=tuple(
            AdvisedKernel(
                advice=advice,
                analysed=kernel,
                matches={finding.code: finding.match for finding in findings[0]},
                limits=limit,
            )
            for advice, (kernel, findings), limit in zip(kernels, pairs, limits, strict=True)
        ),
        lasting=not (unread or analysis.source_lines.unfinished or _has_unread_lines(analysis)),
    )


def _without_suppressed(
    analysis: Analysis,
    kernels: tuple[KernelAdvice, ...],
    evaluated: Sequence[Evaluated],
    comments: Mapping[str, tuple[SuppressionComment, ...]],
    request: Request,
) -> tuple[tuple[KernelAdvice, ...], tuple[Problem, ...]]:
    """Advice without what comments set aside, and a problem for each comment that sets nothing aside."""
    if not comments:
        return kernels, ()
    lines = _analysed_lines(analysis)
    answers, _ = apply_suppressions(kernels, comments, analysed_lines=lines)
    # A comment is of use even where the thresholds would have hidden what it suppresses.
    everything = request._replace(show_all=True)
    unsuppressed = [
        _advise(kernel, findings, everything)
        for kernel, findings in zip(analysis.kernels, evaluated, strict=True)
    ]
    _, unused = apply_suppressions(unsuppressed, comments, analysed_lines=lines)
    settled = tuple(
        without_suppressed(advice, kernel.context, OPTIMIZERS)
        for advice, kernel in zip(answers, analysis.kernels, strict=True)
    )
    return settled, unused


def _has_unread_lines(analysis: Analysis) -> bool:
    return any(
        problem.code is ProblemCode.LINES_NOT_READ
        for kernel in analysis.kernels
        for problem in kernel.problems
    )


def _simulated_changes(
    analysis: Analysis,
    evaluated: Sequence[Evaluated],
    request: Request,
    progress: Progress,
    cache: Cache,
) -> list[Evaluated]:
    """What the optimizers answered, with the estimates that come from simulating their changes."""
    from gpadvisor.pipeline.what_if import with_what_ifs  # noqa: PLC0415 the simulator takes long

    everything = request._replace(show_all=True)
    return [
        with_what_ifs(
            analysis.path,
            kernel,
            findings,
            _advise(kernel, findings, everything),
            request=request,
            progress=progress,
            cache=cache,
        )
        for kernel, findings in zip(analysis.kernels, evaluated, strict=True)
    ]


def _advise(kernel: AnalysedKernel, evaluated: Evaluated, request: Request) -> KernelAdvice:
    settings, chosen = request.settings, kernel.chosen
    advice = advise_kernel(
        kernel.context,
        OPTIMIZERS,
        limits=NO_THRESHOLDS
        if request.show_all
        else Thresholds(importance=settings.min_importance, speedup=settings.min_speedup),
        top=None if request.show_all else settings.top,
        demangled=kernel.demangled,
        time_share=None if chosen is None else chosen.time_share,
        merged_launches=1 if chosen is None else chosen.merged_launches,
        more_problems=kernel.problems,
        evaluated=evaluated,
    )
    if chosen is None or chosen.faster is None:
        return advice
    return replace(advice, faster=faster_words(chosen.profile.launch, chosen.faster))


def _analysed_lines(analysis: Analysis) -> dict[str, set[int]]:
    """Every line of every file that the line tables of the kernels name, inline chains included."""
    lines: dict[str, set[int]] = {}
    entries = {  # the same object for most instructions of a line, which is quicker than comparing them
        id(line): line
        for kernel in analysis.kernels
        for function in kernel.context.program.functions
        for line in function.lines
        if line is not None
    }
    for entry in entries.values():
        for place in (entry.location, *(frame.call_site for frame in entry.inline)):
            lines.setdefault(place.file, set()).add(place.line)
    return lines
