# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch by place, in columns of numpy and in one pass: without sums by profile before.

Those have as many rows as the profiles together, these as many as there are places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.store.parts import MAX_SAMPLES
from gpadvisor.store.ranks.kernels import Kernels
from gpadvisor.store.ranks.summing import FAILED, RANKED
from gpadvisor.store.snapshot.parquet import MAX_ROWS

SLOTS: Final = 256
"""Profiles of a batch at most."""
_AT_ONCE: Final = 4  # profiles whose rows are in memory
_SMALL: Final = 1 << 27  # more samples than a profile has at a place here, so that squares fit into 64 bits
_STEP: Final = 8  # bytes of the smallest instruction
_NUMBERS: Final = 1 << 25  # of places, those included that nobody has
_PAIRS: Final = 1 << 22  # of profiles and launches, and of kernels and sections, likewise
_ROWS: Final = """
    SELECT slot, try_cast(launch AS UINTEGER) AS launch,
        coalesce(list_position(getvariable('sections'), section), 0)::UINTEGER AS section,
        try_cast(pc AS UINTEGER) AS pc, list_position(getvariable('reasons'), reason)::UINTEGER AS reason,
        try_cast(samples AS UINTEGER) AS samples, try_cast(latency_samples AS UINTEGER) AS latency
    FROM read_parquet(?::VARCHAR[], hive_partitioning = true, hive_types = {'slot': UINTEGER})"""

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

    kernel_of: NDArray[np.int64]  # by profile and launch; FAILED of failed launches, -1 of none
    sections: NDArray[np.int64]  # number of each section of a kernel, by both; -1 of other sections
    steps: int  # addresses of a section
    reasons: int

    def kernels(self, slot: int, launches: NDArray[Any]) -> NDArray[np.int64]:
        """The kernel of each row of a profile."""
        if launches.max() >= self.kernel_of.shape[1]:
            raise _Amiss
        kernels: NDArray[np.int64] = self.kernel_of[slot, launches]
        if (kernels < 0).any():
            raise _Amiss
        return kernels

    def places(self, kernels: NDArray[np.int64], rows: _Columns) -> NDArray[np.int64]:
        """The number of each row's place."""
        section, reason = self.sections[kernels, rows["section"]], rows["reason"] - np.int64(1)
        step = rows["pc"] // np.uint32(_STEP)
        if (section < 0).any() or (reason < 0).any() or (step >= self.steps).any():
            raise _Amiss
        if (rows["pc"] % np.uint32(_STEP)).any():
            raise _Amiss
        places: NDArray[np.int64] = (section * self.steps + step) * self.reasons + reason
        return places

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
        """Add what a profile has."""
        rows = self.rows(places)
        if len(rows) and np.bincount(rows).max() > 1:
            there = np.flatnonzero(np.bincount(rows))  # several launches of a kernel
            samples, latency = np.bincount(rows, samples)[there], np.bincount(rows, latency)[there]
            rows = there
        if samples.max(initial=0) >= _SMALL:
            raise _Amiss
        samples, sums = samples.astype(np.uint64), self.columns
        sums["ranks"][rows] += np.uint64(1)
        sums["samples"][rows] += samples
        sums["latency"][rows] += latency.astype(np.uint64)
        sums["squares"][rows] += samples * samples
        sums["least"][rows] = np.maximum(sums["least"][rows], _SMALL - samples)
        sums["most"][rows] = np.maximum(sums["most"][rows], samples * SLOTS + np.uint64(SLOTS - 1 - slot))


def grouped(connection: Any, files: Sequence[str], kernels: Kernels, order: Sequence[int]) -> bool:
    """Whether the samples of a batch could be added up so, as ``direct`` and ``direct_of``.

    They are not where anything is amiss: sums by profile tell what.

    Args:
        connection: has the launches with their kernels (``keyed``).
        files: the samples of each profile.
        kernels: those of the batch among them.
        order: the number of each profile, the lowest first.
    """
    try:
        numbering = _numbering(connection, kernels, order)
        sums = _Sums(np.zeros(_NUMBERS, np.int64))
        of = _added(_profiles(connection, files), numbering, sums, order)
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
    for slot, read in profiles:
        kernels = numbering.kernels(slot, read["launch"])
        there = kernels != FAILED
        rows = read if there.all() else {name: values[there] for name, values in read.items()}
        kernels = kernels[there]
        if (rows["latency"] > rows["samples"]).any():
            raise _Amiss
        sums.add(slot, numbering.places(kernels, rows), rows["samples"], rows["latency"])
        totals = np.bincount(kernels, rows["samples"])
        of += [(int(k), order[slot], int(totals[k])) for k in np.flatnonzero(np.bincount(kernels))]
        number += len(kernels)
    if sum(samples for *_, samples in of) > MAX_SAMPLES or number > MAX_ROWS:
        raise _Amiss
    return of


def _profiles(connection: Any, files: Sequence[str]) -> Iterator[tuple[int, _Columns]]:
    """The rows of each profile that has some, by its place among the files."""
    for first in range(0, len(files), _AT_ONCE):
        rows = connection.execute(_ROWS, [files[first : first + _AT_ONCE]]).fetchnumpy()
        if any(np.ma.is_masked(values) for values in rows.values()):
            raise _Amiss
        slots = rows.pop("slot")
        ends = np.flatnonzero(np.diff(slots)) + 1
        for start, end in zip((0, *ends), (*ends, len(slots)), strict=True):
            if end > start:
                yield int(slots[start]), {name: values[start:end] for name, values in rows.items()}
