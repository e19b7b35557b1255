# SPDX-License-Identifier: Apache-2.0
"""Lines for code without a line table: all of them for the same code, only what is decided for other code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.assembly import function_of, program_of
from tests.kernels import compile_kernel, compile_text
from tests.simulations import program_of as analysed

from gpadvisor.analyzer.line_recovery import recover_lines
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import Function, FunctionKind, LineEntry, Program

SUMS = """
template <int N>
__device__ __forceinline__ float scaled(float v) {
  return __expf(v) * v + N;
}
__global__ void sums(const float* in, float* out, int n) {
  float acc = 0;
  for (int k = threadIdx.x; k < n; k += 32) {
    acc += scaled<3>(in[k]);
  }
  out[threadIdx.x] = acc;
}
"""


def at(*lines: int) -> tuple[LineEntry, ...]:
    return tuple(LineEntry(SourceLocation("k.cu", line)) for line in lines)


def numbers(lines: Sequence[LineEntry | None]) -> list[int | None]:
    return [None if line is None else line.location.line for line in lines]


def recovered(text: str, other: str, lines: Sequence[LineEntry]) -> tuple[list[int | None], bool]:
    """The lines of a function in SASS text from another one's."""
    result = recover_lines(program_of(function_of(text)), program_of(function_of(other, lines=lines)))
    (function,) = result.program.functions
    return numbers(function.lines), function.name in result.same


def without_lines(program: Program) -> Program:
    functions = tuple(replace(one, lines=(None,) * len(one.lines)) for one in program.functions)
    return replace(program, functions=functions, has_line_info=False)


def lines_of(program: Program) -> list[tuple[LineEntry | None, ...]]:
    return [function.lines for function in program.functions if any(function.lines)]


@pytest.mark.toolkit
@pytest.mark.nvdisasm
@pytest.mark.parametrize("kernel", ["thermal_stencil", "row_softmax", "linked_tiles"])
def test_code_that_was_built_without_lines_has_all_of_them(kernel: str) -> None:
    built, compiled = analysed(compile_kernel(kernel, lines=False)), analysed(compile_kernel(kernel))
    assert not built.has_line_info
    assert not lines_of(built)
    found = recover_lines(built, compiled)
    assert lines_of(found.program) == lines_of(compiled)
    assert [one.loops for one in found.program.functions] == [one.loops for one in compiled.functions]
    assert found.same == {one.name for one in compiled.functions if any(one.lines)}
    assert not found.differing
    assert found.program.has_line_info


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_the_lines_of_another_architecture_are_mostly_right() -> None:
    """Other instructions for the same source, as another compiler makes them."""
    right = wrong = known = 0
    for kernel in ("thermal_stencil", "row_softmax", "particles_aos"):
        built, compiled = analysed(compile_kernel(kernel)), analysed(compile_kernel(kernel, arch="sm_90"))
        found = recover_lines(without_lines(built), compiled).program
        for function, other in zip(built.functions, found.functions, strict=True):
            for line, other_line in zip(function.lines, other.lines, strict=True):
                known += line is not None
                right += line is not None and line == other_line
                wrong += line is not None and other_line not in {None, line}
    assert right > 0.8 * known > 100
    assert wrong < 0.1 * known


@pytest.mark.toolkit
@pytest.mark.nvdisasm
def test_inlined_calls_come_with_the_lines() -> None:
    built = analysed(compile_text(SUMS, "sums.cu", lines=False))
    found = recover_lines(built, analysed(compile_text(SUMS, "sums.cu")))
    inlined = {
        line for one in found.program.functions for line in one.lines if line is not None and line.inline
    }
    assert {(line.location.line, line.inline[0].call_site.line) for line in inlined} == {(4, 9)}


LOADS = """
LDG.E R2, [R4.64]        | W0
LDG.E R3, [R4.64+0x10]   | W1
FADD R6, R2, R3          | ?01
STG.E [R8.64], R6
EXIT
"""


def test_other_registers_and_another_order_change_no_line() -> None:
    other = """
    LDG.E R13, [R14.64+0x10] | W1
    LDG.E R12, [R14.64]      | W0
    FADD R16, R12, R13       | ?01
    STG.E [R18.64], R16
    EXIT
    """
    assert recovered(LOADS, other, at(2, 1, 3, 4, 5)) == ([1, 2, 3, 4, 5], False)


def test_an_edited_constant_changes_no_line() -> None:
    text = "FMUL R2, R3, 2\nFADD R2, R2, {}\nSTG.E [R8.64], R2\nEXIT"
    assert recovered(text.format("0.5"), text.format("-1.25e-05"), at(1, 2, 3, 4)) == ([1, 2, 3, 4], True)


def test_what_may_be_of_several_lines_has_none() -> None:
    here = LOADS.replace(
        "FADD R6, R2, R3          | ?01", "FADD R6, R2, R3 | ?01\nFADD R6, R6, R9\nFADD R6, R6, R10"
    )
    there = LOADS.replace("FADD R6, R2, R3          | ?01", "FADD R6, R2, R9 | ?01\nFADD R6, R6, R3")
    lines, same = recovered(here, there, at(1, 2, 3, 4, 5, 6))
    assert not same
    assert lines[:2] == [1, 2]
    assert lines[-2:] == [5, 6]
    assert set(lines[2:5]) <= {3, 4, None}
    assert None in lines[2:5]


def test_code_of_another_source_gets_no_line_by_chance() -> None:
    other = "S2R R0, SR_TID.X | W0\nMUFU.RCP R1, R0 | W0\nBAR.SYNC 0x0\nLDS R2, [R1] | W0\nRET"
    lines, same = recovered(LOADS.replace("EXIT", "BRA 0x50\nEXIT"), other, at(1, 2, 3, 4, 5))
    assert not same
    assert set(lines) == {None}


def test_a_longer_unrolled_loop_has_the_lines_of_its_body() -> None:
    body = "LDG.E R2, [R4.64+{}] | W0\nFFMA R6, R2, R9, R6 | ?0\n"
    loop = "top: IADD3 R0, R0, {}, RZ\n{}ISETP.LT.AND P0, PT, R0, R1, PT\n@P0 BRA top\nEXIT"
    four = loop.format("0x4", "".join(body.format(hex(16 * at)) for at in range(4)))
    two = loop.format("0x2", "".join(body.format(hex(16 * at)) for at in range(2)))
    lines, _ = recovered(four, two, at(1, 2, 3, 2, 3, 1, 1, 5))
    assert lines[0] == 1
    assert lines[-3:] == [1, 1, 5]
    assert lines[2:9:2] == [3, 3, 3, 3]  # all multiplications of the other code are of one line
    assert set(lines[1:9:2]) <= {2, None}
    assert lines[1] == 2


def test_how_alike_codes_are_goes_by_what_they_do() -> None:
    def likeness(other: str) -> float:
        compiled = program_of(function_of(other, lines=at(*range(1, other.count("\n") + 2))))
        (found,) = recover_lines(program_of(function_of(LOADS.strip())), compiled).differing.values()
        return found

    one = "LDG.E R2, [R4.64] | W0\nFADD R6, R2, R3 | ?0\nSTG.E [R8.64], R6"
    assert likeness(f"{one}\nLDG.E R3, [R4.64+0x10] | W1\nIADD3 R9, R9, 0x1, RZ\nMOV R1, R9\nEXIT") == 1
    assert likeness(f"{one}\nEXIT") == 0.75
    assert likeness(f"{one}\n{one}\n{one}\nEXIT") == pytest.approx(4 / 9)


def test_a_function_that_has_lines_keeps_them() -> None:
    one = function_of(LOADS, lines=at(9, 9, 9, 9, 9))
    found = recover_lines(program_of(one), program_of(function_of(LOADS, lines=at(1, 2, 3, 4, 5))))
    assert found.program.functions == (one,)
    assert not found.names


def test_a_loop_stands_where_its_lines_say() -> None:
    text = "top: IADD3 R0, R0, 0x1, RZ\nISETP.LT.AND P0, PT, R0, R1, PT\n@P0 BRA top\nEXIT"
    assert function_of(text).loops[0].location is None
    compiled = program_of(function_of(text, lines=at(7, 7, 7, 9)))
    (function,) = recover_lines(program_of(function_of(text)), compiled).program.functions
    assert function.loops[0].location == SourceLocation("k.cu", 7)


def test_of_instances_with_another_symbol_the_most_alike_one_counts() -> None:
    def named(text: str, name: str, demangled: str, lines: Sequence[LineEntry] = ()) -> Function:
        made = function_of(text, lines=lines or None)
        return replace(made, name=name, demangled=demangled)

    wanted = named(LOADS, "_Zold", "void (anonymous namespace)::k<float>(float*, int)")
    close = named(LOADS, "_Znew", "void n::k<float>(float*, long)", at(1, 2, 3, 4, 5))
    far = named("FMUL R1, R1, R1\nEXIT", "_Zfar", "void n::k<double>(double*, long)", at(8, 9))
    found = recover_lines(program_of(wanted), program_of(far, close)).program.functions[0]
    assert numbers(found.lines) == [1, 2, 3, 4, 5]
    helper = replace(wanted, kind=FunctionKind.DEVICE)
    assert not recover_lines(program_of(helper), program_of(far, close)).names
