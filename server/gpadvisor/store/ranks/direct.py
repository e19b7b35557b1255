# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch by place at once, where no profile has a place twice: without sums by profile before.

Those have as many rows as the profiles together, these as many as there are places.
"""

from __future__ import annotations

from typing import Any, Final

from gpadvisor.store.parts import MAX_SAMPLES
from gpadvisor.store.ranks.summing import FAILED, RANKED
from gpadvisor.store.snapshot.parquet import MAX_ROWS

SLOTS: Final = 64
"""Profiles of a batch at most: each is a bit."""
_SMALL: Final = 1 << 28  # more samples than a place has here, so that their squares are added up in 64 bits
_TWICE: Final = f"SELECT 1 FROM keyed WHERE k <> {FAILED} GROUP BY k, rank HAVING count(*) > 1 LIMIT 1"
_BY_RUN: Final = "SELECT run, sum(samples) AS samples, count(*) AS number FROM in_samples GROUP BY run"
_FITS: Final = f"""
    SELECT coalesce(count(*) = count(k) AND sum(samples) <= {MAX_SAMPLES}
        AND sum(by_run.number) <= {MAX_ROWS}, true)
    FROM by_run LEFT JOIN keyed USING (run)"""
# Rows that are amiss are left out, and missed by `_ALL`.
_GROUPED: Final = f"""
    SELECT k, section, pc, reason, sum(samples) AS s, sum(latency_samples) AS l, min(samples) AS least,
        max(samples * {SLOTS} + ({SLOTS - 1} - slot)) AS most, sum(samples * samples) AS squares,
        bit_count(bit_or(1::UBIGINT << slot))::UINTEGER AS ranks
    FROM in_samples JOIN keyed USING (run)
    WHERE latency_samples <= samples AND samples < {_SMALL} GROUP BY ALL"""
# A place that a profile has twice is one bit for two rows.
_ALL: Final = """
    SELECT (SELECT coalesce(sum(ranks), 0) FROM direct) = (SELECT coalesce(sum(number), 0) FROM by_run)
        AND (SELECT count(*) = 0 FROM direct WHERE pc IS NULL OR reason IS NULL)"""
SAMPLES_OF: Final = "SELECT k, rank AS f, samples::UBIGINT AS samples FROM by_run JOIN keyed USING (run)"
"""As that of ``summing``."""


def grouped(connection: Any) -> bool:
    """Whether the samples of a batch could be grouped so, as ``direct``.

    They are not where a profile has several launches of a kernel, nor where anything is amiss: sums by
    profile tell what.
    """
    if connection.execute(_TWICE).fetchone() is not None:
        return False
    connection.execute(f"CREATE OR REPLACE TEMP TABLE by_run AS {_BY_RUN}")
    if connection.execute(_FITS).fetchone() != (True,):
        return False
    connection.execute(f"CREATE OR REPLACE TEMP TABLE direct AS {_GROUPED}")
    return bool(connection.execute(_ALL).fetchone() == (True,))


def stage(order: list[int]) -> str:
    """The samples in the form of ``summing``; ``order`` has the number of each profile, the lowest first."""
    return f"""
    SELECT k, section, pc, reason, ranks, s::UBIGINT AS samples, l::UBIGINT AS latency_samples, least,
        (most // {SLOTS})::HUGEINT * 4294967296
            + ({RANKED} - list_extract({order}::UINTEGER[], {SLOTS} - (most % {SLOTS})::BIGINT)) AS most,
        squares::DECIMAL(38, 0) AS squares
    FROM direct WHERE k <> {FAILED}"""
