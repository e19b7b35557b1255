# SPDX-License-Identifier: Apache-2.0
"""Barriers that protect nothing, and barriers at the levels of a tree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.estimators.barrier_words import in_all_uses
from gpadvisor.estimators.utilisation import ISSUE, L1_REQUESTS
from gpadvisor.evidence.barriers import Needless, needless_barriers, needless_in
from gpadvisor.evidence.trees import tree_barriers
from gpadvisor.model.advice import Match, Rejection, StaticSite
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.profile import Evidence
from gpadvisor.rules import thread_divergence, warp_balance

EITHER_WAY = """LDG.E R0, [R6.64]
STS [R9], R0
BAR.SYNC 0x0
@P0 BRA other
{left}
BRA join
other:
FADD R1, R1, R2
join:
BAR.SYNC 0x0
LDS R4, [R8]
EXIT"""

OF_THREADS = (
    "S2R R1, SR_TID.X\nSHF.R.U32.HI R2, RZ, 0x1, R1\nIMAD.SHL.U32 R9, R1, 0x4, RZ\n"
    "IMAD.SHL.U32 R10, {of}, 0x4, RZ\n"
) + EITHER_WAY.format(left="STS [R10], R0")

LOOP = """STS [R9], R0
again:
{first}
BAR.SYNC 0x0
IADD3 R3, R3, -0x1, RZ
ISETP.NE.AND P0, PT, R3, RZ, PT
@P0 BRA again
EXIT"""

HALVED = "SHF.R.U32.HI R9, RZ, 0x1, R9"
DOWN = "IMAD.SHL.U32 R9, R9, 0x2, RZ\nSHF.R.S32.HI R12, RZ, 0x1, R12"
TREE = """again:
ISETP.GE.U32.AND P0, PT, R4, R9, PT
@P0 BRA skip
LDS R7, [R5]
FADD R8, R8, R7
STS [R4], R8
skip:
BAR.SYNC 0x0
ISETP.GT.U32.AND P1, PT, R9, 0x1, PT
{step}
@P1 BRA again
EXIT"""


def _level(bound: int) -> str:
    return (
        f"ISETP.GT.AND P0, PT, R0, 0x{bound - 1:x}, PT\n@!P0 LDS R7, [R5]\n@!P0 FADD R8, R8, R7\n"
        "@!P0 STS [R4], R8\nBAR.SYNC 0x0\n"
    )


NOTHING, STORES = Needless.NOTHING_SHARED, Needless.ONLY_STORES
BOTH = "STS [R9], R0\nBAR.SYNC 0x0\nBAR.SYNC 0x0\nLDS R4, [R8]\n"


@pytest.mark.parametrize(
    ("text", "needless"),
    [
        (EITHER_WAY.format(left="FMUL R1, R1, R2"), {7: NOTHING}),
        (EITHER_WAY.format(left="STS [R10], R0"), {2: STORES}),  # one path writes, and nobody has read yet
        (OF_THREADS.format(of="R1"), {6: STORES}),
        (OF_THREADS.format(of="R2"), {}),  # a place of two threads each, as that of a warp's sum
        (EITHER_WAY.format(left="STS [R10], RZ"), {}),  # first values, for other threads to write over
        (EITHER_WAY.format(left="LDS R1, [R10]"), {7: NOTHING}),  # both sides of the second one read
        (EITHER_WAY.format(left="LDG.E R1, [R2.64]"), {7: NOTHING}),
        (EITHER_WAY.format(left="MEMBAR.SC.GPU"), {}),
        (EITHER_WAY.format(left="LDGSTS.E [R2], [R4.64]"), {}),
        (EITHER_WAY.format(left="ATOMS.ADD R1, [R2], R3"), {}),
        (EITHER_WAY.format(left="HGMMA.64x8x16.F32 R24, gdesc[UR4], R24"), {}),  # reads shared memory later
        (EITHER_WAY.format(left="CS2R R2, SR_CLOCKLO"), {}),  # a measurement begins
        (EITHER_WAY.format(left="S2UR UR4, SR_GLOBALTIMERLO"), {}),
        (LOOP.format(first="LDS R1, [R2]\nSTS [R3], R1"), {}),
        (LOOP.format(first="LDS R1, [R2]\nBAR.SYNC 0x0\nSTS [R3], R1"), {}),
        (LOOP.format(first="LDS R1, [R2]\nBAR.SYNC 0x0\nBAR.SYNC 0x0\nSTS [R3], R1"), {3: NOTHING}),
        ("STS [R9], R0\nBAR.SYNC 0x0\nLDS R4, [R8]\nBAR.SYNC 0x0\nSTG.E [R2.64], R4\nEXIT", {3: NOTHING}),
        ("LDG.E R0, [R2.64]\nBAR.SYNC 0x0\nSTG.E [R2.64], R4\nEXIT", {}),  # in place
        ("LDG.E.CONSTANT R0, [R2.64]\nBAR.SYNC 0x0\nSTG.E [R2.64], R4\nEXIT", {1: NOTHING}),
        ("LDS R0, [R2]\nBAR.SYNC 0x0\nST.E [R4.64], R4\nEXIT", {}),  # a generic store may be to shared memory
        ("BAR.SYNC 0x0\nBAR.SYNC 0x1\nEXIT", {}),  # another barrier
        ("BAR.SYNC 0x0\nBAR.RED.POPC.DEFER_BLOCKING 0x0, P0\nEXIT", {}),
        ("LDS R4, [R8]\n@!P0 BAR.SYNC 0x0\n@!P0 BRA away\nBAR.SYNC 0x0\naway:\nEXIT", {}),  # one or the other
        ("BAR.SYNC 0x0\n@!P0 BAR.SYNC 0x0\nBAR.SYNC 0x0\nEXIT", {}),
        (f"{BOTH}EXIT", {2: NOTHING}),
        ("LDG.E R0, [R2.64]\nBAR.SYNC 0x0\nLDS R4, [R8]\nBAR.SYNC 0x0\nEXIT", {}),  # the stores are missing
    ],
)
def test_barriers_that_protect_nothing(text: str, needless: dict[int, Needless]) -> None:
    (function,) = listing(text).program.functions
    assert needless_in(function) == needless


@pytest.mark.parametrize(
    ("condition", "aligned"),
    [
        ("S2R R0, SR_TID.X\nISETP.GT.AND P0, PT, R0, 0x1f, PT", False),
        ("S2R R0, SR_LANEID\nIMAD R1, R0, R0, R2\nISETP.GT.AND P0, PT, R1, 0x1f, PT", False),
        ("LDS R0, [R1]\nISETP.GT.AND P0, PT, R0, 0x1f, PT", False),
        ("S2R R0, SR_TID.X\nR2UR UR4, R0\nISETP.GT.AND P0, PT, RZ, UR4, PT", False),
        ("S2R R0, SR_CTAID.X\nISETP.GT.AND P0, PT, R0, 0x1f, PT", True),
        ("ISETP.GT.AND P0, PT, RZ, c[0x0][0x160], PT", True),
    ],
)
def test_where_warps_part_nothing_is_needless(condition: str, aligned: bool) -> None:
    text = f"{condition}\n@P0 BRA other\n{BOTH}BRA join\nother:\nLDS R5, [R8]\nBAR.SYNC 0x0\njoin:\nEXIT"
    (function,) = listing(text).program.functions
    assert bool(needless_in(function)) is aligned


def test_a_barrier_of_a_librarys_template_is_not_its_users() -> None:
    program = listing(f".function cub::scan_kernel\n{BOTH}EXIT\n.function scan\n{BOTH}EXIT").program
    assert {program.functions[function].name for function, _ in needless_barriers(program)} == {"scan"}


def test_threads_that_leave_part_from_nobody() -> None:
    text = f"S2R R0, SR_TID.X\nISETP.GE.AND P0, PT, R0, 0x63, PT\n@P0 EXIT\n{BOTH}EXIT"
    (function,) = listing(text).program.functions
    assert needless_in(function) == {5: NOTHING}


@pytest.mark.parametrize(("between", "found"), [("FADD R1, R1, R2", 2), ("LDS R4, [R8]\nSTS [R5], R4", 0)])
def test_a_line_goes_only_if_no_other_kernel_needs_it(between: str, found: int) -> None:
    body = "STS [R9], R0 // 4\nBAR.SYNC 0x0 // 5\n{between} // 6\nBAR.SYNC 0x0 // 7\nLDS R4, [R8] // 8\nEXIT"
    lines = "\n".join(f"{line} // 6" for line in between.splitlines())
    second = body.replace("{between} // 6", lines)
    text = f".function small\n{body.replace('{between}', 'FADD R1, R1, R2')}\n.function large\n{second}"
    assert len(needless_barriers(listing(text).program)) == found


_INLINED = "STS [R9], R0 // 4\nBAR.SYNC 0x0 // 5 in add\n{behind} // 6\nEXIT"


@pytest.mark.parametrize(("behind", "found"), [("STG.E [R2.64], R4", 1), ("LDS R4, [R8]", 0)])
def test_a_line_of_an_inlined_function_goes_only_if_all_code_with_it_allows(behind: str, found: int) -> None:
    alone = listing(_INLINED.format(behind="STG.E [R2.64], R4")).program
    other = listing(f".function other\n{_INLINED.format(behind=behind)}").program
    assert not needless_barriers(alone, None)  # nobody has looked at who else has it
    assert len(needless_barriers(alone, (other,))) == found


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (TREE.format(step=HALVED), 1),
        (TREE.format(step="IMAD.SHL.U32 R9, R9, 0x2, RZ"), 1),
        (TREE.format(step="IADD3 R9, R9, -0x1, RZ"), 0),  # a loop over tiles
        (TREE.format(step=HALVED).replace("STS [R4], R8", "FADD R7, R7, R7"), 0),
        (TREE.format(step=HALVED).replace("FADD R8, R8, R7", "SEL R8, R8, R7, P2"), 0),  # a sort
        (TREE.format(step=HALVED).replace("@P0 BRA skip", "NOP"), 0),  # a butterfly: every thread stores
        (TREE.format(step=HALVED).replace("@P0 BRA skip", "LDS R8, [R4]"), 1),  # a scan: two loads, one store
        (TREE.format(step=HALVED).replace("R9, 0x1, PT", "R9, 0x83, PT"), 0),  # one warp does the rest
        (TREE.format(step=DOWN).replace("R9, 0x1, PT", "R9, 0x100, PT"), 1),  # the bound rises to all threads
        ("".join(_level(bound) for bound in (128, 64, 32, 16, 8)) + "EXIT", 3),
        ("".join(_level(bound).replace("FADD", "IMNMX") for bound in (128, 64, 32, 16)) + "EXIT", 0),
        ("".join(_level(bound) for bound in (128, 64)) + "EXIT", 0),
        ("".join(_level(bound) for bound in (16, 16, 16, 16)) + "EXIT", 0),
        ("".join(_level(bound) for bound in (1024, 256, 32, 16)) + "EXIT", 0),  # bounds of other things
        ("".join(_level(bound) for bound in (128, 64, 32)).replace(".GT.", ".GE.") + "EXIT", 0),
    ],
)
def test_trees_over_the_whole_block(text: str, levels: int) -> None:
    (function,) = listing(text).program.functions
    assert len(tree_barriers(function)) == levels


TAGGED = (
    TREE.format(step=HALVED)
    .replace("LDS R7", "load| LDS R7")
    .replace("BAR.SYNC", "barrier| BAR.SYNC")
    .replace("EXIT", "end| EXIT")
)


@pytest.mark.parametrize(("block", "levels"), [(64, 1), (256, 3), (1024, 5)])
def test_a_tree_takes_every_stall_of_its_levels_within_a_warp(block: int, levels: int) -> None:
    rows = [
        Row("barrier", "barrier", 300, 200),
        Row("short_scoreboard", "load", 200, 150),
        Row("selected", "end", 100),
    ]
    context = context_of(listing(TAGGED), rows, block=block)
    found = warp_balance.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert sum(len(region.rows) for region in found.regions) == 2  # all of the loop, nothing behind it
    (part,) = found.adjustments
    all_levels, warps = levels + 5, block // 32
    assert part.low == pytest.approx(1 - (levels + 5 / warps) / all_levels)
    assert part.low < part.expected < part.high == pytest.approx(1 - 1 / all_levels)
    assert f"of {all_levels:.0f} levels of the tree 5 fit in a warp" in part.reason
    assert "shuffles (__shfl_down_sync()" in found.advice


@pytest.mark.parametrize(
    ("arch", "fast"), [("sm_75", False), ("sm_80", True), ("sm_86", False), ("sm_90", True)]
)
@pytest.mark.parametrize("text", [TAGGED, "".join(map(_level, (128, 64, 32, 16, 8))) + "end| EXIT"])
def test_shuffles_replace_a_tree_of_doubles_only_where_doubles_are_fast(
    text: str, arch: str, fast: bool
) -> None:
    """Four sums of a field simulate at 0.4x by shuffles on a GeForce, where all warps add."""
    rows = [Row("barrier", "barrier", 300, 200), Row("selected", "end", 100)]
    for addition, told in (("DADD", fast), ("FADD", True)):
        code = listing(text.replace("FADD", addition), arch)
        for samples in (None, *([rows] if text is TAGGED else [])):
            found = warp_balance.OPTIMIZER.match(context_of(code, samples))
            assert (isinstance(found, Match) and "shuffles" in found.cure) is told


def test_a_tree_frees_the_load_store_unit_by_what_it_no_longer_executes() -> None:
    rows = [Row("barrier", "barrier", 300, 200), Row("selected", "end", 100)]
    counts = {"load": (900, 28800), "end": (100, 3200), "barrier": (900, 28800)}
    context = context_of(listing(TAGGED), rows, counts=counts)
    found = warp_balance.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    left = {reduced.resource: reduced.remaining for reduced in found.reduced_loads}
    (part,) = found.adjustments
    assert left[L1_REQUESTS] == pytest.approx(1 - part.expected)
    assert left[ISSUE] > left[L1_REQUESTS]  # what is executed behind the tree stays


_MASKED = "IADD3 R6, R9, -0x1, RZ\nLOP3.LUT P0, RZ, R4, R6, RZ, 0xc0, !PT"
_DIVIDED = (
    "I2F.U32.RP R6, R9\nMUFU.RCP R6, R6\nF2I.FTZ.U32.TRUNC.NTZ R6, R6\nIMAD.HI.U32 R6, R6, R4, RZ\n"
    "IMAD R6, R9, R6, R4\nISETP.NE.AND P0, PT, R6, RZ, PT"
)


@pytest.mark.parametrize(
    ("test", "apart"),
    [
        (_MASKED, True),
        (_DIVIDED, True),
        ("ISETP.GE.U32.AND P0, PT, R4, R9, PT", False),
        ("LOP3.LUT R6, R4, 0x1f, RZ, 0xc0, !PT\nISETP.NE.AND P0, PT, R6, RZ, PT", False),  # a lane
    ],
)
@pytest.mark.parametrize("counted", [True, False])
def test_threads_that_leave_a_tree_by_a_remainder_come_first(test: str, apart: bool, counted: bool) -> None:
    """After two reductions by ``tid % (2 * s)``: another index gained 1.4x where 2.2x and 2.8x were told."""
    text = TAGGED.replace("ISETP.GE.U32.AND P0, PT, R4, R9, PT", test).replace(
        "FADD R8", "LDS R8, [R4]\nFADD R8"
    )
    rows = [Row("barrier", "barrier", 300, 200), Row("selected", "end", 100)]
    counts = {"load": (900, 3600), "barrier": (900, 28800), "end": (100, 3200)} if counted else None
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows, counts=counts))
    assert isinstance(found, Rejection) is (apart and counted)
    if isinstance(found, Rejection):
        assert "by a remainder" in found.reason


@pytest.mark.parametrize(("test", "first"), [(_MASKED, False), (_DIVIDED, True)])
def test_a_level_under_the_predicate_of_a_mask_leaves_nothing_to_skip(test: str, first: bool) -> None:
    """A tree by ``tid & (2 * d - 1)`` in one block of code: shuffles in its place gained 1.5x, as told.

    Of one by ``tid % (2 * s)`` there is the division, which another index does without.
    """
    level = "@!P0 LDS R7, [R5]\n@!P0 LDS R8, [R4]\n@!P0 FADD R8, R8, R7\n@!P0 STS [R4], R8\n"
    text = TAGGED.replace("ISETP.GE.U32.AND P0, PT, R4, R9, PT", test)
    start, end = text.index("@P0 BRA skip"), text.index("barrier|")
    text = f"{text[:start]}load| {level}{text[end:]}"
    rows = [Row("barrier", "barrier", 300, 200), Row("selected", "end", 100)]
    counts = {"load": (900, 3600), "barrier": (900, 28800), "end": (100, 3200)}
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows, counts=counts))
    assert isinstance(found, Rejection) is first
    if isinstance(found, Match):
        assert "Let each warp combine its 32 values by shuffles" in found.cure


_REDUCTION = TREE.format(step=HALVED).replace("FADD R8", "LDS R8, [R4]\nFADD R8")
_SUMS_FIRST = (
    "each:\nLDG.E R2, [R12.64]\nIADD3 R12, R12, 0x4, RZ\nISETP.NE.AND P2, PT, R12, R13, PT\n@P2 BRA each\n"
)


@pytest.mark.parametrize(
    ("code", "grid", "first"),
    [
        (_REDUCTION, 65536, "Give each thread more elements"),
        (f"LDG.E R2, [R12.64]\n{_REDUCTION}", 65536, "Give each thread more elements"),
        (_REDUCTION, 40, "Let each warp combine"),  # fewer blocks would leave SMs empty
        (f"{_SUMS_FIRST}{_REDUCTION}", 65536, "Let each warp combine"),  # has them
        (_REDUCTION.replace("ISETP.GE.U32.AND P0, PT, R4, R9, PT", _MASKED), 40, "Let the active threads be"),
    ],
)
def test_without_samples_a_tree_is_told_with_what_comes_before_shuffles(
    code: str, grid: int, first: str
) -> None:
    """After sums of 512 elements: neighbours gained 2.0x, a second element for each thread 1.9x."""
    context = replace(context_of(listing(code), [], grid=grid), blame=None)
    found = warp_balance.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert found.cure.startswith(first)
    assert "by shuffles" in found.cure


@pytest.mark.parametrize(
    ("unit", "code", "shown"),
    [
        ("l1tex__throughput", _REDUCTION, True),
        ("l1tex__throughput", f"{_SUMS_FIRST}{_REDUCTION}", False),  # L1 may be busy with these
        ("gpu__dram_throughput", _REDUCTION, False),
    ],
)
def test_without_samples_a_tree_that_is_all_that_loops_access_is_what_fills_l1(
    unit: str, code: str, *, shown: bool
) -> None:
    busy = {f"{unit}.avg.pct_of_peak_sustained_elapsed": 84.0}
    context = context_of(listing(code), [], grid=65536, metrics=busy)
    context = replace(context, blame=None, evidence=Evidence.COUNTED)
    found = advise_kernel(context, [warp_balance.OPTIMIZER])
    assert bool(found.suggestions) is shown
    assert found.hidden == (not shown)


def test_a_block_of_one_warp_has_no_slower_one() -> None:
    """As in a scan by blocks of 4 x 8 threads."""
    text = "late| STS [R9], R2 // 3\nBAR.SYNC 0x0 // 4\nafter| LDS R4, [R8] // 5\nEXIT"
    rows = [Row("barrier", "after", 100, 100, "late", DependencyClass.SYNCHRONIZATION)]
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows, block=32))
    assert isinstance(found, Match)
    assert found.title == "barriers in a block of one warp"
    assert "__syncwarp()" in found.cure


def test_shuffles_are_told_once() -> None:
    """As a reduction whose two rules both told the last steps to be one warp's shuffles."""
    text = TAGGED.replace("FADD R8", "LDS R8, [R4]\nwork| FADD R8")
    counts = {"load": (900, 3600), "work": (900, 3600), "barrier": (900, 28800), "end": (100, 3200)}
    busy = {"sm__issue_active.avg.pct_of_peak_sustained_elapsed": 80.0}
    idle = [Row("wait", "load", 300), Row("wait", "work", 300)]
    waits = [*idle, Row("barrier", "barrier", 300, 200)]
    for rows, told in ((waits, False), ([*idle, Row("wait", "end", 100)], True)):
        context = context_of(listing(text), rows, counts=counts, metrics=busy)
        tree, found = warp_balance.OPTIMIZER.match(context), thread_divergence.OPTIMIZER.match(context)
        assert isinstance(found, Match), found
        assert "ive each thread more elements" in found.cure
        assert ("shuffles" in found.cure) is told
        assert (isinstance(tree, Match) and "shuffles" in tree.cure) is not told


def test_a_wait_without_uneven_work_is_a_note() -> None:
    """After an image kernel and a reduction: three remedies without a place helped nobody."""
    text = "FADD R2, R2, R3 // 3\nlate| STS [R9], R2 // 3\nBAR.SYNC 0x0 // 4\nafter| LDS R4, [R8] // 5\nEXIT"
    rows = [Row("barrier", "after", 100, 100, "late", DependencyClass.SYNCHRONIZATION)]
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows))
    assert isinstance(found, Match)
    assert not found.actionable
    few = text.replace("FADD", "@P0 BRA join\nsome| FADD").replace("late|", "join:\nlate|")
    counts = {"some": (200, 6400), "late": (800, 25600), "after": (800, 25600)}
    counts["wait"] = (800, 25600)
    uneven = few.replace("BAR.SYNC", "wait| BAR.SYNC")
    found = warp_balance.OPTIMIZER.match(context_of(listing(uneven), rows, counts=counts))
    assert isinstance(found, Match)
    assert found.actionable
    said = (
        "Let more warps share the work of kernel.cu:3, or every warp do it for itself: only 25.0 % of those"
    )
    assert found.cure.startswith(said)  # the fact that decides is on the screen
    assert "Only 25.0 %" not in found.advice
    assert found.place == (0, 1)  # the work, not what the slow side happens to wait for
    assert found.replaced_by == "GPA109"  # whose idle threads may be those of that work
    # Nobody waits at that barrier, and at the other one all warps have the same to do.
    elsewhere = uneven.replace(
        "after| LDS", "LDS R6, [R7] // 5\nSTS [R9], R6 // 5\nBAR.SYNC 0x0 // 6\nafter| LDS"
    )
    found = warp_balance.OPTIMIZER.match(context_of(listing(elsewhere), rows, counts=counts))
    assert isinstance(found, Match)
    assert not found.actionable


SHARE = "Let more warps share the work of 0x10: only 25.0 % of those"


@pytest.mark.parametrize(
    ("work", "lanes", "cure"),
    [
        ("some| FADD R2, R2, R3", 32, "or every warp do it for itself"),
        ("some| RED.E.ADD.STRONG.GPU [R6.64], R2", 32, ""),  # meets other blocks'
        ("some| STG.E [R6.64], R2", 2, SHARE),
        ("some| STG.E [R6.64], R2", 32, ""),  # each thread one: no more threads have any
        ("again:\nsome| STG.E [R6.64], R2\n@P1 BRA again", 32, SHARE),
        ("again:\nsome| LDG.E.STRONG.SYS R2, [R6.64]\n@P1 BRA again", 32, ""),  # waits for another block
    ],
)
def test_the_work_of_few_warps_is_divided_only_where_it_can_be(work: str, lanes: int, cure: str) -> None:
    text = f"@P0 BRA join\n{work}\njoin:\nlate| STS [R9], R2\nwait| BAR.SYNC 0x0\nafter| LDS R4, [R8]\nEXIT"
    rows = [Row("barrier", "after", 100, 100, "late", DependencyClass.SYNCHRONIZATION)]
    counts = dict.fromkeys(("late", "wait", "after"), (800, 25600)) | {"some": (200, 200 * lanes)}
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows, counts=counts))
    assert isinstance(found, Match)
    assert cure in found.cure
    assert found.actionable is bool(cure)


def test_levels_of_a_tree_that_is_not_known_for_one_are_no_uneven_work() -> None:
    text = TREE.format(step=HALVED).replace("FADD R8, R8, R7", "ATOMS.ADD RZ, [R4], R7")
    text = text.replace("STS [R4], R8\n", "").replace("LDS R7", "some| LDS R7")
    text = text.replace("BAR.SYNC", "wait| BAR.SYNC").replace("EXIT", "after| EXIT")
    rows = [Row("barrier", "after", 100, 100, "some", DependencyClass.SYNCHRONIZATION)]
    counts = {"wait": (800, 25600), "after": (800, 25600), "some": (200, 6400)}
    found = warp_balance.OPTIMIZER.match(context_of(listing(text), rows, counts=counts))
    assert isinstance(found, Match)
    assert not found.actionable


def test_the_barriers_that_the_words_name_are_those_that_are_shown() -> None:
    # GIVEN a barrier between stores, which may go under a condition, and one that orders nothing
    ways = EITHER_WAY.format(left="STS [R10], R0").removesuffix("EXIT")
    lines = f"{ways}LDS R4, [R8]\nBAR.SYNC 0x0\nSTG.E [R2.64], R4\nEXIT".splitlines()
    numbered = (line if line.endswith(":") else f"{line} // {at}" for at, line in enumerate(lines, start=1))
    code = listing("\n".join(numbered))
    needless = needless_in(code.program.functions[0])
    assert sorted(needless.values(), key=lambda one: one.value) == [NOTHING, STORES]
    # WHEN nobody sampled it
    found = warp_balance.OPTIMIZER.match(replace(context_of(code, []), blame=None, profile=None))
    # THEN the sure one is named, and is the place
    assert isinstance(found, Match)
    assert "no access of one thread needs it" in found.advice
    assert [needless[site.index] for site in found.static_sites] == [NOTHING]


@pytest.mark.parametrize(
    ("loop", "told"), [("", True), ("again:\nSTS [R9], R5\nBAR.SYNC 0x0\nLDS R6, [R8]\n@P1 BRA again", False)]
)
def test_without_samples_a_barrier_that_is_passed_once_is_nothing_beside_those_in_a_loop(
    loop: str, *, told: bool
) -> None:
    """As a sort in shared memory whose three needless barriers stand before its loops."""
    text = f"{BOTH}{loop}\nEXIT"
    found = warp_balance.OPTIMIZER.match(replace(context_of(listing(text), []), blame=None, profile=None))
    assert isinstance(found, Match) is told


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("kernel", "// 4 in add", ", if this holds for all callers of add"),
        ("kernel", "// 4", ""),
        ("kernel<float>", "// 4", ", if this holds for every instantiation"),
        ("kernel<float>", "// 4 in add", ", if this holds for all callers of add"),
    ],
)
def test_one_build_does_not_show_all_uses_of_a_barrier(name: str, line: str, words: str) -> None:
    context = context_of(listing(f"BAR.SYNC 0x0 {line}\nEXIT"))
    function = replace(context.program.functions[0], demangled=name)
    context = replace(context, program=replace(context.program, functions=(function,)))
    assert in_all_uses(context, StaticSite(function=function.id, index=0, detail="")) == words


@pytest.mark.parametrize("loop", ["", "again:\nLDG.E R6, [R8.64]\n@P1 BRA again\n"])
def test_without_samples_a_tree_behind_a_loop_is_nothing_beside_it(loop: str) -> None:
    """As the sum over a block that has searched for long."""
    text = f"{loop}{''.join(_level(bound) for bound in (128, 64, 32, 16, 8))}LDS R10, [RZ]\nEXIT"
    found = warp_balance.OPTIMIZER.match(replace(context_of(listing(text), []), blame=None, profile=None))
    assert isinstance(found, Rejection) is bool(loop)


@pytest.mark.parametrize(
    ("length", "around", "told"),
    [
        (40, False, True),
        (120, False, False),
        (120, True, True),  # a tree in each pass of a loop around both
    ],
)
def test_without_samples_a_tree_beside_a_longer_loop_is_none(length: int, around: bool, told: bool) -> None:
    """As behind the samples that each thread of a network's block evaluates."""
    work = "work:\n" + "FFMA R8, R8, R8, R9\n" * length + "@P3 BRA work\n"
    text = work + TREE.format(step=HALVED)
    if around:
        text = "outer:\n" + text.replace("EXIT", "@P4 BRA outer\nEXIT")
    found = warp_balance.OPTIMIZER.match(replace(context_of(listing(text), []), blame=None, profile=None))
    assert isinstance(found, Match) is told
