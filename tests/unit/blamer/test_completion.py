# SPDX-License-Identifier: Apache-2.0
"""Which of several outstanding operations a wait is shared among: the last to complete."""

from __future__ import annotations

import pytest
from tests.blame_rows import blame_text, blamed, edge_of

from gpadvisor.model.blame import PruneRule

COUNTED = dict.fromkeys(range(16), 100)


def shares(text: str, use: int, reason: str, counts: dict[int, int] | None = None) -> dict[int | None, int]:
    """Of 1000 samples, how many go to each def."""
    result = blame_text(text, {(use, reason): 1000}, counts=COUNTED if counts is None else counts)
    return {definition: samples for definition, (_, samples) in blamed(result, reason).items()}


def test_loads_side_by_side_share_alike() -> None:
    text = "\n".join(
        [*(f"LDG.E R{at}, [R20.64+{16 * at:#x}] | W0" for at in range(4)), "FADD R9, R0, R1 | ?0"]
    )
    found = shares(text, 4, "long_scoreboard")
    assert set(found) == {0, 1, 2, 3}
    assert found[3] > found[0] > 240  # a cycle later is hardly later


def test_time_that_has_passed_counts() -> None:
    between = "\n".join("MOV R9, R8 | S15" for _ in range(40))
    text = f"LDG.E R0, [R2.64] | W0\n{between}\nLDG.E R1, [R4.64] | W0\nFADD R6, R0, R1 | ?0"
    found = shares(text, 42, "long_scoreboard", dict.fromkeys(range(43), 100))
    assert 0 < found[0] < 100


def test_a_read_of_operands_is_over_long_before_a_load() -> None:
    text = "LDG.E R0, [R2.64] | W0\nLDG.E R5, [R4.64] | W1 R2\nFADD R4, R0, R6 | ?02"
    found = shares(text, 2, "long_scoreboard")
    assert found[0] > 980


def test_a_load_outlasts_a_conversion_on_the_same_scoreboard() -> None:
    text = "LDC R0, c[0x0][R2] | W0\nMUFU.RCP R1, R3 | W0\nFADD R6, R0, R1 | ?0"
    found = shares(text, 2, "short_scoreboard")
    assert found[0] > found[1]


def test_paths_that_exclude_each_other_are_weighed_by_their_counts() -> None:
    text = """
        @P0 BRA other
        LDS R0, [R8] | W0
        BRA join
        other: LDS R0, [R9] | W0
        join: FADD R4, R0, R5 | ?0
        EXIT
        """
    found = shares(text, 4, "short_scoreboard", {0: 100, 1: 75, 2: 75, 3: 25, 4: 100, 5: 100})
    assert found == pytest.approx({1: 750, 3: 250}, abs=10)


@pytest.mark.parametrize(("inside", "cut"), [(100, True), (50, False)])
def test_a_younger_operation_of_the_queue_on_some_paths_only(inside: int, cut: bool) -> None:
    text = """
        LDS R0, [R8] | W0
        @P0 BRA join
        LDS R1, [R9] | W0
        join: FADD R4, R0, R5 | ?0
        EXIT
        """
    counts = {0: 100, 1: 100, 2: inside, 3: 100, 4: 100}
    result = blame_text(text, {(3, "short_scoreboard"): 1000}, counts=counts)
    edge = edge_of(result, 0, 3)
    assert edge.pruned_by is (PruneRule.LATENCY if cut else None)
    found = blamed(result, "short_scoreboard")
    assert found[2][1] + (0 if cut else found[0][1]) == 1000
    if not cut:
        assert found[0][1] == pytest.approx(500, abs=20)


def test_the_entry_of_a_loop_and_its_end_come_one_after_the_other() -> None:
    text = """
        STS [R8], R0 | R0
        top: MOV R1, R2 | ?0
        STS [R9], R1 | R0
        @P0 BRA top
        EXIT
        """
    found = shares(text, 1, "short_scoreboard", {0: 10, 1: 100, 2: 100, 3: 100, 4: 10})
    assert found == pytest.approx({0: 91, 2: 909}, abs=20)
