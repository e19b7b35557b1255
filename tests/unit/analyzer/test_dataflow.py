# SPDX-License-Identifier: Apache-2.0
"""Reaching definitions, path lengths and outstanding scoreboards on functions of a few lines."""

from __future__ import annotations

import pytest
from tests.assembly import assemble, function_of

from gpadvisor.analyzer.paths import Paths
from gpadvisor.analyzer.scoreboards import Link, outstanding_at, waits_for
from gpadvisor.model.instruction import RegisterFile, register

R0 = register(RegisterFile.GPR, 0)


def reaching(text: str, use: int) -> tuple[int, ...]:
    """Definitions of R0 that reach an instruction."""
    return tuple(sorted(function_of(text).reaching.definitions(use, R0)))


def test_figure_4a_both_senses_of_a_predicate_end_the_search() -> None:
    text = "MOV R0, R9\n@!P0 LDC R0, c[0x0][R3]\n@P0 LDG.E R0, [R4.64]\nIADD3 R1, R0, R2, RZ"
    assert reaching(text, 3) == (1, 2)


def test_an_unguarded_definition_ends_the_search() -> None:
    assert reaching("@P0 MOV R0, R9\nMOV R0, R8\n@P1 MOV R0, R7\nIADD3 R1, R0, R2, RZ", 3) == (1, 2)


def test_the_guard_of_the_use_ends_the_search() -> None:
    assert reaching("MOV R0, R9\n@P0 MOV R0, R8\n@P0 IADD3 R1, R0, R2, RZ", 2) == (1,)
    assert reaching("MOV R0, R9\n@P1 MOV R0, R8\n@P0 IADD3 R1, R0, R2, RZ", 2) == (0, 1)


def test_definitions_come_from_all_paths_and_round_loops() -> None:
    text = """
        MOV R0, RZ
        top: IADD3 R1, R0, R2, RZ
        @P0 BRA other
        MOV R0, R5
        other: @P1 BRA top
        EXIT
        """
    assert reaching(text, 1) == (0, 3)


def test_a_use_in_a_loop_may_read_what_it_wrote() -> None:
    assert reaching("MOV R0, RZ\ntop: IADD3 R0, R0, R2, RZ\n@P0 BRA top\nEXIT", 1) == (0, 1)


DIAMOND = """
    LDG.E R0, [R2.64]
    @P0 BRA long
    MOV R1, R2
    BRA join
    long: MOV R1, R3
    MOV R1, R4
    MOV R1, R5
    join: IADD3 R6, R0, R1, RZ
    EXIT
    """


def test_longest_and_shortest_path() -> None:
    paths = Paths(function_of(DIAMOND))
    assert paths.longest([0], 7) == {0: 5}
    assert paths.shortest([0], 7) == {0: 4}
    assert paths.shortest([0], 7, limit=3) == {0: None}


def test_distance_in_one_block_counts_the_use_and_not_the_def() -> None:
    function = function_of("NOP\nLDG.E R0, [R2.64]\nNOP\nNOP\nNOP\nIADD3 R1, R0, R2, RZ")
    assert Paths(function).longest([1], 5) == {1: 4}  # 0x10 to 0x50


def test_a_path_round_a_loop_takes_the_back_edge_once() -> None:
    text = "MOV R9, RZ\ntop: IADD3 R1, R0, R2, RZ\nLDG.E R0, [R2.64]\nNOP\n@P0 BRA top\nEXIT"
    assert Paths(function_of(text)).longest([2, 1, 0], 1) == {2: 3, 1: 4, 0: 1}


def test_a_path_out_of_an_inner_loop_and_round_the_outer_one() -> None:
    text = """
        outer: IADD3 R1, R0, R2, RZ
        inner: @P0 BRA done
        LDG.E R0, [R2.64]
        BRA inner
        done: @P1 BRA outer
        EXIT
        """
    # 2 -> 3 -> 1 (back edge) -> 4 -> 0 (back edge)
    assert Paths(function_of(text)).longest([2], 0) == {2: 4}


def test_no_path_is_none() -> None:
    assert Paths(function_of("@P0 BRA b\nMOV R0, R1\nEXIT\nb: IADD3 R1, R0, R2, RZ\nEXIT")).longest(
        [1], 3
    ) == {1: None}


def test_costs_replace_instruction_counts() -> None:
    paths = Paths(function_of(DIAMOND), [10, 1, 1, 1, 5, 5, 5, 1, 1])
    assert paths.longest([0], 7) == {0: 26}
    assert paths.shortest([0], 7) == {0: 13}


def awaited(text: str, use: int) -> set[tuple[int, Link]]:
    """What an instruction may be waiting for."""
    found = outstanding_at(function_of(text), [use]).outstanding.get(use, ())
    return {(operation.producer, operation.link) for operation in found}


def test_all_setters_since_the_last_wait_are_waited_for() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        LDG.E R1, [R2.64+0x4] | W0
        IADD3 R4, R0, R1, RZ | ?0
        LDG.E R5, [R2.64] | W0
        LDG.E R6, [R2.64] | W1
        IADD3 R7, R5, R5, RZ | ?0
        """
    assert awaited(text, 2) == {(0, Link.WRITE), (1, Link.WRITE)}
    assert awaited(text, 5) == {(3, Link.WRITE)}


def test_a_read_barrier_guards_operands() -> None:
    assert awaited("STG.E [R2.64], R0 | R3\nMOV R0, R1 | ?3", 1) == {(0, Link.READ)}


def test_older_operations_of_an_in_order_queue_without_barrier_are_waited_for() -> None:
    text = """
        LDS R0, [R8]
        LDS R1, [R8+0x4] | W0
        LDS R2, [R8+0x8] | W1
        IADD3 R4, R0, R1, RZ | ?0
        LDS R3, [R8] | W2
        MOV R5, R3 | ?2
        """
    assert awaited(text, 3) == {(0, Link.QUEUE), (1, Link.WRITE)}
    assert awaited(text, 5) == {(4, Link.WRITE)}


def test_the_wait_for_a_younger_operation_covers_older_ones_of_its_queue() -> None:
    text = """
        LDS R0, [R8]
        SHFL.BFLY PT, R1, R2, 0x1, 0x1f | W0
        MOV R3, R1 | ?0
        SHFL.BFLY PT, R4, R2, 0x2, 0x1f | W0
        MOV R5, R4 | ?0
        """
    assert awaited(text, 2) == {(0, Link.QUEUE), (1, Link.WRITE)}
    assert awaited(text, 4) == {(3, Link.WRITE)}


def test_depbar_releases_in_part() -> None:
    text = """
        LDG.E R0, [R2.64] | W0
        LDG.E R1, [R2.64] | W0
        LDG.E R4, [R2.64] | W0
        DEPBAR.LE SB0, 0x1
        MOV R5, R4 | ?0
        """
    assert awaited(text, 3) == {(0, Link.WRITE), (1, Link.WRITE)}
    assert awaited(text, 4) == {(2, Link.WRITE)}


def test_asynchronous_copies_are_waited_for_by_group() -> None:
    text = """
        LDGSTS.E [R8], [R2.64]
        LDGDEPBAR | W0
        LDGSTS.E [R8+0x10], [R2.64]
        LDGDEPBAR | W0
        DEPBAR.LE SB0, 0x1
        DEPBAR.LE SB0, 0x0
        """
    assert awaited(text, 4) == {(0, Link.GROUP), (1, Link.WRITE)}
    assert awaited(text, 5) == {(2, Link.GROUP), (3, Link.WRITE)}


def test_setters_on_both_sides_of_a_branch_are_joined() -> None:
    text = """
        @P0 BRA other
        LDG.E R0, [R2.64] | W0
        BRA join
        other: LDC R0, c[0x0][R3] | W0
        join: MOV R1, R0 | ?0
        """
    assert awaited(text, 4) == {(1, Link.WRITE), (3, Link.WRITE)}


def test_a_setter_is_carried_round_a_loop() -> None:
    text = "top: MOV R1, R0 | ?0\nLDG.E R0, [R2.64] | W0\n@P0 BRA top\nEXIT"
    assert awaited(text, 0) == {(1, Link.WRITE)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [("MOV R0, R1", False), ("MOV R0, R1 | ?4", True), ("DEPBAR.LE SB0, 0x1", True), ("DEPBAR {3,2}", True)],
)
def test_what_waits(line: str, expected: bool) -> None:
    assert waits_for(assemble(line)[0]) is expected
