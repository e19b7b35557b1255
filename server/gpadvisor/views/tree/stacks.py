# SPDX-License-Identifier: Apache-2.0
"""The tree for flame graphs: folded stacks, and speedscope's file format."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from gpadvisor.errors import UsageError
from gpadvisor.report.words import clean
from gpadvisor.views.tree.formula import Formula
from gpadvisor.views.tree.measured import TIME
from gpadvisor.views.tree.model import NO_ROW, PROCEDURES, CallTree, Floats, TreeRow
from gpadvisor.views.tree.rows import children

_MAX_DEPTH: Final = 256
"""Frames of a folded stack: each line repeats all of them, so that a chain of calls would cost its square."""
_PARTS: Final = 1_000_000
"""Folded stacks have whole numbers: a share of the time is told in millionths."""
_SPEEDSCOPE: Final = "https://www.speedscope.app/file-format-schema.json"


def render_folded(tree: CallTree, metric: Formula) -> str:
    """A line ``frame;frame;... number`` for each row that has something itself.

    Numbers are whole, rounded within each procedure by largest remainder, so that its sum is kept.

    Raises:
        UsageError: the metric does not add up, or is below zero somewhere.
    """
    itself = _itself(tree, metric) * (_PARTS if TIME in metric.columns else 1)
    names = [_frame(row).replace(";", ":") for row in tree.rows]
    paths: list[tuple[str, ...]] = []
    within: defaultdict[str, list[int]] = defaultdict(list)
    procedures: list[str] = []
    for index, row in enumerate(tree.rows):
        parent = tree.parents[index]
        above = () if parent == NO_ROW else paths[parent]
        paths.append((*above, names[index]) if len(above) < _MAX_DEPTH else above)
        procedures.append(row.name if row.kind in PROCEDURES or parent == NO_ROW else procedures[parent])
        within[procedures[index]].append(index)
    folded: defaultdict[tuple[str, ...], int] = defaultdict(int)
    sums = largest_remainder([float(itself[rows].sum()) for rows in within.values()])
    for rows, total in zip(within.values(), sums, strict=True):
        for index, number in zip(rows, largest_remainder(itself[rows].tolist(), total), strict=True):
            folded[paths[index]] += number
    return "".join(f"{';'.join(path)} {number}\n" for path, number in folded.items() if number)


def largest_remainder(amounts: Sequence[float], total: int | None = None) -> list[int]:
    """Amounts rounded up or down to add up to ``total``: their sum rounded up, down or to the nearest."""
    rounded = [math.floor(amount) for amount in amounts]
    missing = (round(math.fsum(amounts)) if total is None else total) - sum(rounded)
    nearest = sorted(
        range(len(amounts)), key=lambda position: (rounded[position] - amounts[position], position)
    )
    for index in nearest[:missing]:
        rounded[index] += 1
    return rounded


def render_speedscope(tree: CallTree, metrics: Sequence[Formula], name: str) -> str:
    """A file for https://www.speedscope.app, with a profile for each metric; by its published schema.

    Raises:
        UsageError: a metric does not add up, or is below zero somewhere.
    """
    frames: dict[tuple[str, str | None, int | None], int] = {}
    numbers = []
    for row in tree.rows:
        place = row.location
        key = (_frame(row), None if place is None else place.file, None if place is None else place.line)
        numbers.append(frames.setdefault(key, len(frames)))
    profiles = []
    for metric in metrics:
        itself = _itself(tree, metric)
        events = []
        time = 0.0
        for node, opens in _walk(tree):
            events.append({"type": "O" if opens else "C", "frame": numbers[node], "at": time})
            time += float(itself[node]) if opens else 0.0
        profiles.append(
            {
                "type": "evented",
                "name": metric.title,
                "unit": "none",
                "startValue": 0,
                "endValue": time,
                "events": events,
            }
        )
    value = {
        "$schema": _SPEEDSCOPE,
        "shared": {
            "frames": [
                {"name": frame}
                | ({} if file is None else {"file": clean(file)})
                | ({} if line is None else {"line": line})
                for frame, file, line in frames
            ]
        },
        "profiles": profiles,
        "name": name,
        "exporter": "gpadvisor",
    }
    return json.dumps(value, allow_nan=False) + "\n"


def _walk(tree: CallTree) -> Iterator[tuple[int, bool]]:
    """Each row as it is opened and as it is closed."""
    below = children(tree)
    pending = [(0, True)]
    while pending:
        index, opens = pending.pop()
        yield index, opens
        if opens:
            pending.append((index, False))
            pending.extend((child, True) for child in reversed(below[index]))


def _frame(row: TreeRow) -> str:
    return clean(f"{row.name} (possible)" if row.possible else row.name)


def _itself(tree: CallTree, metric: Formula) -> Floats:
    """What each row has beyond the rows below it."""
    if not metric.is_additive:
        raise UsageError(
            f"metric '{metric.title}' is no sum over code, so nothing can be as wide as it; "
            "take a column, or columns added up"
        )
    columns = {column.name: tree.stacked[:, index] for index, column in enumerate(tree.columns)}
    stacked = metric.evaluate(columns)
    itself = stacked.copy()
    np.subtract.at(itself, np.array(tree.parents[1:], dtype=np.int64), stacked[1:])
    least = -1e-9 * max(1.0, float(np.abs(stacked).max()))  # sums of rounded numbers
    if itself.min() < least:
        raise UsageError(f"metric '{metric.title}' is below zero at '{tree.rows[int(itself.argmin())].name}'")
    return np.maximum(itself, 0.0)
