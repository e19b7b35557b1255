# SPDX-License-Identifier: Apache-2.0
"""Traces of runs as files: exports of Nsight Systems, and Chrome traces as PyTorch writes them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

LAUNCH = "cudaLaunchKernel"


class Work(NamedTuple):
    """A kernel's launch, or a copy where it has no name."""

    start: int
    end: int
    name: str | None = None
    shape: tuple[int, ...] = (1, 1, 1, 32, 1, 1)
    device: int = 0


def write_export(path: Path, work: Sequence[Work]) -> Path:
    """An SQLite export; each launch is called one tick before."""
    texts: dict[str, int] = {}
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, "end", deviceId, correlationId, mangledName,
                demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, "end", deviceId, correlationId);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, "end", globalTid, correlationId, nameId);
            CREATE TABLE StringIds (id, value);"""
        )
        for at, one in enumerate(work):
            row = (one.start, one.end, one.device, at)
            if one.name is None:
                database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?)", row)
            else:
                name = texts.setdefault(one.name, len(texts) + 1)
                database.execute(
                    f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({', '.join('?' * 12)})",
                    (*row, name, name, *one.shape),
                )
            database.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 1, ?, 0)",
                (max(0, one.start - 1), one.start, at),
            )
        database.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(0, f"{LAUNCH}_v7000"), *((n, t) for t, n in texts.items())],
        )
        database.commit()
    return path


def chrome_events(work: Sequence[Work]) -> list[dict[str, object]]:
    """The same in microseconds, with what a trace has beside it."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 1}]
    for at, one in enumerate(work):
        times = {"ph": "X", "ts": one.start / 1000, "dur": (one.end - one.start) / 1000}
        about: dict[str, object] = {"device": one.device, "correlation": at, "stream": 7}
        if one.name is None:
            events.append({**times, "cat": "gpu_memcpy", "name": "Memcpy HtoD", "args": about})
        else:
            shape = {"grid": list(one.shape[:3]), "block": list(one.shape[3:])}
            events.append({**times, "cat": "kernel", "name": one.name, "args": {**about, **shape}})
        call = {"ph": "X", "ts": max(0, one.start - 1) / 1000, "dur": 0.001, "pid": 3, "tid": 4}
        events.append({**call, "cat": "cuda_runtime", "name": LAUNCH, "args": {"correlation": at}})
    return events


def write_chrome(path: Path, work: Sequence[Work]) -> Path:
    """A Chrome trace of the same."""
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": chrome_events(work)}))
    return path
