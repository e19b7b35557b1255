# SPDX-License-Identifier: Apache-2.0
"""Legality and numbers of GPA201 to GPA302 beyond their fixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.analyzer.thread_use import thread_use
from gpadvisor.estimators.block_shapes import BlockShape, larger_tile
from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import best_split, next_block, shape
from gpadvisor.estimators.row_loads import reduced_by_rows
from gpadvisor.estimators.utilisation import ISSUE
from gpadvisor.evidence.launches import freedom
from gpadvisor.evidence.queries import location_text
from gpadvisor.machine.every_gpu import every_gpu
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import KernelFacts
from gpadvisor.model.remedy import Remedy
from gpadvisor.model.sentence import Sentence
from gpadvisor.rules import (
    block_increase,
    code_reordering,
    function_inlining,
    loop_unrolling,
    thread_increase,
)

GLOBAL = DependencyClass.GLOBAL_MEMORY


def _match(rule: object, context: KernelContext) -> Match:
    found = rule.OPTIMIZER.match(context)  # type: ignore[attr-defined]  # a module
    assert isinstance(found, Match), found
    return found


def _reason(rule: object, context: KernelContext) -> str:
    found = rule.OPTIMIZER.match(context)  # type: ignore[attr-defined]  # a module
    assert isinstance(found, Rejection), found
    return found.reason


def _loop(body: str, end: str = "ISETP.NE.AND P0, PT, R4, R12, PT") -> str:
    rest = f"IADD3 R4, R4, 0x1, RZ // 4\n{end} // 4\nback| @P0 BRA again // 4\nEXIT"
    return f"before| MOV R4, RZ // 3\nagain:\n{body}\n{rest}"


STREAM = "load| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\nSTS [R11], R8 // 5"
ROWS = (Row("long_scoreboard", "use", 500, 450, "load", GLOBAL), Row("selected", "use", 500))


def _expected(text: str, rows: Sequence[Row] = ROWS, **more: object) -> tuple[float, str]:
    values: dict[str, Any] = {"registers": 20, **more}
    found = _match(loop_unrolling, context_of(listing(text), rows, **values))
    return found.adjustments[0].expected, found.adjustments[0].reason


def test_a_clear_loop_keeps_most_of_the_equation() -> None:
    expected, reason = _expected(_loop(STREAM))
    assert expected == 0.8
    assert "Table III" in reason


def test_loads_of_several_passes_in_flight_wait_together() -> None:
    """As a normalisation on few SMs: 86 % waits for loads, of a loop that has next to no other work."""
    rows = (Row("long_scoreboard", "use", 900, 860, "load", GLOBAL), Row("selected", "use", 60))
    context = context_of(listing(_loop(STREAM)), rows, registers=20)
    estimate = loop_unrolling.OPTIMIZER.estimate(context, _match(loop_unrolling, context))
    assert estimate.paper is not None
    assert estimate.paper < 1.12  # GPA Eq. 4, which fills waits with other work alone
    assert 1.9 < estimate.expected < 1 / (1 - 860 / 960 * 0.8 * 0.75)
    assert 1 < estimate.low < estimate.paper
    carried = "load| LDG.E.64 R2, [R2.64] // 5\nuse| FADD R8, R2, R9 // 5"
    for body in (carried, STREAM.replace("LDG.E R2, [R6.64]", "LDS R2, [R6]")):  # one by one; soon there
        context = context_of(listing(_loop(body)), rows, registers=20)
        assert loop_unrolling.OPTIMIZER.estimate(context, _match(loop_unrolling, context)).expected < 1.1


def test_the_loops_that_share_the_wait_are_told_and_counted() -> None:
    """As a normalisation that reads its row twice: first for the sum, then to scale it."""
    second = "first| LDG.E R14, [R16.64] // 15\nthen| FADD R18, R14, R9 // 15\nSTS [R11], R18 // 15"
    text = _loop(STREAM).removesuffix("EXIT")
    text += f"other:\n{second}\nIADD3 R4, R4, 0x1, RZ // 14\nISETP.NE.AND P0, PT, R4, R12, PT // 14\n"
    rows = [
        Row("long_scoreboard", "use", 430, 430, "load", GLOBAL),
        Row("long_scoreboard", "then", 420, 420, "first", GLOBAL),
        Row("selected", "use", 60),
    ]
    context = context_of(listing(f"{text}@P0 BRA other // 14\nEXIT"), rows, registers=20)
    found = _match(loop_unrolling, context)
    assert "The same for the loop at kernel.cu:15." in found.advice
    assert loop_unrolling.OPTIMIZER.estimate(context, found).expected > 1.8


def test_a_pointer_that_is_a_constant_cannot_be_marked_as_restricted() -> None:
    """As kernels whose pointers stand in a structure in constant memory."""
    body = "load| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\nSTG.E [R14.64], R8 // 6"
    for made, words in (("c[0x0][0x160]", True), ("c[0x3][0x10]", False)):
        text = f"MOV R6, {made} // 2\nMOV R14, c[0x0][0x170] // 2\n{_loop(body)}"
        found = _match(loop_unrolling, context_of(listing(text), ROWS, registers=20))
        assert (", too, __restrict__" in found.advice) is words
        assert found.actionable is words


@pytest.mark.parametrize(("address", "goes"), [("R18", True), ("R6", False)])
def test_a_bound_that_is_read_again_ends_no_loop_early(address: str, goes: bool) -> None:
    """As in Rodinia's bfs, whose loop over edges reads their number again in each pass."""
    body = f"{STREAM}\nIADD3 R6, R6, 0x4, RZ // 5\nLDG.E R12, [{address}.64] // 4"
    found = _match(loop_unrolling, context_of(listing(_loop(body)), ROWS, registers=20))
    assert ("the data may end" not in found.adjustments[0].reason) is goes
    assert found.actionable is goes


def test_few_passes_by_counts_or_by_constants() -> None:
    counts = {"before": (100, 3200), "load": (150, 4800), "use": (150, 4800), "back": (150, 4800)}
    expected, reason = _expected(_loop(STREAM), counts=counts)
    assert expected == pytest.approx(0.8 * 0.1)  # each pass may be the last: one in ten is in a whole body
    assert "only 1.5 passes per entry by executed counts" in reason
    expected, reason = _expected(_loop(STREAM, "ISETP.NE.AND P0, PT, R4, 0x3, PT"))
    assert "only 3.0 passes per entry by its constants" in reason
    assert expected == pytest.approx(0.8 * 0.5)


def test_threads_that_leave_early() -> None:
    counts = {"before": (100, 3200), "load": (900, 7200), "use": (900, 7200), "back": (900, 7200)}
    expected, reason = _expected(_loop(STREAM), counts=counts)
    assert expected == pytest.approx(0.8 * 0.25)
    assert "only 8 of 32 threads" in reason


def test_a_linked_list_cannot_overlap() -> None:
    chase = "load| LDG.E.64 R2, [R2.64] // 5\nuse| FADD R8, R2, R9 // 5"
    expected, reason = _expected(_loop(chase))
    assert expected == 0
    assert "100.0 % of its latency is on values carried" in reason


def test_atomics_stay_one_after_the_other() -> None:
    body = "load| ATOMG.E.ADD.STRONG.GPU PT, R2, [R6.64], R10 // 5\nuse| FADD R8, R2, R9 // 5"
    found = _match(loop_unrolling, context_of(listing(_loop(body)), ROWS, registers=20))
    (adjustment,) = found.adjustments
    assert (adjustment.expected, adjustment.high) == (0, 0)  # no order of instructions overlaps them
    assert "100.0 % of its latency is on results of atomics" in adjustment.reason
    advice = _match(code_reordering, context_of(listing(_loop(body)), ROWS)).advice
    assert "An atomic stays where it is" in advice
    assert "move it up" not in advice


def test_a_load_behind_a_condition_waits_for_it() -> None:
    body = "@P1 BRA skip\nload| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\nskip:\nSTS [R11], R8 // 6"
    found = _match(loop_unrolling, context_of(listing(_loop(body)), ROWS, registers=20))
    (adjustment,) = found.adjustments
    assert (adjustment.expected, adjustment.high) == (0, 1)  # the author may lift the condition
    assert "on loads behind a condition inside the pass" in adjustment.reason


def test_no_load_passes_the_early_exit_of_a_loop() -> None:
    """As in a distance that is given up as soon as it is too large: #pragma unroll alone changes nothing."""
    body = f"{STREAM}\nFSETP.GT.AND P1, PT, R8, R9, PT\n@P1 BRA found // 5"
    text = f"{_loop(body)}\nfound:\nEXIT"
    found = _match(loop_unrolling, context_of(listing(text), ROWS, registers=20))
    assert "on loads of a loop that the data may end in any pass" in found.adjustments[0].reason
    assert not found.actionable


def test_a_barrier_in_each_pass() -> None:
    expected, reason = _expected(_loop(f"{STREAM}\nBAR.SYNC 0x0"))
    assert expected == pytest.approx(0.8 * 0.36)
    assert "1 barrier in each pass keeps" in reason


def test_a_loop_with_a_barrier_or_few_threads_is_no_suggestion() -> None:
    for body, more in (
        (f"{STREAM}\nBAR.SYNC 0x0", {}),
        (STREAM, {"counts": {"load": (1000, 9000), "use": (1000, 9000), "back": (1000, 9000)}}),
    ):
        context = context_of(listing(_loop(body)), ROWS, registers=20, **more)  # type: ignore[arg-type] # keywords by name
        assert not _match(loop_unrolling, context).actionable


def test_a_loop_of_a_librarys_template_is_no_suggestion() -> None:
    code = listing(f".function cub::scan_kernel\n{_loop(STREAM)}".replace(" // 5", "").replace(" // 4", ""))
    own = replace(
        code, program=replace(code.program, functions=(replace(code.program.functions[0], demangled="scan"),))
    )
    assert [
        _match(loop_unrolling, context_of(one, ROWS, registers=20)).actionable for one in (code, own)
    ] == [False, True]


def test_of_two_loops_the_one_that_can_gain_more_is_named() -> None:
    """After a normalisation: a pass over the data that sums, and one that stores behind a barrier's order."""
    held = "first| LDG.E R2, [R6.64] // 15\nthen| FADD R8, R2, R9 // 15\nBAR.SYNC 0x0 // 16"
    text = _loop(STREAM).removesuffix("EXIT")
    text += f"other:\n{held}\nIADD3 R4, R4, 0x1, RZ // 14\nISETP.NE.AND P0, PT, R4, R12, PT // 14\n"
    rows = [
        Row("long_scoreboard", "use", 400, 400, "load", GLOBAL),
        Row("long_scoreboard", "then", 450, 450, "first", GLOBAL),
        Row("selected", "use", 500),
    ]
    found = _match(
        loop_unrolling, context_of(listing(f"{text}@P0 BRA other // 14\nEXIT"), rows, registers=20)
    )
    assert found.actionable
    assert "kernel.cu:5" in found.advice


@pytest.mark.parametrize(
    ("load", "store", "words", "actionable"),
    [
        ("LDG.E", "R12", "mark the pointers, too, __restrict__, const", True),
        ("LDG.E.CONSTANT", "R12", "loads of several passes are in flight together.", True),
        ("LDG.E", "R6", "to the array that it loads from", False),
    ],
)
def test_a_store_that_may_write_what_the_next_pass_loads(
    load: str, store: str, words: str, actionable: bool
) -> None:
    pointers = "IMAD.WIDE R6, R3, R5, c[0x0][0x160]\nIMAD.WIDE R12, R3, R5, c[0x0][0x168]\n"
    body = f"load| {load} R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\nSTG.E [{store}.64], R8 // 6"
    context = context_of(
        listing(f"{pointers}{_loop(body, 'ISETP.NE.AND P0, PT, R4, R15, PT')}"), ROWS, registers=20
    )
    found = _match(loop_unrolling, context)
    assert words in found.advice
    assert found.actionable is actionable


def test_little_may_come_of_it_names_the_largest_obstacle() -> None:
    text = _loop(f"{STREAM}\nBAR.SYNC 0x0")
    found = _match(loop_unrolling, context_of(listing(text), ROWS, registers=100))
    assert "Little may come of it: 1 barrier in each pass" in found.advice


@pytest.mark.parametrize(
    ("copies", "rest", "silent"), [(4, "LDG.E", True), (4, "LDG.E.64", False), (1, "LDG.E", False)]
)
def test_the_rest_of_an_unrolled_loop_is_told_without_lines(copies: int, rest: str, silent: bool) -> None:
    loads = "\n".join(f"LDG.E R{20 + i}, [R6.64+{4 * i:#x}]" for i in range(copies))
    sums = "\n".join(f"FADD R8, R{20 + i}, R8" for i in range(copies))
    text = f"""
        again:
        {loads}
        {sums}
        IADD3 R4, R4, {copies:#x}, RZ
        ISETP.NE.AND P0, PT, R4, R12, PT
        @P0 BRA again
        rest:
        {rest} R30, [R10.64]
        FADD R8, R30, R8
        IADD3 R5, R5, 0x1, RZ
        ISETP.NE.AND P0, PT, R5, R13, PT
        @P0 BRA rest
        EXIT
    """
    context = context_of(listing(text))
    found = loop_unrolling.OPTIMIZER.match(context)
    assert isinstance(found, Rejection) is silent


def test_short_blocks_come_before_an_order_of_loads() -> None:
    assert not _match(
        loop_unrolling, context_of(listing(_loop(STREAM)), ROWS, registers=20, block=9)
    ).actionable
    work = "FFMA R10, R10, R10, R10\n" * 40
    ahead = _loop(f"load| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\n{work}")
    assert _match(code_reordering, context_of(listing(ahead), ROWS)).actionable
    assert not _match(code_reordering, context_of(listing(ahead), ROWS, block=9)).actionable


def test_without_samples_each_loop_is_told_once() -> None:
    first = _loop(STREAM).removesuffix("\nEXIT")
    second = _loop(STREAM.replace("// 5", "// 8"))
    for name in ("load", "use", "before", "back"):
        second = second.replace(f"{name}|", f"{name}s|")
    second = second.replace("again", "more")
    found = _match(loop_unrolling, replace(context_of(listing(f"{first}\n{second}")), blame=None))
    assert "Unroll the loops at kernel.cu:5, kernel.cu:8 (" in found.advice
    found = _match(loop_unrolling, replace(context_of(listing(_loop(STREAM))), blame=None))
    assert "Unroll the loop at kernel.cu:5 (" in found.advice


def test_a_loop_that_is_unrolled_already_is_a_note() -> None:
    assert _match(loop_unrolling, context_of(listing(_loop(STREAM)), ROWS, registers=20)).actionable
    again = STREAM.replace("load| ", "").replace("use| ", "")
    body = "\n".join([STREAM, *[again] * 7])
    assert not _match(loop_unrolling, context_of(listing(_loop(body)), ROWS, registers=20)).actionable


@pytest.mark.parametrize(
    ("grid", "busy", "further"), [(64, 30.0, True), (64, 95.0, False), (4096, 30.0, False)]
)
def test_where_the_grid_leaves_no_other_warps_more_loads_in_flight_help(
    grid: int, busy: float, further: bool
) -> None:
    """After a product of 128 x 128: 64 blocks, four passes in the body, two thirds of the time waiting."""
    again = STREAM.replace("load| ", "").replace("use| ", "")
    body = "\n".join([STREAM, *[again] * 3])
    metrics = {"l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": busy}
    context = context_of(listing(_loop(body)), ROWS, registers=20, grid=grid, metrics=metrics)
    found = _match(loop_unrolling, context)
    assert found.actionable is further
    assert ("#pragma unroll 16, 4 now" in found.advice) is further
    assert (loop_unrolling.OPTIMIZER.estimate(context, found).expected > 1.1) is further


OWN = "{tag}| LDG.E R2, [R6.64{at}] // 5\nFMUL R8, R2, R9 // 5\nSTG.E [{store}.64{at}], R8 // 5"
STEP = "IADD3 R6, R6, 0x10, RZ // 5"


def _own_elements(store: str = "R6", step: str = STEP, load: str = "LDG.E") -> str:
    copies = [
        OWN.format(tag=tag, at=f"+{4 * at:#x}", store=store).replace("LDG.E", load)
        for at, tag in enumerate(("load", "b", "c", "d"))
    ]
    copies[0] = copies[0].replace("FMUL", "use| FMUL")
    return _loop("\n".join([*copies, step]))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        (_own_elements(), True),
        (_own_elements(store="R16"), False),  # another array: __restrict__
        (_own_elements(load="LDG.E.CONSTANT"), False),  # that nobody stores to
        (_own_elements(step="IADD3 R14, R14, 0x10, RZ // 5"), False),  # each pass has the same element
        (_own_elements(step="LDG.E.64 R6, [R18.64] // 5"), False),  # data may name an element twice
    ],
    ids=["own", "other array", "read only", "same element", "index"],
)
def test_loads_of_elements_that_each_pass_stores_to_come_first_by_hand(text: str, held: bool) -> None:
    """As in a transform: #pragma unroll 16 gained nothing, loads of 16 passes before their stores 2.5x."""
    context = context_of(listing(text), ROWS, registers=20, grid=64, metrics=IDLE)
    found = _match(loop_unrolling, context)
    words = "Load what 16 passes of the loop at kernel.cu:5 need into an array of registers before it stores"
    assert (words in found.advice) is held
    assert ("behind the store of the pass before at kernel.cu:5" in found.advice) is held
    assert (Remedy.LOADS_FIRST in found.remedies) is held
    if held:
        assert found.actionable
        assert loop_unrolling.OPTIMIZER.estimate(context, found).expected > 1.1


IDLE = {"l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 30.0}
RARE = "slow{at}| @P2 BRA rest{at} // 6\nFMUL R8, R8, R9 // 6\nrest{at}:\nFADD R10, R10, R8 // 5"


def _branched(copies: int, step: str = "0x4") -> str:
    body = "\n".join(
        f"{'load| ' if not at else ''}LDG.E R2, [R6.64+{4 * at:#x}] // 5\n"
        f"{'use| ' if not at else ''}FADD R8, R2, R9 // 5\n{RARE.format(at=at)}"
        for at in range(copies)
    )
    return _loop(body).replace("R4, R4, 0x1", f"R4, R4, {step}")


def test_no_load_moves_over_a_branch_inside_the_pass() -> None:
    """As after a division, whose rare arguments go another way: copies load one after the other."""
    rows = (*ROWS, Row("wait", "slow0", 450, 450, "use", DependencyClass.ARITHMETIC))
    context = context_of(listing(_branched(4)), rows, registers=20, grid=64, metrics=IDLE)
    found = _match(loop_unrolling, context)
    assert "into an array of registers before it uses them, by __ldca()" in found.advice
    assert "behind the branch of the pass before at kernel.cu:6" in found.advice
    assert found.remedies == (Remedy.LOADS_FIRST,)
    assert found.adjustments[0].expected <= 0.8 * 0.75 * 900 / 500  # of the loads alone
    assert "50.0 % of its latency is on loads that could stand first" in found.adjustments[0].reason


def test_copies_of_a_counted_pass_join_at_its_ends() -> None:
    """As around a sine: what a pass begins with waits beside the end of the one before alone."""
    rows = (Row("long_scoreboard", "use", 900, 860, "load", GLOBAL), Row("selected", "use", 60))
    context = context_of(listing(_branched(1, "0x1")), rows, registers=20)
    found = _match(loop_unrolling, context)
    assert "#pragma unroll 4" in found.advice
    estimate = loop_unrolling.OPTIMIZER.estimate(context, found)
    assert estimate.paper is not None
    assert estimate.expected <= estimate.paper  # 1.9 where they wait together


def test_what_stands_between_branches_of_a_pass_stays_by_itself() -> None:
    """As in a search whose pass holds a loop that the data may end: 1.1x told, 0.99x measured."""
    rows = (Row("wait", "use", 500, 450, "load", DependencyClass.ARITHMETIC), Row("selected", "use", 500))
    work = "load| FMUL R2, R3, R3 // 5\nuse| FADD R8, R2, R9 // 5"
    branch = "@P2 BRA rest // 6\nFMUL R8, R8, R9 // 6\nrest:"
    between = f"{branch}\n{work}\n{branch.replace('rest', 'last')}\nFADD R10, R10, R8 // 5"
    assert "100.0 % of its latency is between branches" in _expected(_loop(between), rows)[1]
    assert _expected(_loop(between), rows)[0] == 0
    assert _expected(_loop(f"{work}\n{branch}\nFADD R10, R10, R8 // 5"), rows)[0] == 0.8


@pytest.mark.parametrize(
    ("size", "unsigned"), [("c[0x0][0x0]", True), ("c[0x0][0xc]", True), ("c[0x0][0x170]", False)]
)
def test_a_step_by_the_size_of_the_block_is_to_be_signed(size: str, unsigned: bool) -> None:
    """As in a copy to shared memory: with blockDim.x as step each copy tests for the end and then loads."""
    text = f"MOV R13, {size} // 2\n{_loop(STREAM).replace('R4, R4, 0x1', 'R4, R13, R4')}"
    found = _match(loop_unrolling, context_of(listing(text), ROWS, registers=20))
    assert "#pragma unroll 4" in found.advice
    assert ("with a signed counter and step (const int step = blockDim.x;)" in found.advice) is unsigned


@pytest.mark.parametrize(
    ("registers", "declared", "told"), [(32, None, True), (44, None, False), (32, 1, False)]
)
def test_more_copies_want_registers_that_launch_bounds_let_them_have(
    registers: int, declared: int | None, told: bool
) -> None:
    """As nvcc compiles a sum over phases: 16 copies in 30 registers, and in 136 with __launch_bounds__."""
    loads = "\n".join(
        f"{'load| ' if not at else ''}LDG.E.CONSTANT R{20 + at}, [R6.64+{4 * at:#x}] // 5" for at in range(4)
    )
    sums = "\n".join(f"{'use| ' if not at else ''}FADD R8, R{20 + at}, R8 // 5" for at in range(4))
    facts = KernelFacts(registers, 0, 0, None, None, declared, 0)
    code = listing(_loop(f"{loads}\n{sums}\n{STEP}"), facts=facts)
    context = context_of(code, ROWS, registers=registers, grid=64, metrics=IDLE)
    found = _match(loop_unrolling, context)
    assert "#pragma unroll 16, 4 now" in found.advice
    assert ("with __launch_bounds__(256, 1)" in found.advice) is told


@pytest.mark.parametrize(("copies", "left"), [(2, 2 / 3), (3, 1 / 3), (4, 0), (8, 0)])
def test_passes_that_are_in_flight_already_have_had_their_part(copies: int, left: float) -> None:
    loads = [f"LDG.E R{20 + at}, [R6.64+{4 * at:#x}] // 5" for at in range(copies)]
    uses = [f"FADD R{40 + at}, R{20 + at}, R9 // 5" for at in range(copies)]
    body = "\n".join([f"load| {loads[0]}", *loads[1:], f"use| {uses[0]}", *uses[1:]])
    expected, reason = _expected(_loop(body).replace("R4, R4, 0x1", f"R4, R4, {copies:#x}"))
    assert expected == pytest.approx(0.8 * left)
    assert f"its body stands {copies} times in it" in reason


def test_one_jump_for_four_passes_frees_issue_slots() -> None:
    again = STREAM.replace("load| ", "").replace("use| ", "")
    counts = dict.fromkeys(("before", "load", "use", "back"), (100, 3200))
    for body, left in ((STREAM, [1 - 0.75 / 4]), ("\n".join([STREAM, *[again] * 3]), [])):
        found = _match(loop_unrolling, context_of(listing(_loop(body)), ROWS, counts=counts))
        assert [(one.resource, one.remaining) for one in found.reduced_loads] == [
            ("issue", one) for one in left
        ]


@pytest.mark.parametrize(("percent", "full"), [(88.0, True), (40.0, False)])
def test_schedulers_at_their_limit_are_why_to_unroll(percent: float, full: bool) -> None:
    issue = {"sm__issue_active.avg.pct_of_peak_sustained_elapsed": percent}
    counts = dict.fromkeys(("before", "load", "use", "back"), (100, 3200))
    context = context_of(listing(_loop(STREAM)), ROWS, counts=counts, metrics=issue)
    found = _match(loop_unrolling, context)
    assert ("jumps once for several passes: the schedulers are at their limit" in found.cure) is full
    assert ("loads of several passes are in flight together" in found.cure) is not full


@pytest.mark.parametrize(
    ("registers", "block", "kept"), [(37, 256, 1), (38, 256, 40 / 48), (64, 256, 24 / 32), (64, 128, 28 / 32)]
)
def test_three_more_values_in_flight_take_registers_from_other_warps(
    registers: int, block: int, kept: float
) -> None:
    expected, reason = _expected(_loop(STREAM), registers=registers, block=block)
    assert expected == pytest.approx(0.8 * kept)
    assert (f"want about {registers + 3} registers, which leaves" in reason) is (kept < 1)


def test_no_room_for_registers_may_give_nothing() -> None:
    context = context_of(listing(_loop(STREAM)), ROWS, registers=254)
    found = _match(loop_unrolling, context)
    assert "of 255 registers" in found.adjustments[0].reason
    assert found.adjustments[0].low == 0
    assert loop_unrolling.OPTIMIZER.estimate(context, found).low < 1


def test_the_region_is_the_innermost_common_loop_with_its_nested_samples() -> None:
    text = (
        "outer:\nload| LDG.E R2, [R6.64] // 5\ninner:\nhot| FADD R3, R3, R4 // 6\n@P1 BRA inner // 6\n"
        "use| FADD R8, R2, R9 // 7\n@P0 BRA outer // 4\nEXIT"
    )
    rows = [*ROWS, Row("selected", "hot", 300), Row("wait", "hot", 50, 50, "hot", DependencyClass.ARITHMETIC)]
    found = _match(loop_unrolling, context_of(listing(text), rows))
    by_loop = {region.scope.loop: region for region in found.regions}
    assert by_loop[0].rows.tolist() == [0]
    assert by_loop[0].active_samples == 50 + 500 + 300  # its own and those of the loop in it
    assert by_loop[1].rows.tolist() == [3]
    assert by_loop[1].active_samples == 300


def test_reordering_after_a_barrier_is_held() -> None:
    # As in pathfinder: the load stands right behind the barrier that its pass begins with.
    body = "BAR.SYNC 0x0 // 5\nload| LDG.E R2, [R6.64] // 6\nuse| FADD R8, R2, R9 // 6"
    found = _match(code_reordering, context_of(listing(_loop(body)), ROWS))
    assert found.adjustments[0].expected < 0.1
    assert "a barrier" in found.adjustments[0].reason
    assert "load the value before the barrier at kernel.cu:5" in found.cure
    assert found.actionable


_NEIGHBOURS = (
    "LDG.E R3, [R6.64] // 5\n{between}ISETP.GT.AND P1, PT, R3, R9, PT // 5\n@P1 BRA past // 5\n"
    "load| LDG.E R2, {neighbour} // 6\nuse| ISETP.GT.AND P2, PT, R2, R9, PT // 6\n"
    "@!P2 STS [R11], R9 // 6\npast:"
)


def _of_neighbours(neighbour: str = "[R6.64+0x4]", between: str = "") -> Match:
    body = _NEIGHBOURS.format(neighbour=neighbour, between=between)
    return _match(code_reordering, context_of(listing(_loop(body)), ROWS))


def test_a_neighbour_behind_a_condition_is_loaded_before_it() -> None:
    # As in b+tree, whose keys at thid and thid + 1 are compared one behind the other.
    found = _of_neighbours()
    assert "load it together with the value of kernel.cu:5, before the condition on that" in found.cure
    assert found.remedies == (Remedy.BOTH_SIDES,)
    assert found.adjustments[0].expected == 0.8


@pytest.mark.parametrize(
    ("neighbour", "between"),
    [
        ("[R6.64+0x400]", ""),  # another line of memory, which is perhaps not needed
        ("[R8.64+0x4]", ""),
        ("[R6.64+0x4]", "IADD3 R6, R6, 0x10, RZ\n"),
        ("[R6.64+0x4]", "STG.E [R12.64], R9\n"),  # may write it
        ("[R6.64+0x4]", "BAR.SYNC 0x0\n"),
    ],
)
def test_what_is_no_neighbour_stays_behind_its_condition(neighbour: str, between: str) -> None:
    assert not _of_neighbours(neighbour, between).remedies


def test_what_is_needed_behind_a_loop_is_not_loaded_in_every_pass() -> None:
    text = (
        "again:\nIADD3 R6, R6, 0x4, RZ // 4\nLDG.E R3, [R6.64] // 5\nISETP.GT.AND P1, PT, R3, R9, PT // 5\n"
        "@P1 BRA again // 5\nload| LDG.E R2, [R6.64+0x4] // 6\nuse| FADD R8, R2, R9 // 6\nEXIT"
    )
    assert not _match(code_reordering, context_of(listing(text), ROWS)).remedies


def test_waits_at_the_barrier_behind_a_load_shrink_with_those_for_the_load() -> None:
    # The warps that have their values wait at the second barrier for those that have not.
    body = (
        "BAR.SYNC 0x0 // 5\nload| LDG.E R2, [R6.64] // 6\nuse| FADD R8, R2, R9 // 6\n"
        "wait| BAR.SYNC 0x0 // 7\nafter| IADD3 R10, R10, 0x1, RZ // 8"
    )
    waits = Row("barrier", "after", 400, 400, "load", DependencyClass.SYNCHRONIZATION)
    gains = []
    for rows in ([*ROWS], [*ROWS, waits]):
        context = context_of(listing(_loop(body)), rows)
        estimate = code_reordering.OPTIMIZER.estimate(context, _match(code_reordering, context))
        total = context.blame.total_samples
        gains.append([total * (1 - 1 / value) for value in (estimate.expected, estimate.high)])
    (alone, most_alone), (both, most_both) = gains
    room = _match(code_reordering, context_of(listing(_loop(body)), ROWS)).adjustments[0].expected
    assert both - alone == pytest.approx(400 * room, rel=0.2)
    assert 400 * room < most_both - most_alone < 400 / 2


def test_what_the_compiler_schedules_is_a_note() -> None:
    shared = [Row("short_scoreboard", "use", 100, 90, "load", DependencyClass.SHARED_MEMORY, distance=1)]
    text = "FADD R1, R1, R2\nload| LDS R2, [R6]\nuse| FADD R8, R2, R9\nEXIT"
    found = _match(code_reordering, context_of(listing(text), [*shared, Row("selected", "use", 100)]))
    assert not found.actionable
    guarded = "@P0 EXIT\nload| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nEXIT"
    assert not _match(code_reordering, context_of(listing(guarded), ROWS)).actionable


@pytest.mark.parametrize(
    ("free", "words"),
    [
        ("", "About "),
        ("FADD R20, R21, R22 // 6\n", "About 1 instruction nearby is independent of both."),
        ("FADD R20, R21, R22 // 6\n" * 2, "About 2 instructions nearby are independent of both."),
    ],
)
def test_how_much_could_stand_between_is_counted(free: str, words: str) -> None:
    text = f"STG.E [R10.64], R12 // 4\nload| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\n{free}EXIT"
    advice = _match(code_reordering, context_of(listing(text), ROWS)).advice
    assert (words in advice) is bool(free)
    assert "mark the pointers __restrict__" in advice


def test_the_number_is_of_the_pairs_that_the_words_are_about() -> None:
    text = (
        "STG.E [R10.64], R12 // 4\nload| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\n"
        "tile| LDS R4, [R7] // 6\nneed| FADD R5, R4, R8 // 6\nEXIT"
    )
    rows = [*ROWS, Row("short_scoreboard", "need", 300, 300, "tile", DependencyClass.SHARED_MEMORY)]
    found = _match(code_reordering, context_of(listing(text), rows))
    assert "__restrict__" in found.advice
    assert [region.rows.tolist() for region in found.regions] == [[0]]


def test_loads_behind_stores_to_one_element_wait_together_without_them() -> None:
    """As in Rodinia's lud: what goes is more than the work there is could hide, which is all of Eq. 4."""
    copies = "".join(
        f"load{at}| LDS R2, [R6+{4 * at:#x}] // 5\nuse{at}| FFMA R8, R2, R9, R8 // 5\nSTS [R11], R8 // 5\n"
        for at in range(4)
    )
    shared = DependencyClass.SHARED_MEMORY
    rows = [
        *(Row("short_scoreboard", f"use{at}", 200, 200, f"load{at}", shared, distance=1) for at in range(4)),
        Row("selected", "use0", 200),
    ]
    context = context_of(listing(copies + "EXIT"), rows)
    found = _match(code_reordering, context)
    assert "keep the element at kernel.cu:5 in a local variable" in found.cure
    assert "behind the loop that is unrolled there: 4 stores behind each other write it" in found.cure
    assert [region.rows.tolist() for region in found.regions] == [[1, 2, 3]]  # the first waits for itself
    estimate = code_reordering.OPTIMIZER.estimate(context, found)
    assert estimate.paper == pytest.approx(1000 / (1000 - 200))
    assert "1000 / (1000 - 480) = 1.923" in estimate.reason
    assert 1.25 < estimate.expected < 1000 / (1000 - 480)  # its instructions stay


def test_accesses_that_a_register_replaces_take_no_time_of_their_own() -> None:
    copies = "".join(
        f"load{at}| LDS R2, [R6+{4 * at:#x}] // 5\nuse{at}| FFMA R8, R2, R9, R8 // 5\n"
        f"store{at}| STS [R11], R8 // 5\n"
        for at in range(4)
    )
    shared = DependencyClass.SHARED_MEMORY
    rows = [
        *(Row("short_scoreboard", f"use{at}", 200, 200, f"load{at}", shared, distance=1) for at in range(4)),
        Row("selected", "use0", 200),
    ]
    stored = [Row("wait", f"store{at}", 50) for at in range(4)]
    expected = []
    for more in ([Row("wait", "use0", 200)], stored):
        context = context_of(listing(copies + "EXIT"), [*rows, *more])
        expected.append(
            code_reordering.OPTIMIZER.estimate(context, _match(code_reordering, context)).expected
        )
    assert expected[1] > 1.1 * expected[0]


def test_a_register_that_is_overwritten_too_soon_is_not_used() -> None:
    war = DependencyClass.WRITE_AFTER_READ
    rows = [Row("long_scoreboard", "next", 50, 40, "store", war), Row("selected", "next", 50)]
    code = "store| STG.E [R2.64], R4\nnext| VIADD R4, R4, 0x4\nEXIT"
    advice = _match(code_reordering, context_of(listing(code), rows)).advice
    assert advice.startswith("STG at 0x0 still reads a register that is overwritten by VIADD at 0x10")


def test_distant_pairs_are_left_out_of_the_match() -> None:
    rows = [
        Row("long_scoreboard", "use", 100, 90, "load", GLOBAL, distance=3),
        Row("long_scoreboard", "use", 200, 190, "load", GLOBAL, distance=80),
        Row("selected", "use", 300),
    ]
    found = _match(code_reordering, context_of(listing(_loop(STREAM)), rows))
    assert [region.rows.tolist() for region in found.regions] == [[0]]


def test_static_reordering_wants_a_store_that_may_alias_in_a_loop() -> None:
    held = "STG.E [R10.64], R12 // 4\nload| LDG.E R2, [R4.64] // 5\nuse| FADD R8, R2, R9 // 5"
    found = _match(code_reordering, context_of(listing(_loop(held))))
    assert [site.detail for site in found.static_sites] == [
        "LDG used 1 instruction later, behind the store of kernel.cu:4"
    ]
    assert (
        "mark the pointers __restrict__, const where they are only read, if they never overlap" in found.cure
    )
    assert found.title == "load held back by a store that may alias"
    for silent in (_loop(STREAM), _loop(held.replace("LDG.E", "LDG.E.CONSTANT")), held + "\nEXIT"):
        assert "no global load in a loop" in _reason(code_reordering, context_of(listing(silent)))
    # Load and store go through one pointer, which no keyword tells apart from itself.
    stack = "IADD3 R4, R20, 0x8, RZ // 3\n" + held.replace("[R10.64]", "[R4.64+0x10]")
    moved = stack.replace("[R4.64]", "[R24.64]").replace("use|", "use|", 1)
    moved = moved.replace("STG", "IADD3 R24, R4, 0x20, RZ\nSTG")
    rows = (  # of one matrix, whose row and number of columns are parameters, too
        "IMAD R27, R31, c[0x0][0x16c], R33 // 3\nIMAD R25, R30, c[0x0][0x168], R33 // 3\n"
        "IMAD.WIDE R4, R27, 0x8, c[0x0][0x160] // 3\nIMAD.WIDE R10, R25, 0x8, c[0x0][0x160] // 3\n"
    ) + held
    assert _match(
        code_reordering, context_of(listing(_loop(rows.replace("c[0x0][0x160]", "c[0x0][0x170]", 1))))
    )
    inside = "LDG.E.64 R10, [R26.64] // 3\n" + held  # the store's pointer is an element of a structure
    library = f".function cub::transform_kernel\n{_loop(held)}"  # which has pointers of its own
    for silent in (_loop(stack), _loop(moved), _loop(rows), _loop(inside), library):
        assert "no global load in a loop" in _reason(code_reordering, context_of(listing(silent)))
    one = context_of(listing(_loop(held)), [], grid=1, block=1)
    assert "one thread does all of it" in _reason(code_reordering, replace(one, blame=None))


CALLED = (
    ".function kernel\nbefore| MOV R4, R6\nCALL.REL.NOINC lookup\nback| EXIT\n"
    ".function lookup device\nload| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nRET.REL.NODEC R20 0x0"
)


def test_the_block_of_a_call_counts_and_the_rest_of_the_kernel_does_not() -> None:
    text = CALLED.replace("back| EXIT", "@P0 EXIT\nback| FADD R1, R2, R3\nEXIT")
    rows = [*ROWS, Row("wait", "before", 40, 30), Row("wait", "back", 20, 10)]
    found = _match(function_inlining, context_of(listing(text), rows))
    assert [region.rows.tolist() for region in found.regions] == [[0, 2]]
    assert found.regions[0].active_samples == 50 + 500 + 10


def test_inlining_frees_the_calls_and_the_returns() -> None:
    """Two of six instructions that all run as often."""
    code = listing(CALLED.replace("CALL.REL", "call| CALL.REL").replace("RET.REL", "return| RET.REL"))
    counts = dict.fromkeys(code.tags, (1000, 32_000))
    found = _match(function_inlining, context_of(code, ROWS, counts=counts))
    (issued,) = [load for load in found.reduced_loads if load.resource == ISSUE]
    assert issued.remaining == pytest.approx(4 / 6)


def test_only_functions_with_samples_are_named() -> None:
    text = CALLED.replace("CALL.REL.NOINC lookup", "CALL.REL.NOINC other\nMOV R4, R6\nCALL.REL.NOINC lookup")
    text += "\n.function other device\ncold| FADD R1, R1, R2\nRET.REL.NODEC R20 0x0"
    found = _match(function_inlining, context_of(listing(text), ROWS))
    assert "lookup" in found.cure
    assert "other" not in found.cure
    warm = _match(function_inlining, context_of(listing(text), [*ROWS, Row("wait", "cold", 20, 10)]))
    assert "lookup" in warm.cure
    assert "other" in warm.cure


@pytest.mark.parametrize("looped", [True, False])
def test_without_samples_only_calls_in_loops_are_told(looped: bool) -> None:
    call = "again:\ncall| CALL.REL.NOINC lookup\n@P0 BRA again" if looped else "CALL.REL.NOINC lookup"
    text = CALLED.replace("CALL.REL.NOINC lookup", call)
    found = function_inlining.OPTIMIZER.match(replace(context_of(listing(text)), blame=None))
    assert isinstance(found, Match) is looped
    if isinstance(found, Match):
        assert "Let the compiler inline lookup" in found.cure
    else:
        assert "called outside of loops only" in found.reason


def test_large_functions_and_pointers_are_not_inlined() -> None:
    body = "\n".join("FADD R1, R1, R2" for _ in range(600))
    large = CALLED.replace("load|", f"{body}\nload|")
    assert "lookup has 9648 bytes, more than the 8192" in _reason(
        function_inlining, context_of(listing(large), ROWS)
    )
    both = large.replace("CALL.REL.NOINC lookup", "CALL.REL.NOINC other\nCALL.REL.NOINC lookup")
    larger = f"{both}\n.function other device\n{body}\n{body}\nRET.REL.NODEC R20 0x0"
    assert "lookup has 9648 bytes" in _reason(function_inlining, context_of(listing(larger), ROWS))
    pointer = "CALL.REL.NOINC nowhere\nload| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nEXIT"
    reason = _reason(function_inlining, context_of(listing(pointer), ROWS))
    assert "1 function of other files (nowhere) joined by the linker: -dlto" in reason


def test_no_inlining_where_code_is_too_large_already() -> None:
    rows = [*ROWS, Row("no_instructions", "use", 400, 400)]
    assert "wait for instruction fetch" in _reason(function_inlining, context_of(listing(CALLED), rows))


INDEXED = """
    S2R R0, SR_CTAID.X
    S2R R3, SR_TID.X
    IMAD R0, R0, c[0x0][0x0], R3
    ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT
    @P0 EXIT
    MOV R7, 0x4
    IMAD.WIDE R4, R0, R7, c[0x0][0x160]
    load| LDG.E R2, [R4.64] // 6
    use| FADD R8, R2, R9 // 6
"""
SIMPLE = INDEXED + "STG.E [R4.64], R8\nEXIT"
TILED = INDEXED + "SHF.L.U32 R10, R3, 0x2, RZ\nSTS [R10], R8 // 7\nBAR.SYNC.DEFER_BLOCKING 0x0\nEXIT"
STRIDED = (
    INDEXED.replace("@P0 EXIT", "@P0 EXIT\nMOV R11, c[0x0][0x0]\nagain:")
    + "IMAD R0, R11, c[0x0][0xc], R0\nISETP.LT.AND P1, PT, R0, c[0x0][0x170], PT\n@P1 BRA again\nEXIT"
)
WAITING = (Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20))


def _launch(rows: Sequence[Row], text: str = SIMPLE, **more: Any) -> KernelContext:
    return context_of(listing(text), rows, **more)


def test_the_oracle_of_the_released_code() -> None:
    # T = 1000, R_I = 0.05, a tenth throttled, not selected or at a busy pipe; 4 warps per scheduler to one.
    rows = [
        Row("long_scoreboard", "use", 850, 800, "load", GLOBAL),
        Row("not_selected", "use", 100),
        Row("selected", "use", 50),
    ]
    context = _launch(rows, grid=2, block=512)
    found = _match(block_increase, context)
    assert found.parallel is not None
    assert (found.parallel.warps_now, found.parallel.warps_new) == (4, 1)
    assert (found.parallel.blocks_new, found.parallel.threads_new) == (8, 128)
    estimate = block_increase.OPTIMIZER.estimate(context, found)
    assert estimate.paper == pytest.approx(1.198, abs=1e-3)
    # What a warp waits for its own data stays: only the tenth that waited for others goes.
    assert estimate.expected == pytest.approx(1 / 0.9)
    assert "10.0 % of the samples waited for other warps" in estimate.reason


def test_warps_that_wait_for_nobody_gain_nothing_from_an_sm_of_their_own() -> None:
    # As 8 blocks of 1024 threads, made 64 of 128, that gained 1.01x on a real GPU.
    found = _match(block_increase, _launch(WAITING, grid=8, block=1024))
    assert "64 blocks of 128 threads" in found.advice
    assert "Its warps hardly wait for one another (0.0 % of the samples)" in found.advice
    assert "256 warps are too few" in found.advice
    estimate = block_increase.OPTIMIZER.estimate(_launch(WAITING, grid=8, block=1024), found)
    assert estimate.expected == pytest.approx(1.0)
    assert estimate.paper is not None
    assert estimate.high == pytest.approx((1 + RUN_TO_RUN) * estimate.paper)


COUNTED_LOOP = """
    MOV R10, RZ
    again:
    FFMA R8, R8, R2, R9 // 7
    IADD3 R10, R10, 0x1, RZ // 7
    ISETP.LT.AND P1, PT, R10, c[0x0][0x174], PT // 7
    @P1 BRA again // 7
    STG.E [R4.64], R8
    EXIT
"""


def test_few_warps_that_wait_for_nobody_are_to_share_their_loops() -> None:
    """As 4 blocks of 256 threads, of which smaller blocks would make 8: most SMs stay without work."""
    found = _match(block_increase, _launch(WAITING, INDEXED + COUNTED_LOOP, grid=4, block=256))
    assert found.cure.startswith("Let several threads share what one does now in its loop")
    assert "76 of 80 SMs have no work, and 8 blocks of 128 threads would leave 72" in found.advice
    assert found.leads
    assert found.parallel is None
    assert "8 blocks" in _match(block_increase, _launch(WAITING, grid=4, block=256)).cure  # nothing to share


@pytest.mark.parametrize(("pipe", "shared"), [(6.9, True), (9.5, False)])
def test_without_samples_smaller_blocks_are_told_where_a_unit_of_the_busy_sms_is_full(
    pipe: float, shared: bool
) -> None:
    """As 8 blocks of 1024 threads at 69 % of the FP64 pipe of 8 SMs, made 64 of 128, that gained 1.03x."""
    counted = {"sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_elapsed": pipe}
    context = _launch(WAITING, INDEXED + COUNTED_LOOP, grid=8, block=1024, metrics=counted)
    found = _match(block_increase, replace(context, blame=None, evidence=Evidence.COUNTED))
    assert found.cure.startswith("Let several threads share" if shared else "Launch 64 blocks of 128")


def test_one_block_short_of_the_gpu_promises_next_to_nothing() -> None:
    context = _launch(ROWS, grid=79, block=512)
    found = _match(block_increase, context)
    assert "The fullest SM keeps 512 threads, so little is gained" in found.advice
    assert block_increase.OPTIMIZER.estimate(context, found).expected < 1.1


@pytest.mark.parametrize(
    ("text", "block", "shared", "why"),
    [
        (TILED, 512, 2048, "cannot be split (its shared memory is indexed by threadIdx (kernel.cu:7)"),
        (SIMPLE, 128, 0, "blocks of 128 threads are too small to split"),
    ],
)
def test_fewer_blocks_than_sms_are_said_whatever_the_kernel_allows(
    text: str, block: int, shared: int, why: str
) -> None:
    found = _match(block_increase, _launch(ROWS, text, grid=20, block=block, static_shared=shared))
    assert found.title == "20 blocks for 80 SMs"
    assert found.advice.startswith("60 of 80 SMs have no work.")
    assert why in found.advice
    assert found.leads  # the other SMs come first, whatever it gains: no figure knows how it is divided
    assert found.parallel is None


def test_blocks_that_add_up_what_their_threads_have_may_be_smaller() -> None:
    """As a particle filter's, of 2 blocks on 80 SMs, whose threads add up by the size of the block."""
    tree = (
        TILED.removesuffix("EXIT")
        + """
        MOV R12, c[0x0][0x0]
        ISETP.GE.AND P2, PT, R3, R12, PT
        ISETP.NE.AND P1, PT, R3, RZ, PT
        @P1 EXIT
        LDS R13, [RZ]
        S2R R14, SR_CTAID.X
        IMAD.WIDE R16, R14, R7, c[0x0][0x168]
        STG.E [R16.64], R13
        EXIT
    """
    )
    found = _match(block_increase, _launch(ROWS, tree, grid=2, block=512, static_shared=2048))
    assert "Launch 8 blocks of 128 threads instead of 2 of 512." in found.cure
    assert "What each block keeps for itself needs as many places." in found.cure


def test_a_division_has_a_figure_where_warps_wait_for_one_another() -> None:
    """As a matrix product of 64 blocks on 132 SMs whose stores fill a queue for 30 % of the samples."""
    rows = (
        Row("lg_throttle", "use", 300, 250, "load", GLOBAL),
        Row("long_scoreboard", "use", 300, 300, "load", GLOBAL),
        Row("selected", "use", 400),
    )
    context = _launch(rows, TILED, grid=38, block=512, static_shared=2048)
    found = _match(block_increase, context)
    assert "38 of" not in found.title
    assert found.parallel is not None
    estimate = block_increase.OPTIMIZER.estimate(context, found)
    assert 1.2 < estimate.expected < estimate.high <= 80 / 38 * (1 + RUN_TO_RUN)


def test_without_machine_code_a_split_is_conditional() -> None:
    context = _launch(ROWS, grid=20, block=512)
    bare = replace(context, program=replace(context.program, functions=()))
    assert "nothing tells whether its threads work together" in _match(block_increase, bare).advice


def test_threads_that_loop_by_the_grid_may_become_more() -> None:
    # As 32 blocks of 3 x 3 threads made 64 and 81 of the same: 1.47x and 1.54x on a real GPU.
    context = _launch(WAITING, STRIDED, grid=32, block=32, registers=24)
    found = _match(block_increase, context)
    target = found.parallel
    assert target is not None
    assert (target.blocks_new, target.threads_new) == (80 * 16, 32)
    assert (target.busy_sms_now, target.busy_sms_new) == (32, 80)
    assert target.factor == pytest.approx(target.warps_new / target.warps_now * 80 / 32)
    assert "The 32 blocks reach 32 of 80 SMs." in found.advice
    assert "its threads loop by the size of the grid" in found.advice
    estimate = block_increase.OPTIMIZER.estimate(context, found)
    assert estimate.expected > 2.5  # more SMs, and more warps on each
    assert "places" not in found.advice
    each = STRIDED.removesuffix("EXIT") + "S2R R12, SR_CTAID.X\nSTG.E [R12.64], R8\nEXIT"
    kept = _match(block_increase, _launch(WAITING, each, grid=32, block=32, registers=24))
    assert kept.advice.endswith("What each block keeps for itself needs as many places.")


@pytest.mark.parametrize(("passes", "more"), [(1, False), (4, True)])
def test_a_loop_that_runs_once_beside_one_that_did_not_run(passes: int, more: bool) -> None:
    """As in a product of matrices whose columns the compiler fills with zeros in a loop of its own."""
    step = "IMAD R0, R11, c[0x0][0xc], R0\nISETP.LT.AND P1, PT, R0, c[0x0][0x170], PT\n"
    text = (
        "S2R R0, SR_TID.X\nS2R R3, SR_CTAID.X\nIMAD R0, R3, c[0x0][0x0], R0\nMOV R11, c[0x0][0x0]\n"
        "ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT\n@P0 EXIT\nMOV R7, 0x4\nentry| @P2 BRA full\n"
        f"empty:\nIMAD.WIDE R4, R0, R7, c[0x0][0x160]\nSTG.E [R4.64], RZ\n{step}@P1 BRA empty\nEXIT\n"
        "full:\nhead| IMAD.WIDE R4, R0, R7, c[0x0][0x160]\nload| LDG.E R2, [R4.64] // 6\n"
        f"use| FADD R8, R2, R9 // 6\n{step}@P1 BRA full\nEXIT"
    )
    counts = dict.fromkeys(("head", "load", "use"), (1000 * passes, 32_000 * passes))
    context = _launch(
        WAITING, text, grid=32, block=32, registers=24, counts={"entry": (1000, 32_000), **counts}
    )
    found = block_increase.OPTIMIZER.match(context)
    told = isinstance(found, Match) and found.parallel is not None and "Launch" in found.cure
    assert told is more


def test_blocks_that_wait_for_one_another_stay_as_they_are() -> None:
    spin = "spin:\nLDG.E.STRONG.GPU R12, [R4.64] // 9\nISETP.NE.AND P2, PT, R12, RZ, PT\n@!P2 BRA spin\nEXIT"
    text = STRIDED.removesuffix("EXIT") + spin
    advice = _match(block_increase, _launch(ROWS, text, grid=20, block=512)).advice
    assert "its blocks wait for one another at kernel.cu:9" in advice


def test_a_full_grid_and_a_fullest_sm() -> None:
    assert "every SM has work" in _reason(block_increase, _launch(ROWS, grid=80 * 6 * 10, block=256))
    # 1536 threads per SM: one block of 1024, and 20 of 80 SMs get a second one.
    context = _launch(ROWS, grid=100, block=1024, registers=32)
    found = _match(block_increase, context)
    assert found.title == "the last blocks leave SMs idle"
    assert found.parallel is not None
    assert found.parallel.factor == pytest.approx(1.6 / (240 / 200))
    assert block_increase.OPTIMIZER.estimate(context, found).expected == pytest.approx(1.6 / 1.2)


def test_blocks_that_are_there_at_once_may_be_more_on_some_sms() -> None:
    """As Rodinia's streamcluster: 48 of 80 SMs have two blocks, the others one."""
    found = _match(block_increase, _launch(ROWS, grid=128, block=512))
    assert found.title == "some SMs have more blocks than the others"
    assert "Launch 512 blocks of 128 threads instead of 128 of 512" in found.cure
    assert found.parallel is not None
    assert found.parallel.factor == pytest.approx(1.25 / (7 * 80 / 512))
    counted = {"sm__cycles_active.avg": 990.0, "gpc__cycles_elapsed.max": 1000.0}
    assert "all blocks are there at once" in _reason(
        block_increase, _launch(ROWS, grid=128, block=512, metrics=counted)
    )


def test_a_wave_that_was_never_there_has_no_tail() -> None:
    """As 1220 blocks of which SMs were taken to hold 12 and had 2, told that the last ones leave SMs idle."""
    grid = 80 * 18  # one wave and a half of 12 on each SM
    counted = {"sm__cycles_active.avg": 997.0, "sm__cycles_elapsed.max": 1000.0}
    held = {**counted, "smsp__warps_active.avg.per_cycle_active": 9.0}
    found = _match(block_increase, _launch(ROWS, STRIDED, grid=grid, block=128, metrics=held))
    assert "960 blocks, 12 for each SM" in found.cure
    few = {**counted, "smsp__warps_active.avg.per_cycle_active": 2.0}
    assert "the fullest 0.0 % over the mean" in _reason(
        block_increase, _launch(ROWS, STRIDED, grid=grid, block=128, metrics=few)
    )


def test_warps_that_share_a_unit_gain_by_sms_of_their_own() -> None:
    """As one block of 16 warps at the FP64 pipe of one SM, told that other SMs give them little."""
    rows = (Row("short_scoreboard", "use", 920, 900, "load", GLOBAL), Row("selected", "use", 80))
    pipe = {"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active": 87.0}
    context = _launch(rows, grid=1, block=512, metrics=pipe)
    found = _match(block_increase, context)
    assert "16 blocks of 32 threads instead of 1 of 512" in found.cure
    assert "hardly wait" not in found.advice
    assert block_increase.OPTIMIZER.estimate(context, found).expected > 1.3
    idle = _launch(rows, grid=1, block=512)
    assert "4 blocks of 128 threads" in _match(block_increase, idle).cure


@pytest.mark.parametrize(
    ("blocks", "threads", "split"),
    [
        (160, 128, (320, 64)),  # blocks of 32 would load the fullest SM as much: the larger ones are taken
        (81, 128, (324, 32)),  # of which the fullest SM has 160 threads, and 192 in blocks of 64
        (10, 96, (30, 32)),
    ],
)
def test_blocks_are_split_so_that_the_fullest_sm_has_least(
    blocks: int, threads: int, split: tuple[int, int]
) -> None:
    assert best_split(blocks, threads, 80, 32) == split


def test_what_was_not_idle_cannot_be_gained_at_the_end() -> None:
    counted = {"sm__cycles_active.avg": 950.0, "gpc__cycles_elapsed.max": 1000.0}
    context = _launch(ROWS, grid=100, block=1024, registers=32, metrics=counted)
    estimate = block_increase.OPTIMIZER.estimate(context, _match(block_increase, context))
    assert estimate.expected == pytest.approx(1 / 0.95)
    assert "SMs were idle for 5.0 % of the cycles" in estimate.reason
    full = {**counted, "sm__cycles_active.avg": 990.0}
    assert "every SM has work" in _reason(block_increase, _launch(ROWS, grid=100, block=1024, metrics=full))


def test_a_tile_is_not_halved_for_the_last_blocks() -> None:
    # As a GEMM of 16 x 16 threads on a tile of 32 KB, for which 512 blocks of 128 threads were advised.
    reason = _reason(block_increase, _launch(ROWS, TILED, grid=256, block=256, static_shared=32768))
    assert "the fullest SM has 25.0 % more than the mean, but no other launch is possible" in reason
    assert "tile and block are one size" in reason


def test_half_warps_and_block_slots() -> None:
    context = _launch(WAITING, grid=100_000, block=16, registers=24)
    found = _match(thread_increase, context)
    target = found.parallel
    assert target is not None
    assert (target.warps_now, target.warps_new) == (4, 12)
    assert (target.blocks_new, target.threads_new) == (6250, 256)
    assert target.lanes == 2
    estimate = thread_increase.OPTIMIZER.estimate(context, found)
    # Issue rate of 12 warps over that of 4, twice as many lanes.
    assert estimate.paper == pytest.approx((1 - 0.98**12) / (1 - 0.98**4) * 2, rel=1e-6)


def test_launch_bounds_limit_the_proposal() -> None:
    facts = KernelFacts(24, 0, 0, 64, None, None, None)
    context = context_of(listing(SIMPLE, facts=facts), WAITING, grid=100_000, block=32, registers=24)
    target = _match(thread_increase, context).parallel
    assert target is not None
    assert target.threads_new == 64


@pytest.mark.parametrize(("bound", "raised"), [(32, True), (64, False)])
def test_a_bound_that_repeats_the_block_is_raised_with_it(bound: int, raised: bool) -> None:
    facts = KernelFacts(24, 0, 0, bound, None, None, None)
    code = listing(SIMPLE, facts=facts)
    found = _match(thread_increase, context_of(code, WAITING, grid=100_000, block=32, registers=24))
    assert found.parallel is not None
    assert found.parallel.threads_new == (256 if raised else 64)
    assert ("Raise __launch_bounds__ with it." in found.cure) is raised


def test_blocks_that_reach_more_sms_count_by_them() -> None:
    """Half warps on half of the SMs: full warps do twice the work, twice as many SMs do as much again."""
    found = _match(thread_increase, _launch(WAITING, STRIDED, grid=40, block=16, registers=24)).parallel
    assert found is not None
    assert (found.busy_sms_now, found.busy_sms_new) == (40, 80)
    assert found.factor == pytest.approx(found.warps_new / found.warps_now * 2 * 2)


@pytest.mark.parametrize(("rule", "block"), [(thread_increase, 32), (block_increase, 64)])
def test_a_launch_as_short_as_a_launch_takes_is_no_matter_of_its_blocks(rule: Any, block: int) -> None:
    context = _launch(WAITING, grid=40, block=block, registers=24)
    assert context.profile is not None
    launch = replace(context.profile.launch, duration_ns=1_000.0)
    short = replace(context, profile=replace(context.profile, launch=launch))
    found = rule.OPTIMIZER.match(short)
    words = found.title if isinstance(found, Match) else found.reason
    assert ("as soon as a launch is" if rule is thread_increase else "40 blocks, done in 1.0 us") in words


def test_a_block_that_is_compiled_in_stays() -> None:
    facts = KernelFacts(24, 0, 0, 32, (32, 1, 1), None, None)
    context = context_of(listing(SIMPLE, facts=facts), WAITING, grid=100_000, block=32, registers=24)
    assert "it is compiled for blocks of 32 x 1 x 1 alone" in _reason(thread_increase, context)
    fixed = SIMPLE.replace("IMAD R0, R0, c[0x0][0x0], R3", "LEA R0, R0, R3, 0x5")
    found = _match(thread_increase, _launch(WAITING, fixed, grid=100_000, block=32, registers=24))
    assert "The kernel has the block's size as a constant: change it, too." in found.advice
    other = _reason(thread_increase, _launch(WAITING, fixed, grid=100_000, block=16, registers=24))
    assert "32 elements along x for each block are a constant" in other


def test_a_size_counts_along_its_own_axis() -> None:
    """After a transposition whose blocks of 32 x 8 threads take 32 rows: fewer rows of threads break it."""
    both = (
        SIMPLE.replace("IMAD R0, R0, c[0x0][0x0], R3", "LEA R0, R0, R3, 0x5\nS2R R10, SR_CTAID.Y\n"
        "S2R R11, SR_TID.Y\nLEA R10, R10, R11, 0x5\nIMAD R0, R10, c[0x0][0x178], R0")
    )  # fmt: skip
    context = _launch(WAITING, both, grid=1000, block=256, registers=24)
    assert context.profile is not None
    for block, reason in (((32, 8, 1), "32 elements along y"), ((32, 32, 1), None)):
        launch = replace(context.profile.launch, block=block)
        use = thread_use(context.program, context.kernel)
        free = freedom(context.program, context.kernel, replace(context.profile, launch=launch), use)
        assert (free.block is None) == (reason is None), free.block
        assert reason is None or reason in str(free.block)


def test_blocks_without_a_guard_must_divide_the_elements() -> None:
    bare = SIMPLE.replace("ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT", "MOV R6, R9").replace("@P0 EXIT", "")
    even = _match(thread_increase, _launch(WAITING, bare, grid=1 << 17, block=32, registers=24)).parallel
    assert even is not None
    assert even.threads_new == 256
    odd = _match(thread_increase, _launch(WAITING, bare, grid=3 * 5 * 7 * 2 * 512, block=32, registers=24))
    assert odd.parallel is not None
    assert odd.parallel.blocks_new * odd.parallel.threads_new == 3 * 5 * 7 * 2 * 512 * 32


@pytest.mark.parametrize(("busy", "fewer"), [(20.0, True), (70.0, False)])
def test_threads_that_keep_a_unit_busy_are_not_made_fewer(busy: float, fewer: bool) -> None:
    metrics = {"sm__issue_active.avg.pct_of_peak_sustained_elapsed": busy}
    context = _launch(WAITING, STRIDED, grid=100_000, block=32, registers=24, metrics=metrics)
    new = _match(thread_increase, context).parallel
    assert new is not None
    assert (new.blocks_new * new.threads_new < 3_200_000) is fewer


def test_threads_that_fill_a_unit_keep_their_blocks() -> None:
    """As a fractal in double with the FP64 pipe at 84 %, of which 1.1x (0.9-1.2) was told."""
    metrics = {"sm__issue_active.avg.pct_of_peak_sustained_elapsed": 84.0}
    more: dict[str, Any] = {"grid": 100_000, "block": 32, "registers": 24, "metrics": metrics}
    assert "an SM holds 16 of 48 warps" in _reason(thread_increase, _launch(WAITING, STRIDED, **more))
    assert _match(thread_increase, _launch(WAITING, SIMPLE, **more)).parallel is not None  # more at once
    halves = _launch(WAITING, STRIDED, **{**more, "block": 16})
    assert _match(thread_increase, halves).parallel is not None  # whole warps take fewer passes


def _two_axes(
    context: KernelContext, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> KernelContext:
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=grid, block=block)
    return replace(context, profile=replace(context.profile, launch=launch))


@pytest.mark.parametrize(("data", "passes"), [(42.0, 3.0), (21.0, 1.5), (None, None)])
def test_passes_that_rows_of_a_block_take_are_counted_by_loads_of_units(
    data: float | None, passes: float | None
) -> None:
    """Blocks of 3 x 3 threads without samples: three rows take three passes, unless two share a line."""
    metrics = {"l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 28.0}
    if data is not None:
        metrics["l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"] = data
    context = _two_axes(_launch(WAITING, STRIDED, block=9, metrics=metrics), (9, 9, 1), (3, 3, 1))
    assert context.profile is not None
    held = shape(context, context.profile, 100, 256)
    assert held is not None
    loads_left = reduced_by_rows(
        context, context.profile, BlockShape(block=(32, 8, 1), grid=None, held=held), 32 / 9
    )
    left = {one.resource: one.remaining for one in loads_left}["L1 data"]
    full_warps = 9 / 32
    expected = math.sqrt(1 / 3) * full_warps if passes is None else full_warps / passes
    assert left == pytest.approx(expected)


def test_two_axes_keep_both_with_whole_warps_along_the_first() -> None:
    # As 81 blocks of 3 x 3 threads on a small GPU, of a kernel that loops by the grid: 7.8x was gained.
    second = (
        "S2R R13, SR_TID.Y\nS2R R14, SR_CTAID.Y\nIMAD R14, R14, c[0x0][0x4], R13\n"
        "IMAD R14, R14, c[0x0][0x170], R0\nSTG.E [R14.64], R8\n"
    )
    text = STRIDED.removesuffix("EXIT") + second + "EXIT"
    counted = {"smsp__warps_active.avg.per_cycle_active": 3.26}
    context = _two_axes(
        _launch(WAITING, text, grid=81, block=9, registers=27, metrics=counted), (9, 9, 1), (3, 3, 1)
    )
    assert context.profile is not None
    context = replace(
        context, profile=replace(context.profile, device=replace(context.profile.device, sms=6))
    )
    found = _match(thread_increase, context)
    assert (
        "Launch blocks of 32 x 8 threads, 36 of them (6 for each SM) or more, instead of 9 x 9 of 3 x 3"
        in (found.advice)
    )
    assert "blocks of 9 threads leave 71.9 % of their lanes idle" in found.advice
    assert found.parallel is not None
    assert found.parallel.held_now == 3.26
    estimate = thread_increase.OPTIMIZER.estimate(context, found)
    assert estimate.expected > 32 / 9


@pytest.mark.parametrize(("row", "column", "block"), [("R3", "R0", "32 x 8"), ("R0", "R3", "4 x 64")])
def test_two_axes_are_as_wide_as_memory_runs_along_the_first(row: str, column: str, block: str) -> None:
    """As in Gaussian elimination, whose threadIdx.y runs along a row: 32 x 8 threads take 32 rows at once."""
    text = (
        "S2R R0, SR_TID.X\nS2R R1, SR_CTAID.X\nIMAD R0, R1, c[0x0][0x0], R0\n"
        "S2R R3, SR_TID.Y\nS2R R4, SR_CTAID.Y\nIMAD R3, R4, c[0x0][0x4], R3\n"
        "ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT\n@P0 EXIT\n"
        f"IMAD R6, {row}, c[0x0][0x170], {column}\nIMAD.WIDE R6, R6, 0x4, R8\nload| LDG.E R2, [R6.64]\n"
        "use| FADD R5, R2, R2\nSTG.E [R6.64], R5\nEXIT"
    )
    context = _two_axes(_launch(WAITING, text, grid=16384, block=16), (128, 128, 1), (4, 4, 1))
    found = _match(thread_increase, context)
    assert f"blocks of {block} threads instead of 128 x 128 of 4 x 4" in found.advice
    assert ("Neighbours in memory differ in threadIdx.y." in found.advice) == (block == "4 x 64")
    assert found.parallel is not None
    assert found.parallel.block_new == tuple(int(size) for size in f"{block} x 1".split(" x "))


def test_a_block_that_has_an_sm_for_itself() -> None:
    counted = {
        "sm__cycles_active.avg": 850.0,
        "gpc__cycles_elapsed.max": 1000.0,
        "smsp__warps_active.avg.per_cycle_active": 6.4,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 60.0,
    }
    context = _launch(WAITING, grid=8000, block=1024, registers=16, metrics=counted)
    found = _match(thread_increase, context)
    assert found.parallel is not None
    assert (found.parallel.threads_new, found.parallel.outside_new) == (256, 0.0)
    estimate = thread_increase.OPTIMIZER.estimate(context, found)
    assert "15.0 % of the elapsed time passes without a warp, which goes" in estimate.reason
    assert "the units they share then take" in estimate.reason
    assert 1 / 0.85 < estimate.expected < 0.95 / 0.6


@pytest.mark.parametrize(("active", "told"), [(900.0, True), (990.0, False)])
def test_an_sm_that_runs_empty_between_two_blocks_wants_smaller_ones(active: float, told: bool) -> None:
    """All warps of a block are there while it runs: what it costs are the times between."""
    counted = {"sm__cycles_active.avg": active, "gpc__cycles_elapsed.max": 1000.0}
    code = listing(SIMPLE, "sm_80")
    found = thread_increase.OPTIMIZER.match(
        context_of(code, WAITING, grid=8000, block=1024, registers=64, metrics=counted)
    )
    words = found.advice if isinstance(found, Match) else found.reason
    assert ("has an SM for itself, which runs empty between two of them" in words) is told


@pytest.mark.parametrize(("sectors", "told"), [(32, True), (4, False)])
def test_a_gain_by_fewer_sectors_is_told_as_that(sectors: int, told: bool) -> None:
    """As a transposition by blocks of 32 x 32 threads, of which a narrower block joins rows in a sector."""
    text = (
        "S2R R0, SR_TID.X\nS2R R1, SR_CTAID.X\nIMAD R0, R1, c[0x0][0x0], R0\n"
        "S2R R3, SR_TID.Y\nS2R R4, SR_CTAID.Y\nIMAD R3, R4, c[0x0][0x4], R3\n"
        "ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT\n@P0 EXIT\n"
        "IMAD R6, R0, c[0x0][0x170], R3\nIMAD.WIDE R6, R6, 0x4, R8\nload| LDG.E R2, [R6.64]\n"
        "use| FADD R5, R2, R2\nstore| STG.E [R6.64], R5\nEXIT"
    )
    counted = {
        "sm__cycles_active.avg": 850.0,
        "gpc__cycles_elapsed.max": 1000.0,
        "smsp__warps_active.avg.per_cycle_active": 6.4,
    }
    taken = dict.fromkeys(("load", "store"), 1000.0 * sectors)
    name = "memory_l2_theoretical_sectors_global"
    context = _two_axes(
        _launch(
            WAITING,
            text,
            grid=16384,
            block=1024,
            registers=16,
            metrics=counted,
            counts=dict.fromkeys(("load", "store"), (1000, 32000)),
            pc_metrics={name: taken, f"{name}_ideal": dict.fromkeys(taken, 4000.0)},
        ),
        (128, 128, 1),
        (32, 32, 1),
    )
    found = _match(thread_increase, context)
    assert (
        found.title == "a warp of a block of 32 x 32 threads takes 8.0 times the sectors that it needs"
    ) is told
    assert found.replaced_by == ("GPA106" if told else "")


@pytest.mark.parametrize(("moved", "left"), [(8_000.0, 1.0), (16_000.0, 0.5), (64_000.0, 1 / 8)])
def test_what_l2_joins_is_no_load_that_another_block_takes_off_dram(moved: float, left: float) -> None:
    """As an enlarged image whose sectors were asked for three times: 3.1x was told with DRAM at 38 %."""
    name = "memory_l2_theoretical_sectors_global"
    context = _launch(
        WAITING,
        counts={"load": (2000, 64000)},
        pc_metrics={name: {"load": 64_000.0}, f"{name}_ideal": {"load": 8_000.0}},
        metrics={"dram__sectors_read.sum": moved},
    )
    assert context.profile is not None
    held = shape(context, context.profile, 100, 256)
    assert held is not None
    longer = BlockShape(block=(16, 16, 1), grid=None, held=held)
    loads_left = {
        one.resource: one.remaining for one in reduced_by_rows(context, context.profile, longer, 1.0)
    }
    assert loads_left.get("DRAM", 1.0) == pytest.approx(left)
    assert loads_left["L2"] == pytest.approx(1 / 8)


@pytest.mark.parametrize(("rows", "early"), [(1, True), (50, False)])
def test_rows_of_a_block_that_have_no_work_are_told(rows: int, early: bool) -> None:
    """As a product of three rows by blocks of 32 x 32, of which 29 warps end at once."""
    text = SIMPLE.replace(
        "@P0 EXIT",
        "S2R R10, SR_CTAID.Y\nS2R R11, SR_TID.Y\nIMAD R10, R10, c[0x0][0x4], R11\n"
        "ISETP.GE.OR P0, PT, R10, c[0x0][0x178], P0\n@P0 EXIT",
    )
    metrics = {"smsp__warps_active.avg.per_cycle_active": 1.5}
    context = _launch(WAITING, text, grid=1570 * rows, block=1024, registers=32, metrics=metrics)
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=(1570, rows, 1), block=(32, 32, 1))
    found = _match(thread_increase, replace(context, profile=replace(context.profile, launch=launch)))
    assert (found.title == "most warps of a block end early: 6 of 32 are there on average") is early
    assert ("as many as there are elements (1570 if 8 rows are enough)" in found.cure) is early
    assert f"Launch {'blocks of' if early else '1570 x'}" in found.cure


@pytest.mark.parametrize(
    ("block", "larger", "grid"),
    [((16, 2, 1), (32, 4, 1), (1024, 1024, 1)), ((32, 1, 1), (256, 1, 1), (256, 2048, 1))],
)
def test_a_tile_grows_along_all_of_its_axes(
    block: tuple[int, int, int], larger: tuple[int, int, int], grid: tuple[int, int, int]
) -> None:
    context = _launch(WAITING, TILED, static_shared=256, block=32, registers=16)
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=(2048, 2048, 1), block=block)
    profile = replace(context.profile, launch=launch)
    old = shape(context, profile, launch.blocks, 32)
    assert old is not None
    found = larger_tile(context, profile, old)
    assert found is not None
    assert (found.block, found.grid) == (larger, grid)


@pytest.mark.parametrize(("bound", "grows"), [(32, True), (64, False)])
def test_a_tile_grows_with_a_bound_of_its_own_size_alone(bound: int, grows: bool) -> None:
    """A bound that repeats the block of today is raised with it; another one has its reason."""
    facts = KernelFacts(16, 256, 0, bound, None, None, 1)
    context = context_of(listing(TILED, facts=facts), WAITING, static_shared=256, block=32, registers=16)
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=(2048, 2048, 1), block=(32, 1, 1))
    profile = replace(context.profile, launch=launch)
    old = shape(context, profile, launch.blocks, 32)
    assert old is not None
    assert (larger_tile(replace(context, profile=profile), profile, old) is not None) is grows


def test_blocks_as_many_as_are_handed_out() -> None:
    # As 32,768 blocks of 32 threads on an RTX 5090, whose eighth gained 2.57x.
    handed_out = 16384 / every_gpu().blocks_per_cycle

    def launch(active: float, block: int = 96) -> KernelContext:
        metrics = {"smsp__warps_active.avg.per_cycle_active": 9.0, "sm__cycles_active.avg": active}
        return _launch(WAITING, grid=16384, block=block, registers=16, metrics=metrics)

    found = _match(thread_increase, launch(1.1 * handed_out))
    assert found.title == "16384 blocks are handed out one by one, which takes 91 % of the time"
    assert found.title in found.advice
    assert "all of them" in _reason(thread_increase, launch(1.3 * handed_out))
    assert "handed out" not in _reason(thread_increase, launch(handed_out, block=256))


def test_blocks_that_end_before_the_next_ones_are_there() -> None:
    # As tiles of 8 x 8 threads made 32 x 32: 1.51x on a real GPU.
    counted = {"smsp__warps_active.avg.per_cycle_active": 4.0}
    more: dict[str, Any] = {"grid": 16384, "block": 96, "registers": 16, "metrics": counted}
    free = _match(thread_increase, _launch(WAITING, **more))
    assert "blocks of 96 threads end before the next ones are there: 33 % of an SM's warps" in free.advice
    assert free.parallel is not None
    assert free.parallel.threads_new == 256
    held = {**more, "metrics": {"smsp__warps_active.avg.per_cycle_active": 9.0}}
    assert "all of them" in _reason(thread_increase, _launch(WAITING, **held))
    two_waves = {**more, "grid": 2 * 80 * 16}  # with fewer the next ones are not there to begin with
    assert "end before the next ones" in _match(thread_increase, _launch(WAITING, **two_waves)).advice
    fewer = {**more, "grid": 2 * 80 * 16 - 1}
    assert "all of them" in _reason(thread_increase, _launch(WAITING, **fewer))
    tile = _launch(WAITING, TILED, static_shared=256, **{**more, "block": 64})
    tile = _two_axes(tile, (128, 128, 1), (8, 8, 1))
    found = _match(thread_increase, tile)
    assert "Launch 64 x 64 blocks of 16 x 16 threads instead of 128 x 128 of 8 x 8" in found.advice
    assert "Make the tile as large in the source, not the launch alone" in found.advice
    assert found.parallel is not None
    assert found.parallel.threads_new == 64  # no number to put in place of the block's alone


def test_the_blocks_of_a_small_grid_spread_the_same_warps_whatever_their_size() -> None:
    # 155 blocks of 4 warps on 80 SMs: most hold two of them, none holds more with blocks of 7 warps.
    reason = _reason(thread_increase, _launch(WAITING, grid=155, block=128, registers=24))
    assert "because the grid is small" in reason


def test_a_small_grid_is_not_the_blocks_fault() -> None:
    assert "because the grid is small" in _reason(
        thread_increase, _launch(WAITING, grid=160, block=32, registers=24)
    )


def test_full_warps_that_would_leave_sms_without_one_are_no_target() -> None:
    # 80 SMs with one block of half a warp each.
    reason = _reason(thread_increase, _launch(WAITING, grid=80, block=16, registers=24))
    assert "no other size holds more and reaches as many SMs" in reason


@pytest.mark.parametrize("rule", [block_increase, thread_increase])
@pytest.mark.parametrize("text", [SIMPLE, STRIDED, TILED])
@pytest.mark.parametrize("grid", [1, 79, 80, 81, 159, 161, 1000])
@pytest.mark.parametrize("block", [1, 16, 31, 33, 65, 250, 672, 1000, 1024])
def test_every_target_launch_has_warps(rule: Any, text: str, grid: int, block: int) -> None:
    context = _launch(ROWS, text, grid=grid, block=block, registers=64, static_shared=1024)
    found = rule.OPTIMIZER.match(context)
    assert isinstance(found, Rejection) or found.parallel is not None or found.leads
    if isinstance(found, Match) and found.parallel is not None:
        assert min(found.parallel.warps_now, found.parallel.warps_new) > 0
        assert text is not TILED or found.parallel.threads_new == block
        estimate = rule.OPTIMIZER.estimate(context, found)
        assert estimate.paper >= 1
        assert 0 < estimate.low <= estimate.expected <= estimate.high


def test_full_occupancy_has_nothing_to_gain() -> None:
    assert "all of them" in _reason(thread_increase, _launch(ROWS, block=256, registers=32))


@pytest.mark.parametrize(
    ("registers", "shared", "needs"),
    [
        (
            71,
            32768,
            "4 blocks need at most 64 registers per thread and 24576 bytes of shared memory per block",
        ),
        (48, 32768, "4 blocks need at most 24576 bytes of shared memory per block"),
        (80, 0, "4 blocks need at most 64 registers per thread"),
    ],
)
def test_the_step_to_one_more_block(registers: int, shared: int, needs: str) -> None:
    more: dict[str, Any] = {"grid": 4000, "block": 256, "registers": registers, "static_shared": shared}
    reason = _reason(thread_increase, _launch(WAITING, **more))
    assert reason.endswith(f"; {needs}")
    assert ("no smaller block gives notably more" in reason) == (registers > 48)  # each size was tried
    # It does: with that there is another block, and with more there is none.
    context = _launch(WAITING, **more)
    assert context.profile is not None
    step = next_block(context, context.profile)
    assert step is not None
    enough = (step.registers or registers, shared if step.shared_bytes is None else step.shared_bytes)
    assert _blocks(*enough) == 4
    assert _blocks(registers, shared) == 3
    if step.registers is not None:
        assert _blocks(step.registers + 1, enough[1]) == 3
    if step.shared_bytes is not None:
        assert _blocks(enough[0], step.shared_bytes + 1) == 3


def _blocks(registers: int, shared: int) -> int:
    context = _launch(WAITING, grid=4000, block=256, registers=registers, static_shared=shared)
    assert context.profile is not None
    found = shape(context, context.profile, 4000, 256)
    assert found is not None
    return found.fits


@pytest.mark.parametrize("path", ["/home/me/src/kernel.cu", r"C:\Users\me\src\kernel.cu", "kernel.cu"])
def test_a_place_is_named_without_its_folders(path: str) -> None:
    assert Sentence(location_text(SourceLocation(path, 7))) == "kernel.cu:7"


_BY_BLOCK = (
    "S2R R0, SR_CTAID.X // 8\nMOV R3, 0x4\nIMAD.WIDE R2, R0, R3, c[0x0][0x160]\n"
    "load| LDG.E R8, [R2.64] // 11\nuse| FADD R8, R8, 1 // 12\nSTG.E [R2.64], R8 // 13\nEXIT"
)


def test_blocks_of_one_thread_become_threads_of_full_blocks() -> None:
    # As 3984 x 4096 blocks of one thread whose element is the block's number.
    held = {"smsp__warps_active.avg.per_cycle_active": 4.0}
    context = _launch(WAITING, _BY_BLOCK, grid=1_000_000, block=1, registers=32, metrics=held)
    found = _match(thread_increase, context)
    assert "3907 blocks of 256 threads instead of 1000000 of 1" in found.advice
    assert "blocks of 1 thread leave 96.9 % of their lanes idle" in found.advice
    assert "take it from blockIdx.x * blockDim.x + threadIdx.x" in found.advice
    assert thread_increase.OPTIMIZER.estimate(context, found).expected > 2
    # Two threads of a block are told apart by threadIdx, or both do the same.
    two = _launch(WAITING, _BY_BLOCK, grid=1_000_000, block=2, registers=32, metrics=held)
    assert not isinstance(thread_increase.OPTIMIZER.match(two), Match)


def test_one_thread_tells_nothing_of_others() -> None:
    # As a report that states no grid and no block, or a kernel that sets a few pointers.
    context = _launch(WAITING, _BY_BLOCK, grid=1, block=1, registers=32)
    for rule in (thread_increase, block_increase):
        found = rule.OPTIMIZER.match(context)
        assert isinstance(found, Rejection)
        assert found.reason.startswith("one thread was launched")


def test_registers_hold_more_warps_of_smaller_blocks() -> None:
    # As 134 registers and 16 x 16 threads: one block of 8 warps; blocks of 128 threads would be 12.
    held = {"smsp__warps_active.avg.per_cycle_active": 1.9}
    more: dict[str, Any] = {"grid": 8160, "block": 256, "registers": 134, "metrics": held}
    context = _launch(WAITING, **more)
    found = _match(thread_increase, context)
    assert "with 134 registers per thread an SM holds 1 block of 256, 8 of 48 warps" in found.advice
    assert (
        "__launch_bounds__(256, 2): 2 blocks fit with at most 128 registers per thread, 6 fewer"
        in found.advice
    )
    assert found.parallel is not None
    assert (found.parallel.threads_new, found.parallel.blocks_new) == (128, 16320)
    assert context.profile is not None
    new = shape(context, context.profile, 16320, 128)
    assert new is not None
    assert (new.resident, new.warps) == (3, 3.0)
    assert found.parallel.warps_new == pytest.approx(3.0 * (1 + 1.9 / 2) / 2)
    assert thread_increase.OPTIMIZER.estimate(context, found).expected > 1.2
    # A tile keeps its block, and the compiler may still be asked for fewer registers.
    tile = _match(thread_increase, _launch(WAITING, TILED, static_shared=1024, **more))
    assert tile.advice.startswith("Declare __launch_bounds__(256, 2)")
    # Nor is it registers that keep an SM empty which held a quarter of the warps that they allow.
    early = more | {"metrics": {"smsp__warps_active.avg.per_cycle_active": 0.5}}
    kept = thread_increase.OPTIMIZER.match(_launch(WAITING, TILED, static_shared=1024, **early))
    assert isinstance(kept, Rejection)
    assert "blocks of 128 would be 12, but another block is not possible: its shared memory" in tile.advice
    assert tile.parallel is not None
    assert (tile.parallel.threads_new, tile.parallel.warps_new) == (256, pytest.approx(4 * (1 + 1.9 / 2) / 2))
    estimate = thread_increase.OPTIMIZER.estimate(context, tile)
    assert estimate.low < 1.0  # what spills may cost all of it
    assert estimate.expected > 1.2
    # Far from a step there is nothing to declare; all blocks there at once need no smaller ones.
    far = _reason(thread_increase, _launch(WAITING, TILED, static_shared=1024, **{**more, "registers": 160}))
    assert "blocks of 128 would be 12, but another block is not possible: its shared memory is indexed" in far
    _reason(thread_increase, _launch(WAITING, **{**more, "grid": 80}))
    debug = replace(context, program=replace(context.program, debug_build=True))
    assert "of which a release build takes another number" in _reason(thread_increase, debug)


def test_a_last_wave_of_blocks() -> None:
    # Eight blocks of 1536 threads per SM fit six times: 480 at once on 80 SMs, and 64 after them.
    held = {"smsp__warps_active.avg.per_cycle_active": 7.0}
    reason = _reason(block_increase, _launch(WAITING, grid=544, block=256, registers=32, metrics=held))
    assert "(1.13 waves): 480 run at once, and the last 64 leave warps missing at the end" in reason
    assert "each thread has its own elements" in reason
    context = _launch(WAITING, STRIDED, grid=544, block=256, registers=32, metrics=held)
    found = _match(block_increase, context)
    assert found.cure.startswith("Launch 480 blocks, 6 for each SM, whose threads loop over the rest")
    assert found.parallel is not None
    assert found.parallel.factor == pytest.approx(
        12.0 / 7.0
    )  # less than 2 / 1.13: no more warps were missing
    even = _launch(WAITING, STRIDED, grid=960, block=256, registers=32, metrics=held)
    assert "every SM has work, the fullest 0.0 % over the mean" in _reason(block_increase, even)


def test_smaller_blocks_have_their_own_warps() -> None:
    # As 145 registers: one block of 256 threads on an SM, but three of 128.
    context = _launch(ROWS, grid=100, block=256, registers=145)
    found = _match(block_increase, context)
    assert found.parallel is not None
    assert (found.parallel.warps_now, found.parallel.warps_new) == (2, 3)


def test_a_launch_that_is_over_as_soon_as_it_is_there() -> None:
    short = _launch(ROWS, STRIDED, grid=2, block=256)
    assert short.profile is not None
    launch = replace(short.profile.launch, duration_ns=2200.0)
    short = replace(short, profile=replace(short.profile, launch=launch), blame=None)
    found = _match(block_increase, short)
    assert found.cure.startswith("Give each launch more work (a larger batch), or join launches")
    assert "2 blocks of 256 threads take 2.2 us, about what a launch takes" in found.advice
    assert "leave 78 of 80 SMs without work" in found.advice
    # One element for each of a few threads is no work to divide.
    few = _launch(ROWS, grid=2, block=64)
    assert few.profile is not None
    few = replace(few, profile=replace(few.profile, launch=replace(few.profile.launch, duration_ns=1500.0)))
    assert "its 128 threads without a loop are all the work there is" in _reason(block_increase, few)
    longer = replace(few, profile=replace(few.profile, launch=replace(few.profile.launch, duration_ns=6e4)))
    assert "are all the work there is" in _reason(block_increase, longer)  # as 8 threads that print


def _two_buffers(between: str) -> str:
    """A loop that stores what it loads to one buffer, multiplies with the other, and waits for all warps."""
    products = "\n".join(f"FFMA R{30 + at % 8}, R20, R24, R{30 + at % 8} // 8" for at in range(40))
    body = (
        "load| LDG.E.128 R16, [R6.64] // 5\nuse| STS.128 [R11], R16 // 6\n"
        f"{between}LDS.128 R20, [R13] // 7\n{products}\nBAR.SYNC 0x0 // 9"
    )
    return _loop(body)


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("", True),
        ("BAR.SYNC 0x0 // 6\n", False),  # one buffer: the products read what was stored just now
        ("LDS R19, [R11] // 6\n", False),  # a thread reads back its own
    ],
)
def test_a_store_to_the_other_buffer_can_stand_behind_the_products(between: str, told: bool) -> None:
    """As a double-buffered product that stores what it has loaded at once: 1.27x measured."""
    context = context_of(listing(_two_buffers(between)), ROWS, registers=20)
    found = _match(code_reordering, context)
    assert (
        "keep the values of kernel.cu:5 in registers and store them behind the arithmetic that ends at "
        "kernel.cu:8, before the barrier at kernel.cu:9" in found.cure
    ) is told
    assert (found.replaced_by == "GPA204") is told
    if told:
        assert code_reordering.OPTIMIZER.estimate(context, found).expected > 1.2


def test_blocks_whose_threads_all_leave_are_not_launched() -> None:
    """As a grid of as many blocks as there are elements: 1.77x measured with as many as have work."""
    text = (
        "first| NOP"
        + INDEXED.replace("@P0 EXIT", "leave| @P0 EXIT // 5\nwork| NOP")
        + "STG.E [R4.64], R8\nEXIT"
    )

    def context(code: str, warps: int, rows: Sequence[Row] = ROWS) -> KernelContext:
        counts = dict.fromkeys(("first", "leave"), (32_000, 1_024_000))
        counts |= dict.fromkeys(("load", "use", "work"), (warps, 32 * warps))
        return _launch(rows, code, grid=4000, block=256, counts=counts)

    assert "Launch 41 blocks" in _match(block_increase, context(text, 321)).cure  # the last one is not full
    found = _match(block_increase, context(text, 320))
    assert found.cure == "Launch 40 blocks instead of 4,000: as many as have work."
    assert found.title == "99.0 % of the warps leave at kernel.cu:5, before they do anything"
    assert found.leads
    assert found.parallel is None
    assert not found.regions  # all samples are of those that stay: of what blocks cost nothing is known
    before = [
        Row("wait", "leave", 500, 500, "first"),
        Row("long_scoreboard", "use", 500, 500, "load", GLOBAL),
    ]
    seen = context(text, 320, before)
    found = _match(block_increase, seen)
    assert block_increase.OPTIMIZER.estimate(seen, found).expected == pytest.approx(1 / (1 - 0.99 * 0.5))
    by_data = text.replace(
        "ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT", "LDG.E R2, [R4.64]\nISETP.NE.AND P0, PT, R2, RZ, PT"
    )
    few = context(text, 320)
    assert few.profile is not None
    launch = replace(few.profile.launch, grid=(400, 10, 1))  # each row of blocks may have warps that stay
    rows = replace(few, profile=replace(few.profile, launch=launch))
    for others in (context(text, 20_000), context(by_data, 320), rows):
        assert "as many as have work" not in str(block_increase.OPTIMIZER.match(others))
