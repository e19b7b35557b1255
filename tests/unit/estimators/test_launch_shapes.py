# SPDX-License-Identifier: Apache-2.0
"""What an SM holds of a launch, of others over the same elements, and what steps lead to more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any

import pytest
from tests.optimizer_values import DEVICE, Row, context_of, listing

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators import constants
from gpadvisor.estimators.block_shapes import (
    BlockShape,
    best_shape,
    block_sizes,
    ends_early,
    lanes_taken,
    larger_tile,
    launch_text,
    shape_text,
    warps_reached,
)
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.launches import (
    LaunchShape,
    best_split,
    held_warps,
    idle_share,
    is_as_short_as_a_launch,
    lacks_warps,
    next_block,
    outside_share,
    shape,
)
from gpadvisor.estimators.uneven_grids import fullest_sm, here, is_even, last_wave, overfull, tail
from gpadvisor.evidence.launches import Freedom
from gpadvisor.model.advice import Match
from gpadvisor.model.profile import Evidence, KernelProfile
from gpadvisor.model.program import KernelFacts

CODE = listing("use| FADD R2, R2, R2 // 1\nEXIT")
HELD, HELD_BY_SM = "smsp__warps_active.avg.per_cycle_active", "sm__warps_active.avg.per_cycle_active"
ACTIVE, ELAPSED = "sm__cycles_active.avg", "sm__cycles_elapsed.max"
FREE = Freedom(block=None, grid=None, any_total=False, guarded=True, axes="x", code=True)


def _context(**more: Any) -> tuple[KernelContext, KernelProfile]:
    context = context_of(CODE, [Row("selected", "use", 10)], **more)
    assert context.profile is not None
    return context, context.profile


def _with(profile: KernelProfile, **launch: Any) -> KernelProfile:
    return replace(profile, launch=replace(profile.launch, **launch))


def _shape(blocks: int, threads: int, **more: Any) -> LaunchShape:
    context, profile = _context(**more)
    found = shape(context, profile, blocks, threads)
    assert found is not None
    return found


def test_an_sm_holds_what_its_registers_and_warps_allow() -> None:
    """sm_86: 48 warps, 65,536 registers; 80 SMs."""
    assert _shape(4096, 256) == LaunchShape(
        blocks=4096, threads=256, fits=6, resident=6, busy_sms=80, limiter=None, warps=12.0
    )
    few = _shape(100, 256)
    assert (few.fits, few.resident, few.busy_sms, few.warps) == (6, 2, 80, 4.0)  # two of them on 20 SMs
    assert _shape(50, 33).busy_sms == 50
    assert _shape(50, 33).warps == 0.5  # 33 threads are two warps
    assert _shape(960, 256).waves(80) == 2
    assert _shape(1, 2048).waves(80) == 0  # no such block


def test_dynamic_shared_memory_grows_with_the_block_and_static_stays() -> None:
    memory = {"static_shared": 20_000, "dynamic_shared": 10_000}
    now, doubled = _shape(4096, 128, block=128, **memory), _shape(4096, 256, block=128, **memory)
    sm = _context()[0].machine.sm
    for found, shared in ((now, 30_000), (doubled, 40_000)):
        assert (
            found.fits
            == occupancy(sm, threads_per_block=128, registers_per_thread=40, shared_bytes=shared).blocks
        )
    assert (now.fits, doubled.fits) == (3, 2)


def test_what_nobody_knows_has_no_shape() -> None:
    context, profile = _context()
    assert shape(context, replace(profile, device=replace(DEVICE, sms=None)), 10, 32) is None
    assert shape(context, profile, 10, 0) is None
    assert shape(context, _with(profile, block=(0, 1, 1)), 10, 32) is None
    assert next_block(context, _with(profile, block=(0, 1, 1))) is None
    unknown = _with(profile, registers_per_thread=None)
    assert shape(context, unknown, 10, 32) is None
    assert next_block(context, unknown) is None


@pytest.mark.parametrize(("threads", "registers"), [(128, 255), (256, 40), (256, 81), (512, 64), (1024, 64)])
@pytest.mark.parametrize("shared", [0, 5_000, 33_000, 51_200])
def test_the_step_to_one_more_block_is_the_smallest(threads: int, registers: int, shared: int) -> None:
    context, profile = _context(block=threads, registers=registers, static_shared=shared)
    sm = context.machine.sm

    def blocks(registers: int, shared: int) -> int:
        return occupancy(
            sm, threads_per_block=threads, registers_per_thread=registers, shared_bytes=shared
        ).blocks

    step = next_block(context, profile)
    if step is None:  # no warps are left, or no more shared memory and registers would do
        assert blocks(1, 0) == blocks(registers, shared)
        return
    assert step.blocks == blocks(registers, shared) + 1
    if step.registers is None:
        assert blocks(registers, 0) >= step.blocks
    else:
        assert step.registers < registers
        assert blocks(step.registers, 0) >= step.blocks > blocks(step.registers + 1, 0)
    if step.shared_bytes is None:
        assert blocks(0, shared) >= step.blocks
    else:
        assert step.shared_bytes < shared
        assert blocks(0, step.shared_bytes) >= step.blocks > blocks(0, step.shared_bytes + 1)


@pytest.mark.parametrize(
    ("blocks", "threads", "sms", "enough"),
    [(40, 1024, 80, 32), (50, 256, 80, 64), (81, 256, 80, 32), (7, 96, 80, 32), (160, 512, 80, 128)],
)
def test_no_split_has_a_fullest_sm_with_less(blocks: int, threads: int, sms: int, enough: int) -> None:
    count, size = best_split(blocks, threads, sms, enough)
    assert count * size == blocks * threads
    others = [
        size
        for size in range(32, threads, 32)
        if not threads % size and size >= enough
    ]  # fmt: skip
    loads = {other: ceil(blocks * threads // other / sms) * other for other in others}
    assert size == max(other for other in others if loads[other] == min(loads.values()))


def test_a_block_that_cannot_be_split_evenly_becomes_blocks_of_the_least_size() -> None:
    assert best_split(10, 160, 80, 64) == (25, 64)  # five warps: none of the parts has two
    assert best_split(3, 160, 80, 128) == (4, 128)


@pytest.mark.parametrize(
    ("metrics", "held"),
    [
        ({HELD: 5.5}, 5.5),
        ({HELD_BY_SM: 22.0}, 5.5),
        ({HELD: 3.0, HELD_BY_SM: 22.0}, 3.0),
        ({HELD: 0.0}, None),
        ({}, None),
    ],
)
def test_warps_that_were_counted(metrics: dict[str, float], held: float | None) -> None:
    assert held_warps(*_context(metrics=metrics)) == held


def test_what_sms_with_a_block_idle() -> None:
    counted: dict[str, Any] = {"metrics": {ACTIVE: 300.0, ELAPSED: 1000.0}}
    assert idle_share(_context(**counted)[1]) == pytest.approx(0.7)
    assert idle_share(_context(grid=40, **counted)[1]) == pytest.approx(0.4)  # of half of the SMs
    assert idle_share(_context(grid=10, **counted)[1]) == 0
    assert idle_share(_context(metrics={ACTIVE: 300.0})[1]) is None
    assert idle_share(_context(metrics={ELAPSED: 300.0})[1]) is None
    assert idle_share(replace(_context(**counted)[1], evidence=Evidence.MODELLED)) is None
    assert idle_share(replace(_context(**counted)[1], device=replace(DEVICE, sms=None))) is None
    assert idle_share(_with(_context(**counted)[1], grid=(0, 0, 0))) is None
    assert outside_share(_context()[1]) == 0


def test_a_kernel_of_a_few_microseconds_may_be_its_launch() -> None:
    profile = _context()[1]
    assert not is_as_short_as_a_launch(profile)
    assert not is_as_short_as_a_launch(_with(profile, duration_ns=None))
    assert is_as_short_as_a_launch(_with(profile, duration_ns=1000.0))


def test_a_small_grid_lacks_warps_unless_a_unit_is_full() -> None:
    unit = "l1tex__throughput.avg.pct_of_peak_sustained_active"
    assert lacks_warps(_context(grid=80, metrics={unit: 20.0})[0])
    assert not lacks_warps(_context(grid=80, metrics={unit: 70.0})[0])
    assert not lacks_warps(_context(grid=80)[0])  # nobody counted
    assert not lacks_warps(_context(grid=4096, metrics={unit: 20.0})[0])


# ---- the last wave ----


def test_a_last_wave_takes_as_long_as_a_full_one_but_no_longer_than_warps_are_missing() -> None:
    def late(blocks: int, held: float | None) -> float:
        metrics = {} if held is None else {HELD: held}
        context, profile = _context(grid=blocks, metrics=metrics)
        return tail(context, profile, _shape(blocks, 256))

    assert late(500, 11.0) == pytest.approx(12 / 11)  # 1.04 waves: warps counted say less than 2 / 1.04
    assert late(900, 11.9) == pytest.approx(12 / 11.9)
    assert late(960, 12.0) == 1  # two full waves
    assert late(720, 9.0) == pytest.approx(12 / 9)  # 1.5 waves: a quarter of the warps is missing
    assert late(720, 8.0) == pytest.approx(2 / 1.5)
    assert late(720, 7.19) == 1  # less than waves explain: an SM never held as many
    assert late(720, None) == 1
    assert late(480, 6.0) == 1  # a single wave has none after it
    assert late(400, 6.0) == 1


def test_how_much_the_fullest_sm_has_over_the_mean() -> None:
    assert overfull(80, 80) == 1
    assert overfull(81, 80) == pytest.approx(160 / 81)
    assert overfull(40, 80) == 2
    profile = _context()[1]
    assert not is_even(profile, _shape(100, 256), 80)
    assert is_even(profile, _shape(160, 256), 80)
    assert is_even(profile, _shape(4097, 256), 80)  # 52 for each instead of 51.2
    waited = _context(metrics={ACTIVE: 990.0, ELAPSED: 1000.0})[1]
    assert is_even(waited, _shape(100, 256), 80)  # as counted nobody waits
    assert not is_even(_context(metrics={ACTIVE: 500.0, ELAPSED: 1000.0})[1], _shape(100, 256), 80)


def test_blocks_are_split_as_long_as_two_warps_are_left() -> None:
    def told(threads: int) -> Match | str:
        context, profile = _context(grid=100, block=threads)
        return fullest_sm(context, profile, _shape(100, threads, block=threads), FREE, 0.1)

    found = told(128)  # 3 blocks instead of 2.5 on the fullest SM; now 2 instead of 1.25
    assert isinstance(found, Match)
    assert found.cure == "Launch 200 blocks of 64 threads instead of 100 of 128."
    assert found.parallel is not None
    assert found.parallel.factor == pytest.approx(1.6 / 1.2)
    assert told(64) == (
        "100 blocks on 80 SMs (0.08 waves): the fullest SM has 60.0 % more than the mean, and no smaller "
        "block evens that out"
    )
    assert isinstance(told(96), str)  # three warps have no half


def test_a_grid_in_words() -> None:
    assert here(_shape(1, 256), 80) == "1 block on 80 SMs (0.00 waves)"
    assert here(_shape(500, 256), 1) == "500 blocks on 1 SM (83.33 waves)"
    assert last_wave(_shape(500, 256), 80) == (
        "500 blocks on 80 SMs (1.04 waves): 480 run at once, and the last 20 leave warps missing at the end"
    )


# ---- blocks of another shape ----


def test_lanes_that_a_block_takes() -> None:
    assert (lanes_taken(64), lanes_taken(33), lanes_taken(1)) == (1, 64 / 33, 32)


@pytest.mark.parametrize(("grid", "block", "registers"), [(2000, 32, 40), (4096, 96, 32), (300, 1024, 40)])
def test_the_best_shape_holds_the_most_warps_and_leaves_no_sm_out(
    grid: int, block: int, registers: int
) -> None:
    context, profile = _context(grid=grid, block=block, registers=registers)
    now = _shape(grid, block, block=block, registers=registers)
    sizes = block_sizes(context)
    found = best_shape(context, profile, now, FREE, sizes)
    assert found is not None
    held = [
        one
        for threads in sizes
        if (one := shape(context, profile, -(-grid * block // threads), threads)) is not None
    ]
    assert found.warps == max(one.warps for one in held if one.busy_sms >= now.busy_sms) >= now.warps
    assert found.grid == (-(-grid * block // found.held.threads), 1, 1)
    assert found.block == (found.held.threads, 1, 1)
    alike = [one.threads for one in held if one.warps == found.warps and one.busy_sms >= now.busy_sms]
    powers = [threads for threads in alike if threads & (threads - 1) == 0] or alike
    assert found.held.threads in powers
    assert max(found.held.threads / 256, 256 / found.held.threads) == min(
        max(threads / 256, 256 / threads) for threads in powers
    )


def test_a_shape_that_holds_no_more_is_none() -> None:
    context, profile = _context(block=256)
    assert best_shape(context, profile, _shape(4096, 256), FREE, [256]) is None
    assert best_shape(context, profile, _shape(4096, 256), FREE, [1024]) is None  # 8 warps for a scheduler
    unguarded = replace(FREE, guarded=False)
    assert best_shape(context, profile, _shape(4096, 64), unguarded, [192]) is None  # would write beyond


def test_rows_keep_their_width() -> None:
    context, profile = _context(grid=2000, block=32)
    square = _with(profile, grid=(100, 20, 1), block=(8, 4, 1))
    found = best_shape(context, square, _shape(2000, 32), replace(FREE, axes="xy"), [256])
    assert found is not None
    assert found.block[0] * found.block[1] == 256
    assert found.grid == (800 // found.block[0], -(-80 // found.block[1]), 1)


def test_any_number_of_blocks_is_as_many_as_the_gpu_holds() -> None:
    context, profile = _context(grid=2000, block=32)
    found = best_shape(context, profile, _shape(2000, 32, block=32), replace(FREE, any_total=True), [256])
    assert found is not None
    assert (found.grid, found.held.blocks) == (None, 6 * 80)
    assert launch_text(profile, found) == "blocks of 256 threads, 480 of them (6 for each SM) or more,"


def test_what_a_kernel_was_compiled_for_bounds_its_blocks() -> None:
    assert block_sizes(_context()[0]) == [32, *range(64, 1025, 64)]
    bounded = KernelFacts(**{**dict.fromkeys(KernelFacts.__dataclass_fields__), "max_threads_per_block": 192})

    def sizes(threads: int) -> list[int]:
        code = replace(CODE, program=replace(CODE.program, facts={CODE.program.functions[0].name: bounded}))
        return block_sizes(context_of(code, [Row("selected", "use", 1)], block=threads))

    assert sizes(64) == [32, 64, 128, 192]
    assert sizes(192) == [32, *range(64, 1025, 64)]  # the bound only repeats the block's size


def test_a_tile_grows_with_its_block() -> None:
    context, profile = _context(grid=6400, block=64, static_shared=1000)
    row = larger_tile(context, profile, _shape(6400, 64, block=64))
    assert row is not None
    assert (row.block, row.grid) == ((256, 1, 1), (1600, 1, 1))
    square = _with(profile, grid=(80, 80, 1), block=(8, 8, 1))
    found = larger_tile(context, square, _shape(6400, 64, block=64))
    assert found is not None
    assert (found.block, found.grid, found.held.blocks) == ((16, 16, 1), (40, 40, 1), 1600)
    assert found.held.fits == 6
    memory = _with(square, static_shared_bytes=8000)  # four times as much: three of them fit
    larger = larger_tile(context, memory, _shape(6400, 64, block=64))
    assert larger is not None
    assert larger.held.fits == 3
    assert larger_tile(context, _with(profile, block=(8, 4, 2)), _shape(6400, 64)) is None
    assert larger_tile(context, profile, _shape(6400, 192)) is None  # not twice as many within 256
    assert larger_tile(context, _with(profile, grid=(300, 1, 1)), _shape(300, 64)) is None  # 75 for 80 SMs
    assert larger_tile(context, _with(profile, grid=(320, 1, 1)), _shape(320, 64)) is not None


def test_warps_reached_lie_between_those_of_today_and_all() -> None:
    def reached(threads: int, held: float | None) -> tuple[float, float | None]:
        now, new = _shape(8192, 64, block=64), _shape(8192, threads, block=64)
        return warps_reached(now, BlockShape(block=(threads, 1, 1), grid=(1024, 1, 1), held=new), held)

    assert _shape(4096, 64, block=64).warps == 8
    assert reached(256, None) == (12, None)
    assert reached(256, 2.0) == (8, 3)  # four times the warps of a block; at the low end a quarter as now
    assert reached(256, 4.0) == (12, 6)  # no more than there are
    assert reached(256, 20.0) == (12, 12)
    assert reached(32, 2.0) == (4 * 1.25 / 2, 1)
    assert reached(64, 2.0) == (8 * 1.25 / 2, 2)  # as large as now: no block brings more


@pytest.mark.parametrize(
    ("size", "text"),
    [((125, 125, 1), "125 x 125"), ((1, 1, 1), "1"), ((8, 1, 4), "8 x 1 x 4"), ((7, 1, 1), "7")],
)
def test_sizes_in_words(size: tuple[int, int, int], text: str) -> None:
    assert shape_text(size) == text


def test_a_launch_in_words() -> None:
    new = BlockShape(block=(32, 8, 1), grid=(125, 2, 1), held=_shape(250, 256))
    assert launch_text(_context()[1], new) == "125 x 2 blocks of 32 x 8 threads"


def test_a_block_with_more_rows_than_work_ends_early() -> None:
    profile = _with(_context(grid=80, block=1024)[1], block=(32, 32, 1))
    now = _shape(80, 1024, block=1024)
    new = BlockShape(block=(32, 8, 1), grid=None, held=_shape(320, 256, block=1024))
    assert (now.fits, now.warps) == (1, 8)
    assert ends_early(profile, now, new, 3.9)
    assert not ends_early(profile, now, new, constants.MAJORITY * 8)
    assert not ends_early(profile, _shape(80, 256), new, 0.5)  # several fit
    assert not ends_early(_with(profile, grid=(80, 2, 1)), now, new, 3.0)
    assert not ends_early(_with(profile, block=(64, 16, 1)), now, new, 3.0)
    assert not ends_early(profile, now, replace(new, block=(16, 16, 1)), 3.0)
    assert not ends_early(profile, now, replace(new, block=(32, 32, 1)), 3.0)


def test_more_registers_never_fit_more_blocks() -> None:
    fits = [_shape(4096, 128, registers=registers).fits for registers in range(16, 256, 8)]
    assert all(more >= less for more, less in pairwise(fits))
    assert fits[0] > fits[-1]


def test_what_nobody_says_counts_as_one_sm_and_as_no_block() -> None:
    context, profile = _context()
    assert (profile.sms, replace(profile, device=replace(DEVICE, sms=None)).sms) == (80, 1)
    unknown = replace(context.occupancy, blocks_per_sm=None)
    assert (context.occupancy.blocks, unknown.blocks) == (6, 0)
