# SPDX-License-Identifier: Apache-2.0
"""Block Increase where one thread adds up by itself what many threads could add up together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.optimizer_values import DEVICE, Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules import block_increase

SUMS = """
    S2R R0, SR_TID.X
    S2R R3, SR_CTAID.X
    IMAD R0, R3, c[0x0][0x0], R0
    ISETP.GE.AND P0, PT, R0, c[0x0][0x170], PT
    @P0 EXIT
    MOV R4, RZ
    IMAD R6, R0, c[0x0][0x174], RZ
    start| IMAD.WIDE R6, R6, 0x4, c[0x0][0x168]
    row:
    load| LDG.E R2, [R6.64] // 46
    IADD3 R4, R4, 0x1, RZ // 45
    use| FADD R8, R2, R8 // 46
    IADD3 R6, R6, 0x4, RZ // 46
    ISETP.NE.AND P1, PT, R4, c[0x0][0x174], PT // 45
    back| @P1 BRA row // 45
    IMAD.WIDE R12, R0, 0x4, c[0x0][0x160]
    STG.E [R12.64], R8 // 48
    EXIT
"""
LARGEST = """use| FSETP.GT.AND P2, PT, R2, R8, PT // 46
    @P2 MOV R9, R4 // 46
    FSEL R8, R2, R8, P2"""
ROWS = (
    Row("long_scoreboard", "use", 860, 860, "load", DependencyClass.GLOBAL_MEMORY),
    Row("selected", "use", 140),
)
COUNTS = {"start": (100, 3200), "load": (400_000, 12_800_000), "back": (400_000, 12_800_000)}
HELD = {"smsp__warps_active.avg.per_cycle_active": 2.0}


def _context(text: str = SUMS, **more: Any) -> KernelContext:
    values = {"grid": 8, "block": 256, "registers": 30, "counts": COUNTS, "metrics": HELD, **more}
    return context_of(listing(text), values.pop("rows", ROWS), **values)


def _found(text: str, **more: Any) -> str:
    found = block_increase.OPTIMIZER.match(_context(text, **more))
    assert isinstance(found, Match), found
    return found.cure


def test_a_row_for_each_thread_becomes_a_row_for_each_warp() -> None:
    """After a matrix times a vector by 16 blocks: 22x by a warp for each row."""
    found = block_increase.OPTIMIZER.match(_context())
    assert isinstance(found, Match)
    assert found.cure == (
        "Let a warp take each row, its threads the 4,000 passes of the loop at kernel.cu:46 as neighbours, "
        "and combine what they have by shuffles: 256 blocks of 256 threads instead of 8."
    )
    assert found.remedies == (Remedy.SHARED_PASSES, Remedy.SHARED_ROWS)
    assert found.parallel is not None
    assert (found.parallel.busy_sms_now, found.parallel.busy_sms_new) == (8, 64)  # four on some SMs, of 3.2
    estimate = block_increase.OPTIMIZER.estimate(_context(), found)
    assert 8 < estimate.expected < 8 * 4  # more SMs, and on each up to four times the warps
    assert "on 8.00 times the SMs" in estimate.reason


NORMALISED = SUMS.replace(
    """    IMAD.WIDE R12, R0, 0x4, c[0x0][0x160]
    STG.E [R12.64], R8 // 48
""",
    """    MOV R4, RZ
    IMAD R14, R0, c[0x0][0x174], RZ
    IMAD.WIDE R16, R14, 0x4, c[0x0][0x160]
    between| IMAD.WIDE R14, R14, 0x4, c[0x0][0x168]
    again:
    second| LDG.E R10, [R14.64] // 48
    IADD3 R4, R4, 0x1, RZ // 47
    scale| FMUL R11, R10, R8 // 48
    STG.E [R16.64], R11 // 48
    IADD3 R14, R14, 0x4, RZ // 48
    IADD3 R16, R16, 0x4, RZ // 48
    ISETP.NE.AND P1, PT, R4, c[0x0][0x174], PT // 47
    @P1 BRA again // 47
""",
)
BOTH = {**COUNTS, "between": (100, 3200), "second": (400_000, 12_800_000)}


@pytest.mark.parametrize("first", [300, 400, 700])
def test_loops_along_a_row_are_shared_together(first: int) -> None:
    """After a softmax and an RMS norm of a row for each thread: 4.8x and 4.3x by a warp for each row.

    Passes of the one that stores need nothing of each other; as blocks they would repeat the sum.
    """
    rows = (
        Row("long_scoreboard", "use", first, first, "load", DependencyClass.GLOBAL_MEMORY),
        Row("long_scoreboard", "scale", 900 - first, 900 - first, "second", DependencyClass.GLOBAL_MEMORY),
        Row("selected", "use", 100),
    )
    found = _found(NORMALISED, rows=rows, counts=BOTH)
    assert "the 4,000 passes of the loops at kernel.cu:46 and kernel.cu:48 as neighbours" in found
    assert "256 blocks of 256 threads instead of 8" in found


def test_the_largest_is_combined_with_its_place() -> None:
    assert "Let a warp take each row" in _found(SUMS.replace("use| FADD R8, R2, R8", LARGEST))


def test_whose_threads_load_side_by_side_is_shared_by_warps() -> None:
    columns = SUMS.replace("IMAD R6, R0, c[0x0][0x174], RZ", "MOV R6, R0").replace(
        "IADD3 R6, R6, 0x4, RZ", "IADD3 R6, R6, 0x4000, RZ"
    )
    assert "Let 32 warps share the 4,000 passes" in _found(columns)
    assert "in shared memory" in _found(columns)


def test_whose_threads_load_the_same_is_shared_by_any() -> None:
    same = SUMS.replace("IMAD R6, R0, c[0x0][0x174], RZ", "MOV R6, RZ")
    assert "Let 32 threads share the 4,000 passes" in _found(same)


def test_a_row_whose_steps_an_argument_decides_is_one_by_the_hits_in_l1() -> None:
    """As of an accessor with strides: seven of eight loads find what the pass before has brought."""
    strided = (
        SUMS.replace("LDG.E R2, [R6.64]", "LDG.E R2, [R10.64]")
        .replace("    start|", "    IMAD.WIDE R10, R6, 0x4, c[0x0][0x168]\n    start|")
        .replace("IADD3 R6, R6, 0x4, RZ", "IMAD R10, R4, c[0x0][0x17c], R6")
    )
    hits = {**HELD, "l1tex__t_sector_hit_rate.pct": 87.5}
    assert "Let a warp take each row" in _found(strided, metrics=hits)
    assert "warps share" in _found(strided, metrics={**hits, "l1tex__t_sector_hit_rate.pct": 12.5})


@pytest.mark.parametrize(
    "change",
    [
        ("use| FADD R8, R2, R8", "use| FFMA R8, R8, R2, R9"),  # a polynomial by its last coefficient
        ("use| FADD R8, R2, R8", "use| FADD R8, R2, -R8"),  # signs in turn
        ("use| FADD R8, R2, R8", "use| FADD R8, R2, R8\n    MUFU.RCP R9, R8"),  # the sum so far is used
        ("use| FADD R8, R2, R8", "use| FADD R8, R2, R8\n    STG.E [R14.64], R8"),  # ... and stored: a scan
        # how often the largest so far was beaten
        ("use| FADD R8, R2, R8", LARGEST.replace("MOV R9, R4", "IADD3 R9, R9, 0x1, RZ")),
        (
            "use| FADD R8, R2, R8",
            "use| FADD R8, R2, R8\n    FSETP.GT.AND P3, PT, R2, R9, PT\n    @P3 BRA out",
        ),  # left early
        ("use| FADD R8, R2, R8", "use| FFMA R8, R2, c[0x3][UR4], R8"),  # a constant of the pass
        ("LDG.E R2, [R6.64]", "LDG.E R6, [R6.64]"),  # a list
    ],
)
def test_what_needs_the_pass_before_is_not_shared(change: tuple[str, str]) -> None:
    text = SUMS.replace(*change).replace("STG.E [R12", "out:\n    STG.E [R12")
    found = block_increase.OPTIMIZER.match(_context(text))
    assert isinstance(found, Rejection) or "combine" not in found.cure


@pytest.mark.parametrize(
    "change",
    [
        {"counts": {**COUNTS, "load": (6300, 201_600), "back": (6300, 201_600)}},  # 63 passes
        {
            "grid": 1,
            "counts": {**COUNTS, "load": (100_000, 3_200_000)},
        },  # 16 blocks, of 1,000 passes, for 80 SMs
        {"grid": 80},  # no SM is without work
    ],
)
def test_few_passes_and_full_grids_are_not_worth_to_be_shared(change: dict[str, Any]) -> None:
    found = block_increase.OPTIMIZER.match(_context(**change))
    assert isinstance(found, Rejection) or "combine" not in found.cure


# One warp on one of 28 SMs, all the time.
ALONE = {
    "smsp__warps_active.avg.per_cycle_active": 0.25,
    "sm__cycles_active.avg": 1000.0 / 28,
    "sm__cycles_active.max": 1000.0,
    "sm__cycles_elapsed.max": 1000.0,
}
SMALL = replace(DEVICE, sms=28)


def test_rows_of_the_one_warp_at_work_become_warps() -> None:
    """After a softmax of 32 rows in one block of 256 threads: 42x by a warp for each row."""
    context = _context(grid=2, metrics=ALONE, device=SMALL)
    found = block_increase.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert found.cure.startswith("Let a warp take each row, its threads the 4,000 passes of the loop")
    assert found.cure.endswith("32 blocks of 32 threads instead of 2.")
    estimate = block_increase.OPTIMIZER.estimate(context, found)
    assert 16 < estimate.expected < 33  # each has a 32nd of the passes


def test_of_several_warps_at_work_none_is_alone() -> None:
    busy = {**ALONE, "sm__cycles_active.avg": 1000.0}
    assert "blocks of 256 threads instead of 2" in _found(SUMS, grid=2, metrics=busy, device=SMALL)


def test_the_work_of_the_one_warp_that_is_no_row_is_told_without_a_figure() -> None:
    same = SUMS.replace("IMAD R6, R0, c[0x0][0x174], RZ", "MOV R6, RZ")
    found = block_increase.OPTIMIZER.match(_context(same, grid=2, metrics=ALONE, device=SMALL))
    assert isinstance(found, Match)
    assert (found.alone, found.parallel) == (True, None)
