# SPDX-License-Identifier: Apache-2.0
"""Sources by wait masks, stall counts and fine stall reasons: the default rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.assembly import function_of, model, profile_of, program_of
from tests.blame_rows import assert_conserved, blame_text, blamed, edge_of, rows
from tests.hand_made import instruction

from gpadvisor.blamer import GPA2021, PAPER, blame
from gpadvisor.blamer.classify import copies_into_shared
from gpadvisor.model.blame import DependencyKind, PruneRule
from gpadvisor.model.program import FunctionKind


def test_a_scoreboard_stall_goes_to_the_setter_of_the_waited_scoreboard() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        LDG.E R1, [R4.64] | W1
        FADD R6, R0, R1 | ?1
        """
    result = blame_text(text, {(2, "long_scoreboard"): 100})
    assert blamed(result, "long_scoreboard") == {1: ("global_memory", 100)}
    assert edge_of(result, 0, 2).pruned_by is PruneRule.BARRIER
    assert edge_of(result, 1, 2).pruned_by is None


def test_figure_3_a_wait_without_register_use() -> None:
    text = "top: LDG.E R0, [R2.64] | W0\n@P1 BRA top | ?0\nEXIT"
    result = blame_text(text, {(1, "long_scoreboard"): (80, 70)})
    assert blamed(result, "long_scoreboard") == {0: ("global_memory", 80)}
    assert edge_of(result, 0, 1).kind is DependencyKind.BARRIER


def test_long_and_short_scoreboard_are_split_by_reason() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        LDS R1, [R4] | W1
        FADD R6, R0, R1 | ?01
        """
    result = blame_text(text, {(2, "long_scoreboard"): 60, (2, "short_scoreboard"): 40})
    assert blamed(result, "long_scoreboard") == {0: ("global_memory", 60)}
    assert blamed(result, "short_scoreboard") == {1: ("shared_memory", 40)}
    only_long = edge_of(blame_text(text, {(2, "long_scoreboard"): 60}), 1, 2)
    assert only_long.pruned_by is PruneRule.REASON
    assert only_long.prune_detail == "long_scoreboard is a wait for L1TEX, and LDS does not go there"


@pytest.mark.parametrize(
    ("source", "reason", "expected"),
    [
        ("LDL R0, [R1]", "long_scoreboard", "local_memory"),
        ("TEX.SCR.LL RZ, R0, R2, R4, 0x0, 0x5a, 2D, 0x1", "long_scoreboard", "texture"),
        ("ATOMG.E.ADD.STRONG.GPU PT, R0, [R2.64], R5", "long_scoreboard", "global_memory"),
        ("LDC R0, c[0x0][R2]", "short_scoreboard", "constant_memory"),
        ("MUFU.RCP R0, R1", "short_scoreboard", "arithmetic"),
        ("F2I.TRUNC.NTZ R0, R1", "short_scoreboard", "arithmetic"),
        ("S2R R0, SR_TID.X", "short_scoreboard", "arithmetic"),
        ("LDS R0, [R1]", "short_scoreboard", "shared_memory"),
    ],
)
def test_classes_of_figure_5(source: str, reason: str, expected: str) -> None:
    result = blame_text(f"{source} | W2\nFADD R6, R0, R7 | ?2", {(1, reason): 10})
    assert blamed(result, reason) == {0: (expected, 10)}


def test_write_after_read_by_the_read_barrier() -> None:
    text = "STG.E [R2.64], R0 | R0\nMOV R0, R5 | ?0"
    result = blame_text(text, {(1, "short_scoreboard"): 10, (1, "long_scoreboard"): 4})
    assert blamed(result, "short_scoreboard") == {0: ("write_after_read", 10)}
    assert blamed(result, "long_scoreboard") == {0: ("write_after_read", 4)}
    assert edge_of(result, 0, 1).kind is DependencyKind.WRITE_AFTER_READ


def test_an_older_load_of_the_queue_is_waited_for_but_completes_first() -> None:
    text = "LDS R0, [R8]\nLDS R1, [R8+0x4] | W0\nFADD R4, R9, R1 | ?0\nFADD R5, R0, R4"
    result = blame_text(text, {(2, "short_scoreboard"): 30})
    assert blamed(result, "short_scoreboard") == {1: ("shared_memory", 30)}
    older = edge_of(result, 0, 2)
    assert older.kind is DependencyKind.QUEUE
    assert older.pruned_by is PruneRule.LATENCY
    assert older.prune_detail == "LDS at 0x10, issued later in the same queue, completes later"


def test_asynchronous_copies() -> None:
    text = "LDGSTS.E [R8], [R2.64] | R1\nLDGDEPBAR | W0\nDEPBAR.LE SB0, 0x0"
    found = blamed(blame_text(text, {(2, "long_scoreboard"): 30}), "long_scoreboard")
    assert found == {0: ("async_copy", 30)}  # not the commit, which only stands for its copies
    alone = "LDGDEPBAR | W0\nDEPBAR.LE SB0, 0x0"
    assert blamed(blame_text(alone, {(1, "long_scoreboard"): 30}), "long_scoreboard") == {
        0: ("async_copy", 30)
    }


def test_a_warp_held_by_depbar_is_sampled_behind_it() -> None:
    text = """
        LDGSTS.E [R8], [R2.64] | R1
        LDGDEPBAR | W0
        LDS R4, [R5] | W1
        DEPBAR.LE SB0, 0x0
        FADD R6, R4, R7 | ?1
        """
    result = blame_text(text, {(4, "long_scoreboard"): 30, (4, "short_scoreboard"): 5})
    assert blamed(result, "long_scoreboard") == {0: ("async_copy", 30)}
    assert blamed(result, "short_scoreboard") == {2: ("shared_memory", 5)}


MBARRIER = """
    @P1 BRA consumer
    producer: SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R12+URZ], R7 | W1
    @!P0 BRA producer | ?1
    UTMALDG.2D [UR8], [UR4] | R0
    BRA producer
    consumer: SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R12+URZ], R7 | W1
    @!P0 BRA consumer | ?1
    LDS R0, [R1] | W0
    BRA consumer | ?0
    """


def test_who_waits_at_an_mbarrier_for_data_waits_for_the_copies_that_arrive_there() -> None:
    result = blame_text(MBARRIER, {(6, "long_scoreboard"): 30}, arch="sm_90")
    assert blamed(result, "long_scoreboard") == {3: ("async_copy", 30)}
    assert edge_of(result, 5, 6).pruned_by is PruneRule.BARRIER


def test_who_waits_at_an_mbarrier_for_room_does_not_wait_for_copies() -> None:
    result = blame_text(MBARRIER, {(2, "long_scoreboard"): 30}, arch="sm_90")
    assert blamed(result, "long_scoreboard") == {1: ("synchronization", 30)}


def test_executed_counts_weigh_more_than_samples() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R4.64] | W0\nFADD R6, R0, R1 | ?0"
    samples = {(2, "long_scoreboard"): 90, (0, "selected"): 1, (1, "selected"): 1000}
    counted = blame_text(text, samples, counts={0: 40, 1: 10, 2: 40})
    assert blamed(counted, "long_scoreboard") == {0: ("global_memory", 72), 1: ("global_memory", 18)}


def test_a_wait_mask_outranks_the_reason() -> None:
    text = "ATOMG.E.ADD.STRONG.GPU PT, R0, [R2.64], R5 | W0\nMOV R6, R0 | ?0"
    assert blamed(blame_text(text, {(1, "short_scoreboard"): 3}), "short_scoreboard") == {
        0: ("global_memory", 3)
    }


def test_a_setter_that_must_be_complete_is_cut_unless_it_is_the_only_one() -> None:
    waiting = "\n".join("MOV R9, R8 | S15" for _ in range(100))
    far = f"LDG.E R0, [R2.64] | W0\n{waiting}\nFADD R6, R0, R1 | ?0"
    assert blamed(blame_text(far, {(101, "long_scoreboard"): 5}), "long_scoreboard") == {
        0: ("global_memory", 5)
    }
    both = f"LDG.E R0, [R2.64] | W0\n{waiting}\nLDG.E R1, [R2.64] | W0\nFADD R6, R0, R1 | ?0"
    result = blame_text(both, {(102, "long_scoreboard"): 5})
    assert blamed(result, "long_scoreboard") == {101: ("global_memory", 5)}
    assert edge_of(result, 0, 102).pruned_by is PruneRule.LATENCY


@pytest.mark.parametrize(("stall", "rule"), [(11, None), (12, PruneRule.LATENCY)])
def test_a_setter_can_take_its_longest_latency_and_no_cycle_more(stall: int, rule: PruneRule | None) -> None:
    waiting = "\n".join("MOV R9, R8 | S11" for _ in range(98))
    text = f"LDG.E R0, [R2.64] | W0 S{stall}\n{waiting}\nLDG.E R1, [R2.64] | W0 S11\nFADD R6, R0, R1 | ?0"
    assert model().memory_latency_bound_cycles["global"].value == 100 * 11
    result = blame_text(text, {(100, "long_scoreboard"): 8})
    assert edge_of(result, 0, 100).pruned_by is rule
    assert edge_of(result, 99, 100).pruned_by is None


def test_a_scoreboard_stall_without_a_setter_is_unattributed_and_never_self() -> None:
    result = blame_text("MOV R0, R1\nFADD R6, R0, R1 | ?3", {(1, "long_scoreboard"): 7})
    assert [(row.role, row.dependency, row.samples) for row in rows(result)] == [("unattributed", "none", 7)]


def test_without_a_wait_registers_decide() -> None:
    text = "LDG.E R0, [R2.64] | W0\nFADD R6, R0, R1\nFADD R7, R0, R1"
    near = blame_text(text, {(1, "long_scoreboard"): 7})
    assert blamed(near, "long_scoreboard") == {0: ("global_memory", 7)}
    behind = blame_text(text, {(2, "long_scoreboard"): 7})
    assert edge_of(behind, 0, 2).pruned_by is PruneRule.DOMINATOR
    assert [row.role for row in rows(behind)] == ["unattributed"]


def test_wait_goes_to_the_producer_whose_latency_runs() -> None:
    text = "FADD R0, R1, R2 | S1\nMOV R5, R6 | S3\nFMUL R3, R0, R4"
    result = blame_text(text, {(2, "wait"): 9})
    assert blamed(result, "wait") == {0: ("arithmetic", 9)}
    assert edge_of(result, 0, 2).distance_instructions == 2


@pytest.mark.parametrize(("stall", "expected"), [(2, {0: ("arithmetic", 9)}), (3, {1: ("schedule", 9)})])
def test_a_result_that_is_two_cycles_away_is_waited_for(
    stall: int, expected: dict[int, tuple[str, int]]
) -> None:
    """The next one would have issued a cycle later anyway."""
    text = f"FADD R0, R1, R2 | S{stall}\nMOV R5, R6 | S5\nFMUL R3, R0, R4"
    assert blamed(blame_text(text, {(2, "wait"): 9}), "wait") == expected


def test_what_waits_for_itself_is_a_pass_of_its_loop_away() -> None:
    text = "next: LDG.E R0, [R0] | W0 ?0\nIADD3 R4, R4, 0x1, RZ\n@P0 BRA next\nEXIT"
    result = blame_text(text, {(0, "long_scoreboard"): 30})
    assert blamed(result, "long_scoreboard") == {0: ("global_memory", 30)}
    assert edge_of(result, 0, 0).distance_instructions == 3


@pytest.mark.parametrize(
    ("opcode", "modifiers", "expected"),
    [
        ("UBLKCP", ("S", "G"), True),
        ("UBLKCP", ("G", "S"), False),
        ("LDGSTS", ("E",), True),
        ("UTMALDG", ("2D",), True),
        ("UTMASTG", ("2D",), False),
        ("ST", ("S",), False),
    ],
)
def test_copies_into_shared_memory(opcode: str, modifiers: tuple[str, ...], expected: bool) -> None:
    assert copies_into_shared(replace(instruction(0, opcode), modifiers=modifiers)) is expected


def test_wait_without_a_producer_goes_to_the_stall_count_before() -> None:
    result = blame_text("MOV R5, R6 | S5\nFMUL R3, R0, R4", {(1, "wait"): 9})
    assert blamed(result, "wait") == {0: ("schedule", 9)}
    assert edge_of(result, 0, 1).kind is DependencyKind.STALL_COUNT


def test_of_several_running_results_the_last_one_is_waited_for() -> None:
    text = "FADD R0, R1, R2 | S2\nFADD R3, R1, R2 | S4\nFMUL R4, R0, R3"
    result = blame_text(text, {(2, "wait"): 9})
    assert blamed(result, "wait") == {1: ("arithmetic", 9)}
    assert edge_of(result, 0, 2).pruned_by is PruneRule.LATENCY


def test_a_memory_access_gets_a_result_later_than_the_pipe_that_made_it() -> None:
    text = "ISETP.GE.AND P0, PT, R0, R1, PT | S6\nMOV R7, R8 | S8\n{use}\nEXIT"
    late = blame_text(text.format(use="@P0 LDG.E R4, [R2.64]"), {(2, "wait"): 9})
    assert blamed(late, "wait") == {0: ("arithmetic", 9)}
    soon = blame_text(text.format(use="@P0 MOV R4, R5"), {(2, "wait"): 9})
    assert blamed(soon, "wait") == {1: ("schedule", 9)}


@pytest.mark.parametrize(
    ("use", "stall", "expected"),
    [
        (
            "@P0 FADD R4, R5, R6",
            4,
            {0: ("arithmetic", 9)},
        ),  # six cycles after the compare, one more than it took
        ("@P0 FADD R4, R5, R6", 5, {1: ("schedule", 9)}),
        ("@P0 IADD3 R4, R5, R6, RZ", 4, {1: ("schedule", 9)}),
    ],
)
def test_another_pipe_gets_a_result_two_cycles_later(
    use: str, stall: int, expected: dict[int, tuple[str, int]]
) -> None:
    text = f"ISETP.GE.AND P0, PT, R0, R1, PT | S{stall}\nMOV R7, R8 | S8\n{use}\nEXIT"
    assert blamed(blame_text(text, {(2, "wait"): 9}), "wait") == expected


def test_each_way_into_a_loop_has_its_own_stall_count() -> None:
    text = """
        MOV R0, R1 | S5
        top: FADD R2, R0, R2 | S4
        IADD3 R0, R0, R5, R6 | S1
        ISETP.GE.AND P0, PT, R2, R7, PT | S13
        @P0 BRA top | S5
        EXIT
        """
    counts = {0: 10, 1: 90, 2: 90, 3: 90, 4: 90, 5: 10}
    assert blamed(blame_text(text, {(1, "wait"): 100}, counts=counts), "wait") == {
        0: ("arithmetic", 10),
        4: ("schedule", 90),
    }


def test_nops_wait_for_the_slow_instruction_before_them() -> None:
    text = "DFMA R2, R4, R6, R8 | S15\nNOP | S15\nNOP | S15\nDFMA R10, R12, R14, R16\nEXIT"
    result = blame_text(text, {(2, "wait"): 9, (3, "wait"): 4}, arch="sm_90")
    assert {(row.definition, row.use, row.dependency) for row in rows(result)} == {
        (0, 2, "schedule"),
        (0, 3, "schedule"),
    }


def test_an_ending_warp_stands_in_the_filling_behind_its_exit() -> None:
    ended = {1: ("schedule", 9)}
    assert blamed(blame_text("MOV R0, R1\nEXIT | S5\nNOP", {(2, "wait"): 9}), "wait") == ended
    spin = "MOV R0, R1\nEXIT | S5\nfilling: BRA filling | S7"
    assert blamed(blame_text(spin, {(2, "wait"): 9}), "wait") == ended
    reached = "@P0 BRA other | S3\nEXIT | S5\nother: MOV R0, R1\nEXIT"
    assert blamed(blame_text(reached, {(2, "wait"): 9}), "wait") == {0: ("schedule", 9)}
    no_exit = "start: MOV R0, R1\nBRA start | S5\nNOP"
    assert blamed(blame_text(no_exit, {(2, "wait"): 9}), "wait") == {}


def test_wait_for_a_guard() -> None:
    result = blame_text("ISETP.GE.AND P0, PT, R0, R1, PT | S13\n@P0 BRA out\nout: EXIT", {(1, "wait"): 9})
    assert blamed(result, "wait") == {0: ("arithmetic", 9)}
    assert edge_of(result, 0, 1).kind is DependencyKind.GUARD


def test_wait_at_the_entry_has_no_source() -> None:
    assert [row.role for row in rows(blame_text("MOV R0, R1\nEXIT", {(0, "wait"): 2}))] == ["unattributed"]


def test_wait_behind_a_join_comes_from_both_sides() -> None:
    text = """
        @P0 BRA other | S1
        MOV R5, R6 | S1
        BRA join | S5
        other: MOV R5, R7 | S4
        join: FMUL R3, R0, R4
        EXIT
        """
    assert set(blamed(blame_text(text, {(4, "wait"): 10}), "wait")) == {2, 3}


BARRIER = """
    LDG.E R0, [R2.64] | W0
    STS [R4], R0 | ?0
    BAR.SYNC.DEFER_BLOCKING 0x0 | S5
    LDS R1, [R5] | W1
    EXIT
    """


def test_a_barrier_stall_goes_to_what_the_slow_side_waited_for() -> None:
    result = blame_text(BARRIER, {(1, "long_scoreboard"): 90, (0, "lg_throttle"): 10, (3, "barrier"): 50})
    assert blamed(result, "barrier") == {0: ("synchronization", 50)}
    assert edge_of(result, 0, 3).kind is DependencyKind.SYNCHRONIZATION


def test_a_barrier_stall_on_the_barrier_itself() -> None:
    result = blame_text(BARRIER, {(1, "long_scoreboard"): 90, (2, "barrier"): 50})
    assert blamed(result, "barrier") == {0: ("synchronization", 50)}


def test_a_barrier_with_nothing_before_it_is_the_source() -> None:
    assert blamed(blame_text(BARRIER, {(3, "barrier"): 50}), "barrier") == {2: ("synchronization", 50)}
    alone = rows(blame_text(BARRIER, {(2, "barrier"): 50}))
    assert [(row.role, row.samples) for row in alone] == [("unattributed", 50)]


def test_what_happens_before_the_previous_barrier_does_not_count() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        STS [R4], R0 | ?0
        BAR.SYNC.DEFER_BLOCKING 0x0
        FADD R6, R7, R8
        BAR.SYNC.DEFER_BLOCKING 0x0
        EXIT
        """
    samples = {(1, "long_scoreboard"): 900, (3, "selected"): 20, (5, "barrier"): 50}
    assert blamed(blame_text(text, samples), "barrier") == {3: ("synchronization", 50)}


def test_what_comes_late_before_a_barrier_counts_more() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        FADD R4, R0, R5 | ?0
        LDG.E R1, [R6.64] | W0
        FADD R7, R1, R5 | ?0
        BAR.SYNC.DEFER_BLOCKING 0x0
        EXIT
        """
    samples = {(1, "long_scoreboard"): 100, (3, "long_scoreboard"): 100, (5, "barrier"): 400}
    # On average a quarter of the others have come while the first load is waited for, three quarters later.
    assert blamed(blame_text(text, samples), "barrier") == {
        0: ("synchronization", 100),
        2: ("synchronization", 300),
    }


def test_what_only_some_warps_do_before_a_barrier_takes_them_longer() -> None:
    text = """
        MUFU.RCP R8, R9 | W1
        FADD R4, R8, R5 | ?1
        @P0 BRA join
        LDG.E R0, [R2.64] | W0
        FADD R4, R0, R5 | ?0
        join: BAR.SYNC.DEFER_BLOCKING 0x0
        EXIT
        """
    samples = {(1, "short_scoreboard"): 100, (4, "long_scoreboard"): 50, (6, "barrier"): 400}
    everybody = blame_text(text, samples, counts=dict.fromkeys(range(7), 80))
    few = blame_text(text, samples, counts=dict.fromkeys(range(7), 80) | {3: 20, 4: 20})
    assert blamed(everybody, "barrier")[3][1] == 222
    assert blamed(few, "barrier")[3][1] == 356


@pytest.mark.parametrize(("waiting", "own"), [(3200, 1600), (1000, 1000), (32000, 1600)])
def test_a_barrier_takes_its_time_when_nobody_is_late(waiting: int, own: int) -> None:
    samples = {(1, "long_scoreboard"): 90, (3, "barrier"): waiting} | {
        (at, "selected"): 80 for at in range(5)
    }
    found = blamed(blame_text(BARRIER, samples, counts=dict.fromkeys(range(5), 80)), "barrier")
    assert found[2] == ("synchronization", own)  # 20 cycles for each of 80 warps, a sample stands for one
    assert sum(count for _, count in found.values()) == waiting


def test_a_deferred_barrier_holds_a_warp_many_instructions_later() -> None:
    arithmetic = "\n".join(f"FADD R{at}, R60, R61" for at in range(13))
    text = (
        f"LDG.E R0, [R2.64] | W0\nSTS [R4], R0 | ?0\nBAR.SYNC.DEFER_BLOCKING 0x0\n{arithmetic}\nLDS R1, [R5]"
    )
    result = blame_text(text, {(1, "long_scoreboard"): 90, (16, "barrier"): 50})
    assert blamed(result, "barrier") == {0: ("synchronization", 50)}


def test_thinly_spread_time_stands_under_the_barrier() -> None:
    lines = [f"FADD R{at}, R60, R61" for at in range(40)]
    text = "\n".join([*lines, "BAR.SYNC.DEFER_BLOCKING 0x0", "EXIT"])
    samples = {(at, "math_pipe_throttle"): 10 for at in range(40)} | {(41, "barrier"): 100}
    assert blamed(blame_text(text, samples), "barrier") == {40: ("synchronization", 100)}


def test_a_fence_waits_for_stores_since_the_fence_before() -> None:
    text = """
        STG.E [R2.64], R0 | R0
        MEMBAR.SC.GPU
        STG.E [R2.64], R1 | R0
        MEMBAR.SC.GPU
        EXIT
        """
    result = blame_text(text, {(3, "membar"): 10, (4, "membar"): 6})
    assert {(row.definition, row.use, row.dependency) for row in rows(result)} == {
        (2, 3, "memory_barrier"),
        (2, 4, "memory_barrier"),
    }
    assert edge_of(result, 2, 3).kind is DependencyKind.IN_FLIGHT


def test_the_wait_for_a_fence_is_sampled_at_the_errbar_behind_it() -> None:
    text = "STG.E [R2.64], R0 | R0\nMEMBAR.SC.GPU\nERRBAR\nEXIT"
    assert blamed(blame_text(text, {(2, "membar"): 10}), "membar") == {0: ("memory_barrier", 10)}
    alone = "MOV R0, R1\nMEMBAR.SC.GPU\nERRBAR\nEXIT"
    assert blamed(blame_text(alone, {(2, "membar"): 10}), "membar") == {1: ("memory_barrier", 10)}


DRAIN = "STG.E [R2.64], R0\n@P0 EXIT\nSTG.E [R4.64], R0\nEXIT\nself: BRA self\nNOP"


def test_drain_goes_to_the_stores_before_the_exit() -> None:
    result = blame_text(DRAIN, {(4, "drain"): 30})
    (first, second) = rows(result)
    assert {first.definition, second.definition} == {0, 2}
    assert {first.place, second.place} == {"after_exit"}
    assert {first.dependency, second.dependency} == {"store_in_flight"}
    assert first.samples + second.samples == 30
    assert blamed(blame_text(DRAIN, {(1, "drain"): 8}), "drain") == {0: ("store_in_flight", 8)}


def test_the_distance_of_a_drain_goes_on_behind_the_exit() -> None:
    text = "STG.E [R2.64], R0\nEXIT\nNOP\nNOP"
    behind = [row.distance for at in (1, 2, 3) for row in rows(blame_text(text, {(at, "drain"): 9}))]
    assert behind == [1, 2, 3]


def test_drain_without_a_store_is_unattributed() -> None:
    assert [row.role for row in rows(blame_text("MOV R0, R1\nEXIT", {(1, "drain"): 8}))] == ["unattributed"]


def test_drain_charged_to_the_next_function_belongs_to_the_one_before() -> None:
    first = function_of("STG.E [R2.64], R0\nEXIT")
    second = function_of("MOV R0, R1\nRET.REL.NODEC R20", number=1, start=2, kind=FunctionKind.DEVICE)
    program, profile = program_of(first, second), profile_of({(2, "drain"): 8, (2, "selected"): 1})
    result = blame(program, profile, model())
    assert_conserved(program, profile, result)
    drain = next(row for row in rows(result) if row.reason == "drain")
    assert (drain.function, drain.definition, drain.use, drain.place) == (0, 0, None, "after_exit")


def test_drain_behind_the_section() -> None:
    result = blame_text("STG.E [R2.64], R0\nEXIT", {(2, "drain"): 8, (2, "wait"): 1})
    assert {(row.reason, row.role, row.definition, row.place) for row in rows(result)} == {
        ("drain", "blamed", 0, "after_exit"),
        ("wait", "unattributed", None, "after_exit"),
    }


QUEUE = """
    top: LDG.E R0, [R2.64] | W0
    LDG.E.128 R4, [R6.64] | W1
    DFMA R10, R12, R14, R16 | W2
    IADD3 R8, R8, 0x1, RZ | ?012
    @P0 BRA top
    STG.E [R2.64], R0
    EXIT
    """
EXECUTED = dict.fromkeys(range(5), 100) | {5: 10, 6: 10}


def test_a_full_queue_is_due_to_what_goes_through_it_by_width() -> None:
    result = blame_text(QUEUE, {(0, "lg_throttle"): (50, 40)}, counts=EXECUTED)
    assert blamed(result, "lg_throttle") == {1: ("queue", 40)}  # four passes for each one of the other load
    (own,) = [row for row in rows(result) if row.role == "self"]
    assert (own.definition, own.use, own.samples, own.latency, own.dependency) == (None, 0, 10, 8, "self")
    assert edge_of(result, 1, 0).kind is DependencyKind.FILLS


def test_rounding_at_many_places_does_not_always_favour_the_heaviest() -> None:
    text = "\n".join([f"LDG.E R{at}, [R60.64] | W0" for at in range(20)] + ["EXIT"])
    result = blame_text(text, {(at, "lg_throttle"): 1 for at in range(20)})
    by_cause = Counter(row.use if row.definition is None else row.definition for row in rows(result))
    assert set(by_cause.values()) == {1}


def test_a_queue_is_filled_in_the_loop_that_warps_wait_in() -> None:
    inside = blame_text(QUEUE, {(0, "lg_throttle"): 50}, counts=EXECUTED)
    assert 5 not in blamed(inside, "lg_throttle")
    # The store waits where the loop's queue is full as well, and where nobody waits in the loop.
    full = blame_text(QUEUE, {(0, "lg_throttle"): 500, (5, "lg_throttle"): 50}, counts=EXECUTED)
    assert {row.definition for row in rows(full) if row.use == 5} == {0, 1, None}
    alone = blame_text(QUEUE, {(5, "lg_throttle"): 50}, counts=EXECUTED)
    assert [(row.role, row.use) for row in rows(alone)] == [("self", 5)]


def test_a_loop_that_is_passed_once_is_no_place_of_its_own() -> None:
    once = dict.fromkeys(range(7), 10)
    result = blame_text("MOV R1, R2\n" + QUEUE, {(1, "lg_throttle"): 70}, counts={0: 10, **once, 7: 10})
    assert 6 in blamed(result, "lg_throttle")


@pytest.mark.parametrize("reason", ["lg_throttle", "mio_throttle", "tex_throttle"])
def test_slow_double_precision_waits_for_double_precision(reason: str) -> None:
    result = blame_text(QUEUE, {(2, reason): 50}, counts=EXECUTED, arch="sm_86")
    assert [(row.role, row.use) for row in rows(result)] == [("self", 2)]


def test_accesses_behind_queued_double_precision_wait_for_it() -> None:
    samples = {(0, "lg_throttle"): 50, (2, "lg_throttle"): 50}
    found = blamed(blame_text(QUEUE, samples, counts=EXECUTED, arch="sm_86"), "lg_throttle")
    assert found[2][1] == 38  # 16 cycles of an SM beside 1 + 4 passes through L1


def test_what_is_no_access_to_device_memory_does_not_fill_its_queue() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDS R4, [R6] | W1\nMUFU.RCP R8, R9 | W2\nEXIT"
    assert set(blamed(blame_text(text, {(0, "lg_throttle"): 90}), "lg_throttle")) <= {0}
    others = "LDG.E R0, [R2.64] | W0\nLDS R4, [R6] | W1\nMUFU.RCP R8, R9 | W2\nLDS R7, [R6] | W3\nEXIT"
    assert set(blamed(blame_text(others, {(1, "mio_throttle"): 90}), "mio_throttle")) == {2, 3}


def test_the_distance_to_a_value_of_the_pass_before_goes_around_the_loop() -> None:
    text = """
        top: IADD3 R4, R4, 0x1, RZ
        FADD R2, R8, R2 | ?0
        LDG.E R8, [R6.64] | W0
        @P0 BRA top
        EXIT
        """
    counts = dict.fromkeys(range(4), 10) | {4: 1}
    (row,) = rows(blame_text(text, {(1, "long_scoreboard"): 9}, counts=counts))
    assert (row.definition, row.use, row.distance) == (2, 1, 3)


def test_a_busy_pipe_is_due_to_its_own_instructions() -> None:
    text = "FFMA R0, R1, R2, R3\nFFMA R4, R5, R6, R7\nIADD3 R8, R8, 0x1, RZ\nEXIT"
    result = blame_text(text, {(0, "math_pipe_throttle"): 40, (3, "math_pipe_throttle"): 2})
    assert blamed(result, "math_pipe_throttle") == {1: ("queue", 20)}
    assert {(row.use, row.samples) for row in rows(result) if row.role == "self"} == {(0, 20), (3, 2)}


def test_published_rules_leave_throttles_where_they_are() -> None:
    for rules in (PAPER, GPA2021):
        result = blame_text(QUEUE, {(0, "lg_throttle"): 50}, counts=EXECUTED, rules=rules)
        assert [(row.role, row.use) for row in rows(result)] == [("self", 0)]


def test_reasons_of_the_instruction_itself_stay() -> None:
    result = blame_text(
        "LDG.E R0, [R2.64] | W0\nEXIT", {(0, "lg_throttle"): 5, (0, "selected"): 3, (1, "nonsense"): 2}
    )
    assert {(row.reason, row.role, row.dependency, row.use) for row in rows(result)} == {
        ("lg_throttle", "self", "self", 0),
        ("selected", "self", "self", 0),
        ("nonsense", "self", "self", 1),
    }


def test_samples_outside_the_program() -> None:
    program = program_of(function_of("MOV R0, R1\nEXIT"))
    profile = profile_of(
        {(0, "selected"): 1}, external={(0x7F0000, "long_scoreboard"): 9, (0x7F0000, "selected"): 2}
    )
    result = blame(program, profile, model())
    assert_conserved(program, profile, result)
    outside = {(row.reason, row.role, row.place, row.use) for row in rows(result) if row.place == "external"}
    assert outside == {
        ("long_scoreboard", "unattributed", "external", None),
        ("selected", "self", "external", None),
    }


def test_without_any_program_every_dependency_is_unattributed() -> None:
    program, profile = program_of(), profile_of({(0, "long_scoreboard"): 9, (0, "selected"): 2})
    result = blame(program, profile, model())
    assert_conserved(program, profile, result)
    assert {row.place for row in rows(result)} == {"unmapped"}
    assert result.coverage.before is None


def test_without_any_sample() -> None:
    result = blame(program_of(function_of("EXIT")), profile_of({}), model())
    assert len(result.rows) == 0
    assert result.edges == ()


def test_coverage_before_and_after_pruning() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDG.E R1, [R4.64] | W1\nFADD R6, R0, R1 | ?1"
    result = blame_text(text, {(2, "long_scoreboard"): 10})
    assert result.coverage.before == pytest.approx(2 / 3)
    assert result.coverage.after == 1


def test_gmma_waits_for_the_group_scoreboard() -> None:
    text = """
        HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0
        WARPGROUP.DEPBAR.LE gsb0, 0x0
        EXIT
        """
    result = blame_text(text, {(1, "gmma"): 10}, arch="sm_90")
    assert blamed(result, "gmma") == {0: ("tensor", 10)}
