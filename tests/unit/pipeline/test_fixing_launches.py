# SPDX-License-Identifier: Apache-2.0
"""What is known of a launch and its loops for the numbers in fixes."""

from __future__ import annotations

from tests.optimizer_values import Row, context_of, listing

from gpadvisor.model.blame import DependencyClass
from gpadvisor.pipeline.fixes.launches import kernel_launch

LOOP = (
    "MOV R4, RZ // 3\n"
    "head:\nload| LDG.E R2, [R6.64] // 4\nuse| FADD R8, R2, R9 // 5\n"
    "IADD3 R4, R4, 0x1, RZ // 4\nISETP.NE.AND P0, PT, R4, {end}, PT // 4\n@P0 BRA head // 4\nEXIT"
)
ROWS = (
    Row("long_scoreboard", "use", 500, 450, "load", DependencyClass.GLOBAL_MEMORY),
    Row("selected", "use", 500),
)


def test_without_a_launch_only_the_loops_are_known() -> None:
    facts = kernel_launch(context_of(listing(LOOP.format(end="0x7"))))
    assert (facts.block_threads, facts.blocks_per_sm, facts.threads_new) == (None, None, None)
    assert dict(facts.trips) == {4: 7}
    assert not kernel_launch(context_of(listing(LOOP.format(end="R10")))).trips


def test_registers_alone_allow_one_block_more() -> None:
    code = listing(LOOP.format(end="R10"))
    facts = kernel_launch(context_of(code, ROWS, block=256, registers=100))
    assert (facts.block_threads, facts.blocks_per_sm) == (256, 3)
    # Two blocks of 256 threads at 100 registers; at 32 registers other limits come first.
    assert kernel_launch(context_of(code, ROWS, block=256, registers=32)).blocks_per_sm is None
    both = kernel_launch(context_of(code, ROWS, block=256, registers=100, static_shared=45_000))
    assert both.blocks_per_sm is None


def test_the_block_size_that_an_optimizer_proposes() -> None:
    place = "S2R R0, SR_CTAID.X\nS2R R1, SR_TID.X\nIMAD R0, R0, c[0x0][0x0], R1\n"
    code = listing(place + LOOP.format(end="R10"))
    facts = kernel_launch(context_of(code, ROWS, block=32, registers=20))
    assert facts.threads_new is not None
    assert facts.threads_new > 32
