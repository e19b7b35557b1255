# SPDX-License-Identifier: Apache-2.0
"""Line tables that ask for more than the code they describe can have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.fuzz.found import deep_chains, many_rows, shared_names

from gpadvisor.cubin import line_table_damage, read_cubin, section_lines

MIB = 1 << 20


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
    """A thousand names of half a megabyte in one."""
    data = shared_names(forms, step, length=MIB // 2, count=1000)
    with _at_most(64 * MIB):
        cubin = read_cubin(data)
        section_lines(cubin, cubin.sections[0])


def test_rows_are_bounded_by_the_instructions() -> None:
    """A megabyte of one-byte opcodes, each a row, for eight instructions."""
    data = many_rows(MIB)
    with _at_most(16 * MIB):
        cubin = read_cubin(data)
        assert "more rows" in str(line_table_damage(cubin))
        assert section_lines(cubin, cubin.sections[0]) == (None,) * 8


def test_chains_of_calls_are_bounded_together() -> None:
    """Each row is inlined into the one before it."""
    instructions = 4096
    data = deep_chains(instructions)
    with _at_most(48 * MIB):
        cubin = read_cubin(data)
        entries = section_lines(cubin, cubin.sections[0])
    assert sum(entry is not None for entry in entries) == instructions
    assert sum(len(entry.inline) for entry in entries if entry is not None) <= 64 * instructions
