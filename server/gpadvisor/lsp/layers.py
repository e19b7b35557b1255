# SPDX-License-Identifier: Apache-2.0
"""What of several analyses a file shows: each kernel from its newest profile, machine code for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpadvisor.editor.place.placing import PlacedFile
from gpadvisor.editor.place.quieted import is_useful
from gpadvisor.model.finding import EditorAnalysis, FileAnalysis, Freshness, LedgerEntry
from gpadvisor.model.fix import LaunchFacts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One analysis and what it was made of."""

    key: str  # of the input: a newer one takes its place
    analysis: EditorAnalysis
    is_profile: bool
    is_run: bool = False  # a timeline, whose findings are on host code
    age: float  # when it was taken, for the order; larger is newer
    content: str = ""  # digest of everything that it depends on
    launches: Mapping[str, LaunchFacts] = field(default_factory=dict)  # by mangled name
    history: tuple[LedgerEntry, ...] = ()  # what predictions of earlier profiles came to


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layer:
    """One analysis as far as one file shows it."""

    entry: Entry
    analysis: EditorAnalysis  # with the kernels that are shown
    file: FileAnalysis


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedLayer:
    """A layer in today's text."""

    entry: Entry
    analysis: EditorAnalysis
    file: PlacedFile
    files: Mapping[str, PlacedFile] = field(default_factory=dict)  # others of the analysis, where known


def layers_of(candidates: Sequence[tuple[Entry, FileAnalysis]]) -> tuple[Layer, ...]:
    """Profiles before machine code before a timeline, newest first; a kernel is shown from the first of it.

    Machine code keeps all its kernels: ``settled`` takes out what a profile says better. Of timelines the
    newest counts.
    """
    order = sorted(
        candidates, key=lambda pair: (not pair[0].is_profile, pair[0].is_run, -pair[0].age, pair[0].key)
    )
    visited: set[str] = set()
    layers: list[Layer] = []
    for entry, file in order:
        if entry.is_run:
            if not (layers and layers[-1].entry.is_run):
                layers.append(Layer(entry=entry, analysis=entry.analysis, file=file))
            continue
        in_file = _kernels_in(file)
        visible = in_file - visited if entry.is_profile else in_file
        visited |= in_file
        if visible or not in_file:
            layers.append(_restricted(entry, file, visible, all_of_file=visible == in_file))
    return tuple(layers)


def _kernels_in(file: FileAnalysis) -> frozenset[str]:
    """Mangled names of kernels with samples or findings in a file."""
    sampled = {line.kernel for line in file.lines}
    return frozenset(sampled | {finding.kernel for finding in file.findings})


def _restricted(entry: Entry, file: FileAnalysis, visible: frozenset[str], *, all_of_file: bool) -> Layer:
    if all_of_file:
        return Layer(entry=entry, analysis=entry.analysis, file=file)
    kernels = tuple(kernel for kernel in entry.analysis.kernels if kernel.kernel in visible)
    return Layer(
        entry=entry,
        analysis=replace(entry.analysis, kernels=kernels),
        file=replace(
            file,
            findings=tuple(finding for finding in file.findings if finding.kernel in visible),
            lines=tuple(line for line in file.lines if line.kernel in visible),
        ),
    )


def settled(layers: Sequence[PlacedLayer]) -> tuple[PlacedLayer, ...]:
    """Take out what a layer before says better.

    A profile has judged its kernel's unchanged lines: findings of the machine code alone remain on lines
    that are new or edited since, and no rule is shown twice on a line. Of kernels with a profile, the machine
    code brings no lens. Comments are judged by all of them together.
    """
    done: list[PlacedLayer] = []
    placed_rules: set[tuple[str, int]] = set()
    measured: set[str] = set()
    judged: dict[int, set[str]] = {}
    for layer in layers:
        placed_layer = layer
        if not layer.entry.is_profile and done:
            placed_layer = _without(layer, placed_rules, judged, measured)
        done.append(placed_layer)
        placed_rules |= {(placed.finding.code, placed.line) for placed in placed_layer.file.findings}
        if layer.entry.is_profile:
            names = {kernel.kernel for kernel in layer.analysis.kernels}
            measured |= names
            for line in _fresh_lines(layer.file):
                judged.setdefault(line, set()).update(names)
    return tuple(_without_useful(layer, layers) for layer in done)


def _without_useful(layer: PlacedLayer, layers: Sequence[PlacedLayer]) -> PlacedLayer:
    """A comment is useless only where nothing that any analysis has found is set aside by it."""
    files = [placed_layer.file for placed_layer in layers if placed_layer.entry is not layer.entry]
    notes = tuple(note for note in layer.analysis.problems if not is_useful(note, layer.file, files))
    return replace(layer, analysis=replace(layer.analysis, problems=notes))


def _fresh_lines(file: PlacedFile) -> set[int]:
    """Today's lines that stand as the profile saw them."""
    pairs = {**file.map.kept, **file.map.moved}
    return {line_today for then, line_today in pairs.items() if file.map.now(then)[1] is Freshness.FRESH}


def _without(
    layer: PlacedLayer, placed_rules: set[tuple[str, int]], judged: Mapping[int, set[str]], measured: set[str]
) -> PlacedLayer:
    findings = tuple(
        placed
        for placed in layer.file.findings
        if (placed.finding.code, placed.line) not in placed_rules
        and placed.finding.kernel not in judged.get(placed.line, ())
    )
    kernels = tuple(kernel for kernel in layer.analysis.kernels if kernel.kernel not in measured)
    lines = tuple(placed_line for placed_line in layer.file.lines if placed_line.data.kernel not in measured)
    return replace(
        layer,
        analysis=replace(layer.analysis, kernels=kernels),
        file=replace(layer.file, findings=findings, lines=lines),
    )
