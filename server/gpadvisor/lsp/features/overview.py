# SPDX-License-Identifier: Apache-2.0
"""All that is known, for a client that lists it: inputs, kernels, suggestions by gain, what is lacking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from gpadvisor.editor.place.placing import LineMap, line_map
from gpadvisor.editor.show.words import EVIDENCE_WORDS, clean, file_name
from gpadvisor.lsp.layers import Entry
from gpadvisor.lsp.paths import resolved
from gpadvisor.lsp.protocol import OverviewEntry, OverviewFinding, OverviewKernel, OverviewPlace
from gpadvisor.lsp.snapshot import Snapshot, local_files
from gpadvisor.model.figures import expected, explains, gain
from gpadvisor.model.finding import Finding, Freshness, KernelView, Place, SuggestionView

_MOST_KERNELS: Final = 200
"""Of one input; the first ones take most of the GPU's time."""
Read: TypeAlias = Callable[[str], str | None]
_Maps: TypeAlias = Mapping[str, tuple[str, LineMap]]
"""By the line table's path: the file on this machine, and where its lines are today."""


def overview(snapshot: Snapshot, profile: str | None, read: Read) -> list[OverviewEntry]:
    """Profiles newest first, then sources; comparing large texts takes time.

    Args:
        snapshot: what is known.
        profile: only what lies at this resolved path; None for everything.
        read: the text of a file at a resolved path that no editor has open.
    """
    entries = sorted(
        snapshot.entries.values(), key=lambda entry: (not entry.is_profile, -entry.age, entry.key)
    )
    profiled = {kernel.kernel for entry in entries if entry.is_profile for kernel in entry.analysis.kernels}
    entries = [entry if entry.is_profile else _without(entry, profiled) for entry in entries]
    listed = [entry for entry in entries if entry.is_profile or entry.analysis.kernels]
    reading, errors = snapshot.reading, snapshot.errors
    bare = {*reading, *errors} - {entry.analysis.origin for entry in listed}
    if profile is not None:
        listed = [entry for entry in listed if resolved(entry.analysis.origin) == profile]
        bare = {path for path in bare if resolved(path) == profile}
    maps = _maps(snapshot, listed, read)
    rows = [_Lister(snapshot, entry, maps[entry.key]).entry() for entry in listed]
    rows += [_nothing_of(path) for path in sorted(bare)]
    return [replace(row, reading=row.path in reading, error=errors.get(row.path)) for row in rows]


def _without(entry: Entry, kernels: Collection[str]) -> Entry:
    """Machine code alone, without the kernels that a profile tells more of."""
    views = tuple(view for view in entry.analysis.kernels if view.kernel not in kernels)
    return replace(entry, analysis=replace(entry.analysis, kernels=views))


def _nothing_of(path: str) -> OverviewEntry:
    """An input that is being read, or could not be."""
    return OverviewEntry(
        path=path,
        name=clean(file_name(path)),
        profile=False,
        reading=False,
        error=None,
        collected_at=None,
        problems=[],
        kernels=[],
        left=0,
    )


def _maps(snapshot: Snapshot, entries: list[Entry], read: Read) -> dict[str, _Maps]:
    """Line maps by an entry's key."""
    texts: dict[str, str | None] = {path: text.source for path, text in snapshot.texts().items()}
    result: dict[str, _Maps] = {}
    for entry in entries:
        maps, local = {}, local_files(entry)
        for file in entry.analysis.files:
            local_path = local.get(file.path)
            if local_path is not None and local_path not in texts:
                texts[local_path] = read(local_path)
            if local_path is not None and (text := texts[local_path]) is not None:
                maps[file.path] = local_path, line_map(file, text)
        result[entry.key] = maps
    return result


@dataclass(frozen=True, slots=True)
class _Lister:
    """One input as it is listed."""

    now: Snapshot
    input: Entry
    maps: _Maps

    def entry(self) -> OverviewEntry:
        analysis = self.input.analysis
        return OverviewEntry(
            path=analysis.origin,
            name=clean(file_name(analysis.origin)),
            profile=self.input.is_profile,
            reading=False,
            error=None,
            collected_at=analysis.collected_at,
            problems=[clean(note.message) for note in analysis.problems if note.place is None],
            kernels=[self._kernel(kernel) for kernel in analysis.kernels[:_MOST_KERNELS]],
            left=max(0, len(analysis.kernels) - _MOST_KERNELS),
        )

    def _kernel(self, kernel: KernelView) -> OverviewKernel:
        return OverviewKernel(
            kernel=kernel.kernel,
            name=kernel.name,
            verdict=clean(kernel.verdict),
            evidence=EVIDENCE_WORDS[kernel.evidence],
            device=kernel.device,
            launch=kernel.launch,
            duration_ns=kernel.duration_ns,
            time_share=kernel.time_share,
            place=self._place(kernel.place),
            findings=[self._finding(kernel, suggestion) for suggestion in kernel.suggestions],
            problems=[clean(problem) for problem in kernel.problems],
        )

    def _finding(self, kernel: KernelView, suggestion: SuggestionView) -> OverviewFinding:
        leading = self._leading(kernel.kernel, suggestion.code)
        path, finding = (None, None) if leading is None else leading
        won, share = suggestion.speedup, suggestion.importance
        return OverviewFinding(
            code=suggestion.code,
            name=suggestion.name,
            title=clean(suggestion.title),
            gain=None if won is None else expected(won),
            gain_and_range=None if won is None else gain(won),
            share=None if share is None or not explains(share, won) else share,
            change=clean((finding.cure if finding is not None else "") or suggestion.advice),
            suppressed=None if suggestion.suppressed is None else clean(suggestion.suppressed),
            place=None if finding is None else self._place(Place(file=path or "", line=finding.line)),
        )

    def _leading(self, kernel: str, code: str) -> tuple[str, Finding] | None:
        """The heaviest line of a suggestion, and its file."""
        lines = [
            (file.path, finding)
            for file in self.input.analysis.files
            for finding in file.findings
            if finding.code == code and kernel in {part.kernel for part in finding.parts}
        ]
        return max(lines, key=lambda pair: (pair[1].leads, pair[1].samples), default=None)

    def _place(self, place: Place | None) -> OverviewPlace | None:
        """In today's text; None where the file is not on this machine."""
        path_and_lines = None if place is None else self.maps.get(place.file)
        if place is None or path_and_lines is None:
            return None
        path, lines = path_and_lines
        line, freshness = lines.now(place.line)
        edited = freshness is Freshness.EDITED
        return OverviewPlace(uri=self.now.uri_of(path), line=line - 1, stale=edited)
