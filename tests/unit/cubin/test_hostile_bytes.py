# SPDX-License-Identifier: Apache-2.0
"""Damaged cubins end in a CubinError or a value, whatever the damage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cubin_parts import (
    COPY,
    END,
    Part,
    Sym,
    address,
    advance,
    code,
    elf,
    file,
    inlined,
    line,
    record,
    unit,
)
from tests.kernels import compile_text

from gpadvisor.cubin import line_table_damage, read_cubin, section_lines
from gpadvisor.errors import CubinError

SOURCE = """
__device__ __forceinline__ float inner(float x) { return x * x + 1.0f; }
__device__ __forceinline__ float outer(float x) { return inner(x) / (x + 3.0f); }
__device__ __noinline__ float f(float x, int n) { for (int i = 0; i < n; i++) x = outer(x); return x; }
extern "C" __global__ void __launch_bounds__(128, 2) k(float *a, int n) {
    __shared__ float s[64];
    s[threadIdx.x & 63] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = f(s[n & 63], n) + outer(a[n]);
}
"""


def synthetic() -> bytes:
    program = address() + COPY + file(2) + inlined(1, 3) + line(4) + COPY + advance(128) + END
    parts = [
        Part(".text.k", code(8)),
        Part(".nv.info", record(0x2F, 1, 40) + record(0x12, 1, 8)),
        Part(".nv.info.k", record(0x05, 128, 1, 1)),
        Part(".debug_line", unit(program)[0]),
        Part(".debug_str", b"\0f\0g\0"),
        Part(".note.nv.tkinfo", b"-arch sm_90a "),
        Part(".nv_debug_ptx_txt", b".entry k() .minnctapersm 2 {"),
    ]
    return elf(parts, [Sym("k", ".text.k", 0, 128)])


def everything(data: bytes) -> None:
    """Read all that can be read."""
    try:
        cubin = read_cubin(data)
    except CubinError:
        return
    line_table_damage(cubin)
    for section in cubin.sections:
        lines = section_lines(cubin, section)
        assert len(lines) == section.instruction_count
        assert all(0 <= s.offset <= s.offset + s.size <= len(section.code) for s in section.symbols)


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=6)


def flipped(data: bytes, changes: list[tuple[float, int]]) -> bytes:
    out = bytearray(data)
    for where, value in changes:
        out[int(where * len(out))] = value
    return bytes(out)


@given(flips)
def test_flipped_bytes_of_a_small_image(changes: list[tuple[float, int]]) -> None:
    everything(flipped(synthetic(), changes))


@given(st.integers(0, 63), st.binary(min_size=1, max_size=8))
def test_damaged_headers(position: int, value: bytes) -> None:
    data = synthetic()
    everything(data[:position] + value + data[position + len(value) :])


@given(st.binary(max_size=300))
def test_bytes_of_any_kind(data: bytes) -> None:
    everything(data)
    everything(b"\x7fELF\x02\x01\x01\x33\x07" + data)


@given(st.binary(max_size=200))
def test_line_programs_of_any_kind(body: bytes) -> None:
    table = unit(address() + body)[0]
    everything(elf([Part(".text.k", code(8)), Part(".debug_line", table)], [Sym("k", ".text.k", 0, 128)]))


@pytest.mark.toolkit
@given(st.sampled_from(["sm_75", "sm_90", "sm_120"]), flips, st.floats(0.02, 1))
def test_real_cubins_flipped_and_cut(arch: str, changes: list[tuple[float, int]], kept: float) -> None:
    data = compile_text(SOURCE, "hostile.cu", arch)
    everything(flipped(data, changes))
    everything(flipped(data[: int(kept * len(data))], changes))


@pytest.mark.toolkit
@given(st.data())
def test_section_headers_of_real_cubins(data: st.DataObject) -> None:
    image = bytearray(compile_text(SOURCE, "hostile.cu", "sm_80"))
    table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, count - 1))
        field = data.draw(
            st.sampled_from([(0, "<I"), (4, "<I"), (24, "<Q"), (32, "<Q"), (40, "<I"), (44, "<I")])
        )
        bits = 32 if field[1] == "<I" else 64
        value = data.draw(st.one_of(st.integers(0, len(image)), st.integers(0, (1 << bits) - 1)))
        struct.pack_into(field[1], image, table + 64 * row + field[0], value)
    everything(bytes(image))


def test_shared_names_cannot_ask_for_more_text_than_there_is() -> None:
    long = "n" * 60_000
    image = elf([Part(".text.k", code(8))], [Sym(long, ".text.k", 0, 128)])
    # Two thousand more symbols, each naming a tail of the same long name.
    symbols = [Sym("k", ".text.k", 0, 128), Sym(long, ".text.k", 0, 128)]
    image = bytearray(elf([Part(".text.k", code(8))], symbols + [Sym("", ".text.k", 0, 16)] * 2_000))
    at = bytes(image).index(b"k\0" + long.encode())
    strings = at - 1 - len(b".text.k")
    table = next(
        row
        for index in range(5)
        if (row := struct.unpack_from("<IIQQQQ", image, struct.unpack_from("<Q", image, 40)[0] + 64 * index))[
            1
        ]
        == 2
    )
    assert strings > 0
    for index in range(2_000):
        struct.pack_into("<I", image, table[4] + 24 * (index + 3), 3 + index)
    with pytest.raises(CubinError, match="64 MiB"):
        read_cubin(bytes(image))


def test_ptx_text_without_an_end_costs_no_more_than_its_length() -> None:
    ptx = b".entry a\0" * 200_000 + b".minnctapersm 3\0" + b".entry b {.minnctapersm 4"
    image = elf(
        [Part(".text.a", code(1)), Part(".nv_debug_ptx_txt", ptx)],
        [Sym("a", ".text.a", 0, 16), Sym("b", ".text.a", 0, 16)],
    )
    facts = read_cubin(image).facts
    assert facts["a"].min_blocks_per_sm == 3
    assert facts["b"].min_blocks_per_sm is None
