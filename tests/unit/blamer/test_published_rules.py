# SPDX-License-Identifier: Apache-2.0
"""The printed paper (Fig. 4, the three rules) and the released code (its oracles) by parameters."""

from __future__ import annotations

import pytest
from tests.assembly import assemble
from tests.blame_rows import blame_text, blamed, edge_of, rows

from gpadvisor.blamer import DEFAULT_RULES, GPA2021, PAPER
from gpadvisor.blamer.pruning import both_barriers_rule, opcode_rule
from gpadvisor.model.blame import PruneRule
from gpadvisor.model.stalls import StallClass

# GPA Fig. 4: one of two loads under opposite predicates, and an IMAD, before the stalled IADD.
FIGURE_4 = """
    @!P0 LDC R0, c[0x0][R6] | W1
    MOV R10, R11
    IMAD R2, R7, R8, R9 | S4
    @P0 LDG.E R0, [R4.64] | W0
    MOV R12, R11
    IADD3 R1, R0, R2, RZ | ?01
    """


def test_figure_4() -> None:
    samples = {(5, "long_scoreboard"): (100, 60), (0, "selected"): 25, (3, "selected"): 10}
    result = blame_text(FIGURE_4, samples, rules=PAPER)
    # LDC has 2.5 times the issues at 2.5 times the distance.
    assert blamed(result, "long_scoreboard") == {0: ("constant_memory", 50), 3: ("global_memory", 50)}
    assert edge_of(result, 0, 5).distance_instructions == 5
    assert edge_of(result, 3, 5).distance_instructions == 2
    imad = edge_of(result, 2, 5)
    assert imad.pruned_by is PruneRule.OPCODE
    assert imad.prune_detail is not None
    assert "IMAD" in imad.prune_detail


def test_figure_4_by_todays_reasons() -> None:
    result = blame_text(FIGURE_4, {(5, "long_scoreboard"): 100}, rules=DEFAULT_RULES)
    assert blamed(result, "long_scoreboard") == {3: ("global_memory", 100)}


def test_figure_4_by_the_released_code_constants_wait_as_execution() -> None:
    samples = {(5, "long_scoreboard"): 100, (5, "short_scoreboard"): 40}
    result = blame_text(FIGURE_4, samples, rules=GPA2021)
    assert blamed(result, "long_scoreboard") == {3: ("global_memory", 100)}
    assert 0 in blamed(result, "short_scoreboard")


def between(count: int, line: str = "MOV R20, R21 | S1") -> str:
    return "\n".join([line] * count)


@pytest.mark.parametrize(("count", "kept"), [(3, True), (4, False)])
def test_fixed_latency_counts_instructions_strictly_between(count: int, kept: bool) -> None:
    text = f"IADD3 R0, R1, R2, RZ | S15\n{between(count)}\nFMUL R3, R0, R4"
    result = blame_text(text, {(count + 1, "wait"): 8}, rules=GPA2021, arch="sm_70")
    assert (edge_of(result, 0, count + 1).pruned_by is None) is kept
    expected = ("blamed", "arithmetic") if kept else ("self", "schedule")
    assert [(row.role, row.dependency) for row in rows(result)] == [expected]


@pytest.mark.parametrize(("last", "kept"), [(3, True), (4, False)])
def test_variable_latency_counts_stall_cycles_strictly_between(last: int, kept: bool) -> None:
    # 68 times 15 is 1020: the load is hidden from 1024 on.
    hiding = f"{between(68, 'MOV R20, R21 | S15')}\nMOV R20, R21 | S{last}"
    text = f"LDG.E R0, [R2.64] | W0 S15\n{hiding}\nFMUL R3, R0, R4 | ?0"
    result = blame_text(text, {(70, "long_scoreboard"): 8}, rules=GPA2021)
    edge = edge_of(result, 0, 70)
    assert edge.pruned_by is (None if kept else PruneRule.LATENCY)
    assert [row.role for row in rows(result)] == ["blamed" if kept else "unattributed"]


def test_distance_in_one_block() -> None:
    text = f"NOP\nLDG.E R0, [R2.64] | W0\n{between(3)}\nFMUL R3, R0, R4 | ?0"
    result = blame_text(text, {(5, "long_scoreboard"): 8}, rules=GPA2021)
    assert edge_of(result, 1, 5).distance_instructions == 4  # 0x10 to 0x50


def test_guards_stop_the_slice() -> None:
    text = "MOV R0, R9\n@P0 LDG.E R0, [R2.64] | W0\n@!P0 LDG.E R0, [R4.64] | W0\nFMUL R3, R0, R5"
    both = blame_text(text, {(3, "long_scoreboard"): 8}, rules=GPA2021)
    assert {edge.def_index for edge in both.edges} == {1, 2}
    text = "@P0 LDG.E R0, [R2.64] | W0\nMOV R0, R9\n@!P0 LDG.E R0, [R4.64] | W0\nFMUL R3, R0, R5"
    one = blame_text(text, {(3, "long_scoreboard"): 8}, rules=GPA2021)
    assert {edge.def_index for edge in one.edges} == {1, 2}


READER = "LDG.E R0, [R2.64] | W0\n{guard}FADD R6, R0, R7\nFMUL R3, R0, R4"


def test_dominator_rule_only_unguarded_readers_in_the_paper() -> None:
    plain, guarded = READER.format(guard=""), READER.format(guard="@P3 ")
    samples = {(2, "long_scoreboard"): 8}
    assert edge_of(blame_text(plain, samples, rules=PAPER), 0, 2).pruned_by is PruneRule.DOMINATOR
    assert edge_of(blame_text(guarded, samples, rules=PAPER), 0, 2).pruned_by is None
    assert edge_of(blame_text(guarded, samples, rules=GPA2021), 0, 2).pruned_by is PruneRule.DOMINATOR


def test_a_reader_on_one_of_two_paths_does_not_cut() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        @P1 BRA join
        FADD R6, R0, R7
        join: FMUL R3, R0, R4
        EXIT
        """
    assert edge_of(blame_text(text, {(3, "long_scoreboard"): 8}, rules=PAPER), 0, 3).pruned_by is None


def test_latency_rule_of_the_paper_needs_every_path_longer() -> None:
    text = f"FADD R0, R1, R2\n@P1 BRA near\n{between(20)}\nnear: FMUL R3, R0, R4\nEXIT"
    assert edge_of(blame_text(text, {(22, "wait"): 8}, rules=PAPER), 0, 22).pruned_by is None
    straight = f"FADD R0, R1, R2\n{between(20)}\nFMUL R3, R0, R4\nEXIT"
    assert edge_of(blame_text(straight, {(21, "wait"): 8}, rules=PAPER), 0, 21).pruned_by is PruneRule.LATENCY


def test_average_and_longest_path() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        @P1 BRA short
        MOV R9, R8
        MOV R9, R8
        short: LDG.E R1, [R2.64] | W0
        FMUL R3, R0, R1 | ?0
        EXIT
        """
    samples = {(5, "long_scoreboard"): 1000, (0, "selected"): 10, (4, "selected"): 10}
    # Paths of 3 and 5 instructions: 4 on average, against 1.
    average = blamed(blame_text(text, samples, rules=GPA2021), "long_scoreboard")
    assert average == {0: ("global_memory", 200), 4: ("global_memory", 800)}
    longest = blamed(blame_text(text, samples, rules=PAPER), "long_scoreboard")
    assert longest == {0: ("global_memory", 166), 4: ("global_memory", 834)}


def test_an_unsampled_def_counts_32_issues_in_the_released_code() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R2.64] | W0\nFMUL R3, R0, R1 | ?0"
    samples = {(2, "long_scoreboard"): 1000, (1, "selected"): 48}
    found = blamed(blame_text(text, samples, rules=GPA2021), "long_scoreboard")
    assert found == {0: ("global_memory", 250), 1: ("global_memory", 750)}


def test_the_barrier_rule_of_the_code_needs_both_barriers() -> None:
    use, other = assemble("FMUL R3, R0, R4 | ?2\nFMUL R3, R0, R4 | ?0")
    both, one = assemble("LDG.E R0, [R2.64] | W0 R1\nLDG.E R0, [R2.64] | W0")
    assert both_barriers_rule(both, use) is not None
    assert both_barriers_rule(both, other) is None
    assert both_barriers_rule(one, use) is None


@pytest.mark.parametrize(
    ("line", "observed", "kept"),
    [
        ("LDG.E R0, [R2.64]", StallClass.MEMORY, True),
        ("LDG.E R0, [R2.64]", StallClass.EXECUTION, False),
        ("LDS R0, [R2]", StallClass.EXECUTION, True),
        ("LDS R0, [R2]", StallClass.MEMORY, False),
        ("LDC R0, c[0x0][R2]", StallClass.MEMORY, True),
        ("LDC R0, c[0x0][R2]", StallClass.EXECUTION, True),
        ("IMAD R0, R1, R2, R3", StallClass.FIXED_LATENCY, True),
        ("IMAD R0, R1, R2, R3", StallClass.MEMORY, False),
        ("STG.E [R2.64], R0", StallClass.EXECUTION, True),
    ],
)
def test_opcode_rule(line: str, observed: StallClass, kept: bool) -> None:
    assert (opcode_rule(assemble(line)[0], {observed}, PAPER) is None) is kept


@pytest.mark.parametrize(("count", "kept"), [(6, True), (7, False)])
def test_fixed_latency_of_the_paper_is_the_longest(count: int, kept: bool) -> None:
    text = f"FADD R0, R1, R2\n{between(count)}\nFMUL R3, R0, R4"
    assert (
        edge_of(blame_text(text, {(count + 1, "wait"): 8}, rules=PAPER), 0, count + 1).pruned_by is None
    ) is kept


@pytest.mark.parametrize(("count", "kept"), [(6, True), (7, False)])
def test_shared_memory_has_its_own_bound_in_the_code(count: int, kept: bool) -> None:
    text = f"LDS R0, [R2] | W0\n{between(count, 'MOV R20, R21 | S14')}\nFMUL R3, R0, R4 | ?0"
    edge = edge_of(blame_text(text, {(count + 1, "short_scoreboard"): 8}, rules=GPA2021), 0, count + 1)
    assert edge.pruned_by is (None if kept else PruneRule.LATENCY)


def test_the_barrier_rule_is_the_codes_alone() -> None:
    text, samples = "LDG.E R0, [R2.64] | W0 R1\nFMUL R3, R0, R4 | ?2", {(1, "long_scoreboard"): 8}
    cut = edge_of(blame_text(text, samples, rules=GPA2021), 0, 1)
    assert (cut.pruned_by, cut.prune_detail) == (
        PruneRule.BARRIER,
        "the use waits on neither SB0 nor SB1 of the def",
    )
    assert edge_of(blame_text(text, samples, rules=PAPER), 0, 1).pruned_by is None


def test_a_partial_wait_is_for_what_its_scoreboard_counts() -> None:
    text = """
        LDGSTS.E [R8], [R2.64] | R1
        LDGDEPBAR | W0
        LDG.E R4, [R2.64] | W2
        DEPBAR.LE SB0, 0x0
        EXIT
        """
    result = blame_text(text, {(3, "long_scoreboard"): 30}, rules=PAPER)
    assert {edge.def_index for edge in result.edges} == {0, 1}


def test_memory_leftovers_are_unattributed_and_execution_leftovers_stay_on_the_use_in_the_code() -> None:
    samples = {(0, "long_scoreboard"): 6, (0, "wait"): 4}
    code = blame_text("MOV R0, R1", samples, rules=GPA2021)
    assert {(row.reason, row.role, row.dependency) for row in rows(code)} == {
        ("long_scoreboard", "unattributed", "none"),
        ("wait", "self", "schedule"),
    }
    paper = blame_text("MOV R0, R1", samples, rules=PAPER)
    assert {row.role for row in rows(paper)} == {"unattributed"}


def test_synchronization_by_address_in_the_code() -> None:
    text = "MOV R0, R1\nBAR.SYNC.DEFER_BLOCKING 0x0\nMOV R2, R3\nMOV R4, R5"
    samples = {(1, "barrier"): 5, (2, "barrier"): 7, (3, "barrier"): 9}
    found = {(row.use, row.role, row.definition) for row in rows(blame_text(text, samples, rules=GPA2021))}
    assert found == {(1, "self", None), (2, "blamed", 1), (3, "blamed", 2)}


def test_a_wait_without_register_is_a_write_after_read_for_execution_stalls_in_the_code() -> None:
    text = "LDS R0, [R2] | W0\nMOV R5, R6 | ?0"
    assert blamed(blame_text(text, {(1, "short_scoreboard"): 5}, rules=GPA2021), "short_scoreboard") == {
        0: ("write_after_read", 5)
    }
