# SPDX-License-Identifier: Apache-2.0
"""Collection files made by hand, for tests that need no compiler."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gpadvisor.store.collection import layout
from gpadvisor.store.collection.layout import RecordKind
from gpadvisor.store.paths import COLLECTION_MAGIC, COLLECTION_SUFFIX


def record(kind: int, payload: bytes) -> bytes:
    head = struct.pack("<I2H", len(payload), kind, layout.MARK)
    crc = zlib.crc32(payload, zlib.crc32(head))
    return head + struct.pack("<2I", crc, 0) + payload + bytes(-len(payload) % 8)


def segment(records: Iterable[bytes], *, units: int | None = None) -> bytes:
    body = b"".join(records)
    units = units or -(-(len(body) + layout.SEGMENT_HEADER.size) // layout.UNIT_BYTES)
    data = layout.SEGMENT_HEADER.pack(layout.SEGMENT_MAGIC, units, 0) + body
    return data + bytes(units * layout.UNIT_BYTES - len(data))


def header(
    *,
    process: int = 100,
    parent: int = 1,
    finished: bool = True,
    version: int = layout.VERSION,
    order: int = layout.BYTE_ORDER,
    lost: int = 0,
    started_ns: int = 1_700_000_000_000_000_000,
) -> bytes:
    data = layout.FILE_HEADER.pack(
        COLLECTION_MAGIC,
        version,
        order,
        layout.UNIT_BYTES,
        process,
        parent,
        int(finished),
        started_ns,
        5,
        50,
        5,
        lost,
    )
    return data + bytes(layout.UNIT_BYTES - len(data))


def name_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def name(text: str) -> bytes:
    return record(RecordKind.NAME, layout.NAME.pack(name_of(text)) + text.encode())


def process(
    *, mode: int = 1, forked: int = 0, late: int = 0, command: str = "./app", number: int = 100
) -> bytes:
    texts = [command.encode(), b"box", b"/bin/app"]
    head = layout.PROCESS.pack(number, 1, 1, 2, 3, 130500, 13000, mode, forked, late, *map(len, texts))
    return record(RecordKind.PROCESS, head + b"".join(texts))


def device(index: int = 0, *, major: int = 8, minor: int = 6, sms: int = 84) -> bytes:
    text = f"GPU {index}".encode()
    numbers = (index, major, minor, sms, 1_700_000, 1536, 65536, 102400, 6 << 20, 32, len(text), 0)
    return record(RecordKind.DEVICE, layout.DEVICE.pack(*numbers) + text)


def context(number: int = 1, *, device: int = 0, mode: int = 1, period: int = 11, sampling: int = 0) -> bytes:
    return record(RecordKind.CONTEXT, layout.CONTEXT.pack(number, device, mode, period, 1 << 29, sampling, 0))


def reasons(named: Sequence[tuple[int, str]]) -> bytes:
    rows = b"".join(struct.pack("<2I", index, len(text)) + text.encode() for index, text in named)
    return record(RecordKind.REASONS, layout.REASONS.pack(1, len(named)) + rows)


def module(image: bytes, *, crc: int = 77, context: int = 1) -> bytes:
    digest = hashlib.sha256(image).digest()
    return record(RecordKind.MODULE, layout.MODULE.pack(context, 1, crc, len(image), digest))


def kernel(
    text: str,
    correlation: int,
    *,
    grid: tuple[int, int, int] = (10, 1, 1),
    block: tuple[int, int, int] = (128, 1, 1),
    nanoseconds: int = 1000,
    context: int = 1,
    device: int = 0,
    graph: int = 0,
) -> bytes:
    row = (correlation, device, context, 7, 1000, 1000 + nanoseconds, name_of(text), 0, graph, 32)
    fields = (*row, grid, block, (0, 0, 0), 1024, 64, 0, 0, 0)
    return record(RecordKind.KERNEL, np.array(fields, layout.KERNEL).tobytes())


def launch(
    text: str,
    correlation: int,
    *,
    outer: int = 0,
    path: int = 0,
    time: int = 5,
    grid: tuple[int, int, int] = (10, 1, 1),
) -> bytes:
    row = (correlation, outer, 1, 1, time, 0, 9, name_of(text), path, *grid, 128, 1, 1, 64, 0)
    return record(RecordKind.LAUNCH, layout.LAUNCH.pack(*row))


def frame(number: int, function: str, line: int, file: str = "app.py") -> bytes:
    """A place in a Python program."""
    row = layout.FRAME.pack(number, name_of(file), name_of(function), line, 0)
    return name(file) + name(function) + record(RecordKind.FRAME, row)


def path(number: int, frames: Sequence[int]) -> bytes:
    """A call path of such places, the innermost first."""
    rows = struct.pack(f"<{len(frames)}Q", *frames)
    return record(RecordKind.PATH, layout.PATH.pack(number, len(frames), 0) + rows)


def samples(
    rows: Sequence[tuple[int, int, str, int, int, int]],
    *,
    dropped: int = 0,
    non_user: int = 0,
    full: bool = False,
    context: int = 1,
) -> bytes:
    """Rows of crc, pc, function, correlation, reason, count."""
    total = sum(row[5] for row in rows)
    head = layout.SAMPLES.pack(context, len(rows), 0, total, dropped, non_user, int(full), 0)
    body = b"".join(
        struct.pack("<3Q4I", crc, pc, name_of(function), 0, correlation, reason, count)
        for crc, pc, function, correlation, reason, count in rows
    )
    return record(RecordKind.SAMPLES, head + body)


def note(stage: int, code: int, text: str = "CUPTI_ERROR") -> bytes:
    return record(RecordKind.NOTE, layout.NOTE.pack(stage, code, 1, len(text)) + text.encode())


def write(
    folder: Path, data: bytes, *, images: Iterable[bytes] = (), process: int = 100, number: int = 1
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{process}-{number:x}{COLLECTION_SUFFIX}").write_bytes(data)
    for image in images:
        (folder / "cubins").mkdir(exist_ok=True)
        (folder / "cubins" / f"{hashlib.sha256(image).hexdigest()}.cubin").write_bytes(image)
    return folder
