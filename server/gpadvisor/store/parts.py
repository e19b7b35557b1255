# SPDX-License-Identifier: Apache-2.0
"""A Profile taken apart into a JSON document, number columns and byte strings, and put together again.

Both the snapshot and the child process that reads foreign files hand a profile over in this form. Putting it
together checks every type, range and length, because the parts may come from a file or a process not trusted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.profile import (
    EXTERNAL,
    CallFrame,
    Device,
    Evidence,
    KernelProfile,
    Launch,
    LaunchPath,
    MetricValue,
    PcCounts,
    PcMetric,
    PcSamples,
    Profile,
    RecoveredLines,
    RuleResult,
    Sampling,
    SourceText,
)
from gpadvisor.model.stalls import StallClass, StallReason
from gpadvisor.sandbox.codec import from_json, to_json
from gpadvisor.store.possible import possible

JsonObject: TypeAlias = dict[str, Any]
ColumnArrays: TypeAlias = dict[str, NDArray[Any]]

MAX_SAMPLES: Final = 1 << 53
MAX_EXECUTED: Final = 1 << 60
_MOST: Final = {
    "total": MAX_SAMPLES,
    "latency": MAX_SAMPLES,
    "warps": MAX_EXECUTED,
    "threads": MAX_EXECUTED,
}
SAMPLES: Final = ("launch", "section", "pc", "reason", "total", "latency")
COUNTS: Final = ("launch", "section", "pc", "warps", "threads")
PC_METRICS: Final = ("launch", "metric", "section", "pc", "value")
TYPES: Final[Mapping[str, type[np.generic]]] = {
    "launch": np.uint32,
    "section": np.uint16,
    "pc": np.uint64,
    "reason": np.uint8,
    "total": np.uint64,
    "latency": np.uint64,
    "warps": np.uint64,
    "threads": np.uint64,
    "metric": np.uint32,
    "value": np.float64,
}
TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "samples": SAMPLES,
    "counts": COUNTS,
    "pc_metrics": PC_METRICS,
}


# Of a profile itself: what each field must be.
_HEAD: Final[Mapping[str, Any]] = {
    "sha256": str,
    "collector": str,
    **dict.fromkeys(("collector_version", "command", "host", "created"), str | None),
    "rank": int | None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSource:
    """A source, with the digest of its text among the byte strings."""

    key: str
    path: str
    sha256: str | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """A profile as plain data; ``blobs`` of each kind are keyed by sha256."""

    document: JsonObject
    tables: Mapping[str, ColumnArrays]
    blobs: Mapping[str, Mapping[str, bytes]]


def digest_of(parts: Parts) -> str:
    """A digest over all rows that depends on no library: canonical JSON and little-endian columns."""
    state = hashlib.sha256()
    state.update(json.dumps(parts.document, sort_keys=True, separators=(",", ":")).encode())
    for table, names in TABLES.items():
        for name in names:
            column = parts.tables[table][name]
            if column.dtype.kind == "f":  # there are many NaNs, and Parquet keeps one
                column = np.where(np.isnan(column), np.nan, column)
            state.update(f"\0{table}.{name}:{len(column)}\0".encode())
            state.update(column.astype(np.dtype(TYPES[name]).newbyteorder("<")).tobytes())
    for kind in sorted(parts.blobs):
        for key in sorted(parts.blobs[kind]):
            # A disassembly is keyed by its cubin, so its own bytes count, too.
            state.update(f"\0{kind}/{key}\0".encode() + hashlib.sha256(parts.blobs[kind][key]).digest())
    return state.hexdigest()


def take_apart(profile: Profile) -> Parts:
    """The plain form of a profile."""
    texts = {
        hashlib.sha256(data).hexdigest(): data
        for source in profile.sources.values()
        if source.text is not None
        for data in [source.text.encode("utf-8", "surrogatepass")]
    }
    return Parts(
        document={
            "profile": {
                name: getattr(profile, name)
                for name in _HEAD
                if name != "rank" or profile.rank is not None  # as in snapshots from before
            },
            "kernels": [_kernel_document(kernel) for kernel in profile.kernels],
            "sources": to_json([_stored_source(key, source) for key, source in profile.sources.items()]),
            "problems": _problem_documents(profile.problems),
            # Left out where there are none, as in snapshots from before.
            **{
                name: to_json(rows)
                for name, rows in (("lines", profile.lines), ("launch_paths", profile.launch_paths))
                if rows
            },
        },
        tables={
            "samples": _gather(SAMPLES, [_sample_columns(kernel) for kernel in profile.kernels]),
            "counts": _gather(COUNTS, [_count_columns(kernel) for kernel in profile.kernels]),
            "pc_metrics": _gather(PC_METRICS, [_metric_columns(kernel) for kernel in profile.kernels]),
        },
        blobs={
            "binaries": dict(profile.binaries),
            "disassembly": dict(profile.disassemblies),
            "sources": texts,
        },
    )


def _kernel_document(kernel: KernelProfile) -> JsonObject:
    return {
        "launch": to_json(kernel.launch),
        "device": to_json(kernel.device),
        "sampling": to_json(kernel.sampling),
        "evidence": kernel.evidence.value,
        "binary": kernel.binary,
        "sections": list(kernel.sections),
        "reasons": [[reason.name, reason.stall_class.value, reason.plain] for reason in kernel.reasons],
        "counted": kernel.counts is not None,
        "pc_metrics": list(kernel.pc_metrics),
        "metrics": dict(kernel.metrics),
        "rules": to_json(kernel.rules),
        "call_stack": to_json(kernel.call_stack),
        "problems": _problem_documents(kernel.problems),
    }


def _stored_source(key: str, source: SourceText) -> StoredSource:
    text = None
    if source.text is not None:
        text = hashlib.sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()
    return StoredSource(key=key, path=source.path, sha256=source.sha256, text=text)


def _problem_documents(problems: Sequence[Problem]) -> list[JsonObject]:
    return [{"code": problem.code.value, "message": str(problem.message)} for problem in problems]


def _sample_columns(kernel: KernelProfile) -> tuple[NDArray[Any], ...]:
    samples = kernel.samples
    return (samples.section, samples.pc, samples.reason, samples.total, samples.latency)


def _count_columns(kernel: KernelProfile) -> tuple[NDArray[Any], ...]:
    counts = kernel.counts
    return () if counts is None else (counts.section, counts.pc, counts.warps, counts.threads)


def _metric_columns(kernel: KernelProfile) -> tuple[NDArray[Any], ...]:
    metrics = list(kernel.pc_metrics.values())
    if not metrics:
        return ()
    return (
        np.concatenate([np.full(len(metric.pc), index, np.uint32) for index, metric in enumerate(metrics)]),
        np.concatenate([metric.section for metric in metrics]),
        np.concatenate([metric.pc for metric in metrics]),
        np.concatenate([metric.value for metric in metrics]),
    )


def _gather(names: tuple[str, ...], per_kernel: list[tuple[NDArray[Any], ...]]) -> ColumnArrays:
    """Concatenate the columns of all launches, with the launch in front."""
    filled = [(index, columns) for index, columns in enumerate(per_kernel) if columns]
    result: ColumnArrays = {}
    for position, name in enumerate(names):
        pieces = [
            np.full(len(columns[0]), index, np.uint32) if position == 0 else columns[position - 1]
            for index, columns in filled
        ]
        result[name] = np.concatenate([np.zeros(0, TYPES[name]), *pieces]).astype(TYPES[name])
    return result


def put_together(parts: Parts) -> Profile:
    """The profile of a plain form; ProfileFormatError where the form is not one."""
    try:
        return _profile(parts)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _broken(f"{type(error).__name__}: {error}") from error


def _broken(detail: str) -> ProfileFormatError:
    return ProfileFormatError(
        f"the profile's parts do not fit together ({detail}); import it again from the report it came from"
    )


def _profile(parts: Parts) -> Profile:
    document = parts.document
    head = {"rank": None, **document["profile"]}
    kernels = document["kernels"]
    tables = {name: _checked_table(name, parts.tables[name], len(kernels)) for name in TABLES}
    slices = {name: _rows_by_launch(table["launch"], len(kernels)) for name, table in tables.items()}
    return Profile(
        **{name: from_json(head[name], kind) for name, kind in _HEAD.items()},
        kernels=tuple(
            _kernel(kernel, {name: _cut(tables[name], slices[name][index]) for name in TABLES})
            for index, kernel in enumerate(kernels)
        ),
        binaries=dict(parts.blobs["binaries"]),
        disassemblies=dict(parts.blobs["disassembly"]),
        sources={
            source.key: _source(source, parts.blobs["sources"])
            for source in from_json(document["sources"], list[StoredSource])
        },
        problems=_problems(document["problems"]),
        lines=from_json(document.get("lines", []), tuple[RecoveredLines, ...]),
        launch_paths=_launch_paths(document.get("launch_paths", [])),
    )


def _checked_table(name: str, columns: ColumnArrays, launches: int) -> ColumnArrays:
    """The columns of one table with their types; the rows grouped by launch, in order."""
    result: ColumnArrays = {}
    for column in TABLES[name]:
        values = columns[column]
        if values.dtype != np.dtype(TYPES[column]):
            raise _broken(f"column {name}.{column} has type {values.dtype}")
        result[column] = values
    if len({len(values) for values in result.values()}) > 1:
        raise _broken(f"the columns of {name} differ in length")
    launch = result["launch"].astype(np.int64)
    if len(launch) and (int(launch.max()) >= launches or (np.diff(launch) < 0).any()):
        raise _broken(f"{name} has rows of launches that are not there, or out of order")
    return result


def _rows_by_launch(launch: NDArray[Any], launches: int) -> list[slice]:
    bounds = np.searchsorted(launch, np.arange(launches + 1))
    return [slice(int(bounds[index]), int(bounds[index + 1])) for index in range(launches)]


def _cut(table: ColumnArrays, rows: slice) -> ColumnArrays:
    return {name: values[rows].copy() for name, values in table.items() if name != "launch"}


def _kernel(document: JsonObject, tables: Mapping[str, ColumnArrays]) -> KernelProfile:
    sections = from_json(document["sections"], tuple[str, ...])
    reasons = tuple(
        StallReason(*entry) for entry in from_json(document["reasons"], list[tuple[str, StallClass, str]])
    )
    samples, counts = tables["samples"], tables["counts"]
    if len(samples["reason"]) and int(samples["reason"].max()) >= len(reasons):
        raise _broken("samples name a stall reason that is not listed")
    if bool((samples["latency"] > samples["total"]).any()):
        raise _broken("samples have more latency samples than samples")
    for name, most in _MOST.items():  # sums of more would overflow, and no run has as many
        column = (samples if name in samples else counts)[name]
        if float(column.sum(dtype=np.float64)) > most:
            raise _broken(f"{'samples' if name in samples else 'counts'} add up to more than {most}")
    for table in tables.values():
        section = table["section"]
        if bool(((section >= len(sections)) & (section != EXTERNAL)).any()):
            raise _broken("rows name a section that is not listed")
    kernel = KernelProfile(
        launch=from_json(document["launch"], Launch),
        device=from_json(document["device"], Device),
        evidence=Evidence(document["evidence"]),
        binary=None if document["binary"] is None else from_json(document["binary"], str),
        sections=sections,
        reasons=reasons,
        samples=PcSamples(**samples),
        counts=PcCounts(**counts) if document["counted"] else None,
        pc_metrics=_pc_metrics(from_json(document["pc_metrics"], list[str]), tables["pc_metrics"]),
        metrics=from_json(document["metrics"], dict[str, MetricValue]),
        sampling=from_json(document["sampling"], Sampling),
        rules=from_json(document["rules"], tuple[RuleResult, ...]),
        call_stack=from_json(document["call_stack"], tuple[CallFrame, ...]),
        problems=_problems(document["problems"]),
    )
    return possible(kernel)


def _pc_metrics(names: list[str], columns: ColumnArrays) -> dict[str, PcMetric]:
    metric = columns["metric"].astype(np.int64)
    if len(metric) and (int(metric.max()) >= len(names) or (np.diff(metric) < 0).any()):
        raise _broken("per-instruction metrics are not listed, or out of order")
    metrics: dict[str, PcMetric] = {}
    for index, rows in enumerate(_rows_by_launch(columns["metric"], len(names))):
        cut = {name: columns[name][rows].copy() for name in ("section", "pc", "value")}
        metrics[names[index]] = PcMetric(name=names[index], **cut)
    return metrics


def _source(source: StoredSource, texts: Mapping[str, bytes]) -> SourceText:
    text = None if source.text is None else texts[source.text].decode("utf-8", "surrogatepass")
    return SourceText(path=source.path, sha256=source.sha256, text=text)


def _launch_paths(document: object) -> tuple[LaunchPath, ...]:
    paths = from_json(document, tuple[LaunchPath, ...])
    if not all(path.launches >= 1 and 0 <= (path.duration_ns or 0.0) < math.inf for path in paths):
        raise _broken("a call stack has no launches, or a time that is none")
    return paths


def _problems(documents: Sequence[JsonObject]) -> tuple[Problem, ...]:
    return tuple(
        Problem(from_json(problem["code"], ProblemCode), from_json(problem["message"], str))
        for problem in documents
    )
