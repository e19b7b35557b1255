# SPDX-License-Identifier: Apache-2.0
"""GPA303: which step lets more blocks onto an SM, and where shared memory is not what costs time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.shared_use import WrittenBytes, written_bytes
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.profile import Evidence
from gpadvisor.rules.shared_memory_saving import OPTIMIZER

WAITS = (
    Row("short_scoreboard", "use", 900, 850, "read", DependencyClass.SHARED_MEMORY),
    Row("selected", "use", 100),
)
SUM = """
    S2R R3, SR_TID.X
    SHF.L.U32 R5, R3, 0x2, RZ
    S2R R0, SR_CTAID.X
    IMAD R0, R0, c[0x0][0x0], R3
    MOV R11, c[0x0][0x0]
more:
    IMAD.WIDE R6, R0, 0x4, R20
    LDG.E R7, [R6.64]
    FADD R10, R10, R7
    IMAD R0, R11, c[0x0][0xc], R0
    ISETP.LT.AND P1, PT, R0, c[0x0][0x170], PT
    @P1 BRA more
    first| STS [R5], R10
    BAR.SYNC 0x0
    SHF.R.U32.HI R2, RZ, 0x1, R11
again:
    ISETP.GE.AND P1, PT, R3, R2, PT
    IMAD R4, R2, 0x4, R5
    @!P1 LDS R6, [R5]
    read| @!P1 LDS R7, [R4]
    use| @!P1 FADD R6, R6, R7
    next| @!P1 STS [R5], R6
    SHF.R.U32.HI R2, RZ, 0x1, R2
    ISETP.NE.AND P0, PT, R2, RZ, PT
    @P0 BRA again
    EXIT
"""
"""Each thread stores at its own place in every pass, as a sum whose array has room for the largest block."""


def _launch(text: str = SUM, **more: Any) -> KernelContext:
    values = {"grid": 4096, "block": 32, "registers": 16, "static_shared": 4096, **more}
    return context_of(listing(text, "sm_70"), WAITS, **values)


def _written(context: KernelContext) -> WrittenBytes | None:
    assert context.profile is not None
    return written_bytes(context.program, context.kernel, context.profile)


def _reason(context: KernelContext) -> str:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection), found
    return found.reason


def test_a_kernel_as_short_as_a_launch_is_left_alone_unless_it_is_modelled() -> None:
    """A model's duration has no launch in it."""
    context = _launch()
    assert context.profile is not None
    short = replace(context.profile, launch=replace(context.profile.launch, duration_ns=1_000.0))
    assert "done as soon as a launch is" in _reason(replace(context, profile=short))
    modelled = replace(short, evidence=Evidence.MODELLED)
    assert isinstance(OPTIMIZER.match(replace(context, profile=modelled, evidence=Evidence.MODELLED)), Match)


def test_larger_blocks_in_the_same_bytes() -> None:
    """As a sum in blocks of 32 with an array for 1024 threads: blocks of 256 took 1/1.43 of the time."""
    context = _launch()
    assert _written(context) == WrittenBytes(most=128, by_thread=True)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert found.cure == (
        "Launch blocks of 256 threads instead of 32: the 4,096 bytes of shared memory that each reserves "
        "have room for the values of 1,024."
    )
    assert found.parallel is not None
    assert (found.parallel.warps_now, found.parallel.warps_new) == (6, 16)
    estimate = OPTIMIZER.estimate(context, found)
    assert 1 < estimate.low <= estimate.expected <= estimate.high


def test_a_larger_block_has_as_many_threads_as_its_arrays_have_room_for() -> None:
    """An array for 128 threads: blocks of 32 become 128, not the usual 256."""
    found = OPTIMIZER.match(_launch(static_shared=512, registers=16, grid=100_000, dynamic_shared=0))
    words = found.cure if isinstance(found, Match) else found.reason
    assert "256 threads" not in words


@pytest.mark.parametrize(("static", "dynamic"), [(32768, 0), (0, 32768)])
def test_what_is_not_written_is_not_reserved_where_it_is_sized(static: int, dynamic: int) -> None:
    """Blocks of the usual size, whose threads write a word each."""
    found = OPTIMIZER.match(_launch(block=256, static_shared=static, dynamic_shared=dynamic))
    assert isinstance(found, Match)
    assert "Reserve the shared memory that this launch uses, about 1,024 of 32,768 bytes" in found.cure
    assert ("pass that size at the launch" in found.cure) is bool(dynamic)


def test_a_place_that_moves_is_counted_or_not_known() -> None:
    moving = SUM.replace("next| @!P1 STS [R5], R6", "next| @!P1 STS [R4], R6")
    assert _written(_launch(moving)) is None
    counts = {"first": (4096, 131072), "next": (4096 * 5, 4096 * 31)}
    assert _written(_launch(moving, counts=counts)) == WrittenBytes(most=128 + 124, by_thread=False)
    copies = SUM.replace("next| @!P1 STS [R5], R6", "SYNCS.EXCH.64 URZ, [UR4], UR6")
    assert _written(context_of(listing(copies, "sm_90"), WAITS)) is None  # the hardware may write, too


def test_a_few_bytes_that_keep_a_block_out() -> None:
    """As 20,384 bytes for two warps, of which 19,456 let five blocks onto an SM in place of four."""
    tile = {"block": 64, "static_shared": 20384, "counts": {"first": (1, 32), "next": (614400, 19660800)}}
    moving = SUM.replace("next| @!P1 STS [R5], R6", "next| @!P1 STS [R4], R6")
    found = OPTIMIZER.match(_launch(moving, **tile))
    assert isinstance(found, Match)
    assert "Take 928 bytes off the shared memory of each block: with at most 19,456 of 20,384" in found.cure
    far = {**tile, "static_shared": 24000}
    assert "of which its threads write up to 19,200: no few bytes less" in _reason(_launch(moving, **far))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"static_shared": 0}, "reserve no shared memory"),
        ({"registers": 255, "block": 256}, "not what limits"),
        ({"static_shared": 2048, "grid": 100000, "block": 64}, "not what limits"),
        ({"block": 256, "static_shared": 16384}, "of its warps, whatever limits them"),
        ({"grid": 80 * 24}, "all blocks of the grid are on the SMs at once"),
        (
            {"metrics": {"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 85.0}},
            "L2 is at 85 % of its peak",
        ),
    ],
)
def test_silent_where_shared_memory_is_not_the_cause(more: dict[str, Any], said: str) -> None:
    assert said in _reason(_launch(**more))
