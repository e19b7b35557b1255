# SPDX-License-Identifier: Apache-2.0
"""What is told about loops: steps, trips, copies, recurrences; and the room to move a def."""

from __future__ import annotations

import numpy as np
import pytest
from tests.optimizer_values import Listing, listing

from gpadvisor.evidence.accumulators import is_recurrence
from gpadvisor.evidence.loops import (
    LoopFacts,
    divergence,
    every_pass,
    loop_facts,
    loop_overhead,
    measured_trips,
)
from gpadvisor.evidence.reordering import room_to_move
from gpadvisor.evidence.rolled_loops import rolled_loops
from gpadvisor.model.ids import LoopId
from gpadvisor.model.sentence import Sentence

FIRST = LoopId(0)


def _loop(body: str, start: str = "MOV R4, RZ", end: str = "ISETP.NE.AND P0, PT, R4, 0x40, PT") -> Listing:
    return listing(f"{start}\nagain:\n{body}\n{end}\n@P0 BRA again\nEXIT")


def _facts(code: Listing) -> LoopFacts:
    return loop_facts(code.program.functions[0], FIRST)


def test_trips_of_constants() -> None:
    facts = _facts(_loop("IADD3 R4, R4, 0x8, RZ"))
    assert (facts.step, facts.trips, facts.barriers, facts.size_bytes) == (8, 8, 0, 48)
    assert (
        _facts(_loop("IADD3 R4, R4, -0x1, RZ", "MOV R4, 0x7", "ISETP.NE.AND P0, PT, R4, RZ, PT")).trips == 7
    )
    assert _facts(_loop("IADD3 R4, R4, 0x1, RZ", end="ISETP.NE.AND P0, PT, R4, R9, PT")).trips is None
    assert _facts(_loop("IADD3 R4, R4, R5, RZ")).step is None
    assert _facts(_loop("VIADD R4, R4, 0x2", "IMAD.MOV.U32 R4, RZ, RZ, RZ")).trips == 32


def test_a_counter_of_the_whole_warp() -> None:
    code = listing(
        "again:\nLDG.E R2, [R6.64]\nUIADD3 UR4, UPT, UPT, UR4, 0x1, URZ\n"
        "UISETP.NE.U32.AND UP0, UPT, UR4, UR7, UPT\nFADD R8, R2, R8\nBRA.U UP0, again\nEXIT"
    )
    assert _facts(code).step == 1
    assert loop_overhead(code.program.functions[0], FIRST) == {1, 2, 4}


def test_addresses_that_step_by_a_constant_are_offsets_of_an_unrolled_body() -> None:
    body = "LDS R2, [UR5]\nUIADD3 UR5, UR5, 0x10, URZ\nFADD R8, R2, R8\nIADD3 R9, R9, 0x2, RZ"
    code = _loop(f"{body}\nIADD3 R4, R4, 0x1, RZ")
    # Not what is counted for its own sake (R9), nor what the loop computes (R8).
    assert loop_overhead(code.program.functions[0], FIRST) == {2, 5, 6, 7}
    twice = _loop(f"{body}\nUIADD3 UR5, UR5, 0x4, URZ\nIADD3 R4, R4, 0x1, RZ")
    assert loop_overhead(twice.program.functions[0], FIRST) == {6, 7, 8}


def test_a_loop_with_a_second_way_out_counts_in_every_copy_of_its_body() -> None:
    left = "FSETP.GE.AND P1, PT, R8, 4, PT\n@P1 BRA out\nFADD R8, R2, R8\nIADD3 R4, R4, 0x1, RZ"
    code = listing(f"again:\n{left}\nISETP.NE.AND P0, PT, R4, 0x40, PT\n@P0 BRA again\nout:\nEXIT")
    assert _facts(code).step == 1
    assert not loop_overhead(code.program.functions[0], FIRST)


def test_a_line_with_one_root_of_several_products_stands_once() -> None:
    """As an exponential, whose argument and result are scaled: two of each, and one MUFU."""
    line = "FADD R2, R9, R8 // 5\nFMUL R2, R2, R9 // 5\nMUFU.EX2 R2, R2 // 5\nFMUL R2, R2, R2 // 5"
    code = _loop(f"LDS R9, [R5] // 4\n{line}\nFADD R8, R8, R2 // 5\nIADD3 R4, R4, 0x1, RZ")
    assert (_facts(code).copies, _facts(code).copies_reason) == (1, None)
    double = _loop(f"LDS R9, [R5] // 4\n{line}\n{line}\nIADD3 R4, R4, 0x1, RZ")
    assert Sentence(str(_facts(double).copies_reason)) == "line 5 stands 2 times in it"


def test_a_loop_that_ends_where_what_it_loads_says_so_counts_nothing() -> None:
    """As a partition, which goes on while the elements are less than the pivot."""
    body = "IADD3 R6, P1, R6, 0x4, RZ\nLDG.E R2, [R6.64]"
    code = _loop(body, end="ISETP.LT.AND P0, PT, R2, R9, PT")
    assert _facts(code).step is None
    assert not rolled_loops(code.program, "kernel")
    counted = f"{body}\nFADD R8, R2, R8\nIADD3 R4, R4, 0x1, RZ"
    code = _loop(counted, end="ISETP.LT.AND P0, PT, R4, R9, PT")
    assert _facts(code).step == 1
    assert len(rolled_loops(code.program, "kernel")) == 1


@pytest.mark.parametrize(("name", "told"), [("scan", 1), ("cub::scan_kernel", 0), ("thrust::scan_kernel", 0)])
def test_a_loop_of_a_librarys_template_has_no_caller_to_unroll_it(name: str, told: int) -> None:
    body = "IADD3 R6, P1, R6, 0x4, RZ\nLDG.E R2, [R6.64]\nFADD R8, R2, R8\nIADD3 R4, R4, 0x1, RZ"
    end = "ISETP.LT.AND P0, PT, R4, R9, PT\n@P0 BRA again\nEXIT"
    code = listing(f".function {name}\nagain:\n{body}\n{end}")
    assert len(rolled_loops(code.program, name)) == told


def test_what_runs_on_every_pass() -> None:
    code = _loop("@P1 BRA skip\nLDG.E R2, [R6.64]\nskip:\nFADD R8, R2, R8\nIADD3 R4, R4, 0x1, RZ")
    function = code.program.functions[0]
    kept = [every_pass(function, FIRST, index) for index in _facts(code).indices]
    assert kept == [True, False, True, True, True, True]


def test_the_counter_behind_a_difference_and_a_carry_is_found() -> None:
    body = "IADD3 R17, P1, R17, 0x4, RZ\nIADD3 R27, P2, R17, R16, RZ\nISETP.NE.U32.AND P1, PT, R27, RZ, PT"
    facts = _facts(_loop(body, end="ISETP.NE.AND.EX P0, PT, R0, RZ, PT, P1"))
    assert facts.step == 4
    assert facts.trips is None


def _unrolled(copies: int, *, lines: bool) -> Listing:
    line = " // 5" if lines else ""
    loads = "\n".join(f"LDG.E R{20 + i}, [R6.64+{i * 4:#x}]{line}" for i in range(copies))
    sums = "\n".join(f"FFMA R8, R{20 + i}, R9, R8{line}" for i in range(copies))
    return _loop(f"{loads}\n{sums}\nIADD3 R4, R4, {copies:#x}, RZ", end="ISETP.NE.AND P0, PT, R4, R12, PT")


@pytest.mark.parametrize("lines", [True, False])
def test_an_unrolled_body_is_seen(lines: bool) -> None:
    facts = _facts(_unrolled(4, lines=lines))
    assert facts.copies == 4
    assert facts.copies_reason == "its body stands 4 times in it, and its counter steps by 4"
    assert _facts(_unrolled(1, lines=lines)).copies == 1


def test_two_loads_of_one_line_are_no_unrolling() -> None:
    body = "LDG.E R2, [R6.64] // 5\nLDG.E R3, [R10.64] // 5\nFFMA R8, R2, R3, R8 // 5\nIADD3 R4, R4, 0x1, RZ"
    assert _facts(_loop(body)).copies == 1


def test_a_loop_of_integer_sums_beside_that_of_its_last_passes_is_unrolled() -> None:
    def loop(label: str, loads: int, line: int = 5) -> str:
        load = "\n".join(f"LDG.E R{20 + i}, [R6.64+{i * 1024:#x}] // {line}" for i in range(loads))
        return (
            f"{label}:\n{load}\nIADD3 R8, R20, R8, RZ // {line}\nIADD3 R4, R4, {loads * 256:#x}, RZ\n"
            f"ISETP.GE.AND P1, PT, R4, R3, PT\n@!P1 BRA {label}"
        )

    def copies(code: str) -> list[int]:
        function = listing(f"{code}\nEXIT").program.functions[0]
        return [loop_facts(function, each.id).copies for each in function.loops]

    assert copies(f"{loop('last', 1)}\n{loop('main', 16)}") == [1, 16]
    assert copies(f"{loop('last', 1)}\n{loop('main', 16, line=6)}") == [1, 1]  # another loop of the source
    assert copies(f"{loop('one', 2)}\n{loop('other', 2)}") == [1, 1]
    assert copies(f"{loop('last', 2)}\n{loop('main', 3)}") == [1, 1]


def test_recurrences() -> None:
    chase = _loop("LDG.E.64 R2, [R2.64]\nIADD3 R4, R4, 0x1, RZ").program.functions[0]
    assert is_recurrence(chase, FIRST, 1)
    assert not is_recurrence(chase, FIRST, 2)  # a counter is known ahead
    stream = _loop("LDG.E R2, [R6.64]\nFFMA R8, R2, R9, R8\nIADD3 R6, R6, 0x4, RZ\nIADD3 R4, R4, 0x1, RZ")
    assert not is_recurrence(stream.program.functions[0], FIRST, 1)
    assert is_recurrence(stream.program.functions[0], FIRST, 2)
    around = _loop("LDG.E R2, [R6.64]\nIMAD.WIDE R6, R2, R10, R12\nIADD3 R4, R4, 0x1, RZ")
    assert is_recurrence(around.program.functions[0], FIRST, 1)


def test_passes_by_executed_counts() -> None:
    function = _loop("IADD3 R4, R4, 0x8, RZ").program.functions[0]
    executed = np.array([100, 350, 350, 350, 100], dtype=np.float64)
    assert measured_trips(function, FIRST, executed) == 3.5
    assert measured_trips(function, FIRST, np.zeros(5)) is None


def test_threads_of_a_warp() -> None:
    warps, threads = np.array([10.0, 10.0]), np.array([320.0, 80.0])
    assert divergence(warps, threads, (0, 1)) == 20
    assert divergence(warps, None, (0,)) is None
    assert divergence(np.zeros(2), threads, (0,)) is None


def test_a_def_moves_up_to_what_makes_its_operand() -> None:
    code = listing(
        "LDG.E R6, [R2.64]\nFADD R8, R9, R10\nFADD R11, R9, R10\nIADD3 R6, R6, 0x4, RZ\n"
        "LDG.E R12, [R6.64]\nFADD R1, R12, R9\nEXIT"
    )
    room = room_to_move(code.program.functions[0], 4, 5, 40)
    assert (room.slots, room.obstacle, room.obstacle_index) == (2, "the LDG that makes its operand", 0)


@pytest.mark.parametrize(
    ("before", "obstacle", "may_alias"),
    [
        ("BAR.SYNC 0x0", "a barrier", False),
        ("CALL.REL.NOINC elsewhere", "a call", False),
        ("STG.E [R2.64], R4", "a store that may write what it reads", True),
        ("STS [R2], R4", "the start of its basic block", False),
    ],
)
def test_what_holds_a_load(before: str, obstacle: str, may_alias: bool) -> None:
    code = listing(
        f"FADD R20, R21, R22\n{before}\nFADD R8, R9, R10\nLDG.E R12, [R6.64]\nFADD R1, R12, R9\nEXIT"
    )
    room = room_to_move(code.program.functions[0], 3, 4, 40)
    assert (room.obstacle, room.may_alias) == (obstacle, may_alias)
    assert room.slots == (3 if obstacle.startswith("the start") else 1)


def test_a_volatile_load_keeps_its_place_whatever_the_pointers_promise() -> None:
    code = listing("STG.E [R2.64], R4\nLDG.E.STRONG.SYS R12, [R6.64]\nFADD R1, R12, R9\nEXIT")
    room = room_to_move(code.program.functions[0], 1, 2, 40)
    assert not room.may_alias
    assert room.obstacle is not None
    assert "volatile" in room.obstacle


def test_a_read_only_load_passes_stores() -> None:
    code = listing("STG.E [R2.64], R4\nLDG.E.CONSTANT R12, [R6.64]\nFADD R1, R12, R9\nEXIT")
    assert not room_to_move(code.program.functions[0], 1, 2, 40).may_alias


def test_a_load_at_the_top_of_a_loop_can_start_a_pass_early() -> None:
    body = "LDG.E R2, [R6.64]\nFADD R8, R2, R9\nIADD3 R6, R6, 0x4, RZ\nIADD3 R4, R4, 0x1, RZ"
    function = _loop(body).program.functions[0]
    room = room_to_move(function, 1, 2, 40)
    assert (room.obstacle, room.slots) == (None, 6)
    held = _loop(body.replace("IADD3 R6", "BAR.SYNC 0x0\nIADD3 R6")).program.functions[0]
    assert room_to_move(held, 1, 2, 40).obstacle == "a barrier in its loop"
    chase = _loop("LDG.E.64 R2, [R2.64]\nFADD R8, R2, R9\nIADD3 R4, R4, 0x1, RZ").program.functions[0]
    assert room_to_move(chase, 1, 2, 40).obstacle == "its own result of the pass before"


def test_work_after_the_use_counts_until_a_fence() -> None:
    code = listing(
        "LDG.E R2, [R6.64]\nFADD R8, R2, R9\nFADD R10, R8, R9\nFADD R11, R12, R13\nMEMBAR.SC.GPU\n"
        "FADD R14, R12, R13\nEXIT"
    )
    assert room_to_move(code.program.functions[0], 0, 1, 40).slots == 1
