# SPDX-License-Identifier: Apache-2.0
"""Control codes in words."""

from __future__ import annotations

from dataclasses import replace

from tests.editor_values import FILE, HEADER

from gpadvisor.editor.show.control_code import control_words
from gpadvisor.model.finding import Place, SassInstruction, SassView
from gpadvisor.model.profile import Evidence

LOAD = SassInstruction(
    pc=0x90,
    text="LDG.E R2, [R2.64]",
    stall_cycles=4,
    yields=True,
    write_barrier=2,
    read_barrier=None,
    waits=(),
    samples=10,
    latency=5,
    caused=580,
    share=0.01,
    reason="selected",
    waits_for=None,
    place=Place(file=FILE, line=6),
    inline=(),
)
USE = replace(
    LOAD, pc=0xA0, text="FFMA R9, R2, 2, R9", yields=False, write_barrier=None, read_barrier=0, waits=(0, 2),
    samples=580, share=0.58, reason="long_scoreboard", waits_for=0, place=Place(file=HEADER, line=3),
    inline=(Place(file=FILE, line=7),),
)  # fmt: skip
BARE = replace(USE, pc=0, text="RET", samples=0, share=0.0, waits_for=None, place=None, inline=(), waits=())
VIEW = SassView(
    kernel="_Zk",
    name="gather<1>",
    arch="sm_80",
    evidence=Evidence.MEASURED,
    samples=1000,
    functions=(("gather<1>", 0), ("helper", 2)),
    rows=(LOAD, USE, BARE),
    truncated=7,
)


def test_control_codes_are_decoded() -> None:
    assert control_words(LOAD) == "------:-:2:Y:04"
    assert control_words(USE) == "0-2---:0:-:-:04"
