# SPDX-License-Identifier: Apache-2.0
"""What the edges of the dependency graph say: kind, distance, weight, and why one was cut."""

from __future__ import annotations

import pytest
from tests.assembly import nested_loops
from tests.blame_rows import blame_text, blamed, edge_of, rows

from gpadvisor.blamer import GPA2021
from gpadvisor.model.blame import DependencyKind, PruneRule

READ_BESIDE = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R4.64] | {own}\nFADD R6, R0, R1 | ?0"


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("W1", "the def sets SB1, released before; the use waits on SB0"),
        ("S1", "the def sets no scoreboard; the use waits on SB0"),
    ],
)
def test_a_load_whose_scoreboard_is_not_waited_for_is_cut_and_says_so(own: str, said: str) -> None:
    edge = edge_of(blame_text(READ_BESIDE.format(own=own), {(2, "long_scoreboard"): 9}), 1, 2)
    assert edge.pruned_by is PruneRule.BARRIER
    assert edge.prune_detail == said


@pytest.mark.parametrize(
    ("waited", "use", "said"),
    [
        ("?0", "FADD R6, R0, R1", "its result comes by scoreboard, and the use has no such stall"),
        ("S1", "FADD R6, R0, R1 | ?0", "the use has no scoreboard stall"),
    ],
)
def test_a_load_is_no_cause_of_a_wait_for_the_pipeline_and_says_so(waited: str, use: str, said: str) -> None:
    text = f"LDG.E R0, [R2.64] | W0\nMOV R8, R9 | {waited}\n{use}"
    edge = edge_of(blame_text(text, {(2, "wait"): 9}), 0, 2)
    assert edge.pruned_by is PruneRule.REASON
    assert edge.prune_detail == said


def test_what_is_spaced_behind_a_load_waits_for_the_schedule() -> None:
    """Its result comes by scoreboard: nothing of it is there when the stall count is over."""
    result = blame_text("LDG.E R0, [R2.64] | S4 W0\nFADD R6, R0, R8", {(1, "wait"): 9})
    assert blamed(result, "wait") == {0: ("schedule", 9)}


def test_what_a_stall_count_waits_for_is_a_cause_that_stays() -> None:
    result = blame_text("FADD R0, R1, R2 | S5\nFADD R6, R0, R8", {(1, "wait"): 9})
    assert edge_of(result, 0, 1).pruned_by is None


def test_by_the_rules_of_2021_an_atomic_operation_is_no_cause_of_a_memory_stall() -> None:
    text, samples = "ATOM.E.ADD R0, [R2.64], R5 | W0\nFADD R6, R0, R8 | ?0", {(1, "long_scoreboard"): 9}
    assert edge_of(blame_text(text, samples, rules=GPA2021), 0, 1).pruned_by is PruneRule.OPCODE
    assert edge_of(blame_text(text, samples), 0, 1).pruned_by is None


def test_a_barrier_stall_tells_how_far_away_its_cause_is() -> None:
    text = "LDG.E R0, [R2.64] | W0\nSTS [R4], R0 | ?0\nBAR.SYNC 0x0 | S5\nLDS R1, [R5] | W1\nEXIT"
    result = blame_text(text, {(1, "long_scoreboard"): 90, (3, "barrier"): 50})
    assert [row.distance for row in rows(result) if row.reason == "barrier"] == [3]


def test_what_instructions_take_by_themselves_before_a_barrier_counts_beside_waits() -> None:
    text = "LDG.E R0, [R2.64] | W0\nFADD R1, R0, R4 | ?0\nMOV R5, R6\nBAR.SYNC 0x0 | S5\nEXIT"
    samples = {(1, "long_scoreboard"): 100, (2, "selected"): 60, (2, "not_selected"): 40, (3, "barrier"): 400}
    found = blamed(blame_text(text, samples), "barrier")
    assert found == {0: ("synchronization", 100), 2: ("synchronization", 300)}


@pytest.mark.parametrize(
    ("stalls", "shares"), [((2, 4), (25, 75)), ((3, 3), (50, 50)), ((1, 2), (50, 50)), ((1, 3), (33, 67))]
)
def test_what_ways_into_a_use_share_is_by_the_cycles_that_they_wait(
    stalls: tuple[int, int], shares: tuple[int, int]
) -> None:
    """A stall count of n is a wait of n - 1 cycles, the next instruction's own one aside."""
    first, second = stalls
    text = f"""
        @P0 BRA other | S1
        MOV R5, R6 | S1
        BRA join | S{first}
        other: MOV R5, R7 | S{second}
        join: FMUL R3, R0, R4
        EXIT
        """
    found = blamed(blame_text(text, {(4, "wait"): 100}, counts=dict.fromkeys(range(6), 1)), "wait")
    assert [found[at][1] for at in (2, 3)] == pytest.approx(shares, abs=1)


def test_a_value_that_only_the_guard_reads_is_a_dependency_of_the_guard() -> None:
    text = "ISETP.GE.AND P0, PT, R0, R1, PT | S4\n@P0 MOV R4, R5"
    assert edge_of(blame_text(text, {(1, "wait"): 8}, rules=GPA2021), 0, 1).kind is DependencyKind.GUARD


def test_a_value_that_an_operand_reads_is_a_dependency_of_a_register() -> None:
    text = "FADD R0, R1, R2 | S4\n@P0 FADD R3, R0, R4"
    assert edge_of(blame_text(text, {(1, "wait"): 8}, rules=GPA2021), 0, 1).kind is DependencyKind.REGISTER


def test_a_store_of_few_warps_is_in_flight_for_those_alone() -> None:
    """Half as many warps, twice as far away: a fourth by Eq. 1; that more warps end adds nothing."""
    text = "@P0 BRA on\nSTG.E [R2.64], R0\non: STG.E [R4.64], R0\nEXIT"
    found = blamed(blame_text(text, {(3, "drain"): 100}, counts={0: 20, 1: 10, 2: 20, 3: 20}), "drain")
    assert (found[1][1], found[2][1]) == (20, 80)


def test_synchronization_and_fences_are_told_apart_in_the_code() -> None:
    text = "MOV R0, R1\nMEMBAR.SC.GPU\nMOV R2, R3\nBAR.SYNC 0x0\nMOV R4, R5"
    result = blame_text(text, {(2, "membar"): 7, (4, "barrier"): 9}, rules=GPA2021)
    assert blamed(result, "membar") == {1: ("memory_barrier", 7)}
    assert blamed(result, "barrier") == {3: ("synchronization", 9)}


def test_a_search_that_was_cut_short_is_told() -> None:
    text, samples = "LDG.E R0, [R2.64] | W0\nFADD R1, R0, R1 | ?0", {(1, "long_scoreboard"): 9}
    assert not blame_text(f"{text}\n{nested_loops(4)}", samples).problems
    (problem,) = blame_text(f"{text}\n{nested_loops(16)}", samples).problems
    assert "some sources may be missing" in problem.message
