# SPDX-License-Identifier: Apache-2.0
"""Damaged code, text and listings: an Instruction for every 16 bytes, or a SassError, and nothing else."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import given
from hypothesis import strategies as st

from gpadvisor.errors import SassError
from gpadvisor.model.instruction import RegisterFile, register_file
from gpadvisor.sass import (
    SassLine,
    decode,
    dump_listing,
    load_listing,
    parse_cuobjdump,
    parse_hex_text,
    parse_json,
)
from gpadvisor.sass.opcodes import opcode_table

ARCHITECTURES = st.sampled_from(
    ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90a", "sm_100", "sm_121", "sm_999", "", "x"]
)
TOKENS = st.sampled_from(
    [
        "R0", "R254", "R255", "R999999", "RZ", "-R4.reuse.H0_H0", "|R5|", "P0", "!P6", "PT", "P9", "UP1",
        "UR63", "UR255", "URZ", "[R2.64+UR4+0x10]", "[UR4]", "desc[UR4][R2.64]", "gdesc[UR8]", "tmem[UR7]",
        "cx[UR4][0x10]", "c[0x0][R4+0x160]", "[", "]", "{5,4}", "0x7fffffff", "-1.5e+30", "+INF", "SB0", "B0",
        "PR", "2D", "ARRAY_CUBE", "`(.L_x_3)", "32@lo((a + b))", "0xf", "SR_TID.X", ".", "-", "",
    ]
)  # fmt: skip
MODIFIERS = st.sampled_from(
    [
        "", ".64", ".E.128", ".WIDE", ".16816.F32", ".64x256x16.F32", ".x128", ".SCR.LL", ".LE", ".REL.NOINC",
        ".F64.S64", "..", ".ENL2.256",
    ]
)  # fmt: skip
OPCODES = st.one_of(st.sampled_from(sorted(opcode_table())), st.text(max_size=8))
LINES = st.builds(
    SassLine,
    st.one_of(st.none(), st.sampled_from(["@P0", "@!PT", "@UP3", "@"]), st.text(max_size=4)),
    st.builds(str.__add__, OPCODES, MODIFIERS),
    st.one_of(st.lists(TOKENS, max_size=7).map(", ".join), st.text(max_size=40)),
)
WORDS = st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


@given(ARCHITECTURES, st.lists(st.tuples(LINES, WORDS), max_size=12))
def test_decode_gives_an_instruction_for_every_16_bytes(
    arch: str, rows: list[tuple[SassLine, tuple[int, int]]]
) -> None:
    code = b"".join(struct.pack("<QQ", *words) for _, words in rows)
    instructions, problems = decode(arch, code, [line for line, _ in rows])
    assert [i.pc for i in instructions] == [16 * k for k in range(len(rows))]
    assert bool(problems) == any(not i.info.known for i in instructions)
    for instruction in instructions:
        for name in (*instruction.defs, *instruction.uses):
            assert 0 <= name & 255 < 255
            assert register_file(name) is not RegisterFile.BARRIER
        assert instruction.target is None or 0 <= instruction.target < len(code)
        assert all(0 <= wait < 6 for wait in instruction.control.waits)


@given(st.binary(max_size=64), st.lists(LINES, max_size=4))
def test_decode_refuses_what_does_not_fit(code: bytes, lines: list[SassLine]) -> None:
    if len(code) == 16 * len(lines):
        assert len(decode("sm_86", code, lines)[0]) == len(lines)
        return
    with contextlib.suppress(SassError):
        decode("sm_86", code, lines)
        raise AssertionError("text and code of different sizes were accepted")


TEXT = """
\t.section\t.text.k,"ax",@progbits
.text.k:
        /*0000*/                   MOV R1, c[0x0][0x28] ;                    /* 0x00000a0000017a02 */
                                                                             /* 0x000fe40000000f00 */
.L_x_0:
        /*0010*/              @!P0 BRA `(.L_x_0) ;                           /* 0xffffffe000008947 */
\t\tFunction : q
        /*0000*/                   EXIT ;                                    /* 0x000000000000794d */
"""
JSON = (
    '[{},[{"function-name":"k","start":0,"sass-instructions":'
    '[{"opcode":"EXIT","operands":"","predicate":"@P0"}]}]]'
)


def _mutate(text: str, edits: list[tuple[int, str]]) -> str:
    for place, piece in edits:
        at = place % (len(text) + 1)
        text = text[:at] + piece + text[at + len(piece) // 2 :]
    return text


PIECES = st.sampled_from(["/*0010*/", "/*", "*/", ";", "`(", ".L_x_0@srel", '"', "[", "\n", "9999999"])
EDITS = st.lists(st.tuples(st.integers(0, 2000), st.one_of(st.text(max_size=6), PIECES)), max_size=8)


@given(EDITS)
def test_texts(edits: list[tuple[int, str]]) -> None:
    for parse, text in ((parse_hex_text, TEXT), (parse_cuobjdump, TEXT), (parse_json, JSON)):
        with contextlib.suppress(SassError):
            listing = parse(_mutate(text, edits))
            assert load_listing(dump_listing(listing)) == listing


@given(EDITS, st.binary(max_size=60))
def test_stores(edits: list[tuple[int, str]], noise: bytes) -> None:
    stored = dump_listing(parse_hex_text(TEXT)).decode()
    for data in (_mutate(stored, edits).encode("utf-8", "surrogatepass"), noise):
        with contextlib.suppress(SassError):
            load_listing(data)
