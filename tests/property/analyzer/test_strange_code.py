# SPDX-License-Identifier: Apache-2.0
"""Strange text and bytes are analysed and blamed without an error and without losing samples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.assembly import function_of, model, profile_of, program_of
from tests.blame_rows import assert_conserved
from tests.oracle.analyzer.liveness import live_registers

from gpadvisor.analyzer.flow import control_transfers
from gpadvisor.analyzer.partition import split_section
from gpadvisor.blamer import DEFAULT_RULES, GPA2021, blame
from gpadvisor.cubin import CodeSection, CodeSymbol
from gpadvisor.sass import SassLine, decode

REASONS = ("long_scoreboard", "short_scoreboard", "wait", "barrier", "membar", "drain", "gmma", "selected")
OPCODES = st.sampled_from(
    [
        "BRA", "BRA.DIV", "BRX", "JMX", "CALL.REL.NOINC", "CALL.ABS", "RET.REL", "EXIT", "BSSY", "BSYNC",
        "BREAK", "WARPSYNC.COLLECTIVE", "NOP", "LDG.E", "LDS", "LDGSTS", "LDGDEPBAR", "DEPBAR.LE",
        "HGMMA.64x8x16.F32", "WARPGROUP.DEPBAR.LE", "BAR.SYNC", "MEMBAR", "QUUX.64",
    ]
)  # fmt: skip
OPERANDS = st.sampled_from(
    [
        "", "0x0", "0x10", "0x40", "0xffffffff", "B0, 0x20", "B0", "R2, -0x10", "UP0, 0x30", "SB0, 0x1",
        "R0, [R2.64]", "[R2], [R4.64]", "gsb0, 0x1", "{3,2}", "`(.L_x_1)", "*BRANCH_TARGETS 0x10,0x7770",
    ]
) | st.text("RUPB0123x[],.-`()", max_size=12)  # fmt: skip
LINES = st.builds(SassLine, st.sampled_from([None, "@P0", "@!PT", "@!UP1"]), OPCODES, OPERANDS)


@given(
    st.lists(LINES, min_size=1, max_size=20),
    st.data(),
    st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=3),
)
def test_strange_code(lines: list[SassLine], data: st.DataObject, symbols: list[tuple[int, bool]]) -> None:
    size = 16 * len(lines)
    code = data.draw(st.binary(min_size=size, max_size=size))
    instructions, _ = decode("sm_90", code, lines)
    flows = control_transfers(instructions)
    section = CodeSection(
        "kernel", 1, code, 0, tuple(CodeSymbol(f"s{at}", at, 0, entry, 0) for at, entry in sorted(symbols))
    )
    parts = split_section(section, instructions, flows)
    assert parts[0].start == 0
    assert parts[-1].end == len(lines)
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]
    function = function_of(instructions)
    assert len(live_registers(function)) == len(lines)
    reasons = [
        "long_scoreboard",
        "short_scoreboard",
        "wait",
        "barrier",
        "membar",
        "drain",
        "gmma",
        "selected",
    ]
    samples = {(at, reason): 3 for at in range(len(lines)) for reason in reasons}
    program, profile = program_of(function), profile_of(samples)
    for rules in (DEFAULT_RULES, GPA2021):
        assert_conserved(program, profile, blame(program, profile, model("sm_90"), rules))
