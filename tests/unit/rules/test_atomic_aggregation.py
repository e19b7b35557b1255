# SPDX-License-Identifier: Apache-2.0
"""GPA110: how many operations meet, and what is left when they are added up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.evaluate import evaluate
from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.contention import L1_REQUESTS, ON_THE_WAY, contention
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.addresses import is_same_for_all
from gpadvisor.evidence.atomics import atomics_of
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.rules.atomic_aggregation import OPTIMIZER

CYCLES = "lts__cycles_elapsed.max"
L2 = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"
ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
SECTORS = "memory_l2_theoretical_sectors_global"


def _context(
    place: str,
    sectors: float,
    threads: int = 32,
    metrics: dict[str, float] | None = None,
    block: int = 256,
    grid: int = 125,
    number: str = "SR_TID.X",
    rows: Sequence[Row] = (Row("drain", "add", 500, 500), Row("selected", "to", 500)),
) -> KernelContext:
    code = listing(
        f"S2R R9, {number} // 18\nto| MOV R4, {place} // 19\n"
        "add| RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R2 // 20\nEXIT"
    )
    return context_of(
        code,
        rows,
        counts={"to": (1000, 32000), "add": (1000, 1000 * threads)},
        pc_metrics={SECTORS: {"add": 1000 * sectors}},
        metrics=metrics or {},
        block=block,
        grid=grid,
    )


def _match(context: KernelContext) -> Match:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    return found


def test_threads_that_meet_are_added_up_in_the_warp() -> None:
    context = _context("R9", 1)
    found = _match(context)
    assert "send one" in found.advice
    assert OPTIMIZER.estimate(context, found).expected == pytest.approx(1 / (1 - 0.5 * 255 / 256), rel=0.01)


def test_the_way_to_l2_may_be_as_loaded_as_before_or_as_much_less_as_operations_go() -> None:
    """The requests to L1 are the operations'; what else is on the way carries other data, too."""
    loads = {load.resource: load for load in _match(_context("R9", 1)).reduced_loads}
    assert loads.keys() >= ON_THE_WAY
    left = pytest.approx(1 / 256)  # one operation of a block of 256 threads
    assert {name: loads[name].remaining for name in ON_THE_WAY} == {
        name: left if name == L1_REQUESTS else 1 for name in ON_THE_WAY
    }
    assert {loads[name].remaining_best for name in ON_THE_WAY} == {1 / 256}


def test_threads_that_are_spread_are_kept_apart_in_shared_memory() -> None:
    found = _match(_context("R9", 32))
    assert found.title == "atomic operations set the pace"
    assert "a copy for each block in shared memory" in found.advice


def test_one_thread_for_each_warp_leaves_the_block() -> None:
    found = _match(_context("R9", 1, threads=1))
    assert "combine in the block" in found.advice
    assert found.adjustments[0].expected == pytest.approx(7 / 8)


def test_one_address_of_the_grid_sets_the_time() -> None:
    # 32,000 operations in 100,000 cycles and nothing else to do: one in 256 is left, at least one in 32.
    context = _context("c[0x0][0x170]", 1, metrics={CYCLES: 1e5, L2: 3.0, ISSUE: 1.0})
    estimate = OPTIMIZER.estimate(context, _match(context))
    assert estimate.expected == pytest.approx(((1 / 256 + 0.03) * 0.01) ** -0.5, rel=0.05)  # issue is at 1 %
    assert estimate.low == pytest.approx(1 / (1 / 32 + 0.03), rel=0.05)
    assert estimate.high == pytest.approx(100, rel=0.05)
    assert "the whole grid shares" in estimate.reason
    assert "own waits" not in estimate.reason  # all wait for the one word


def test_one_address_of_each_block_sets_the_time_where_nothing_else_does() -> None:
    """As sums of one image for each block: promised 2.9x by the waits for them alone, measured 45.7x."""
    rows = [Row("lg_throttle", "add", 730, 730), Row("long_scoreboard", "to", 260), Row("selected", "to", 10)]
    metrics = {CYCLES: 1e5, L2: 6.0, ISSUE: 2.0, "sm__cycles_active.avg": 8e4, "sm__cycles_elapsed.max": 1e5}
    context = _context("R9", 1, metrics=metrics, number="SR_CTAID.X", rows=rows)
    found = _match(context)
    estimate = OPTIMIZER.estimate(context, found)
    assert 10 < estimate.expected < estimate.high <= 50 * (1 + RUN_TO_RUN)
    assert found.measured_bound is not None
    assert found.measured_bound.low == pytest.approx(
        1 / (1 - 0.73 * 255 / 256)
    )  # Eq. 2: the loads still wait
    assert (
        "measured: 0.0 M operations on words that all threads of a warp share take 0.1 M " in estimate.reason
    )
    assert "at least their own waits go, else what waits behind them, too" in estimate.reason
    half = [Row("lg_throttle", "add", 500, 500), Row("long_scoreboard", "to", 500)]
    assert _match(_context("R9", 1, metrics=metrics, number="SR_CTAID.X", rows=half)).measured_bound
    few = [Row("lg_throttle", "add", 300, 300), Row("long_scoreboard", "to", 700)]
    assert _match(_context("R9", 1, metrics=metrics, number="SR_CTAID.X", rows=few)).measured_bound is None


def test_which_of_several_is_told_the_samples_decide_before_the_counts() -> None:
    code = listing(
        "S2R R9, SR_TID.X // 18\nto| MOV R4, R9 // 19\nrare| RED.E.ADD.STRONG.GPU [R4.64], R2 // 20\n"
        "often| RED.E.ADD.STRONG.GPU [R6.64], R2 // 21\nEXIT"
    )
    counts = {"to": (1000, 32_000), "rare": (10, 320), "often": (1000, 32_000)}
    rows = [Row("drain", "rare", 500, 500), Row("selected", "to", 500)]
    sectors = {SECTORS: {"rare": 10.0, "often": 1000.0}}
    assert "kernel.cu:20" in _match(context_of(code, rows, counts=counts, pc_metrics=sectors)).advice


@pytest.mark.parametrize(
    ("place", "metrics"),
    [
        ("R9", {CYCLES: 1e5, L2: 3.0}),  # each thread may have an address of its own
        ("c[0x0][0x170]", {CYCLES: 1e7, L2: 3.0}),  # few operations in all that time
        ("c[0x0][0x170]", {CYCLES: 1e5, L2: 60.0}),  # something else takes it
    ],
)
def test_otherwise_only_the_waits_count(place: str, metrics: dict[str, float]) -> None:
    assert _match(_context(place, 1, metrics=metrics)).measured_bound is None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("MOV R4, c[0x0][0x170]\nRED.E.ADD [R4.64+0x8], R2", True),
        ("MOV R4, c[0x0][0x170]\n@P0 BRA again\nagain:\nRED.E.ADD [R4.64], R2", True),
        ("ULDC.64 UR4, c[0x0][0x170]\nRED.E.ADD [UR4], R2", True),
        ("LDC.64 R4, c[0x0][0x210]\nRED.E.ADD desc[UR6][R4.64], R2", True),
        ("LDC.64 R4, c[0x3][R9]\nRED.E.ADD [R4.64], R2", False),
        ("S2R R5, SR_TID.X\nLEA R4, R5, c[0x0][0x170], 0x2\nRED.E.ADD [R4.64], R2", False),
        ("LDG.E R4, [R8.64]\nRED.E.ADD [R4.64], R2", False),
        ("RED.E.ADD [R4.64], R2", False),
    ],
)
def test_addresses_that_the_launch_alone_decides(text: str, same: bool) -> None:
    (function,) = listing(f"{text}\nEXIT").program.functions
    (index,) = [at for at, one in enumerate(function.instructions) if one.opcode == "RED"]
    assert is_same_for_all(function, index) is same


@pytest.mark.parametrize(("used", "words"), [(True, "pass the base on"), (False, "a copy for each block")])
def test_a_result_that_is_used_cannot_be_added_up_later(used: bool, words: str) -> None:
    place = "R8" if used else "R3"
    code = listing(
        f"add| ATOMG.E.ADD.STRONG.GPU PT, R8, [R4.64], R2 // 20\nIMAD.WIDE R10, {place}, R9, R6\n"
        "STG.E [R10.64], R0\nEXIT"
    )
    rows = [Row("long_scoreboard", "add", 500, 500), Row("selected", "add", 500)]
    counts = {"add": (1000, 32000)}
    found = _match(context_of(code, rows, counts=counts, pc_metrics={SECTORS: {"add": 32000.0}}))
    assert words in found.advice


def _of(operation: str, warps: int = 32_768, threads: int = 32, used: bool = False) -> Match | Rejection:
    use = "IMAD.WIDE R10, R8, R9, R6\nSTG.E [R10.64], R0\n" if used else ""
    code = listing(f"add| {operation} // 20\n{use}EXIT")
    rows = [Row("long_scoreboard", "add", 500, 500), Row("selected", "add", 500)]
    counts = {"add": (warps, warps * threads)}
    return OPTIMIZER.match(context_of(code, rows, counts=counts, pc_metrics={SECTORS: {"add": float(warps)}}))


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            "RED.E.MAX.S32.STRONG.GPU [R4.64], R2",
            "combine the values of a warp by shuffles, from sm_80 by __reduce_max",
        ),
        (
            "RED.E.ADD.STRONG.GPU [R4.64], R2",
            "add the values of a warp up by shuffles, from sm_80 by __reduce_add",
        ),
        ("RED.E.ADD.F64.RN.STRONG.GPU [R4.64], R2", "add the values of a warp up by shuffles, then those"),
        ("ATOMG.E.CAS.STRONG.GPU PT, R8, [R4.64], R2, R3", "repeat a compare-and-swap"),
        ("ATOMS.CAST.SPIN R8, [R4], R2, R3", "or give each warp a copy of its own"),
    ],
)
def test_the_cure_goes_by_the_operation(operation: str, words: str) -> None:
    found = _of(operation, used="CAS" in operation)
    assert isinstance(found, Match)
    assert words in found.cure


@pytest.mark.parametrize(
    ("operation", "warps", "threads"),
    [
        ("ATOMG.E.EXCH.STRONG.GPU PT, R8, [R4.64], R2", 32_768, 32),
        ("RED.E.INC.STRONG.GPU [R4.64], R2", 32_768, 32),
        ("RED.E.DEC.STRONG.GPU [R4.64], R2", 32_768, 32),
        ("ATOMG.E.ADD.STRONG.GPU PT, R8, [R4.64], R2", 4096, 1),  # a number for each of 4096 blocks
    ],
)
def test_what_cannot_be_combined_is_left_alone(operation: str, warps: int, threads: int) -> None:
    assert isinstance(_of(operation, warps, threads, used="ATOMG" in operation), Rejection)


@pytest.mark.parametrize(("warps", "told"), [(4300, False), (4301, True)])
def test_up_to_a_twentieth_more_than_blocks_is_one_for_each_block(warps: int, told: bool) -> None:
    found = _of("ATOMG.E.ADD.STRONG.GPU PT, R8, [R4.64], R2", warps, 1, used=True)
    assert isinstance(found, Match) is told


def test_one_operation_of_a_block_becomes_fewer_with_fewer_blocks() -> None:
    found = _of("RED.E.ADD.STRONG.GPU [R4.64], R2", 4096, 1)
    assert isinstance(found, Match)
    assert "fewer blocks, a loop over the grid" in found.cure


# Each thread adds what it reads to the element of its block, in every pass.
LOOP = """
    S2R R0, SR_TID.X
    S2R R1, SR_CTAID.X
    MOV R7, 0x4
    IMAD.WIDE R4, R1, R7, c[0x0][0x168]
    {guard}
    again:
    LDG.E R2, [R8.64] // 19
    IADD3 R8, R8, 0x400, RZ // 18
    RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R2 // 20
    ISETP.GE.AND P1, PT, R8, c[0x0][0x170], PT // 18
    @!P1 BRA again // 18
    out:
    EXIT
"""


def _unsampled(text: str) -> KernelContext:
    return replace(context_of(listing(text), []), blame=None)


def test_one_address_in_every_pass_is_known_from_the_machine_code() -> None:
    found = _match(_unsampled(LOOP.format(guard="NOP")))
    assert found.cure.startswith("add up in a register over the loop")
    assert [site.index for site in found.static_sites] == [7]


def test_an_address_of_each_thread_is_not_known_to_collide() -> None:
    text = LOOP.format(guard="NOP").replace("R4, R1, R7", "R4, R0, R7")
    assert isinstance(OPTIMIZER.match(_unsampled(text)), Rejection)


def test_one_thread_of_a_block_collides_with_no_other_of_its_warp() -> None:
    text = LOOP.format(guard="ISETP.NE.AND P0, PT, R0, RZ, PT // 17\n@P0 BRA out // 17")
    assert isinstance(OPTIMIZER.match(_unsampled(text)), Rejection)


def _by_data(chosen: str, *, sectors: float, warps: int = 32000) -> KernelContext:
    code = listing(
        f"LDC.64 R10, c[0x0][0x168] // 18\nS2R R8, SR_TID.X // 18\nload| LDG.E{chosen} R2, [R8.64] // 19\n"
        "to| IMAD.WIDE.U32 R4, R2, 0x4, R10 // 19\nadd| RED.E.ADD.STRONG.GPU [R4.64], R3 // 20\nEXIT"
    )
    return context_of(
        code,
        [Row("lg_throttle", "add", 900, 900), Row("selected", "to", 100)],
        counts={"load": (warps, 32 * warps), "to": (warps, 32 * warps), "add": (warps, 32 * warps)},
        pc_metrics={SECTORS: {"load": warps * 8.0, "add": warps * sectors}},
        block=256,
        grid=125,
    )


def test_a_small_array_gets_a_copy_for_each_block() -> None:
    found = _match(_by_data(".U8", sectors=28))
    assert "a copy for each block in shared memory (256 words)" in found.advice
    assert found.adjustments[0].expected == pytest.approx(1 - 256 * 125 / (32 * 32000))


@pytest.mark.parametrize(("blocks", "worth"), [(7, False), (8, True)])
def test_without_samples_a_copy_is_worth_it_from_eight_elements_for_each_word(
    blocks: int, worth: bool
) -> None:
    context = _by_data(".U8", sectors=28)
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=(blocks, 1, 1))
    unsampled = replace(context, blame=None, profile=replace(context.profile, launch=launch))
    assert isinstance(OPTIMIZER.match(unsampled), Match) is worth


SLICE = "lts__d_atomic_input_cycles_active"
OF_PEAK = "pct_of_peak_sustained_elapsed"
SENT = "lts__t_sectors_srcunit_tex_op_red.sum"
ELAPSED = "sm__cycles_elapsed.max"


def _in_one_slice(most: float = 80.0, mean: float = 1.0, **more: float) -> KernelContext:
    """A loop that counts bytes in device memory: the loads wait, the operations hold them."""
    code = listing(
        "LDC.64 R10, c[0x0][0x168] // 18\nS2R R8, SR_TID.X // 18\nload| LDG.E.U8 R2, [R8.64] W0 // 19\n"
        "to| IMAD.WIDE.U32 R4, R2, 0x4, R10 ?0 // 19\nadd| RED.E.ADD.STRONG.GPU [R4.64], R3 // 20\nEXIT"
    )
    counted = {SLICE + ".max." + OF_PEAK: most, SLICE + ".avg." + OF_PEAK: mean, L2: 2.0, ISSUE: 0.1}
    return context_of(
        code,
        [Row("long_scoreboard", "to", 980, 980, due_to="load"), Row("selected", "to", 20)],
        counts=dict.fromkeys(("load", "to", "add"), (320000, 10240000)),
        pc_metrics={SECTORS: {"load": 320_000.0, "add": 320_000.0}},
        metrics={**counted, SENT: 10_240_000.0, ELAPSED: 1e7, **more},
        block=256,
        grid=400,
    )


def test_a_slice_that_is_full_of_operations_holds_what_waits_for_loads() -> None:
    """As counts of bytes in device memory: 1.2x was promised by their own waits, measured 192x."""
    context = _in_one_slice()
    found = _match(context)
    estimate = OPTIMIZER.estimate(context, found)
    assert found.title == "atomic operations meet at few addresses"
    assert "one slice of L2, which takes 0.80 of them a cycle" in found.advice
    # Each of 3,200 warps loads 100 times in 10 M cycles; the copies of 256 words are added 8 at a time.
    assert 50 < estimate.expected <= 1000
    assert estimate.low == pytest.approx(
        1 / (0.8 * 0.01 + 0.02 + 100 * 800e-7 + 320_000 * 32 / 80e7), rel=0.1
    )


def test_more_in_flight_behind_a_full_slice_is_not_advised() -> None:
    found, rejected = evaluate(_in_one_slice(), OPTIMIZERS)
    assert [one.code for one in found] == ["GPA110"]
    reasons = {one.code: one.reason for one in rejected}
    assert all("waits behind them" in reasons[code] for code in ("GPA201", "GPA202", "GPA301", "GPA302"))


@pytest.mark.parametrize(
    ("most", "mean", "more"),
    [
        (80.0, 60.0, {}),  # all slices have their part
        (30.0, 0.4, {}),  # integers: the slice could take three times as many
        (80.0, 1.0, {L2: 40.0}),  # something else may be what takes the time
    ],
)
def test_a_slice_holds_nothing_that_it_has_time_for(most: float, mean: float, more: dict[str, float]) -> None:
    assert contention(_in_one_slice(most, mean, **more)) is None


def test_a_float_takes_a_slice_three_cycles() -> None:
    def of(kind: str) -> KernelContext:
        code = listing(f"to| MOV R4, c[0x0][0x170] // 19\nadd| RED.E.ADD{kind} [R4.64], R2 // 20\nEXIT")
        metrics = {SLICE + ".max." + OF_PEAK: 33.0, SLICE + ".avg." + OF_PEAK: 0.4, L2: 1.0}
        return context_of(
            code, [Row("drain", "add", 500, 500)], counts={"add": (1000, 32000)}, metrics=metrics
        )

    held = contention(of(".F32.FTZ.RN.STRONG.GPU"))
    assert held is not None
    assert held.load == pytest.approx(0.99)
    assert contention(of(".STRONG.GPU")) is None


def test_one_thread_of_each_warp_leaves_the_block_to_add_up() -> None:
    """As sums of warps that meet in four words: nothing waits for the operations, all loads behind them."""
    code = listing(
        "load| LDG.E R2, [R8.64] W0 // 18\nto| FADD R2, R2, R3 ?0 // 19\n"
        "add| RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R2 // 20\nEXIT"
    )
    context = context_of(
        code,
        [Row("long_scoreboard", "to", 999, 999, due_to="load"), Row("selected", "to", 1)],
        counts={"load": (8000, 256_000), "to": (8000, 256_000), "add": (8000, 8000)},
        metrics={f"{SLICE}.max.{OF_PEAK}": 33.0, f"{SLICE}.avg.{OF_PEAK}": 0.4, L2: 5.0, ELAPSED: 24e3},
        grid=1000,
    )
    found = _match(context)
    assert found.cure.startswith("combine in the block")
    assert "0.0 %" not in found.advice
    assert 5 < OPTIMIZER.estimate(context, found).expected <= 8  # warps of a block


def test_sectors_sent_again_tell_how_many_threads_meet() -> None:
    context = _context("R9", 8, metrics={SENT: 64_000.0})
    assert context.profile is not None
    (atomic,) = atomics_of(context.program, context.kernel, context.profile)
    assert atomic.meeting == pytest.approx(8)  # of 8,000 sectors; by their words alone it would be a half


def test_where_blocks_have_few_elements_half_of_the_operations_may_stay() -> None:
    assert _match(_by_data(".U8", sectors=28, warps=1000)).adjustments[0].expected == pytest.approx(0.5)


def test_threads_that_meet_by_their_data_are_not_added_up_by_shuffles() -> None:
    """As in a histogram of ten values: neighbours go to different words."""
    advice = _match(_by_data("", sectors=1)).advice
    assert "a copy of the array for each block" in advice
    assert "shuffle" not in advice


SUMMED = """
    MOV R4, c[0x0][0x170]
    first| MOV R5, c[0x0][0x174]
    again:
    to| LDG.E R2, [R8.64] // 19
    IADD3 R8, R8, 0x400, RZ // 18
    add| RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R2 // 20
    ISETP.GE.AND P1, PT, R8, c[0x0][0x178], PT // 18
    @!P1 BRA again // 18
    EXIT
"""


def test_what_a_loop_sends_to_one_word_is_added_up_over_its_passes_too() -> None:
    """As a sum of 15 elements for each thread: promised 11x, measured 228x."""
    counts = {"first": (2048, 65_536), **dict.fromkeys(("to", "add"), (30_720, 983_040))}
    rows = [Row("drain", "add", 500, 500), Row("long_scoreboard", "to", 500)]
    context = context_of(
        listing(SUMMED), rows, counts=counts, pc_metrics={SECTORS: {"add": 30_720.0}}, grid=256, block=256
    )
    assert context.profile is not None
    (atomic,) = atomics_of(context.program, context.kernel, context.profile)
    assert (atomic.meeting, atomic.passes) == (32.0, 15.0)
    assert _match(context).cure.startswith(
        "add up in a register over the loop, then add the values of a warp up"
    )
