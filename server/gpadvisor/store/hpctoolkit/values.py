# SPDX-License-Identifier: Apache-2.0
"""``profile.db`` and ``cct.db``: the same values, sorted by profile and by context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.store.hpctoolkit.layout import DatabaseFile, fields

_SUMMARY: Final = 1
_PROFILE: Final = fields(
    ("values", "<u8", 0),
    ("place", "<u8", 8),
    ("contexts", "<u4", 16),
    ("index", "<u8", 24),
    ("identifiers", "<u8", 32),
    ("flags", "<u4", 40),
)
_OF_PROFILE: Final = fields(("metric", "<u2", 0), ("value", "<f8", 2))
_BY_CONTEXT: Final = fields(("context", "<u4", 0), ("first", "<u8", 4))
_CONTEXT: Final = fields(
    ("values", "<u8", 0), ("place", "<u8", 8), ("metrics", "<u2", 16), ("index", "<u8", 24)
)
_OF_CONTEXT: Final = fields(("profile", "<u4", 0), ("value", "<f8", 4))
_BY_METRIC: Final = fields(("metric", "<u2", 0), ("first", "<u8", 2))
_IDENTIFIER: Final = fields(("kind", "u1", 0), ("logical", "<u4", 4), ("physical", "<u8", 8))


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredValues:
    """MeasuredValues that are not zero, as equal-length columns sorted by profile, context and metric."""

    profile: NDArray[np.int64]
    context: NDArray[np.int64]
    metric: NDArray[np.int64]
    value: NDArray[np.float64]

    def same(self, other: MeasuredValues) -> bool:
        """Whether both have the same values at the same places."""
        return (
            len(self.value) == len(other.value)
            and all(
                bool((getattr(self, name) == getattr(other, name)).all())
                for name in ("profile", "context", "metric")
            )
            and bool(((self.value == other.value) | (np.isnan(self.value) & np.isnan(other.value))).all())
        )


@dataclass(frozen=True, slots=True, eq=False)
class ProfileValues:
    """What ``profile.db`` holds."""

    values: MeasuredValues  # of all but the summary
    summary: MeasuredValues
    identifiers: Mapping[int, Mapping[int, int]]  # by profile: number by kind (RANK, THREAD)


def read_profiles(file: DatabaseFile) -> ProfileValues:
    """Read ``profile.db``.

    Raises:
        ProfileFormatError: it is damaged.
    """
    place, count, size = file.numbers("<QIB", file.section(0))
    parts: list[tuple[NDArray[np.int64], ...]] = []
    summaries: list[tuple[NDArray[np.int64], ...]] = []
    identifiers: dict[int, Mapping[int, int]] = {}
    budget = _Budget(file)
    for number, (values, start, contexts, index, about, flags) in enumerate(
        file.rows(place, count, _PROFILE, size).tolist()
    ):
        budget.take(values * _OF_PROFILE.itemsize + contexts * _BY_CONTEXT.itemsize)
        rows, by = file.rows(start, values, _OF_PROFILE), file.rows(index, contexts, _BY_CONTEXT)
        context = np.repeat(by["context"].astype(np.int64), file.spans(by["first"].tolist(), values))
        profile = np.full(values, number, np.int64)
        part = profile, context, rows["metric"].astype(np.int64), rows["value"].view(np.ndarray)
        (summaries if flags & _SUMMARY else parts).append(part)
        if about and not flags & _SUMMARY:
            identifiers[number] = _identifiers(file, about)
    return ProfileValues(_sorted(file, parts), _sorted(file, summaries), identifiers)


def read_contexts(file: DatabaseFile) -> MeasuredValues:
    """Read ``cct.db``.

    Raises:
        ProfileFormatError: it is damaged.
    """
    place, count, size = file.numbers("<QIB", file.section(0))
    parts: list[tuple[NDArray[np.int64], ...]] = []
    budget = _Budget(file)
    for context, (values, start, metrics, index) in enumerate(
        file.rows(place, count, _CONTEXT, size).tolist()
    ):
        budget.take(values * _OF_CONTEXT.itemsize + metrics * _BY_METRIC.itemsize)
        rows, by = file.rows(start, values, _OF_CONTEXT), file.rows(index, metrics, _BY_METRIC)
        metric = np.repeat(by["metric"].astype(np.int64), file.spans(by["first"].tolist(), values))
        parts.append(
            (rows["profile"].astype(np.int64), np.full(values, context, np.int64), metric, rows["value"])
        )
    return _sorted(file, parts)


class _Budget:
    """MeasuredValues lie beside each other: those that overlap would make much of little."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file, self._left = file, len(file)

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self._file.damaged("its values overlap")


def _identifiers(file: DatabaseFile, place: int) -> dict[int, int]:
    (count,) = file.numbers("<H", place)
    rows = file.rows(place + 8, count, _IDENTIFIER).tolist()
    return {kind: logical for kind, logical, _ in rows}


def _sorted(file: DatabaseFile, parts: Sequence[tuple[NDArray[np.int64], ...]]) -> MeasuredValues:
    """All of them by profile, context and metric; none of them twice."""
    if not parts:
        empty = np.zeros(0, np.int64)
        return MeasuredValues(empty, empty, empty, np.zeros(0, np.float64))
    profile, context, metric = (np.concatenate([part[index] for part in parts]) for index in range(3))
    value = np.concatenate([part[3] for part in parts]).astype(np.float64)
    order = np.lexsort((metric, context, profile))
    profile, context, metric, value = profile[order], context[order], metric[order], value[order]
    again = (np.diff(profile) == 0) & (np.diff(context) == 0) & (np.diff(metric) == 0)
    if again.any():
        raise file.damaged("a value stands twice in it")
    return MeasuredValues(profile, context, metric, value)
