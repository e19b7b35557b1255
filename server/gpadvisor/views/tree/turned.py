# SPDX-License-Identifier: Apache-2.0
"""The tree from the bottom up, and flat: what a function costs, by who calls it, or wherever it is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from gpadvisor.report.names import template_name
from gpadvisor.views.tree.model import (
    NO_ROW,
    PROCEDURES,
    WITHIN,
    CallTree,
    Floats,
    RowKind,
    TreeRow,
    TreeView,
)
from gpadvisor.views.tree.reconstruct import MAX_NODES
from gpadvisor.views.tree.rows import RowsBuilder, children

_MAX_CALLERS: Final = 64
"""Above a function, in the view from the bottom up: deeper than calls of a GPU's stack go."""
_LAST: Final = frozenset({RowKind.UNKNOWN_CALLER, RowKind.FURTHER})
"""What says that more is not known of the callers."""
_FURTHER_CALLERS: Final = TreeRow(kind=RowKind.FURTHER, name="further callers")


def turned(tree: CallTree, view: TreeView) -> CallTree:
    """A tree from the top down as another view; its first row has everything, exclusive and inclusive."""
    if view is TreeView.TOP_DOWN:
        return tree
    builder, turn = RowsBuilder(), _Turn(tree)
    places = turn.flat(builder) if view is TreeView.FLAT else turn.bottom_up(builder)
    return _gathered(tree, view, builder, places)


class _Places:
    """Rows of a new tree for rows of the old one: where its own cost goes, and where its whole cost."""

    def __init__(self) -> None:
        self.own: list[tuple[int, int]] = []
        self.whole: list[tuple[int, int]] = []

    def add(self, new: int, old: int, *, outermost: bool) -> None:
        self.own.append((new, old))
        if outermost:  # what is within itself, such as an instantiation that calls the next one, counts once
            self.whole.append((new, old))


class _Turn:
    def __init__(self, tree: CallTree) -> None:
        self._tree = tree

    def flat(self, builder: RowsBuilder) -> _Places:
        """Each procedure with its loops and lines."""
        places, of = _Places(), [0] * len(self._tree.rows)
        open_rows: Counter[int] = Counter()
        for index, row, leaves in self._walk():
            if row.kind in PROCEDURES:
                if not leaves:
                    of[index] = builder.add(0, replace(row, calls=None, possible=False), _key(row))
            elif row.kind in WITHIN:
                if not leaves:
                    of[index] = builder.add(of[self._tree.parents[index]], row)
            else:
                continue
            if leaves:
                open_rows[of[index]] -= 1
            else:
                places.add(of[index], index, outermost=not open_rows[of[index]])
                open_rows[of[index]] += 1
        return places

    def bottom_up(self, builder: RowsBuilder) -> _Places:
        """Each procedure, and below it those that call it, with what of its cost is due to their calls."""
        places = _Places()
        open_rows: Counter[int] = Counter()
        for index, row, leaves in self._walk():
            if row.kind not in PROCEDURES:
                continue
            place = builder.add(0, replace(row, calls=None, possible=False), _key(row))
            if leaves:
                open_rows[place] -= 1
                continue
            outermost = not open_rows[place]
            open_rows[place] += 1
            places.add(place, index, outermost=outermost)
            for tree_row in self._callers(index):
                caller = tree_row if len(builder.rows) < MAX_NODES else _FURTHER_CALLERS
                place = builder.add(place, caller, (_key(caller), caller.location))
                places.add(place, index, outermost=outermost)
                if caller.kind in _LAST:
                    break
        return places

    def _walk(self) -> Iterator[tuple[int, TreeRow, bool]]:
        """Each row as it is entered and as it is left."""
        rows, below = self._tree.rows, children(self._tree)
        pending = [(0, False)]
        while pending:
            index, leaves = pending.pop()
            yield index, rows[index], leaves
            if not leaves:
                pending.append((index, True))
                pending.extend((child, False) for child in reversed(below[index]))

    def _callers(self, index: int) -> Iterator[TreeRow]:
        """Those above a row, innermost first, each at the line of its call."""
        rows, parents, levels = self._tree.rows, self._tree.parents, 0
        call = rows[index].location if rows[index].kind is RowKind.INLINED else None
        while (index := parents[index]) != NO_ROW and levels < _MAX_CALLERS:
            row = rows[index]
            if row.kind in WITHIN:
                call = call or (None if row.kind is RowKind.LOOP else row.location)
            elif row.kind is not RowKind.RUN:
                levels += 1
                host = row.kind in {RowKind.HOST, RowKind.PYTHON}
                yield replace(row, location=row.location if host else call, calls=None, possible=False)
                call = row.location if row.kind is RowKind.INLINED else None


def _key(row: TreeRow) -> tuple[str, str | None]:
    """What one function is, whatever instantiation of a template."""
    return template_name(row.name), None if row.location is None else row.location.file


def _gathered(tree: CallTree, view: TreeView, builder: RowsBuilder, places: _Places) -> CallTree:
    rows = builder.finished()
    exclusive = _table(tree.exclusive, places.own, len(rows))
    inclusive = _table(tree.inclusive, places.whole, len(rows))
    exclusive[0] = inclusive[0] = tree.inclusive[0]
    return replace(
        tree,
        view=view,
        rows=rows,
        parents=tuple(builder.parents),
        exclusive=exclusive,
        inclusive=inclusive,
    )


def _table(of: Floats, places: Sequence[tuple[int, int]], length: int) -> Floats:
    result = np.zeros((length, of.shape[1]))
    if places:
        new, old = np.array(places, dtype=np.int64).T
        np.add.at(result, new, of[old])
    return result
