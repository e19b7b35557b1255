# SPDX-License-Identifier: Apache-2.0
"""GPA204: which loads an asynchronous copy could take over, and where it costs blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.rules.asynchronous_copy import OPTIMIZER

TILE = """
    again:
    load| LDG.E{width} R4, [R12.64] // 9
    {between}
    fill| STS{width} [R20], R4 // 9
    {barrier}
    use| FFMA R10, R8, R9, R10 // 11
    @P0 BRA again // 8
    EXIT
"""
BARRIER = "BAR.SYNC.DEFER_BLOCKING 0x0 // 10"


def _context(
    *,
    arch: str = "sm_86",
    width: str = "",
    between: str = "",
    barrier: str = BARRIER,
    shared: int = 4096,
    metrics: dict[str, float] | None = None,
) -> KernelContext:
    code = listing(TILE.format(width=width, between=between, barrier=barrier), arch)
    rows = [
        Row("long_scoreboard", "fill", 400, 400, "load", DependencyClass.GLOBAL_MEMORY),
        Row("selected", "use", 600),
    ]
    return context_of(code, rows, static_shared=shared, metrics=metrics or {})


@pytest.mark.parametrize("width", ["", ".64", ".128"])
def test_values_that_are_stored_as_they_are(width: str) -> None:
    context = _context(width=width)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    assert "a second buffer with cuda::memcpy_async" in found.advice
    estimate = OPTIMIZER.estimate(context, found)
    # Eq. 4, half of it, and of that what measured cures were seen to remove.
    assert estimate.expected == pytest.approx(1000 / (1000 - 0.75 * 0.5 * 400), rel=0.01)


def test_a_copy_runs_beside_the_other_waits_of_its_loop() -> None:
    # One warp per scheduler: little is issued, and the pass waits for its own arithmetic most of the time.
    rows = [
        Row("long_scoreboard", "fill", 300, 300, "load", DependencyClass.GLOBAL_MEMORY),
        Row("wait", "use", 600, 600),
        Row("selected", "use", 100),
    ]
    context = context_of(listing(TILE.format(width="", between="", barrier=BARRIER)), rows)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    estimate = OPTIMIZER.estimate(context, found)
    assert estimate.paper == pytest.approx(1000 / (1000 - 100))  # what is issued fills a wait
    left = 1 - 0.5 * 0.3  # beside issue slots that are busy for a tenth
    assert estimate.expected == pytest.approx(1 / (left * (0.1 + 0.9 * left)) ** 0.5, rel=0.01)
    assert estimate.high > 1000 / (1000 - 300)


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (_context(arch="sm_75"), "sm_80 is the first"),
        (_context(width=".U8"), "no loop with a barrier"),  # copies take 4, 8 or 16 bytes
        (_context(barrier=""), "no loop with a barrier"),  # a warp's own values
        (_context(between="FADD R6, R4, R7"), "no loop with a barrier"),  # used on the way
    ],
)
def test_what_cannot_be_copied(context: KernelContext, reason: str) -> None:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection), found
    assert reason in found.reason


@pytest.mark.parametrize(("waiting", "told"), [(50, True), (49, False)])
def test_waits_of_less_than_a_twentieth_ask_for_no_second_buffer(waiting: int, told: bool) -> None:
    rows = [
        Row("long_scoreboard", "fill", waiting, waiting, "load", DependencyClass.GLOBAL_MEMORY),
        Row("selected", "use", 1000 - waiting),
    ]
    found = OPTIMIZER.match(context_of(listing(TILE.format(width="", between="", barrier=BARRIER)), rows))
    assert isinstance(found, Match) is told
    assert told or "loads that go to shared memory have 4.9 % of the samples" in found.reason


@pytest.mark.parametrize(("kilobytes", "left"), [(40, "1 block of 2"), (64, "no block of 1")])
def test_where_a_second_buffer_costs_blocks_registers_hold_the_next_tile(kilobytes: int, left: str) -> None:
    found = OPTIMIZER.match(_context(shared=kilobytes << 10))
    assert isinstance(found, Match)
    assert "load the next tile into registers before this one is used" in found.advice
    assert f"would leave {left} per SM" in found.advice


def test_the_driver_configures_shared_memory_for_the_second_buffer() -> None:
    """Registers allow one block, for which 32 KB were configured: a second buffer has room all the same."""
    now = _context(shared=24 << 10)
    assert now.profile is not None
    launch = replace(now.profile.launch, registers_per_thread=168, carveout_shared_bytes=32 << 10)
    profile = replace(now.profile, launch=launch)
    occupancy = kernel_occupancy(now.machine, None, profile)
    assert (occupancy.blocks_per_sm, occupancy.limiter) == (1, "registers")
    assert dict(occupancy.limits)["shared memory"] == 4
    found = OPTIMIZER.match(replace(now, profile=profile, occupancy=occupancy))
    assert isinstance(found, Match)
    assert "a second buffer with cuda::memcpy_async" in found.advice


def test_the_first_architecture_with_asynchronous_copies_has_the_rule() -> None:
    assert isinstance(OPTIMIZER.match(_context(arch="sm_80")), Match)


def test_waiting_less_takes_no_load_from_a_full_unit() -> None:
    full = {"l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed": 85.0}
    found = OPTIMIZER.match(_context(metrics=full))
    assert isinstance(found, Match)
    assert not found.actionable


WINDOW = """
    again:
    load| LDGSTS.E.BYPASS.128 [R20], [R12.64] // 9
    LDGDEPBAR // 10
    {between}
    wait| DEPBAR.LE SB0, {kept} // 11
    BAR.SYNC.DEFER_BLOCKING 0x0 // 12
    LDS R8, [R21] // 13
    use| FFMA R10, R8, R9, R10 // 13
    BAR.SYNC.DEFER_BLOCKING 0x0 // 14
    @P0 BRA again // 8
    EXIT
"""


def _window(kept: str = "0x0", between: str = "", shared: int = 4096) -> KernelContext:
    rows = [
        Row("long_scoreboard", "wait", 400, 400, "load", DependencyClass.ASYNC_COPY),
        Row("selected", "use", 600),
    ]
    code = listing(WINDOW.format(kept=kept, between=between))
    return context_of(code, rows, static_shared=shared, metrics={})


def test_copies_that_are_waited_for_at_once_run_beside_nothing() -> None:
    found = OPTIMIZER.match(_window())
    assert isinstance(found, Match), found
    assert "asynchronous copies such as kernel.cu:9, which are waited for at once" in found.advice
    assert "a second buffer before this one is used" in found.cure
    assert "__pipeline_wait_prior(1)" in found.cure


@pytest.mark.parametrize(
    "context",
    [
        _window(kept="0x1"),  # the next tile's are under way
        _window(between="LDS R4, [R22] // 10"),  # the tile of the pass before is used meanwhile
    ],
)
def test_copies_that_run_beside_the_use_of_a_tile(context: KernelContext) -> None:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection), found
    assert "no loop with a barrier" in found.reason
