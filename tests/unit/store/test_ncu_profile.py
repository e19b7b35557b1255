# SPDX-License-Identifier: Apache-2.0
"""Reports written with stated content are read back as stated, whatever layout and numbers they use."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import pytest
from tests.ncu_writer import (
    DeviceSpec,
    FrameSpec,
    LaunchSpec,
    Layout,
    RuleSpec,
    as_loaded,
    without_samples,
    write_report,
)
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import EXTERNAL, Evidence, KernelProfile
from gpadvisor.model.stalls import StallClass
from gpadvisor.store.load import load_bytes
from gpadvisor.store.ncu import wire

CUBIN = tiny_cubin({"first": [("helper", 64)], "second": [("helper", 96)]})
SPEC = LaunchSpec(
    kernel="second",
    cubin=CUBIN,
    demangled="second(float *)",
    samples={
        ("second", 0x20, "long_scoreboard"): (80, 75),
        ("second", 0x20, "selected"): (9, 0),
        ("second", 0x60, "wait"): (300, 200),
        ("first", 0x10, "barrier"): (7, 7),
    },
    external={(0x7FFF_0000_0010, "long_scoreboard"): (5, 4)},
    counts={("second", 0x00): (64, 2048), ("second", 0x20): (64, 1000)},
    pc_metrics={"memory_l2_theoretical_sectors_global": {("second", 0x20): 128.0}},
)


def read(*launches: LaunchSpec, **options: Any) -> tuple[KernelProfile, ...]:
    return load_bytes(write_report(launches, **options)).kernels


def rows(kernel: KernelProfile) -> dict[tuple[str | None, int, str], tuple[int, int]]:
    samples = kernel.samples
    return {
        (
            None if section == EXTERNAL else kernel.sections[section],
            pc,
            kernel.reasons[reason].name,
        ): (total, latency)
        for section, pc, reason, total, latency in zip(
            samples.section.tolist(),
            samples.pc.tolist(),
            samples.reason.tolist(),
            samples.total.tolist(),
            samples.latency.tolist(),
            strict=True,
        )
    }


@pytest.mark.parametrize("layout", ["relocation", "loaded"])
@pytest.mark.parametrize("numbers", ["int", "float"])
@pytest.mark.parametrize("family", ["warps_issue_stalled", "warp_stall"])
@pytest.mark.parametrize("compress", [False, True])
def test_stated_samples_come_back(layout: str, numbers: str, family: str, compress: bool) -> None:
    (kernel,) = read(SPEC, layout=layout, numbers=numbers, family=family, compress=compress)
    assert rows(kernel) == {
        **SPEC.samples,
        (None, 0x7FFF_0000_0010, "long_scoreboard"): (5, 4),
    }
    assert kernel.sections == ("second", "first")
    assert kernel.evidence is Evidence.MEASURED
    assert kernel.total_samples == 401
    assert kernel.latency_samples == 286
    assert (
        kernel.binary
        == hashlib.sha256(
            CUBIN
            if layout == "relocation"
            else load_bytes(write_report([SPEC], layout="loaded")).binaries[kernel.binary or ""]
        ).hexdigest()
    )
    assert kernel.counts is not None
    assert kernel.counts.warps.tolist() == [64, 64]
    assert kernel.counts.threads.tolist() == [2048, 1000]
    metric = kernel.pc_metrics["memory_l2_theoretical_sectors_global"]
    assert (metric.pc.tolist(), metric.value.tolist()) == ([0x20], [128.0])
    assert [problem.code for problem in kernel.problems] == [ProblemCode.EXTERNAL_SAMPLES]
    assert "5 samples" in kernel.problems[0].message


@pytest.mark.parametrize(
    ("old", "today"),
    [
        ("memory_l2_transactions_global", "memory_l2_theoretical_sectors_global"),
        ("memory_ideal_l2_transactions_global", "memory_l2_theoretical_sectors_global_ideal"),
        ("memory_l1_transactions_global", "memory_l1_tag_requests_global"),
        ("memory_shared_transactions", "memory_l1_wavefronts_shared"),
        ("memory_ideal_shared_transactions", "memory_l1_wavefronts_shared_ideal"),
    ],
)
def test_counts_by_instruction_have_one_name_in_all_releases(old: str, today: str) -> None:
    # GIVEN a report as Nsight Compute 2020 named its counts
    spec = dataclasses.replace(SPEC, pc_metrics={old: {("second", 0x20): 128.0}})
    # WHEN it is read
    (kernel,) = read(spec)
    # THEN it is the count of today
    assert list(kernel.pc_metrics) == [today]
    assert kernel.pc_metrics[today].value.tolist() == [128.0]


def test_two_helpers_of_one_name_are_told_apart_by_their_index() -> None:
    # GIVEN relocation data that lists only the helpers, both called "helper"
    (kernel,) = read(SPEC, layout="relocation")
    # THEN samples at the second kernel's copy are not moved into the first kernel
    assert rows(kernel)[("second", 0x60, "wait")] == (300, 200)


def test_the_kernels_own_address_alone_places_its_section() -> None:
    (kernel,) = read(SPEC, layout="function_pcs")
    assert kernel.sections == ("second",)
    assert rows(kernel)[("second", 0x60, "wait")] == (300, 200)
    external = kernel.samples.total[kernel.samples.section == EXTERNAL]
    assert int(external.sum()) == 12


def test_samples_that_cannot_be_placed_are_kept_and_counted() -> None:
    (kernel,) = read(SPEC, layout="nowhere")
    assert kernel.total_samples == 401
    assert set(kernel.samples.section.tolist()) == {EXTERNAL}
    assert "cannot be placed" in kernel.problems[0].message


def test_every_launch_and_module_is_read_with_shared_strings() -> None:
    other = tiny_cubin({"third": []}, sm=90, abi=8)
    third = LaunchSpec(kernel="third", cubin=other, samples={("third", 0x30, "warpgroup_arrive"): (3, 1)})
    kernels = read(SPEC, third, SPEC)
    assert [kernel.launch.index for kernel in kernels] == [0, 1, 2]
    assert [kernel.launch.kernel for kernel in kernels] == ["second", "third", "second"]
    assert kernels[0].binary == kernels[2].binary != kernels[1].binary
    assert rows(kernels[1]) == {("third", 0x30, "warpgroup_arrive"): (3, 1)}
    assert len(kernels[1].reasons) == 19
    assert kernels[1].device.arch == "sm_90"


@pytest.mark.parametrize("layout", ["relocation", "loaded"])
def test_names_and_modules_may_stand_behind_the_launch(layout: Layout) -> None:
    usual = load_bytes(write_report([SPEC, SPEC], layout=layout))
    late = load_bytes(write_report([SPEC, SPEC], layout=layout, late=True))
    assert late.problems == usual.problems == ()
    for one, other in zip(late.kernels, usual.kernels, strict=True):
        assert rows(one) == rows(other)
        assert (one.binary, one.metrics, one.problems) == (other.binary, other.metrics, other.problems)


def test_metrics_without_a_name_are_counted() -> None:
    profile = load_bytes(write_report([dataclasses.replace(SPEC, nameless_metrics=3), SPEC]))
    assert [kernel.total_samples for kernel in profile.kernels] == [401, 401]
    (problem,) = profile.problems
    assert problem.message == "3 metrics have no name in the report and are left out"


@pytest.mark.parametrize(
    ("others", "said"),
    [({7: 2}, "2 ranges"), ({8: 1}, "1 command list"), ({7: 1, 9: 3}, "1 range and 3 CUDA graphs")],
)
def test_what_is_no_launch_is_told(others: dict[int, int], said: str) -> None:
    beside = load_bytes(write_report([SPEC], others=others))
    assert [problem.code for problem in beside.problems] == [ProblemCode.NOT_ANALYSED]
    alone = load_bytes(write_report([], others=others))
    assert [problem.code for problem in alone.problems] == [ProblemCode.NOT_ANALYSED, ProblemCode.NO_SAMPLES]
    assert f"the report holds {said}, measured as a whole" in alone.problems[0].message
    assert "'ncu --replay-mode kernel --set full" in alone.problems[1].message


def test_unknown_reasons_are_kept_and_reported() -> None:
    spec = dataclasses.replace(SPEC, samples={("second", 0, "quantum_flux"): (4, 2)}, external={})
    (kernel,) = read(spec)
    assert rows(kernel) == {("second", 0, "quantum_flux"): (4, 2)}
    reason = next(reason for reason in kernel.reasons if reason.name == "quantum_flux")
    assert reason.stall_class is StallClass.OTHER
    assert [problem.code for problem in kernel.problems] == [ProblemCode.UNKNOWN_STALL_REASON]


def test_series_over_time_are_no_samples() -> None:
    spec = dataclasses.replace(
        SPEC,
        metrics={
            "warpsampling:smsp__pcsamp_warps_issue_stalled_wait": 5,
            "group:smsp__pcsamp_warp_stall_reasons": "smsp__pcsamp_warps_issue_stalled_wait",
        },
    )
    (kernel,) = read(spec)
    assert kernel.total_samples == 401
    assert not any(name.startswith("group:") for name in kernel.metrics)


def test_launch_and_device_facts() -> None:
    spec = dataclasses.replace(
        SPEC,
        grid=(7, 5, 3),
        block=(32, 8, 2),
        registers=77,
        static_shared=1024,
        dynamic_shared=2048,
        duration_ns=123456.0,
        metrics={"launch__cluster_dim_x": 2, "launch__cluster_dim_y": 1, "launch__cluster_dim_z": 1},
    )
    (kernel,) = read(spec, device=DeviceSpec(name="GPU X", sms=84, capability=(8, 9)))
    launch, device = kernel.launch, kernel.device
    assert (launch.grid, launch.block, launch.cluster) == ((7, 5, 3), (32, 8, 2), (2, 1, 1))
    assert (launch.registers_per_thread, launch.static_shared_bytes, launch.dynamic_shared_bytes) == (
        77,
        1024,
        2048,
    )
    assert (launch.duration_ns, launch.failed, launch.context, launch.stream) == (123456.0, False, 1, 7)
    assert (device.name, device.arch, device.sms, device.clock_hz) == ("GPU X", "sm_89", 84, 1.5e9)
    assert (device.max_warps_per_sm, device.schedulers_per_sm) == (48, 4)
    assert kernel.sampling.interval_cycles == 1024
    assert kernel.sampling.expected_samples == pytest.approx(401)
    assert not kernel.sampling.truncated


@pytest.mark.parametrize(
    ("stated", "block", "size", "grid"),
    [
        ((1_048_576, 1, 1), (256, 1, 1), 4096, (4096, 1, 1)),  # in threads, as ncu 2019 and 2020 wrote it
        ((1000, 60, 1), (16, 16, 1), 252, (63, 4, 1)),
        ((9, 1, 1), (256, 1, 1), 12, (12, 1, 1)),
        ((7, 5, 3), (32, 8, 2), 105, (7, 5, 3)),
    ],
)
def test_a_grid_that_contradicts_its_counter(
    stated: tuple[int, int, int], block: tuple[int, int, int], size: int, grid: tuple[int, int, int]
) -> None:
    more = {"launch__grid_size": size}
    spec = dataclasses.replace(SPEC, grid=stated, block=block, metrics=more)
    (kernel,) = read(spec)
    assert kernel.launch.grid == grid


def test_session_facts() -> None:
    profile = load_bytes(
        write_report([SPEC], host="node7", command="ncu ./a b", version="2021.3.0.0 (build 9)")
    )
    assert (profile.collector, profile.collector_version) == ("ncu", "2021.3.0.0")
    assert (profile.host, profile.command) == ("node7", "ncu ./a b")
    assert profile.created == "2023-11-14T22:13:20+00:00"


def test_without_samples_the_counts_remain_and_the_command_is_named() -> None:
    (kernel,) = read(without_samples(SPEC))
    assert kernel.evidence is Evidence.COUNTED
    assert kernel.reasons == ()
    (problem,) = [problem for problem in kernel.problems if problem.code is ProblemCode.NO_SAMPLES]
    assert "ncu --set full --import-source yes -o report ./app" in problem.message
    assert "--section SourceCounters" in problem.message


def test_without_samples_and_counts_it_is_static() -> None:
    (kernel,) = read(dataclasses.replace(without_samples(SPEC), counts={}, pc_metrics={}))
    assert kernel.evidence is Evidence.STATIC
    assert kernel.counts is None


def test_without_a_cubin() -> None:
    spec = LaunchSpec(kernel="k", cubin=None, external={(0x7F00_0000_0010, "wait"): (3, 3)})
    (kernel,) = read(spec)
    assert kernel.binary is None
    messages = {problem.code: problem.message for problem in kernel.problems}
    assert ProblemCode.NO_BINARY in messages
    assert messages[ProblemCode.EXTERNAL_SAMPLES] == "3 samples of k have no machine code to be placed in"
    assert kernel.total_samples == 3


def test_a_cubin_too_old_to_read_is_a_problem_of_the_profile() -> None:
    profile = load_bytes(
        write_report([dataclasses.replace(SPEC, cubin=tiny_cubin({"second": [], "first": []}, sm=61))])
    )
    assert [problem.code for problem in profile.problems] == [ProblemCode.NO_BINARY]
    assert profile.kernels[0].total_samples == 401


def test_a_range_that_was_profiled_as_one_has_no_name() -> None:
    (kernel,) = load_bytes(write_report([LaunchSpec(kernel="", cubin=None)])).kernels
    assert kernel.launch.demangled == "(unnamed)"


def test_a_failed_launch() -> None:
    profile = load_bytes(write_report([dataclasses.replace(SPEC, failed=True), SPEC]))
    failed, measured = profile.kernels
    assert (failed.launch.failed, failed.launch.duration_ns, measured.launch.failed) == (True, None, False)
    (problem,) = profile.problems
    assert problem.code is ProblemCode.FAILED_LAUNCH
    assert problem.message == "1 of 2 launches failed or could not be measured: second (launch 0)"


def test_failed_launches_are_named_by_kernel() -> None:
    broken = dataclasses.replace(SPEC, failed=True)
    (problem,) = load_bytes(write_report([broken])).problems
    assert problem.message == "the report's only launch failed or could not be measured: second (launch 0)"
    (problem,) = load_bytes(write_report([broken, SPEC, broken])).problems
    assert problem.message.endswith(
        "2 of 3 launches failed or could not be measured: second (launch 0), second (launch 2)"
    )


def test_counts_by_opcode() -> None:
    counted = {"sass__inst_executed_per_opcode": {"FFMA": 640, "LDG": 64}, "smsp__warpidsamp": {"0:1": 3}}
    (kernel,) = read(dataclasses.replace(SPEC, named_metrics=counted))
    assert kernel.metric("sass__inst_executed_per_opcode") == 2  # the tool's own plain value
    assert kernel.metric("sass__inst_executed_per_opcode[FFMA]") == 640
    assert kernel.metric("sass__inst_executed_per_opcode[LDG]") == 64
    assert not any("0:1" in name for name in kernel.metrics)


def test_names_of_2026() -> None:
    (kernel,) = read(
        dataclasses.replace(SPEC, metrics={"dram__sectors_op_read.sum": 5, "dram__bytes_op.sum": 9})
    )
    assert kernel.metric("dram__sectors_read.sum") == kernel.metric("dram__sectors_op_read.sum") == 5
    assert kernel.metric("dram__sectors_write.sum") is None


def test_counters_that_are_no_number_are_told() -> None:
    nan = float("nan")
    values = {
        "dram__bytes.sum": nan,
        "l1tex__hits.avg": nan,
        "lts__success_rate.pct": nan,
        "pmsampling:x": nan,
        "derived_tempMetric4": nan,
    }
    (kernel,) = read(dataclasses.replace(SPEC, external={}, metrics=values))
    assert [(problem.code, problem.message) for problem in kernel.problems] == [
        (
            ProblemCode.COLLECTION_LIMITED,
            "counters that could not be measured (NaN) are not used: dram__bytes.sum, l1tex__hits.avg",
        )
    ]
    assert kernel.metric("dram__bytes.sum") is None


def test_rules_and_call_stack() -> None:
    spec = dataclasses.replace(
        SPEC,
        rules=[
            RuleSpec(identifier="Silent"),
            RuleSpec(identifier="CPIStall", name="Warp Stall", message="wait", kind=4, speedup_percent=50.0),
            RuleSpec(identifier="Occ", message="low", kind=2, speedup_percent=20.0, speedup_global=False),
            RuleSpec(identifier="Odd", message="all of it", kind=9, speedup_percent=100.0),
        ],
        call_stack=[FrameSpec(module="/opt/app", address=0x1234, function="main", file="main.cu", line=7)],
    )
    (kernel,) = read(spec)
    assert [(rule.identifier, rule.kind, rule.speedup_scope) for rule in kernel.rules] == [
        ("CPIStall", "optimization", "global"),
        ("Occ", "warning", "local"),
        ("Odd", "none", "global"),
    ]
    assert kernel.rules[0].estimated_speedup == pytest.approx(2.0)
    assert kernel.rules[1].estimated_speedup == pytest.approx(1.25)
    assert kernel.rules[2].estimated_speedup is None
    (frame,) = kernel.call_stack
    assert (frame.module, frame.address, frame.function, frame.file, frame.line) == (
        "/opt/app",
        0x1234,
        "main",
        "main.cu",
        7,
    )


def test_embedded_sources() -> None:
    spec = dataclasses.replace(SPEC, sources={"/src/a.cu": "int x;\n", "/src/b.cuh": ""})
    sources = load_bytes(write_report([spec])).sources
    assert sources["/src/a.cu"].text == "int x;\n"
    assert sources["/src/a.cu"].sha256 == hashlib.sha256(b"int x;\n").hexdigest()
    assert sources["/src/b.cuh"].text is None


def test_loaded_cubins_keep_their_bytes_but_the_addresses() -> None:
    patched = as_loaded(CUBIN, {"first": 0x7F00_0000_0000})
    assert len(patched) == len(CUBIN)
    assert sum(a != b for a, b in zip(CUBIN, patched, strict=True)) <= 8


def test_without_attributes_the_module_tells_the_architecture() -> None:
    absent = {
        f"device__attribute_{name}": None
        for name in ("compute_capability_major", "compute_capability_minor", "multiprocessor_count")
    }
    (kernel,) = read(dataclasses.replace(SPEC, metrics=absent))
    assert kernel.device.arch == "sm_86"
    assert kernel.device.sms is None


def test_a_newer_file_format_is_named() -> None:
    data = bytearray(write_report([SPEC]))
    assert data[8:10] == b"\x08\x07"
    data[9] = 9
    assert load_bytes(bytes(data)).kernels[0].total_samples == 401
    with pytest.raises(ProfileFormatError, match="version 9 of the file format"):
        load_bytes(bytes(data[:-20]))


def _block_ends(data: bytes) -> list[int]:
    """Where the blocks of a report end."""
    ends, at = [], 4 + 4 + int.from_bytes(data[4:8], "little")
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        header = wire.parse(data[at + 4 : at + 4 + size])
        at += 4 + size + (wire.integer(header, 5) or 0)
        ends.append(at)
    return ends


def test_a_report_cut_behind_the_machine_code_of_a_launch_says_so() -> None:
    other = tiny_cubin({"third": []})
    data = write_report([SPEC, LaunchSpec(kernel="third", cubin=other)])
    assert load_bytes(data).problems == ()
    told = {
        len(profile.kernels): [problem.message for problem in profile.problems]
        for profile in (load_bytes(data[:end]) for end in _block_ends(data)[:-1])
    }
    assert "machine code that no launch in it refers to" in told[1][0]


def test_a_launch_of_no_size_is_told() -> None:
    (kernel,) = load_bytes(write_report([dataclasses.replace(SPEC, grid=(0, 0, 0), block=(0, 0, 0))])).kernels
    assert (kernel.launch.grid, kernel.launch.block) == ((1, 1, 1), (1, 1, 1))
    assert any("states no grid" in problem.message for problem in kernel.problems)


def test_a_report_without_its_session_says_so() -> None:
    data = write_report([SPEC])
    first, *_ = _block_ends(data)
    head = 8 + int.from_bytes(data[4:8], "little")
    (problem,) = load_bytes(data[:head] + data[first:]).problems
    assert problem.code is ProblemCode.INCONSISTENT_REPORT
    assert "does not describe the machine" in problem.message
