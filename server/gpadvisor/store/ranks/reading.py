# SPDX-License-Identifier: Apache-2.0
"""Snapshots into sums: the tables of many at once, and one by one where some are bad."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import open_file
from gpadvisor.model.profile import adds_up
from gpadvisor.store.formats import ProfileKind, kind_of
from gpadvisor.store.parts import MAX_EXECUTED, MAX_SAMPLES, JsonObject
from gpadvisor.store.ranks import direct
from gpadvisor.store.ranks.blobs import KINDS, new_blobs
from gpadvisor.store.ranks.kernels import Kernels
from gpadvisor.store.ranks.manifests import Told, check_manifest
from gpadvisor.store.ranks.members import Member, member
from gpadvisor.store.ranks.rank_file import OTHERS, TABLES, RankFile, samples, unpack
from gpadvisor.store.ranks.summing import (
    CELLS,
    CELLS_ADDED,
    CELLS_TAKEN,
    FAILED,
    FORMS,
    GROUPED,
    KEPT,
    PLACES,
    SAMPLES_OF,
    STAGES,
    TAKEN,
    USED,
    add,
    begin,
)
from gpadvisor.store.snapshot import ACROSS, CELLS_TABLE, opened
from gpadvisor.store.snapshot.parquet import MAX_ROWS, connect
from gpadvisor.store.snapshot.stored import stored_places
from gpadvisor.store.snapshot.tables import SCHEMAS

_BATCH: Final = direct.SLOTS
_BATCH_BYTES: Final = 64 << 20
# Of a whole batch; where it is too much for one profile, its files are tried one by one.
_CHECKS: Final[Mapping[str, str]] = {
    "samples that are no samples": "FROM grouped_samples WHERE odd OR pc IS NULL OR reason IS NULL",
    "more samples than a run can have": "FROM grouped_samples HAVING bool_or(s IS NULL OR l IS NULL)"
    f" OR sum(s::DOUBLE) > {MAX_SAMPLES} OR sum(number) > {MAX_ROWS}",
    "more executions than a run can have": "FROM grouped_counts HAVING"
    f" bool_or(warps IS NULL OR threads IS NULL) OR sum(warps::DOUBLE) > {MAX_EXECUTED}"
    f" OR sum(threads::DOUBLE) > {MAX_EXECUTED} OR sum(number) > {MAX_ROWS}",
    **{
        f"{table} of launches that are not there": f"FROM grouped_{table} WHERE k IS NULL"
        for table in GROUPED
    },
}
# Launches are numbered from 0 without a gap.
_NUMBERED: Final = (
    "SELECT f FROM in_launches GROUP BY f HAVING count(DISTINCT launch) < count(*)"
    " OR max(launch) >= count(*) OR count(launch) < count(*)"
)


@dataclass(slots=True)
class Reading:
    """What was read so far; the tables are in the engine."""

    connection: Any
    folder: Path
    order: Mapping[Member, int]
    cells: bool  # whether what each profile has at each place is kept
    told: Told  # by all manifests
    kernels: Kernels = field(default_factory=Kernels)
    bad: dict[str, str] = field(default_factory=dict)  # why, by path
    blobs: dict[tuple[str, str], Path] = field(default_factory=dict)  # by kind and digest


@contextmanager
def engine(folder: Path, memory_bytes: int) -> Iterator[Any]:
    """DuckDB in as much memory; what does not fit goes to the folder, and nothing to the network."""
    # Files are written over.
    opened_engine = connect(memory_bytes, enable_external_file_cache=False, temp_directory=str(folder))
    with closing(opened_engine) as connection:
        connection.execute("CREATE TABLE adding (metric VARCHAR, adds BOOLEAN)")
        connection.execute(CELLS)
        yield connection


def look(path: Path, name: str, connection: Any, folder: Path, told: Told) -> RankFile:
    """What a file holds; what its manifest says is noted in ``told``.

    Raises:
        ProfileFormatError: it is no snapshot, or a damaged one.
        OSError: it cannot be read.
    """
    with open_file(path) as stream:
        if kind_of(stream.read(64)) is not ProfileKind.SNAPSHOT:
            raise ProfileFormatError("it is no snapshot")
        with opened(stream, path.stat().st_size) as (archive, manifest):
            result = manifest.get("across")
            missing = [table for table in SCHEMAS if f"{table}.parquet" not in archive.namelist()]
            missing += [table for table in ACROSS if result and f"{table}.parquet" not in archive.namelist()]
            if missing:
                raise ProfileFormatError(f"it lacks {missing[0]}.parquet")
            check_manifest(manifest, archive.namelist())
            told.note(manifest)
            blobs = tuple(one for one in archive.namelist() if one.partition("/")[0] in KINDS)
            about: Any = {
                "path": str(path),
                "name": name,
                "blobs": told.once(blobs),
                "kept": result or None,
                "places": stored_places(archive, [f"{table}.parquet" for table in TABLES]),
            }
            if not result:
                head = manifest["profile"]
                return RankFile(members=(member(name, told.once(head["host"]), head.get("rank")),), **about)
            table = folder / "across_ranks.parquet"
            table.write_bytes(archive.read(table.name))
    rows = connection.execute(
        f"SELECT rank::INTEGER, name::VARCHAR, node::VARCHAR FROM read_parquet('{table}') ORDER BY member"
    ).fetchall()
    return RankFile(members=tuple(Member(*row) for row in rows), **about)


def read_all(reading: Reading, sources: Sequence[RankFile]) -> None:
    """Add all of them; those that cannot be are in ``bad`` with why."""
    for batch in _batches(reading, [source for source in sources if source.kept is None]):
        if not _tried(reading, batch):
            for file in batch:
                _tried(reading, [file])
    for file in sources:
        if file.kept is not None:
            _tried(reading, [file])


def _batches(reading: Reading, sources: Sequence[RankFile]) -> Iterator[list[RankFile]]:
    batch: list[RankFile] = []
    size = 0
    for file in sorted(sources, key=lambda source: reading.order[source.members[0]]):
        batch.append(file)
        size += Path(file.path).stat().st_size
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _tried(reading: Reading, batch: list[RankFile]) -> bool:
    """Whether they could be added; of one alone that could not, why is noted."""
    connection = reading.connection
    connection.execute("BEGIN")
    kernels = reading.kernels.copy()
    try:
        (_add_raw if batch[0].kept is None else _add_kept)(reading, kernels, batch)
        blobs = new_blobs(((Path(file.path), file.blobs) for file in batch), reading.blobs, reading.folder)
        connection.execute("COMMIT")
    except duckdb.OutOfMemoryException:
        raise
    except (duckdb.Error, ProfileFormatError, OSError, ValueError, KeyError, TypeError) as error:
        connection.execute("ROLLBACK")
        if len(batch) == 1:
            reading.bad[batch[0].name] = why(error)
        return False
    reading.kernels = kernels
    reading.blobs |= blobs
    return True


def why(error: Exception) -> str:
    """Why a file cannot be added, in words without its name."""
    if isinstance(error, ProfileFormatError):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, duckdb.Error):
        return "its tables are damaged or none of a snapshot; import the report again"
    return f"its rows do not fit together ({error}); import the report again"


def _add_raw(reading: Reading, kernels: Kernels, batch: Sequence[RankFile]) -> None:
    connection, place = reading.connection, reading.folder / "batch"
    folders = [place / f"slot={slot}" for slot in range(len(batch))]
    for rank_file, folder in zip(batch, folders, strict=True):
        unpack(rank_file, OTHERS, folder)
    order = [reading.order[rank_file.members[0]] for rank_file in batch]
    most = _launches(connection, [folder / "launches.parquet" for folder in folders], order)
    _number(connection, kernels)
    at_once = not reading.cells and direct.grouped(connection, samples(batch, place), kernels, order)
    if not at_once:
        for rank_file, folder in zip(batch, folders, strict=True):
            unpack(rank_file, ("samples",), folder)
    stages = {**STAGES, "samples": direct.STAGE} if at_once else STAGES
    run = f"slot, CASE WHEN launch < {most} THEN slot * {most} + launch::UBIGINT END AS run"
    for table, query in GROUPED.items():
        added = at_once and table == "samples"  # only the columns are asked for
        files = [folder / f"{table}.parquet" for folder in (folders[:1] if added else folders)]
        rows = _rows(table, files, order, run)
        connection.execute(f"CREATE OR REPLACE TEMP VIEW in_{table} AS {rows}")
        none = " LIMIT 0" if added else ""
        connection.execute(f"CREATE OR REPLACE TEMP TABLE grouped_{table} AS {query}{none}")
    for text, query in _CHECKS.items():
        if connection.execute(f"SELECT 1 {query} LIMIT 1").fetchone() is not None:
            raise ProfileFormatError(f"it has {text}")
    for table in ("keyed", *(f"grouped_{table}" for table in GROUPED)):
        connection.execute(f"DELETE FROM {table} WHERE k = {FAILED}")
    if reading.cells:
        connection.execute(CELLS_ADDED)
    _note_metrics(connection, "grouped_pc_metrics")
    samples_of = direct.SAMPLES_OF if at_once else SAMPLES_OF
    connection.execute(f"CREATE OR REPLACE TEMP VIEW samples_of AS {samples_of}")
    for name in FORMS:
        _put(connection, name, stages[name])
    _check_names(connection, kernels)


def _launches(connection: Any, files: Sequence[Path], order: Sequence[int]) -> int:
    """The launches of all files; return how many a file has at most."""
    rows = _rows("launches", files, order)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE in_launches AS {rows}")
    if connection.execute(_NUMBERED).fetchone() is not None:
        raise ProfileFormatError("it has launches that are not numbered from 0")
    (most,) = connection.execute("SELECT coalesce(max(launch), 0)::BIGINT + 1 FROM in_launches").fetchone()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE in_launches AS"
        f" SELECT *, slot * {most} + launch AS run FROM in_launches"
    )
    return int(most)


def _rows(table: str, files: Sequence[Path], order: Sequence[int], more: str = "slot") -> str:
    """A query of the rows of all files, ``f`` being the number of each among all profiles.

    Files of the next batch are written over these: DuckDB remembers something of each path.
    """
    columns = ", ".join(
        f"CAST({USED.get((table, name)) or _column(name)} AS {sql_type}) AS {_column(name)}"
        for name, sql_type in SCHEMAS[table].items()
    )
    listed = ", ".join(map(_literal, files))
    return (
        f"SELECT list_extract({list(order)}::UINTEGER[], slot + 1) AS f, {more}, {columns}"
        f" FROM read_parquet([{listed}], hive_partitioning = true, hive_types = {{'slot': UINTEGER}})"
    )


def _column(name: str) -> str:
    return f'"{name}"'


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _put(connection: Any, name: str, stage: str) -> None:
    there = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE table_name = ?", [f"sum_{name}"]
    ).fetchone()
    (begin if there is None else add)(connection, name, stage)


def _number(connection: Any, kernels: Kernels) -> None:
    """The kernels of the launches by number, as ``keyed``; failed launches are left out and counted."""
    connection.execute("CREATE OR REPLACE TEMP TABLE numbers (run UBIGINT, k UINTEGER)")
    rows = connection.execute(
        'SELECT "binary", kernel, arch, device, evidence, interval_cycles, demangled, sections, reasons,'
        " pc_metrics, problems, failed, list(run) FROM in_launches GROUP BY ALL"
        " ORDER BY ALL"
    ).fetchall()
    found = []
    for *key, demangled, sections, reasons, metrics, problems, failed, launches in rows:
        if failed:
            kernels.failed += len(launches)
            continue
        number = kernels.number(tuple(key), demangled)
        kernels.note(
            number,
            json.loads(sections),
            json.loads(reasons),
            {name: len(launches) for name in json.loads(metrics)},
            [(load["code"], load["message"], len(launches)) for load in json.loads(problems)],
        )
        found += [(launch, number) for launch in launches]
    if found:
        columns = np.array(found, np.uint64)
        connection.register("found", {name: columns[:, index] for index, name in enumerate(("run", "k"))})
        connection.execute("INSERT INTO numbers SELECT run, k FROM found")
        connection.unregister("found")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE keyed AS {PLACES}")


def _check_names(connection: Any, kernels: Kernels) -> None:
    """ProfileFormatError where rows have a section or a reason that no launch of their kernel lists."""
    for table, column in (("samples", "reason"), ("samples", "section"), ("counts", "section")):
        named = connection.execute(
            f"SELECT DISTINCT k, {column} FROM sum_{table} WHERE {column} IS NOT NULL"
        ).fetchall()
        if any(name not in kernels.vocabulary(k, column) for k, name in named):
            raise ProfileFormatError(f"it has {table} of a {column} that its launch does not list")


def _note_metrics(connection: Any, table: str) -> None:
    """Which metrics of instructions are counts."""
    names = connection.execute(
        f"SELECT DISTINCT metric FROM {table} WHERE metric NOT IN (SELECT metric FROM adding)"
    ).fetchall()
    connection.executemany(
        "INSERT INTO adding VALUES (?, ?)", [(name, adds_up(name)) for (name,) in names] or [(None, False)]
    )


def _add_kept(reading: Reading, kernels: Kernels, batch: Sequence[RankFile]) -> None:
    (source,) = batch
    connection, place = reading.connection, reading.folder / "kept"
    assert source.kept is not None  # noqa: S101 of the batch
    tables = ("launches", "counts", "pc_metrics", *sorted(ACROSS), *([CELLS_TABLE] if reading.cells else []))
    unpack(source, tables, place)
    for name in FORMS:
        file = place / f"{f'across_{name}' if name in KEPT else name}.parquet"
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW kept_{name} AS SELECT * FROM read_parquet({_literal(file)})"
        )
    numbers = _numbers(connection, kernels, source.kept, place / "launches.parquet")
    _table(connection, "numbered", "k", numbers)
    _table(
        connection, "moved", "now", {index: reading.order[one] for index, one in enumerate(source.members)}
    )
    if reading.cells:
        connection.execute(CELLS_TAKEN.format(file=_literal(place / f"{CELLS_TABLE}.parquet")))
    _note_metrics(connection, "kept_pc_metrics")
    for name in FORMS:
        _put(connection, name, TAKEN[name])
    _check_names(connection, kernels)


def _numbers(connection: Any, kernels: Kernels, kept: JsonObject, launches: Path) -> dict[int, int]:
    rows = connection.execute(
        'SELECT launch, "binary", kernel, arch, device, evidence, interval_cycles, demangled,'
        f" sections, reasons FROM read_parquet({_literal(launches)}) ORDER BY launch"
    ).fetchall()
    numbers: dict[int, int] = {}
    kernels.failed += int(kept["failed"])
    for (launch, *key, demangled, sections, reasons), told in zip(rows, kept["kernels"], strict=True):
        numbers[launch] = number = kernels.number(tuple(key), demangled)
        problems = [(code, str(message), int(count)) for code, message, count in told["problems"]]
        metrics = {str(name): int(count) for name, count in told["pc_metrics"].items()}
        kernels.note(number, json.loads(sections), json.loads(reasons), metrics, problems)
    return numbers


def _table(connection: Any, table: str, column: str, values: Mapping[int, int]) -> None:
    connection.register(
        "values_in", {"was": np.array([*values], np.uint32), column: np.array([*values.values()], np.uint32)}
    )
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM values_in")
    connection.unregister("values_in")
