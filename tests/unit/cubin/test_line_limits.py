# SPDX-License-Identifier: Apache-2.0
"""Line tables that ask for more than the code they describe can have."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cubin_parts import COPY, END, Part, Sym, address, advance, code, elf, inlined, line, uleb, unit

from gpadvisor.cubin import line_table_damage, read_cubin, section_lines

MIB = 1 << 20


def _cubin(table: bytes, *, line_strings: bytes = b"", instructions: int = 8) -> bytes:
    parts = [Part(".text.k", code(instructions)), Part(".debug_line", table)]
    parts += [Part(".debug_line_str", line_strings), Part(".debug_str", b"\0")]
    return elf(parts, [Sym("k", ".text.k", 0, 16 * instructions)])


@contextmanager
def _at_most(bytes_: int) -> Iterator[None]:
    """No more memory than that is in use at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < bytes_
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("forms", [(b"\x01\x1f",), (b"\x01\x1f", b"\x02\x0b")])
@pytest.mark.parametrize("step", [0, 1])
def test_names_that_are_shared_or_overlap(forms: tuple[bytes, ...], step: int) -> None:
    """DWARF 5 names a text by its offset: a thousand names of half a megabyte in one."""
    texts = b"/" + b"a" * (MIB // 2) + b"\0"
    count = 1000
    entries = b"".join(
        struct.pack("<I", step * index) + (b"\0" if len(forms) > 1 else b"") for index in range(count)
    )
    layout = bytes([len(forms)]) + b"".join(forms)
    counts = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    after = b"\x01\x01\x01" + struct.pack("<bBB", -5, 14, 13) + counts
    after += b"\x01\x01\x1f" + uleb(1) + struct.pack("<I", 0) + layout + uleb(count) + entries
    body = struct.pack("<H", 5) + b"\x08\x00" + struct.pack("<I", len(after)) + after
    body += address() + line(9) + COPY + advance(128) + END
    data = _cubin(struct.pack("<I", len(body)) + body, line_strings=texts)
    with _at_most(64 * MIB):
        cubin = read_cubin(data)
        section_lines(cubin, cubin.sections[0])


def test_rows_are_bounded_by_the_instructions() -> None:
    """A megabyte of one-byte opcodes, each a row, for eight instructions."""
    table, _ = unit(address() + COPY * MIB + advance(128) + END)
    data = _cubin(table)
    with _at_most(16 * MIB):
        cubin = read_cubin(data)
        assert "more rows" in str(line_table_damage(cubin))
        assert section_lines(cubin, cubin.sections[0]) == (None,) * 8


def test_chains_of_calls_are_bounded_together() -> None:
    """Each row is inlined into the one before it."""
    instructions = 4096
    rows = b"".join(inlined(index) + line(1) + COPY + advance(16) for index in range(instructions))
    data = _cubin(unit(address() + rows + END)[0], instructions=instructions)
    with _at_most(48 * MIB):
        cubin = read_cubin(data)
        entries = section_lines(cubin, cubin.sections[0])
    assert sum(entry is not None for entry in entries) == instructions
    assert sum(len(entry.inline) for entry in entries if entry is not None) <= 64 * instructions
