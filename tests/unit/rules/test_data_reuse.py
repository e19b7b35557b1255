# SPDX-License-Identifier: Apache-2.0
"""GPA107: which loops load too much for what they multiply, and what a larger tile gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import Row, context_of, listing

from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.products import product_loops, times_loaded, with_sharing
from gpadvisor.model.advice import Match, Rejection
from gpadvisor.model.blame import DependencyClass
from gpadvisor.model.remedy import Remedy
from gpadvisor.rules.data_reuse import OPTIMIZER

SHARED = DependencyClass.SHARED_MEMORY
REQUESTS = "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"
DATA = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"


def _tile(rows: int, columns: int, *, width: str = "") -> str:
    """A product out of shared memory: ``rows`` by ``columns`` results for each thread."""
    loads = [f"load{i}| LDS{width} R{20 + i * 4}, [R4+{16 * i:#x}] // 9" for i in range(rows + columns)]
    products = [
        f"R{100 + i * columns + j}, R{20 + 4 * i}, R{20 + 4 * (rows + j)}, R{100 + i * columns + j}"
        for i in range(rows)
        for j in range(columns)
    ]
    lines = [f"use{number}| FFMA {text} // 9" for number, text in enumerate(products)]
    return "\n".join(["fill| STS [R6], R7 // 7", "again:", *loads, *lines, "@P0 BRA again // 8", "EXIT"])


def _context(
    text: str, metrics: dict[str, float], *, times: int = 16, grid: int = 4096, stall: str = "mio_throttle"
) -> KernelContext:
    code = listing(text)
    loads = [tag for tag in code.tags if tag.startswith("load")]
    products = [tag for tag in code.tags if tag.startswith("use")]
    passes = 1_000_000
    counts = dict.fromkeys((*loads, *products), (passes, 32 * passes))
    stores = passes * len(loads) // times
    counts["fill"] = (stores, 32 * stores)
    rows = [Row(stall, "load0", 600, 500), Row("selected", "use0", 400)]
    return context_of(code, rows, counts=counts, metrics=metrics, grid=grid)


def _found(context: KernelContext) -> Match:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match), found
    return found


def _reason(context: KernelContext) -> str:
    found = OPTIMIZER.match(context)
    assert isinstance(found, Rejection), found
    return found.reason


@pytest.mark.parametrize(("rows", "columns", "values"), [(1, 1, 2.0), (1, 4, 1.25), (2, 2, 1.0), (4, 4, 0.5)])
def test_values_per_product_are_those_of_the_tile(rows: int, columns: int, values: float) -> None:
    context = _context(_tile(rows, columns), {REQUESTS: 90.0})
    (found,) = product_loops(context.program, context.kernel)
    assert found.values_per_product == pytest.approx(values)
    assert found.tile == (rows, columns)
    assert context.profile is not None
    assert times_loaded(context.program, context.profile, found) == pytest.approx(16, rel=0.01)


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        ((1, 1), "2 x 2 results (1 x 1 now)"),
        ((4, 1), "4 x 4 results (1 x 4 now)"),
        ((2, 4), "4 x 8 results (2 x 4 now)"),
    ],
)
def test_the_next_tile_is_four_times_as_large_and_nearly_square(tile: tuple[int, int], words: str) -> None:
    assert words in _found(_context(_tile(*tile), {REQUESTS: 95.0})).advice


def test_a_longer_tile_gains_more_by_a_square() -> None:
    # 1 x 4 loads 5 values for 4 products, 2 x 4 6 for 8, and 4 x 4 8 for 16.
    context = _context(_tile(1, 4), {DATA: 100.0, ISSUE: 1.0}, times=1000)
    estimate = OPTIMIZER.estimate(context, _found(context))
    assert estimate.low == pytest.approx(5 / 3, rel=0.05)
    assert estimate.high == pytest.approx(5 / 2, rel=0.05)


def test_two_passes_in_one_body_are_the_same_tile() -> None:
    code = listing(
        """
        again:
        LDS R8, [R4]
        LDS R9, [R4+0x4]
        FFMA R20, R8, R9, R20
        LDS R8, [R4+0x8]
        LDS R9, [R4+0xc]
        FFMA R20, R8, R9, R20
        @P0 BRA again
        EXIT
        """
    )
    context = context_of(code)
    (found,) = product_loops(context.program, context.kernel)
    assert found.tile == (1, 1)


def test_products_of_another_shape_have_no_tile() -> None:
    # A row times a scalar: four values and one for four sums, but one of them comes from outside of the loop.
    loads = "\n".join(f"LDS R{20 + i}, [R4+{4 * i:#x}]" for i in range(4))
    products = "\n".join(f"FFMA R{30 + i}, R{20 + i}, R2, R{30 + i}" for i in range(4))
    context = context_of(listing(f"again:\n{loads}\n{products}\n@P0 BRA again\nEXIT"))
    (found,) = product_loops(context.program, context.kernel)
    assert found.tile is None


def test_a_factor_may_be_converted_before_it_is_multiplied() -> None:
    text = """
        again:
        load| LDS.U16 R8, [R4]
        wide| HADD2.F32 R9, -RZ, R8.H0_H0
        use| FFMA R2, R9, R3, R2
        @P0 BRA again
        EXIT
    """
    context = context_of(listing(text))
    (found,) = product_loops(context.program, context.kernel)
    assert len(found.loads) == 1


def test_the_gain_is_the_load_taken_from_the_full_unit() -> None:
    # Requests fill the unit: as wide as now they fall to 3 in 4, in both directions and wider to a quarter.
    context = _context(_tile(1, 1), {REQUESTS: 100.0, DATA: 40.0, ISSUE: 20.0}, times=1000)
    estimate = OPTIMIZER.estimate(context, _found(context))
    assert estimate.low == pytest.approx(1 / 0.75, rel=0.05)
    assert estimate.high == pytest.approx(1 / 0.25, rel=0.05)
    assert estimate.low < estimate.expected < estimate.high


def test_issue_slots_of_the_products_stay() -> None:
    context = _context(_tile(4, 4, width=".128"), {DATA: 90.0, ISSUE: 85.0})
    estimate = OPTIMIZER.estimate(context, _found(context))
    assert estimate.expected < 1 / 0.65  # two in three instructions multiply, and are not spared


def test_the_full_unit_must_be_one_that_loads_fill() -> None:
    assert "DRAM is the busiest unit" in _reason(_context(_tile(1, 1), {REQUESTS: 50.0, DRAM: 92.0}))
    assert "no unit is full" in _reason(_context(_tile(1, 1), {REQUESTS: 30.0}))


def test_loads_as_wide_as_there_are_need_not_become_wider() -> None:
    assert (
        "loaded into registers by loads of 16 bytes is used"
        in _found(_context(_tile(2, 2), {DATA: 95.0})).cure
    )
    assert "loaded into registers is used" in _found(_context(_tile(2, 2, width=".128"), {DATA: 95.0})).cure


def test_loops_out_of_shared_memory_are_told_to_compute_several_results() -> None:
    assert _found(_context(_tile(1, 1), {REQUESTS: 95.0})).remedies == (Remedy.SEVERAL_RESULTS,)


@pytest.mark.parametrize(
    ("address", "dram", "reason"),
    [
        ("R12", 20.0, ""),
        ("R12", 85.0, "DRAM is busy, too: nothing counted that the loads are of the same values"),
        ("R16", 20.0, "are scattered, which comes first"),
    ],
)
def test_where_nobody_counted_how_often_values_are_loaded_other_causes_come_first(
    address: str, dram: float, reason: str
) -> None:
    """For each product a value along a row of each thread (R16), or one that all of a warp share (R12)."""
    text = f"""
        S2R R0, SR_TID.X // 7
        MOV R12, c[0x0][0x168] // 7
        IMAD R14, R0, c[0x0][0x190], RZ // 7
        IMAD.WIDE R16, R14, 0x4, R30 // 7
        again:
        load0| LDG.E R20, [{address}.64] // 9
        load1| LDG.E R21, [R12.64+0x400] // 9
        use0| FFMA R100, R20, R21, R100 // 9
        IADD3 R12, R12, 0x4, RZ // 8
        IADD3 R16, R16, 0x4, RZ // 8
        ISETP.LT.AND P0, PT, R12, c[0x0][0x174], PT // 8
        @P0 BRA again // 8
        EXIT
    """
    found = OPTIMIZER.match(
        replace(context_of(listing(text), [], metrics={REQUESTS: 95.0, DRAM: dram}), blame=None)
    )
    assert isinstance(found, Match) is not reason
    assert isinstance(found, Match) or reason in found.reason


def test_a_grid_too_small_for_larger_tiles() -> None:
    assert "2.0 warps per scheduler" in _reason(_context(_tile(1, 1), {REQUESTS: 95.0}, grid=320))


def test_registers_end_at_eight_by_eight() -> None:
    assert "as many registers as there are" in _reason(_context(_tile(8, 8), {DATA: 95.0}))


def test_data_that_is_used_twice_is_not_worth_a_tile() -> None:
    assert "there is nothing to keep" in _reason(_context(_tile(1, 1), {REQUESTS: 95.0}, times=2))


def test_without_measured_units_the_stalls_go_with_the_loads() -> None:
    context = _context(_tile(2, 2), {})
    found = _found(context)
    assert found.measured_bound is None
    estimate = OPTIMIZER.estimate(context, found)
    assert 1 < estimate.low < estimate.expected < estimate.high
    assert estimate.paper is not None
    assert estimate.high <= estimate.paper


GLOBAL = """
    again:
    left| LDG.E R8, [R4.64] // 9
    right| LDG.E R9, [R6.64] // 9
    use| FFMA R10, R8, R9, R10 // 9
    @P0 BRA again // 8
    EXIT
"""


def _global(ideal: float, text: str = GLOBAL) -> KernelContext:
    counts = dict.fromkeys(("left", "right", "use"), (1_000_000, 32_000_000))
    return context_of(
        listing(text),
        [Row("lg_throttle", "left", 600, 500), Row("selected", "use", 200)],
        counts=counts,
        pc_metrics={
            "memory_l2_theoretical_sectors_global": {"left": 4e6, "right": 4e6},
            "memory_l2_theoretical_sectors_global_ideal": {"left": ideal, "right": 4e6},
        },
        metrics={"l1tex__t_sector_hit_rate.pct": 94.0, REQUESTS: 96.0},
    )


def test_global_operands_go_through_a_shared_tile() -> None:
    found = _found(_global(4e6))
    assert "same values from global memory" in found.title
    assert "tiles of about 16 x 16" in found.advice
    assert found.measured_bound is not None
    assert 1.1 < found.measured_bound.low < found.measured_bound.expected < found.measured_bound.high
    # One operand by four values, the other one by one, and both into the tile: 1.5 loads instead of 2.
    left = {one.resource: one.remaining for one in found.reduced_loads}
    assert left["L1 requests"] == pytest.approx(0.75)


def test_scattered_operands_are_coalesced_first() -> None:
    assert "scattered over too many sectors" in _reason(_global(1e6))


def test_rows_that_begin_inside_of_a_sector_are_not_scattered() -> None:
    # After a stencil: two rows of 16 values for each warp, which take three sectors each instead of two.
    assert "same values from global memory" in _found(_global(4e6 * 4 / 6)).title


def test_a_loop_whose_copies_for_many_passes_never_run_is_the_innermost() -> None:
    copies = "inner:\nLDG.E R12, [R4.64+0x40]\nFFMA R10, R12, R9, R10\n@P1 BRA inner\n"
    text = GLOBAL.replace("again:\n", f"again:\n{copies}")
    found = _found(_global(4e6, text))
    assert "loads 2 values for each multiply-add" in found.advice


def _registers(needed: float) -> KernelContext:
    """Operands of an 8 x 8 tile that each thread takes from global memory."""
    loads = "\n".join(f"load{i}| LDG.E R{20 + 4 * i}, [R4.64+{16 * i:#x}]" for i in range(16))
    products = "\n".join(
        f"use{8 * i + j}| FFMA R{100 + 8 * i + j}, R{20 + 4 * i}, R{52 + 4 * j}, R{100 + 8 * i + j}"
        for i in range(8)
        for j in range(8)
    )
    code = listing(f"again:\n{loads}\n{products}\n@P0 BRA again\nEXIT")
    sectors = {tag: 4e6 for tag in code.tags if tag.startswith("load")}
    return context_of(
        code,
        [Row("lg_throttle", "load0", 600, 500), Row("selected", "use0", 200)],
        counts=dict.fromkeys(code.tags, (1_000_000, 32_000_000)),
        pc_metrics={
            "memory_l2_theoretical_sectors_global": sectors,
            "memory_l2_theoretical_sectors_global_ideal": {tag: needed * one for tag, one in sectors.items()},
        },
        metrics={"l1tex__t_sector_hit_rate.pct": 94.0, DATA: 96.0},
    )


def test_a_tile_in_registers_leaves_room_for_one_in_shared_memory() -> None:
    advice = _found(_registers(1.0)).advice
    assert "tiles of about 128 x 128" in advice
    assert "several results" not in advice


def test_the_rows_of_a_tile_in_registers_are_not_coalesced_first() -> None:
    near, apart = (_found(_registers(needed)).measured_bound for needed in (1.0, 0.25))
    assert near is not None
    assert apart is not None
    # Shared memory has no sectors that a thread's neighbours would have to fill.
    assert apart.expected > 1.5 * near.expected


def _straight(passes: int) -> str:
    """Tiles and steps unrolled: two barriers and four products of two values each, again and again."""
    text = []
    for tile in range(passes):
        text += [f"STS [R6+{tile}], R7 // 7", "BAR.SYNC.DEFER_BLOCKING 0x0 // 8"]
        for step in range(4):
            text += [f"LDS R{20 + 2 * step}, [R4+{16 * step:#x}] // 9", f"LDS R{21 + 2 * step}, [R5] // 9"]
        # The last product of a tile stands behind its barrier.
        text += [f"FFMA R10, R{20 + 2 * step}, R{21 + 2 * step}, R10 // 9" for step in range(3)]
        text += ["BAR.SYNC.DEFER_BLOCKING 0x0 // 10", "FFMA R10, R26, R27, R10 // 9"]
    return _tagged([*text, "EXIT"])


def _tagged(lines: list[str]) -> str:
    """Loads, products and stores with tags of their own, so that they can be counted."""
    kinds = {"LDS": "load", "LDG": "load", "FFMA": "use", "IMAD": "use", "IDP": "use", "STS": "fill"}
    seen: dict[str, int] = {}
    text = []
    for line in lines:
        kind = next((name for opcode, name in kinds.items() if line.startswith(opcode)), None)
        if kind is not None:
            line = f"{kind}{seen.setdefault(kind, 0)}| {line}"
            seen[kind] += 1
        text.append(line)
    return "\n".join(text)


def _counted(text: str) -> KernelContext:
    code = listing(text)
    counts = dict.fromkeys(code.tags, (1_000_000, 32_000_000))
    rows = [Row("mio_throttle", "load1", 600, 500), Row("selected", "use0", 400)]
    return context_of(code, rows, counts=counts, metrics={REQUESTS: 90.0})


def test_code_without_a_loop_is_one_that_is_unrolled() -> None:
    """After a product whose loops over tiles and within them have constant bounds."""
    context = _counted(_straight(8))
    (found,) = product_loops(context.program, context.kernel)
    assert len(found.products) == 32
    assert found.tile == (1, 1)
    assert context.profile is not None
    assert times_loaded(context.program, context.profile, found) == pytest.approx(8)
    assert "2 x 2 results (1 x 1 now)" in _found(context).advice


def test_products_of_a_few_terms_are_no_loop() -> None:
    text = "\n".join([f"LDS R{20 + i}, [R4]" for i in range(4)])
    code = listing(f"{text}\nFFMA R10, R20, R21, R10\nFFMA R10, R22, R23, R10\nEXIT")
    assert not list(product_loops(context_of(code).program, context_of(code).kernel))


def test_copies_of_a_loop_are_judged_together() -> None:
    """A loop over 16 tiles that is unrolled, the one within it is not: each has its part of the stores."""
    parts = []
    for tile in range(16):
        parts += ["STS [R6], R7 // 7", "BAR.SYNC.DEFER_BLOCKING 0x0 // 7", f"again{tile}:"]
        parts += ["LDS R20, [R4] // 9", "LDS R21, [R5] // 9", "FFMA R10, R20, R21, R10 // 9"]
        parts += [f"@P0 BRA again{tile} // 8"]
    code = listing(_tagged([*parts, "EXIT"]))
    counts = {tag: (1_000_000 if tag.startswith("fill") else 8_000_000, 32_000_000) for tag in code.tags}
    rows = [Row("mio_throttle", "load1", 600, 500), Row("selected", "use0", 400)]
    context = context_of(code, rows, counts=counts, metrics={REQUESTS: 90.0})
    (found,) = product_loops(context.program, context.kernel)
    assert (len(found.products), found.tile) == (16, (1, 1))
    assert "loads each value of its tile 16 times" in _found(context).advice


BYTES = [
    "again:",
    "LDG.E.U8.CONSTANT R26, [R6.64] // 9",
    "LDG.E.U8.CONSTANT R23, [R2.64] // 9",
    "IMAD.MOV.U32 R3, RZ, RZ, R26",
    "PRMT R26, R3, 0x8880, RZ",
    "PRMT R23, R23, 0x8880, RZ",
    "IADD3 R26, R26, -c[0x0][0x194], RZ",
    "IMAD R8, R23, R26, R8 // 9",
    "IMAD R6, R5, 0x10, R6",
    "@P0 BRA again // 8",
    "EXIT",
]
PACKED = [
    "again:",
    "LDS R26, [R6] // 9",
    "LDS R23, [R2] // 9",
    "IDP.4A.S8.S8 R8, R23, R26, R8 // 9",
    "@P0 BRA again // 8",
    "EXIT",
]


@pytest.mark.parametrize(("lines", "size"), [(BYTES, 1), (PACKED, 4)])
def test_products_of_integers_are_products(lines: list[str], size: int) -> None:
    """After a product of quantised matrices: bytes less their zero point."""
    context = context_of(listing("\n".join(lines)))
    (found,) = product_loops(context.program, context.kernel)
    assert (len(found.products), len(found.loads), found.factor_bytes) == (1, 2, size)
    assert (found.values_per_product, found.tile) == (2.0, (1, 1))


def test_bytes_can_be_multiplied_four_at_a_time() -> None:
    lines = [line.replace("LDG.E.U8.CONSTANT", "LDS.U8").replace(".64]", "]") for line in BYTES]
    context = _counted(_tagged(["STS.U8 [R16], R17 // 7", *lines]))
    assert context.profile is not None
    assert context.profile.counts is not None
    many = context.profile.counts.warps.copy()
    many[0] //= 16
    counts = replace(context.profile.counts, warps=many)
    context = replace(context, profile=replace(context.profile, counts=counts))
    assert "four bytes at once (__dp4a)" in _found(context).cure


_FROM_GLOBAL = """
    S2R R0, SR_TID.X // 7
    IMAD.WIDE R4, R0, 0x4, c[0x0][0x160] // 7
    again:
    load0| LDG.E R20, [R4.64] // 9
    load1| LDG.E R24, [R6.64] // 9
    use0| FFMA R100, R20, R24, R100 // 9
    IADD3 R4, P1, R4, {step:#x}, RZ // 8
    IADD3 R6, P1, R6, 0x4, RZ // 8
    @P0 BRA again // 8
    EXIT
"""


@pytest.mark.parametrize(("step", "windows"), [(4, True), (0x1000, False)])
def test_what_a_neighbour_has_now_and_the_thread_wants_next_is_no_matter_of_a_tile(
    step: int, *, windows: bool
) -> None:
    # GIVEN a filter, whose windows overlap, or a product, whose operand moves on by rows
    text = _FROM_GLOBAL.format(step=step)
    code = listing(text)
    counts = dict.fromkeys(("load0", "load1", "use0"), (1_000_000, 32_000_000))
    context = context_of(code, [Row("lg_throttle", "load0", 600, 500)], counts=counts, metrics={DATA: 95.0})
    (found,) = product_loops(context.program, context.kernel)
    # THEN that is seen by the addresses
    assert context.profile is not None
    assert with_sharing(found, context.program.form, context.profile).windows is windows


def test_a_filter_is_told_to_keep_more_in_registers() -> None:
    counts = dict.fromkeys(("load0", "load1", "use0"), (1_000_000, 32_000_000))
    sectors = dict.fromkeys(("load0", "load1"), 4e6)
    name = "memory_l2_theoretical_sectors_global"
    context, product = (
        context_of(
            listing(_FROM_GLOBAL.format(step=step)),
            [Row("lg_throttle", "load0", 600, 500), Row("selected", "use0", 400)],
            counts=counts,
            pc_metrics={name: sectors, f"{name}_ideal": sectors},
            metrics={REQUESTS: 95.0, "l1tex__t_sector_hit_rate.pct": 93.75},
            grid=4096,
        )
        for step in (4, 0x1000)
    )
    assert "2 x 2 neighbouring results" in _found(context).cure
    # Its factors are the same for all threads: 1.23x was measured by constant memory alone.
    shared = "the factors that all threads of a warp share from constant memory (__constant__, up to 64 KiB)"
    assert shared in _found(context).cure
    assert shared not in _found(product).cure
    assert "fill tiles" in _found(product).cure
    left = {one.resource: one.remaining for one in _found(context).reduced_loads}
    assert left["L1 requests"] == pytest.approx((0.75 * 0.5) ** 0.5, rel=0.01)


_OF_CONSTANTS = """
    S2R R0, SR_TID.X // 7
    IMAD.WIDE R4, R0, 0x40, c[0x0][0x160] // 7
    again:
    load0| LDG.E R20, [R4.64] // 9
    mask| LDC R24, c[0x3][{address}] // 9
    use0| FFMA R100, R20, R24, R100 // 9
    IADD3 R4, P1, R4, 0x1000, RZ // 8
    IADD3 R6, R6, 0x4, RZ // 8
    @P0 BRA again // 8
    EXIT
"""
_ADU = "sm__inst_executed_pipe_adu.avg.pct_of_peak_sustained_elapsed"


def _constants(address: str) -> KernelContext:
    """Products of which each loads a value and a constant."""
    return context_of(
        listing(_OF_CONSTANTS.format(address=address)),
        [Row("short_scoreboard", "mask", 600, 500), Row("selected", "use0", 400)],
        counts=dict.fromkeys(("load0", "mask", "use0"), (1_000_000, 32_000_000)),
        metrics={_ADU: 85.0, ISSUE: 40.0},
        grid=4096,
    )


def test_a_constant_that_all_threads_share_is_loaded_once_for_several_results() -> None:
    # GIVEN a filter whose mask is in constant memory, where nothing counted how often a value is loaded
    found = _found(_constants("R6"))
    # THEN what is shared is proven by the address alone, and constants load their unit less
    assert "two to four results, so that a constant, which all threads share, is loaded once" in found.cure
    assert "2 values for each multiply-add, one of them a constant" in found.advice
    left = {one.resource: one.remaining for one in found.reduced_loads}
    assert left["ADU pipe"] == pytest.approx(0.5)
    assert found.measured_bound is not None
    assert 1.3 < found.measured_bound.expected < 2.0


def test_constants_that_differ_between_threads_are_another_matter() -> None:
    assert "nothing counted" in _reason(_constants("R0"))


_RUNS = """
    S2R R0, SR_TID.X // 7
    IMAD R4, R0, c[0x0][0x190], RZ // 7
    again:
    load0| LDG.E R20, [R4.64] // 9
    load1| LDG.E R21, [R4.64+0x4] // 9
    load2| LDG.E R22, [R4.64+0x8] // 9
    load3| LDG.E R23, [R4.64+0xc] // 9
    use0| FFMA R100, R20, c[0x3][0x0], R100 // 9
    use1| FFMA R100, R21, c[0x3][0x4], R100 // 9
    use2| FFMA R100, R22, c[0x3][0x8], R100 // 9
    use3| FFMA R100, R23, c[0x3][0xc], R100 // 9
    IADD3 R4, R4, R9, RZ // 8
    @P0 BRA again // 8
    EXIT
"""


@pytest.mark.parametrize(("sectors", "windows"), [(5e6, True), (16e6, False)])
def test_threads_whose_runs_take_few_sectors_have_overlapping_windows(
    sectors: float, *, windows: bool
) -> None:
    # GIVEN four values in a row for each thread, an argument apart: side by side they would take 16 sectors
    loads = [f"load{at}" for at in range(4)]
    uses = [f"use{at}" for at in range(4)]
    context = context_of(
        listing(_RUNS),
        [Row("lg_throttle", "load0", 600, 500)],
        counts=dict.fromkeys((*loads, *uses), (1_000_000, 32_000_000)),
        pc_metrics={"memory_l2_theoretical_sectors_global": dict.fromkeys(loads, sectors)},
    )
    (found,) = product_loops(context.program, context.kernel)
    assert context.profile is not None
    assert with_sharing(found, context.program.form, context.profile).windows is windows


@pytest.mark.parametrize(
    ("text", "metrics", "words"),
    [
        (_tile(1, 1), {REQUESTS: 85.0}, "let each thread compute 2 x 2 results (1 x 1 now)"),
        (_tile(4, 4), {REQUESTS: 85.0}, ""),  # keeps four results for each value already
        (_tile(1, 1), {REQUESTS: 60.0}, ""),  # nothing is full
        (_tile(1, 1), {REQUESTS: 85.0, DRAM: 95.0}, ""),  # something else is fuller
    ],
)
def test_a_counted_unit_stands_for_samples(text: str, metrics: dict[str, float], words: str) -> None:
    """As convolutions without samples, L1 requests at 85 and 98 %: nothing was told of them."""
    context = replace(_context(text, metrics), blame=None)
    found = OPTIMIZER.match(context)
    assert isinstance(found, Match) is bool(words)
    if isinstance(found, Match):
        assert words in found.cure
        assert found.title.endswith("L1 requests at 85 %")
        assert found.static_sites
        assert found.counted
        estimate = OPTIMIZER.estimate(context, found)
        assert estimate.paper is None
        assert 1 < estimate.low < estimate.expected < 1 / (1 - 0.85)  # what is not the unit's stays
