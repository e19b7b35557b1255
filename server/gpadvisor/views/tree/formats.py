# SPDX-License-Identifier: Apache-2.0
"""The tree for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from gpadvisor.views.tree.formula import Formula
from gpadvisor.views.tree.model import NO_ROW, CallTree, Floats, TreeRow

SCHEMA: Final = "gpadvisor.tree/1"


def render_json(tree: CallTree, metrics: Sequence[Formula], missing: Sequence[str]) -> str:
    """Everything, by ``tree.schema.json``; the same input gives the same bytes."""
    return json.dumps(plain(tree, metrics, missing), allow_nan=False) + "\n"


def plain(tree: CallTree, metrics: Sequence[Formula], missing: Sequence[str]) -> dict[str, object]:
    """The tree as values of JSON: rows from the top down, each with the place of its parent among them."""
    exclusive, inclusive = values(tree, metrics)
    meaning = {column.name: column.what for column in tree.columns}
    return {
        "schema": SCHEMA,
        "view": tree.view.value,
        "stacked": "inclusive" if tree.stacked is tree.inclusive else "exclusive",
        "metrics": [
            {
                "name": metric.title,
                "formula": metric.text,
                "what": meaning.get(metric.text),
                "additive": metric.is_additive,
            }
            for metric in metrics
        ],
        "kernels": [
            {
                "kernel": kernel.name,
                "device": kernel.device,
                "time_share": kernel.time_share,
                "weights": kernel.weights,
                "notes": list(kernel.notes),
            }
            for kernel in tree.kernels
        ],
        "rows": [
            {
                "parent": None if parent == NO_ROW else parent,
                **_row(row),
                "exclusive": number,
                "inclusive": inclusive_values,
            }
            for row, parent, number, inclusive_values in zip(
                tree.rows, tree.parents, _numbers(exclusive), _numbers(inclusive), strict=True
            )
        ],
        "missing": list(missing),
    }


def values(tree: CallTree, metrics: Sequence[Formula]) -> tuple[Floats, Floats]:
    """Each metric of each row, exclusive and inclusive; not a number where it has no value."""
    return tuple(
        np.column_stack(
            [
                metric.evaluate({column.name: table[:, index] for index, column in enumerate(tree.columns)})
                for metric in metrics
            ]
        )
        for table in (tree.exclusive, tree.inclusive)
    )  # type: ignore[return-value]  # two tables, two results


def _numbers(table: Floats) -> list[list[float | None]]:
    return [[None if math.isnan(value) else value for value in row] for row in table.tolist()]


def _row(row: TreeRow) -> dict[str, object]:
    return {
        "kind": row.kind.value,
        "name": row.name,
        "file": None if row.location is None else row.location.file,
        "line": None if row.location is None else row.location.line,
        "pc": None if row.module else row.pc,
        "module": row.module,
        "address": row.pc if row.module else None,
        "calls": row.calls,
        "possible": row.possible,
        "instances": max(1, len(row.names)),
    }
