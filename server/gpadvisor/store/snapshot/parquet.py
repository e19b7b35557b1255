# SPDX-License-Identifier: Apache-2.0
"""Columns to Parquet bytes and back, through duckdb, a native parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import ProfileFormatError
from gpadvisor.files import scratch_folder

Schema = Mapping[str, str]  # column -> SQL type: UBIGINT, DOUBLE, VARCHAR, BOOLEAN, and smaller unsigned ones
MAX_ROWS: Final = 100_000_000
_MEMORY_BYTES: Final = 2 << 30
_NUMPY: Final[Mapping[str, type[np.generic]]] = {
    "UTINYINT": np.uint8,
    "USMALLINT": np.uint16,
    "UINTEGER": np.uint32,
    "UBIGINT": np.uint64,
    "DOUBLE": np.float64,
    "BOOLEAN": np.bool_,
}


@contextmanager
def session() -> Iterator[ParquetSession]:
    """An engine and a folder for its files; opening one takes longer than reading a small table."""
    with scratch_folder() as folder, closing(connect(_MEMORY_BYTES)) as connection:
        yield ParquetSession(connection, folder)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C as what it is: duckdb makes an error of its own of it."""
    import duckdb  # noqa: PLC0415 a heavy import that reading a report does not need

    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        text = str(error).rstrip(": \n")
        if text == "Query interrupted" or text.endswith(KeyboardInterrupt.__name__):
            raise KeyboardInterrupt from error
        raise


@dataclass(frozen=True, slots=True)
class ParquetSession:
    """A database in memory, and the folder of the files through which it takes and gives Parquet."""

    connection: Any  # duckdb has no types
    folder: Path

    def path(self, name: str) -> Path:
        """A file of its own for each table, since duckdb may remember what a path held."""
        return self.folder / f"{name}.parquet"


def connect(memory_bytes: int, **settings: str | bool) -> Any:
    """A database in memory, in one thread.

    So row groups come out in one order, and a process whose address space is bounded has room for it on any
    machine: else there are four threads for each processor to read files, and duckdb crashes where it cannot
    start them. No extension is ever looked for on the network.
    """
    import duckdb  # noqa: PLC0415 a heavy import that reading a report does not need

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "async_threads": 0,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "memory_limit": f"{memory_bytes >> 20}MB",
        **settings,
    }
    return duckdb.connect(":memory:", config=config)


def column(values: list[Any], sql_type: str) -> NDArray[Any]:
    """A column from Python values, None where absent."""
    if sql_type == "VARCHAR":
        texts = np.empty(len(values), object)
        texts[:] = values
        return texts
    mask = [value is None for value in values]
    filled = [0 if absent else value for value, absent in zip(values, mask, strict=True)]
    result: NDArray[Any] = np.ma.masked_array(np.array(filled, _NUMPY[sql_type]), mask=mask)
    return result


def encode(engine: ParquetSession, name: str, columns: Mapping[str, NDArray[Any]], schema: Schema) -> bytes:
    """One Parquet file; the same columns and versions give the same bytes."""
    path = engine.path(name)
    rows = len(next(iter(columns.values())))
    listed = ", ".join(_cast(item, sql_type, empty=not rows) for item, sql_type in schema.items())
    origin = "FROM rows_in" if rows else "WHERE false"
    with _interruptible():
        if rows:
            engine.connection.register("rows_in", {column: columns[column] for column in schema})
        engine.connection.execute(
            f"COPY (SELECT {listed} {origin}) TO '{_quoted(path)}'"
            " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 15)"
        )
    if rows:
        engine.connection.unregister("rows_in")
    return path.read_bytes()


def _cast(name: str, sql_type: str, *, empty: bool) -> str:
    return f"CAST({'NULL' if empty else _identifier(name)} AS {sql_type}) AS {_identifier(name)}"


def _identifier(name: str) -> str:
    return f'"{name}"'


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def decode(engine: ParquetSession, name: str, data: bytes, schema: Schema) -> dict[str, NDArray[Any]]:
    """The columns of a schema; masked arrays where values are absent."""
    import duckdb  # noqa: PLC0415 a heavy import that reading a report does not need

    path = engine.path(name)
    path.write_bytes(data)
    origin = f"FROM read_parquet('{_quoted(path)}')"
    try:
        with _interruptible():
            (rows,) = engine.connection.execute(f"SELECT count(*) {origin}").fetchone()
            if rows > MAX_ROWS:
                raise ProfileFormatError(
                    f"the snapshot's {path.name} claims {rows} rows, more than {MAX_ROWS}"
                )
            listed = ", ".join(_cast(item, sql_type, empty=False) for item, sql_type in schema.items())
            result: dict[str, NDArray[Any]] = engine.connection.execute(
                f"SELECT {listed} {origin}"
            ).fetchnumpy()
    except duckdb.Error as error:
        raise ProfileFormatError(
            f"the snapshot's {path.name} is damaged or no Parquet of a snapshot; import the report again"
        ) from error
    return result
