# SPDX-License-Identifier: Apache-2.0
"""The instruction roofline on kernels made by hand, and what it does where inputs are missing."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimizer_values import Row, context_of, listing
from tests.schemas import published_schema

from gpadvisor.advice.evaluate import EstimatedMatch
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.advice.standing import NO_THRESHOLDS
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.advice import Estimate, Match, ReducedLoad
from gpadvisor.model.profile import Evidence, MetricValue, PcSamples
from gpadvisor.pipeline.limits import EstimateLimits, within_limits
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.views.roofline.accesses import no_conflict, stride_1
from gpadvisor.views.roofline.advice import Proposal, caps, follows, left_alone
from gpadvisor.views.roofline.build import measured_roofline, roofline
from gpadvisor.views.roofline.formats import render_csv, render_json
from gpadvisor.views.roofline.model import Basis, CeilingKind, Figure, Level, RegionKind, Roofline, WallKind
from gpadvisor.views.roofline.shown import ShownKernel
from gpadvisor.views.roofline.svg import render_svg
from gpadvisor.views.roofline.text import render_text
from gpadvisor.views.roofline.words import region_name, sentences

SECONDS = 1e-3
CODE = """
first| IADD3 R0, R1, R2, RZ // 1
outer:
floats| LDG.E R4, [R2.64] // 2
inner:
vectors| LDG.E.128 R8, [R2.64] // 3
tile| LDS R12, [R13] // 4
sum| FFMA R4, R8, R12, R4 // 4
again| @P0 BRA inner // 3
back| @P1 BRA outer // 2
store| STG.E [R2.64], R4 // 6
end| EXIT // 7
"""
COUNTS = {
    "first": (1000, 32000),
    "floats": (10_000, 320_000),
    "vectors": (80_000, 1_280_000),
    "tile": (80_000, 1_280_000),
    "sum": (80_000, 1_280_000),
    "again": (80_000, 1_280_000),
    "back": (10_000, 320_000),
    "store": (1000, 32_000),
    "end": (1000, 32_000),
}
W = sum(warps for warps, _ in COUNTS.values())
SECTORS = {"floats": 320_000.0, "vectors": 1_280_000.0, "store": 4000.0}
IDEAL = {"floats": 40_000.0, "vectors": 1_280_000.0, "store": 4000.0}
BY_PC = {
    "memory_l2_theoretical_sectors_global": SECTORS,
    "memory_l2_theoretical_sectors_global_ideal": IDEAL,
    "memory_l1_tag_requests_global": {"floats": 320_000.0, "vectors": 320_000.0, "store": 1000.0},
    "memory_l1_wavefronts_shared": {"tile": 320_000.0},
    "memory_l1_wavefronts_shared_ideal": {"tile": 80_000.0},
    "thread_inst_executed_true": {name: threads * 0.75 for name, (_, threads) in COUNTS.items()},
}
SCALARS: dict[str, MetricValue] = {
    "smsp__inst_executed.sum": W,
    "device__attribute_multiprocessor_count": 80,
    "device__attribute_max_ipc_per_multiprocessor": 4,
    "device__attribute_max_gpu_frequency_khz": 1_530_000,
    "sm__cycles_elapsed.avg.per_second": 1.2e9,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 1_600_000,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 4000,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 90_000,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 1000,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 320_000,
    "lts__t_sectors_srcunit_tex.sum": 400_000,
    "lts__t_sectors.sum.per_second": 4e8,
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 1.0,
    "dram__sectors_read.sum": 100_000,
    "dram__sectors_write.sum": 50_000,
    "dram__bytes.sum.peak_sustained": 1000.0,
    "dram__cycles_elapsed.avg.per_second": 0.8e9,
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 45.0,
    "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed": 39.0,
}
SAMPLES = {"floats": 4000, "vectors": 3000, "tile": 2000, "sum": 600, "again": 200, "back": 190, "store": 10}


def kernel(
    metrics: dict[str, MetricValue] | None = None,
    *,
    code: str = CODE,
    by_pc: dict[str, dict[str, float]] | None = None,
    samples: dict[str, int] | None = None,
    counts: dict[str, tuple[int, int]] | None = None,
) -> KernelContext:
    made = listing(code)
    sampled = SAMPLES if samples is None else samples
    found = context_of(
        made,
        [Row("long_scoreboard", at, count) for at, count in sampled.items()],
        counts=COUNTS if counts is None else counts,
        pc_metrics=BY_PC if by_pc is None else by_pc,
        metrics=SCALARS if metrics is None else metrics,
    )
    assert found.profile is not None
    rows = PcSamples(
        section=np.zeros(len(sampled), dtype=np.uint16),
        pc=np.array([16 * made.tags[at][1] for at in sampled], dtype=np.uint64),
        reason=np.zeros(len(sampled), dtype=np.uint8),
        total=np.array(list(sampled.values()), dtype=np.uint64),
        latency=np.zeros(len(sampled), dtype=np.uint64),
    )
    return replace(found, profile=replace(found.profile, samples=rows))


def made(context: KernelContext | None = None, kind: RegionKind = RegionKind.LOOP) -> Roofline:
    return roofline(measured_roofline(kernel() if context is None else context, "kernel(float*)"), kind)


def use(found: Roofline, name: str) -> float:
    return next(one.use for one in found.ceilings if one.name == name)


def without(*names: str) -> dict[str, MetricValue]:
    return {name: value for name, value in SCALARS.items() if not name.startswith(names)}


def test_points_are_instructions_over_transactions_at_one_height() -> None:
    found = made()
    assert found.height == pytest.approx(W / SECONDS)
    moved = {one.level: one.transactions.value for one in found.points}
    assert moved == {
        Level.L1_TAGS: 641_000,
        Level.L1_SECTORS: 1_604_000,
        Level.SHARED: 320_000,
        Level.L2: 400_000,
        Level.DRAM: 150_000,
    }
    for one in found.points:
        assert one.intensity * one.transactions.value == pytest.approx(W)
        assert one.peak is not None
        assert one.use == pytest.approx(found.height / one.intensity / one.peak.value)
    assert found.global_intensity == pytest.approx(91_000 / 1_604_000)
    assert found.shared_intensity == pytest.approx(1 / 4)


def test_peaks_of_a_v100_are_those_of_the_paper() -> None:
    found = made()
    assert found.issue_peak is not None
    assert found.issue_peak_maximum is not None
    assert found.issue_peak_maximum.value == pytest.approx(489.6e9)
    assert found.issue_peak.value == pytest.approx(80 * 4 * 1.2e9)
    peaks = {one.level: one.peak.value for one in found.points if one.peak is not None}
    assert peaks[Level.L1_SECTORS] == pytest.approx(80 * 4 * 1.2e9)
    assert peaks[Level.SHARED] == peaks[Level.L1_TAGS] == pytest.approx(80 * 1.2e9)
    assert peaks[Level.L2] == pytest.approx(4e8 / 0.01)
    assert peaks[Level.DRAM] == pytest.approx(1000 * 0.8e9 / 32)


def test_dram_is_not_drawn_above_its_specification() -> None:
    bus = {"device__attribute_max_mem_frequency_khz": 877_000, "device__attribute_fb_bus_width": 4096}
    found = made(kernel({**SCALARS, **bus, "dram__cycles_elapsed.avg.per_second": 0.95e9}))
    dram = next(one for one in found.points if one.level is Level.DRAM)
    assert dram.peak is not None
    assert dram.peak.value * 32 == pytest.approx(898.048e9)


def test_both_names_of_dram_sectors_are_read() -> None:
    renamed = {name.replace("dram__sectors_", "dram__sectors_op_"): value for name, value in SCALARS.items()}
    assert {one.level for one in made(kernel(renamed)).points} == set(Level)
    rate = without("dram__sectors") | {"dram__bytes.sum.per_second": 6.4e9}
    dram = next(one for one in made(kernel(rate)).points if one.level is Level.DRAM)
    assert dram.transactions.value == pytest.approx(6.4e9 * SECONDS / 32)


def test_without_counters_the_instructions_are_added_up() -> None:
    found = made(kernel(without("smsp__inst", "l1tex__")))
    assert found.instructions.basis is Basis.INSTRUCTIONS
    assert found.instructions.value == W
    moved = {one.level: one.transactions for one in found.points}
    assert moved[Level.L1_SECTORS].value == 1_604_000
    assert moved[Level.SHARED].value == 320_000
    assert {moved[level].basis for level in (Level.L1_SECTORS, Level.SHARED)} == {Basis.INSTRUCTIONS}


def test_asynchronous_copies_that_the_counter_leaves_out_are_counted() -> None:
    code = CODE.replace("LDG.E.128 R8, [R2.64]", "LDGSTS.E.128 [R8], [R2.64]")
    few = {**SCALARS, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 320_000}
    moved = {one.level: one.transactions for one in made(kernel(few, code=code)).points}
    assert moved[Level.L1_SECTORS].value == 1_604_000


def test_older_names_of_columns_are_read() -> None:
    older = {
        "memory_l2_theoretical_sectors_global": "memory_l2_sectors_global",
        "memory_l2_theoretical_sectors_global_ideal": "memory_l2_sectors_global_ideal",
        "memory_l1_tag_requests_global": "memory_l1_sectors_global",
    }
    renamed = {older.get(name, name): values for name, values in BY_PC.items()}
    assert made(kernel(by_pc=renamed)).accesses == made().accesses


def test_a_pipe_is_a_ceiling_from_40_percent_on() -> None:
    found = made()
    assert use(found, "LSU pipe") == pytest.approx(0.45)
    assert "ALU pipe" not in {one.name for one in found.ceilings}
    lsu = next(one for one in found.ceilings if one.name == "LSU pipe")
    assert lsu.height == pytest.approx(found.height / 0.45)
    assert lsu.factor == pytest.approx(1 / 0.45)
    assert [one.use for one in found.ceilings] == sorted((one.use for one in found.ceilings), reverse=True)


@pytest.mark.parametrize(("width", "sectors"), [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16)])
def test_the_wall_of_neighbouring_values_is_as_wide_as_a_value(width: int, sectors: float) -> None:
    assert stride_1(width) == sectors


def test_columns_of_a_tile_of_floats_are_in_one_bank_unless_it_is_padded() -> None:
    def conflicts(pitch: int) -> int:
        banks = [row * pitch % 32 for row in range(32)]
        return max(banks.count(bank) for bank in banks)

    assert conflicts(32) == 32
    assert conflicts(33) == no_conflict(4) == 1


@pytest.mark.parametrize(
    ("access", "each", "wall"),
    [
        ("LDG.E", 1.0, WallKind.ONE_ADDRESS),
        ("LDG.E", 2.0, WallKind.FEWER),
        ("LDG.E", 4.0, WallKind.STRIDE_1),
        ("LDG.E", 16.0, WallKind.SCATTERED),
        ("LDG.E.128", 16.0, WallKind.STRIDE_1),
        ("LDG.E.64", 4.0, WallKind.FEWER),
        ("LDG.E", 32.0, WallKind.EACH_LANE),
    ],
)
def test_an_access_stands_on_the_wall_of_its_own_width(access: str, each: float, wall: WallKind) -> None:
    code = f"load| {access} R4, [R2.64]\nend| EXIT\n"
    by_pc = {"memory_l2_theoretical_sectors_global": {"load": 1000 * each}}
    counts = {"load": (1000, 32_000), "end": (1000, 32_000)}
    found = made(kernel(code=code, by_pc=by_pc, counts=counts, samples={"load": 10}))
    assert [(one.wall, one.per_instruction) for one in found.accesses] == [(wall, each)]


def test_wasteful_accesses_are_named_with_what_would_do() -> None:
    said = " ".join(sentences(ShownKernel(roofline=made(), proposals=(), time_share=None)))
    assert "LDG.E at kernel.cu:2 takes 32 sectors each time where 4 would do: 17.5 % of all sectors" in said
    assert "LDS at kernel.cu:4 takes 4 wavefronts each time where 1 would do: 75.0 %" in said
    assert "LDG.E.128" not in said


def test_lanes_lost_to_divergence_and_to_predicates_are_apart() -> None:
    found = made()
    every = sum(threads for _, threads in COUNTS.values())
    assert found.lanes.active is not None
    assert found.lanes.predicated is not None
    assert found.lanes.active.value == pytest.approx(every / W / 32)
    assert found.lanes.predicated.value == pytest.approx(0.75 * every / W / 32)


def test_loops_of_depth_one_and_the_rest_add_up_to_the_kernel() -> None:
    found = made()
    outermost = [one for one in found.regions if one.depth <= 1]
    assert [one.depth for one in found.regions] == [1, 2, 0]
    assert sum(one.instructions for one in outermost) == W
    assert sum(one.samples for one in outermost) == sum(SAMPLES.values())
    assert sum(one.sectors or 0 for one in outermost) == sum(SECTORS.values())
    heights = sum(
        one.height.expected * (one.share or 0) if one.height else one.instructions / SECONDS
        for one in outermost
    )
    assert heights == pytest.approx(found.height)


@given(st.dictionaries(st.sampled_from(list(COUNTS)), st.integers(1, 10**6), min_size=1))
def test_lines_add_up_to_the_kernel_whatever_was_sampled(samples: dict[str, int]) -> None:
    found = made(kernel(samples=samples), RegionKind.LINE)
    assert sum(one.samples for one in found.regions) == sum(samples.values())
    assert sum(one.instructions for one in found.regions) == W
    assert sum(one.tags or 0 for one in found.regions) == 641_000
    for one in found.regions:
        assert (one.height is None) == bool(one.hidden)
        if one.height is not None:
            assert one.height.low <= one.height.expected <= one.height.high
            assert one.height.expected == pytest.approx(one.instructions / SECONDS / (one.share or 1))


def test_a_region_with_few_samples_has_no_height_and_says_so() -> None:
    found = made(kind=RegionKind.LINE)
    store = next(one for one in found.regions if one.location is not None and one.location.line == 6)
    assert store.height is None
    assert store.hidden == "too few samples"


def test_a_region_whose_units_would_be_more_than_full_has_no_height() -> None:
    crowded = {"floats": 2_000_000, "tile": 10_000}
    counts = COUNTS | {"tile": (8_000_000, 256_000_000)}
    by_pc = BY_PC | {"memory_l1_wavefronts_shared": {"tile": 3.2e7}}
    found = made(kernel(samples=crowded, counts=counts, by_pc=by_pc), RegionKind.LINE)
    tile = next(one for one in found.regions if one.location is not None and one.location.line == 4)
    assert tile.height is None
    assert tile.hidden.startswith("its samples are fewer than its work takes")


def test_samples_of_a_part_of_the_run_carry_no_height() -> None:
    context = kernel()
    assert context.profile is not None
    sampling = replace(context.profile.sampling, truncated=True)
    found = made(replace(context, profile=replace(context.profile, sampling=sampling)))
    assert {one.hidden for one in found.regions} == {"samples cover only the first part of the run"}


def test_a_kernel_without_memory_instructions_has_ceilings_and_no_points() -> None:
    code = "sum| FFMA R4, R8, R12, R4\nend| EXIT\n"
    few = without("l1tex__", "lts__", "dram__")
    counts = {"sum": (500_000, 16_000_000), "end": (1000, 32_000)}
    found = made(kernel(few, code=code, by_pc={}, counts=counts, samples={"sum": 900}))
    assert not found.points
    assert not found.accesses
    assert {one.kind for one in found.ceilings} == {CeilingKind.ISSUE, CeilingKind.PIPE}
    ET.fromstring(render_svg(ShownKernel(roofline=found, proposals=(), time_share=1.0)).partition("\n")[2])


def test_without_counts_it_says_which_sections_to_collect() -> None:
    context = kernel({})
    assert context.profile is not None
    bare = replace(context, profile=replace(context.profile, counts=None))
    with pytest.raises(ProfileMismatchError, match="--section SourceCounters"):
        made(bare)


@pytest.mark.parametrize("duration", [None, 0.0, float("nan")])
def test_without_a_time_there_is_no_roofline(duration: float | None) -> None:
    context = kernel()
    assert context.profile is not None
    launch = replace(context.profile.launch, duration_ns=duration)
    with pytest.raises(ProfileMismatchError, match="collect it"):
        made(replace(context, profile=replace(context.profile, launch=launch)))


def test_what_makes_it_doubtful_is_said() -> None:
    context = kernel(SCALARS | {"launch__waves_per_multiprocessor": 0.3})
    debug = replace(context, program=replace(context.program, debug_build=True))
    notes = " ".join(made(debug).notes)
    assert "debug build" in notes
    assert "0.3 waves" in notes
    assert "not counted" in " ".join(made(kernel(without("lts__"))).notes)
    other = {"sm__inst_executed.avg.pct_of_peak_sustained_elapsed": 10.0}
    assert "10.0 % of the issue peak" in " ".join(made(kernel(SCALARS | other)).notes)
    apart = made(kernel(SCALARS | {"smsp__inst_executed.sum": 2 * W}))
    assert "50.0 % of the counter" in " ".join(apart.notes)


def proposal(code: str, expected: float, *reduced_loads: str) -> Proposal:
    estimate = Estimate(low=1.0, expected=expected, high=expected, paper=None, equation="", reasons=())
    loads_left = tuple(ReducedLoad(resource=one, remaining=0.5, remaining_best=0.5) for one in reduced_loads)
    return Proposal(code=code, name=code, speedup=estimate, reduced_loads=loads_left, places=frozenset())


def test_the_suggestion_is_the_one_that_raises_the_nearest_ceiling() -> None:
    full = made(kernel({**SCALARS, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 95.0}))
    first, second = proposal("A", 1.04), proposal("B", 1.03, "LSU pipe")
    assert follows(full, [first, second]) is second
    assert follows(full, [first]) is None
    assert follows(made(), [first, second]) is first


def test_a_promise_above_several_ceilings_says_that_it_raises_all_of_them() -> None:
    full = made(kernel({**SCALARS, f"{LSU}_elapsed": 95.0, "dram__bytes.sum.peak_sustained": 10.0}))

    def said(one: Proposal) -> str:
        return " ".join(sentences(ShownKernel(roofline=full, proposals=(one,), time_share=None)))

    over = proposal("B", 9.0, "LSU pipe", "DRAM")
    assert "B (B), 9.0x (1.0-9.0): less goes through LSU pipe and DRAM." in said(over)
    assert "less goes through LSU" not in said(proposal("B", 1.03, "LSU pipe", "DRAM"))


def test_a_simulated_run_says_so_of_its_counters_and_asks_for_no_section() -> None:
    context = kernel(without("lts__"))
    assert context.profile is not None
    profile = replace(context.profile, evidence=Evidence.MODELLED)
    found = made(replace(context, profile=profile))
    assert {point.transactions.basis for point in found.points} == {Basis.MODELLED}
    assert found.instructions.basis is Basis.MODELLED
    assert "--section" not in " ".join(found.notes)


LSU = "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained"


def finding(code: str, expected: float, *reduced_loads: str) -> EstimatedMatch:
    one = proposal(code, expected, *reduced_loads)
    return EstimatedMatch(
        optimizer=next(rule for rule in OPTIMIZERS if rule.code == code),
        match=Match(title=code, advice=code, regions=(), reduced_loads=one.reduced_loads),
        estimate=one.speedup,
        matched_samples=1000,
        matched_latency=0,
    )


def test_a_promise_beyond_a_ceiling_that_stays_is_lowered_to_it_and_told() -> None:
    context = kernel({**SCALARS, f"{LSU}_elapsed": 80.0})
    over, raised = finding("GPA105", 2.0), finding("GPA106", 1.5, "LSU pipe")
    evaluated = within_limits(EstimateLimits(context, "kernel(float*)"), ((over, raised), ()))
    first, second = (one.estimate for one in evaluated[0])
    assert first is not None
    assert second == raised.estimate
    assert (first.expected, first.low, first.high) == pytest.approx((1.25, 1.0, 1.25 * 1.03))
    assert first.cap is not None
    assert (first.cap.limit, first.cap.speedup, first.cap.before) == ("LSU pipe", pytest.approx(1.25), 2.0)
    assert first.reasons == (f"at most 1.25x: {first.cap.reason}",)
    assert first.cap.reason == f"LSU pipe is at 80.0 % of its peak, which it leaves as it is ({LSU}_elapsed)"
    found = advise_kernel(context, (), limits=NO_THRESHOLDS, evaluated=evaluated)
    assert [one.code for one in found.suggestions] == ["GPA106", "GPA105"], (
        "the lowered one ranks by what is left"
    )
    held = replace(proposal("A", 2.0), speedup=first)
    full = made(context)
    assert [cap.ceiling.name for cap in caps(full, [held, proposal("B", 2.0)])] == ["LSU pipe"]
    said = " ".join(sentences(ShownKernel(roofline=full, proposals=(held,), time_share=None)))
    assert "A (A) is held to 1.25x: LSU pipe is at 80.0 %, which it leaves as it is." in said


def test_a_ceiling_is_of_a_change_that_leaves_its_load_as_it_is() -> None:
    def kept(metric: str, *reduced_loads: ReducedLoad, relaunched: bool = False) -> str | None:
        others = {name: value for name, value in SCALARS.items() if LSU not in name}
        above = made(kernel({**others, metric: 80.0})).ceilings
        found = left_alone(above, reduced_loads, relaunched=relaunched)
        return None if found is None else found.name

    elapsed, active = f"{LSU}_elapsed", f"{LSU}_active"
    perhaps = ReducedLoad(resource="LSU pipe", remaining=1.0, remaining_best=0.5)
    fewer = ReducedLoad(resource="issue", remaining=0.5, remaining_best=0.5)
    other = ReducedLoad(resource="ALU pipe", remaining=0.5, remaining_best=0.5)
    assert kept(elapsed) == "LSU pipe"
    assert kept(elapsed, perhaps) != "LSU pipe", "its load may fall"
    assert kept(elapsed, fewer) != "LSU pipe", "instructions go, and of which pipe is not known"
    assert kept(elapsed, fewer, other) == "LSU pipe"
    assert kept(elapsed, relaunched=True) == "LSU pipe"
    assert kept(active) == "LSU pipe"
    assert kept(active, relaunched=True) != "LSU pipe", "of the SMs that have work now"


def test_json_is_what_its_schema_says_and_csv_has_every_row() -> None:
    shown = ShownKernel(roofline=made(), proposals=(proposal("A", 2.0),), time_share=0.5)
    document = json.loads(render_json([shown], ["b has no counts"]))
    jsonschema.Draft202012Validator(published_schema("views.roofline", "roofline")).validate(document)
    rows = list(csv.DictReader(io.StringIO(render_csv([shown]))))
    assert (
        sum(float(row["transactions"]) for row in rows if row["row"] == "access to global memory")
        == 1_604_000
    )
    assert sum(row["row"] == "level" for row in rows) == len(Level)
    assert sum(row["row"] == "loop" for row in rows) == 3


HOSTILE = "</text><script>alert(1)</script>\x1b[31m\x00 & \u202e"


def test_names_are_text_in_the_picture_and_on_the_page() -> None:
    found = replace(made(), kernel=HOSTILE)
    picture = render_svg(ShownKernel(roofline=found, proposals=(), time_share=None))
    root = ET.fromstring(picture.partition("\n")[2])
    assert not [one for one in root.iter() if one.tag.endswith("script")]
    assert "\x1b" not in picture
    assert "\x1b" not in render_text(
        [ShownKernel(roofline=found, proposals=(), time_share=None)], [], width=80, rows=12
    )


def test_the_picture_has_each_dot_with_its_numbers() -> None:
    picture = render_svg(ShownKernel(roofline=made(), proposals=(), time_share=0.25))
    root = ET.fromstring(picture.partition("\n")[2])
    titles = [one.text or "" for one in root.iter() if one.tag.endswith("}title")]
    for level in Level:
        assert any(title.startswith(f"{level.value}: ") and "GTXN/s" in title for title in titles)
    assert any("LSU pipe 45 %" in title for title in titles)
    assert "prefers-color-scheme: dark" in picture
    assert not [one for one in root.iter() if one.tag.endswith("script")]


def test_what_is_in_no_loop_is_named_by_its_function() -> None:
    rest = next(one for one in made().regions if one.loop is None and one.pc is not None)
    assert region_name(rest) == "The code of kernel that is in no loop"


def test_the_legend_of_the_picture_names_a_width_that_occurs() -> None:
    found = made()
    wide = tuple(replace(access, width_bytes=8) for access in found.accesses)
    picture = render_svg(ShownKernel(roofline=replace(found, accesses=wide), proposals=(), time_share=None))
    assert "8 B is that of neighbouring values of 8 bytes" in picture


def test_text_keeps_within_its_width() -> None:
    text = render_text(
        [ShownKernel(roofline=made(), proposals=(), time_share=0.25)], ["x" * 90], width=80, rows=12
    )
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "L1 sectors" in text


def test_a_table_is_no_formula_and_moves_no_cursor() -> None:
    found = replace(made(), kernel="=cmd|' /C calc'!A1\x1b[2J\ud800")
    table = render_csv([ShownKernel(roofline=found, proposals=(), time_share=None)])
    rows = list(csv.DictReader(io.StringIO(table)))
    assert {row["kernel"] for row in rows} == {"'=cmd|' /C calc'!A1\\x1b[2J\\ud800"}
    assert "\x1b" not in table
    assert table.encode()


def test_numbers_that_are_none_are_empty_in_a_table() -> None:
    found = made()
    ceiling = replace(found.ceilings[0], height=math.inf, use=math.nan)
    shown = ShownKernel(roofline=replace(found, ceilings=(ceiling,)), proposals=(), time_share=None)
    row = next(row for row in csv.DictReader(io.StringIO(render_csv([shown]))) if row["row"] == "ceiling")
    assert (row["gips"], row["use"]) == ("", "")


def test_counts_of_opcodes_that_were_not_measured_are_left_out() -> None:
    name = "sass__inst_executed_per_opcode[{}]"
    found = made(kernel({**SCALARS, name.format("FFMA"): 10.0, name.format("IMAD"): math.nan}))
    assert [(row.name, row.share) for row in found.mix] == [("FP32", 1.0)]


def test_a_picture_of_lanes_that_do_nothing() -> None:
    found = made()
    idle = replace(found.lanes, predicated=Figure(0.0, Basis.REPORT, "x"))
    render_svg(ShownKernel(roofline=replace(found, lanes=idle), proposals=(), time_share=None))
