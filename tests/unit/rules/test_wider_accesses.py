# SPDX-License-Identifier: Apache-2.0
"""GPA108: which accesses may be widened by what a warp's transactions say, and what goes with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.advice.library_calls import library_call
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.profile import Evidence
from gpadvisor.model.sentence import Sentence
from gpadvisor.rules import memory_transaction_reduction
from gpadvisor.rules.wider_accesses import OPTIMIZER

REQUESTS = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
SECTORS = "memory_l2_theoretical_sectors_global"
WAVEFRONTS = "memory_l1_wavefronts_shared"
TAGS = ("a", "b", "c", "d")


def _context(
    transactions: float,
    metrics: dict[str, float],
    *,
    shared: bool = False,
    tags: Sequence[str] = TAGS,
    threads: int = 32,
) -> KernelContext:
    """Loads that follow each other, with so many transactions and threads for a warp each."""
    opcode, place = ("LDS", "R4") if shared else ("LDG.E", "R4.64")
    loads = [f"{tag}| {opcode} R{8 + i}, [{place}+{4 * i:#x}] // 9" for i, tag in enumerate(tags)]
    code = listing("\n".join(["again:", *loads, "use| FADD R2, R8, R2 // 10", "@P0 BRA again // 8", "EXIT"]))
    return context_of(
        code,
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys((*tags, "use"), (1000, 1000 * threads)),
        pc_metrics={WAVEFRONTS if shared else SECTORS: dict.fromkeys(tags, 1000 * transactions)},
        metrics=metrics,
    )


def _reason(context: KernelContext) -> str:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection), found
    return found.reason


def _match(context: KernelContext) -> Match:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    return found


def test_values_that_the_warp_shares() -> None:
    context = _context(1, {REQUESTS: 100.0})
    estimate = OPTIMIZER.estimate(context, _match(context))
    assert estimate.expected == pytest.approx(4.0)  # four loads become one, and nothing else is full


@pytest.mark.parametrize(
    ("count", "widest"), [(4, "loads of 16 bytes"), (6, "loads of 8 bytes"), (7, None)], ids=str
)
def test_rows_that_the_warp_shares_lie_side_by_side(count: int, widest: str | None) -> None:
    context = _context(1, {REQUESTS: 100.0}, tags="abcdefg"[:count])
    if widest is None:
        assert "no accesses of a thread follow each other" in _reason(context)
    else:
        assert widest in _match(context).advice


@pytest.mark.parametrize("sectors", [4, 5, 16, 32])
def test_neighbouring_or_scattered_threads_are_another_matter(sectors: float) -> None:
    assert "no accesses of a thread follow each other" in _reason(_context(sectors, {REQUESTS: 95.0}))


@pytest.mark.parametrize(("wavefronts", "found"), [(1, False), (3.5, False), (3.6, True), (8, True)])
def test_shared_runs_of_each_thread_conflict(wavefronts: float, found: bool) -> None:
    context = _context(wavefronts, {REQUESTS: 95.0}, shared=True)
    assert isinstance(OPTIMIZER.match(context), Match) is found


@pytest.mark.parametrize(("first", "line"), [(500, 9), (100, 12)])
def test_of_several_runs_the_one_that_most_is_waited_for_is_named(first: int, line: int) -> None:
    loads = [
        f"{tag}{i}| LDG.E R{base + i}, [{place}.64+{4 * i:#x}] // {at}"
        for tag, base, place, at in (("a", 8, "R4", 9), ("b", 20, "R6", 12))
        for i in range(4)
    ]
    tags = [f"{tag}{i}" for tag in "ab" for i in range(4)]
    text = "\n".join(["again:", *loads, "use| FADD R2, R8, R20 // 13", "@P0 BRA again // 8", "EXIT"])
    context = context_of(
        listing(text),
        [Row("lg_throttle", "a1", first, first), Row("lg_throttle", "b1", 600 - first, 600 - first)],
        counts=dict.fromkeys((*tags, "use"), (1000, 32000)),
        pc_metrics={SECTORS: dict.fromkeys(tags, 1000.0)},
        metrics={REQUESTS: 100.0},
    )
    assert f"kernel.cu:{line} loads 4 values of 4 bytes" in _match(context).advice


@pytest.mark.parametrize(
    ("threads", "sectors", "found"),
    [(32, 2, True), (32, 2.1, False), (24, 1.5, True), (24, 1.6, False), (8, 1, True), (8, 1.2, False)],
)
def test_threads_share_where_they_take_half_the_sectors_of_neighbours_or_one(
    threads: int, sectors: float, found: bool
) -> None:
    """Of four bytes each, 32 neighbours take four sectors of 32 bytes."""
    context = _context(sectors, {REQUESTS: 100.0}, threads=threads)
    assert isinstance(OPTIMIZER.match(context), Match) is found


def test_a_full_dram_does_not_ask_how_wide_the_loads_are() -> None:
    assert "DRAM is the busiest unit" in _reason(_context(1, {REQUESTS: 70.0, DRAM: 92.0}))


def test_while_nothing_is_full_the_low_end_is_far_below_the_equation() -> None:
    context = _context(1, {REQUESTS: 30.0})
    estimate = OPTIMIZER.estimate(context, _match(context))
    assert estimate.paper is not None
    assert estimate.low < 0.7 * estimate.paper
    assert estimate.low < estimate.expected < estimate.high


def test_addresses_that_only_removed_accesses_need_go_too() -> None:
    text = """
        again:
        a| LDG.E R8, [R4.64] // 9
        step| IADD3 R20, R21, 0x1, RZ // 9
        first| LEA R14, P1, R21, R16, 0x2 // 9
        low| LEA R12, P1, R20, R16, 0x2 // 9
        b| LDG.E R9, [R14.64] // 9
        c| LDG.E R10, [R12.64] // 9
        use| FADD R2, R9, R10 // 9
        @P0 BRA again // 8
        EXIT
    """
    context = context_of(
        listing(text),
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys(("a", "step", "first", "low", "b", "c", "use"), (1000, 32000)),
        pc_metrics={SECTORS: {"a": 4000, "b": 1000, "c": 1000}},
        metrics={REQUESTS: 95.0},
    )
    left = {reduced.resource: reduced.remaining for reduced in _match(context).reduced_loads}
    assert left["issue"] == pytest.approx(1 - 3 / 7)  # the load, its LEA and its IADD3
    assert left["L1 requests"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(("sectors", "side_by_side"), [(16, True), (32, False), (6, False)])
def test_scattered_runs_get_their_words_where_they_are_counted(sectors: int, side_by_side: bool) -> None:
    counters = {SECTORS: dict.fromkeys(TAGS, 1000.0 * sectors), f"{SECTORS}_ideal": dict.fromkeys(TAGS, 4e3)}
    loads = [f"{tag}| LDG.E R{8 + i}, [R4.64+{4 * i:#x}] // 9" for i, tag in enumerate(TAGS)]
    context = context_of(
        listing("\n".join([*loads, "use| FADD R2, R8, R2 // 10", "EXIT"])),
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys((*TAGS, "use"), (1000, 32000)),
        pc_metrics=counters,
    )
    found = memory_transaction_reduction.OPTIMIZER.match(context)
    assert isinstance(found, Match)
    assert ("each thread accesses 4 values that follow each other" in found.advice) is side_by_side
    assert ("accesses of 16 bytes" in found.advice) is side_by_side


def _inlined(context: KernelContext) -> KernelContext:
    """The same as a loop of a library that line 9 calls."""
    header = SourceLocation("/usr/local/cuda/include/curand_kernel.h", 319)
    (function,) = context.program.functions
    lines = tuple(None if one is None else replace(one, library=(header,)) for one in function.lines)
    inside = replace(context.program, functions=(replace(function, lines=lines),))
    return replace(context, program=inside)


def test_what_a_librarys_own_loop_accesses_is_not_the_callers_to_widen() -> None:
    """As the matrices that curand_init skips ahead by."""
    loads = "\n".join(f"{tag}| LDG.E R{8 + i}, [R4.64+{4 * i:#x}] // 9" for i, tag in enumerate(TAGS))
    text = f"again:\n{loads}\nuse| FADD R2, R8, R2 // 9\n@P0 BRA again // 9\nEXIT // 9"
    context = context_of(
        listing(text),
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys((*TAGS, "use"), (1000, 32000)),
        pc_metrics={SECTORS: dict.fromkeys(TAGS, 1000)},
    )
    assert _match(context)
    called = _inlined(context)
    assert "no accesses of a thread follow each other" in _reason(called)
    assert library_call(context) == ""
    assert (
        Sentence(library_call(called))
        == "100 % of the samples are in curand_kernel.h, which kernel.cu:9 calls"
    )
    straight = "\n".join(line for line in text.splitlines() if "again" not in line)
    once = context_of(listing(straight), [Row("selected", "use", 400)])
    assert library_call(_inlined(once)) == ""  # an intrinsic, a load of one element


def _of(code: str, threads: int = 32, sectors: float = 1) -> KernelContext:
    """The four loads behind other code, and what ends a pass."""
    loads = "\n".join(f"{tag}| LDG.E R{8 + i}, [R4.64+{4 * i:#x}] // 9" for i, tag in enumerate(TAGS))
    return context_of(
        listing(code.format(loads=loads)),
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys((*TAGS, "use"), (1000, 1000 * threads)),
        pc_metrics={SECTORS: dict.fromkeys(TAGS, 1000.0 * sectors)},
        metrics={REQUESTS: 95.0},
    )


_PASS = """
    again:
    {{loads}}
    use| FADD R2, R8, R2 // 10
    IADD3 R4, P1, R4, {step:#x}, RZ // 8
    @P0 BRA again // 8
    EXIT
"""
_BY_THREAD = """
    S2R R0, SR_TID.X // 7
    IMAD.WIDE R4, R0, {distance:#x}, c[0x0][0x160] // 7
    {{loads}}
    use| FADD R2, R8, R2 // 10
    EXIT
"""


@pytest.mark.parametrize(("step", "bytes_at_once"), [(16, 16), (64, 16), (24, 8), (20, None)])
def test_what_a_pass_adds_keeps_wide_loads_aligned_or_not(step: int, bytes_at_once: int | None) -> None:
    context = _of(_PASS.format(step=step))
    if bytes_at_once is None:
        assert "no accesses of a thread follow each other" in _reason(context)
    else:
        assert f"loads of {bytes_at_once} bytes" in _match(context).cure


@pytest.mark.parametrize(("distance", "bytes_at_once"), [(16, 16), (8, 8), (4, None), (12, None)])
def test_the_distance_between_threads_keeps_wide_loads_aligned_or_not(
    distance: int, bytes_at_once: int | None
) -> None:
    context = _of(_BY_THREAD.format(distance=distance))
    if bytes_at_once is None:
        assert "no accesses of a thread follow each other" in _reason(context)
    else:
        assert f"loads of {bytes_at_once} bytes" in _match(context).cure


@pytest.mark.parametrize(("threads", "found"), [(32, True), (10, False)])
def test_few_active_threads_need_few_sectors_without_sharing_values(threads: int, found: bool) -> None:
    context = _of(_PASS.format(step=16), threads=threads, sectors=2)
    assert isinstance(OPTIMIZER.match(context), Match) is found


def test_elements_of_three_bytes_are_padded_where_nobody_knows_the_address() -> None:
    # GIVEN pixels of three bytes by an index that the code does not show, and wider stores elsewhere
    counters = {SECTORS: dict.fromkeys(TAGS[:3], 3e3), f"{SECTORS}_ideal": dict.fromkeys(TAGS[:3], 1e3)}
    store = "use| STG.E [R6.64], R8 // 10"
    loads = [f"{tag}| LDG.E.U8 R{8 + i}, [R4.64+{i:#x}] // 9" for i, tag in enumerate(TAGS[:3])]
    context = context_of(
        listing("\n".join(["S2R R3, SR_TID.X", "I2F R20, R3", "F2I R4, R20", *loads, store, "EXIT"])),
        [Row("lg_throttle", "b", 600, 500), Row("selected", "use", 400)],
        counts=dict.fromkeys((*TAGS[:3], "use"), (1000, 32000)),
        pc_metrics=counters,
    )
    found = memory_transaction_reduction.OPTIMIZER.match(context)
    # THEN no wider access is asked for: every second one would begin at an odd address
    assert isinstance(found, Match)
    assert "pad the elements of 3 bytes to 4" in found.advice
    assert "accesses of 2 bytes" not in found.advice


TESTED = """
    again:
    IADD3 R4, R4, 0x10, RZ // 9
    a| LDG.E R8, [R4.64] // 9
    first| FSETP.GT.AND P1, PT, R8, R3, PT // 9
    @P1 BRA next // 9
    {between}
    b| LDG.E R9, [R4.64+0x4] // 9
    second| FSETP.GT.AND P2, PT, R9, R3, PT // 9
    next:
    use| FADD R2, R8, R2 // 10
    @P0 BRA again // 8
    EXIT
"""


def _tested(between: str = "") -> KernelContext:
    return context_of(
        listing(TESTED.format(between=between)),
        [Row("long_scoreboard", "second", 600, 500, "b"), Row("selected", "use", 400)],
        counts=dict.fromkeys(("a", "first", "b", "second", "use"), (1000, 32000)),
        pc_metrics={SECTORS: {"a": 1000, "b": 1000}},
        metrics={REQUESTS: 50.0},
    )


def test_values_behind_a_test_of_the_one_before_come_with_it() -> None:
    found = _match(_tested())
    assert "2 accesses of a thread become 1" in found.advice
    assert found.cure == (
        "Use loads of 8 bytes in front of the tests between them, where the address is aligned to that."
    )
    assert {reduced.resource: reduced.remaining for reduced in found.reduced_loads}["L1 requests"] == 0.5


def test_values_behind_a_test_through_an_address_that_changes_stay_apart() -> None:
    assert "no accesses of a thread follow each other" in _reason(_tested("IADD3 R4, R4, R11, RZ // 9"))


@pytest.mark.parametrize(("percent", "by_counters"), [(95.0, True), (70.0, False)])
def test_below_the_limit_of_a_unit_waits_get_shorter_too(percent: float, by_counters: bool) -> None:
    """With L1's data stage as full as its requests: fewer requests leave that, and shorten its queue."""
    data = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
    context = _context(1, {REQUESTS: percent, data: percent})
    found = _match(context)
    assert (found.measured_bound is not None) is by_counters
    estimate = OPTIMIZER.estimate(context, found)
    assert (estimate.expected > 1.05) is not by_counters


_STREAM = """
    S2R R0, SR_TID.X // 7
    IMAD.WIDE R4, R0, {width:#x}, c[0x0][0x160] // 7
    load| LDG.E{form} R8, [R4.64] // 9
    {between}
    use| FMUL R2, R8, R3 // 10
    STG.E [R6.64], R2 // 10
    EXIT
"""


def _stream(
    l2: float = 70.0,
    waits: int = 800,
    between: str = "",
    width: int = 4,
    form: str = "",
    blocks: int = 65536,
    metrics: Mapping[str, float] = MappingProxyType({}),
) -> KernelContext:
    """A word of each thread, as scale_stream on an H100."""
    return context_of(
        listing(_STREAM.format(between=between, width=width, form=form)),
        [Row("long_scoreboard", "use", waits, waits, due_to="load"), Row("selected", "use", 1000 - waits)],
        grid=blocks,
        metrics={L2: l2, **metrics},
    )


def test_full_sms_with_too_few_bytes_on_their_way_get_wider_accesses() -> None:
    """1.34x on an H100 with L2 at 72 %."""
    context = _stream()
    found = _match(context)
    assert "4 neighbouring elements with accesses of 16 bytes" in found.cure
    estimate = OPTIMIZER.estimate(context, found)
    assert estimate.low <= 1.0
    assert estimate.low < estimate.expected < estimate.high
    assert estimate.high == pytest.approx(1 / 0.7, abs=0.05)
    assert estimate.expected == pytest.approx(1.3, abs=0.05)
    assert "8 neighbouring elements" in _match(_stream(width=2, form=".U16")).cure


@pytest.mark.parametrize(("percent", "told"), [(40.0, True), (39.5, False)])
def test_memory_that_is_hardly_used_does_not_ask_for_more_bytes_at_once(percent: float, told: bool) -> None:
    assert isinstance(OPTIMIZER.match(_stream(l2=percent)), Match) is told


ADU = "sm__inst_executed_pipe_adu.avg.pct_of_peak_sustained_elapsed"
FMA = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
REQUESTED = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"


def test_what_each_warp_asks_for_once_may_be_fuller_than_the_memory() -> None:
    """As a conversion of halves on an H100, which gained 2.2x."""
    context = _stream(l2=45.0, width=2, form=".U16", metrics={ADU: 60.0})
    estimate = OPTIMIZER.estimate(context, _match(context))
    assert estimate.expected > 1.6
    assert estimate.high > 1 / 0.5


_SHARED_TILE = """
    STS [R0.X4], R8
    {barrier}
    LDS R9, [R0.X{scale}+0x4]
"""


def test_threads_that_share_what_they_loaded_side_by_side_take_more_of_it() -> None:
    """As a stencil on an H100, which gained 1.75x."""
    assert "4 neighbouring elements" in _match(_stream(l2=56.0, between=_tile())).cure


def _tile(barriers: int = 1, scale: int = 4) -> str:
    return _SHARED_TILE.format(barrier="BAR.SYNC 0x0\n" * barriers, scale=scale)


@pytest.mark.parametrize(
    "context",
    [
        _stream(l2=85),  # full already
        _stream(l2=20),  # something else holds it
        _stream(waits=400),  # most warps wait for something else
        _stream(between="BAR.SYNC 0x0"),  # threads work together
        _stream(between="ATOMS.ADD RZ, [R9], R8"),
        _stream(between=_tile(2)),  # as the steps of a tree
        _stream(between=_tile(scale=8)),  # as columns of a tile
        _stream(metrics={DRAM: 92.0}),  # full, though L2 is not
        _stream(metrics={FMA: 75.0}),  # arithmetic stays
        _stream(metrics={REQUESTED: 85.0}),  # a matter of its own
        _stream(width=16, form=".128"),  # as wide as there are
        _stream(width=64),  # scattered
        _stream(blocks=800),  # a quarter of them would not fill the GPU
        replace(_stream(), evidence=Evidence.MODELLED),  # the simulator gives what pairs do not have
    ],
    ids=[
        "full",
        "idle",
        "other waits",
        "barrier",
        "shared",
        "tree",
        "tile",
        "DRAM",
        "work",
        "L1",
        "wide",
        "scattered",
        "few blocks",
        "modelled",
    ],
)
def test_one_word_for_each_thread_is_no_fault_elsewhere(context: KernelContext) -> None:
    assert "no accesses of a thread follow each other" in _reason(context)
