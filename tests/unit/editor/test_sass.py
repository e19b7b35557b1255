# SPDX-License-Identifier: Apache-2.0
"""Machine code as text, and which rows belong to which line."""

from __future__ import annotations

from dataclasses import replace

from tests.editor_values import FILE, HEADER

from gpadvisor.editor.show.sass import control_words, render_sass, rendered_lines, rows_by_place
from gpadvisor.model.finding import Place, SassRow, SassView
from gpadvisor.model.profile import Evidence

LOAD = SassRow(
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


def test_rows_have_samples_stall_cause_and_source() -> None:
    lines = render_sass(VIEW).splitlines()
    assert lines[0] == "// gather<1>  sm_80  measured, 1,000 samples"
    assert [" ".join(line.split()) for line in lines[3:]] == [
        "// gather<1>:",
        "90 ------:-:2:Y:04 1.0 % selected LDG.E R2, [R2.64] gather.cu:6",
        "a0 0-2---:0:-:-:04 58 % long scoreboard 0x90 FFMA R9, R2, 2, R9 lib.cuh:3 < gather.cu:7",
        "// helper:",
        "0 ------:0:-:-:04 RET",
        "// 7 more instructions are not shown",
    ]


def test_rows_know_their_lines_in_the_text() -> None:
    lines = render_sass(VIEW).splitlines()
    assert [lines[at].split()[0] for at in rendered_lines(VIEW)] == ["90", "a0", "0"]
    alone = replace(VIEW, functions=(("gather<1>", 0),), truncated=0)
    text = render_sass(alone).splitlines()
    assert [text[at].split()[0] for at in rendered_lines(alone)] == ["90", "a0", "0"]


def test_a_line_has_the_rows_that_were_inlined_into_it() -> None:
    found = rows_by_place(VIEW)
    assert found[Place(file=FILE, line=6)] == (0,)
    assert found[Place(file=FILE, line=7)] == (1,)
    assert found[Place(file=HEADER, line=3)] == (1,)


def test_names_from_files_stay_on_their_line() -> None:
    hostile = replace(VIEW, name="k\nRET", rows=(replace(LOAD, text="LDG\x1b[31m"),), functions=(("k", 0),))
    assert len(render_sass(hostile).splitlines()) == 5
    assert "\x1b" not in render_sass(hostile)
