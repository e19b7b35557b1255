# SPDX-License-Identifier: Apache-2.0
"""What must hold between the numbers of a report, and what is noticed when the buffer was full."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from tests.ncu_writer import LaunchSpec, Value, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import KernelProfile
from gpadvisor.store.load import load_bytes

SPEC = LaunchSpec(
    kernel="k",
    cubin=tiny_cubin({"k": []}),
    samples={("k", 16, "wait"): (5000, 4000), ("k", 32, "selected"): (1000, 0)},
)
P = "smsp__pcsamp_"


def read(spec: LaunchSpec = SPEC, metrics: Mapping[str, Value | None] | None = None) -> KernelProfile:
    return load_bytes(write_report([dataclasses.replace(spec, metrics=metrics or {})])).kernels[0]


def codes(kernel: KernelProfile) -> list[ProblemCode]:
    return [problem.code for problem in kernel.problems]


def test_a_consistent_report_has_no_problems() -> None:
    assert codes(read()) == []


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({P + "warps_issue_stalled_wait": 5001}, "is 5001 but its addresses add up to 5000"),
        ({P + "sample_count": 7}, "sample_count is 7 but the stall reasons add up to 6000"),
    ],
)
def test_sums_that_do_not_fit(metrics: dict[str, Value], words: str) -> None:
    kernel = read(metrics=metrics)
    assert codes(kernel) == [ProblemCode.INCONSISTENT_REPORT]
    assert words in kernel.problems[0].message
    assert kernel.total_samples == 6000


def test_more_latency_samples_than_samples_are_cut_and_reported() -> None:
    kernel = read(dataclasses.replace(SPEC, samples={("k", 16, "wait"): (10, 25), ("k", 32, "wait"): (5, 5)}))
    assert codes(kernel) == [ProblemCode.INCONSISTENT_REPORT]
    assert "15 latency samples" in kernel.problems[0].message
    assert kernel.samples.latency.tolist() == [10, 5]


def test_a_reason_with_samples_at_no_address() -> None:
    kernel = read(metrics={P + "warps_issue_stalled_new": 12})
    assert "new is 12 but no address has any" in " ".join(problem.message for problem in kernel.problems)


@pytest.mark.parametrize("total", [3_669_964, 3_670_008])
def test_a_full_buffer_is_noticed_although_nothing_is_reported_dropped(total: int) -> None:
    spec = dataclasses.replace(SPEC, samples={("k", 16, "wait"): (total, total)})
    kernel = read(spec, {P + "dropped_bytes": 0})
    assert kernel.sampling.truncated
    assert codes(kernel) == [ProblemCode.TRUNCATED_SAMPLES]
    assert str(total) in (kernel.sampling.truncation_evidence or "")
    assert kernel.sampling.dropped_samples == 0


def test_a_nearly_full_buffer_is_not() -> None:
    assert not read(dataclasses.replace(SPEC, samples={("k", 16, "wait"): (3_600_000, 0)})).sampling.truncated


def test_a_sample_rate_far_below_one_is_noticed() -> None:
    kernel = read(metrics={"sm__cycles_active.avg": 6000 * 1024 / 10 * 2.5})
    assert kernel.sampling.truncated
    assert "40 % of the 15000" in (kernel.sampling.truncation_evidence or "")
    assert not read(metrics={"sm__cycles_active.avg": 6000 * 1024 / 10 * 1.9}).sampling.truncated


def test_few_expected_samples_say_nothing_about_the_rate() -> None:
    spec = dataclasses.replace(SPEC, samples={("k", 16, "wait"): (30, 0)})
    assert not read(spec, {"sm__cycles_active.avg": 900 * 1024 / 10}).sampling.truncated


def test_the_overflow_metric_of_newer_reports() -> None:
    assert read(metrics={P + "buffer_overflow": 1}).sampling.truncated
    assert not read(metrics={P + "buffer_overflow": 0}).sampling.truncated


def test_dropped_bytes_become_samples() -> None:
    kernel = read(metrics={P + "dropped_bytes": 6400})
    assert kernel.sampling.dropped_samples == 700
    assert codes(kernel) == [ProblemCode.DROPPED_SAMPLES]


def test_interval_from_its_exponent() -> None:
    assert read(metrics={P + "interval_cycles": None, P + "interval": 7}).sampling.interval_cycles == 4096
    assert read(metrics={P + "interval_cycles": None, P + "interval": None}).sampling.expected_samples is None


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), -5.0, 1e300, "text"])
def test_strange_scalars_are_not_believed(strange: Value) -> None:
    names = ("interval_cycles", "buffer_size_bytes", "dropped_bytes", "buffer_overflow")
    kernel = read(metrics={P + name: strange for name in names} | {"sm__cycles_active.avg": strange})
    assert kernel.total_samples == 6000
    assert not kernel.sampling.truncated


def test_the_default_buffer_is_assumed_only_where_it_fits() -> None:
    full = dataclasses.replace(SPEC, samples={("k", 16, "wait"): (3_669_980, 0)})
    more = dataclasses.replace(SPEC, samples={("k", 16, "wait"): (9_000_000, 0)})
    unstated = {P + "buffer_size_bytes": None}
    assert "default buffer" in (read(full, unstated).sampling.truncation_evidence or "")
    assert not read(more, unstated).sampling.truncated


def test_more_samples_than_any_buffer_holds_are_left_out_whole() -> None:
    most = 1 << 53
    kernel = read(
        dataclasses.replace(SPEC, samples={("k", 16 * at, "wait"): (most, 0) for at in range(1100)})
    )
    assert kernel.total_samples == 0
    assert "more than any buffer holds" in " ".join(problem.message for problem in kernel.problems)


def test_executed_counts_whose_sum_no_number_holds_are_left_out_whole() -> None:
    counts = {("k", 16 * at): (1 << 53, 1 << 53) for at in range(1100)}
    kernel = read(dataclasses.replace(SPEC, counts=counts))
    assert kernel.counts is None
    assert "executed counts are no counts" in kernel.problems[0].message
