# SPDX-License-Identifier: Apache-2.0
"""From the bytes of one collection file to its records; what is cut off or damaged is counted, not fatal."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gpadvisor.errors import ProfileFormatError
from gpadvisor.store.collection.layout import (
    BYTE_ORDER,
    FILE_HEADER,
    MARK,
    RECORD_HEADER,
    SEGMENT_HEADER,
    SEGMENT_MAGIC,
    UNIT_BYTES,
    VERSION,
)
from gpadvisor.store.paths import COLLECTION_MAGIC

_MAX_SEGMENT_UNITS: Final = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    """The first unit of a file, with counters that the process keeps up to date."""

    process: int
    parent: int
    finished: bool
    started_ns: int
    launches: int
    samples: int
    kernels: int
    lost_records: int


@dataclass(slots=True)
class Damage:
    """What could not be read of a file."""

    segments: int = 0  # whose records end in something that is none
    cut_bytes: int = 0  # missing at the end of the file
    notes: list[str] = field(default_factory=list)


def read_header(data: bytes | memoryview) -> FileHeader:
    """The header of a file.

    Raises:
        ProfileFormatError: it is no collection file, or one of another version or byte order.
    """
    if len(data) < FILE_HEADER.size:
        raise ProfileFormatError("the collection file is cut short inside its header; collect again")
    magic, version, order, unit, process, parent, finished, *counters = FILE_HEADER.unpack_from(data)
    if magic != COLLECTION_MAGIC:
        raise ProfileFormatError("the file is no collection of the cupti collector; collect again")
    if order != BYTE_ORDER:
        raise ProfileFormatError(
            "the collection was written on a machine of the other byte order; read it there"
        )
    if version != VERSION or unit != UNIT_BYTES:
        raise ProfileFormatError(
            f"the collection has version {version} of the format, and version {VERSION} is known here; "
            "read it with the gpadvisor that collected it"
        )
    started, launches, samples, kernels, lost = counters
    return FileHeader(
        process=process,
        parent=parent,
        finished=finished == 1,
        started_ns=started,
        launches=launches,
        samples=samples,
        kernels=kernels,
        lost_records=lost,
    )


def records(data: memoryview, damage: Damage) -> Iterator[tuple[int, memoryview]]:
    """Kind and payload of each record, segment by segment; within a segment in the order of writing."""
    index = UNIT_BYTES
    while index + SEGMENT_HEADER.size <= len(data):
        magic, units, _ = SEGMENT_HEADER.unpack_from(data, index)
        if magic != SEGMENT_MAGIC or not 0 < units <= _MAX_SEGMENT_UNITS:
            # Zeros are a segment that was claimed and never begun.
            damage.segments += any(data[index : index + SEGMENT_HEADER.size])
            index += UNIT_BYTES
            continue
        end = index + units * UNIT_BYTES
        if end > len(data):
            damage.cut_bytes = end - len(data)
            end = len(data)
        yield from _segment(data, index + SEGMENT_HEADER.size, end, damage)
        index += units * UNIT_BYTES


def _segment(data: memoryview, index: int, end: int, damage: Damage) -> Iterator[tuple[int, memoryview]]:
    head = RECORD_HEADER.size
    while index + head <= end:
        size, kind, mark, crc, _ = RECORD_HEADER.unpack_from(data, index)
        if mark == 0 and size == 0 and kind == 0:
            return
        payload = data[index + head : index + head + size]
        if mark != MARK or index + head + size > end:
            damage.segments += 1
            return
        if zlib.crc32(payload, zlib.crc32(data[index : index + 8])) != crc:
            damage.segments += 1
            return
        yield kind, payload
        index += head + (size + 7) // 8 * 8
