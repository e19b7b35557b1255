# SPDX-License-Identifier: Apache-2.0
"""The modelled profile: through the engine like a measured one, the same for a seed, and honest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.kernels import KERNELS, compile_kernel
from tests.simulations import fixture_config, program_of, reasons, run_fixture, run_text, text_program

from gpadvisor import machine
from gpadvisor.advice.kernel import advise_kernel
from gpadvisor.analyzer.occupancy import kernel_occupancy
from gpadvisor.blamer import blame
from gpadvisor.errors import UnknownArchitectureError, UsageError
from gpadvisor.estimators.context import KernelContext
from gpadvisor.model.instruction import MemorySpace, OpcodeClass
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import Evidence
from gpadvisor.model.program import Program
from gpadvisor.rules import OPTIMIZERS
from gpadvisor.sass.opcodes import UNKNOWN_OPCODE
from gpadvisor.simulator import Simulation, SimulationConfig, simulate
from gpadvisor.store.load import load_profile
from gpadvisor.store.snapshot import write_snapshot

pytestmark = [pytest.mark.nvdisasm]

_ENDLESS = """
extern "C" __global__ void k(volatile int* flag, int rounds) {
    while (flag[0] == 0) flag[1] = rounds;
}
"""
_GUARDED = """
extern "C" __global__ void k(float* x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 2.0f;
}
"""
_STRIDED = """
extern "C" __global__ void k(float* x, int stride) {
    x[threadIdx.x * stride] = 1.0f;
}
"""
_CONFLICTS = """
extern "C" __global__ void k(float* x, int stride) {
    __shared__ float s[1024];
    s[threadIdx.x * stride] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[threadIdx.x];
}
"""


def _columns(simulation: Simulation) -> bytes:
    samples, truth = simulation.profile.samples, simulation.truth
    parts = (samples.pc, samples.reason, samples.total, samples.latency, truth.pc, truth.cause, truth.samples)
    return b"".join(column.tobytes() for column in parts)


@pytest.mark.parametrize("name", ["kmeans_assign", "block_reduce", "particles_aos"])
def test_a_modelled_profile_goes_through_the_engine_unchanged(name: str) -> None:
    program = program_of(compile_kernel(name))
    table = machine.load("sm_80")
    profile = run_fixture(name).profile
    blamed = blame(program, profile, table)
    assert blamed.total_samples == profile.total_samples
    assert blamed.latency_samples == profile.latency_samples
    advice = advise_kernel(
        KernelContext(
            kernel=KERNELS[name].entry,
            program=program,
            machine=table,
            occupancy=kernel_occupancy(table, program.facts[KERNELS[name].entry], profile),
            evidence=Evidence.MODELLED,
            profile=profile,
            blame=blamed,
        ),
        OPTIMIZERS,
    )
    assert advice.evidence is Evidence.MODELLED


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = (run_fixture("kmeans_assign", seed=seed) for seed in (7, 7, 8))
    assert _columns(first) == _columns(again)
    assert first.cycles == again.cycles
    assert _columns(first) != _columns(other)


def test_the_profile_survives_a_snapshot(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path), "x.gpadvisor")
    simulation = run_fixture("grid_path")
    write_snapshot(simulation.as_profile(), path)
    kernel = load_profile(path).kernels[0]
    assert kernel.evidence is Evidence.MODELLED
    assert kernel.total_samples == simulation.profile.total_samples
    assert kernel.launch == simulation.profile.launch


def test_truth_and_samples_are_the_same_samples() -> None:
    simulation = run_fixture("thermal_stencil", max_cycles=100_000)
    samples, truth = simulation.profile.samples, simulation.truth
    assert int(truth.samples.sum()) == simulation.profile.total_samples
    for pc, reason, total in zip(samples.pc[:50], samples.reason[:50], samples.total[:50], strict=True):
        rows = (truth.pc == int(pc)) & (truth.reason == int(reason))
        assert int(truth.samples[rows].sum()) == int(total)


def test_every_cycle_is_sampled_and_no_sample_is_lost() -> None:
    simulation = run_text(_CONFLICTS, {0: 0x1000, 1: 0, 2: 8}, block=1024)
    profile = simulation.profile
    # All schedulers have warps until the last ones leave, so that nearly every cycle finds one.
    assert 0.95 * simulation.simulated_cycles < profile.total_samples <= simulation.simulated_cycles
    program, table = text_program(_CONFLICTS), machine.load("sm_80")
    found = blame(program, profile, table)
    assert found.total_samples == profile.total_samples
    assert int(found.rows.samples.sum()) == profile.total_samples


def test_latency_samples_are_those_without_an_issue() -> None:
    profile = run_fixture("kmeans_assign").profile
    names = np.array([reason.name for reason in profile.reasons])[profile.samples.reason]
    assert not profile.samples.latency[names == "selected"].any()
    assert not profile.samples.latency[names == "not_selected"].any()
    assert (profile.samples.latency <= profile.samples.total).all()


def test_trip_counts_follow_from_the_arguments() -> None:
    def loads(clusters: int) -> int:
        config = fixture_config("kmeans_assign")
        arguments = {**config.arguments, 28: clusters}
        program = program_of(compile_kernel("kmeans_assign"))
        simulation = simulate(
            program, "kmeans_assign", machine.load("sm_80"), replace(config, arguments=arguments)
        )
        assert simulation.profile.counts is not None
        return int(simulation.profile.counts.warps.max())

    assert loads(10) == 2 * loads(5)


def test_without_arguments_a_loop_runs_as_often_as_told() -> None:
    chosen = run_fixture("kmeans_assign", arguments={}, loop_trips={16: 3, 19: 5})
    default = run_fixture("kmeans_assign", arguments={}, loop_trips={})
    assert "run 5 times, as told for line 19" in " ".join(chosen.assumptions)
    assert "run 16 times" in " ".join(default.assumptions)
    assert chosen.instructions < default.instructions
    guesses = [
        [problem.message for problem in one.profile.problems if problem.code is ProblemCode.LOOP_NOT_KNOWN]
        for one in (default, chosen)
    ]
    assert guesses == [
        ["how often loops run is a guess (line 16, line 19): --arguments or --loop states it"],
        [],
    ]
    assert all("run 16 times" not in text for text in run_fixture("kmeans_assign").assumptions)


def test_assumptions_are_problems_of_the_profile() -> None:
    simulation = run_fixture("kmeans_assign", arguments={})
    told = {p.message for p in simulation.profile.problems if p.code is ProblemCode.COMPILE_ASSUMPTION}
    assert told == set(simulation.assumptions)


def test_threads_outside_of_the_data_end_at_once() -> None:
    half = run_text(_GUARDED, {0: 0, 4: 0x10, 8: 64}, block=128)
    whole = run_text(_GUARDED, {0: 0, 4: 0x10, 8: 128}, block=128)
    assert half.profile.counts is not None
    assert whole.profile.counts is not None
    assert half.instructions < whole.instructions
    assert int(half.profile.counts.warps.max()) == int(whole.profile.counts.warps.max()) == 4
    assert int(half.profile.counts.warps[half.profile.counts.warps > 0].min()) == 2


def test_lanes_that_part_ways_meet_again() -> None:
    text = """
extern "C" __global__ void k(int* x, int n) {
    int v = 0;
#pragma unroll 1
    for (int i = 0; i < ((int)threadIdx.x & n); ++i) v += x[i];
    x[threadIdx.x] = v;
}
"""
    simulation = run_text(text, {0: 0, 4: 0x10, 8: 3})
    counts = simulation.profile.counts
    assert counts is not None
    function = text_program(text).functions[0]
    found = {}
    for opclass in (OpcodeClass.LOAD, OpcodeClass.STORE):
        places = [one for one in function.instructions if one.info.opclass is opclass]
        pcs = [int(one.pc) for one in places if one.info.space is MemorySpace.GLOBAL]
        rows = np.isin(counts.pc, pcs)
        found[opclass] = counts.warps[rows].tolist(), counts.threads[rows].tolist()
    assert found[OpcodeClass.STORE] == ([1], [32])
    # The longest of 0, 1, 2 and 3 iterations, of eight lanes each.
    assert found[OpcodeClass.LOAD] == ([3], [48])


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32), (0, 1)])
def test_sectors_follow_from_the_addresses(stride: int, sectors: int) -> None:
    simulation = run_text(_STRIDED, {0: 0, 4: 0x10, 8: stride})
    metric = simulation.profile.pc_metrics["memory_l2_theoretical_sectors_global"]
    assert metric.value.tolist() == [sectors]


@pytest.mark.parametrize(("stride", "lines"), [(1, 1), (2, 2), (8, 8), (32, 32), (0, 1)])
def test_each_line_that_a_request_touches_is_a_pass_through_l1(stride: int, lines: int) -> None:
    simulation = run_text(_STRIDED, {0: 0, 4: 0x10, 8: stride})
    assert simulation.profile.pc_metrics["memory_l1_tag_requests_global"].value.tolist() == [lines]


def test_a_barrier_of_a_single_warp_costs_time() -> None:
    text = """
extern "C" __global__ void k(float* x, int n) {
    __shared__ volatile float s[32];
    float v = x[threadIdx.x];
#pragma unroll 1
    for (int i = 0; i < n; ++i) { s[threadIdx.x] = v; BARRIER; v += 1.0f; }
    x[threadIdx.x] = v;
}
"""
    arguments = {0: 0, 4: 0x10, 8: 200}
    block, warp = (
        run_text(text.replace("BARRIER", barrier), arguments)
        for barrier in ("__syncthreads()", "__syncwarp()")
    )
    assert block.cycles is not None
    assert warp.cycles is not None
    assert block.cycles > warp.cycles
    assert reasons(block)["barrier"] > 0 == reasons(warp)["barrier"]


def test_traffic_behind_l1_is_counted_for_the_whole_grid() -> None:
    metrics = run_text(_STRIDED, {0: 0, 4: 0x10, 8: 8}, grid=40, l2_hit_rate=0.0).profile.metrics
    assert metrics["lts__t_sectors_srcunit_tex.sum"] == pytest.approx(40 * 32)
    assert metrics["dram__sectors_write.sum"] == pytest.approx(40 * 32)
    assert metrics["dram__sectors_read.sum"] == 0.0


@pytest.mark.parametrize(("stride", "ways"), [(1, 1), (2, 2), (32, 32)])
def test_bank_conflicts_follow_from_the_addresses(stride: int, ways: int) -> None:
    simulation = run_text(_CONFLICTS, {0: 0, 4: 0x10, 8: stride})
    metric = simulation.profile.pc_metrics["memory_l1_wavefronts_shared"]
    assert max(metric.value.tolist()) == ways


def test_told_sectors_and_conflicts_are_taken() -> None:
    simulation = run_text(_CONFLICTS, {0: 0, 4: 0x10, 8: 1}, sectors_per_request=16.0, bank_conflict_ways=4.0)
    metrics = simulation.profile.pc_metrics
    assert set(metrics["memory_l2_theoretical_sectors_global"].value.tolist()) == {16.0}
    assert set(metrics["memory_l1_wavefronts_shared"].value.tolist()) == {4.0}


# ---- launches that cannot be, and kernels that do not end ----


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"block": (64, 32, 1)}, "2048 threads per block"),
        ({"dynamic_shared_bytes": 1 << 20}, "bytes of shared memory per block"),
    ],
)
def test_a_launch_that_cannot_run_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        run_fixture("kmeans_assign", **change)


def test_launch_bounds_are_kept() -> None:
    with pytest.raises(UsageError, match="launch bounds allow 256"):
        run_fixture("block_reduce", block=(512, 1, 1))


def test_too_many_registers_are_refused() -> None:
    program = program_of(compile_kernel("kmeans_assign"))
    facts = {name: replace(one, registers_per_thread=128) for name, one in program.facts.items()}
    with pytest.raises(UsageError, match="does not fit an SM"):
        simulate(
            replace(program, facts=facts), "kmeans_assign", machine.load("sm_80"),
            fixture_config("kmeans_assign", block=(1024, 1, 1)),
        )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"grid": (0, 1, 1)},
        {"block": (1025, 1, 1)},
        {"l1_hit_rate": 1.5},
        {"loop_trips": {3: 0}},
        {"sms": 0},
        {"interval_cycles": 0},
    ],
)
def test_values_without_sense_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SimulationConfig(**{"grid": (1, 1, 1), "block": (32, 1, 1), **change})  # type: ignore[arg-type] # values of several types


def test_an_unknown_kernel_is_refused_with_those_there_are() -> None:
    config, program = fixture_config("kmeans_assign"), program_of(compile_kernel("kmeans_assign"))
    with pytest.raises(UsageError, match="it has kmeans_assign"):
        simulate(program, "other", machine.load("sm_80"), config)


def test_an_unknown_architecture_is_refused() -> None:
    program = program_of(compile_kernel("kmeans_assign"))
    with pytest.raises(UnknownArchitectureError, match="no timing table"):
        simulate(
            replace(program, arch="sm_999"),
            "kmeans_assign",
            machine.load("sm_80"),
            fixture_config("kmeans_assign"),
        )


@pytest.mark.parametrize("limit", [{"max_cycles": 20_000}, {"max_instructions": 5_000}])
def test_a_kernel_that_does_not_end_is_cut_off_and_said_so(limit: dict[str, int]) -> None:
    endless = run_text(_ENDLESS, default_trips=1 << 30, block=64, **limit)
    assert endless.cycles is None
    assert endless.duration_seconds is None
    assert endless.profile.sampling.truncated
    assert any("had not ended" in problem.message for problem in endless.profile.problems)
    assert endless.profile.total_samples > 0


def _with_unknown_opcode(program: Program) -> Program:
    function = program.functions[0]
    index = next(i for i, one in enumerate(function.instructions) if one.info.opclass is OpcodeClass.FLOAT32)
    changed = replace(function.instructions[index], opcode="FNEW", info=UNKNOWN_OPCODE)
    instructions = (*function.instructions[:index], changed, *function.instructions[index + 1 :])
    return replace(program, functions=(replace(function, instructions=instructions), *program.functions[1:]))


def test_an_unknown_opcode_is_simulated_and_reported() -> None:
    program = _with_unknown_opcode(program_of(compile_kernel("kmeans_assign")))
    simulation = simulate(program, "kmeans_assign", machine.load("sm_80"), fixture_config("kmeans_assign"))
    told = [p for p in simulation.profile.problems if p.code is ProblemCode.UNKNOWN_OPCODE]
    assert "FNEW" in told[0].message
    assert simulation.cycles is not None


# ---- every fixture, every architecture of the quick run ----


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_every_fixture_runs(name: str, arch: str) -> None:
    if arch not in KERNELS[name].architectures:
        pytest.skip(f"{name} is not for {arch}")
    simulation = run_fixture(name, arch=arch, max_cycles=30_000)
    found = reasons(simulation)
    assert sum(found.values()) > 20
    assert "misc" not in found
    assert all("waited for each other for ever" not in text for text in simulation.assumptions)


@pytest.mark.parametrize("grid", [(8, 16, 1), (4, 4, 1), (3, 3, 3), (12, 10, 1)])
def test_blocks_at_the_border_of_a_small_grid_do_not_stand_for_all(grid: tuple[int, int, int]) -> None:
    text = """
extern "C" __global__ void k(float* x) {
    if (blockIdx.x % (gridDim.x - 1) && blockIdx.y % (gridDim.y - 1)) x[threadIdx.x] = __expf(x[threadIdx.x]);
}
"""
    program = text_program(text, "sm_90")
    config = SimulationConfig(grid=grid, block=(32, 1, 1), sms=132)
    counts = simulate(program, "k", machine.load("sm_90"), config).profile.counts
    assert counts is not None
    inner = [
        int(one.pc)
        for one in program.functions[0].instructions
        if one.opcode == "MUFU" and "EX2" in one.modifiers
    ]
    assert counts.warps[np.isin(counts.pc, inner)].sum() > 0
