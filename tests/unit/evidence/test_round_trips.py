# SPDX-License-Identifier: Apache-2.0
"""How often a warp waits for memory, by the scoreboards that its loads set and others wait for."""

from __future__ import annotations

import numpy as np
from tests.assembly import function_of

from gpadvisor.evidence.round_trips import round_trips

TOGETHER = """
    MOV R0, 0x0 | S4
top: LDG.E R4, [R2] | S4 W0
    LDG.E R5, [R2+0x4] | S4 W0
    LDG.E R6, [R2+0x8] | S4 W1
    FADD R7, R4, R5 | S4 ?0
    FADD R7, R7, R6 | S4 ?1
    @P0 BRA top | S4
    EXIT
"""
ONE_BY_ONE = """
    MOV R0, 0x0 | S4
top: LDG.E R4, [R2] | S4 W0
    FADD R7, R7, R4 | S4 ?0
    LDG.E R5, [R2+0x4] | S4 W0
    FADD R7, R7, R5 | S4 ?0
    @P0 BRA top | S4
    EXIT
"""
AHEAD = """
    LDG.E R4, [R2] | S4 W0
top: LDG.E R5, [R2+0x4] | S4 W1
    FADD R7, R7, R4 | S4 ?0
    LDG.E R4, [R2+0x8] | S4 W0
    FADD R7, R7, R5 | S4 ?1
    @P0 BRA top | S4
    EXIT
"""


def trips(text: str, passes: float = 100.0) -> float:
    function = function_of(text)
    in_loop = [function.innermost_loop(index) is not None for index in range(len(function.instructions))]
    return round_trips(function, np.where(in_loop, passes, 1.0))


def test_loads_that_are_waited_for_together_are_one_trip() -> None:
    assert trips(TOGETHER) == 100


def test_a_load_behind_a_wait_is_a_trip_of_its_own() -> None:
    assert trips(ONE_BY_ONE) == 200


def test_loads_of_the_pass_before_are_on_their_way_already() -> None:
    """One is issued before each wait for the other: two loads of a pass, and one trip for both."""
    assert trips(AHEAD) == 100


def test_what_no_load_from_memory_sets_is_no_trip() -> None:
    assert trips(TOGETHER.replace("LDG.E", "LDS")) == 0
