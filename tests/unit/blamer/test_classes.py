# SPDX-License-Identifier: Apache-2.0
"""What an instruction is to the blamer: memory or not, which scoreboard stall, a copy, a reader of one."""

from __future__ import annotations

import pytest
from tests.assembly import assemble
from tests.blame_rows import blame_text, blamed, edge_of, graph_of, rows

from gpadvisor.blamer import DEFAULT_RULES, GPA2021, PAPER
from gpadvisor.blamer.bulk_copies import _awaited, _reads_next
from gpadvisor.blamer.classify import Scoreboard, dependency_class, is_l1tex, is_memory, stalls_as
from gpadvisor.blamer.pruning import barrier_rule, is_memory_source, opcode_rule
from gpadvisor.model.blame import DependencyClass, DependencyKind, PruneRule
from gpadvisor.model.stalls import StallClass

LONG, SHORT = Scoreboard.LONG, Scoreboard.SHORT


@pytest.mark.parametrize(
    ("line", "memory", "l1tex", "stall"),
    [
        ("LDG.E R0, [R2.64]", True, True, LONG),
        ("LDL R0, [R2]", True, True, LONG),
        ("LDS R0, [R2]", True, False, SHORT),
        ("LDC R0, c[0x0][R2]", True, False, SHORT),
        ("LD.E R0, [R2.64]", True, True, LONG | SHORT),  # wherever its address lies
        ("TEX.SCR.LL RZ, R0, R2, R4, 0x0, 0x5a, 2D, 0x1", True, True, LONG),
        ("MUFU.RCP R0, R1", False, False, SHORT),
        ("LDGDEPBAR", False, False, LONG),
        ("MEMBAR.SC.GPU", False, False, LONG | SHORT),
        ("CCTL.IVALL", True, True, LONG | SHORT),
        ("NONESUCH R0, R1", False, False, LONG | SHORT),
    ],
)
def test_which_scoreboard_stall_a_wait_for_an_operation_is(
    line: str, memory: bool, l1tex: bool, stall: Scoreboard
) -> None:
    (instruction,) = assemble(line)
    assert (is_memory(instruction), is_l1tex(instruction)) == (memory, l1tex)
    assert stalls_as(instruction, reads_only=False) == stall
    assert stalls_as(instruction, reads_only=True) == (LONG | SHORT if l1tex else stall)


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("STS [R2], R0", DependencyKind.WRITE_AFTER_READ, DependencyClass.WRITE_AFTER_READ),
        ("LDG.E R0, [R2.64]", DependencyKind.STALL_COUNT, DependencyClass.SCHEDULE),
        ("CCTL.IVALL", DependencyKind.BARRIER, DependencyClass.GLOBAL_MEMORY),
        ("LDGDEPBAR", DependencyKind.BARRIER, DependencyClass.ASYNC_COPY),
        ("FADD R0, R1, R2", DependencyKind.REGISTER, DependencyClass.ARITHMETIC),
    ],
)
def test_the_class_of_a_dependency(line: str, kind: DependencyKind, expected: DependencyClass) -> None:
    (instruction,) = assemble(line)
    assert dependency_class(instruction, kind) is expected


@pytest.mark.parametrize(
    ("line", "default", "code"),
    [
        ("LDG.E R0, [R2.64]", True, True),
        ("LDS R0, [R2]", False, False),
        ("LDC R0, c[0x0][R2]", True, False),
        ("ATOMG.E.ADD R0, [R2.64], R5", True, False),
        ("STG.E [R2.64], R0", False, False),
        ("FADD R0, R1, R2", False, False),
    ],
)
def test_what_competes_for_memory_stalls(line: str, default: bool, code: bool) -> None:
    (instruction,) = assemble(line)
    assert is_memory_source(instruction, DEFAULT_RULES) is default
    assert is_memory_source(instruction, GPA2021) is code


def test_what_the_opcode_rule_says() -> None:
    add, load = assemble("FADD R0, R1, R2\nLDG.E R0, [R2.64]")
    memory, both = {StallClass.MEMORY}, {StallClass.MEMORY, StallClass.EXECUTION}
    said = "FADD does not cause memory stalls, and the use has no other dependency stall"
    assert opcode_rule(add, memory, PAPER) == said
    assert (
        opcode_rule(load, {StallClass.EXECUTION}, PAPER) == "LDG causes memory stalls, and the use has none"
    )
    assert opcode_rule(add, both, PAPER) is opcode_rule(load, both, PAPER) is None


def test_what_the_barrier_rule_says() -> None:
    use, none = assemble("FADD R0, R1, R2 | ?03\nFADD R0, R1, R2")
    setter, silent = assemble("LDG.E R0, [R2.64] | W1 R2\nFADD R0, R1, R2")
    assert barrier_rule(setter, use) == "the def sets SB1, SB2, released before; the use waits on SB0, SB3"
    assert barrier_rule(silent, none) == "the def sets no scoreboard; the use waits on no scoreboard"


TRIAL = """
    UTMALDG.2D [UR8], [UR4] | R0
    try: SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R12+URZ], R7 | W1
    @!P0 BRA try | ?1
    {next}
    EXIT
    """


@pytest.mark.parametrize(
    ("following", "copies"),
    [
        ("LDS R0, [R1]", [0]),
        ("LD.E R0, [R2.64]", [0]),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24", [0]),
        ("LDG.E R0, [R2.64]", []),
        ("HMMA.16816.F32 R4, R4, R6, R4", []),
        ("UTMALDG.2D [UR8], [UR4]", []),
        ("MOV R0, R1", []),
    ],
)
def test_who_tries_an_mbarrier_and_then_reads_shared_memory_waits_for_copies(
    following: str, copies: list[int]
) -> None:
    graph = graph_of(TRIAL.format(next=following), arch="sm_90")
    assert _awaited(graph, 1) == copies
    assert _awaited(graph, 2) == _awaited(graph, 0) == []


def test_who_arrives_at_an_mbarrier_waits_for_no_copies() -> None:
    text = "UTMALDG.2D [UR8], [UR4]\nSYNCS.ARRIVE.TRANS64 RZ, [R12+URZ], R7\nLDS R0, [R1]\nEXIT"
    assert _awaited(graph_of(text, arch="sm_90"), 1) == []


@pytest.mark.parametrize(("blocks", "found"), [(63, True), (64, False)])
def test_what_is_read_next_is_looked_for_in_64_blocks(blocks: int, found: bool) -> None:
    lines = [f"b{at}: @P0 BRA b{at + 1}" for at in range(blocks)]
    assert _reads_next(graph_of("\n".join([*lines, f"b{blocks}: LDS R4, [R5]", "EXIT"])), 0) is found


@pytest.mark.parametrize(("issues", "copies"), [((1, 0), [0]), ((0, 1), [1]), ((0, 0), [0, 1])])
def test_copies_that_ran_are_waited_for(issues: tuple[int, int], copies: list[int]) -> None:
    text = "UTMALDG.2D [UR8], [UR4]\nLDGSTS.E [R8], [R2.64]\n" + TRIAL.split("\n", 2)[2]
    graph = graph_of(text.format(next="LDS R0, [R1]"), [*issues, 1, 1, 1, 1], arch="sm_90")
    assert _awaited(graph, 2) == copies


def test_shared_memory_is_read_next_behind_branches_too() -> None:
    text = "MOV R0, R1\n@P0 BRA other\nMOV R2, R3\nother: LDS R4, [R5]\nEXIT"
    assert [_reads_next(graph_of(text), at) for at in range(5)] == [True, True, True, False, False]
    assert _reads_next(graph_of("MOV R0, R1\nLDS R4, [R5]\nMOV R0, R1\nEXIT"), 0)
    around = "top: MOV R0, R1\n@P0 BRA top\nEXIT"
    assert not _reads_next(graph_of(around), 0)


def test_a_commit_stands_for_the_copies_of_its_own_group_alone() -> None:
    text = "LDGSTS.E [R8], [R2.64] | R1\nLDGDEPBAR | W0\nDEPBAR.LE SB0, 0x0\nEXIT"
    edge = edge_of(blame_text(text, {(2, "long_scoreboard"): 30}), 1, 2)
    assert edge.pruned_by is PruneRule.BARRIER
    assert edge.prune_detail == "it commits copies to a group, and those are what is waited for"


def test_a_short_stall_is_no_wait_for_a_load_and_says_so() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDS R1, [R4] | W1\nFADD R6, R0, R1 | ?01"
    edge = edge_of(blame_text(text, {(2, "short_scoreboard"): 60}), 0, 2)
    assert edge.prune_detail == "short_scoreboard is no wait for L1TEX, where LDG goes"


@pytest.mark.parametrize(("cycles", "kept"), [(1099, True), (1100, False)])
def test_without_a_wait_a_load_is_a_source_until_its_longest_latency(cycles: int, kept: bool) -> None:
    between = "\n".join([f"MOV R9, R8 | S{cycles - 1090}", *["MOV R9, R8 | S10"] * 109])
    text = f"LDG.E R0, [R2.64] | W0\n{between}\nFADD R6, R0, R1"
    use = len(text.splitlines()) - 1
    result = blame_text(text, {(use, "long_scoreboard"): 7})
    assert set(blamed(result, "long_scoreboard")) == ({0} if kept else set())
    if kept:
        assert [row.distance for row in rows(result)] == [use]
    else:
        edge = edge_of(result, 0, use)
        assert (edge.pruned_by, edge.prune_detail) == (
            PruneRule.LATENCY,
            "every path is longer than its latency, 1100",
        )


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("LDG.E R0, [R2.64] | W0", "short_scoreboard"),
        ("LDS R0, [R2] | W0", "long_scoreboard"),
        ("FADD R0, R2, R3", "short_scoreboard"),
    ],
)
def test_without_a_wait_only_what_the_reason_allows_is_a_source(source: str, reason: str) -> None:
    assert blamed(blame_text(f"{source}\nFADD R6, R0, R1\nEXIT", {(1, reason): 7}), reason) == {}


def test_an_operation_of_unknown_latency_may_always_be_running() -> None:
    between = "\n".join(["MOV R9, R8 | S15"] * 100)
    text = f"NONESUCH R0, [R2] | W0\n{between}\nLDG.E R1, [R2.64] | W0\nFADD R6, R0, R1 | ?0"
    assert edge_of(blame_text(text, {(102, "long_scoreboard"): 900}), 0, 102).pruned_by is None


def test_who_stands_behind_a_depbar_waits_for_what_it_waits_for() -> None:
    text = "LDGSTS.E [R8], [R2.64] | R1\nLDGDEPBAR | W0\nDEPBAR.LE SB0, 0x0\nFADD R6, R4, R7\nEXIT"
    assert set(blamed(blame_text(text, {(3, "long_scoreboard"): 30}), "long_scoreboard")) == {0}


def test_without_a_wait_the_reader_before_is_named() -> None:
    text = "LDG.E R0, [R2.64] | W0\nFADD R6, R0, R1\n@P0 FADD R8, R0, R1\nFADD R7, R0, R1"
    edge = edge_of(blame_text(text, {(3, "long_scoreboard"): 7}), 0, 3)
    assert edge.prune_detail == "the operand is read before, at 0x10, on every path"
    guarded = "LDG.E R0, [R2.64] | W0\n@P0 FADD R6, R0, R1\nFADD R7, R0, R1"
    assert set(blamed(blame_text(guarded, {(2, "long_scoreboard"): 7}), "long_scoreboard")) == {0}


def test_a_cut_sum_says_that_it_causes_no_scoreboard_stall() -> None:
    text = "LDG.E R0, [R2.64] | W0\nFADD R1, R2, R3\nFADD R6, R0, R1 | ?0"
    edge = edge_of(blame_text(text, {(2, "long_scoreboard"): 9}), 1, 2)
    assert edge.pruned_by is PruneRule.OPCODE
    assert edge.prune_detail == "FADD has a fixed latency and causes no scoreboard stall"
