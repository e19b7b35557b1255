# SPDX-License-Identifier: Apache-2.0
"""The tree of calling contexts that another profiler measured."""

from __future__ import annotations

from typing import Final

import numpy as np

from gpadvisor.model.contexts import MeasuredContexts, MeasuredPlace, PlaceKind
from gpadvisor.model.ids import SourceLocation
from gpadvisor.views.tree.model import CallTree, RowKind, TreeColumn, TreeRow
from gpadvisor.views.tree.rows import RowsBuilder, summed

_KINDS: Final = {
    PlaceKind.HOST: RowKind.HOST,
    PlaceKind.PYTHON: RowKind.PYTHON,
    PlaceKind.COPY: RowKind.COPY,
    PlaceKind.FUNCTION: RowKind.FUNCTION,
    PlaceKind.INLINED: RowKind.INLINED,
    PlaceKind.KERNEL: RowKind.KERNEL,
    PlaceKind.LOOP: RowKind.LOOP,
    PlaceKind.LINE: RowKind.LINE,
}
_FIRST: Final = (
    "time",
    "launches",
    "CPUTIME",
    "REALTIME",
    "GPUOP",
    "GKER",
    "GXCOPY",
    "GCYCLES_ISU",
    "GINS",
    "GCYCLES",
    "cycles",
)
"""Beginnings of metrics that are shown where none are asked for."""
_SHOWN: Final = 4


def contexts_tree(contexts: MeasuredContexts) -> CallTree:
    """The tree from the top down, with all metrics."""
    builder = RowsBuilder()
    rows: list[int] = []
    for place in contexts.places:
        rows.append(builder.add(0 if place.parent < 0 else rows[place.parent], place_row(place)))
    spent = np.zeros((len(builder.rows), len(contexts.metrics)))
    if rows:
        np.add.at(spent, np.array(rows), np.array(contexts.own).reshape(len(rows), -1))
    columns = tuple(
        TreeColumn(name=name, what=unit) for name, unit in zip(contexts.metrics, contexts.units, strict=True)
    )
    return summed(builder, spent, columns)


def usual_metrics(contexts: MeasuredContexts) -> list[str]:
    """The metrics that are shown where none are asked for."""
    usual = [name for first in _FIRST for name in contexts.metrics if name in {first, f"{first}_ns"}]
    return (usual or list(contexts.metrics))[:_SHOWN]


def place_row(place: MeasuredPlace) -> TreeRow:
    """The row of a place."""
    return TreeRow(
        kind=_KINDS[place.kind],
        name=place.name,
        location=SourceLocation(place.file, place.line) if place.file and place.line > 0 else None,
        pc=place.address or None,
        module=place.module or None,
    )
