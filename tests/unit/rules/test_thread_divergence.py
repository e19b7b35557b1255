# SPDX-License-Identifier: Apache-2.0
"""GPA109: idle threads of warps, the condition that idles them, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.constants import RUN_TO_RUN
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.lanes import active_share, condition
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.rules.thread_divergence import OPTIMIZER

ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
REQUESTS = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"

BRANCHES = """
    test| ISETP.GE.AND P0, PT, R4, R5, PT // 7
    part| @P0 BRA other // 7
    then| FMUL R8, R8, R9 // 8
    thens| FADD R8, R8, R9 // 8
    BRA end // 8
    other:
    else| FMUL R8, R8, R10 // 10
    elses| FADD R8, R8, R10 // 10
    end:
    after| FADD R8, R8, R11 // 12
    EXIT
"""
PREDICATED = """
    test| ISETP.GE.AND P0, PT, R4, R5, PT // 7
    then| @!P0 FMUL R8, R8, R9 // 8
    thens| @!P0 FADD R8, R8, R9 // 8
    else| @P0 FMUL R8, R8, R10 // 10
    elses| @P0 FADD R8, R8, R10 // 10
    after| FADD R8, R8, R11 // 12
    EXIT
"""


def _context(text: str, metrics: dict[str, float], *, block: int = 256, active: float = 8) -> KernelContext:
    """Both sides of a condition with ``active`` threads of each warp on the first."""
    code = listing(text)
    threads = dict.fromkeys(code.tags, 32e6)
    threads.update({"then": active * 1e6, "thens": active * 1e6})
    threads.update({"else": (32 - active) * 1e6, "elses": (32 - active) * 1e6})
    threads = {tag: count for tag, count in threads.items() if tag in code.tags}
    rows = [Row("wait", tag, 100) for tag in threads if tag not in {"test", "part"}]
    return context_of(
        code,
        rows,
        counts={tag: (1_000_000, int(value)) for tag, value in threads.items()},
        metrics=metrics,
        block=block,
    )


def _match(context: KernelContext) -> Match:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    return found


@pytest.mark.parametrize("text", [BRANCHES, PREDICATED])
def test_the_condition_is_found_behind_branches_and_predicates(text: str) -> None:
    context = _context(text, {ISSUE: 80.0})
    (function,) = context.program.functions
    assert context.profile is not None
    shares = active_share(context.profile, function)
    assert shares is not None
    tags = listing(text).tags
    assert condition(function, tags["then"][1], shares) == tags["test"][1]
    assert condition(function, tags["after"][1], shares) is None
    assert "behind the condition at kernel.cu:7" in _match(context).advice


def test_the_busy_unit_sets_the_gain() -> None:
    # Two of seven instructions are idle by 3/4: 0.21 of the issue slots, of which half to all go.
    estimate = OPTIMIZER.estimate(*_pair(_context(BRANCHES, {ISSUE: 100.0})))
    assert estimate.low == pytest.approx((1 - RUN_TO_RUN) / (1 - 0.5 * 1.5 / 7), rel=0.02)
    assert estimate.high == pytest.approx((1 + RUN_TO_RUN) / (1 - 1.5 / 7), rel=0.02)


def test_what_a_predicate_idles_is_issued_for_no_thread_too() -> None:
    """As in Rodinia's backprop, whose predicates stay where all threads of a warp agree: no slot is saved."""
    estimate = OPTIMIZER.estimate(*_pair(_context(PREDICATED, {ISSUE: 100.0})))
    assert estimate.low == pytest.approx(1 - RUN_TO_RUN)
    assert estimate.expected == pytest.approx(1.0)
    assert estimate.high == pytest.approx((1 + RUN_TO_RUN) / (1 - 1.5 / 6), rel=0.02)  # with a branch instead


@pytest.mark.parametrize("text", [BRANCHES, PREDICATED])
def test_blocks_that_overhang_issue_nothing_once_they_are_gone(text: str) -> None:
    """Where warps go as a whole, so does what stands under a predicate."""
    index = """
        S2R R4, SR_TID.X // 6
        S2R R6, SR_CTAID.X // 6
        IMAD R4, R6, c[0x0][0x0], R4 // 6
    """
    context = _in_rows(_context(index + text.replace("R4, R5", "R4, c[0x0][0x170]"), {ISSUE: 100.0}))
    match = _match(context)
    assert "divide" in match.cure
    assert OPTIMIZER.estimate(context, match).expected > 1.1


def _pair(context: KernelContext) -> tuple[KernelContext, Match]:
    return context, _match(context)


def test_a_limit_elsewhere_leaves_nothing_to_gain() -> None:
    estimate = OPTIMIZER.estimate(*_pair(_context(PREDICATED, {ISSUE: 40.0, DRAM: 93.0})))
    assert estimate.high == pytest.approx(1 + RUN_TO_RUN)


@pytest.mark.parametrize(("percent", "told"), [(30.0, False), (59.9, False), (60.0, True)])
def test_predicated_code_costs_nothing_while_no_unit_is_busy(percent: float, told: bool) -> None:
    """From 60 % on Nsight Compute calls a unit one that limits."""
    assert isinstance(OPTIMIZER.match(_context(PREDICATED, {ISSUE: percent})), Match) is told


def test_a_block_of_one_warp_has_no_other_that_could_skip_the_code() -> None:
    """As in Rodinia's lud, whose blocks are 16 threads: which of them are neighbours makes no difference."""
    found = OPTIMIZER.match(_context(BRANCHES, {ISSUE: 30.0}, block=32))
    assert isinstance(found, Rejection)
    assert "a block is one warp" in found.reason


DIVIDED = """
    I2F.U32.RP R0, R7 // 5
    MUFU.RCP R0, R0 // 5
    IADD3 R2, R0, 0xffffffe, RZ // 5
    F2I.FTZ.U32.TRUNC.NTZ R3, R2 // 5
    IMAD.MOV.U32 R2, RZ, RZ, RZ // 5
    IMAD R5, R3, R7, RZ // 5
    IMAD.HI.U32 R3, R3, R5, R2 // 5
    IMAD.HI.U32 R3, R3, R4, RZ // 5
    IMAD R4, R3, R7, R4 // 5
    ISETP.GE.U32.AND P0, PT, R4, R7, PT // 5
    then| @P0 IADD3 R4, R4, -R7, RZ // 5
    thens| @P0 IADD3 R3, R3, 0x1, RZ // 5
    after| FADD R8, R8, R3 // 12
    EXIT
"""


def test_the_corrections_of_a_division_are_nobodys_idle_threads() -> None:
    """As in Rodinia's backprop: every thread executes them, few with a predicate that is set."""
    found = OPTIMIZER.match(_context(DIVIDED, {ISSUE: 100.0}))
    assert isinstance(found, Rejection)
    assert "no instruction has idle threads by a condition of its own" in found.reason


def test_branches_cost_their_samples_while_no_unit_is_full() -> None:
    context = _context(BRANCHES, {ISSUE: 30.0})
    found = _match(context)
    assert found.measured_bound is None
    estimate = OPTIMIZER.estimate(context, found)
    # 200 of 500 samples stand where 3/4 of the threads are idle.
    assert estimate.expected == pytest.approx(500 / (500 - 200 * 0.75 * 0.75), rel=0.03)


ONE_SIDE = """
    S2R R0, SR_TID.X // 5
    LOP3.LUT R4, R0, 0x7, RZ, 0xc0, !PT // 6
    test| ISETP.NE.AND P0, PT, R4, RZ, PT // 7
    @P0 BRA end // 7
    then| FMUL R8, R8, R9 // 8
    thens| FADD R8, R8, R9 // 8
    end:
    after| FADD R8, R8, R11 // 12
    EXIT
"""


def test_warps_that_wait_at_the_same_time_are_done_no_earlier_where_they_are_fewer() -> None:
    """As in HeCBench's jaccard: one thread in eight works, and with these in one warp it took longer."""
    found = OPTIMIZER.match(_context(ONE_SIDE, {ISSUE: 30.0}, active=4))
    assert isinstance(found, Rejection)
    assert "wait there at the same time" in found.reason
    assert isinstance(OPTIMIZER.match(_context(ONE_SIDE, {ISSUE: 80.0}, active=4)), Match)


def test_of_two_sides_a_warp_goes_through_both() -> None:
    text = BRANCHES.replace("R4, R5, PT // 7", "R4, 0x1, PT // 7")
    numbers = "S2R R0, SR_TID.X\nLOP3.LUT R4, R0, 0x1, RZ, 0xc0, !PT\n"
    assert isinstance(OPTIMIZER.match(_context(numbers + text, {ISSUE: 30.0}, active=16)), Match)


def test_short_blocks_are_no_divergence() -> None:
    found = OPTIMIZER.match(_context(BRANCHES, {ISSUE: 80.0}, block=8, active=8))
    assert isinstance(found, Rejection)
    assert "no instruction has idle threads" in found.reason


def test_idle_shared_accesses_free_the_data_stage() -> None:
    text = """
        test| ISETP.GE.AND P0, PT, R4, R5, PT // 7
        @P0 BRA end // 7
        load| LDS R8, [R9] // 8
        end:
        after| FADD R8, R8, R11 // 12
        EXIT
    """
    passes = "l1tex__data_pipe_lsu_wavefronts"
    context = context_of(
        listing(text),
        [Row("mio_throttle", "load", 300, 200), Row("selected", "after", 100)],
        counts={"test": (1000, 32000), "load": (1000, 4000), "after": (1000, 32000)},
        metrics={
            f"{passes}.avg.pct_of_peak_sustained_elapsed": 90.0,
            f"{passes}_mem_shared.sum": 1000.0,
            f"{passes}_mem_shared.sum.pct_of_peak_sustained_elapsed": 90.0,
            REQUESTS: 50.0,
        },
    )
    found = _match(context)
    left = {reduced.resource: reduced.remaining for reduced in found.reduced_loads}
    assert left["L1 data"] == pytest.approx(1 - 0.75 * 28 / 32)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("LOP3.LUT R4, R0, 0x1, RZ, 0xc0, !PT\nMOV R5, 0x1", "Let the active threads be neighbours, so"),
        ("MOV R4, R0\nMOV R5, 0x8", "Share the work there among all threads of the block"),
        ("IMAD.WIDE R6, R0, 0x4, R2\nLDG.E R4, [R6.64]\nMOV R5, 0x8", "Sort or queue what is left to do"),
        (
            "F2I R4, R0\nMOV R5, 0x8",
            "Let the active threads be neighbours, so that whole warps skip the code.",
        ),
    ],
)
def test_the_cure_goes_by_what_parts_the_threads(before: str, words: str) -> None:
    text = f"S2R R0, SR_TID.X\n{before}\n{BRANCHES}"
    assert words in _match(_context(text, {ISSUE: 80.0})).cure


def test_a_comparison_of_computed_numbers_goes_by_the_data() -> None:
    text = BRANCHES.replace("ISETP.GE.AND P0, PT, R4, R5, PT", "DSETP.GEU.AND P0, PT, R4, R6, PT")
    assert "the data decide which threads go on" in _match(_context(text, {ISSUE: 80.0})).cure


@pytest.mark.parametrize(
    ("warps", "words"),
    [
        (400_000, "Share the work there among all threads of the block"),
        (1_000_000, "Let the active threads be neighbours"),
    ],
)
def test_what_the_code_does_not_tell_the_counts_do(warps: int, words: str) -> None:
    """As many threads in fewer than half of the warps are neighbours already."""
    code = listing(f"F2I R4, R0\n{BRANCHES}")
    all_of = dict.fromkeys(code.tags, (1_000_000, 32_000_000))
    few = dict.fromkeys(("then", "thens"), (warps, 3_200_000))
    context = context_of(
        code,
        [Row("wait", tag, 100) for tag in ("then", "thens", "after")],
        counts={**all_of, **few, "else": (1_000_000, 28_800_000), "elses": (1_000_000, 28_800_000)},
        metrics={ISSUE: 80.0},
    )
    assert words in _match(context).cure


LEVELS = """
    S2R R0, SR_TID.X
    MOV R1, {start}
    again:
    {level}
    test| ISETP.GE.U32.AND P0, PT, R4, R5, PT // 7
    then| @!P0 FADD R8, R8, R9 // 8
    thens| @!P0 FADD R8, R8, R9 // 8
    BAR.SYNC 0x0 // 9
    MOV R1, R2
    after| ISETP.NE.AND P1, PT, R1, RZ, PT
    @P1 BRA again
    EXIT
"""


@pytest.mark.parametrize(
    ("level", "neighbours"),
    [
        ("SHF.R.U32.HI R2, RZ, 0x1, R1\nMOV R4, R0\nMOV R5, R2", False),  # thread < distance
        ("MOV R7, R1\nSHF.R.U32.HI R8, RZ, 0x1, R7\nMOV R2, R8\nMOV R4, R0\nMOV R5, R2", False),  # -G
        ("IMAD.SHL R2, R1, 0x2, RZ\nIMAD R4, R0, R2, RZ\nMOV R5, 0x100", False),  # 2 * distance * thread < n
        ("IMAD.SHL R2, R1, 0x2, RZ\nLOP3.LUT R4, R0, 0x1, RZ, 0xc0, !PT\nMOV R5, 0x1", True),
    ],
)
def test_a_tree_by_levels_ends_in_one_warp(level: str, neighbours: bool) -> None:
    found = _match(_context(LEVELS.format(start="0x100", level=level), {ISSUE: 80.0}, active=4))
    assert "eave the last steps to one warp and its shuffles" in found.cure
    assert ("Let the active threads be neighbours" in found.cure) is neighbours


@pytest.mark.parametrize(
    ("count", "words"), [("R0", "different numbers of passes"), ("R6", "whole warps skip the code")]
)
def test_threads_that_leave_a_loop_one_by_one(count: str, words: str) -> None:
    """Where all threads load the same count, a condition keeps the others out of the loop."""
    text = f"""
        S2R R0, SR_TID.X
        ISETP.GT.AND P2, PT, R0, R6, PT // 5
        @!P2 EXIT // 5
        IMAD R2, {count}, 0x4, R10
        LDG.E R4, [R2]
        after| MOV R5, RZ // 6
        again:
        then| FADD R8, R8, R9 // 8
        thens| IADD3 R5, R5, 0x1, RZ // 7
        ISETP.LT.AND P0, PT, R5, R4, PT // 7
        @P0 BRA again // 7
        EXIT
    """
    found = _match(_context(text, {ISSUE: 80.0}, active=6))
    assert words in found.cure


EXITS = """
    after| MOV R5, RZ // 6
    again:
    then| LDG.E R4, [R2.64] // 7
    thens| FADD R8, R8, R4 // 7
    FSETP.GT.AND P0, PT, R8, R9, PT // 8
    @P0 BRA out // 8
    IADD3 R5, R5, 0x1, RZ // 6
    ISETP.LT.AND P1, PT, R5, R7, PT // 6
    @P1 BRA again // 6
    out:
    EXIT
"""


@pytest.mark.parametrize(
    ("issue", "store", "words"),
    [
        (30.0, "", "Test every n-th pass only, with the loads of n passes in flight"),
        (
            30.0,
            "STG.E [R2.64], R8 // 8",
            "Have the loads of n passes in flight before the first of them is tested",
        ),
        (
            80.0,
            "",
            "Let a thread that is done take its next item",
        ),  # more loads than needed cost what is scarce
    ],
)
def test_a_loop_that_the_data_end_is_not_one_of_different_lengths(
    issue: float, store: str, words: str
) -> None:
    code = listing(EXITS.replace("IADD3 R5", f"{store}\nIADD3 R5"))
    rows = [
        Row("long_scoreboard", "thens", 300, 250, due_to="then", kind=DependencyClass.GLOBAL_MEMORY),
        Row("selected", "after", 100),
    ]
    counts = {"after": (1_000_000, 32_000_000), "then": (10_000_000, 60_000_000)}
    counts["thens"] = counts["then"]
    found = _match(context_of(code, rows, counts=counts, metrics={ISSUE: issue}))
    assert words in found.cure
    assert "sort" not in found.cure.lower()
    assert ("comparison at kernel.cu:8" in found.advice) is (issue < 60)


def test_atomics_of_few_threads_are_no_idle_ones() -> None:
    text = BRANCHES.replace("thens| FADD R8, R8, R9", "thens| RED.E.ADD.STRONG.GPU [R6.64], R8")
    context = _context(text, {ISSUE: 80.0})
    found = _match(context)
    (atomic,) = [
        at for at, one in enumerate(context.program.functions[0].instructions) if one.opcode == "RED"
    ]
    assert context.blame is not None
    defs = context.blame.rows.use_index
    assert atomic not in {int(defs[row]) for region in found.regions for row in region.rows.tolist()}


SLOW_DIVISION = """
    .function kernel
    test| FMUL R8, R8, R9 // 7
    part| @P0 BRA over // 7
    then| MOV R10, R4 // 7
    thens| CALL.REL.NOINC $kernel$__cuda_sm3x_div_rn_noftz_f32_slowpath // 7
    else| MOV R11, R4 // 7
    over:
    after| FADD R8, R8, R11 // 12
    EXIT
    .function $kernel$__cuda_sm3x_div_rn_noftz_f32_slowpath math_helper
    elses| FMUL R4, R4, R5 // 12
    RET.REL.NODEC R2 0x0
"""


def test_who_needs_the_rare_path_of_a_division_is_nobodys_to_arrange() -> None:
    context = _context(SLOW_DIVISION, {}, active=4)
    assert isinstance(
        OPTIMIZER.match(_context(SLOW_DIVISION.replace("math_helper", "device"), {}, active=4)), Match
    )
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection)


STORED_BY_FEW = """
    S2R R0, SR_TID.X // 3
    S2R R1, SR_CTAID.X // 3
    IMAD R2, R1, 0x20, R0 // 3
    start| MOV R8, RZ // 4
    MOV R5, RZ // 4
    again:
    load| LDG.E R7, [R10.64] // 6
    {inside}
    sum| FFMA R8, R7, R7, R8 // 6
    step| IADD3 R5, R5, 0x1, RZ // 5
    ISETP.LT.AND P1, PT, R5, c[0x0][0x160], PT // 5
    back| @P1 BRA again // 5
    {test} // 8
    leave| @P0 EXIT // 8
    store| STG.E [R12.64], R8 // 9
    EXIT
"""
BEYOND = "ISETP.GE.AND P0, PT, R2, c[0x0][0x164], PT"


def _stored_by_few(test: str = BEYOND, inside: str = "") -> KernelContext:
    """All 32e6 threads run ten passes; 7.2e6 of a quarter of the warps come to the store."""
    code = listing(STORED_BY_FEW.format(inside=inside, test=test))
    counts = dict.fromkeys(("load", "sum", "step", "back"), (10_000_000, 320_000_000))
    counts |= {"start": (10**6, 32 * 10**6), "leave": (10**6, 32 * 10**6), "store": (250_000, 7_200_000)}
    rows = [Row("wait", tag, 100) for tag in ("load", "sum", "step")]
    return _in_rows(context_of(code, rows, counts=counts, metrics={ISSUE: 80.0}, block=32))


def _in_rows(context: KernelContext) -> KernelContext:
    """The same blocks, as rows of 64."""
    assert context.profile is not None
    launch = replace(context.profile.launch, grid=(64, 64, 1))
    return replace(context, profile=replace(context.profile, launch=launch))


def test_what_few_threads_store_is_computed_for_nothing_by_the_others() -> None:
    """As in a convolution whose blocks of 32 x 32 overhang its rows, with the condition behind the loop."""
    context = _stored_by_few()
    found = _match(context)
    assert found.cure == (
        "Let the sides of the blocks divide the results, or number these along one index; put the condition "
        "of the store around the loop, too. 22 % of the threads store a result: blocks of 32 overhang."
    )
    assert "computed at kernel.cu:6, and the store is at kernel.cu:9" in found.advice
    # Of all but the condition and the store, a quarter stays by whole warps, and 0.225 by threads.
    estimate = OPTIMIZER.estimate(context, found)
    every, loop, store = 42.25, 41.0, 0.75
    low, high = every - loop * store, every - loop * (1 - 0.225)
    assert estimate.low == pytest.approx((1 - RUN_TO_RUN) / (0.8 * low / every + 0.2), rel=0.02)
    assert estimate.high == pytest.approx((1 + RUN_TO_RUN) * every / high, rel=0.02)


@pytest.mark.parametrize(
    ("test", "inside", "why"),
    [
        (BEYOND, "SHFL.BFLY PT, R9, R8, 0x1, 0x1f", "other threads use it"),
        (BEYOND, "STS [R9], R8\nBAR.SYNC 0x0", "shared memory may be read by others"),
        ("FSETP.GT.AND P0, PT, R8, c[0x0][0x164], PT", "", "the condition needs the sum"),
    ],
)
def test_what_others_need_is_not_thrown_away(test: str, inside: str, why: str) -> None:
    found = OPTIMIZER.match(_stored_by_few(test, inside))
    assert isinstance(found, Rejection) or "results" not in found.title, why


def test_threads_that_a_block_has_for_loading_alone() -> None:
    """As in a convolution of blocks of 22 x 22 that load a tile for 16 x 16 results."""
    tile = "STS [R9], R6\nBAR.SYNC 0x0 // 5\nLDS R7, [R9+0x40] // 6"
    found = _match(_stored_by_few("ISETP.GT.AND P0, PT, R0, 0x7, PT", tile))
    assert "Let a block have as many threads as results" in found.cure
    assert "the store around the loop, too, without the barriers" in found.cure


OVERHANGING = """
    S2R R0, SR_TID.X
    S2R R1, SR_CTAID.X
    IMAD R2, R1, 0x20, R0
    ISETP.GE.AND P0, PT, R1, c[0x0][0x164], PT // 6
    test| ISETP.GE.OR P0, PT, R2, c[0x0][0x160], P0 // 7
    part| @P0 EXIT // 7
    then| FMUL R8, R8, R9 // 8
    thens| RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R6.64], R8 // 8
    EXIT
"""


def test_a_few_simulated_blocks_do_not_tell_how_much_overhangs() -> None:
    """As of 16 blocks for 50 x 50 results, of which the one that was simulated lay at the edge."""
    overhanging = _context(OVERHANGING, {ISSUE: 80.0}, active=16, block=32)
    for context in (_stored_by_few(), _in_rows(overhanging)):
        simulated = replace(context, evidence=Evidence.MODELLED)
        assert "overhang" in _match(simulated).cure
        assert context.profile is not None
        profile = replace(context.profile, launch=replace(context.profile.launch, grid=(4, 4, 1)))
        assert "overhang" in _match(replace(context, profile=profile)).cure
        few = OPTIMIZER.match(replace(simulated, profile=profile))
        assert isinstance(few, Rejection) or "overhang" not in few.cure


def test_an_index_of_the_grid_beyond_the_end_is_a_block_that_overhangs() -> None:
    flat = _context(OVERHANGING, {ISSUE: 80.0}, active=16, block=32)
    assert isinstance(OPTIMIZER.match(flat), Rejection)  # nothing but a grid that is too large
    found = _match(_in_rows(flat))
    assert "number that along one index: blocks of 32 overhang it" in found.cure
    assert "behind the condition at kernel.cu:7" in found.advice


def test_the_edge_of_a_tile_that_comes_from_global_memory() -> None:
    """As in a convolution that loads its tile without the halo."""
    text = BRANCHES
    for line, other in {
        "then| FMUL R8, R8, R9": "then| LDG.E R8, [R2.64]",
        "thens| FADD R8, R8, R9": "thens| NOP",
        "else| FMUL R8, R8, R10": "else| LDS R8, [R9]",
        "elses| FADD R8, R8, R10": "elses| NOP",
    }.items():
        text = text.replace(line, other)
    cure = _match(_context(text, {ISSUE: 80.0}, active=6)).cure
    assert cure.startswith("Load the edge of the tile with it")


def test_a_condition_of_a_library_is_not_the_callers_to_arrange() -> None:
    """As in curand_init, which skips ahead by the bits of each thread's number."""
    header = SourceLocation("/usr/local/cuda/include/curand_kernel.h", 240)
    context = _context(BRANCHES, {ISSUE: 80.0})
    (function,) = context.program.functions
    lines = tuple(None if one is None else replace(one, library=(header,)) for one in function.lines)
    inside = replace(context.program, functions=(replace(function, lines=lines),))
    assert isinstance(OPTIMIZER.match(replace(context, program=inside)), Rejection)
    calls = [index for index, one in enumerate(function.instructions) if one.opcode in {"FMUL", "FADD"}]
    lines = tuple(lines[at] if at in calls else one for at, one in enumerate(function.lines))
    called = replace(context.program, functions=(replace(function, lines=lines),))
    assert isinstance(OPTIMIZER.match(replace(context, program=called)), Match)


TOO_LARGE = """
    start| S2R R0, SR_TID.X // 4
    S2R R1, SR_CTAID.X // 4
    index| IMAD R2, R1, 0x20, R0 // 4
    {flag}
    test| ISETP.GE.AND P0, PT, R2, {end}, PT // 7
    sum| @!P0 FFMA R8, R9, R9, R8 // 8
    store| @!P0 STG.E [R12.64], R8 // 8
    EXIT
"""


def _too_large(
    storing: int, issue: float = 80.0, flag: str = "", end: str = "c[0x0][0x164]"
) -> KernelContext:
    """Of 32e6 threads in 1e6 warps, as many as given have an element."""
    code = listing(TOO_LARGE.format(flag=flag, end=end))
    counts = dict.fromkeys(("start", "index", "test", "sum"), (10**6, 32 * 10**6))
    rows = [Row("wait", tag, 100) for tag in ("start", "index", "test")]
    counts["store"] = 10**6, storing
    return _in_rows(context_of(code, rows, counts=counts, metrics={ISSUE: issue}, block=32))


def test_a_grid_of_many_more_threads_than_elements() -> None:
    """As in a signal of 35,000 values for which 547 x 547 blocks of 32 x 32 are launched."""
    context = _too_large(1_600_000)
    found = _match(context)
    assert found.title == "most threads of the grid have no element"
    assert found.cure == (
        "Launch no more threads than there are elements: 5 % of 131,072 threads store anything."
    )
    assert "beyond the end at kernel.cu:7, before the store at kernel.cu:8" in found.advice
    estimate = OPTIMIZER.estimate(context, found)
    assert 1.5 < estimate.low < estimate.expected < estimate.high <= 1 / 0.05


@pytest.mark.parametrize(
    ("context", "why"),
    [
        (_too_large(16_000_000), "half of the threads have an element"),
        (_too_large(1_600_000, issue=20.0), "no unit is busy with the others"),
        (_too_large(1_600_000, flag="LDG.E R3, [R4.64]", end="R3"), "what is loaded decides"),
    ],
)
def test_a_grid_that_need_not_be_smaller(context: KernelContext, why: str) -> None:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection) or "grid" not in found.title, why
