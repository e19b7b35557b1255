# SPDX-License-Identifier: Apache-2.0
"""The SQLite export of Nsight Systems as a timeline, opened read-only."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.timeline import DeviceWork, HostCalls, Timeline

MAX_ROWS: Final = 20_000_000
_WORK: Final = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
_CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
_VERSION: Final = re.compile(r"_(?:v\d+|ptsz|ptds)(?=_|$)")
_LONGEST: Final = 1 << 62
_EXPORT: Final = "export it again: nsys export --type sqlite REPORT"


def read_nsys(path: Path) -> Timeline:
    """Read an export.

    Raises:
        ProfileFormatError: it is none, damaged, or without work of a GPU or calls of CUDA.
    """
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            return _timeline(database)
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        raise ProfileFormatError(
            f"{path} cannot be read as an export of Nsight Systems ({error}); {_EXPORT}"
        ) from error


def _timeline(database: sqlite3.Connection) -> Timeline:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    work = [
        _columns(database, f'SELECT start, "end", deviceId, correlationId FROM {table}', 4)
        for table in _WORK
        if table in tables
    ]
    if not work or not sum(len(rows) for rows in work):
        raise ValueError("it has no kernel, copy or memset: trace with nsys profile --trace cuda")
    if _CALLS not in tables:
        raise ValueError("it has no calls of CUDA: trace with nsys profile --trace cuda")
    calls = _columns(database, f'SELECT start, "end", globalTid, correlationId, nameId FROM {_CALLS}', 5)
    rows = np.concatenate(work)
    for what in (rows, calls):
        if len(what) and (bool((what[:, 1] < what[:, 0]).any()) or int(what[:, 0].min()) < 0):
            raise ValueError("something in it ends before it begins")
    identifiers, index = np.unique(calls[:, 4], return_inverse=True)
    texts = dict(database.execute("SELECT id, value FROM StringIds"))
    names = [_VERSION.sub("", str(texts.get(int(one), f"call {one}"))) for one in identifiers]
    return Timeline(
        work=DeviceWork(start_ns=rows[:, 0], end_ns=rows[:, 1], device=rows[:, 2], correlation=rows[:, 3]),
        calls=HostCalls(
            start_ns=calls[:, 0],
            end_ns=calls[:, 1],
            thread=calls[:, 2],
            correlation=calls[:, 3],
            name=index.astype(np.int64),
        ),
        names=tuple(names),
    )


def _columns(database: sqlite3.Connection, query: str, width: int) -> NDArray[np.int64]:
    flat = itertools.chain.from_iterable(_whole(database.execute(query)))
    return np.fromiter(flat, np.int64).reshape(-1, width)


def _whole(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, ...]]:
    """Rows of whole numbers; what is absent is -1."""
    for number, row in enumerate(rows):
        if number >= MAX_ROWS:
            raise ValueError(f"it has more than {MAX_ROWS:,} rows; trace a part of the run")
        values = tuple(-1 if value is None else value for value in row)
        if not all(isinstance(value, int) and value < _LONGEST for value in values):
            raise ValueError(f"a row has {row!r} where whole numbers are")
        yield values
