# SPDX-License-Identifier: Apache-2.0
"""What an attack found, as small as it shows: each is a seed, and the tests of its repair make it large."""

from __future__ import annotations

import io
import struct
import zipfile

from tests.cubin_parts import COPY, END, Part, Sym, address, advance, code, elf, inlined, line, uleb, unit
from tests.fuzz.snapshots import rewritten, zipped


def cubin_with(table: bytes, *, line_strings: bytes = b"", instructions: int = 8) -> bytes:
    """A cubin of one kernel with a line table."""
    parts = [Part(".text.k", code(instructions)), Part(".debug_line", table)]
    parts += [Part(".debug_line_str", line_strings), Part(".debug_str", b"\0")]
    return elf(parts, [Sym("k", ".text.k", 0, 16 * instructions)])


def shared_names(forms: tuple[bytes, ...], step: int, *, length: int, count: int) -> bytes:
    """DWARF 5 names a text by its offset: many names of one text, the same or each a byte shorter."""
    texts = b"/" + b"a" * length + b"\0"
    entries = b"".join(
        struct.pack("<I", step * index) + (b"\0" if len(forms) > 1 else b"") for index in range(count)
    )
    layout = bytes([len(forms)]) + b"".join(forms)
    counts = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    after = b"\x01\x01\x01" + struct.pack("<bBB", -5, 14, 13) + counts
    after += b"\x01\x01\x1f" + uleb(1) + struct.pack("<I", 0) + layout + uleb(count) + entries
    body = struct.pack("<H", 5) + b"\x08\x00" + struct.pack("<I", len(after)) + after
    body += address() + line(9) + COPY + advance(128) + END
    return cubin_with(struct.pack("<I", len(body)) + body, line_strings=texts)


def many_rows(count: int) -> bytes:
    """One-byte opcodes, each a row, for eight instructions."""
    return cubin_with(unit(address() + COPY * count + advance(128) + END)[0])


def deep_chains(instructions: int) -> bytes:
    """Each row is inlined into the one before it."""
    rows = b"".join(inlined(index) + line(1) + COPY + advance(16) for index in range(instructions))
    return cubin_with(unit(address() + rows + END)[0], instructions=instructions)


def overflowing(snapshot: bytes) -> bytes:
    """Samples whose sum has more than 64 bits."""
    with zipfile.ZipFile(io.BytesIO(snapshot)) as source:
        members = {name: source.read(name) for name in source.namelist()}
    members["samples.parquet"] = rewritten(
        members["samples.parquet"],
        "SELECT * EXCLUDE (rowid_) REPLACE (9223372036854775808::UBIGINT AS samples) FROM source",
    )
    return zipped(members, signed=True)
