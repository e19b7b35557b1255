# SPDX-License-Identifier: Apache-2.0
"""Functions of a section, callees, loops and their lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.assembly import assemble, function_of
from tests.cubin_parts import Part, Sym, code, elf

from gpadvisor.analyzer.build import build_program
from gpadvisor.analyzer.flow import control_transfers
from gpadvisor.analyzer.partition import split_section
from gpadvisor.cubin import CodeSection, CodeSymbol, Lines, read_cubin
from gpadvisor.model.ids import LoopId, SourceLocation
from gpadvisor.model.problem import Problem, ProblemCode
from gpadvisor.model.program import FunctionKind, InlineFrame, LineEntry
from gpadvisor.sass.listing import SassLine


def section(*symbols: tuple[str, int, bool]) -> CodeSection:
    """A section with symbols at instruction indices."""
    return CodeSection(
        "k", 1, b"", 0, tuple(CodeSymbol(name, at * 16, 0, entry, 0) for name, at, entry in symbols)
    )


def parts(text: str, *symbols: tuple[str, int, bool]) -> list[tuple[str, FunctionKind, int, int]]:
    """The functions of a section."""
    code = assemble(text)
    return [
        (part.name, part.kind, part.start, part.end)
        for part in split_section(section(*symbols), code, control_transfers(code))
    ]


def test_symbols_split_a_section() -> None:
    text = "CALL.REL.NOINC helper\nEXIT\nhelper: MOV R0, R1\nRET.REL.NODEC R20\nMOV R2, R3\nRET.REL.NODEC R20"
    assert parts(
        text, ("k", 0, True), ("$k$_Z1hv", 2, False), ("$k$__cuda_sm20_div_rn_f64_full", 4, False)
    ) == [
        ("k", FunctionKind.KERNEL, 0, 2),
        ("$k$_Z1hv", FunctionKind.DEVICE, 2, 4),
        ("$k$__cuda_sm20_div_rn_f64_full", FunctionKind.MATH_HELPER, 4, 6),
    ]


def test_a_called_place_without_symbol_is_a_function_if_it_returns() -> None:
    text = "CALL.REL.NOINC helper\nEXIT\nhelper: MOV R0, R1\nRET.REL.NODEC R20"
    assert parts(text, ("k", 0, True)) == [
        ("k", FunctionKind.KERNEL, 0, 2),
        ("k+0x20", FunctionKind.DEVICE, 2, 4),
    ]


def test_a_call_that_never_returns_is_a_branch() -> None:
    text = "top: MOV R0, R1\n@!P0 CALL.REL.NOINC out\nBRA top\nout: STG.E [R2.64], R0\nEXIT"
    code = assemble(text)
    flows = control_transfers(code)
    found = split_section(section(("k", 0, True)), code, flows)
    assert [(part.start, part.end) for part in found] == [(0, 5)]
    assert flows[1].name == "BRANCH"


def test_copies_of_a_function_under_one_name_are_one() -> None:
    """What was counted there would else be in each of them."""
    copy = Part(".text.min", code(2))
    cubin = read_cubin(
        elf([Part(".text.k", code(2)), copy, copy], [Sym("k", ".text.k"), Sym("min", ".text.min")])
    )
    assert [one.name for one in cubin.sections] == ["k", "min", "min"]
    lines = (SassLine(None, "MOV", "R0, R1"), SassLine(None, "EXIT", ""))
    program = build_program(cubin, {"k": lines, "min": lines})
    assert [one.name for one in program.functions] == ["k", "min"]


@pytest.mark.parametrize(("name", "librarys"), [("_ZN3cub4scanEv", True), ("_ZN3own4scanEv", False)])
def test_a_kernel_of_a_librarys_template_is_all_the_librarys(name: str, librarys: bool) -> None:
    header = SourceLocation("/usr/local/cuda/include/cub/agent/agent_scan.cuh", 7)
    cubin = read_cubin(elf([Part(f".text.{name}", code(2))], [Sym(name, f".text.{name}")]))
    program = build_program(
        cubin,
        {name: (SassLine(None, "MOV", "R0, R1"), SassLine(None, "EXIT", ""))},
        lines=Lines({name: (LineEntry(header),) * 2}),
    )
    assert program.functions[0].lines == (LineEntry(header, (), (header,) if librarys else ()),) * 2


def test_loop_nest() -> None:
    function = function_of(
        """
        MOV R0, RZ
        outer: MOV R1, RZ
        inner: IADD3 R1, R1, 0x1, RZ
        @P0 BRA inner
        IADD3 R0, R0, 0x1, RZ
        @P1 BRA outer
        EXIT
        """
    )
    outer, inner = function.loops
    assert (outer.depth, outer.parent, inner.depth, inner.parent) == (1, None, 2, LoopId(0))
    assert inner.blocks < outer.blocks
    assert outer.reducible
    assert [function.innermost_loop(index) for index in range(7)] == [None, 0, 1, 1, 0, 0, None]
    assert function.enclosing_loops(2) == (1, 0)


def test_two_back_edges_to_one_header_are_one_loop() -> None:
    function = function_of("top: MOV R0, R1\n@P0 BRA top\nMOV R1, R0\n@P1 BRA top\nEXIT")
    assert len(function.loops) == 1
    assert len(function.loops[0].blocks) == 2


def test_a_loop_with_two_entries_is_a_region() -> None:
    problems: list[Problem] = []
    function = function_of(
        """
        @P0 BRA second
        first: MOV R0, R1
        second: MOV R1, R0
        @P1 BRA first
        EXIT
        """,
        problems=problems,
    )
    (region,) = function.loops
    assert not region.reducible
    assert len(region.blocks) == 2
    assert [problem.code for problem in problems] == [ProblemCode.IRREDUCIBLE_REGION]


def lines(*numbers: int | None) -> Sequence[LineEntry | None]:
    """Line entries of one file."""
    return [None if number is None else LineEntry(SourceLocation("a.cu", number)) for number in numbers]


LOOP = "MOV R0, RZ\ntop: IADD3 R0, R0, 0x1, RZ\nMOV R2, R0\n@P0 BRA top\nEXIT"


def test_the_line_of_a_loop_is_the_smallest_of_its_header_and_latch() -> None:
    assert function_of(LOOP, lines=lines(3, 8, 9, 7, 12)).loops[0].location == SourceLocation("a.cu", 7)


def test_an_instruction_moved_in_from_before_does_not_name_a_loop() -> None:
    body = "\n".join("FADD R2, R2, R3" for _ in range(4))
    code = f"MOV R0, RZ\ntop: IADD3 R0, R0, 0x1, RZ\n{body}\n@P0 BRA top\nEXIT"
    moved_in = function_of(code, lines=lines(3, 7, 3, 8, 9, 8, 7, 12))
    assert moved_in.loops[0].location == SourceLocation("a.cu", 7)
    test_at_the_end = function_of(code, lines=lines(3, 7, 8, 8, 9, 8, 10, 12))
    assert test_at_the_end.loops[0].location == SourceLocation("a.cu", 7)


def test_a_loop_is_in_the_file_of_its_jump_back_where_inlining_is_not_told() -> None:
    library = LineEntry(SourceLocation("./int.jl", 86))
    entries = [*lines(3), library, library, *lines(7, 12)]
    assert function_of(LOOP, lines=entries).loops[0].location == SourceLocation("a.cu", 7)


def test_calls_inlined_into_a_loop_do_not_name_it() -> None:
    inlined = LineEntry(SourceLocation("b.h", 1), (InlineFrame("f", SourceLocation("a.cu", 8)),))
    entries = [*lines(3), inlined, inlined, *lines(7, 12)]
    assert function_of(LOOP, lines=entries).loops[0].location == SourceLocation("a.cu", 7)


def test_a_loop_inside_an_inlined_function_is_there() -> None:
    frame = (InlineFrame("f", SourceLocation("a.cu", 8)),)
    entries = [LineEntry(SourceLocation("b.h", number), frame) for number in (2, 5, 6, 4, 9)]
    assert function_of(LOOP, lines=entries).loops[0].location == SourceLocation("b.h", 4)


def test_a_loop_without_lines_has_no_place() -> None:
    assert function_of(LOOP).loops[0].location is None


@pytest.mark.parametrize("place", [0, 4])
def test_a_function_knows_its_place_in_the_section(place: int) -> None:
    function = function_of(LOOP, start=place)
    assert function.index_of(function.instructions[2].pc) == 2
    assert len(function.loops) == 1
