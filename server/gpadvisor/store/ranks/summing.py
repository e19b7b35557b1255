# SPDX-License-Identifier: Apache-2.0
"""Sums over profiles in DuckDB: each table of a batch becomes one of a form that is closed under adding up.

The tables of that form, ``k`` being the number of a kernel:

- samples: by section, pc and reason the number of profiles that have it, sums, and over these profiles the
  fewest, the most, the sum of squares and whose the most is (the lowest profile of equals)
- launches: by configuration how many, their time, and the longest of them in full
- metrics: by name how many, sums with and without weights of time, and the longest launch's
- counts, pc_metrics: sums, as in a snapshot
- times: by profile how many launches, their time and samples
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gpadvisor.store.parts import MAX_SAMPLES
from gpadvisor.store.snapshot.tables import SCHEMAS

_REAL: Final = "BETWEEN -1e20 AND 1e20"
# What no run can have is not used, as when a profile is read (store/possible.py).
USED: Final[Mapping[tuple[str, str], str]] = {
    ("launches", "duration_ns"): "CASE WHEN duration_ns BETWEEN 0 AND 1e18 THEN duration_ns END",
    ("launches", "dropped_samples"): f"CASE WHEN dropped_samples <= {MAX_SAMPLES} THEN dropped_samples END",
    (
        "launches",
        "expected_samples",
    ): "CASE WHEN expected_samples BETWEEN 0 AND 1e20 THEN expected_samples END",
    ("metrics", "number"): f"CASE WHEN number {_REAL} THEN number END",
    ("pc_metrics", "value"): f"CASE WHEN value {_REAL} THEN value ELSE 0 END",
}

FORMS: Final = ("samples", "launches", "metrics", "counts", "pc_metrics", "times")
KEY: Final = ("binary", "kernel", "arch", "device", "evidence", "interval_cycles")
"""What launches are added up by: those of other devices or other sampling intervals mean something else."""
_CONFIGURATION: Final = (
    *(f"{name}_{axis}" for name in ("grid", "block", "cluster") for axis in "xyz"),
    "registers_per_thread",
    "static_shared_bytes",
    "dynamic_shared_bytes",
)
_SUMMED: Final = ("duration_ns", "dropped_samples", "expected_samples")
_TOLD: Final = ("launch", "failed", "counted", "truncated", "truncation_evidence", *_SUMMED, *KEY)
_LISTS: Final = ("sections", "reasons", "pc_metrics", "problems")
_LONGEST: Final = tuple(
    name for name in SCHEMAS["launches"] if name not in {*_CONFIGURATION, *_TOLD, *_LISTS}
)
RANKED: Final = "4294967295"
"""More than there are profiles, so that the lower of two has the larger rest."""
_ORDER: Final = "{'ns': longest_ns, 'rank': -longest_rank::BIGINT, 'launch': -longest_launch::BIGINT}"
_FIRST: Final = "place"  # of a launch among those of its batch, the longest last; of equals the first launch


def _picked(names: tuple[str, ...], order: str) -> str:
    """Columns of the longest launch; ``arg_max_null`` keeps what is absent there absent."""
    return ", ".join(f"arg_max_null({name}, {order}) AS {name}" for name in names)


_CONFIGURED: Final = ", ".join(_CONFIGURATION)

FAILED: Final = 4294967295
"""The number of no kernel: that of failed launches, which are left out."""
PLACES: Final = f"""
    SELECT run, f AS rank, launch AS number, coalesce(k, {FAILED}) AS k, coalesce(duration_ns, 0) AS ns,
        row_number() OVER (ORDER BY coalesce(duration_ns, 0), f DESC, launch DESC)::UINTEGER AS place
    FROM in_launches LEFT JOIN numbers USING (run)"""
"""The launches of a batch with the numbers of their kernels, by one number of their own (``run``)."""

GROUPED: Final[Mapping[str, str]] = {
    "samples": """
        SELECT k, f, section, pc, reason, try_cast(sum(samples) AS UBIGINT) AS s,
            try_cast(sum(latency_samples) AS UBIGINT) AS l, count(*)::UINTEGER AS number,
            bool_or(coalesce(latency_samples > samples, true)) AS odd
        FROM in_samples LEFT JOIN keyed USING (run) GROUP BY ALL""",
    "counts": """
        SELECT k, section, pc, try_cast(sum(warps) AS UBIGINT) AS warps,
            try_cast(sum(threads) AS UBIGINT) AS threads, count(*)::UINTEGER AS number
        FROM in_counts LEFT JOIN keyed USING (run) GROUP BY ALL""",
    "pc_metrics": """
        SELECT k, metric, section, pc, sum(value) AS total, max(value) AS most, count(*)::UINTEGER AS number
        FROM in_pc_metrics LEFT JOIN keyed USING (run) GROUP BY ALL""",
    "metrics": f"""
        SELECT k, name, count(in_metrics.number)::UBIGINT AS found, sum(in_metrics.number) AS total,
            sum(in_metrics.number * ns) AS weighted,
            sum(ns) FILTER (in_metrics.number IS NOT NULL) AS weight,
            bool_and(kind = 'integer') AS whole, max(ns) AS longest_ns, max({_FIRST}) AS {_FIRST}
        FROM in_metrics LEFT JOIN keyed USING (run) GROUP BY k, name""",
}
"""The large tables of a batch, each read once, as ``grouped_...``; of launches that are not there ``k`` is
absent."""

SAMPLES_OF: Final = "SELECT k, f, sum(s) AS samples FROM grouped_samples GROUP BY ALL"
"""How many samples each kernel has on each profile of a batch, as ``samples_of``."""

STAGES: Final[Mapping[str, str]] = {
    "samples": f"""
        SELECT k, section, pc, reason, count(*)::UINTEGER AS ranks, sum(s)::UBIGINT AS samples,
            sum(l)::UBIGINT AS latency_samples, min(s) AS least,
            max(s::HUGEINT * 4294967296 + ({RANKED} - f)) AS most,
            sum(s::HUGEINT * s::HUGEINT)::DECIMAL(38, 0) AS squares
        FROM grouped_samples GROUP BY ALL""",
    "launches": f"""
        SELECT k, {_CONFIGURED}, count(*)::UBIGINT AS launches, sum(duration_ns) AS time_ns,
            count(duration_ns)::UBIGINT AS timed, count(*) FILTER (counted)::UBIGINT AS counted,
            max(coalesce(duration_ns, 0)) AS longest_ns, arg_max(rank, {_FIRST})::UINTEGER AS longest_rank,
            arg_max(keyed.number, {_FIRST})::UBIGINT AS longest_launch,
            sum(dropped_samples)::UBIGINT AS dropped_samples, count(dropped_samples)::UBIGINT AS drops_known,
            sum(expected_samples) AS expected_samples, count(expected_samples)::UBIGINT AS expected_known,
            bool_or(truncated) AS truncated, min(truncation_evidence) AS truncation_evidence,
            {_picked(_LONGEST, _FIRST)}
        FROM in_launches JOIN keyed USING (run) GROUP BY k, {_CONFIGURED}""",
    # What only the longest launch has is looked up for the few that are the longest of some kernel.
    "metrics": f"""
        SELECT grouped_metrics.k, name, found, total, weighted, weight, whole, kind, longest.number, text,
            longest_ns, rank::UINTEGER AS longest_rank, keyed.number::UBIGINT AS longest_launch
        FROM grouped_metrics JOIN keyed USING ({_FIRST})
            JOIN (SELECT run, name, min(kind) AS kind, min(number) AS number, min(text) AS text
                FROM in_metrics WHERE run IN (SELECT run FROM keyed JOIN grouped_metrics USING ({_FIRST}))
                GROUP BY ALL) longest USING (run, name)""",
    "counts": "SELECT k, section, pc, warps, threads FROM grouped_counts",
    "pc_metrics": """
        SELECT k, metric, section, pc, CASE WHEN adds THEN total ELSE most END AS value
        FROM grouped_pc_metrics JOIN adding USING (metric)""",
    "times": f"""
        SELECT k, f AS rank, launches, time_ns, coalesce(samples, 0)::UBIGINT AS samples
        FROM (SELECT k, f, sum(greatest(coalesce(runs, 1), 1))::UBIGINT AS launches,
                sum(duration_ns) AS time_ns
            FROM in_launches JOIN keyed USING (run)
                LEFT JOIN (SELECT run, least(max(number), {RANKED}) AS runs FROM in_metrics
                    WHERE name = 'gpadvisor__launches' GROUP BY ALL) USING (run)
            GROUP BY ALL)
            LEFT JOIN samples_of USING (k, f)""",
}
"""A batch of snapshots, its tables as ``in_...`` with profile ``f`` and launch ``run``, in that form."""

MERGED: Final[Mapping[str, str]] = {
    "samples": """
        SELECT k, section, pc, reason, sum(ranks)::UINTEGER AS ranks, sum(samples)::UBIGINT AS samples,
            sum(latency_samples)::UBIGINT AS latency_samples, min(least) AS least, max(most) AS most,
            sum(squares)::DECIMAL(38, 0) AS squares
        FROM {rows} GROUP BY ALL""",
    "launches": f"""
        SELECT k, {_CONFIGURED}, sum(launches)::UBIGINT AS launches, sum(time_ns) AS time_ns,
            sum(timed)::UBIGINT AS timed, sum(counted)::UBIGINT AS counted,
            max(longest_ns) AS longest_ns, arg_max(longest_rank, {_ORDER}) AS longest_rank,
            arg_max(longest_launch, {_ORDER}) AS longest_launch,
            sum(dropped_samples)::UBIGINT AS dropped_samples, sum(drops_known)::UBIGINT AS drops_known,
            sum(expected_samples) AS expected_samples, sum(expected_known)::UBIGINT AS expected_known,
            bool_or(truncated) AS truncated, min(truncation_evidence) AS truncation_evidence,
            {_picked(_LONGEST, _ORDER)}
        FROM {{rows}} GROUP BY k, {_CONFIGURED}""",
    "metrics": f"""
        SELECT k, name, sum(found)::UBIGINT AS found, sum(total) AS total, sum(weighted) AS weighted,
            sum(weight) AS weight, bool_and(whole) AS whole, arg_max_null(kind, {_ORDER}) AS kind,
            arg_max_null(number, {_ORDER}) AS number, arg_max_null(text, {_ORDER}) AS text,
            max(longest_ns) AS longest_ns, arg_max(longest_rank, {_ORDER}) AS longest_rank,
            arg_max(longest_launch, {_ORDER}) AS longest_launch
        FROM {{rows}} GROUP BY k, name""",
    "counts": """
        SELECT k, section, pc, sum(warps)::UBIGINT AS warps, sum(threads)::UBIGINT AS threads
        FROM {rows} GROUP BY ALL""",
    "pc_metrics": """
        SELECT k, metric, section, pc,
            CASE WHEN any_value(adds) THEN sum(value) ELSE max(value) END AS value
        FROM {rows} JOIN adding USING (metric) GROUP BY k, metric, section, pc""",
}
"""Rows of that form, added up; those of ``times`` are of one profile each and only put beside each other."""

KEPT: Final[Mapping[str, str]] = {
    "samples": f"""
        SELECT k, section, pc, reason, ranks, samples, latency_samples, least,
            (most // 4294967296)::UBIGINT AS most, ({RANKED} - most % 4294967296)::UINTEGER AS worst, squares
        FROM sum_samples ORDER BY k, section, pc, reason""",
    "launches": f"SELECT * FROM sum_launches ORDER BY k, {_CONFIGURED}",
    "metrics": "SELECT * FROM sum_metrics ORDER BY k, name",
    "times": "SELECT * FROM sum_times ORDER BY k, rank",
}
"""What merging needs, as it is kept in the snapshot that sums up others."""

TAKEN: Final[Mapping[str, str]] = {
    "samples": f"""
        SELECT numbered.k, section, pc, reason, ranks, samples, latency_samples, least,
            most::HUGEINT * 4294967296 + ({RANKED} - moved.now) AS most, squares
        FROM kept_samples kept JOIN numbered ON kept.k = numbered.was JOIN moved ON kept.worst = moved.was""",
    "launches": """
        SELECT kept.* REPLACE (numbered.k AS k, moved.now AS longest_rank)
        FROM kept_launches kept JOIN numbered ON kept.k = numbered.was
            JOIN moved ON kept.longest_rank = moved.was""",
    "metrics": """
        SELECT kept.* REPLACE (numbered.k AS k, moved.now AS longest_rank)
        FROM kept_metrics kept JOIN numbered ON kept.k = numbered.was
            JOIN moved ON kept.longest_rank = moved.was""",
    "counts": """
        SELECT numbered.k, section, pc, warps, threads
        FROM kept_counts kept JOIN numbered ON kept.launch = numbered.was""",
    "pc_metrics": """
        SELECT numbered.k, metric, section, pc, value
        FROM kept_pc_metrics kept JOIN numbered ON kept.launch = numbered.was""",
    "times": """
        SELECT kept.* REPLACE (numbered.k AS k, moved.now AS rank)
        FROM kept_times kept JOIN numbered ON kept.k = numbered.was JOIN moved ON kept.rank = moved.was""",
}
"""The same read back, with the kernels and profiles numbered as among all."""


CELLS: Final = """
    CREATE TABLE cells (k UINTEGER, section VARCHAR, pc UBIGINT, reason VARCHAR, rank UINTEGER,
        samples UBIGINT, latency_samples UBIGINT)"""
"""What each profile has at each place: the sparse form of the samples by context, where it is asked for."""

CELLS_ADDED: Final = "INSERT INTO cells SELECT k, section, pc, reason, f, s, l FROM grouped_samples"
CELLS_TAKEN: Final = """
    INSERT INTO cells SELECT numbered.k, section, pc, reason, moved.now, samples, latency_samples
        FROM read_parquet({file}) kept
        JOIN numbered ON kept.k = numbered.was JOIN moved ON kept.rank = moved.was"""
CELLS_KEPT: Final = """
    SELECT now AS k, section, pc, reason, rank, samples, latency_samples FROM cells JOIN ordered USING (k)
        ORDER BY ALL"""


def add(connection: Any, name: str, stage: str) -> None:
    """Add what a query gives to one of the sums."""
    if name not in MERGED:
        connection.execute(f"INSERT INTO sum_{name} BY NAME {stage}")
        return
    merged = MERGED[name].replace("{rows}", f"(SELECT * FROM sum_{name} UNION ALL BY NAME {stage})")
    connection.execute(f"CREATE OR REPLACE TABLE next_{name} AS {merged}")
    connection.execute(f"DROP TABLE sum_{name}")
    connection.execute(f"ALTER TABLE next_{name} RENAME TO sum_{name}")


def begin(connection: Any, name: str, stage: str) -> None:
    """The first of the sums."""
    connection.execute(f"CREATE TABLE sum_{name} AS {stage}")
