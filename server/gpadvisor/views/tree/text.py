# SPDX-License-Identifier: Apache-2.0
"""The tree for a terminal."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from gpadvisor.model.figures import percent
from gpadvisor.report.names import short_name
from gpadvisor.report.style import Style
from gpadvisor.report.tables import Column, Overflow, format_table
from gpadvisor.report.words import clean, plural, wrap
from gpadvisor.views.tree.formats import values
from gpadvisor.views.tree.formula import Formula
from gpadvisor.views.tree.measured import TIME
from gpadvisor.views.tree.model import NO_ROW, PROCEDURES, CallTree, Floats, RowKind, TreeView
from gpadvisor.views.tree.rows import picked

_HEADING: Final = {
    TreeView.TOP_DOWN: "who calls what",
    TreeView.BOTTOM_UP: "what costs, below it who calls it",
    TreeView.FLAT: "what costs, whoever calls it",
}
_DEEPEST: Final = 12
"""Levels that are indented: more would leave no room for names."""


def render_text(
    tree: CallTree,
    metrics: Sequence[Formula],
    missing: Sequence[str],
    *,
    width: int,
    rows: int | None,
    style: Style,
) -> str:
    """The tree with the share of the first metric in each row, and the values of the others.

    Args:
        tree: its rows in their order.
        metrics: what is shown.
        missing: why other kernels are not in it.
        width: of the page, in cells.
        rows: how many at most, those with the most; None for all.
        style: colours.
    """
    call_tree = tree if rows is None else picked(tree, _most(tree, metrics[0], rows))
    exclusive, inclusive = values(call_tree, metrics)
    lines = _head(tree, metrics[0], width, style)
    columns, cells = _columns(call_tree, metrics, exclusive, inclusive)
    columns += [
        Column(title="where", min_width=38, fit=_fit),
        Column(title="at", min_width=8, overflow=Overflow.CUT_START, drop=1),
    ]
    table = [
        (*row, f"{'  ' * min(level, _DEEPEST)}{_where(call_tree, index)}", _place(call_tree, index))
        for index, (row, level) in enumerate(zip(cells, _levels(call_tree), strict=True))
    ]
    lines += format_table(
        columns, table, width=width, indent=1, style=_coloured(call_tree, style, len(columns) - 2)
    )
    more = len(tree.rows) - len(call_tree.rows)
    if more > 0:
        lines.append(style.quiet(f"  ... and {plural(more, 'smaller row')}; --top 0 shows all"))
    for note in dict.fromkeys(clean(note) for kernel in tree.kernels for note in kernel.notes):
        lines += [style.caution(line) for line in wrap(note, width, "  ", "! ")]
    for sentence in missing:
        lines += [style.caution(line) for line in wrap(clean(sentence), width, "  ", "! ")]
    return "\n".join(lines) + "\n"


def _head(tree: CallTree, metric: Formula, width: int, style: Style) -> list[str]:
    devices = ", ".join(dict.fromkeys(kernel.device for kernel in tree.kernels))
    kernels = tree.kernels
    if not kernels:
        facts = f"{_HEADING[tree.view]}, by {metric.title}"
        return [style.heading("calling contexts as measured"), *wrap(clean(facts), width, "  "), ""]
    title = short_name(clean(kernels[0].name), width) if len(kernels) == 1 else plural(len(kernels), "kernel")
    weights = " and ".join(dict.fromkeys(kernel.weights for kernel in kernels))
    facts = f"{devices}; {_HEADING[tree.view]}, by {metric.title}; called functions are divided by {weights}"
    return [style.heading(title), *wrap(clean(facts), width, "  "), ""]


def _most(tree: CallTree, metric: Formula, count: int) -> list[int]:
    """The rows with the most, with all above them, in their order."""
    table = tree.stacked if metric.is_additive else tree.inclusive
    value = metric.evaluate({column.name: table[:, index] for index, column in enumerate(tree.columns)})
    result = {0}
    for leaf in np.argsort(-np.nan_to_num(value, nan=-np.inf), kind="stable").tolist():
        path, row = [], leaf
        while row not in result:
            path.append(row)
            row = max(0, tree.parents[row])
        if len(result) + len(path) <= max(1, count):
            result.update(path)
        elif len(result) >= count:
            break
    return sorted(result)


def _columns(
    tree: CallTree, metrics: Sequence[Formula], exclusive: Floats, inclusive: Floats
) -> tuple[list[Column], list[list[str]]]:
    """Of the first metric shares, if it adds up, with all that is called and without; of each a value."""
    columns: list[Column] = []
    cells: list[list[str]] = [[] for _ in tree.rows]
    total = float(inclusive[0, 0])
    if metrics[0].is_additive and total > 0:
        for title, table in (("with calls", inclusive), ("own", exclusive)):
            columns.append(Column(title=title, right=True))
            for row, value in zip(cells, table[:, 0].tolist(), strict=True):
                row.append(percent(value / total) if value else "")
    first = exclusive if tree.stacked is tree.exclusive else inclusive
    for index, metric in enumerate(metrics):
        if columns and TIME in metric.columns and index == 0:
            continue  # its shares are its values
        columns.append(Column(title=clean(metric.title), right=True, drop=index + 1 if index else None))
        for row, value in zip(cells, first[:, index].tolist(), strict=True):
            row.append(_figure(value, share=TIME in metric.columns and metric.is_additive))
    if any(row.calls is not None for row in tree.rows):
        columns.append(Column(title="calls", right=True, drop=len(metrics) + 2))
        for row, tree_row in zip(cells, tree.rows, strict=True):
            row.append("" if tree_row.calls is None else f"{tree_row.calls:,.0f}")
    return columns, cells


def _figure(value: float, *, share: bool) -> str:
    if math.isnan(value):
        return "-"
    if share:
        return percent(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _levels(tree: CallTree) -> list[int]:
    levels: list[int] = []
    for parent in tree.parents:
        levels.append(0 if parent == NO_ROW else levels[parent] + 1)
    return levels


def _where(tree: CallTree, index: int) -> str:
    row = tree.rows[index]
    name = clean(row.name)
    if row.kind in {RowKind.LINE, RowKind.LOOP} and row.location is not None:
        place = None
        while place is None and (index := tree.parents[index]) != NO_ROW:
            place = tree.rows[index].location
        if place is not None and place.file == row.location.file:
            name = f"{'loop at ' if row.kind is RowKind.LOOP else ''}line {row.location.line}"
    if row.kind is RowKind.CIRCLE:
        name = f"circle of {name}"
    elif len(row.names) > 1:
        name = f"{len(row.names)} x {name}"
    return f"possibly {name}" if row.possible else name


def _place(tree: CallTree, index: int) -> str:
    """The line of a call, where no row of its own has it."""
    row = tree.rows[index]
    if row.location is None and row.kind is RowKind.HOST and row.module and row.pc is not None:
        place = f"{posixpath.basename(row.module.replace(chr(92), '/'))}+{row.pc:#x}"
        return "" if place == row.name else clean(place)
    caller = tree.view is TreeView.BOTTOM_UP and tree.parents[index] > 0
    if row.location is None or not (caller or row.kind in {RowKind.HOST, RowKind.PYTHON, RowKind.INLINED}):
        return ""
    return f"{clean(row.location.file.replace(chr(92), '/').rpartition('/')[2])}:{row.location.line}"


def _fit(text: str, width: int) -> str:
    """The name behind its indentation, as much of it as there is room for."""
    name = text.lstrip(" ")
    indent = text[: min(len(text) - len(name), max(0, width - 20))]
    return indent + short_name(name, width - len(indent))


def _coloured(tree: CallTree, style: Style, where: int) -> Callable[[int, int, str], str]:
    def colour(row: int, column: int, text: str) -> str:
        if row < 0:
            return style.quiet(text)
        kind = tree.rows[row].kind
        if column > where or (column == where and kind in {RowKind.LINE, RowKind.CALL}):
            return style.code(text)
        return style.heading(text) if column == where and kind in PROCEDURES else text

    return colour
