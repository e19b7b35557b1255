# SPDX-License-Identifier: Apache-2.0
"""Line programs of every version, with inline chains, relocated, loaded, and damaged."""

from __future__ import annotations

import struct

import pytest
from tests.cubin_parts import (
    COPY,
    END,
    SECTION,
    Part,
    Sym,
    address,
    advance,
    code,
    elf,
    file,
    inlined,
    line,
    special,
    uleb,
    unit,
)

from gpadvisor.cubin import Cubin, line_table_damage, read_cubin, section_lines
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame, LineEntry

LOADED = 0x7FD5_24FB_1100
K = "/src/k.cu"
INC = "/src/inc.cuh"


def at(file_: str, line_: int, *frames: InlineFrame) -> LineEntry:
    return LineEntry(SourceLocation(file_, line_), frames)


def cubin_of(
    program: bytes,
    *,
    names: bytes = b"\0",
    relocated: bool = True,
    rela: bool = False,
    base: int = 0,
    in_place: int = 0,
    others: int = 0,
    **shape: object,
) -> Cubin:
    """A cubin of one kernel of eight instructions whose program starts with its address."""
    table, start = unit(address(in_place) + program, **shape)  # type: ignore[arg-type]  # passed on as given
    parts = [Part(".text.k", code(8)), *(Part(f".text.o{i}", code(8)) for i in range(others))]
    parts += [Part(".debug_line", table), Part(".debug_str", names)]
    symbols = [
        Sym("k", ".text.k", base, 128),
        Sym(".text.k", ".text.k", base, kind=SECTION, other=0),
        *(Sym(f"o{i}", f".text.o{i}", 0, 128) for i in range(others)),
    ]
    if relocated:
        entry = struct.pack("<QQ", start + 3, 1 << 32 | 2)
        parts.append(
            Part(".rela.debug_line", entry + struct.pack("<q", 0)) if rela else Part(".rel.debug_line", entry)
        )
    return read_cubin(elf(parts, symbols))


def lines_of(cubin: Cubin) -> tuple[LineEntry | None, ...]:
    return section_lines(cubin, cubin.sections[0])


PLAIN = line(9) + COPY + advance(32) + line(2) + COPY + advance(32) + COPY + advance(64) + END


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("rela", [False, True])
def test_rows_hold_until_the_next_row(version: int, wide: bool, rela: bool) -> None:
    files = (("other.cu", 0), ("k.cu", 1)) if version == 5 else (("k.cu", 1),)
    directories = ("/cwd", "/src") if version == 5 else ("/src",)
    cubin = cubin_of(PLAIN, version=version, wide=wide, rela=rela, files=files, directories=directories)
    assert cubin.has_line_info
    assert line_table_damage(cubin) is None
    assert lines_of(cubin) == (at(K, 10),) * 2 + (at(K, 12),) * 6


@pytest.mark.parametrize(
    ("folder", "name", "path"),
    [
        (
            r"/m\303\274ller/\347\237\251 \360\237\232",
            "200.cu",
            "/müller/矩 🚀.cu",
        ),  # as nvcc and ptxas write it
        (r"/\303\274", "200.cu", "/ü/200.cu"),
        ("/src", "müller.cu", "/src/müller.cu"),
        (r"C:\300\200", "a.cu", r"C:\300\200/a.cu"),  # folders of these names: no UTF-8
    ],
)
def test_names_beyond_ascii_are_read_as_they_are(folder: str, name: str, path: str) -> None:
    cubin = cubin_of(PLAIN, directories=(folder,), files=((name, 1),))
    assert lines_of(cubin)[0] == at(path, 10)


def test_without_a_table_there_are_no_lines() -> None:
    cubin = read_cubin(elf([Part(".text.k", code(3))], [Sym("k", ".text.k", 0, 48)]))
    assert not cubin.has_line_info
    assert lines_of(cubin) == (None,) * 3


def test_code_behind_the_end_of_a_sequence_has_no_line() -> None:
    cubin = cubin_of(COPY + advance(48) + END)
    assert lines_of(cubin) == (at(K, 1),) * 3 + (None,) * 5


def test_of_several_rows_at_one_address_the_last_counts() -> None:
    cubin = cubin_of(line(4) + COPY + line(1) + COPY + file(2) + COPY + advance(128) + END)
    assert lines_of(cubin) == (at(INC, 6),) * 8


def test_every_opcode_moves_as_it_should() -> None:
    fixed = b"\x09" + struct.pack("<H", 16)
    const_add = b"\x08"  # (255 - 13) / 14 = 17 bytes
    program = COPY + b"\x05" + uleb(7) + b"\x06\x07\x0a" + fixed + special(0, 1)
    program += const_add + advance(15) + special(0, 4) + b"\x0c\x05" + special(16, -2) + advance(64) + END
    cubin = cubin_of(program)
    assert lines_of(cubin) == (at(K, 1), *[at(K, 2)] * 2, at(K, 6), *[at(K, 4)] * 4)


def test_unknown_extended_opcodes_are_skipped_by_their_length() -> None:
    cubin = cubin_of(b"\0\x03\x91\x81\x01" + COPY + b"\0\x05\x80abcd" + advance(128) + END)
    assert lines_of(cubin) == (at(K, 1),) * 8


def test_a_chain_names_callee_and_call_site_outwards() -> None:
    names = b"_Z5outerf\0_Z5innerf\0"
    program = line(8) + COPY  # row 1: k.cu:9
    program += advance(16) + file(2) + inlined(1, 0) + line(11) + COPY  # row 2: inc.cuh:20 in outer
    program += inlined(2, 10) + line(-17) + COPY  # row 3: inc.cuh:3 in inner
    program += advance(16) + file(1) + inlined(0, 0) + line(7) + COPY  # row 4: k.cu:10
    program += advance(96) + END
    outer = InlineFrame("outer(float)", SourceLocation(K, 9))
    inner = InlineFrame("inner(float)", SourceLocation(INC, 20))
    assert lines_of(cubin_of(program, names=names)) == (at(K, 9), at(INC, 3, inner, outer), *[at(K, 10)] * 6)


def test_contexts_count_rows_of_their_own_sequence() -> None:
    first = line(40) + COPY + advance(16) + COPY + advance(16) + END
    second = address(64) + line(4) + COPY + file(2) + inlined(1) + line(1) + COPY + advance(64) + END
    cubin = cubin_of(first + second, names=b"f\0", relocated=False)
    frame = InlineFrame("f", SourceLocation(K, 5))
    assert lines_of(cubin) == (*[at(K, 41)] * 2, None, None, *[at(INC, 6, frame)] * 4)


def test_line_zero_belongs_to_the_call() -> None:
    program = line(6) + COPY + file(2) + inlined(1) + line(-7) + COPY + advance(64)
    program += inlined(0) + COPY + advance(64) + END
    assert lines_of(cubin_of(program, names=b"f\0")) == (at(K, 7),) * 4 + (None,) * 4


@pytest.mark.parametrize("context", [2, 3, 1 << 40])
def test_a_context_that_is_no_earlier_row_ends_the_chain(context: int) -> None:
    program = COPY + inlined(context, 99) + line(1) + COPY + advance(128) + END
    assert lines_of(cubin_of(program)) == (at(K, 2),) * 8


def test_chains_are_bounded() -> None:
    program = COPY + b"".join(inlined(row) + COPY for row in range(1, 2000)) + advance(128) + END
    entry = lines_of(cubin_of(program))[0]
    assert entry is not None
    assert len(entry.inline) == 256


@pytest.mark.parametrize("relocated", [True, False])
@pytest.mark.parametrize("in_place", [LOADED, 0])
def test_loaded_images(relocated: bool, in_place: int) -> None:
    cubin = cubin_of(PLAIN, base=LOADED, in_place=in_place, relocated=relocated, others=1)
    expected = (at(K, 10),) * 2 + (at(K, 12),) * 6
    assert lines_of(cubin) == (expected if relocated or in_place else (None,) * 8)
    assert section_lines(cubin, cubin.sections[1]) == (None,) * 8


def test_a_bare_address_says_nothing_where_there_are_several_sections() -> None:
    cubin = cubin_of(PLAIN, relocated=False, others=1)
    assert [set(section_lines(cubin, s)) for s in cubin.sections] == [{None}, {None}]


@pytest.mark.parametrize(
    ("name", "directory", "path"),
    [
        ("k.cu", 1, "/src/k.cu"),
        ("k.cu", 0, "k.cu"),
        ("/abs/k.cu", 1, "/abs/k.cu"),
        ("k.cu", 9, "k.cu"),
        ("int.jl", 2, "./int.jl"),
    ],
)
def test_paths_join_as_the_disassembler_joins_them(name: str, directory: int, path: str) -> None:
    cubin = cubin_of(PLAIN, files=((name, directory),), directories=("/src", "."))
    entry = lines_of(cubin)[0]
    assert entry is not None
    assert entry.location.file == path


def test_an_unknown_file_number_is_no_location() -> None:
    assert lines_of(cubin_of(file(7) + COPY + advance(128) + END)) == (None,) * 8


def test_files_may_be_defined_on_the_way() -> None:
    define = b"\x03late.cu\0" + uleb(1) + b"\0\0"
    program = b"\0" + uleb(len(define)) + define + file(3) + COPY + advance(128) + END
    assert lines_of(cubin_of(program)) == (at("/src/late.cu", 1),) * 8


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (b"\x02" + b"\xff" * 12, "no end"),
        (b"\0\x00", "wrong length"),
        (b"\0\x7f\x02", "wrong length"),
        (b"\x09\x01", "ends early"),
        (b"\0\x03\x03ab", "no end"),
    ],
)
def test_what_stands_before_the_damage_is_used(damage: bytes, words: str) -> None:
    cubin = cubin_of(COPY + advance(64) + END + address(64) + COPY + damage, relocated=False)
    assert lines_of(cubin) == (at(K, 1),) * 4 + (None,) * 4
    assert words in str(line_table_damage(cubin))


@pytest.mark.parametrize(
    ("position", "value"),
    [(0, b"\xf0\xff\xff\x00"), (4, b"\x09\x00"), (6, b"\xff\xff\xff\x00"), (13, b"\x00")],
)
def test_a_damaged_header_gives_no_lines(position: int, value: bytes) -> None:
    table = bytearray(unit(address() + PLAIN)[0])
    table[position : position + len(value)] = value
    parts = [Part(".text.k", code(8)), Part(".debug_line", bytes(table))]
    cubin = read_cubin(elf(parts, [Sym("k", ".text.k", 0, 128)]))
    assert lines_of(cubin) == (None,) * 8
    assert line_table_damage(cubin) is not None


def test_backward_addresses_do_not_undo_what_was_covered() -> None:
    program = COPY + advance(64) + line(1) + COPY + address(16) + line(1) + COPY + advance(112) + END
    cubin = cubin_of(program, relocated=False)
    assert len(lines_of(cubin)) == 8
