# SPDX-License-Identifier: Apache-2.0
"""Places, branch targets, calls, waits and problems."""

from __future__ import annotations

import struct

import pytest

from gpadvisor.errors import SassError
from gpadvisor.machine import code_form
from gpadvisor.model.instruction import OpcodeClass, PartialWait
from gpadvisor.model.problem import ProblemCode
from gpadvisor.sass import SassLine, decode
from gpadvisor.sass.branches import relative_target

NOP = SassLine(None, "NOP", "")
NOP_WORDS = (0x0000000000007918, 0x000FC00000000000)


def _code(*words: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *pair) for pair in words)


def _branch(
    line: SassLine, words: tuple[int, int], *, arch: str = "sm_86", after: int = 8
) -> tuple[int | None, str | None, str]:
    """Target, callee and operands of an instruction at offset 0x20."""
    lines = [NOP, NOP, line, *[NOP] * after]
    code = _code(NOP_WORDS, NOP_WORDS, words, *[NOP_WORDS] * after)
    found = decode(arch, code, lines)[0][2]
    return found.target, found.callee, found.operands


@pytest.mark.parametrize(
    ("arch", "pc", "low", "high", "target"),
    [
        (86, 0xF0, 0x0000129000007944, 0x003FEA0003C00000, 0x1390),  # CALL.REL.NOINC
        (86, 0x890, 0xFFFFFF3000000947, 0x000FEA000383FFFF, 0x7D0),  # backwards
        (86, 0x110, 0x0000045000007945, 0x000FD80003800000, 0x570),  # BSSY
        (70, 0xD0, 0xFFFFFFF000007947, 0x000FC0000383FFFF, 0xD0),  # the trap behind a function
        (120, 0xA0, 0x00000000005C8947, 0x000FEA0003800000, 0x220),
        (120, 0xE0, 0x00000004004C0947, 0x000FEA0003800000, 0x620),
        (120, 0x420, 0xFFFFFFFC00C80947, 0x000FEA000383FFFF, 0x350),
    ],
)
def test_relative_offsets(arch: int, pc: int, low: int, high: int, target: int) -> None:
    found = relative_target(code_form(f"sm_{arch}"), pc, low, high)
    if arch == 120 and low >> 63:
        assert found < pc
        assert found % 16 == 0
    else:
        assert found == target


def test_a_printed_target_is_taken() -> None:
    assert _branch(SassLine("@P0", "BRA", "0x60"), (0x0000003000000947, 0)) == (0x60, None, "0x60")


def test_a_label_is_resolved_by_the_encoding() -> None:
    assert _branch(SassLine("@P0", "BRA", ".L_x_7"), (0x0000003000000947, 0)) == (0x60, None, "0x60")
    for high in (0, 0x000FD80003800000, 0x000FD80003812345):  # its offset ends where a branch's goes on
        bssy = SassLine(None, "BSSY", "B0, .L_x_7")
        assert _branch(bssy, (0x0000003000007945, high)) == (None, None, "B0, 0x60")


def test_calls() -> None:
    words = (0x0000003000007944, 0)
    assert _branch(SassLine(None, "CALL.REL.NOINC", "$k$helper"), words) == (0x60, "$k$helper", "$k$helper")
    unlinked = SassLine(None, "CALL.REL.NOINC", "elsewhere")
    assert _branch(unlinked, (0x0000000000007944, 0)) == (None, "elsewhere", "elsewhere")
    assert _branch(SassLine(None, "CALL.REL.NOINC", "0x60"), words) == (0x60, None, "0x60")
    assert _branch(SassLine(None, "CALL.ABS.NOINC", "vprintf"), words) == (None, "vprintf", "vprintf")
    assert _branch(SassLine(None, "CALL.ABS.NOINC", "R2"), words) == (None, None, "R2")
    assert _branch(SassLine(None, "CALL.REL.NOINC", "R8, k"), words) == (None, None, "R8, k")


def test_a_target_outside_the_section_is_none() -> None:
    assert _branch(SassLine(None, "BRA", "0x9990"), (0, 0))[0] is None
    assert _branch(SassLine(None, "CALL.REL.NOINC", "far"), (0x7FFFFFF000007944, 0)) == (None, "far", "far")


def test_divergent_branches_and_indirect_ones() -> None:
    assert _branch(SassLine(None, "BRA.DIV", "~URZ, 0x40"), (0, 0)) == (0x40, None, "~URZ, 0x40")
    assert _branch(SassLine(None, "BRX", "R4 -0x680"), (0, 0)) == (None, None, "R4, -0x680")


def test_guard_comes_from_the_bits() -> None:
    code = _code((0x0000000000008918, 0), (0x0000000000003882, 0), (0x000000000000F984, 0))
    lines = [
        SassLine("@!P0", "NOP", ""),
        SassLine("@UP3", "UMOV", "UR4, 0x1"),
        SassLine("@!PT", "LDS", "RZ, [RZ]"),
    ]
    first, second, third = decode("sm_90", code, lines)[0]
    assert first.text == "@!P0 NOP"
    assert second.text == "@UP3 UMOV UR4, 0x1"
    assert third.guard is None
    assert third.info.opclass is OpcodeClass.NOP
    assert third.info.queue is None


def test_partial_waits() -> None:
    lines = [SassLine(None, "DEPBAR.LE", "SB5, 0x1"), SassLine(None, "DEPBAR.LE", "SB0, 0x0, {5,4}"), NOP]
    found = decode("sm_75", _code(NOP_WORDS, NOP_WORDS, NOP_WORDS), lines)[0]
    assert [i.partial_wait for i in found] == [PartialWait(5, 1), PartialWait(0, 0), None]
    assert found[1].operands == "SB0, 0x0, {5,4}"


@pytest.mark.parametrize("operands", ["SB6, 0x0", "SBX, 0x0", "SB1, R2"])
def test_no_partial_wait_without_a_scoreboard_and_a_number(operands: str) -> None:
    found = decode("sm_75", _code(NOP_WORDS), [SassLine(None, "DEPBAR.LE", operands)])[0]
    assert found[0].partial_wait is None


def test_pcs_modifiers_and_text() -> None:
    lines = [NOP, SassLine("@!P0", "LDG.E.64", "R4,[R2.64]")]
    second = decode("sm_75", _code(NOP_WORDS, (0x8981, 0)), lines)[0][1]
    assert (second.pc, second.opcode, second.modifiers) == (16, "LDG", ("E", "64"))
    assert second.text == "@!P0 LDG.E.64 R4, [R2.64]"


def test_unknown_opcodes_are_counted_once_each() -> None:
    lines = [
        SassLine(None, "FROB", "R1, R2"),
        SassLine(None, "FROB.X", "R1, R2"),
        SassLine(None, "", ""),
        NOP,
    ]
    instructions, problems = decode("sm_86", _code(*[NOP_WORDS] * 4), lines)
    assert [i.info.known for i in instructions] == [False, False, False, True]
    assert {problem.code for problem in problems} == {ProblemCode.UNKNOWN_OPCODE}
    assert [problem.message.split(":")[0] for problem in problems] == [
        "opcode FROB is not known on sm_86 (2 instructions)",
        "opcode (none printed) is not known on sm_86 (1 instructions)",
    ]


@pytest.mark.parametrize(("count", "further"), [(40, None), (41, "1 further"), (200, "160 further")])
def test_many_unknown_opcodes_are_summed_up(count: int, further: str | None) -> None:
    lines = [SassLine(None, f"FROB{i}", "") for i in range(count)]
    problems = decode("sm_86", _code(*[NOP_WORDS] * count), lines)[1]
    assert len(problems) == 40 + (further is not None)
    assert (further or "FROB39 ") in problems[-1].message


@pytest.mark.parametrize(("size", "count"), [(32, 1), (16, 2), (17, 1), (0, 1)])
def test_text_and_code_must_fit(size: int, count: int) -> None:
    with pytest.raises(SassError, match="disassemble"):
        decode("sm_86", bytes(size), [NOP] * count)


def test_no_code_is_no_instructions() -> None:
    assert decode("sm_86", b"", []) == ((), ())


def test_an_instruction_that_sets_a_write_barrier_has_variable_latency() -> None:
    line = SassLine(None, "DFMA", "R4, R6, R8, R4")
    awaited, scheduled = (0x22B, 0x000E000000000004), (0x22B, 0x000FC00000000004)
    first, second = decode("sm_100", _code(awaited, scheduled), [line, line])[0]
    assert first.control.write_barrier == 0
    assert first.info.variable_latency
    assert second.control.write_barrier is None
    assert not second.info.variable_latency
