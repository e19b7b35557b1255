# SPDX-License-Identifier: Apache-2.0
"""Shapes of compiled code, on the instructions that compilers emit for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.evidence.accesses import is_stack_slot
from gpadvisor.evidence.divisions import integer_divisions, written_divisions
from gpadvisor.evidence.double_excursions import DOUBLE_SUM, double_excursions
from gpadvisor.evidence.patterns import is_slow_arithmetic, math_sequences, opcode_index
from gpadvisor.model.advice import Match
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import Function
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules import fast_math, strength_reduction


def _function(text: str, arch: str = "sm_86") -> Function:
    return listing(text, arch).program.functions[0]


def test_opcodes_are_listed_in_order() -> None:
    function = _function("MOV R1, R2\nFADD R3, R1, R1\nMOV R4, R3\nEXIT")
    assert opcode_index(function)["MOV"] == (0, 2)


OPERATIONS = pytest.mark.parametrize(
    ("operation", "literals"),
    [
        ("DMUL R4, R4, 2", True),
        ("DFMA R4, R4, R6, R8", False),
        ("MOV R6, 0x9999999a\nMOV R7, 0x3fb99999\nDMUL R4, R4, R6", True),
        ("DMUL R4, R4, c[0x2][0x8]", True),
        ("DMUL R4, R4, R6", False),
        ("DADD R6, R4, R4\nDFMA R4, R6, R8, R6", True),  # 2.0 * x
        ("DADD R6, R4, R8\nDFMA R4, R6, R8, R6", False),
    ],
)


@pytest.mark.parametrize("librarys", [True, False])
def test_doubles_of_a_library_are_not_to_be_floats(librarys: bool) -> None:
    """As in curand_poisson(), which computes in doubles by itself."""
    body = "F2F.F64.F32 R4, R2 // 4\nDMUL R4, R4, 2 // 4\nF2F.F32.F64 R5, R4 // 4"
    context = context_of(listing(f"again:\n{body}\n@P0 BRA again // 4\nEXIT"))
    (function,) = context.program.functions
    inside = (SourceLocation("/usr/local/cuda/include/curand_poisson.h", 300),) if librarys else ()
    lines = tuple(None if line is None else replace(line, library=inside) for line in function.lines)
    program = replace(context.program, functions=(replace(function, lines=lines),))
    found = strength_reduction.OPTIMIZER.match(replace(context, program=program))
    assert isinstance(found, Match) is not librarys


@OPERATIONS
def test_declared_doubles_are_meant_where_they_are_fast(operation: str, literals: bool) -> None:
    widened = "".join(f"F2F.F64.F32 R{to}, R{to + 20}\n" for to in (4, 6, 8))
    text = f"again:\n{widened}{operation}\nF2F.F32.F64 R5, R4\n@P0 BRA again\nEXIT"
    found = strength_reduction.OPTIMIZER.match(context_of(listing(text, "sm_80")))
    assert isinstance(found, Match) is literals


@OPERATIONS
def test_the_suffix_of_literals_is_told_where_there_are_literals(operation: str, literals: bool) -> None:
    """As of positions that the source declares double: no literal is there to be written another way."""
    widened = "".join(f"F2F.F64.F32 R{to}, R{to + 20}\n" for to in (4, 6, 8))
    text = f"again:\n{widened}{operation}\nF2F.F32.F64 R5, R4\n@P0 BRA again\nEXIT"
    found = strength_reduction.OPTIMIZER.match(context_of(listing(text)))
    assert isinstance(found, Match)
    assert ("suffix f" in found.cure) is literals
    assert ("variables" in found.cure) is not literals
    assert found.remedies == (Remedy.IN_FLOAT,)


def test_a_division_of_integers_is_nothing_for_floats() -> None:
    division = "I2F.RP R4, R9\nMUFU.RCP R4, R4\nIADD3 R2, R4, 0xffffffe, RZ\nF2I.FTZ.U32.TRUNC.NTZ R3, R2"
    found = strength_reduction.OPTIMIZER.match(
        context_of(listing(f"again:\n{division}\n@P0 BRA again\nEXIT"))
    )
    assert isinstance(found, Match)
    assert "division" in found.title
    assert found.remedies == ()


def test_signed_and_uniform_divisions_are_told_with_their_divisor() -> None:
    signed = "I2F.RP R4, R9\nMUFU.RCP R4, R4\nIADD3 R2, R4, 0xffffffe, RZ\nF2I.FTZ.U32.TRUNC.NTZ R3, R2\nEXIT"
    (found,) = integer_divisions(_function(signed))
    assert (found.kind, found.operand, found.indices) == ("32-bit integer division", "R9", {0, 1, 2, 3})
    uniform = (
        "UI2F.U32.RP UR4, UR7\nMUFU.RCP R0, UR4\nIADD3 R2, PT, PT, R0, 0xffffffe, RZ\n"
        "F2I.FTZ.U32.TRUNC.NTZ R3, R2\nEXIT"
    )
    (found,) = integer_divisions(_function(uniform, "sm_120"))
    assert found.operand == "UR7"
    wide = "I2F.U64.RP R9, UR4\nMUFU.RCP R9, R9\nIADD3 R4, R9, 0x1ffffffe, RZ\nF2I.U64.TRUNC R4, R4\nEXIT"
    assert integer_divisions(_function(wide))[0].kind == "64-bit integer division"


@pytest.mark.parametrize(
    ("kernel", "source"),
    [("scale_12_gpu", False), ("nvkernel__Z6jacobimmPKdPd_F247L8_2", False), ("scale", True)],
)
def test_a_collapsed_loop_is_divided_by_the_compiler(kernel: str, source: bool) -> None:
    """After an OpenACC kernel: the division takes the numbers of three loops out of one."""
    text = (
        f".function {kernel}\nagain:\nI2F.U32.RP R4, c[0x0][0x160] // 13\nMUFU.RCP R4, R4 // 13\n"
        "F2I.FTZ.U32.TRUNC.NTZ R3, R4 // 13\nIMAD.HI.U32 R3, R3, R7, RZ // 13\n"
        "STG.E [R8.64], R3 // 15\n@P0 BRA again // 13\nEXIT"
    )
    (function,) = listing(text).program.functions
    loop = replace(function.loops[0], location=SourceLocation("kernel.cu", 13))
    function = replace(function, loops=(loop,))
    assert len(integer_divisions(function)) == 1
    assert bool(written_divisions(function)) is source


@pytest.mark.parametrize("guard", ["", "@!P1 "])
def test_a_register_that_is_written_anew_is_no_part_of_a_division(guard: str) -> None:
    """As the address of a load that an out-of-range element leaves out, in the negated divisor's register."""
    text = (
        "I2F.U32.RP R4, R6\nIADD3 R15, -R6, RZ, RZ\nMUFU.RCP R4, R4\nIADD3 R2, R4, 0xffffffe, RZ\n"
        "F2I.FTZ.U32.TRUNC.NTZ R9, R2\nIMAD R15, R15, R9, RZ\n"
        f"{guard}LDC.64 R14, c[0x0][0x168]\n{guard}IMAD.WIDE R14, R13, 0x4, R14\nEXIT"
    )
    (division,) = integer_divisions(_function(text))
    assert division.indices == {0, 1, 2, 3, 4, 5}


def test_a_conversion_or_a_reciprocal_alone_is_no_division() -> None:
    assert not integer_divisions(_function("I2F.U32 R4, R9\nMUFU.RCP R4, R4\nF2I R3, R4\nEXIT"))
    overwritten = "I2F.U32.RP R4, R9\nMOV R4, R8\nMUFU.RCP R4, R4\nF2I.U32 R3, R4\nEXIT"
    assert not integer_divisions(_function(overwritten))


@pytest.mark.parametrize(
    "other", ["MOV R6, 0x9999999a", "LDC.64 R6, c[0x2][0x8]", "F2F.F64.F32 R6, R3", "LDG.E R3, [R20.64]"]
)
def test_float_to_double_and_back(other: str) -> None:
    text = f"{other}\nF2F.F64.F32 R4, R2\nDFMA R4, R4, R6, R8\nF2F.F32.F64 R5, R4\nEXIT"
    assert {1, 2, 3} in [found.indices for found in double_excursions(_function(text))]


def test_a_product_of_a_float_that_is_cut_to_a_whole_number_is_no_double_that_is_meant() -> None:
    text = "F2F.F64.F32 R4, R2\nDMUL R4, R4, 255\nF2I.U32.F64.TRUNC R6, R4\nEXIT"
    assert [found.indices for found in double_excursions(_function(text))] == [{0, 1, 2}]


LOOPED_SUM = (
    "CS2R R4, SRZ\nagain:\n{load}\nF2F.F64.F32 R8, R2\nDADD R10, R8, R4\nF2F.F64.F32 R12, R3\n"
    "DADD R4, R10, R12\n@P0 BRA again\nF2F.F32.F64 R5, R4\nEXIT"
)


def test_a_double_sum_of_floats_is_followed_round_its_loop() -> None:
    (found,) = double_excursions(_function(LOOPED_SUM.format(load="LDG.E.64 R2, [R6.64]")))
    assert found.kind == DOUBLE_SUM
    assert found.indices == {2, 3, 4, 5, 7}


def test_a_sum_that_doubles_go_into_is_one_of_doubles() -> None:
    text = LOOPED_SUM.format(load="LDG.E.64 R14, [R6.64]\nDADD R4, R4, R14")
    assert all(len(found.indices) < 5 for found in double_excursions(_function(text)))


@pytest.mark.parametrize(
    "text",
    [
        "F2F.F64.F32 R4, R2\nDFMA R4, R4, R6, R8\nSTG.E.64 [R10.64], R4\nEXIT",  # stored as a double
        "F2F.F64.F32 R4, R2\nF2F.F32.F64 R5, R4\nEXIT",  # nothing computed in between
        "DADD R4, R6, R8\nF2F.F32.F64 R5, R4\nEXIT",  # comes from a double
        "LDS.64 R6, [R20]\nF2F.F64.F32 R4, R2\nDFMA R4, R4, R6, R8\nF2F.F32.F64 R5, R4\nEXIT",  # joined
    ],
)
def test_doubles_that_are_meant(text: str) -> None:
    assert not double_excursions(_function(text))


SEQUENCES = {
    "expf": (
        "FFMA.SAT R0, R2, R5, 0.5\nFFMA.RM R0, R0, R7, 12582913\nFADD R5, R0, -12583039\n"
        "FFMA R6, R2, 1.925963033500011079e-08, R5\nMUFU.EX2 R7, R6\nEXIT"
    ),
    "logf": (
        "IADD3 R4, R0, -0x3f2aaaab, RZ\nLOP3.LUT R5, R4, 0xff800000, RZ, 0xc0, !PT\nIADD3 R4, R0, -R5, RZ\n"
        "FADD R4, R4, -1\nFFMA R7, R4, R6, -0.5\nFFMA R7, R2, 0.69314718246459960938, R7\nEXIT"
    ),
    "powf": (
        "IADD3 R6, R7, -0x3f3504f3, RZ\nLOP3.LUT R6, R6, 0xff800000, RZ, 0xc0, !PT\nIADD3 R7, R7, -R6, RZ\n"
        "FADD R8, R7, 1\nMUFU.RCP R8, R8\nFFMA R5, R4, R8, 0.69314718246459960938\nEXIT"
    ),
    "sinf/cosf": (
        "FMUL R3, R0, 0.63661974668502807617\nF2I.NTZ R3, R3\nI2FP.F32.S32 R7, R3\n"
        "FFMA R6, R7, -1.5707962512969970703, R0\nFFMA R6, R7, -7.5497894158615963534e-08, R6\n"
        "FFMA R8, R7, -5.3903029534742383927e-15, R6\nEXIT"
    ),
    "float division": (
        "MUFU.RCP R6, R3\nFCHK P0, R0, R3\nFFMA R7, -R3, R6, 1\nFFMA R7, R6, R7, R6\n@!P0 BRA over\n"
        "CALL.REL.NOINC slow\nover:\nEXIT"
    ),
    "square root": (
        "IADD3 R4, R0, -0xd000000, RZ\nMUFU.RSQ R5, R0\nISETP.GT.U32.AND P0, PT, R4, 0x727fffff, PT\n"
        "@!P0 BRA fast\nCALL.REL.NOINC slow\nfast:\nFMUL.FTZ R3, R0, R5\nFFMA R5, R3, R5, R3\nEXIT"
    ),
    "double division": (
        "MUFU.RCP64H R3, R5\nDFMA R8, -R4, R2, 1\nDFMA R8, R8, R8, R8\n@P0 BRA over\nCALL.REL.NOINC slow\n"
        "over:\nEXIT"
    ),
    "double division by a constant": (
        "MUFU.RCP64H R3, 12\nDFMA R8, -R4, R2, 1\nDFMA R8, R8, R8, R8\n@P0 BRA over\nCALL.REL.NOINC slow\n"
        "over:\nEXIT"
    ),
    "sinf/cosf slow path": (
        "@!P0 BRA over\nFSETP.NEU.AND P0, PT, |R0|, +INF , PT\nLDG.E.CONSTANT R5, [R6.64]\n"
        "IMAD.WIDE.U32 R4, R5, R8, RZ\nI2F.F64.S64 R4, R6\nDMUL R4, R4, R10\nF2F.F32.F64 R4, R4\nover:\nEXIT"
    ),
}


@pytest.mark.parametrize("kind", sorted(SEQUENCES))
def test_library_math(kind: str) -> None:
    found = {sequence.kind: sequence for sequence in math_sequences(_function(SEQUENCES[kind]))}
    assert kind in found
    assert len(found[kind].indices) >= 4


@pytest.mark.parametrize(
    "text",
    [
        "FMUL R5, R0, 1.4426950216293334961\nMUFU.EX2 R7, R5\nEXIT",  # __expf
        "FMUL.RZ R8, R0, 0.15915493667125701904\nMUFU.SIN R4, R8\nEXIT",  # __sinf
        "MUFU.RCP R9, R0\nFMUL R1, R2, R9\nEXIT",  # __fdividef
        "FFMA.SAT R0, R2, R5, 0.5\nMUFU.RCP R7, R0\nEXIT",  # __saturatef, then something else
        "FFMA.SAT R0, R2, R5, 0.5\nMUFU.LG2 R1, R0\nFMUL R1, R1, R3\nMUFU.EX2 R7, R1\nEXIT",  # and __powf
        "@!P0 BRA over\nFSETP.NEU.AND P0, PT, |R0|, +INF , PT\nFADD R1, R1, R2\nover:\nEXIT",  # isinf
    ],
)
def test_fast_forms_and_own_code_are_not_library_math(text: str) -> None:
    assert not math_sequences(_function(text))


def test_a_fixed_place_of_the_frame_is_no_index() -> None:
    function = _function(
        "STL [R1], R2\nSTL.64 [R1+0x10], R2\nLDL R3, [R1+-0x8]\nLDL R4, [R12]\nLDL R5, [R1+R6]\nEXIT"
    )
    assert [is_stack_slot(instruction) for instruction in function.instructions] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


def test_slow_units() -> None:
    function = _function(
        "MUFU.SQRT R1, R2\nF2I R3, R4\nDADD R4, R6, R8\nPOPC R1, R2\nFFMA R1, R2, R3, R4\nEXIT"
    )
    found = [is_slow_arithmetic(instruction) for instruction in function.instructions]
    assert found[:3] == [True, True, True]
    assert found[4:] == [False, False]


@pytest.mark.parametrize(
    ("divisor", "cure"), [("12", "multiply by the reciprocal of the constant"), ("R5", "no fast forms")]
)
def test_a_division_of_doubles_by_a_constant_is_a_product(divisor: str, cure: str) -> None:
    text = (
        SEQUENCES["double division"]
        .replace("R3, R5", f"R3, {divisor}")
        .replace("DFMA R8, -R4", "a| DFMA R8, -R4")
    )
    context = context_of(listing(text), [Row("wait", "a", 400, 300), Row("selected", "a", 100)])
    found = fast_math.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert cure in found.advice
    assert "--use_fast_math" not in found.advice
    assert found.adjustments[0].expected == pytest.approx(0.95 if divisor == "12" else 0.0)


def test_lines_stand_before_addresses_in_a_list_of_places() -> None:
    """As in a report of whose instructions a few have no line."""
    steps = "MUFU.RCP64H R3, 12{line}\nDFMA R8, -R4, R2, 1{line}\nDFMA R8, R8, R8, R8{line}\n"
    around = "@P0 BRA over{n}{line}\nCALL.REL.NOINC slow{line}\nover{n}:\n"
    text = f"{(steps + around).format(line='', n=1)}a| {(steps + around).format(line=' // 21', n=2)}EXIT"
    context = context_of(listing(text), [Row("wait", "a", 400, 300), Row("selected", "a", 100)])
    found = fast_math.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert "the constant at kernel.cu:21 and 1 more place" in found.cure


_DIVISION = (
    "I2F.U32.RP R4, c[0x0][0x160] // 13\nMUFU.RCP R4, R4 // 13\nF2I.FTZ.U32.TRUNC.NTZ R3, R4 // 13\n"
    "IMAD.HI.U32 R3, R3, R7, RZ // 13\n"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{_DIVISION}again:\nFADD R1, R1, R2\n@P0 BRA again\n{_DIVISION}EXIT", False),  # once per thread
        (f"outer:\n{_DIVISION}again:\nFADD R1, R1, R2\n@P0 BRA again\n@P1 BRA outer\nEXIT", False),
        (f"again:\n{_DIVISION}FADD R1, R1, R2\n@P0 BRA again\nEXIT", True),
        (f"{_DIVISION}{_DIVISION}EXIT", True),
        (f"{_DIVISION}EXIT", False),
    ],
)
def test_divisions_beside_loops_are_not_told_without_samples(text: str, told: bool) -> None:
    """As a merge of 3 ms that divides once per thread."""
    found = strength_reduction.OPTIMIZER.match(replace(context_of(listing(text), []), blame=None))
    assert isinstance(found, Match) == told
