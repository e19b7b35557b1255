# SPDX-License-Identifier: Apache-2.0
"""Inlay hints: at a cause what its cure gains, at hot lines what waits and where that comes from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpadvisor.editor.place.placing import PlacedFile, PlacedLine, place_now
from gpadvisor.editor.show.choice import chosen_kernels
from gpadvisor.editor.show.diagnostics import rank
from gpadvisor.editor.show.headline import short_headline
from gpadvisor.editor.show.options import Annotations, Options, Severity, Stale
from gpadvisor.editor.show.severity import severity
from gpadvisor.editor.show.words import clean, count, file_name, reason_words
from gpadvisor.model.figures import short_percent
from gpadvisor.model.finding import (
    EditorAnalysis,
    Finding,
    Freshness,
    KernelView,
    LineData,
    Place,
    StallShare,
)

ISSUED = "selected"
_STALLS_IN_TOOLTIP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class HintPart:
    """A piece of a hint; one with a place is a link."""

    text: str
    place: Place | None = None  # in today's text, as far as that file is placed
    tooltip: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One hint at the end of a line."""

    line: int
    parts: tuple[HintPart, ...]
    tooltip: str
    faded: bool

    @property
    def text(self) -> str:
        """The whole label."""
        return "".join(part.text for part in self.parts)


def hints(
    analysis: EditorAnalysis, file: PlacedFile, files: Mapping[str, PlacedFile], options: Options
) -> tuple[Hint, ...]:
    """The hints of a file, by line, one for each line that leads a suggestion or is hot.

    Args:
        analysis: What is shown.
        file: The file in today's text.
        files: All placed files by path, for the places that hints link to.
        options: What the user wants to see.
    """
    if not options.inlay_hints or options.annotations in {Annotations.OFF, Annotations.MINIMAL}:
        return ()
    chosen = chosen_kernels(analysis, options)
    kernels = {kernel.kernel: kernel for kernel in analysis.kernels if kernel.kernel in chosen}
    best: dict[int, PlacedLine] = {}
    for entry in file.lines:
        if entry.data.kernel not in kernels or (
            options.stale is Stale.HIDE and entry.freshness is Freshness.EDITED
        ):
            continue
        rival = best.get(entry.line)
        if rival is None or rival.data.samples < entry.data.samples:
            best[entry.line] = entry
    least = 0.0 if options.annotations is Annotations.ALL else options.hint_share
    gains = _gains(file, chosen, options)
    candidates = (
        _hint(entry, kernels[entry.data.kernel], file, files, least, gains.get(entry.line, ""))
        for entry in best.values()
    )
    return tuple(sorted((hint for hint in candidates if hint is not None), key=lambda hint: hint.line))


def _gains(file: PlacedFile, chosen: Collection[str], options: Options) -> dict[int, str]:
    """What the best suggestion that leads on a line gains, where the run would notice."""
    best: dict[int, Finding] = {}
    for placed in file.findings:
        finding = placed.finding
        if (
            not finding.leads
            or finding.speedup is None
            or finding.kernel not in chosen
            or placed.freshness is Freshness.EDITED
            or severity(placed, options) in {Severity.HINT, Severity.OFF}
        ):
            continue
        if placed.line not in best or rank(finding) < rank(best[placed.line]):
            best[placed.line] = finding
    return {line: short_headline(finding) for line, finding in best.items()}


def _hint(
    entry: PlacedLine,
    kernel: KernelView,
    file: PlacedFile,
    files: Mapping[str, PlacedFile],
    least: float,
    gained: str,
) -> Hint | None:
    data = entry.data
    caused = data.caused / kernel.samples if kernel.samples else 0.0
    hot = data.samples > 0 and data.share >= least
    if not gained and not hot and not (caused >= max(least, 0.01)):
        return None
    parts: list[HintPart] = [HintPart(text=gained)] if gained else []
    if gained and caused:
        parts.append(HintPart(text=f", causes {short_percent(caused)}"))
    if hot:
        parts.append(HintPart(text=f"{' | ' if parts else ''}{short_percent(data.share)}"))
        stall = dominant(data)
        if stall is not None:
            parts.append(HintPart(text=f" {reason_words(stall.reason)}", tooltip=stall.plain))
            parts += _source(stall, entry, file, files)
    if not gained and caused >= max(least, 0.01) and (not hot or data.caused > 1.5 * data.samples):
        parts.append(HintPart(text=f"{', ' if parts else ''}causes {short_percent(caused)}"))
    faded = entry.freshness is Freshness.EDITED
    if faded:
        parts.append(HintPart(text=" (edited)"))
    return Hint(line=entry.line, parts=tuple(parts), tooltip=_tooltip(data, kernel, faded=faded), faded=faded)


def dominant(data: LineData) -> StallShare | None:
    """The reason to wait with the most samples."""
    return next((stall for stall in data.stalls if stall.reason not in {ISSUED, "not_recorded"}), None)


def _source(
    stall: StallShare, entry: PlacedLine, file: PlacedFile, files: Mapping[str, PlacedFile]
) -> Sequence[HintPart]:
    """Where the stall comes from, unless it is this very line."""
    if stall.cause is None:
        return ()
    then = stall.cause.place
    if then.file == file.path and then.line == entry.data.line:
        return ()
    place = place_now(then, {**files, file.path: file})
    where = f"line {place.line}" if place.file == file.path else f"{file_name(place.file)}:{place.line}"
    return (HintPart(text=f" <- {clean(where)}", place=place, tooltip=clean(stall.cause.message)),)


def _tooltip(data: LineData, kernel: KernelView, *, faded: bool) -> str:
    samples_words = f"the {count(kernel.samples)} samples of {clean(kernel.name)}"
    idle = f"{count(data.latency)} of them while nothing was issued"
    rows = [
        f"{count(data.samples)} of {samples_words} are on this line, {idle}; it causes {count(data.caused)}."
    ]
    rows += [
        f"{reason_words(stall.reason)} {short_percent(stall.samples / kernel.samples)}: {stall.plain}"
        for stall in data.stalls[:_STALLS_IN_TOOLTIP]
        if kernel.samples
    ]
    if faded:
        rows.append("The line was edited since the profile: these are the numbers of what stood here.")
    return "\n".join(rows)
