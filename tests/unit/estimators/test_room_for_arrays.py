# SPDX-License-Identifier: Apache-2.0
"""What room registers and shared memory have for the frame of a thread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.analyzer.occupancy import occupancy
from gpadvisor.estimators.context import KernelContext
from gpadvisor.estimators.local_memory import (
    allowed_registers,
    becomes_registers,
    fits_shared,
    frame_bytes,
    registers_at_same_occupancy,
    registers_have_room,
)
from gpadvisor.model.program import KernelFacts


def _context(stack: int | None = 64, *, sampled: bool = True, **more: Any) -> KernelContext:
    names = ("max_threads_per_block", "min_blocks_per_sm", "register_limit")
    named = {name: more.pop(name, None) for name in names}
    facts = KernelFacts(
        **{
            **dict.fromkeys(KernelFacts.__dataclass_fields__),
            "stack_bytes": stack,
            "registers_per_thread": more.get("registers"),
            **named,
        }
    )
    code = listing("use| FADD R2, R2, R2 // 1\nEXIT", facts=facts)
    return context_of(code, [Row("selected", "use", 10)] if sampled else None, **more)


@pytest.mark.parametrize(("block", "registers"), [(256, 32), (1024, 40), (128, 81), (64, 168)])
@pytest.mark.parametrize("shared", [0, 20_000])
def test_registers_grow_until_a_block_less_fits(block: int, registers: int, shared: int) -> None:
    context = _context(block=block, registers=registers, static_shared=shared, grid=1 << 20)

    def blocks(registers: int) -> int:
        return occupancy(
            context.machine.sm,
            threads_per_block=block,
            registers_per_thread=registers,
            shared_bytes=shared,
        ).blocks

    most = registers_at_same_occupancy(context, registers)
    assert most is not None
    assert blocks(most) == blocks(registers)
    assert most + 8 > 255 or blocks(most + 8) < blocks(registers)
    room = 4 * (most - registers)
    assert registers_have_room(_context(max(room, 1), block=block, registers=registers,
        static_shared=shared, grid=1 << 20)) == (1.0 if room else 0.0)  # fmt: skip
    assert registers_have_room(
        _context(2 * room + 2, block=block, registers=registers, static_shared=shared, grid=1 << 20)
    ) == pytest.approx(room / (2 * room + 2))


def test_without_a_launch_or_a_frame_nothing_is_known_to_have_room() -> None:
    assert registers_at_same_occupancy(_context(sampled=False), 40) is None
    assert registers_have_room(_context(sampled=False)) == 0
    assert registers_have_room(_context(stack=0, registers=32, block=1024)) == 0
    assert registers_have_room(_context(stack=None, registers=32, block=1024)) == 0
    assert frame_bytes(_context(stack=None)) == 0
    assert frame_bytes(_context(stack=48)) == 48


@pytest.mark.parametrize(
    ("threads", "blocks", "registers"),
    [
        (None, None, 255),
        (1024, None, 64),
        (1024, 1, 64),
        (512, 2, 64),
        (256, 3, 80),
        (100, 4, 128),
        (32, 1, 255),
    ],
)
def test_launch_bounds_leave_so_many_registers(
    threads: int | None, blocks: int | None, registers: int
) -> None:
    """65,536 of an SM, for whole warps, in steps of 8 for each thread."""
    context = _context(max_threads_per_block=threads, min_blocks_per_sm=blocks)
    assert allowed_registers(context) == registers


@pytest.mark.parametrize(("limit", "registers"), [(32, 32), (255, 255), (None, 64)])
def test_the_limit_that_the_cubin_states_is_the_compilers(limit: int | None, registers: int) -> None:
    context = _context(max_threads_per_block=1024, register_limit=limit)
    assert allowed_registers(context) == registers


def test_an_array_becomes_registers_where_the_bounds_leave_as_many() -> None:
    def becomes(stack: int | None, registers: int | None) -> bool:
        return becomes_registers(_context(stack, registers=registers, max_threads_per_block=1024))

    assert becomes(64, 48)  # 16 values beside 48, of 64
    assert not becomes(65, 48)
    assert not becomes(0, 48)
    assert not becomes(None, 48)


def test_frames_fit_in_shared_memory_if_as_many_blocks_stay() -> None:
    """sm_86: 100 KiB for an SM, of which each block takes 1 KiB for itself; six blocks of 256 threads."""
    for stack in (16, 60, 61, 64, 128):
        for shared in (0, 1000):
            context = _context(stack, block=256, static_shared=shared, grid=1 << 20)
            fits = 6 * (shared + 256 * stack + 1024) <= 102_400
            assert fits_shared(context) == fits, (stack, shared)
    assert not fits_shared(_context(400, block=32, grid=1 << 20))  # 16 blocks of a warp
    assert fits_shared(_context(100, block=32, grid=1 << 20))
    one = _context(170, block=8, grid=1 << 20)
    assert not fits_shared(one)  # a block of 8 threads takes the frames of a warp
    assert fits_shared(_context(150, block=8, grid=1 << 20))


def test_without_a_launch_two_warps_of_each_scheduler_have_their_frames() -> None:
    assert fits_shared(_context(400, sampled=False))  # 2 * 4 * 32 * 400 = 102,400
    assert not fits_shared(_context(401, sampled=False))


@pytest.mark.parametrize(("shared", "fits"), [(0, True), (16_000, False)])
def test_where_no_launch_is_known_the_kernels_own_shared_memory_takes_room(shared: int, fits: bool) -> None:
    """As of the histogram that lies beside the neighbours which each thread lists."""
    context = _context(352)
    (kernel, facts), *_ = context.program.facts.items()
    program = replace(context.program, facts={kernel: replace(facts, static_shared_bytes=shared)})
    assert fits_shared(replace(context, program=program, profile=None)) is fits
