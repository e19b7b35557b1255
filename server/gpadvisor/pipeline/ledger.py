# SPDX-License-Identifier: Apache-2.0
"""Two runs of which the second has a change that the first was advised: what was promised, and what came."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpadvisor import __version__
from gpadvisor.advice.compare import map_lines, pair_kernels
from gpadvisor.gate.ledger import PredictionOutcome
from gpadvisor.model.advice import Category, KernelAdvice, Suggestion
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.pipeline.advise import AdvisedFile
from gpadvisor.report.entries import primary
from gpadvisor.report.fingerprint import Fingerprints
from gpadvisor.report.names import base_name
from gpadvisor.report.page import make_page
from gpadvisor.report.words import cleaned

_MEASURED = frozenset({Evidence.MEASURED, Evidence.COUNTED})


def outcomes(
    first: AdvisedFile, second: AdvisedFile, applied: Sequence[str]
) -> tuple[PredictionOutcome, ...]:
    """An outcome for each suggestion that the change between two runs answered.

    That is so where its lines differ in the sources that both runs carry, where it is about the launch and
    that has another shape, or where ``applied`` has its code or the beginning of its fingerprint.
    """
    texts = first.sources.profiled, second.sources.profiled
    prints = Fingerprints(make_page(cleaned(first.advice), width=0, color=False, sources=first.texts))
    fingerprints = {
        (kernel.mangled, suggestion.code): prints.of(kernel, suggestion, primary(suggestion))
        for kernel in cleaned(first.advice).kernels
        for suggestion in kernel.suggestions
    }
    compilers = {kernel.advice.mangled: kernel.analysed.context.program.compiler for kernel in first.kernels}
    pairs, _, _ = pair_kernels(first.advice.kernels, second.advice.kernels)
    measured: list[PredictionOutcome] = []
    for before, after in pairs:
        if not _comparable(before, after):
            continue
        answered = []
        for suggestion in before.suggestions:
            fingerprint = fingerprints[before.mangled, suggestion.code]
            how = _how(suggestion, before, after, texts, applied, fingerprint)
            if (
                how
                and suggestion.speedup is not None
                and math.isfinite(suggestion.speedup.high)
                and suggestion.suppressed is None
            ):
                answered.append((suggestion, suggestion.speedup, how, fingerprint))
        compiler = compilers.get(before.mangled) or ""
        measured += [
            PredictionOutcome(
                rule=suggestion.code,
                low=round(estimate.low, 4),
                expected=round(estimate.expected, 4),
                high=round(estimate.high, 4),
                paper=round(estimate.paper, 4) if estimate.paper and math.isfinite(estimate.paper) else None,
                achieved=round((before.duration_ns or 0.0) / (after.duration_ns or 1.0), 4),
                device=before.device.name or before.device.arch,
                arch=before.device.arch,
                version=__version__,
                compiler=compiler,
                evidence=suggestion.evidence.value,
                known_by=how,
                beside=len(answered) - 1,
                fingerprint=fingerprint,
                kernel=base_name(before.name),
            )
            for suggestion, estimate, how, fingerprint in answered
        ]
    runs = first.advice.sha256, second.advice.sha256
    return tuple(replace(outcome, before=runs[0], after=runs[1]) for outcome in measured)


def _comparable(before: KernelAdvice, after: KernelAdvice) -> bool:
    """Whether the two times are of one GPU, measured, and of the same work as far as the launch tells."""
    if not before.duration_ns or not after.duration_ns or before.device.arch != after.device.arch:
        return False
    return before.device.name == after.device.name and {before.evidence, after.evidence} <= _MEASURED


def _how(
    suggestion: Suggestion,
    before: KernelAdvice,
    after: KernelAdvice,
    texts: tuple[Mapping[str, str], Mapping[str, str]],
    applied: Sequence[str],
    fingerprint: str,
) -> str:
    """How it is known that the change is the one that was advised; empty where it is not."""
    if any(
        word.upper() == suggestion.code or (len(word) >= 8 and fingerprint.startswith(word))
        for word in applied
    ):
        return "said"
    same_launch = _shape(before) == _shape(after)
    if suggestion.category is Category.PARALLEL:
        return "" if same_launch else "launch"
    return "lines" if same_launch and _touched(suggestion, texts) else ""


def _shape(kernel: KernelAdvice) -> tuple[object, ...] | None:
    launch = kernel.launch
    return None if launch is None else (launch.grid, launch.block)


def _touched(suggestion: Suggestion, texts: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
    """Whether a line that it stands on is another one, or has a new one before it."""
    before, after = texts
    for place in _places(suggestion):
        if place.file not in before or place.file not in after:
            continue
        new_line_of = map_lines(before[place.file], after[place.file])
        new_line = new_line_of.get(place.line)
        if new_line is None or (place.line > 1 and new_line_of.get(place.line - 1) != new_line - 1):
            return True
    return False


def _places(suggestion: Suggestion) -> list[SourceLocation]:
    ends = [code for spot in suggestion.hotspots for code in (spot.definition, spot.use) if code is not None]
    places = [suggestion.scope.location, *(code.location for code in ends)]
    places += [frame.call_site for code in ends for frame in code.inline]
    return [place for place in dict.fromkeys(places) if place is not None]
