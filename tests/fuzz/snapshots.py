# SPDX-License-Identifier: Apache-2.0
"""Changes of a snapshot: its archive, manifest, tables as Parquet and as rows, with its digest made right."""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import duckdb
from tests.cubin_parts import uleb
from tests.fuzz.odd import ODD, bytes_, varint

from gpadvisor.errors import GpadvisorError
from gpadvisor.files import scratch_folder
from gpadvisor.store.parts import Parts, digest_of
from gpadvisor.store.snapshot import MANIFEST, _blobs
from gpadvisor.store.snapshot.tables import SCHEMAS, decode_tables

Members = dict[str, bytes]
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
_HEADERS = {
    b"PK\x03\x04": ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
    b"PK\x01\x02": ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (38, 4), (42, 4)),
    b"PK\x05\x06": ((4, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}
"""Places and widths of the numbers in a zip file's headers."""


def archive(data: bytes, rng: random.Random) -> bytes:
    """A snapshot with one change in its archive: a header, a member, a value of the manifest."""
    if rng.random() < 0.3:
        return rng.choice((bytes_, _headers))(data, rng)
    return _changed(data, rng.choice((_member, _manifest)), rng)


def tables(data: bytes, rng: random.Random) -> bytes:
    """A snapshot with one change in a table: in its description as Parquet, or in its rows."""
    return _changed(data, rng.choice((_parquet, _parquet, _rows)), rng)


def _changed(data: bytes, change: Callable[[Members, random.Random], None], rng: random.Random) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as source:
            members = {name: source.read(name) for name in source.namelist() if len(name) < 200}
    except _UNREADABLE:
        return bytes_(data, rng)
    if members:
        change(members, rng)
    return zipped(members, signed=rng.random() < 0.7)


def zipped(members: Members, *, signed: bool) -> bytes:
    """The archive of these members, on request with the digest that they have."""
    if signed:
        _sign(members)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for member, body in members.items():
            target.writestr(member, body)
    return out.getvalue()


def _headers(data: bytes, rng: random.Random) -> bytes:
    """A number in one of the archive's own headers."""
    kind = rng.choice(sorted(_HEADERS))
    places = [at for at in range(len(data)) if data.startswith(kind, at)]
    if not places:
        return bytes_(data, rng)
    at, width = rng.choice(_HEADERS[kind])
    at += rng.choice(places)
    return data[:at] + (rng.choice(ODD) & (1 << 8 * width) - 1).to_bytes(width, "little") + data[at + width :]


def _member(members: Members, rng: random.Random) -> None:
    """A member that is damaged, gone, or has another's name or content."""
    name, other = rng.choice(sorted(members)), rng.choice(sorted(members))
    match rng.randrange(4):
        case 0:
            del members[name]
        case 1:
            members[name] = members[other]
        case 2:
            members[rng.choice((f"../{name}", "a" * 300, f"sources/{'0' * 64}", "x.parquet"))] = members[name]
        case _:
            members[name] = bytes_(members[name], rng)


def _manifest(members: Members, rng: random.Random) -> None:
    """A value of the manifest, of the same kind or another."""
    try:
        document = json.loads(members[MANIFEST])
    except (KeyError, ValueError, RecursionError):
        return
    place, key = document, None
    while isinstance(place, dict | list) and place:
        holder = place
        key = rng.choice(sorted(place)) if isinstance(place, dict) else rng.randrange(len(place))
        place = place[key]
        if rng.random() < 0.4:
            break
    if key is not None:
        holder[key] = rng.choice((None, "", "\0\x1b[31m\n", "/", [], {}, -1, 1e308, True, *ODD, [[[[]]]]))
    with contextlib.suppress(ValueError):
        members[MANIFEST] = json.dumps(document).encode()


def _parquet(members: Members, rng: random.Random) -> None:
    """A value in the description at the end of a Parquet file, which is Thrift's compact form."""
    name = f"{rng.choice(sorted(SCHEMAS))}.parquet"
    data = members.get(name, b"")
    if len(data) < 12:
        return
    (length,) = struct.unpack_from("<I", data, len(data) - 8)
    begin = len(data) - 8 - length
    if begin < 4:
        return
    footer = data[begin:-8]
    spans: list[tuple[int, int, int]] = []
    with contextlib.suppress(ValueError, IndexError, RecursionError):
        _struct(footer, 0, spans)
    for _ in range(rng.choice((1, 1, 3))):
        if not spans:
            break
        # From the end on, as what is put in may be longer.
        spans, (start, end, kind) = _until(spans, rng)
        footer = footer[:start] + _value(kind, footer[start:end], rng) + footer[end:]
    stated = len(footer) if rng.random() < 0.95 else rng.choice(ODD) & 0xFFFFFFFF
    members[name] = data[:begin] + footer + struct.pack("<I", stated) + b"PAR1"


def _until(spans: list[tuple[int, int, int]], rng: random.Random) -> tuple[list[tuple[int, int, int]], Any]:
    at = rng.randrange(len(spans))
    return [span for span in spans if span[1] <= spans[at][0]], spans[at]


def _value(kind: int, old: bytes, rng: random.Random) -> bytes:
    if kind in {4, 5, 6} and rng.random() < 0.9:
        return uleb(rng.choice((*ODD, rng.randrange(64))) & (1 << 64) - 1)
    if kind == 8 and rng.random() < 0.8:
        text = rng.choice((b"", b"\0", b"section", b"\xff" * 9, b"a" * 5000, old[::-1]))
        return uleb(len(text)) + text
    if kind == 9:  # number and type of a list's elements
        return bytes([rng.randrange(256)])
    return rng.choice((b"", old + old, bytes_(old, rng)))


def _struct(data: bytes, at: int, spans: list[tuple[int, int, int]]) -> int:
    """Walk one struct; where each value lies goes to ``spans``; the place behind it."""
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return at
        if not head >> 4:  # the number of the field stands by itself
            at = varint(data, at)[1]
        at = _item(data, at, head & 15, spans)


def _item(data: bytes, at: int, kind: int, spans: list[tuple[int, int, int]]) -> int:
    begin = at
    if kind in {1, 2}:
        return at
    if kind == 3:
        at += 1
    elif kind in {4, 5, 6}:
        at = varint(data, at)[1]
    elif kind == 7:
        at += 8
    elif kind == 8:
        length, at = varint(data, at)
        at += length
    elif kind in {9, 10}:
        count, element = data[at] >> 4, data[at] & 15
        spans.append((at, at + 1, 9))
        at += 1
        if count == 15:
            count, at = varint(data, at)
        for _ in range(count):
            at = _item(data, at + (element in {1, 2}), element, spans)
        return at
    elif kind == 12:
        return _struct(data, at, spans)
    else:
        raise ValueError("a kind that Parquet does not use")
    spans.append((begin, at, kind))
    return at


def _rows(members: Members, rng: random.Random) -> None:
    """A sound Parquet file with another content: odd values, no values, other types, rows gone or doubled."""
    name = f"{rng.choice(sorted(SCHEMAS))}.parquet"
    if name not in members:
        return
    column = rng.choice(sorted(SCHEMAS[name.removesuffix(".parquet")]))
    number = rng.choice((*ODD, -1))
    value = rng.choice(
        (f"{number}", "NULL", "'x'", "'{\"a\": [1, -1]}'", "'nan'::DOUBLE", f"'{number}'", "[1, 2]")
    )
    where = rng.choice(("true", "rowid_ % 2 = 0", "rowid_ = 0"))
    change = rng.choice(
        (
            f'SELECT * REPLACE (CASE WHEN {where} THEN {value} ELSE "{column}" END AS "{column}")',
            f'SELECT * REPLACE ({value} AS "{column}")',
            f'SELECT * EXCLUDE ("{column}"), rowid_ AS "{column}"',
            f'SELECT * EXCLUDE ("{column}")',
            "SELECT *",
        )
    )
    after = rng.choice(
        ("", "", f"WHERE NOT ({where})", "ORDER BY rowid_ DESC", "UNION ALL (SELECT * FROM source)")
    )
    with contextlib.suppress(duckdb.Error):
        members[name] = rewritten(members[name], f"{change} FROM source {after}")


def rewritten(table: bytes, query: str) -> bytes:
    """Another Parquet file: what a query makes of one, which it calls ``source``, with its rows' numbers."""
    with scratch_folder() as folder, contextlib.closing(duckdb.connect(":memory:")) as engine:
        before, made = folder / "before.parquet", folder / "after.parquet"
        before.write_bytes(table)
        engine.execute("SET threads = 1")
        engine.execute(
            f"COPY (WITH source AS (SELECT *, row_number() OVER () - 1 AS rowid_ FROM '{before}')"
            f" {query}) TO '{made}' (FORMAT parquet)"
        )
        return made.read_bytes()


def _sign(members: Members) -> None:
    """State the digest that the tables have now, so that what is behind this check is reached."""
    with contextlib.suppress(
        GpadvisorError,
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        OverflowError,
        AttributeError,
        RecursionError,
    ):
        manifest = json.loads(members[MANIFEST])
        kernels, tables = decode_tables({name: members[f"{name}.parquet"] for name in SCHEMAS})
        document = {
            "kernels": kernels,
            **{name: manifest[name] for name in ("profile", "sources", "problems")},
        }
        manifest["digest"] = digest_of(Parts(document=document, tables=tables, blobs=_blobs(members)))
        members[MANIFEST] = json.dumps(manifest).encode()
