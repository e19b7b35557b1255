# SPDX-License-Identifier: Apache-2.0
"""The SQLite export of Nsight Systems as a timeline, opened read-only."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.timeline import KernelName, Timeline
from gpadvisor.store.timeline.columns import NO_SHAPE, Numbers, call_rows, timeline, work_rows

_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_VERSION: Final = re.compile(r"_(?:v\d+|ptsz|ptds)(?=_|$)")
_SHAPE: Final = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_NAMES: Final = ("mangledName", "demangledName")
_EXPORT: Final = "export it again: nsys export --type sqlite REPORT"


def read_nsys(path: Path) -> Timeline:
    """Read an export.

    Raises:
        ProfileFormatError: it is none, damaged, or without work of a GPU.
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
    work, calls = work_rows(), call_rows()
    kernels, called = Numbers[tuple[object, object]](), Numbers[object]()
    columns = _columns(database, f"{_PREFIX}KERNEL")
    if columns:
        named = ", ".join(name if name in columns else "NULL" for name in (*_NAMES, *_SHAPE))
        for *times, mangled, demangled, gx, gy, gz, bx, by, bz in database.execute(
            f'SELECT start, "end", deviceId, correlationId, {named} FROM {_PREFIX}KERNEL'
        ):
            work.add(*times, kernels.of((mangled or demangled, demangled)), gx, gy, gz, bx, by, bz)
    for table in (f"{_PREFIX}MEMCPY", f"{_PREFIX}MEMSET"):
        if _columns(database, table):
            for times in database.execute(f'SELECT start, "end", deviceId, correlationId FROM {table}'):
                work.add(*times, None, *NO_SHAPE)
    if _columns(database, f"{_PREFIX}RUNTIME"):
        for *times, name in database.execute(
            f'SELECT start, "end", globalTid, correlationId, nameId FROM {_PREFIX}RUNTIME'
        ):
            calls.add(*times, called.of(name))
    texts = dict(database.execute("SELECT id, value FROM StringIds"))
    return timeline(
        work,
        calls,
        [
            KernelName(mangled=str(texts.get(mangled, "")), demangled=str(texts.get(demangled, "")))
            for mangled, demangled in kernels.found
        ],
        [_VERSION.sub("", str(texts.get(one, f"call {one}"))) for one in called.found],
    )


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """Names of its columns; none where there is no such table."""
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}
