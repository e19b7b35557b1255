# SPDX-License-Identifier: Apache-2.0
"""Column tables for terminals: as wide as their content, never wider than the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from gpadvisor.report.words import Keep, cells, pad, shorten, wrap

Fit = Callable[[str, int], str]
"""Makes a text at most so many cells wide."""


class Overflow(Enum):
    """What happens to a cell that is wider than its column."""

    CUT_END = "cut_end"
    CUT_START = "cut_start"  # paths
    CUT_MIDDLE = "cut_middle"  # names
    WRAP = "wrap"


_KEEP = {Overflow.CUT_END: Keep.START, Overflow.CUT_START: Keep.END, Overflow.CUT_MIDDLE: Keep.BOTH}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column; numbers go right, words left.

    ``min_width`` set means that the column may shrink to it, by ``fit`` where the content has a better way
    to become short than ``overflow``. A column with a ``drop`` rank disappears on a
    page too narrow for all of them, the highest rank first; None keeps it always.
    """

    title: str
    right: bool = False
    min_width: int | None = None
    max_width: int | None = None
    overflow: Overflow = Overflow.CUT_END
    fit: Fit | None = None
    drop: int | None = None


CellStyle = Callable[[int, int, str], str]
"""Colours a padded cell: (row, column as given, text); row -1 is the header."""


def _plain(_row: int, _column: int, text: str) -> str:
    return text


def format_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    width: int = 80,
    indent: int = 0,
    gap: int = 2,
    style: CellStyle = _plain,
) -> list[str]:
    """The lines of a table, header first; an empty header row is left out, and so is an empty last column.

    Cells are plain text without line breaks. Every line is at most ``width`` cells wide, unless the columns
    that may neither shrink nor disappear need more.
    """
    if rows and not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    natural = [_natural(column, [row[index] for row in rows]) for index, column in enumerate(columns)]
    visible = _columns_that_fit(columns, natural, width - indent, gap)
    widths = _widths(columns, natural, visible, width - indent - gap * (len(visible) - 1))
    lines: list[str] = []
    titles = [column.title for column in columns]
    for number, row in enumerate([titles, *rows], start=-1):
        if number == -1 and not any(titles):
            continue
        lines.extend(_row_lines(columns, row, number, visible, widths, indent, gap, style=style))
    return lines


def _natural(column: Column, texts: Sequence[str]) -> int:
    widest = max([cells(column.title), *(cells(text) for text in texts)])
    return widest if column.max_width is None else min(widest, column.max_width)


def _least(column: Column, natural: int) -> int:
    return natural if column.min_width is None else min(natural, max(column.min_width, cells(column.title)))


def _columns_that_fit(columns: Sequence[Column], natural: list[int], room: int, gap: int) -> list[int]:
    visible = list(range(len(columns)))
    while True:
        needed = sum(_least(columns[i], natural[i]) for i in visible) + gap * (len(visible) - 1)
        droppable = [i for i in visible if columns[i].drop is not None]
        if needed <= room or not droppable:
            return visible
        visible.remove(max(droppable, key=lambda i: (columns[i].drop or 0, i)))


def _widths(columns: Sequence[Column], natural: list[int], visible: list[int], room: int) -> dict[int, int]:
    """Natural widths, with what is too much taken cell by cell from the widest column that may shrink."""
    least = {i: _least(columns[i], natural[i]) for i in visible}
    widths = {i: max(least[i], min(natural[i], room)) for i in visible}
    for _ in range(sum(widths.values()) - room):
        flexible = [i for i in visible if widths[i] > least[i]]
        if not flexible:
            break
        widths[max(flexible, key=lambda i: (widths[i], i))] -= 1
    return widths


def _row_lines(
    columns: Sequence[Column],
    row: Sequence[str],
    number: int,
    visible: list[int],
    widths: dict[int, int],
    indent: int,
    gap: int,
    *,
    style: CellStyle,
) -> list[str]:
    parts = {i: _cell_lines(columns[i], row[i], widths[i]) for i in visible}
    lines = []
    for level in range(max((len(part) for part in parts.values()), default=0)):
        line = " " * indent
        for position, i in enumerate(visible):
            text = parts[i][level] if level < len(parts[i]) else ""
            is_last = position == len(visible) - 1
            padded = (
                text if is_last and not columns[i].right else pad(text, widths[i], right=columns[i].right)
            )
            line += style(number, i, padded) + ("" if is_last else " " * gap)
        lines.append(line.rstrip())
    return lines


def _cell_lines(column: Column, text: str, width: int) -> list[str]:
    if cells(text) <= width:
        return [text]
    if column.fit is not None:
        return [column.fit(text, width)]
    if column.overflow is Overflow.WRAP:
        return wrap(text, width)
    return [shorten(text, width, _KEEP[column.overflow])]
