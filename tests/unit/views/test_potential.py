# SPDX-License-Identifier: Apache-2.0
"""GPUPerf: the printed equations, their identities, the published example, and the model of today's SMs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gpuperf import HongKim, Printed, gpuperf, hong_kim
from tests.optimizer_values import Row, context_of, listing
from tests.schemas import published_schema

from gpadvisor.advice.evaluate import EstimatedMatch
from gpadvisor.errors import ProfileMismatchError
from gpadvisor.estimators.constants import MODEL_OFF
from gpadvisor.estimators.context import KernelContext
from gpadvisor.evidence.queries import kernel_scope
from gpadvisor.model.advice import Estimate, Match, ReducedLoad, Region
from gpadvisor.model.profile import Evidence, MetricValue, PcSamples
from gpadvisor.model.stalls import stall_reason
from gpadvisor.pipeline.limits import EstimateLimits, within_limits
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.views.potential.adapted import parts
from gpadvisor.views.potential.build import potential
from gpadvisor.views.potential.formats import render_json, render_text, shares
from gpadvisor.views.potential.model import Benefit, ModelInputs, Potential, Promise, ShownPotential
from gpadvisor.views.potential.words import GPUPERF, sentences

FX_5600 = HongKim(
    clock_hz=1e9, bandwidth=80e9, sms=16, dram_latency=420, departure_delay=10, bytes_per_warp=128,
    transactions=32, instructions=27, memory=6, synchronizations=6, cycles_per_instruction=4, warps=20,
    blocks_per_sm=5, repetitions=1,
)  # fmt: skip
C2050 = Printed(
    instructions=1000, memory=50, special=20, arithmetic=400, synchronizations=4, warps_per_sm=96,
    resident_warps=24, ilp=1.5, mlp=2, instruction_latency=18, fp_latency=18, dram_latency=440,
    departure_delay=20, transactions=1, miss_ratio=0.6, hit_latency=18, peak_bandwidth_warps=20,
    data_requests=1500,
)  # fmt: skip


def test_the_published_example_of_2009() -> None:
    execution, sync = hong_kim(FX_5600)
    assert execution == pytest.approx(38_428.2, abs=0.1)
    assert sync == pytest.approx(12_300, abs=0.1)
    execution, sync = hong_kim(FX_5600, mwp_without_bandwidth=2.28)
    assert execution == pytest.approx(38_449, abs=1)
    assert sync == pytest.approx(12_288)


def test_by_hand_on_a_c2050() -> None:
    found = gpuperf(C2050)
    assert found.compute == pytest.approx(1000 * 96 * 18 / 18 + 4 * 96 * 64 * 440 * 0.05)  # Eqs. 2, 3, 7, 8
    latency = 440 * 0.6 + 18  # Eq. 12
    cwp = min((50 * latency / 2 + 1000) / 1000, 24)
    itmlp = min(2 * min(max(1, cwp - 1), 20), 20)
    assert found.memory == pytest.approx(50 * 96 * latency / itmlp)  # Eq. 11
    assert found.ideal_memory == pytest.approx(1500 * 440 / 20)  # Eq. 19


few = st.floats(1, 64)


@given(few, few, st.floats(0, 1), st.floats(0, 300), st.floats(1, 48), st.floats(0, 800))
def test_the_compute_benefits_are_all_of_the_compute_time(
    ilp: float, mlp: float, miss: float, special: float, warps: float, arithmetic: float
) -> None:
    of = replace(
        C2050, ilp=ilp, mlp=mlp, miss_ratio=miss, special=special, resident_warps=warps, arithmetic=arithmetic
    )
    found = gpuperf(of)
    assert found.itilp + found.serial + found.fp == pytest.approx(found.compute - found.ideal_arithmetic)
    assert found.execution == pytest.approx(found.compute + found.memory - found.overlap)
    assert 0 <= found.overlap <= found.memory
    assert gpuperf(replace(of, mlp=2 * mlp)).memory <= found.memory * (1 + 1e-12)
    assert gpuperf(replace(of, miss_ratio=miss / 2)).memory <= found.memory * (1 + 1e-9) or miss < 1


INPUTS = ModelInputs(
    issue_width=4, instructions=1e6, loads=5e4, requests=6e4, stall_cycles=4, resident_warps=16, mlp=2,
    latency=300, l1_latency=32, request_cycles=4, request_in_l1=False, pipe_cycles=4e5, pipe="LSU pipe",
    serial_cycles=1e4, essential_cycles=1e5, data_cycles=5e4,
)  # fmt: skip
inputs = st.builds(
    replace,
    st.just(INPUTS),
    stall_cycles=st.floats(1, 15),
    resident_warps=st.floats(1, 64),
    mlp=st.floats(1, 16),
    latency=st.floats(0, 1000),
    request_cycles=st.floats(0, 100),
    pipe_cycles=st.floats(0, 1e6),
    serial_cycles=st.floats(0, 1e5),
    essential_cycles=st.floats(0, 1e6),
    data_cycles=st.floats(0, 1e6),
)


@given(inputs)
def test_the_parts_add_up_to_the_model_and_none_is_below_zero(of: ModelInputs) -> None:
    found = parts(of)
    benefits = found.benefits
    assert min(benefits.values()) >= -1e-6
    compute = found.ideal_compute + sum(benefits[one] for one in (Benefit.ITILP, Benefit.SERIAL, Benefit.FP))
    assert compute == pytest.approx(found.compute)
    memory = found.ideal_memory + benefits[Benefit.MEMLP]
    assert memory == pytest.approx(found.memory - found.overlap, abs=1e-3)
    assert compute + memory == pytest.approx(found.execution)


@given(inputs, st.floats(1, 4))
def test_memory_time_does_not_grow_with_more_loads_in_flight_or_less_latency(
    of: ModelInputs, more: float
) -> None:
    now = parts(of).memory * (1 + 1e-9)
    assert parts(replace(of, request_cycles=of.request_cycles / more)).memory <= now
    # Below MWP a warp's loads overlap with the others' computing, and memory is as long as that.
    floor = parts(of).compute
    assert parts(replace(of, mlp=of.mlp * more)).memory <= max(now, floor)
    assert parts(replace(of, latency=of.latency / more)).memory <= max(now, floor)


@given(inputs, st.floats(1, 8))
def test_time_does_not_grow_with_more_in_flight_less_latency_or_more_bandwidth(
    of: ModelInputs, more: float
) -> None:
    now = parts(of).execution * (1 + 1e-9) + 1e-6
    assert parts(replace(of, mlp=of.mlp * more)).execution <= now
    assert parts(replace(of, resident_warps=of.resident_warps * more)).execution <= now
    assert parts(replace(of, request_cycles=of.request_cycles / more)).execution <= now
    if of.latency / more >= 1:
        assert parts(replace(of, latency=of.latency / more)).execution <= now


@given(inputs)
def test_time_has_no_jump_and_is_the_printed_one_where_computing_decides(of: ModelInputs) -> None:
    found = parts(of)
    near = parts(replace(of, mlp=of.mlp * (1 + 1e-9))).execution
    assert near == pytest.approx(found.execution, rel=1e-7)
    zeta = 1.0 if found.cwp <= found.mwp else 0.0
    printed = min(found.compute * (of.resident_warps - zeta) / of.resident_warps, found.memory)
    if zeta:
        assert found.overlap == pytest.approx(printed)
    assert printed - found.overlap + 1e-6 >= 0
    assert printed - found.overlap <= found.compute / of.resident_warps * (1 + 1e-9)


CODE = """
again:
load| LDG.E R4, [R2.64] // 2
sum| FFMA R4, R8, R12, R4 // 3
turn| @P0 BRA again // 2
end| EXIT // 4
"""
COUNTS = {
    "load": (800_000, 25_600_000),
    "sum": (800_000, 25_600_000),
    "turn": (800_000, 25_600_000),
    "end": (8000, 256_000),
}
SCALARS: dict[str, MetricValue] = {
    "device__attribute_multiprocessor_count": 80,
    "device__attribute_max_ipc_per_multiprocessor": 4,
    "sm__cycles_active.avg": 100_000.0,
    "sm__cycles_elapsed.max": 100_000.0,
    "sm__cycles_active.max": 100_000.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 50.0,
    "l1tex__t_sector_hit_rate.pct": 50.0,
    "lts__t_sector_hit_rate.pct": 50.0,
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 800_000,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 3_200_000,
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 20.0,
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed": 40.0,
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed": 20.0,
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed": 5.0,
}


def kernel(metrics: dict[str, MetricValue] | None = None, barrier: int = 0) -> KernelContext:
    made = listing(CODE)
    scalars = SCALARS if metrics is None else metrics
    found = context_of(made, [Row("long_scoreboard", "sum", 900)], counts=COUNTS, metrics=scalars)
    assert found.profile is not None
    samples = PcSamples(
        section=np.zeros(3, dtype=np.uint16),
        pc=np.array([0, 16, 32], dtype=np.uint64),
        reason=np.array([0, 1, 2], dtype=np.uint8),
        total=np.array([900 - barrier, barrier, 100], dtype=np.uint64),
        latency=np.array([900 - barrier, barrier, 0], dtype=np.uint64),
    )
    reasons = tuple(stall_reason(name) for name in ("long_scoreboard", "barrier", "selected"))
    return replace(found, profile=replace(found.profile, samples=samples, reasons=reasons))


def test_inputs_come_from_report_and_code() -> None:
    found = potential(kernel(), "kernel", None)
    of = found.inputs
    assert of.loads == of.requests == 10_000
    assert of.instructions == pytest.approx(2_408_000 / 80)
    assert of.stall_cycles == pytest.approx(2.0)
    assert of.resident_warps == pytest.approx(24.0)
    assert of.request_cycles == pytest.approx(4.0)  # of the L1 data stage, the fullest
    assert of.pipe == "LSU pipe"
    assert of.pipe_cycles == pytest.approx(20_000)
    assert of.essential_cycles == pytest.approx(5000)
    assert found.essential == "FP32"
    assert of.latency == pytest.approx(34 + 0.5 * (220 - 34) + 0.25 * (560 - 220) + 3)
    assert not found.missing
    assert sum(share for _, share in shares(found)) == pytest.approx(1.0)


def test_what_is_missing_is_named_and_bounds_nothing() -> None:
    bare = {name: value for name, value in SCALARS.items() if "hit_rate" not in name and "pipe" not in name}
    found = potential(kernel(bare), "kernel", None)
    said = " ".join(found.missing)
    assert "hit rates" in said
    assert "use of pipes" in said
    assert "--section MemoryWorkloadAnalysis" in said
    context = kernel(bare)
    assert context.profile is not None
    simulated = replace(context, profile=replace(context.profile, evidence=Evidence.MODELLED))
    assert "hit rates" in (said := " ".join(made(simulated).missing))
    assert "--section" not in said, "no tool would collect it"
    assert found.inputs.latency == 0
    assert found.parts.memory == pytest.approx(found.inputs.requests * found.inputs.request_cycles)


@pytest.mark.parametrize("name", ["sm__cycles_active.avg"])
def test_without_cycles_there_is_nothing_to_divide(name: str) -> None:
    bare = {key: value for key, value in SCALARS.items() if key != name}
    with pytest.raises(ProfileMismatchError, match="--section SpeedOfLight"):
        potential(kernel(bare), "kernel", None)


def test_without_counts_it_says_what_to_collect() -> None:
    context = kernel()
    assert context.profile is not None
    with pytest.raises(ProfileMismatchError, match="--section SourceCounters"):
        potential(replace(context, profile=replace(context.profile, counts=None)), "kernel", None)


def test_barriers_are_what_was_sampled() -> None:
    found = potential(kernel(barrier=300), "kernel", None)
    assert found.inputs.serial_cycles == pytest.approx(30_000)
    assert found.samples is not None
    assert found.samples[Benefit.SERIAL] == pytest.approx(0.3)
    assert found.share(Benefit.SERIAL) == pytest.approx(0.3)


def limited(expected: float, **changes: Any) -> Estimate:
    """The estimate of a change that is about the kernel's waits for memory, within its limits."""
    context = kernel()
    assert context.blame is not None
    rows = np.flatnonzero(context.blame.rows.samples)
    region = Region(scope=kernel_scope(context.program, context.kernel), rows=rows, active_samples=0)
    one = EstimatedMatch(
        optimizer=OPTIMIZERS[0],
        match=Match(title="", advice="", regions=(region,), **changes),
        estimate=Estimate(low=1, expected=expected, high=expected, paper=None, equation="", reasons=()),
        matched_samples=1000,
        matched_latency=0,
    )
    (found,), _ = within_limits(EstimateLimits(context, "kernel"), ((one,), ()))
    assert found.estimate is not None
    return found.estimate


def made(context: KernelContext | None = None) -> Potential:
    return potential(kernel() if context is None else context, "kernel", None)


def test_a_promise_beyond_the_bound_is_lowered_to_it_and_told() -> None:
    found = made()
    most = found.bound(Benefit.MEMLP, off=MODEL_OFF)
    assert limited(0.99 * most).cap is None
    over = limited(1.5 * most)
    assert over.expected == pytest.approx(most)
    assert over.cap is not None
    assert (over.cap.limit, over.cap.before) == (GPUPERF, pytest.approx(1.5 * most))
    assert "(memory) is" in over.cap.reason
    assert over.cap.reason in over.reason
    held = Promise(code="A", name="Cure", speedup=over, benefits=(Benefit.MEMLP,))
    free = replace(held, speedup=limited(0.99 * most))
    other = replace(held, speedup=replace(over, cap=None, expected=2 * most))
    alone = " ".join(sentences(ShownPotential(potential=found, promises=(other,), time_share=None)))
    assert ", as it saves more than this part." in alone
    said = " ".join(sentences(ShownPotential(potential=found, promises=(held, free), time_share=None)))
    assert said.count("is held to") == 1
    assert f"Cure (A) is held to {most:.2f}x at most: all that it saves (memory)" in said


@pytest.mark.parametrize("unit", ["DRAM", "LSU pipe", "ADU pipe", "issue"])
def test_less_work_for_a_pipe_or_dram_has_no_bound_in_the_model(unit: str) -> None:
    """The model takes the bytes and the instructions as they are for the least."""
    reduced = ReducedLoad(resource=unit, remaining=0.9, remaining_best=0.9)
    over = limited(1.5 * made().bound(Benefit.MEMLP), reduced_loads=(reduced,))
    assert over.cap is None or over.cap.limit != GPUPERF


def test_where_model_and_samples_differ_it_is_said() -> None:
    found = made()
    other = dict.fromkeys(Benefit, 0.0) | {Benefit.MEMLP: found.share(Benefit.MEMLP)}
    alike = replace(found, samples={one: found.share(one) for one in Benefit})
    apart = replace(found, samples=other | {Benefit.MEMLP: 1.0})
    assert "differ" not in " ".join(sentences(ShownPotential(potential=alike, promises=(), time_share=None)))
    said = " ".join(sentences(ShownPotential(potential=apart, promises=(), time_share=None)))
    assert "Model and samples differ on memory" in said


def test_text_and_json_have_the_same_shares() -> None:
    shown = ShownPotential(potential=made(), promises=(), time_share=0.5)
    text = render_text([shown], ["other: no counts"], width=80)
    assert max(len(line) for line in text.splitlines()) <= 80
    document = json.loads(render_json([shown], []))
    jsonschema.Draft202012Validator(published_schema("views.potential", "potential")).validate(document)
    one = document["kernels"][0]
    shared = sum(entry["cycles"] for entry in one["benefits"].values())
    assert shared + one["parts"]["ideal_compute"] + one["parts"]["ideal_memory"] + one[
        "unexplained_cycles"
    ] == pytest.approx(one["cycles"])
