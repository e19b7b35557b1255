# SPDX-License-Identifier: Apache-2.0
"""The Parquet tables of a snapshot: what is in them, and how they become a profile's parts again.

Tables stand on their own, so they open in any Parquet reader: names instead of indices, one row per launch
with its configuration, device and sampling side by side.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.profile import EXTERNAL
from gpadvisor.store.parts import ColumnArrays, JsonObject
from gpadvisor.store.snapshot import parquet

_U, _D, _T, _B = "UBIGINT", "DOUBLE", "VARCHAR", "BOOLEAN"

# Column -> type and path in the document of a kernel.
_LAUNCHES: Final[Mapping[str, tuple[str, tuple[str | int, ...]]]] = {
    "launch": (_U, ("launch", "index")),
    "kernel": (_T, ("launch", "kernel")),
    "demangled": (_T, ("launch", "demangled")),
    **{f"grid_{axis}": (_U, ("launch", "grid", position)) for position, axis in enumerate("xyz")},
    **{f"block_{axis}": (_U, ("launch", "block", dimension)) for dimension, axis in enumerate("xyz")},
    **{f"cluster_{axis}": (_U, ("launch", "cluster", dimension)) for dimension, axis in enumerate("xyz")},
    "registers_per_thread": (_U, ("launch", "registers_per_thread")),
    "static_shared_bytes": (_U, ("launch", "static_shared_bytes")),
    "dynamic_shared_bytes": (_U, ("launch", "dynamic_shared_bytes")),
    "driver_shared_bytes": (_U, ("launch", "driver_shared_bytes")),
    "carveout_shared_bytes": (_U, ("launch", "carveout_shared_bytes")),
    "duration_ns": (_D, ("launch", "duration_ns")),
    "context": (_U, ("launch", "context")),
    "stream": (_U, ("launch", "stream")),
    "failed": (_B, ("launch", "failed")),
    "evidence": (_T, ("evidence",)),
    "binary": (_T, ("binary",)),
    "counted": (_B, ("counted",)),
    "device": (_T, ("device", "name")),
    "arch": (_T, ("device", "arch")),
    "sms": (_U, ("device", "sms")),
    "clock_hz": (_D, ("device", "clock_hz")),
    "max_warps_per_sm": (_U, ("device", "max_warps_per_sm")),
    "schedulers_per_sm": (_U, ("device", "schedulers_per_sm")),
    "registers_per_sm": (_U, ("device", "registers_per_sm")),
    "shared_bytes_per_sm": (_U, ("device", "shared_bytes_per_sm")),
    "l2_bytes": (_U, ("device", "l2_bytes")),
    "interval_cycles": (_U, ("sampling", "interval_cycles")),
    "buffer_bytes": (_U, ("sampling", "buffer_bytes")),
    "dropped_samples": (_U, ("sampling", "dropped_samples")),
    "truncated": (_B, ("sampling", "truncated")),
    "truncation_evidence": (_T, ("sampling", "truncation_evidence")),
    "expected_samples": (_D, ("sampling", "expected_samples")),
}
# Lists of a launch, as JSON text in a column of their own.
_LISTS: Final = ("sections", "reasons", "pc_metrics", "problems")
_RULES: Final[Mapping[str, str]] = {
    "launch": _U,
    "identifier": _T,
    "name": _T,
    "section": _T,
    "kind": _T,
    "title": _T,
    "message": _T,
    "estimated_speedup": _D,
    "speedup_scope": _T,
}
_FRAMES: Final[Mapping[str, str]] = {
    "launch": _U,
    "depth": _U,
    "module": _T,
    "address": _U,
    "function": _T,
    "file": _T,
    "line": _U,
}
SCHEMAS: Final[Mapping[str, Mapping[str, str]]] = {
    "launches": {
        **{name: sql_type for name, (sql_type, _) in _LAUNCHES.items()},
        **dict.fromkeys(_LISTS, _T),
    },
    "samples": {
        "launch": "UINTEGER",
        "section": _T,
        "pc": _U,
        "reason": _T,
        "samples": _U,
        "latency_samples": _U,
    },
    "counts": {"launch": "UINTEGER", "section": _T, "pc": _U, "warps": _U, "threads": _U},
    "pc_metrics": {"launch": "UINTEGER", "metric": _T, "section": _T, "pc": _U, "value": _D},
    "metrics": {"launch": _U, "name": _T, "kind": _T, "number": _D, "text": _T},
    "rules": _RULES,
    "callstacks": _FRAMES,
}
_COLUMN_OF: Final = {"samples": "total", "latency_samples": "latency"}  # table column -> part column


def encode_tables(kernels: Sequence[JsonObject], tables: Mapping[str, ColumnArrays]) -> dict[str, bytes]:
    """The Parquet files of a snapshot by table name."""
    columns_of: dict[str, Mapping[str, NDArray[Any]]] = {
        "launches": _launch_columns(kernels),
        "metrics": _row_columns("metrics", _metric_rows(kernels)),
        "rules": _row_columns("rules", _listed_rows(kernels, "rules")),
        "callstacks": _row_columns("callstacks", _listed_rows(kernels, "call_stack")),
    }
    for name, columns in tables.items():
        columns_of[name] = _named(kernels, name, columns)
    with parquet.session() as engine:
        return {
            name: parquet.encode(engine, name, columns_of[name], schema) for name, schema in SCHEMAS.items()
        }


def decode_tables(files: Mapping[str, bytes]) -> tuple[list[JsonObject], dict[str, ColumnArrays]]:
    """Kernel documents and number columns from the Parquet files."""
    with parquet.session() as engine:
        read = {name: parquet.decode(engine, name, files[name], schema) for name, schema in SCHEMAS.items()}
    kernels = [kernel_document(row) for row in row_documents(read["launches"])]
    for row in row_documents(read["metrics"]):
        kernels[row["launch"]]["metrics"][row["name"]] = metric_value(row)
    for row in row_documents(read["rules"]):
        kernels[row.pop("launch")]["rules"].append(row)
    for row in row_documents(read["callstacks"]):
        row.pop("depth")
        kernels[row.pop("launch")]["call_stack"].append(row)
    return kernels, {name: indexed(kernels, name, read[name]) for name in ("samples", "counts", "pc_metrics")}


def _launch_columns(kernels: Sequence[JsonObject]) -> dict[str, NDArray[Any]]:
    result = {
        name: parquet.column([_at(kernel, path) for kernel in kernels], sql_type)
        for name, (sql_type, path) in _LAUNCHES.items()
    }
    for name in _LISTS:
        result[name] = parquet.column([json.dumps(kernel[name]) for kernel in kernels], _T)
    return result


def _at(document: JsonObject, path: tuple[str | int, ...]) -> Any:
    value: Any = document
    for step in path:
        value = None if value is None else value[step]
    return value


def kernel_document(row: JsonObject) -> JsonObject:
    """A launch from its row, without what other tables hold of it."""
    kernel: JsonObject = {
        "launch": {},
        "device": {},
        "sampling": {},
        "metrics": {},
        "rules": [],
        "call_stack": [],
    }
    for name, (_, path) in _LAUNCHES.items():
        if len(path) == 1:
            kernel[str(path[0])] = row[name]
        elif len(path) == 2:
            kernel[str(path[0])][path[1]] = row[name]
    for name in ("grid", "block", "cluster"):
        axes = [row[f"{name}_{axis}"] for axis in "xyz"]
        kernel["launch"][name] = None if None in axes else axes
    for name in _LISTS:
        kernel[name] = json.loads(row[name])
    return kernel


def _row_columns(table: str, rows: Sequence[JsonObject]) -> dict[str, NDArray[Any]]:
    return {
        name: parquet.column([row[name] for row in rows], sql_type)
        for name, sql_type in SCHEMAS[table].items()
    }


def _metric_rows(kernels: Sequence[JsonObject]) -> list[JsonObject]:
    rows: list[JsonObject] = []
    for launch, kernel in enumerate(kernels):
        for name, value in kernel["metrics"].items():
            row: JsonObject = {"launch": launch, "name": name, "kind": "text", "number": None, "text": None}
            if isinstance(value, str):
                row["text"] = value
            else:
                row["kind"] = "integer" if isinstance(value, int) else "real"
                row["number"] = float(value)
                if isinstance(value, int) and int(row["number"]) != value:
                    row["text"] = str(value)  # a double has 53 bits
            rows.append(row)
    return rows


def metric_value(row: JsonObject) -> float | int | str:
    if row["kind"] == "text":
        return str(row["text"])
    if row["kind"] == "integer":
        return int(row["text"] if row["text"] is not None else row["number"])
    # duckdb takes a NaN of a column without other gaps for NULL.
    return math.nan if row["number"] is None else float(row["number"])


def _listed_rows(kernels: Sequence[JsonObject], name: str) -> list[JsonObject]:
    return [
        {"launch": launch, "depth": depth, **entry}
        for launch, kernel in enumerate(kernels)
        for depth, entry in enumerate(kernel[name])
    ]


def row_documents(columns: Mapping[str, NDArray[Any]]) -> list[JsonObject]:
    """The rows of a table, None where a value is absent."""
    names = list(columns)
    # tolist gives Python values, and None where a masked array has none.
    return [
        dict(zip(names, row, strict=True))
        for row in zip(*(_values(columns[name]) for name in names), strict=True)
    ]


def _values(values: NDArray[Any]) -> list[Any]:
    result: list[Any] = values.tolist()
    return result


def _named(kernels: Sequence[JsonObject], table: str, columns: ColumnArrays) -> dict[str, NDArray[Any]]:
    """Indices of sections, reasons and metrics as names; NULL for a section outside the cubin."""
    result: dict[str, NDArray[Any]] = {}
    for name in SCHEMAS[table]:
        values = columns[_COLUMN_OF.get(name, name)]
        if name in {"section", "reason", "metric"}:
            result[name] = _lookup(kernels, name, columns["launch"], values)
        else:
            result[name] = values
    return result


def _vocabulary(kernel: JsonObject, column: str) -> list[str]:
    if column == "reason":
        return [entry[0] for entry in kernel["reasons"]]
    return list(kernel["sections" if column == "section" else "pc_metrics"])


def _lookup(
    kernels: Sequence[JsonObject], column: str, launch: NDArray[Any], values: NDArray[Any]
) -> NDArray[Any]:
    result = np.empty(len(values), object)
    for index in np.unique(launch):
        names = np.array([*_vocabulary(kernels[int(index)], column), None], object)
        rows = launch == index
        result[rows] = (
            names[np.where(values[rows] == EXTERNAL, len(names) - 1, values[rows])]
            if (column == "section")
            else names[values[rows]]
        )
    return result


def indexed(kernels: Sequence[JsonObject], table: str, read: Mapping[str, NDArray[Any]]) -> ColumnArrays:
    """Names back to indices, in the order of the launch's lists."""
    result: ColumnArrays = {}
    launch = np.ma.getdata(read["launch"]).astype(np.uint32)
    for name in SCHEMAS[table]:
        target = _COLUMN_OF.get(name, name)
        if name in {"section", "reason", "metric"}:
            indices = [
                {text: index for index, text in enumerate(_vocabulary(kernel, name))} | {None: EXTERNAL}
                for kernel in kernels
            ]
            pairs = zip(launch.tolist(), read[name].tolist(), strict=True)
            width = np.uint8 if name == "reason" else np.uint32 if name == "metric" else np.uint16
            result[target] = np.array([indices[part][text] for part, text in pairs], width)
        elif SCHEMAS[table][name] == _D:
            result[target] = np.ma.filled(read[name], np.nan)
        else:
            result[target] = np.ma.getdata(read[name])
    return result


__all__ = ["SCHEMAS", "decode_tables", "encode_tables", "indexed", "kernel_document", "row_documents"]
