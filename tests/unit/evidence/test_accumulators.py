# SPDX-License-Identifier: Apache-2.0
"""Elements of memory that each pass writes: what could stay in a register, and what others read meanwhile."""

from __future__ import annotations

import pytest
from tests.optimizer_values import listing

from gpadvisor.estimators.kept_elements import in_register
from gpadvisor.evidence.accumulators import kept_in_memory, kept_in_passes

PASS = "LDS R10, [R2{at}]\nLDS R12, [R3{at}]\nFFMA R8, R10, R12, R8\n{between}STS [R5{own}], R8\n{behind}"


def _passes(between: str = "", own: str = "", other: str = "R2", behind: str = "") -> str:
    text = "".join(
        PASS.format(at=f"+{4 * number:#x}" if number else "", between=between, own=own, behind=behind)
        for number in range(3)
    )
    return text.replace("[R2", f"[{other}").replace("[R3", f"[{other}") + "EXIT"


def test_passes_of_an_unrolled_loop_overwrite_one_element() -> None:
    """As in Rodinia's lud, whose inner loop is unrolled eight times: 1.41x was gained by a local variable."""
    (function,) = listing(_passes()).program.functions
    assert kept_in_passes(function) == ((3, 7, 11),)
    assert kept_in_memory(function) == {3, 7, 11}


@pytest.mark.parametrize(
    "text",
    [
        _passes(other="R5"),  # a tree over volatile memory: the compiler knows that these are other elements
        _passes(behind="NOP\n"),  # __syncwarp(): other threads of the warp read it
        _passes(behind="BAR.SYNC.DEFER_BLOCKING 0x0\n"),
        _passes(between="LDS R9, [R5]\nFADD R8, R8, R9\n"),  # volatile: it is read again
        _passes(between="IADD3 R5, R5, 0x4, RZ\n"),  # another element in each pass
        _passes(own="+0x4", behind="MEMBAR.SC.CTA\n"),
        # of no loop: a default, and what a condition puts in its place
        _passes(behind="@P0 EXIT\n"),
        "LDS R10, [R2]\nSTS [R5], RZ // 4\nLDS R10, [R2]\nSTS [R5], R10 // 6\nEXIT",
    ],
)
def test_what_other_threads_may_read_stays_where_it_is(text: str) -> None:
    (function,) = listing(text).program.functions
    assert kept_in_passes(function) == ()


LOOP = (
    "MOV R4, RZ\nagain:\nLDS R8, [R5]\nLDS R10, [R2]\nFADD R8, R8, R10\n{more}STS [R5], R8\n"
    "IADD3 R2, R2, 0x4, RZ\nIADD3 R4, R4, 0x1, RZ\nISETP.NE.AND P0, PT, R4, R12, PT\n@P0 BRA again\nEXIT"
)


def test_an_element_that_only_itself_could_change_is_volatile() -> None:
    """The compiler reads it in every pass, although nothing else writes shared memory there."""
    (volatile,) = listing(LOOP.format(more="")).program.functions
    assert kept_in_memory(volatile) == set()
    (plain,) = listing(LOOP.format(more="STS [R6], R9\n")).program.functions
    assert kept_in_memory(plain) == {1, 5}


def test_stores_of_an_unrolled_loop_are_spoken_of_alone() -> None:
    """As in a product whose outer loop goes on to another element: behind that one would be wrong."""
    # GIVEN three stores to one element, of which each pass of the loop around has another
    stores = _passes().removesuffix("EXIT")
    step = (
        "IADD3 R5, R5, 0x4, RZ\nIADD3 R4, R4, 0x1, RZ\nISETP.NE.AND P0, PT, R4, R12, PT\n@P0 BRA again\nEXIT"
    )
    (moving,) = listing(f"MOV R4, RZ\nagain:\n{stores}{step}").program.functions
    store = max(kept_in_memory(moving))
    # WHEN
    words = in_register(moving, store)
    # THEN the loop around is not meant, nor said to keep the element
    assert "behind the loop that is unrolled there: 3 stores" in words
    assert "in every pass" not in words
    # AND of an element that stays the same in a loop it is said
    (same,) = listing(LOOP.format(more="STS [R6], R9\n")).program.functions
    assert "it is the same in every pass" in in_register(same, 5)


@pytest.mark.parametrize(("made", "kept"), [("R4, R13", False), ("R10, R13", True)])
def test_an_element_that_a_condition_writes_in_some_passes(made: str, kept: bool) -> None:
    """Where the pass decides, as for the thread that adds next, each needs what those before it added."""
    test = f"STS [R6], R9\nISETP.NE.AND P1, PT, {made}, PT\n"
    guarded = LOOP.format(more=test).replace("STS [R5]", "@P1 STS [R5]")
    around = LOOP.format(more=f"{test}@P1 BRA next\n").replace("IADD3 R2", "next:\nIADD3 R2")
    for text in (guarded, around):
        (function,) = listing(text).program.functions
        assert bool(kept_in_memory(function)) is kept
