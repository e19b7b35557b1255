# SPDX-License-Identifier: Apache-2.0
"""Machine code beside its source, as text for editors that have no better view, and row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gpadvisor.editor.show.words import clean, count, file_name, percent, reason_words
from gpadvisor.model.finding import Place, SassRow, SassView

_TEXT_WIDTH: Final = 52
HEADER_LINES: Final = 3
"""Lines before the first row of `render_sass`."""


def render_sass(view: SassView) -> str:
    """One line per instruction: address, control code, samples, stall, what it waits for, code, source line.

    A function's name stands on a line of its own before its first row.
    """
    samples = f"{count(view.samples)} samples" if view.samples else "no samples"
    lines = [
        f"// {clean(view.name)}  {view.arch}  {view.evidence.value}, {samples}",
        "// control: scoreboards waited for, read barrier, write barrier, yield, stall cycles",
        _row("//    pc", "control", "share", "stall", "waits for", "code", "source"),
    ]
    names = {row: name for name, row in view.functions}
    for index, row in enumerate(view.rows):
        if index in names and len(names) > 1:
            lines.append(f"// {clean(names[index])}:")
        lines.append(_line(view, row))
    if view.truncated:
        lines.append(f"// {count(view.truncated)} more instructions are not shown")
    return "\n".join(lines) + "\n"


def _line(view: SassView, row: SassRow) -> str:
    share = percent(row.share) if row.share else ""
    waits = "" if row.waits_for is None else f"0x{view.rows[row.waits_for].pc:x}"
    where = "" if row.place is None else f"{file_name(row.place.file)}:{row.place.line}"
    inlined = "".join(f" < {file_name(at.file)}:{at.line}" for at in row.inline)
    reason = reason_words(row.reason) if row.reason and row.samples else ""
    place = clean(where + inlined)
    return _row(f"{row.pc:>7x}", control_words(row), share, reason, waits, clean(row.text), place)


def _row(pc: str, control: str, share: str, stall: str, waits: str, code: str, source: str) -> str:
    cells = f"{pc:<9}  {control:<13} {share:>6}  {stall:<18} {waits:>9}  {code:<{_TEXT_WIDTH}} {source}"
    return cells.rstrip()


def control_words(row: SassRow) -> str:
    """The control code in the order of its bits, waits first: ``--2---:0:1:Y:04``."""
    waits = "".join(str(bit) if bit in row.waits else "-" for bit in range(6))
    read = "-" if row.read_barrier is None else str(row.read_barrier)
    write = "-" if row.write_barrier is None else str(row.write_barrier)
    return f"{waits}:{read}:{write}:{'Y' if row.yields else '-'}:{row.stall_cycles:02d}"


def rendered_lines(view: SassView) -> tuple[int, ...]:
    """The line from 0 that each row has in `render_sass`."""
    names = {row for _, row in view.functions} if len(view.functions) > 1 else set()
    found: list[int] = []
    at = HEADER_LINES
    for index in range(len(view.rows)):
        at += 1 if index in names else 0
        found.append(at)
        at += 1
    return tuple(found)


def rows_by_place(view: SassView) -> Mapping[Place, tuple[int, ...]]:
    """The rows of each source line; a line that something was inlined into has the inlined rows too."""
    found: dict[Place, list[int]] = {}
    for index, row in enumerate(view.rows):
        places = (row.place, *row.inline) if row.place is not None else row.inline
        for place in dict.fromkeys(places):
            found.setdefault(place, []).append(index)
    return {place: tuple(rows) for place, rows in found.items()}
