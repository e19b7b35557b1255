# SPDX-License-Identifier: Apache-2.0
"""Every text form gives the same lines; damaged ones give one sentence."""

from __future__ import annotations

import json

import pytest

from gpadvisor.errors import SassError
from gpadvisor.sass import SassLine, dump_listing, load_listing, parse_cuobjdump, parse_hex_text, parse_json
from gpadvisor.sass.listing import BLANK, MAX_LINES, UNNAMED


def _json(*instructions: dict[str, object], name: str = "_Z1kPf", start: int = 0) -> str:
    function = {"function-name": name, "start": start, "length": 16, "sass-instructions": list(instructions)}
    return json.dumps([{"SM": {"version": {"major": 8, "minor": 6}}}, [function]])


LISTING = (
    SassLine(None, "IMAD.MOV.U32", "R1, RZ, RZ, c[0x0][0x28]"),
    SassLine("@!P0", "LDG.E.64.CONSTANT", "R4, [R2.64+0x8]"),
    SassLine("@P1", "BRA", "0x10"),
    SassLine(None, "BRX", "R4 -0x680"),
    SassLine(None, "MOV", "R20, 32@lo((_Z1kPf + 0x40))"),
    SassLine(None, "CALL.REL.NOINC", "$_Z1kPf$helper"),
    SassLine(None, "EXIT", ""),
)

NVDISASM = """
//--------------------- .nv.info.{name}  --------------------------
\t.section\t.nv.info.{name},"",@"SHT_CUDA_INFO"
        /*0000*/ \t.byte\t0x04, 0x2f
.L_0:
//--------------------- .text.{name}      --------------------------
\t.section\t.text.{name},"ax",@progbits
\t.align\t128
        .global         {name}
        .type           {name},@function
{name}:
.text.{name}:
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;   /* 0x00000a00ff017624 */
                                                                             /* 0x000fe400078e00ff */
{label}:
        /*0010*/              @!P0 LDG.E.64.CONSTANT R4, [R2.64+0x8] ;       /* 0x0000080402048981 */
                                                                             /* 0x000ea200081e1b00 */
\t//## File "/home/u/k.cu", line 12
        /*0020*/               @P1 BRA `({label}) ;                          /* 0xffffffe000001947 */
        /*0030*/                   BRX R4 -0x680      (*"BRANCH_TARGETS {label},{label}"*); /* 0x0 */
{end}:
        /*0040*/                   MOV R20, 32@lo(({name} + {end}@srel)) ;   /* 0x0 */
        /*0050*/                   CALL.REL.NOINC `($_Z1kPf$helper) ;        /* 0x0 */
        /*0060*/                   EXIT ;                                    /* 0x000000000000794d */
"""


@pytest.mark.parametrize(("label", "end"), [(".L_x_12", ".L_x_3"), (".L_1", ".L_2"), (".L_x_a$b", ".L_x_9")])
def test_text_of_nvdisasm(label: str, end: str) -> None:
    text = NVDISASM.format(name="_Z1kPf", label=label, end=end)
    assert parse_hex_text(text) == {"_Z1kPf": LISTING}


def test_text_without_encodings_and_without_section_directive() -> None:
    text = NVDISASM.format(name="_Z1kPf", label=".L_x_0", end=".L_x_1")
    rows = [row.partition("/* 0x")[0].rstrip() for row in text.splitlines() if "progbits" not in row]
    assert parse_hex_text("\n".join(rows))["_Z1kPf"] == LISTING


def test_raw_binary_has_no_names() -> None:
    text = """
\t.headerflags\t@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM86 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM86)"
        /*0000*/                   CALL.REL.NOINC 0x1390 ;           /* 0x0000129000007944 */
                                                                     /* 0x003fea0003c00000 */
        /*0010*/               @P0 BRA P1, 0x2e0 ;                   /* 0x0000002000000947 */
"""
    lines = (SassLine(None, "CALL.REL.NOINC", "0x1390"), SassLine("@P0", "BRA", "P1, 0x2e0"))
    assert parse_hex_text(text) == {UNNAMED: lines}
    assert parse_hex_text(text, section="_Z1kPf") == {"_Z1kPf": lines}


def test_cuobjdump_names_functions() -> None:
    text = """
\tcode for sm_86

\t\tFunction : _Z1aPf
\t.headerflags\t@"EF_CUDA_SM86"
        /*0000*/                   MOV R1, c[0x0][0x28] ;    /* 0x00000a0000017a02 */
                                                             /* 0x000fe40000000f00 */
\t\t..........
\t\tFunction : _Z1bPf
        /*0000*/                   EXIT ;                    /* 0x000000000000794d */
"""
    assert parse_cuobjdump(text) == {
        "_Z1aPf": (SassLine(None, "MOV", "R1, c[0x0][0x28]"),),
        "_Z1bPf": (SassLine(None, "EXIT", ""),),
    }


@pytest.mark.parametrize(
    "annotation",
    ["&req={0,1} &wr=0x2 ?WAIT5_END_GROUP", "?trans1", "&rd=0x1 ?WAIT13_END_GROUP", "?WAIT1_END_GROUP"],
)
def test_scheduling_annotations_are_stripped(annotation: str) -> None:
    text = f".text.k:\n /*0000*/  FADD R1, |R2|, -R3.reuse {annotation} ;\n /*0010*/  EXIT {annotation} ;"
    assert parse_hex_text(text)["k"] == (
        SassLine(None, "FADD", "R1, |R2|, -R3.reuse"),
        SassLine(None, "EXIT", ""),
    )
    found = parse_json(_json({"opcode": "FADD", "operands": f"R1,R2,R3 {annotation}"}))
    assert found["_Z1kPf"] == (SassLine(None, "FADD", "R1,R2,R3"),)


def test_json() -> None:
    text = _json(
        {"opcode": "S2R", "operands": "R0,SR_TID.X"},
        {"predicate": "@!P0", "opcode": "EXIT", "other-attributes": {"control-flow": "True"}},
    )
    assert parse_json(text) == {
        "_Z1kPf": (SassLine(None, "S2R", "R0,SR_TID.X"), SassLine("@!P0", "EXIT", ""))
    }


def test_json_quirks_become_what_the_text_prints() -> None:
    text = _json(
        {"opcode": "LDG.E", "operands": "R11desc,[UR4][R2.64+0x1c]"},
        {"opcode": "LDGSTS.E.128", "operands": "[R28+0x800][R10.64]"},
        {"opcode": "P2R", "predicate": "PR", "operands": "R10,RZ,0x8"},
        {"opcode": "P2R", "operands": "R10,PR,RZ,0x8"},
        {"opcode": "STG.E", "operands": "desc,[UR4][R2.64],R3"},
        {"opcode": "LDG.E.64.SYS", "operands": "R10[R10.64+0x20]"},
        {"opcode": "LDG.E", "operands": "R110,[R10.64+UR4]"},
        {"opcode": "LDC", "operands": "R110,c[0x0][R4]"},
    )
    assert all(line.predicate is None for line in parse_json(text)["_Z1kPf"])
    assert [line.operands for line in parse_json(text)["_Z1kPf"]] == [
        "R11,desc[UR4][R2.64+0x1c]",
        "[R28+0x800],[R10.64]",
        "R10,PR,RZ,0x8",
        "R10,PR,RZ,0x8",
        "desc[UR4][R2.64],R3",
        "R10,[R10.64+0x20]",
        "R110,[R10.64+UR4]",
        "R110,c[0x0][R4]",
    ]


def test_nvdisasm_12_lists_device_functions_behind_their_kernel() -> None:
    def function(name: str, start: int, *opcodes: str) -> dict[str, object]:
        lines = [{"opcode": opcode} for opcode in opcodes]
        return {"function-name": name, "start": start, "length": 64, "sass-instructions": lines}

    functions = [
        function("_Z1a", 0, "NOP", "EXIT"),
        function("$_Z1a$_Z6helper", 32, "RET"),
        function("$__internal_0_$__cuda_sm20_div", 48, "NOP"),
        function("_Z1b", 0, "EXIT"),
        function("$_Z1b$_Z6helper", 16, "RET"),
    ]
    listing = parse_json(json.dumps([{}, functions]))
    assert {name: [line.opcode for line in lines] for name, lines in listing.items()} == {
        "_Z1a": ["NOP", "EXIT", "RET", "NOP"],
        "_Z1b": ["EXIT", "RET"],
    }


def test_a_gap_is_filled_with_blank_lines() -> None:
    assert parse_json(_json({"opcode": "EXIT"}, start=32))["_Z1kPf"] == (
        BLANK,
        BLANK,
        SassLine(None, "EXIT", ""),
    )
    assert parse_hex_text(".text.k:\n /*0020*/ EXIT ;")["k"] == (BLANK, BLANK, SassLine(None, "EXIT", ""))


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[1]", "[{}, 3]", "[{}, [3]]", '[{}, [{"function-name": "k"', "[" * 100_000,
        _json({"operands": "R1"}), _json({"opcode": "MOV", "operands": 3}), _json(start=-16),
        _json({"opcode": "EXIT"}, start=16 * (MAX_LINES + 1)),
        '[{},[{"function-name":"k","sass-instructions":[4]}]]',
    ],
)  # fmt: skip
def test_damaged_json_is_one_sentence(text: str) -> None:
    with pytest.raises(SassError) as error:
        parse_json(text)
    assert "\n" not in str(error.value)


def test_a_far_offset_is_refused() -> None:
    with pytest.raises(SassError, match="fewer functions"):
        parse_hex_text(".text.k:\n /*ffffffffff0*/ EXIT ;")


def test_storing_and_loading() -> None:
    listing = {"a": LISTING, "b": (*LISTING, BLANK), "empty": ()}
    data = dump_listing(listing)
    assert load_listing(data) == listing
    assert data.count(b"IMAD.MOV.U32") == 1


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe", b"[]", b"{}", b'{"format":"other","version":1}',
        dump_listing({"a": LISTING}).replace(b'"version":1', b'"version":2'),
        dump_listing({"a": LISTING}).replace(b'"a":[0', b'"a":[99'),
        dump_listing({"a": LISTING}).replace(b'"a":[0', b'"a":[-1'),
        dump_listing({"a": LISTING}).replace(b'"EXIT"', b"7"),
    ],
)  # fmt: skip
def test_a_damaged_store_is_one_sentence(data: bytes) -> None:
    with pytest.raises(SassError):
        load_listing(data)
