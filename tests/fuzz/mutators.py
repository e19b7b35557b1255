# SPDX-License-Identifier: Apache-2.0
"""Changes that keep a format's outer shape, so that what lies deeper is reached."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests import collection_writer
from tests.cubin_parts import uleb
from tests.fuzz import dwarf, snapshots
from tests.fuzz.odd import ODD, bytes_, varint

from gpadvisor.store.collection.layout import UNIT_BYTES, RecordKind
from gpadvisor.store.collection.records import Damage, records


def _fields(data: bytes) -> list[tuple[int, int, bytes]]:
    """Number, wire type and body of each field; none where it is no message."""
    fields: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(data):
        try:
            key, at = varint(data, at)
            size = {1: 8, 5: 4}.get(key & 7, len(data))
            if key & 7 == 2:
                size, at = varint(data, at)
            end = varint(data, at)[1] if key & 7 == 0 else at + size
        except ValueError:
            return []
        if end > len(data):
            return []
        fields.append((key >> 3, key & 7, data[at:end]))
        at = end
    return fields


def protobuf(data: bytes, rng: random.Random, depth: int = 0) -> bytes:
    """One field of a message, or of one inside it: its number, value or length; gone, or there twice."""
    fields = _fields(data)
    if not fields:
        return bytes_(data, rng)
    chosen = rng.randrange(len(fields))
    number, kind, body = fields[chosen]
    if kind == 2 and depth < 12 and rng.random() < 0.8:
        fields[chosen] = number, kind, protobuf(body, rng, depth + 1)
    else:
        match rng.randrange(4):
            case 0:
                fields[chosen] = rng.choice((number + 1, 1, 500)), kind, body
            case 1 if kind == 0:
                fields[chosen] = number, kind, uleb(rng.choice(ODD))
            case 2:
                del fields[chosen]
            case _:
                fields[chosen:chosen] = [fields[chosen]] * rng.choice((1, 2, 100))
    out = bytearray()
    for number, kind, body in fields:
        out += uleb(number << 3 | kind) + (uleb(len(body)) if kind == 2 else b"") + body
    return bytes(out)


def report(data: bytes, rng: random.Random) -> bytes:
    """An Nsight Compute report: a field of one of its messages, with the lengths around it made right."""
    if len(data) < 8 or rng.random() < 0.2:
        return bytes_(data, rng)
    head, at = data[:4], 4
    blocks = []
    while at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        blocks.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    if not blocks:
        return bytes_(data, rng)
    chosen = rng.randrange(len(blocks))
    blocks[chosen] = protobuf(blocks[chosen], rng)
    return head + b"".join(struct.pack("<I", len(block)) + block for block in blocks)


def elf(data: bytes, rng: random.Random) -> bytes:
    """A cubin: a field of its header or of a section's, or bytes of one section."""
    if len(data) < 64:
        return bytes_(data, rng)
    out = bytearray(data)
    (table,) = struct.unpack_from("<Q", out, 40)
    size, count = struct.unpack_from("<HH", out, 58)
    rows = [
        table + index * size
        for index in range(count)
        if table + (index + 1) * size <= len(out) and size >= 64
    ]
    if rows and rng.random() < 0.9:
        row = rng.choice(rows)
        if rng.random() < 0.4:
            place, width = rng.choice(
                ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (56, 8))
            )
            out[row + place : row + place + width] = (rng.choice(ODD) & (1 << 8 * width) - 1).to_bytes(
                width, "little"
            )
            return bytes(out)
        start, length = struct.unpack_from("<QQ", out, row + 24)
        if 0 < length <= len(out) - start:
            part = bytes_(bytes(out[start : start + length]), rng)[:length]
            out[start : start + len(part)] = part
            return bytes(out)
    out[rng.randrange(64)] = rng.randrange(256)
    return bytes(out)


def collection(data: bytes, rng: random.Random) -> bytes:
    """A file of the cupti collector: a number or a text of one record, whose checksum is made right."""
    if rng.random() < 0.1:
        return bytes_(data, rng)
    rows = list(records(memoryview(data), Damage()))
    if not rows:
        return bytes_(data, rng)
    chosen = rng.randrange(len(rows))
    kind, body = rows[chosen][0], bytearray(rows[chosen][1])
    match rng.randrange(5):
        case 0 | 1 if len(body) >= 4:
            width = rng.choice((2, 4, 8))
            at = rng.randrange(0, len(body), 4)
            number = rng.choice((*ODD, rng.randrange(16))) & (1 << 8 * width) - 1
            body[at : at + width] = number.to_bytes(width, "little")[: len(body) - at]
        case 2:
            body = bytearray(bytes_(bytes(body), rng))
        case 3:
            kind = rng.choice((*RecordKind, 99))
        case _:
            other = rng.randrange(len(rows))
            rows[chosen:chosen] = [rows[other]] * rng.choice((1, 1, 50))
    if rng.random() < 0.95:
        rows[chosen] = kind, memoryview(body)
    else:
        del rows[chosen]
    head = data[:UNIT_BYTES]
    return head + collection_writer.segment(
        collection_writer.record(kind, bytes(body)) for kind, body in rows
    )


Mutator = Callable[[bytes, random.Random], bytes]
FORMATS: dict[str, tuple[str, Mutator]] = {
    "protobuf": ("report", report),
    "ELF": ("cubin", elf),
    "DWARF": ("cubin", dwarf.lines),
    "zip": ("snapshot", snapshots.archive),
    "Parquet": ("snapshot", snapshots.tables),
    "records": ("collection", collection),
}
"""By format: the kind of input whose parts are of it, and what changes one."""
