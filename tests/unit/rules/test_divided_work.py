# SPDX-License-Identifier: Apache-2.0
"""Block Increase where each thread, or each warp, does what others could do beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.estimators import constants
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Estimate, Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.profile import Evidence
from gpadvisor.rules import OPTIMIZERS, block_increase

IMAGES = """
    S2R R0, SR_TID.X
    ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT
    @P0 EXIT
    MOV R4, RZ
    start| MOV R9, 0x4
    images:
    head| IMAD R6, R4, c[0x0][0x17c], R0 // 45
    IMAD.WIDE R6, R6, R9, c[0x0][0x168]
    load| LDG.E R2, [R6.64] // 47
    use| FADD R8, R2, R2 // 47
    IMAD R12, R4, c[0x0][0x178], R0
    IMAD.WIDE R12, R12, R9, c[0x0][0x160]
    STG.E [R12.64], R8 // 48
    IADD3 R4, R4, 0x1, RZ // 45
    ISETP.NE.AND P1, PT, R4, c[0x0][0x174], PT // 45
    back| @P1 BRA images // 45
    EXIT
"""
LOAD = DependencyClass.GLOBAL_MEMORY
ROWS = (Row("long_scoreboard", "use", 860, 860, "load", LOAD), Row("selected", "use", 140))
COUNTS = {"start": (100, 3200), "head": (100_000, 3_200_000), "back": (100_000, 3_200_000)}
HELD = "smsp__warps_active.avg.per_cycle_active"
L1 = "l1tex__throughput.avg.pct_of_peak_sustained_active"


def _context(text: str = IMAGES, **more: Any) -> KernelContext:
    values = {"grid": 64, "block": 1024, "registers": 30, "counts": COUNTS, **more}
    return context_of(listing(text), ROWS, **values)


def _match(context: KernelContext) -> tuple[Match, Estimate]:
    found = block_increase.OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    return found, block_increase.OPTIMIZER.estimate(context, found)


def test_passes_become_blocks() -> None:
    """After a convolution of 64 blocks for 80 SMs that loops over the images: 2.2x with them in gridDim.z."""
    found, estimate = _match(_context())
    assert found.cure.startswith(
        "Make the loop at kernel.cu:45, 1,000 passes in each thread, a dimension of the grid (gridDim.z)"
    )
    assert found.parallel is not None
    assert (found.parallel.busy_sms_now, found.parallel.busy_sms_new) == (64, 80)
    assert found.parallel.blocks_new == 64  # the kernel changes: there is no other number to put in its place
    assert estimate.expected == pytest.approx(
        80 / 64
    )  # an SM holds one such block: as many warps on more SMs
    assert "on 1.25 times the SMs" in estimate.reason
    assert "there are no samples" not in estimate.reason


def test_blocks_in_place_of_passes_are_as_often_missing_as_now_at_the_low_end() -> None:
    found, _ = _match(_context(metrics={HELD: 2.0}))  # of the 8 warps that a scheduler could hold
    assert found.parallel is not None
    assert found.parallel.held_low == pytest.approx(found.parallel.warps_now * 2.0 / 8)
    assert found.parallel.warps_new == pytest.approx(found.parallel.warps_now * (1 + 2.0 / 8) / 2)


def test_two_passes_become_blocks_and_one_does_not() -> None:
    for passes, said in ((2, True), (1, False)):
        warps = 100 * passes
        counts = {**COUNTS, "head": (warps, 32 * warps), "back": (warps, 32 * warps)}
        result = block_increase.OPTIMIZER.match(_context(counts=counts))
        words = result.advice if isinstance(result, Match) else result.reason
        assert ("2 passes in each thread" in words) is said


def test_passes_of_an_unrolled_loop_are_told_as_the_source_has_them() -> None:
    """As of a sum of matrices whose loop of 64 rows is unrolled to 4 passes."""
    step = "    IADD3 R4, R4, 0x1, RZ // 45"
    copy = "LDG.E R3, [R6.64+0x400] // 47\nFADD R10, R3, R3 // 47\nSTG.E [R12.64+0x400], R10 // 48\n"
    assert step in IMAGES
    found, _ = _match(_context(IMAGES.replace(step, f"{copy}{step.replace('0x1', '0x2')}")))
    assert "2,000 passes in each thread" in found.cure


def test_passes_become_blocks_where_every_sm_has_one() -> None:
    found, estimate = _match(_context(grid=80, block=256))
    assert "gridDim.z" in found.cure
    assert estimate.expected > 2


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (IMAGES.replace("FADD R8, R2, R2", "FADD R8, R8, R2"), COUNTS),  # a sum over all passes
        (IMAGES, {**COUNTS, "head": (100, 3200), "back": (100, 3200)}),  # one pass
    ],
)
def test_there_must_be_passes_that_need_nothing_of_each_other(
    text: str, counts: dict[str, tuple[int, int]]
) -> None:
    found = block_increase.OPTIMIZER.match(_context(text, counts=counts))
    assert isinstance(found, Rejection) or "gridDim.z" not in found.cure


def test_blocks_of_one_warp_that_are_all_there() -> None:
    """After a scan of 768 matrices by a warp each, of which an A100 holds 7 on an SM."""
    text = IMAGES.replace("FADD R8, R2, R2", "FADD R8, R8, R2")
    found, estimate = _match(_context(text, grid=768, block=32, metrics={HELD: 1.8, L1: 30.0}))
    assert found.cure.startswith("Let two or more warps of a block share what its one warp does")
    assert found.title == "768 blocks of one warp keep an SM at 15 % of its warps"
    assert 1.2 < estimate.expected < 2


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {HELD: 1.8, L1: 70.0}},  # a busy unit: they would share it
        {"metrics": {HELD: 1.8}},  # units were not counted
        {"block": 64},  # two warps: the program has divided it
        {"grid": 80 * 12, "metrics": {HELD: 6.0, L1: 30.0}},  # many of the warps are there
    ],
)
def test_one_warp_is_not_at_fault(change: dict[str, Any]) -> None:
    text = IMAGES.replace("FADD R8, R2, R2", "FADD R8, R8, R2")
    values = {"grid": 768, "block": 32, "metrics": {HELD: 1.8, L1: 30.0}, **change}
    found = block_increase.OPTIMIZER.match(_context(text, **values))
    assert isinstance(found, Rejection)
    assert "all blocks are there at once" in found.reason


def test_a_short_kernel_gains_nothing_by_warps() -> None:
    text = IMAGES.replace("FADD R8, R2, R2", "FADD R8, R8, R2")
    context = _context(text, grid=768, block=32, metrics={HELD: 1.8, L1: 30.0})
    assert context.profile is not None
    launch = replace(context.profile.launch, duration_ns=2_000.0)
    found = block_increase.OPTIMIZER.match(replace(context, profile=replace(context.profile, launch=launch)))
    assert isinstance(found, Rejection)


ONE: dict[str, Any] = {"grid": 1, "block": 1, "metrics": {"launch__thread_count": 1.0}}


def test_one_thread_that_loops_over_elements() -> None:
    """After a vector addition by one thread, for which a keyword was all that was suggested."""
    found = block_increase.OPTIMIZER.match(_context(**ONE))
    assert isinstance(found, Match)
    assert found.cure.startswith("Give each thread its own elements (begin at blockIdx.x * blockDim.x")
    assert "no pass of the loop at kernel.cu:45 needs what another one computes" in found.cure
    linked = block_increase.OPTIMIZER.match(_context(IMAGES.replace("FADD R8, R2", "FADD R8, R8"), **ONE))
    assert isinstance(linked, Match)
    assert linked.cure.startswith("Where no pass of its loops needs what another one computes, give each")


@pytest.mark.parametrize("samples", [True, False])
def test_beside_one_thread_nothing_else_is_told(samples: bool) -> None:
    context = _context(**ONE)
    context = context if samples else replace(context, blame=None)
    found = advise_kernel(context, OPTIMIZERS)
    assert [one.code for one in found.suggestions] == ["GPA301"]
    assert found.suggestions[0].speedup is None


def test_one_thread_without_a_loop_or_without_a_count_of_threads() -> None:
    text = IMAGES.replace("back| @P1 BRA images // 45\n", "")
    for context in (_context(text, **{**ONE, "counts": {}}), _context(**{**ONE, "metrics": {}})):
        found = block_increase.OPTIMIZER.match(context)
        assert isinstance(found, Rejection)
        assert found.reason.startswith("one thread was launched, or the report does not say how many")


@pytest.mark.parametrize(
    ("held", "busy", "told"),
    [
        (0.25, 50.0, True),  # one warp on one of the SMs, all the time
        (0.25, 1000.0, False),  # one on each of them
        (0.5, 50.0, False),
    ],
)
def test_where_one_warp_works_its_work_is_to_be_divided(held: float, busy: float, *, told: bool) -> None:
    """As two bodies whose 40 blocks of 256 threads leave at once, but for a warp of two threads."""
    metrics = {HELD: held, "sm__cycles_active.avg": busy, "sm__cycles_elapsed.max": 1000.0}
    context = replace(_context(grid=40, block=256, metrics=metrics), blame=None)
    assert context.profile is not None
    device = replace(context.profile.device, sms=20)
    found = block_increase.OPTIMIZER.match(replace(context, profile=replace(context.profile, device=device)))
    assert (isinstance(found, Match) and "one of 320 warps does all of it" in found.title) is told
    if told:  # whatever else would gain is of a warp that then does little
        assert isinstance(found, Match)
        assert (found.leads, found.alone) == (True, True)


@pytest.mark.parametrize(
    ("mean", "fullest", "told"),
    [
        (16.0, 990.0, True),
        (16.0, 20.0, False),  # the launch itself takes the time
        (600.0, 990.0, False),
    ],
)
def test_where_a_few_blocks_run_long_their_work_is_to_be_shared(
    mean: float, fullest: float, *, told: bool
) -> None:
    """As a depth-first search: with the tree divided deeper 5.6x measured, by two warps a block 1.0x."""
    metrics = {
        HELD: 1.2,
        "sm__cycles_active.avg": mean,
        "sm__cycles_active.max": fullest,
        "sm__cycles_elapsed.max": 1000.0,
    }
    context = replace(_context(grid=4096, block=4, metrics=metrics), blame=None)
    assert context.profile is not None
    device = replace(context.profile.device, sms=132)
    found = block_increase.OPTIMIZER.match(replace(context, profile=replace(context.profile, device=device)))
    assert (
        isinstance(found, Match) and "a few blocks run long: an SM has work for 1.6 %" in found.title
    ) is told


ROW_SUMS = """
    S2R R0, SR_TID.X
    S2R R3, SR_CTAID.X
    IMAD R4, R3, c[0x0][0x170], R0
    MOV R9, 0x4
    start| MOV R8, RZ
    columns:
    head| IMAD.WIDE R6, R4, R9, c[0x0][0x168] // 12
    load| LDG.E R2, [R6.64] // 12
    use| FADD R8, R8, R2 // 12
    IADD3 R4, R4, {step}, RZ // 11
    ISETP.GE.AND P1, PT, R4, c[0x0][0x174], PT // 11
    back| @!P1 BRA columns // 11
    STS [R0.X4], R8
    BAR.SYNC 0x0
    EXIT
"""


@pytest.mark.parametrize(
    ("block", "passes", "step", "told"),
    [
        (256, 32, "c[0x0][0x0]", "Launch blocks of 1,024 threads instead of 256: the loop at kernel.cu:1"),
        (256, 2, "c[0x0][0x0]", "Launch blocks of 512 threads instead of 256"),  # for more there is no pass
        (256, 1, "c[0x0][0x0]", "Divide what a block does"),
        (1024, 32, "c[0x0][0x0]", "Divide what a block does"),
        (256, 32, "0x100", "Divide what a block does"),  # a constant: more threads would do the same
    ],
)
def test_few_blocks_whose_threads_share_a_loop_by_their_number_get_more_of_them(
    block: int, passes: int, step: str, told: str
) -> None:
    """After a norm of 33 rows on 132 SMs: 256 threads for 8,192 vectors of a row."""
    warps = 33 * block // 32
    counts = {"start": (warps, 32 * warps), **dict.fromkeys(("head", "back"), (passes * warps, 32 * warps))}
    found = block_increase.OPTIMIZER.match(
        _context(ROW_SUMS.format(step=step), grid=33, block=block, counts=counts, static_shared=64)
    )
    assert isinstance(found, Match)
    assert found.cure.startswith(told)
    assert "ivide what a block does along another dimension" in found.cure


def _simulated(context: KernelContext) -> KernelContext:
    return replace(context, evidence=Evidence.MODELLED)


def test_a_block_that_is_divided_has_a_figure_of_a_simulated_run_alone() -> None:
    """After a softmax of 4 rows and an attention of 32 blocks: 3.8x on 7 times the SMs, 6.8x on 3.4 times."""
    context = _context(ROW_SUMS.format(step="0x100"), grid=20, block=1024, static_shared=64)
    found = block_increase.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert found.parallel is None
    found, estimate = _match(_simulated(context))
    assert found.cure.startswith("Divide what a block does")
    spread = 80 / 20
    assert estimate.low < 1 / (1 - constants.LEAST_PART * (1 - 1 / spread))
    assert 1 / (1 - constants.MOST_OF * (1 - 1 / spread)) == pytest.approx(estimate.expected)
    assert spread <= estimate.high < spread * 1.1
    assert "expected 75 %, at least 50 %, at most 100 % of it" in estimate.reason
    few = {**COUNTS, "head": (3100, 99_200), "back": (3100, 99_200)}  # 31 passes, too few to divide
    chain = _context(ROW_SUMS.format(step="0x100"), grid=20, block=1024, static_shared=64, counts=few)
    found = block_increase.OPTIMIZER.match(_simulated(chain))
    assert isinstance(found, Match)
    assert found.parallel is None


@pytest.mark.parametrize(("held", "told"), [(2.0, True), (8.0, False)])
def test_blocks_that_leave_sms_nearly_empty_are_divided_by_a_simulated_run(
    held: float, *, told: bool
) -> None:
    """After an attention of 32 blocks of 4 warps on 28 SMs: 1.8x by eight parts of each."""
    metrics = {HELD: held, L1: 30.0}
    context = _context(ROW_SUMS.format(step="0x100"), grid=80, block=256, metrics=metrics, static_shared=64)
    assert isinstance(block_increase.OPTIMIZER.match(context), Rejection)
    found = block_increase.OPTIMIZER.match(_simulated(context))
    assert isinstance(found, Match) is told
    if isinstance(found, Match):
        assert found.title == "80 blocks keep an SM at 17 % of its warps"
        estimate = block_increase.OPTIMIZER.estimate(_simulated(context), found)
        assert 1 < estimate.expected < 1 / (1 - constants.MOST_OF)
