# SPDX-License-Identifier: Apache-2.0
"""The source line of a loop, inlined or not (GPA section III, program structure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import LineEntry


def loop_location(
    header: Iterable[int], latches: Iterable[int], lines: Sequence[LineEntry | None]
) -> SourceLocation | None:
    """The line of a loop statement: the smallest one, in the header's file, of header and latches.

    Calls inlined into the loop are looked through: only the inline levels that all of these instructions
    share belong to the loop itself.

    Args:
        header: instruction indices of the header block.
        latches: instruction indices of the jumps back to it.
        lines: of the whole function.
    """
    entries = [entry for index in (*header, *latches) if (entry := lines[index]) is not None]
    if not entries:
        return None
    shared = _shared_levels(entries)
    places = [_place_at(entry, shared) for entry in entries]
    return min((place for place in places if place.file == places[0].file), key=lambda place: place.line)


def _shared_levels(entries: Sequence[LineEntry]) -> int:
    """How many outermost inline levels all entries have in common."""
    chains = [entry.inline[::-1] for entry in set(entries)]
    first = min(chains, key=len)
    for level, frame in enumerate(first):
        if any(chain[level] != frame for chain in chains):
            return level
    return len(first)


def _place_at(entry: LineEntry, level: int) -> SourceLocation:
    """The place of an instruction as the caller ``level`` inlined calls inside the function sees it."""
    further_in = len(entry.inline) - level
    return entry.location if further_in == 0 else entry.inline[further_in - 1].call_site
