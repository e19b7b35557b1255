# SPDX-License-Identifier: Apache-2.0
"""Cubins put together from stated parts, and line programs written opcode by opcode."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

ENTRY = 0x10
FUNC, SECTION = 2, 3


@dataclass(frozen=True)
class Part:
    """One section."""

    name: str
    content: bytes = b""
    kind: int = 1
    flags: int = 0
    info: int = 0
    size: int | None = None  # stated instead of the content's length


@dataclass(frozen=True)
class Sym:
    """One symbol of a section that is named."""

    name: str
    section: str
    value: int = 0
    size: int = 0
    kind: int = FUNC
    other: int = ENTRY


def code(count: int) -> bytes:
    """That many instructions' worth of bytes, all different."""
    return b"".join(struct.pack("<QQ", index, ~index & (1 << 64) - 1) for index in range(count))


def elf(
    parts: Sequence[Part],
    symbols: Sequence[Sym] = (),
    *,
    flags: int = 0x560556,
    abi: int = 7,
    machine: int = 190,
    count_in_first: bool = False,
) -> bytes:
    """The bytes of an image with these sections, a symbol table and string tables."""
    strings = bytearray(b"\0")

    def add(text: str) -> int:
        at = len(strings)
        strings.extend(text.encode() + b"\0")
        return at

    index_of = {part.name: index for index, part in enumerate(parts, 1)}
    rows = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
    rows += [
        struct.pack(
            "<IBBHQQ", add(s.name), 0x10 | s.kind, s.other, index_of.get(s.section, 0), s.value, s.size
        )
        for s in symbols
    ]
    every = [*parts, Part(".symtab", b"".join(rows), 2), Part(".strtab", b"", 3)]
    names = [add(part.name) for part in every]
    out = bytearray(64)
    headers = [b"\0" * 64]
    for part, name in zip(every, names, strict=True):
        content = bytes(strings) if part.name == ".strtab" else part.content
        size = len(content) if part.size is None else part.size
        link = len(every) if part.kind == 2 else 0
        headers.append(
            struct.pack("<IIQQQQIIQQ", name, part.kind, part.flags, 0, len(out), size, link, part.info, 8, 0)
        )
        out += content
    count = len(headers)
    if count_in_first:
        headers[0] = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, count - 1, 0, 0, 0)
    ident = b"\x7fELF\x02\x01\x01" + bytes([0x33 if abi == 7 else 0x41, abi]) + bytes(7)
    out[:64] = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(ident, 2, machine, 1, 0, 0, len(out), flags, 64, 56, 0, 64),
        *((0, 0xFFFF) if count_in_first else (count, count - 1)),
    )
    return bytes(out) + b"".join(headers)


def record(code_: int, *words: int) -> bytes:
    """A sized ``.nv.info`` record."""
    return struct.pack("<BBH", 4, code_, 4 * len(words)) + struct.pack(f"<{len(words)}I", *words)


def uleb(value: int) -> bytes:
    """A variable-length unsigned number."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    """A variable-length signed number."""
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        done = (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


COPY = b"\x01"
END = b"\0\x01\x01"


def advance(pc: int) -> bytes:
    """DW_LNS_advance_pc."""
    return b"\x02" + uleb(pc)


def line(delta: int) -> bytes:
    """DW_LNS_advance_line."""
    return b"\x03" + sleb(delta)


def file(number: int) -> bytes:
    """DW_LNS_set_file."""
    return b"\x04" + uleb(number)


def address(value: int = 0) -> bytes:
    """DW_LNE_set_address; the operand starts 3 bytes in."""
    return b"\0\x09\x02" + struct.pack("<Q", value)


def inlined(context: int, function: int = 0) -> bytes:
    """NVIDIA's opcode for an inlined call."""
    body = b"\x90" + uleb(context) + uleb(function)
    return b"\0" + uleb(len(body)) + body


def special(step: int, delta: int) -> bytes:
    """A special opcode for an address step and a line step, with base -5, range 14, first opcode 13."""
    return bytes([(delta + 5) + 14 * step + 13])


def unit(
    program: bytes,
    *,
    version: int = 3,
    directories: Sequence[str] = ("/src",),
    files: Sequence[tuple[str, int]] = (("k.cu", 1), ("inc.cuh", 1)),
    wide: bool = False,
) -> tuple[bytes, int]:
    """One unit of ``.debug_line``, and where its program starts."""
    counts = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    fixed = b"\x01" + (b"\x01" if version >= 4 else b"") + b"\x01" + struct.pack("<bBB", -5, 14, 13) + counts
    if version < 5:
        tables = b"".join(d.encode() + b"\0" for d in directories) + b"\0"
        tables += b"".join(n.encode() + b"\0" + uleb(d) + b"\0\0" for n, d in files) + b"\0"
    else:
        # Strings in place; entries of files also have a directory index and a checksum of 16 bytes.
        tables = b"\x01\x01\x08" + uleb(len(directories)) + b"".join(d.encode() + b"\0" for d in directories)
        tables += b"\x03\x01\x08\x02\x0b\x05\x1e" + uleb(len(files))
        tables += b"".join(n.encode() + b"\0" + bytes([d]) + bytes(16) for n, d in files)
    offset = "<Q" if wide else "<I"
    after = fixed + tables
    head = struct.pack("<H", version) + (b"\x08\x00" if version >= 5 else b"")
    head += struct.pack(offset, len(after)) + after
    length = (
        struct.pack("<IQ", 0xFFFFFFFF, len(head) + len(program))
        if wide
        else struct.pack("<I", len(head) + len(program))
    )
    return length + head + program, len(length) + len(head)
