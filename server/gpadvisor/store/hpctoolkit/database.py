# SPDX-License-Identifier: Apache-2.0
"""A database as one value, whose files fit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.hpctoolkit.layout import DatabaseFile
from gpadvisor.store.hpctoolkit.meta import Meta, read_meta
from gpadvisor.store.hpctoolkit.values import MeasuredValues, ProfileValues, read_contexts, read_profiles

POINT: Final = "point"
EXECUTION: Final = "execution"
_SLACK: Final = 1e-6
"""Sums of real numbers, relatively."""


@dataclass(frozen=True, eq=False)
class Database:
    """What a run measured, by calling context."""

    path: Path
    meta: Meta
    profiles: ProfileValues

    @property
    def values(self) -> MeasuredValues:
        """Of all profiles."""
        return self.profiles.values

    @cached_property
    def metric_names(self) -> frozenset[str]:
        """Of the metrics that have values."""
        names = self.meta.metrics
        return frozenset(names[number][0] for number in np.unique(self.values.metric).tolist())

    def first(self, names: Sequence[str]) -> str:
        """The first of several names of a metric that has values, else the last."""
        return next((name for name in names if name in self.metric_names), names[-1])

    def by_context(self, metric: str, scope: str) -> dict[int, float]:
        """A metric's sum over all profiles by context."""
        numbers = [
            number
            for number, metric_and_scope in self.meta.metrics.items()
            if metric_and_scope == (metric, scope)
        ]
        rows = np.isin(self.values.metric, numbers)
        return _sums(self.values.context[rows], self.values.value[rows])

    def least(self, metric: str, scope: str) -> float | None:
        """The least of a metric over profiles and contexts, where it has any."""
        numbers = [
            number
            for number, metric_and_scope in self.meta.metrics.items()
            if metric_and_scope == (metric, scope)
        ]
        values = self.values.value[np.isin(self.values.metric, numbers)]
        return float(values.min()) if len(values) else None


def read_database(folder: Path) -> Database:
    """Read a database and check that its files are of one run.

    Raises:
        ProfileFormatError: one of them is damaged, or they do not belong together.
    """
    meta = read_meta(DatabaseFile(folder, "meta.db"))
    profiles = read_profiles(DatabaseFile(folder, "profile.db"))
    contexts = read_contexts(DatabaseFile(folder, "cct.db"))
    if not profiles.values.same(contexts):
        raise _apart(folder, "profile.db and cct.db have different values")
    database = Database(folder, meta, profiles)
    _check(database)
    return database


def _check(database: Database) -> None:
    """MeasuredValues are of metrics that are named, and no context has less than those in it together."""
    values = database.values
    if not np.isin(values.metric, list(database.meta.metrics)).all():
        raise _apart(database.path, "profile.db has metrics that meta.db does not name")
    if not np.isfinite(values.value).all() or (values.value < 0).any():
        raise ProfileFormatError(f"{database.path} has values below zero or beyond all numbers")
    for number, (name, scope) in database.meta.metrics.items():
        if scope != EXECUTION:
            continue
        rows = values.metric == number
        inclusive = _sums(values.context[rows], values.value[rows])
        below: dict[int, float] = {}
        for context in database.meta.contexts.values():
            if context.parent is not None and context.id in inclusive:
                below[context.parent] = below.get(context.parent, 0.0) + inclusive[context.id]
        for parent, parts in below.items():
            if parts > inclusive.get(parent, 0.0) * (1 + _SLACK) + _SLACK:
                raise _apart(database.path, f"context {parent} has less {name} than what meta.db has in it")


def _sums(context: NDArray[np.int64], value: NDArray[np.float64]) -> dict[int, float]:
    keys, index = np.unique(context, return_inverse=True)
    return dict(
        zip(keys.tolist(), np.bincount(index, weights=value, minlength=len(keys)).tolist(), strict=True)
    )


def _apart(folder: Path, reason: str) -> ProfileFormatError:
    return ProfileFormatError(
        f"{folder} is no whole database: {reason}; its files are of two runs, or damaged: copy it again"
    )
