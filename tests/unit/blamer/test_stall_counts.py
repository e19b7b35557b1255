# SPDX-License-Identifier: Apache-2.0
"""Which result a stall count is waited out for, on each way into an instruction."""

from __future__ import annotations

import pytest
from tests.blame_rows import blame_text, blamed, edge_of

from gpadvisor.model.blame import PruneRule


def _waited(
    text: str, use: int, counts: dict[int, int] | None = None, samples: int = 100
) -> dict[int | None, int]:
    """Of the wait stalls at an instruction, how many go to each other one."""
    found = blamed(blame_text(text, {(use, "wait"): samples}, counts=counts), "wait")
    return {definition: share for definition, (_, share) in found.items()}


def test_two_results_that_come_at_once_are_both_waited_for() -> None:
    text = "FADD R0, R1, R2 | S1\nFADD R3, R1, R2 | S4\nFMUL R4, R0, R3"
    assert _waited(text, 2) == {1: 100}
    text = "IADD3 R0, R1, R2, RZ | S1\nMOV R9, R8 | S1\nFADD R3, R1, R2 | S4\nFMUL R4, R0, R3"
    # The integer result is there two cycles later for the other pipe, and was made two cycles before.
    assert _waited(text, 3) == {0: 50, 2: 50}


def test_what_comes_behind_the_one_waited_for_is_not_waited_for_too() -> None:
    text = "FADD R0, R1, R2 | S1\nMOV R9, R8 | S1\nFADD R3, R1, R2 | S4\nFMUL R4, R0, R3"
    assert _waited(text, 3) == {2: 100}
    result = blame_text(text, {(3, "wait"): 9})
    assert edge_of(result, 0, 3).pruned_by is PruneRule.LATENCY
    assert edge_of(result, 0, 3).prune_detail == "its result was there before the last stall count"


@pytest.mark.parametrize(("stalls", "expected"), [((1, 1), {0: 100}), ((2, 1), {0: 100}), ((3, 1), {1: 100})])
def test_a_result_of_the_block_before_can_be_missing_still(
    stalls: tuple[int, int], expected: dict[int, int]
) -> None:
    first, second = stalls
    text = f"FADD R0, R1, R2 | S{first}\n@P0 BRA next | S{second}\nnext: FMUL R4, R0, R3\nEXIT"
    found = _waited(text, 2)
    assert found == expected


def test_a_result_of_the_pass_before_is_waited_for_at_the_top_of_a_loop() -> None:
    text = "MOV R0, R1 | S5\ntop: FMUL R2, R0, R2 | S1\nFADD R0, R0, R5 | S1\n@P0 BRA top | S2\nEXIT"
    assert _waited(text, 1, {0: 1, 1: 100, 2: 100, 3: 100, 4: 1}) == {0: 4, 2: 96}


@pytest.mark.parametrize(("ways", "blamed_ways"), [(8, 8), (9, 8)])
def test_of_many_ways_into_an_instruction_the_eight_most_frequent_are_looked_at(
    ways: int, blamed_ways: int
) -> None:
    branches = "\n".join(f"@P{at % 6} BRA join | S5" for at in range(ways - 1))
    text = f"{branches}\nMOV R5, R6 | S5\njoin: FMUL R3, R0, R4\nEXIT"
    counts = {at: 100 - at for at in range(ways)} | {ways: 500, ways + 1: 500}
    found = _waited(text, ways, counts, 8000)
    assert set(found) == set(range(blamed_ways))


def test_a_way_that_was_never_seen_counts_as_one() -> None:
    text = """
        @P0 BRA other | S1
        MOV R5, R6 | S1
        BRA join | S5
        other: MOV R5, R7 | S5
        join: FMUL R3, R0, R4
        EXIT
        """
    counts = {0: 3, 1: 3, 2: 3, 3: 0, 4: 3, 5: 3}
    assert _waited(text, 4, counts, 400) == {2: 300, 3: 100}


def test_what_one_instruction_is_waited_for_on_several_ways_adds_up() -> None:
    text = "FADD R0, R1, R2\n@P0 BRA join\n@P1 BRA join\nMOV R5, R6\njoin: FMUL R3, R0, R4\nEXIT"
    assert _waited(text, 4, dict.fromkeys(range(6), 10), 300) == {0: 200, 3: 100}


@pytest.mark.parametrize("use", ["LDG.E R4, [R2.64]", "@P0 BRA out", "@P0 EXIT", "STG.E [R8.64], R2"])
def test_memory_and_branches_take_a_result_last(use: str) -> None:
    """An adder would have had both by then: the sum two cycles before, the compare three."""
    text = (
        f"ISETP.GE.AND P0, PT, R0, R1, PT | S3\nIADD3 R2, R0, R1, RZ | S4\nMOV R7, R9 | S5\n{use}\nout: EXIT"
    )
    assert _waited(text, 3) == {1 if "R2" in use else 0: 100}


def test_nops_are_looked_through_to_the_start_of_their_block_alone() -> None:
    text = "@P0 BRA next | S2\nnext: NOP | S5\nNOP | S5\nMOV R0, R1\nEXIT"
    assert _waited(text, 3) == {1: 100}
    assert _waited("MOV R0, R1 | S2\nNOP | S5\nNOP | S5\nFMUL R2, R3, R4\nEXIT", 3) == {0: 100}


def test_who_branches_to_itself_has_no_other_to_wait_for() -> None:
    assert _waited("MOV R0, R1\nEXIT\nspin: BRA spin | S5", 1) == {0: 100}
    assert _waited("spin: BRA spin | S5", 0) == {}
