# SPDX-License-Identifier: Apache-2.0
"""Making trees: rows that are equal become one, costs are summed upwards, rows without any disappear."""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpadvisor.report.names import template_name
from gpadvisor.views.tree.model import (
    NO_ROW,
    WITHIN,
    CallTree,
    Floats,
    RowKind,
    TreeColumn,
    TreeRow,
    TreeView,
)


class RowsBuilder:
    """Collects rows below a first one, which is the whole run."""

    def __init__(self) -> None:
        self.rows: list[TreeRow] = [TreeRow(kind=RowKind.RUN, name="all")]
        self.parents: list[int] = [NO_ROW]
        self._known: dict[Hashable, int] = {}
        self._names: dict[int, dict[str, None]] = {}

    def add(self, parent: int, row: TreeRow, key: Hashable = None) -> int:
        """The place of a row, or of one of the same parent and kind and the same name or ``key``."""
        same = (parent, row.kind, row.possible, key or _same(row))
        index = self._known.setdefault(same, len(self.rows))
        if index == len(self.rows):
            self.rows.append(row)
            self.parents.append(parent)
        elif row.calls is not None:
            self.rows[index] = replace(self.rows[index], calls=row.calls + (self.rows[index].calls or 0.0))
        if key is not None:
            self._names.setdefault(index, {}).update(dict.fromkeys(row.names or (row.name,)))
        return index

    def finished(self) -> tuple[TreeRow, ...]:
        """The rows, those of several instantiations under the name that these share."""
        for index, names in self._names.items():
            if len(names) > 1:
                row = self.rows[index]
                self.rows[index] = replace(row, name=template_name(row.name), names=tuple(names))
        return tuple(self.rows)


def _same(row: TreeRow) -> Hashable:
    """What rows of one parent have alike to be one: module and offset where they have them, else all."""
    if row.module and row.pc is not None:
        return posixpath.basename(row.module), row.pc
    return row.name, row.location, row.pc


def summed(builder: RowsBuilder, spent: Floats, columns: tuple[TreeColumn, ...]) -> CallTree:
    """A tree from the top down, without rows that have nothing in any column.

    Args:
        builder: its rows.
        spent: in each row itself, by column.
        columns: their names.
    """
    rows, parents = builder.finished(), builder.parents
    exclusive, inclusive = spent, spent.copy()
    for index in range(len(rows) - 1, 0, -1):
        parent = parents[index]
        inclusive[parent] += inclusive[index]
        if rows[index].kind in WITHIN:
            exclusive[parent] += exclusive[index]
    tree = CallTree(
        view=TreeView.TOP_DOWN,
        columns=columns,
        rows=rows,
        parents=tuple(parents),
        exclusive=exclusive,
        inclusive=inclusive,
    )
    # Parents have what their rows have, so none is left without its own.
    return picked(tree, [0, *(np.flatnonzero(inclusive[1:].any(axis=1)) + 1).tolist()])


def picked(tree: CallTree, order: Sequence[int]) -> CallTree:
    """The tree with some of its rows in an order that has each behind its parent."""
    place = {old: new for new, old in enumerate(order)} | {NO_ROW: NO_ROW}
    rows = tuple(tree.rows[old] for old in order)
    parents = tuple(place[tree.parents[old]] for old in order)
    return replace(
        tree, rows=rows, parents=parents, exclusive=tree.exclusive[order], inclusive=tree.inclusive[order]
    )


def arranged(tree: CallTree, by: NDArray[np.float64]) -> CallTree:
    """Each row directly behind its parent or all that is below a sibling, siblings with the most first."""
    below = children(tree)
    order, pending = [], [0]
    value = np.nan_to_num(by, nan=-np.inf)
    while pending:
        index = pending.pop()
        order.append(index)
        pending.extend(sorted(below[index], key=lambda child: (value[child], -child)))
    return picked(tree, order)


def children(tree: CallTree) -> list[list[int]]:
    """The rows directly below each row."""
    below: list[list[int]] = [[] for _ in tree.rows]
    for index, parent in enumerate(tree.parents):
        if parent != NO_ROW:
            below[parent].append(index)
    return below
