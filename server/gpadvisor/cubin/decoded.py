# SPDX-License-Identifier: Apache-2.0
"""A decoded line table as a value that one process hands to another (GPA section III)."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpadvisor.cubin.image import CodeSection, Cubin
from gpadvisor.cubin.lines import line_table_damage, section_lines
from gpadvisor.cubin.read import read_cubin
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame, LineEntry
from gpadvisor.sandbox.codec import from_bytes, to_bytes


@dataclass(frozen=True, slots=True)
class Lines:
    """Line entries, one for each instruction, of the sections that were asked for."""

    sections: Mapping[str, tuple[LineEntry | None, ...]] = field(default_factory=dict)
    damage: str | None = None  # what is wrong with the line table; what stands before it is here


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredLines:
    """Each text and each entry once, and runs of instructions that share one; -1 is none."""

    damage: str | None
    texts: tuple[str, ...]
    entries: tuple[tuple[int, ...], ...]  # file and line; function, file and line of each call around it
    sections: dict[str, tuple[tuple[int, int], ...]]  # how many instructions, and the number of their entry


def decode_lines(cubin: Cubin, sections: Collection[str] | None) -> Lines:
    """Decode the lines of the named sections, of all where None."""
    selected = [section for section in cubin.sections if sections is None or section.name in sections]
    return Lines(
        {section.name: section_lines(cubin, section) for section in selected}, line_table_damage(cubin)
    )


def dump_lines(lines: Lines) -> bytes:
    """Lines as they cross the border of a process."""
    texts: dict[str, int] = {}
    entries: dict[LineEntry, int] = {}

    def number(text: str | None) -> int:
        return -1 if text is None else texts.setdefault(text, len(texts))

    runs = {
        name: tuple(
            (len(list(run)), -1 if entry is None else entries.setdefault(entry, len(entries)))
            for entry, run in itertools.groupby(rows)
        )
        for name, rows in lines.sections.items()
    }
    chains = tuple(
        (
            *(number(entry.location.file), entry.location.line),
            *(
                value
                for frame in entry.inline
                for value in (number(frame.function), number(frame.call_site.file), frame.call_site.line)
            ),
        )
        for entry in entries
    )
    stored = _StoredLines(damage=lines.damage, texts=tuple(texts), entries=chains, sections=runs)
    return to_bytes(stored)


def load_lines(data: bytes, cubin: Cubin) -> Lines:
    """Read them.

    Raises:
        ValueError: there are none, or not of this cubin.
    """
    stored = from_bytes(data, _StoredLines)
    by_name = {section.name: section for section in cubin.sections}
    try:
        entries = [_entry(chain, stored.texts) for chain in stored.entries]
        return Lines(
            {name: _rows(by_name[name], runs, entries) for name, runs in stored.sections.items()},
            stored.damage,
        )
    except (KeyError, IndexError) as error:
        raise ValueError("no line table, or that of another cubin") from error


def _entry(chain: Sequence[int], texts: Sequence[str]) -> LineEntry:
    def place(file: int, line: int) -> SourceLocation:
        if file < 0:
            raise ValueError("no place in a file")
        return SourceLocation(texts[file], line)

    def frame(function: int, file: int, line: int) -> InlineFrame:
        return InlineFrame(None if function < 0 else texts[function], place(file, line))

    file, line, *frames = chain
    calls = zip(frames[::3], frames[1::3], frames[2::3], strict=True)
    return LineEntry(place(file, line), tuple(itertools.starmap(frame, calls)))


def _rows(
    section: CodeSection, runs: Sequence[tuple[int, int]], entries: Sequence[LineEntry]
) -> tuple[LineEntry | None, ...]:
    if sum(count for count, _ in runs) != section.instruction_count or any(count < 1 for count, _ in runs):
        raise ValueError("another number of lines than of instructions")
    rows: list[LineEntry | None] = []
    for count, entry in runs:
        rows += [None if entry < 0 else entries[entry]] * count
    return tuple(rows)


def answer(request: bytes) -> bytes:
    """The lines of a cubin, behind a line with the names of sections or null, for a child process."""
    names, _, data = request.partition(b"\n")
    sections = None if names == b"null" else from_bytes(names, list[str])
    return dump_lines(decode_lines(read_cubin(data), sections))
