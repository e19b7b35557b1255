# SPDX-License-Identifier: Apache-2.0
"""Stall reasons of CUPTI's activity API: brought to today's where the machine code leaves one of them."""

from __future__ import annotations

import pytest
from tests.assembly import assemble, function_of, nested_loops, profile_of, program_of

from gpadvisor.blamer.old_reasons import refined
from gpadvisor.model.stalls import stall_reason

CODE = """
    LDG.E R0, [R2] | S1 W0
    LDS R1, [R4] | S1 W1
    FADD R6, R0, R0 | S4 ?0
    FADD R7, R1, R1 | S4 ?1
    FADD R8, R6, R7 | S4
    LDG.E R0, [R2] | S1 W2
    LDS R1, [R4] | S1 W2
    FADD R6, R0, R1 | S4 ?2
    STG.E [R2], R6 | S1
    STS [R4], R6 | S1
    DADD R8, R8, R8 | S4
    MUFU.RCP R9, R8 | S1 W3
    BAR.SYNC 0x0 | S1
    MEMBAR.SC.GPU | S1
    EXIT | S5
    LDG.E R0, [R2] | S1 W0 R1
    MOV R2, R5 | S4 ?1
    TEX.SCR.LL RZ, R0, R2, R4, 0x0, 0x5a, 2D, 0x1 | S1
    LDC R0, c[0x0][R2] | S1
    LDL R0, [R2] | S1 W4
    ST.E [R2], R6 | S1
    EXIT | ?4
"""
LDG, LDS, AFTER_LDG, AFTER_LDS, AFTER_NONE, AFTER_BOTH = 0, 1, 2, 3, 4, 7
STG, STS, DADD, MUFU, BAR, MEMBAR, EXIT = 8, 9, 10, 11, 12, 13, 14
READ, TEX, LDC, LDL, ST, WAITING_EXIT = 16, 17, 18, 19, 20, 21


@pytest.mark.parametrize(
    ("old", "at", "today"),
    [
        ("memory_dependency", AFTER_LDG, "long_scoreboard"),
        ("memory_dependency", AFTER_LDS, "short_scoreboard"),
        ("memory_dependency", AFTER_BOTH, None),
        ("memory_dependency", AFTER_NONE, None),
        ("memory_dependency", EXIT, "drain"),
        ("execution_dependency", AFTER_LDG, "wait"),
        ("execution_dependency", AFTER_NONE, "wait"),
        ("execution_dependency", AFTER_LDS, None),
        ("execution_dependency", AFTER_BOTH, None),
        ("memory_throttle", STG, "lg_throttle"),
        ("memory_throttle", STS, "mio_throttle"),
        ("memory_throttle", DADD, None),
        ("memory_throttle", TEX, None),  # its own queue, or that of the others
        ("memory_throttle", LDC, None),
        ("memory_throttle", LDL, "lg_throttle"),
        ("memory_throttle", ST, "lg_throttle"),
        ("memory_dependency", READ, None),  # its operands are read in either queue
        ("memory_dependency", WAITING_EXIT, "long_scoreboard"),
        ("pipe_busy", DADD, "math_pipe_throttle"),
        ("pipe_busy", MUFU, None),
        ("synchronization", BAR, "barrier"),
        ("synchronization", MEMBAR, "membar"),
        ("synchronization", DADD, None),
        ("instruction_fetch", DADD, None),
        ("not_selected", DADD, None),
    ],
)
def test_an_old_reason_is_refined_only_where_one_is_left(old: str, at: int, today: str | None) -> None:
    program = program_of(function_of(assemble(CODE)))
    profile = profile_of({(at, old): (8, 5)})
    kept = profile.reasons[0]
    kernel = refined(program, profile)
    (number,) = kernel.samples.reason.tolist()
    assert kernel.reasons[number] == (kept if today is None else stall_reason(today))
    assert (kernel.samples.total.tolist(), kernel.samples.latency.tolist()) == ([8], [5])
    assert kernel.samples.pc.tolist() == profile.samples.pc.tolist() == [at * 16]


def test_samples_that_become_the_same_are_added_up() -> None:
    program = program_of(function_of(assemble(CODE)))
    samples = {(AFTER_LDS, "memory_dependency"): (6, 6), (AFTER_LDS, "short_scoreboard"): (3, 1)}
    kernel = refined(program, profile_of(samples))
    (number,) = kernel.samples.reason.tolist()
    assert kernel.reasons[number].name == "short_scoreboard"
    assert (kernel.samples.total.tolist(), kernel.samples.latency.tolist()) == ([9], [7])


def test_others_stay_and_each_sample_is_told_by_its_own_place() -> None:
    program = program_of(function_of(assemble(CODE)))
    samples = {
        (AFTER_LDG, "memory_dependency"): (6, 6),
        (AFTER_LDS, "memory_dependency"): (3, 1),
        (AFTER_BOTH, "memory_dependency"): (2, 2),
        (STG, "selected"): (5, 0),
        (99, "memory_dependency"): (4, 4),  # where no code is
    }
    kernel = refined(program, profile_of(samples))
    assert kernel.samples.section.tolist() == [0] * 5
    found = {
        (int(pc) // 16, kernel.reasons[reason].name): (int(total), int(latency))
        for pc, reason, total, latency in zip(
            kernel.samples.pc,
            kernel.samples.reason.tolist(),
            kernel.samples.total,
            kernel.samples.latency,
            strict=True,
        )
    }
    assert found == {
        (AFTER_LDG, "long_scoreboard"): (6, 6),
        (AFTER_LDS, "short_scoreboard"): (3, 1),
        (AFTER_BOTH, "memory_dependency"): (2, 2),
        (STG, "selected"): (5, 0),
        (99, "memory_dependency"): (4, 4),
    }


@pytest.mark.parametrize(("depth", "is_searched"), [(4, True), (16, False)])
def test_what_was_not_searched_whole_is_left_alone(depth: int, is_searched: bool) -> None:
    text = f"LDG.E R0, [R2.64] | W0\nMOV R5, R6\nFADD R1, R0, R1 | ?0\n{nested_loops(depth)}"
    profile = profile_of({(AFTER_LDG, "memory_dependency"): 6})
    found = refined(program_of(function_of(text)), profile)
    assert (found.reasons != profile.reasons) is is_searched


def test_a_profile_of_today_is_left_alone() -> None:
    program = program_of(function_of(assemble(CODE)))
    for profile in (profile_of({(AFTER_LDG, "wait"): 6}), profile_of({}, reasons=["memory_dependency"])):
        assert refined(program, profile) is profile
