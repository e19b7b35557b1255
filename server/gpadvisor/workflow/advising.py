# SPDX-License-Identifier: Apache-2.0
"""From a file to its ``Advice``: analysis, optimizers, sources found on this machine, suppressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpadvisor.advice import advise, advise_kernel, without_suppressed
from gpadvisor.model.advice import Advice, KernelAdvice
from gpadvisor.model.problem import Problem
from gpadvisor.optimizers import OPTIMIZERS
from gpadvisor.source.facts import MARKER
from gpadvisor.source.naming import files_asked_about, name_source_tokens
from gpadvisor.source.suppression import apply_suppressions
from gpadvisor.workflow.analysis import AnalysedKernel, Analysis, analyse_file
from gpadvisor.workflow.cache import Cache
from gpadvisor.workflow.inputs import InputKind, input_kind
from gpadvisor.workflow.request import Progress, Request
from gpadvisor.workflow.source_facts import read_source_facts
from gpadvisor.workflow.sources import find_sources
from gpadvisor.workflow.suppressing import comments_as_profiled


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvisedFile:
    """Advice, with the sources it may quote."""

    advice: Advice
    texts: Mapping[str, str]  # source text by the path that the line table names
    wanted_sources: Mapping[str, list[str] | list[int]]  # what the search on this machine looked for
    lasting: (
        bool  # whether the same inputs would give the same advice; False where a process failed in passing
    )


def advise_file(path: Path, request: Request, progress: Progress, cache: Cache) -> AdvisedFile:
    """Advice for a report, a snapshot, a cubin or a source.

    Raises:
        GpadvisorError: the input, a tool or a setting is at fault.
    """
    analysis = analyse_file(path, request, progress, cache)
    progress("looking for the sources")
    lines = _analysed_lines(analysis)
    compiled = path if input_kind(path) is InputKind.SOURCE else None
    sources = find_sources(lines.keys(), analysis.profile, compiled, request)
    kernels: tuple[KernelAdvice, ...] = tuple(_advise(kernel, request) for kernel in analysis.kernels)
    texts = sources.texts
    quoted = {path: (path, texts[path]) for path in files_asked_about(kernels) & texts.keys()}
    commented = [(path, text) for path, text in sources.now.items() if MARKER in text]
    facts, unread = read_source_facts({*quoted.values(), *commented})
    kernels = name_source_tokens(kernels, lambda path: facts.get(quoted[path]) if path in quoted else None)
    unused: tuple[Problem, ...] = ()
    comments = comments_as_profiled(sources, facts)
    if comments:
        kernels, _ = apply_suppressions(kernels, comments, analysed_lines=lines)
        kernels = tuple(
            without_suppressed(advice, kernel.context, OPTIMIZERS)
            for advice, kernel in zip(kernels, analysis.kernels, strict=True)
        )
        # A comment is of use even where the thresholds would have hidden what it suppresses.
        everything = replace(request, show_all=True)
        _, unused = apply_suppressions(
            [_advise(kernel, everything) for kernel in analysis.kernels], comments, analysed_lines=lines
        )
    profile = analysis.profile
    return AdvisedFile(
        advice=advise(
            kernels,
            path=str(path),
            sha256=analysis.sha256,
            profile=profile,
            launches=analysis.launches,
            sources=sources.matches,
            more_problems=(*analysis.problems, *sources.problems, *unread, *unused),
        ),
        texts=texts,
        wanted_sources=sources.wanted,
        lasting=not unread,
    )


def _advise(kernel: AnalysedKernel, request: Request) -> KernelAdvice:
    settings, chosen = request.settings, kernel.chosen
    return advise_kernel(
        kernel.context,
        OPTIMIZERS,
        min_importance=settings.min_importance,
        min_speedup=settings.min_speedup,
        top=None if request.show_all else settings.top,
        show_all=request.show_all,
        demangled=kernel.demangled,
        time_share=None if chosen is None else chosen.time_share,
        merged_launches=1 if chosen is None else chosen.merged_launches,
        more_problems=kernel.problems,
    )


def _analysed_lines(analysis: Analysis) -> dict[str, set[int]]:
    """Every line of every file that the line tables of the kernels name, inline chains included."""
    lines: dict[str, set[int]] = {}
    entries = {
        line
        for kernel in analysis.kernels
        for function in kernel.context.program.functions
        for line in function.lines
        if line is not None
    }
    for entry in entries:
        for place in (entry.location, *(frame.call_site for frame in entry.inline)):
            lines.setdefault(place.file, set()).add(place.line)
    return lines
