# SPDX-License-Identifier: Apache-2.0
"""Sums as a snapshot: one launch for each kernel, which stands for all of them on all ranks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpadvisor.model.figures import percent
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import (
    CONFIGURATION_SHARE,
    CONFIGURATIONS,
    LAUNCHES,
    SLOWEST,
    SLOWEST_SHARE,
    adds_up,
)
from gpadvisor.store.parts import ColumnArrays, JsonObject, Parts, put_together
from gpadvisor.store.ranks.findings import findings, slowest_rank, times_by_rank
from gpadvisor.store.ranks.kernels import SummedKernel
from gpadvisor.store.ranks.manifests import Told
from gpadvisor.store.ranks.members import By, Member, stated
from gpadvisor.store.ranks.reading import Reading
from gpadvisor.store.ranks.summing import CELLS_KEPT, KEPT, KEY
from gpadvisor.store.snapshot import pack
from gpadvisor.store.snapshot.tables import SCHEMAS, indexed, kernel_document, row_documents

_KINDS: Final = ("binaries", "disassembly", "sources")
_CONSTANT: Final = ("launch__", "device__", "breakdown:", "group:")
_NAMED: Final = 3


def summed(reading: Reading, members: Sequence[Member], by: By) -> bytes:
    """The bytes of the snapshot.

    Raises:
        ProfileFormatError: the sums are more than any profile can have.
    """
    connection = reading.connection
    order = _order(connection)
    _renumber(connection, order)
    ordered = [reading.kernels.found[k] for k in order]
    configurations = _documents(connection, "SELECT * FROM kept_out_launches")
    times: ColumnArrays = connection.execute("SELECT k, rank, time_ns FROM sum_times").fetchnumpy()
    kernels = [
        _kernel(index, kernel, [row for row in configurations if row["k"] == index])
        for index, kernel in enumerate(ordered)
    ]
    _launches(connection, kernels)
    _metrics(connection, kernels)
    mixed = _mixed(reading, kernels)
    problems = _compare(kernels, times, members, by, is_one=not mixed)
    parts = Parts(
        document={
            "profile": _profile(reading, members),
            "kernels": kernels,
            "sources": [reading.told.sources[key] for key in sorted(reading.told.sources)],
            "problems": [
                _sum(members, by, reading),
                *mixed,
                *problems,
                *_told(reading),
            ],
            **_lines(reading.told),
        },
        tables={name: _table(connection, kernels, name) for name in ("samples", "counts", "pc_metrics")},
        blobs={
            kind: {
                key: path.read_bytes()
                for (blob_kind, key), path in sorted(reading.blobs.items())
                if blob_kind == kind
            }
            for kind in _KINDS
        },
    )
    put_together(parts)
    head = {
        "across": {
            "by": by.value,
            "failed": reading.kernels.failed,
            "timelines": reading.told.timelines,
            "kernels": [
                {
                    "pc_metrics": dict(sorted(kernel.pc_metrics.items())),
                    "problems": [[code, *problem] for code, problem in sorted(kernel.problems.items())],
                }
                for kernel in ordered
            ],
        }
    }
    return pack(parts, head, _kept(reading, members))


def _compare(
    kernels: Sequence[JsonObject], times: ColumnArrays, members: Sequence[Member], by: By, *, is_one: bool
) -> list[JsonObject]:
    """What ranks differ in, of the run; what is of a kernel is added to it.

    Of several programs no rank is the slowest.
    """
    labels, matrix = times_by_rank(times, members, len(kernels), by)
    slowest = slowest_rank(matrix, labels, by) if is_one else None
    if slowest is not None and not np.ma.getmaskarray(times["time_ns"]).any():
        for kernel, share in zip(kernels, slowest[1].tolist(), strict=True):
            kernel["metrics"] |= {SLOWEST: slowest[0], SLOWEST_SHARE: share}
    in_general, by_kernel = findings(matrix, labels, [row["launch"]["demangled"] for row in kernels], by)
    for index, problems in by_kernel.items():
        kernels[index]["problems"] += problems
    return in_general


def _order(connection: Any) -> list[int]:
    """Kernels by their time, the most first."""
    rows = connection.execute(
        "SELECT k, coalesce(sum(time_ns), 0), sum(launches) FROM sum_launches GROUP BY k"
    ).fetchall()
    return [k for k, *_ in sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))]


def _renumber(connection: Any, order: Sequence[int]) -> None:
    connection.register(
        "order_in", {"k": np.array(order, np.uint32), "now": np.arange(len(order), dtype=np.uint32)}
    )
    connection.execute("CREATE TEMP TABLE ordered AS SELECT * FROM order_in")
    connection.unregister("order_in")
    for name in ("samples", "launches", "metrics", "counts", "pc_metrics", "times"):
        connection.execute(
            f"CREATE TABLE next_{name} AS"
            f" SELECT s.* REPLACE (now AS k) FROM sum_{name} s JOIN ordered USING (k)"
        )
        connection.execute(f"DROP TABLE sum_{name}")
        connection.execute(f"ALTER TABLE next_{name} RENAME TO sum_{name}")
    for name, query in KEPT.items():
        connection.execute(f"CREATE TEMP VIEW kept_out_{name} AS {query}")


def _documents(connection: Any, query: str) -> list[JsonObject]:
    result: dict[str, NDArray[Any]] = connection.execute(query).fetchnumpy()
    return row_documents(result)


def _kernel(index: int, summed_kernel: SummedKernel, rows: Sequence[JsonObject]) -> JsonObject:
    """The launch of a kernel's commonest configuration by time, with the sums over all of them."""
    main = max(rows, key=lambda row: (row["time_ns"] or 0.0, row["launches"]))
    launches = sum(row["launches"] for row in rows)
    time = sum(row["time_ns"] or 0.0 for row in rows)
    drops_known = sum(row["drops_known"] for row in rows) == launches
    expected = sum(row["expected_known"] for row in rows) == launches
    row = {
        **{name: main.get(name) for name in SCHEMAS["launches"]},
        **dict(zip(KEY, summed_kernel.key, strict=True)),
        "launch": index,
        "demangled": summed_kernel.demangled,
        "failed": False,
        "counted": sum(row["counted"] for row in rows) == launches,
        "duration_ns": time if sum(row["timed"] for row in rows) == launches else None,
        "context": None,
        "stream": None,
        "dropped_samples": sum(row["dropped_samples"] for row in rows) if drops_known else None,
        "expected_samples": sum(row["expected_samples"] for row in rows) if expected else None,
        "truncated": any(row["truncated"] for row in rows),
        "truncation_evidence": next((text for row in rows if (text := row["truncation_evidence"])), None),
        "sections": json.dumps(sorted(summed_kernel.sections)),
        "reasons": json.dumps([summed_kernel.reasons[name] for name in sorted(summed_kernel.reasons)]),
        "pc_metrics": json.dumps(
            sorted(name for name, had in summed_kernel.pc_metrics.items() if had == launches)
        ),
        "problems": json.dumps(
            [
                {
                    "code": code,
                    "message": f"{message} ({had} of {launches} launches)" if had < launches else message,
                }
                for code, (message, had) in sorted(summed_kernel.problems.items())
            ]
        ),
    }
    kernel = kernel_document(row)
    share = (main["time_ns"] or 0.0) / time if time else main["launches"] / launches
    kernel["metrics"] = {CONFIGURATIONS: len(rows), CONFIGURATION_SHARE: share}
    if len(rows) > 1:
        weight = "time" if time else "number"
        kernel["problems"].append(
            {
                "code": ProblemCode.MIXED_CONFIGURATIONS.value,
                "message": f"the {launches} launches of {summed_kernel.demangled} have {len(rows)}"
                f" configurations, whose samples are added up; the one shown has"
                f" {percent(share, 0)} of their {weight}",
            }
        )
    return kernel


def _launches(connection: Any, kernels: Sequence[JsonObject]) -> None:
    for k, launches in connection.execute("SELECT k, sum(launches) FROM sum_times GROUP BY k").fetchall():
        kernels[k]["metrics"][LAUNCHES] = int(launches)


def _metrics(connection: Any, kernels: Sequence[JsonObject]) -> None:
    """Counts are added up; rates are means by time; what some launches lack is the longest's."""
    launches = dict(connection.execute("SELECT k, sum(launches) FROM sum_launches GROUP BY k").fetchall())
    for row in _documents(connection, "SELECT * FROM kept_out_metrics"):
        name = row["name"]
        if name in {LAUNCHES, CONFIGURATIONS, CONFIGURATION_SHARE, SLOWEST, SLOWEST_SHARE}:
            continue
        metrics = kernels[row["k"]]["metrics"]
        if row["kind"] == "text":
            metrics[name] = row["text"] or ""
        elif name.startswith(_CONSTANT) or row["found"] < launches[row["k"]] or row["total"] is None:
            if row["number"] is not None:
                metrics[name] = int(row["number"]) if row["kind"] == "integer" else row["number"]
        elif name.endswith((".sum", "]")) or ("." not in name and adds_up(name)):
            metrics[name] = int(row["total"]) if row["whole"] else row["total"]
        else:
            metrics[name] = row["weighted"] / row["weight"] if row["weight"] else row["total"] / row["found"]


def _profile(reading: Reading, members: Sequence[Member]) -> JsonObject:
    names = hashlib.sha256()
    for member in members:
        names.update(json.dumps([member.rank, member.name, member.node]).encode())
    told = reading.told
    return {
        "sha256": names.hexdigest(),
        "collector": told.common("collector") or "several",
        "collector_version": told.common("collector_version"),
        "command": told.common("command"),
        "host": told.common("host"),
        "created": told.created,
    }


def _sum(members: Sequence[Member], by: By, reading: Reading) -> JsonObject:
    ranks = [member.rank for member in members]
    text = (
        f"{len(members):,} profiles"
        if by is By.NAME
        else f"{len(members):,} ranks ({min(ranks)} to {max(ranks)})"
    )
    left_out = ""
    if reading.kernels.failed:
        left_out = f"; {reading.kernels.failed:,} failed launches are left out"
    if reading.told.timelines:
        left_out += (
            f"; idle time is not in it: {reading.told.timelines:,} of them have a timeline, which"
            " gpadvisor idle reads one by one"
        )
    return {
        "code": ProblemCode.SUM_OVER_RANKS.value,
        "message": f"sum over {text}: {stated(members, by)}; times and samples are of all of them{left_out}",
    }


def _mixed(reading: Reading, kernels: Sequence[JsonObject]) -> list[JsonObject]:
    """Several programs, builds or devices in one sum."""
    commands = sorted({command or "" for command in reading.told.values["command"]} - {""})
    devices = sorted({kernel["device"]["name"] or kernel["device"]["arch"] for kernel in kernels})
    programs, builds = _programs(reading.connection, kernels), _builds(kernels)
    differences = []
    if len({command.split()[0] for command in commands if command.split()}) > 1:
        differences.append(f"{len(commands)} commands were profiled: {_list(commands)}")
    elif programs > 1:
        differences.append(f"the profiles are of {programs} programs, which have no kernel in common")
    if len(devices) > 1:
        differences.append(f"the profiles are of {len(devices)} kinds of device: {_list(devices)}")
    if builds:
        differences.append(f"kernels of one name and other machine code are in the profiles: {_list(builds)}")
    return [
        {
            "code": ProblemCode.MIXED_PROFILES.value,
            "message": f"{text}; kernels are added up where machine code and device are the same",
        }
        for text in differences
    ]


def _programs(connection: Any, kernels: Sequence[JsonObject]) -> int:
    """How many groups of profiles there are of which none has a kernel's name of another."""
    together = connection.execute(
        "SELECT DISTINCT ks FROM (SELECT list(k ORDER BY k) AS ks FROM sum_times GROUP BY rank)"
    ).fetchall()
    if len(together) < 2:
        return len(together)
    import networkx as nx  # noqa: PLC0415 a heavy import that most sums do not need

    names = nx.Graph()
    for (ks,) in together:
        nx.add_path(names, [kernels[k]["launch"]["kernel"] for k in ks])
    return int(nx.number_connected_components(names))


def _builds(kernels: Sequence[JsonObject]) -> list[str]:
    """Names that stand for several machine codes on one device."""
    binaries: dict[tuple[str, str], set[str]] = {}
    for kernel in kernels:
        if kernel["binary"] is not None:
            key = kernel["launch"]["demangled"] or kernel["launch"]["kernel"], kernel["device"]["arch"]
            binaries.setdefault(key, set()).add(kernel["binary"])
    return sorted({name.partition("(")[0] for (name, _), copies in binaries.items() if len(copies) > 1})


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(name[:60] for name in names[:_NAMED]) + more


def _told(reading: Reading) -> list[JsonObject]:
    """Problems of whole profiles, one for each kind."""
    ours = {
        ProblemCode.SUM_OVER_RANKS.value,
        ProblemCode.SLOW_RANKS.value,
        ProblemCode.MIXED_PROFILES.value,
    }
    problems = reading.told.problems
    return [problems[code] for code in sorted(problems) if code not in ours]


def _lines(told: Told) -> JsonObject:
    return {"lines": [told.lines[key] for key in sorted(told.lines)]} if told.lines else {}


def _table(connection: Any, kernels: Sequence[JsonObject], name: str) -> ColumnArrays:
    columns = ", ".join({"launch": "k::UINTEGER AS launch"}.get(column, column) for column in SCHEMAS[name])
    where = "WHERE false"
    if name == "samples":
        where = ""
    elif name == "counts":
        counted = [index for index, kernel in enumerate(kernels) if kernel["counted"]]
        where = f"WHERE list_contains({counted}::UINTEGER[], k)"
    elif any(kernel["pc_metrics"] for kernel in kernels):
        pairs = [
            (position, metric) for position, kernel in enumerate(kernels) for metric in kernel["pc_metrics"]
        ]
        connection.execute("CREATE TEMP TABLE complete (k UINTEGER, metric VARCHAR)")
        connection.executemany("INSERT INTO complete VALUES (?, ?)", pairs)
        where = "SEMI JOIN complete USING (k, metric)"
    metric_column = ", metric" if name == "pc_metrics" else ""
    reason_column = ", reason" if name == "samples" else ""
    read: dict[str, NDArray[Any]] = connection.execute(
        f"SELECT {columns} FROM sum_{name} {where} ORDER BY k{metric_column}, section, pc{reason_column}"
    ).fetchnumpy()
    return indexed(kernels, name, read)


def _kept(reading: Reading, members: Sequence[Member]) -> dict[str, bytes]:
    """The tables that another merge needs."""
    connection = reading.connection
    columns = {
        "member": np.arange(len(members), dtype=np.uint32),
        "rank": np.array([member.rank for member in members], np.int32),
        "name": np.array([member.name for member in members], object),
        "node": np.array([member.node for member in members], object),
    }
    connection.register("ranks", columns)
    result: dict[str, bytes] = {}
    cells = {"cells": CELLS_KEPT} if reading.cells else {}
    for name, query in {**KEPT, "ranks": "SELECT * FROM ranks ORDER BY member", **cells}.items():
        path = reading.folder / f"out_{name}.parquet"
        quoted = str(path).replace("'", "''")
        connection.execute(f"COPY ({query}) TO '{quoted}' (FORMAT parquet, COMPRESSION zstd)")
        result[f"across_{name}.parquet"] = path.read_bytes()
    return result
