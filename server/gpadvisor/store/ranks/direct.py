# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch by place, in columns of numpy and in one pass: without sums by profile before.

Those have as many rows as the profiles together, these as many as there are places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.store.parts import MAX_SAMPLES
from gpadvisor.store.ranks.kernels import Kernels
from gpadvisor.store.ranks.summing import FAILED, RANKED
from gpadvisor.store.snapshot.parquet import MAX_ROWS

SLOTS: Final = 256
"""Profiles of a batch at most."""
AT_ONCE: Final = 4
"""Of these, whose rows are in memory."""
_SMALL: Final = 1 << 27  # more samples than a profile has at a place here, so that squares fit into 64 bits
_STEP: Final = 8  # bytes of the smallest instruction
_NUMBERS: Final = 1 << 25  # of places, those included that nobody has
_PAIRS: Final = 1 << 22  # of profiles and launches, and of kernels and sections, likewise
_ROWS: Final = """
    SELECT slot, try_cast(launch AS UINTEGER) AS launch,
        try_cast(coalesce(list_position(getvariable('sections'), section), 0) AS USMALLINT) AS section,
        try_cast(pc AS UINTEGER) AS pc,
        try_cast(list_position(getvariable('reasons'), reason) AS UTINYINT) AS reason,
        try_cast(samples AS UINTEGER) AS samples, try_cast(latency_samples AS UINTEGER) AS latency
    FROM read_parquet(?::VARCHAR[], hive_partitioning = true, hive_types = {'slot': UTINYINT})"""

SAMPLES_OF: Final = "SELECT k, f, samples FROM direct_of"
"""As that of ``summing``."""
STAGE: Final = f"""
    SELECT k, getvariable('sections')[section] AS section, pc, getvariable('reasons')[reason] AS reason,
        ranks::UINTEGER AS ranks, samples, latency AS latency_samples, {_SMALL} - least AS least,
        (most // {SLOTS})::HUGEINT * 4294967296
            + ({RANKED} - getvariable('profiles')[{SLOTS} - (most % {SLOTS})::BIGINT]) AS most,
        squares::DECIMAL(38, 0) AS squares
    FROM direct"""
"""The samples in the form of ``summing``."""
_SUMS: Final = ("ranks", "samples", "latency", "squares", "least", "most")
"""Of a place: ``least`` taken from ``_SMALL``, ``most`` with whose it is, so that the largest counts."""
_Columns = Mapping[str, NDArray[Any]]


class _Amiss(Exception):  # noqa: N818 no error: sums by profile tell what is wrong, if anything is
    """The samples are no such as can be added up here."""


@dataclass(frozen=True, slots=True)
class _Numbering:
    """The places that samples may have: a number by kernel and section, then address, then reason."""

    kernel_of: NDArray[np.int64]  # by profile and launch; -1 of failed launches, and of none
    sections: NDArray[np.int64]  # number of each section of a kernel, by both; -1 of other sections
    steps: int  # addresses of a section
    reasons: int

    def stretches(self, slot: int, rows: _Columns) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Start, kernel and first place of each stretch of a profile's rows: of one launch and section."""
        launches, sections = rows["launch"], rows["section"]
        changes = (launches[1:] != launches[:-1]) | (sections[1:] != sections[:-1])
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        if launches.max() >= self.kernel_of.shape[1]:
            raise _Amiss
        kernels = self.kernel_of[slot, launches[starts]]
        numbers = self.sections[kernels, sections[starts]]
        if min(kernels.min(), numbers.min()) < 0:
            raise _Amiss
        return starts, kernels, numbers * (self.steps * self.reasons)

    def within(self, rows: _Columns) -> NDArray[np.int64]:
        """The number of each row's place, from the first of its kernel and section on."""
        address, reason = rows["pc"], rows["reason"]
        if (address & np.uint32(_STEP - 1)).any() or address.max() >= self.steps * _STEP or not reason.all():
            raise _Amiss
        steps = (address // np.uint32(_STEP)).astype(np.int64)
        numbers: NDArray[np.int64] = steps * self.reasons + reason.astype(np.int64) - 1
        return numbers

    def parts(self, places: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """What they are, as columns of ``direct``."""
        rest, reason = np.divmod(places, self.reasons)
        section, step = np.divmod(rest, self.steps)
        kernels, sections = np.nonzero(self.sections >= 0)  # in the order of their numbers
        return {
            "k": kernels[section].astype(np.uint32),
            "section": sections[section],
            "pc": (step * _STEP).astype(np.uint64),
            "reason": reason + 1,
        }


@dataclass(slots=True)
class _Sums:
    """A row for each place that a profile has, in the order in which they are seen."""

    row_of: NDArray[np.int64]  # by place, from 1 on; ``np.zeros`` takes memory where it is written
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    columns: dict[str, NDArray[np.uint64]] = field(
        default_factory=lambda: dict.fromkeys(_SUMS, np.zeros(0, np.uint64))
    )

    def rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of places."""
        rows = self.row_of[places]
        if not rows.all():
            new = np.unique(places[rows == 0])
            self.row_of[new] = np.arange(len(new)) + len(self.places) + 1
            self.places = np.concatenate([self.places, new])
            none = np.zeros(len(new), np.uint64)
            self.columns = {name: np.concatenate([values, none]) for name, values in self.columns.items()}
            rows = self.row_of[places]
        return rows - 1

    def add(self, slot: int, places: NDArray[np.int64], samples: NDArray[Any], latency: NDArray[Any]) -> None:
        """Add what a profile has: over the places of all, most of which it has."""
        rows = self.rows(places)
        counts = np.bincount(rows, minlength=len(self.places))
        there = counts > 0
        samples, latency = (_by_row(rows, values, counts) for values in (samples, latency))
        if samples.max(initial=0) >= _SMALL:
            raise _Amiss
        sums = self.columns
        sums["ranks"] += there
        sums["samples"] += samples
        sums["latency"] += latency
        sums["squares"] += samples * samples
        np.maximum(sums["least"], (_SMALL - samples) * there, out=sums["least"])
        most = (samples * SLOTS + np.uint64(SLOTS - 1 - slot)) * there
        np.maximum(sums["most"], most, out=sums["most"])


def _by_row(rows: NDArray[np.int64], values: NDArray[Any], counts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Values in their rows, as many as there are ``counts``; added up where a row has several."""
    if counts.max(initial=0) > 1:  # several launches of a kernel
        return np.bincount(rows, values, minlength=len(counts)).astype(np.uint64)
    by_row = np.zeros(len(counts), np.uint64)
    by_row[rows] = values.astype(np.uint64)
    return by_row


def grouped(connection: Any, few: Iterable[Sequence[str]], kernels: Kernels, order: Sequence[int]) -> bool:
    """Whether the samples of a batch could be added up so, as ``direct`` and ``direct_of``.

    They are not where anything is amiss: sums by profile tell what.

    Args:
        connection: has the launches with their kernels (``keyed``).
        few: the files with the samples of ``AT_ONCE`` profiles, which may be the same each time.
        kernels: those of the batch among them.
        order: the number of each profile, the lowest first.
    """
    try:
        numbering = _numbering(connection, kernels, order)
        sums = _Sums(np.zeros(_NUMBERS, np.int32))
        of = _added(_profiles(connection, few), numbering, sums, order)
    except _Amiss:
        return False
    for name, columns in (
        ("direct", numbering.parts(sums.places) | sums.columns),
        (
            "direct_of",
            dict(zip(("k", "f", "samples"), np.array(of, np.uint64).reshape(-1, 3).T, strict=True)),
        ),
    ):
        connection.register("columns_in", columns)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM columns_in")
        connection.unregister("columns_in")
    return True


def _numbering(connection: Any, kernels: Kernels, order: Sequence[int]) -> _Numbering:
    names = {
        "sections": sorted({name for kernel in kernels.found for name in kernel.sections}),
        "reasons": sorted({name for kernel in kernels.found for name in kernel.reasons}),
    }
    for variable, values in names.items():
        connection.execute(f"SET VARIABLE {variable} = ?::VARCHAR[]", [values])
    connection.execute("SET VARIABLE profiles = ?::UINTEGER[]", [list(order)])
    keyed = connection.execute("SELECT rank, number, k FROM keyed").fetchnumpy()
    launches = int(keyed["number"].max(initial=0)) + 1
    if max(len(order) * launches, len(kernels.found) * (len(names["sections"]) + 1)) > _PAIRS:
        raise _Amiss
    numbers = {name: at for at, name in enumerate(names["sections"], 1)}
    has = np.zeros((len(kernels.found), len(numbers) + 1), bool)
    for at, kernel in enumerate(kernels.found):
        has[at, [numbers[name] for name in kernel.sections]] = True
    kernel_of = np.full((len(order), launches), -1, np.int64)
    kernel_of[np.searchsorted(order, keyed["rank"]), keyed["number"]] = keyed["k"]
    kernel_of[kernel_of == FAILED] = -1  # whose samples are left out, if there are any: not here
    reasons = max(len(names["reasons"]), 1)
    return _Numbering(
        kernel_of=kernel_of,
        sections=np.where(has, np.cumsum(has).reshape(has.shape) - 1, -1),
        steps=_NUMBERS // (max(int(has.sum()), 1) * reasons),
        reasons=reasons,
    )


def _added(
    profiles: Iterable[tuple[int, _Columns]], numbering: _Numbering, sums: _Sums, order: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Add all profiles; return kernel, profile and samples for each that has some."""
    of: list[tuple[int, int, int]] = []
    number = 0
    for slot, rows in profiles:
        if (rows["latency"] > rows["samples"]).any():
            raise _Amiss
        starts, kernels, first = numbering.stretches(slot, rows)
        lengths = np.diff(starts, append=len(rows["launch"]))
        sums.add(slot, numbering.within(rows) + np.repeat(first, lengths), rows["samples"], rows["latency"])
        totals = np.bincount(kernels, np.add.reduceat(rows["samples"], starts, dtype=np.uint64))
        of += [(int(k), order[slot], int(totals[k])) for k in set(kernels.tolist())]
        number += len(rows["launch"])
    if sum(samples for *_, samples in of) > MAX_SAMPLES or number > MAX_ROWS:
        raise _Amiss
    return of


def _profiles(connection: Any, few: Iterable[Sequence[str]]) -> Iterator[tuple[int, _Columns]]:
    """The rows of each profile that has some, by its place among the files."""
    for first, files in zip(count(0, AT_ONCE), few):
        rows = connection.execute(_ROWS, [files]).fetchnumpy()
        if any(np.ma.is_masked(values) for values in rows.values()):
            raise _Amiss
        slots = rows.pop("slot")
        ends = np.flatnonzero(slots[1:] != slots[:-1]) + 1
        for start, end in zip((0, *ends), (*ends, len(slots)), strict=True):
            if end > start:
                yield first + int(slots[start]), {name: values[start:end] for name, values in rows.items()}
