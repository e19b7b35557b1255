# SPDX-License-Identifier: Apache-2.0
"""Numbers that no run can have are named and not used."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.ncu_writer import LaunchSpec, write_report
from tests.tiny_cubin import tiny_cubin

from gpadvisor.errors import ProfileFormatError
from gpadvisor.model.problem import ProblemCode
from gpadvisor.model.profile import KernelProfile, Profile
from gpadvisor.store.load import load_bytes
from gpadvisor.store.parts import put_together, take_apart

SPEC = LaunchSpec(
    kernel="k",
    cubin=tiny_cubin({"k": []}),
    samples={("k", 16, "wait"): (5, 4)},
    counts={("k", 0): (3, 96)},
    pc_metrics={"sectors": {("k", 0): 1.0, ("k", 16): 4.0}},
    metrics={"sound": 3.5, "none": 0, "zero": float("nan"), "large": 2**63},
)


def read(**changes: Any) -> KernelProfile:
    """The kernel of a report, with fields changed, as it comes out of a child or a snapshot."""
    profile = load_bytes(write_report([SPEC]))
    kernel = profile.kernels[0]
    parts = {name: getattr(kernel, name) for name in ("launch", "device", "sampling")}
    for name, value in changes.items():
        of = next((part for part, whole in parts.items() if name in whole.__slots__), None)
        if of is None:
            kernel = replace(kernel, **{name: value})
        else:
            parts[of] = replace(parts[of], **{name: value})
    return again(replace(profile, kernels=(replace(kernel, **parts),))).kernels[0]


def again(profile: Profile) -> Profile:
    return put_together(take_apart(profile))


def said(kernel: KernelProfile, code: ProblemCode = ProblemCode.INCONSISTENT_REPORT) -> list[str]:
    return [one.message for one in kernel.problems if one.code is code]


def test_numbers_of_a_run_stay() -> None:
    kernel = read()
    assert said(kernel) == []
    assert kernel.metric("sound") == 3.5
    assert kernel.metric("none") == 0
    assert kernel.metric("large") == 2**63


@pytest.mark.parametrize("value", [-1.0, 1e300, 5e-324, -math.inf, math.inf, 10**400])
def test_a_counter_is_not_measured(value: float) -> None:
    kernel = read(metrics={"x": value, "y": 1.0})
    assert kernel.metric("x") is None
    assert kernel.metric("y") == 1.0
    expected = [] if value in {math.inf, -math.inf} else ["numbers that no run can have are not used: x"]
    assert said(kernel, ProblemCode.IMPOSSIBLE_COUNTER) == expected
    assert not said(kernel)  # before anything else stands what the report says of the run itself


def test_a_value_of_an_instruction_is_zero() -> None:
    metric = load_bytes(write_report([SPEC])).kernels[0].pc_metrics["sectors"]
    kernel = read(pc_metrics={"sectors": replace(metric, value=np.array([math.inf, 4.0]))})
    assert kernel.pc_metrics["sectors"].value.tolist() == [0.0, 4.0]
    message = "numbers that no run can have are not used: sectors"
    assert said(kernel, ProblemCode.IMPOSSIBLE_COUNTER) == [message]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sms", 0),
        ("sms", 1 << 53),
        ("max_warps_per_sm", 0),
        ("schedulers_per_sm", 0),
        ("registers_per_sm", 0),
        ("shared_bytes_per_sm", -1),
        ("clock_hz", math.nan),
        ("clock_hz", 5e-324),
        ("registers_per_thread", 1 << 53),
        ("static_shared_bytes", 1 << 53),
        ("duration_ns", -1.0),
        ("duration_ns", 1e300),
        ("interval_cycles", 0),
        ("expected_samples", math.inf),
        ("cluster", (1 << 60, 1, 1)),
    ],
)
def test_what_may_be_absent_is(field: str, value: object) -> None:
    kernel = read(**{field: value})
    owner = next(one for one in (kernel.launch, kernel.device, kernel.sampling) if field in one.__slots__)
    assert getattr(owner, field) is None
    assert said(kernel) == [f"numbers that no run can have are not used: {field}"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("grid", (0, 1, 1)), ("grid", (1 << 40, 1, 1)), ("block", (-5, 1, 1)), ("block", (1024, 1024, 1))],
)
def test_a_launch_is_of_one(field: str, value: object) -> None:
    kernel = read(**{field: value})
    assert getattr(kernel.launch, field) == (1, 1, 1)
    assert said(kernel) == [f"numbers that no run can have are not used: {field}"]


def test_it_is_said_once() -> None:
    profile = load_bytes(write_report([replace(SPEC, metrics={"x": -1.0})]))
    once = again(profile)
    code = ProblemCode.IMPOSSIBLE_COUNTER
    assert said(again(once).kernels[0], code) == said(once.kernels[0], code) != []


def test_counts_whose_sum_overflows_are_refused() -> None:
    parts = take_apart(load_bytes(write_report([SPEC])))
    parts.tables["counts"]["warps"] = parts.tables["counts"]["warps"] * 0 + np.uint64(1 << 63)
    with pytest.raises(ProfileFormatError, match="counts add up to more"):
        put_together(parts)
