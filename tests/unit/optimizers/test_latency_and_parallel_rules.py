# SPDX-License-Identifier: Apache-2.0
"""Legality and numbers of GPA201 to GPA302 beyond their fixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.program import KernelFacts
from gpadvisor.optimizers import (
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


def test_few_passes_by_counts_or_by_constants() -> None:
    counts = {"before": (100, 3200), "load": (150, 4800), "use": (150, 4800), "back": (150, 4800)}
    expected, reason = _expected(_loop(STREAM), counts=counts)
    assert expected == pytest.approx(0.8 * 0.125)
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


def test_a_barrier_in_each_pass() -> None:
    expected, reason = _expected(_loop(f"{STREAM}\nBAR.SYNC 0x0"))
    assert expected == pytest.approx(0.32)
    assert "1 barrier in each pass keeps" in reason


def test_no_room_for_registers_may_cost() -> None:
    context = context_of(listing(_loop(STREAM)), ROWS, registers=254)
    found = _match(loop_unrolling, context)
    assert "of 255 registers" in found.adjustments[0].reason
    assert found.adjustments[0].low < 0
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
    assert "load it before the barrier at kernel.cu:5" in found.advice
    assert found.actionable


def test_what_the_compiler_schedules_is_a_note() -> None:
    shared = [Row("short_scoreboard", "use", 100, 90, "load", DependencyClass.SHARED_MEMORY, distance=1)]
    text = "FADD R1, R1, R2\nload| LDS R2, [R6]\nuse| FADD R8, R2, R9\nEXIT"
    found = _match(code_reordering, context_of(listing(text), [*shared, Row("selected", "use", 100)]))
    assert not found.actionable
    guarded = "@P0 EXIT\nload| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nEXIT"
    assert not _match(code_reordering, context_of(listing(guarded), ROWS)).actionable


def test_the_number_is_of_the_pairs_that_the_words_are_about() -> None:
    text = (
        "STG.E [R10.64], R12 // 4\nload| LDG.E R2, [R6.64] // 5\nuse| FADD R8, R2, R9 // 5\n"
        "tile| LDS R4, [R7] // 6\nneed| FADD R5, R4, R8 // 6\nEXIT"
    )
    rows = [*ROWS, Row("short_scoreboard", "need", 300, 300, "tile", DependencyClass.SHARED_MEMORY)]
    found = _match(code_reordering, context_of(listing(text), rows))
    assert "__restrict__" in found.advice
    assert [region.rows.tolist() for region in found.regions] == [[0]]


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
    assert "mark them const __restrict__" in found.advice
    for silent in (_loop(STREAM), _loop(held.replace("LDG.E", "LDG.E.CONSTANT")), held + "\nEXIT"):
        assert "no global load in a loop" in _reason(code_reordering, context_of(listing(silent)))


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


def test_large_functions_and_pointers_are_not_inlined() -> None:
    body = "\n".join("FADD R1, R1, R2" for _ in range(600))
    large = CALLED.replace("load|", f"{body}\nload|")
    assert "lookup has 9648 bytes, more than the 8192" in _reason(
        function_inlining, context_of(listing(large), ROWS)
    )
    pointer = "CALL.REL.NOINC nowhere\nload| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nEXIT"
    assert "1 calls through pointers" in _reason(function_inlining, context_of(listing(pointer), ROWS))


def test_no_inlining_where_code_is_too_large_already() -> None:
    rows = [*ROWS, Row("no_instructions", "use", 400, 400)]
    assert "wait for instruction fetch" in _reason(function_inlining, context_of(listing(CALLED), rows))


SIMPLE = "load| LDG.E R2, [R6.64]\nuse| FADD R8, R2, R9\nEXIT"


def _launch(rows: Sequence[Row], **more: int) -> KernelContext:
    return context_of(listing(SIMPLE), rows, **more)  # type: ignore[arg-type]  # by name


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
    assert block_increase.OPTIMIZER.estimate(context, found).paper == pytest.approx(1.198, abs=1e-3)


def test_one_block_short_of_the_gpu_promises_next_to_nothing() -> None:
    context = _launch(ROWS, grid=79, block=512)
    found = _match(block_increase, context)
    assert block_increase.OPTIMIZER.estimate(context, found).expected < 1.1


def test_a_full_grid_and_a_last_wave() -> None:
    assert "every SM has work" in _reason(block_increase, _launch(ROWS, grid=80 * 6 * 10, block=256))
    # 1536 threads per SM: one block of 1024 and a second wave with 20 of 80 blocks.
    context = _launch(ROWS, grid=100, block=1024, registers=32)
    found = _match(block_increase, context)
    assert found.title == "last wave of blocks leaves SMs idle"
    assert found.parallel is not None
    assert found.parallel.factor == pytest.approx(1.6 / (1 / (200 / 240)))


def test_half_warps_and_block_slots() -> None:
    rows = [Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20)]
    context = _launch(rows, grid=100_000, block=16, registers=24)
    found = _match(thread_increase, context)
    target = found.parallel
    assert target is not None
    assert (target.warps_now, target.warps_new) == (4, 12)
    assert target.threads_new % 32 == 0
    assert target.blocks_new * target.threads_new >= 1_600_000
    estimate = thread_increase.OPTIMIZER.estimate(context, found)
    # Issue rate of 12 warps over that of 4, twice as many lanes.
    assert estimate.paper == pytest.approx((1 - 0.98**12) / (1 - 0.98**4) * 2, rel=1e-6)


def test_launch_bounds_limit_the_proposal() -> None:
    rows = [Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20)]
    facts = KernelFacts(24, 0, 0, 64, None, None, None)
    context = context_of(listing(SIMPLE, facts=facts), rows, grid=100_000, block=32, registers=24)
    target = _match(thread_increase, context).parallel
    assert target is not None
    assert target.threads_new == 64


def test_the_blocks_of_a_small_grid_spread_the_same_warps_whatever_their_size() -> None:
    rows = [Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20)]
    # 155 blocks of 4 warps on 80 SMs: most hold two of them, none holds more with blocks of 7 warps.
    reason = _reason(thread_increase, _launch(rows, grid=155, block=128, registers=24))
    assert "because the grid is small" in reason


def test_a_small_grid_is_not_the_blocks_fault() -> None:
    rows = [Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20)]
    assert "because the grid is small" in _reason(
        thread_increase, _launch(rows, grid=160, block=32, registers=24)
    )


def test_full_warps_that_would_leave_sms_without_one_are_no_target() -> None:
    rows = [Row("long_scoreboard", "use", 980, 900, "load", GLOBAL), Row("selected", "use", 20)]
    # 80 SMs with one block of half a warp each.
    reason = _reason(thread_increase, _launch(rows, grid=80, block=16, registers=24))
    assert reason == "full warps would be 40 blocks of 32 threads, which do not reach all 80 SMs"


@pytest.mark.parametrize("rule", [block_increase, thread_increase])
@pytest.mark.parametrize("grid", [1, 79, 80, 81, 159, 161, 1000])
@pytest.mark.parametrize("block", [1, 16, 31, 33, 65, 250, 672, 1000, 1024])
def test_every_target_launch_has_warps(rule: Any, grid: int, block: int) -> None:
    context = _launch(ROWS, grid=grid, block=block, registers=64)
    found = rule.OPTIMIZER.match(context)
    if isinstance(found, Match):
        assert found.parallel is not None
        assert min(found.parallel.warps_now, found.parallel.warps_new) > 0
        assert rule.OPTIMIZER.estimate(context, found).paper >= 0


def test_full_occupancy_has_nothing_to_gain() -> None:
    assert "all of them" in _reason(thread_increase, _launch(ROWS, block=256, registers=32))
