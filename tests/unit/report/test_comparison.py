# SPDX-License-Identifier: Apache-2.0
"""What a comparison of two runs says about whose times they are."""

from __future__ import annotations

import json

import pytest

from gpadvisor.advice.compare import Comparison, KernelComparison
from gpadvisor.model.profile import Evidence
from gpadvisor.report.comparison import render_comparison_json, render_comparison_text


def compared(
    before: Evidence, after: Evidence, after_ns: float = 5e5, device: str = "NVIDIA A100"
) -> Comparison:
    kernel = KernelComparison(
        before="kernel",
        after="kernel",
        duration_before_ns=1e6,
        duration_after_ns=after_ns,
        evidence_before=before,
        evidence_after=after,
        device_before="NVIDIA A100",
        device_after=device,
        samples_before=100,
        samples_after=50,
        predictions=(),
        lines=(),
        line_mapping="by number",
    )
    return Comparison(kernels=(kernel,), only_before=(), only_after=())


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Evidence.MEASURED, Evidence.COUNTED, "2.00x (faster, measured)"),
        (Evidence.MODELLED, Evidence.MODELLED, "2.00x (faster, both modelled)"),
        (Evidence.MODELLED, Evidence.MEASURED, "2.00x (faster, a modelled time beside a measured one"),
    ],
)
def test_modelled_times_are_not_called_measured(before: Evidence, after: Evidence, words: str) -> None:
    comparison = compared(before, after)
    assert words in render_comparison_text(comparison, rows=None, width=80)
    (kernel,) = json.loads(render_comparison_json(comparison))["kernels"]
    assert (kernel["evidence_before"], kernel["evidence_after"]) == (before.value, after.value)


def test_what_is_as_fast_is_not_called_faster() -> None:
    both = compared(Evidence.MEASURED, Evidence.MEASURED, after_ns=1e6)
    assert "1.00x (as fast, measured)" in render_comparison_text(both, rows=None, width=80)


def test_times_of_two_gpus_are_told_apart() -> None:
    two = compared(Evidence.MEASURED, Evidence.MEASURED, device="NVIDIA H100")
    assert "On two GPUs (NVIDIA A100, then NVIDIA H100)" in render_comparison_text(two, rows=None, width=80)
    one = compared(Evidence.MEASURED, Evidence.MEASURED)
    assert "GPUs" not in render_comparison_text(one, rows=None, width=80)
