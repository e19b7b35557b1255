# SPDX-License-Identifier: Apache-2.0
"""What a comparison of two runs says about whose times they are."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpadvisor.advice.compare import Comparison, KernelComparison, LineChange
from gpadvisor.model.ids import SourceLocation
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
        differences=(),
        same_code=None,
        predictions=(),
        stalls=(),
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


def test_two_functions_have_their_own_hottest_lines() -> None:
    def line(number: int, samples: int, *, first: bool) -> LineChange:
        place, time = SourceLocation("a.cu", number), 1000.0 * samples
        return LineChange(
            before=place if first else None, after=None if first else place, edited=False,
            samples_before=samples if first else 0, samples_after=0 if first else samples,
            time_before_ns=time if first else 0.0, time_after_ns=0.0 if first else time,
        )  # fmt: skip

    (kernel,) = compared(Evidence.MEASURED, Evidence.MEASURED).kernels
    lines = (line(3, 50, first=True), line(9, 70, first=False), line(4, 60, first=True))
    apart = replace(
        kernel, line_mapping=None, lines=lines, same_code=True, differences=("grid 1x1x1 -> 2x1x1",)
    )
    text = render_comparison_text(
        Comparison(kernels=(apart,), only_before=(), only_after=()), rows=4, width=80
    )
    first, second = text.split("Time by source line in the second run:")
    assert first.index("a.cu:4") < first.index("a.cu:3")
    assert "a.cu:9" in second
    assert "a.cu:9" not in first
    assert "The machine code is the same." in first
    assert "Not the same: grid 1x1x1 -> 2x1x1." in first


def test_what_is_as_fast_is_not_called_faster() -> None:
    both = compared(Evidence.MEASURED, Evidence.MEASURED, after_ns=1e6)
    assert "1.00x (as fast, measured)" in render_comparison_text(both, rows=None, width=80)


def test_times_of_two_gpus_are_told_apart() -> None:
    two = compared(Evidence.MEASURED, Evidence.MEASURED, device="NVIDIA H100")
    assert "On two GPUs (NVIDIA A100, then NVIDIA H100)" in render_comparison_text(two, rows=None, width=80)
    one = compared(Evidence.MEASURED, Evidence.MEASURED)
    assert "GPUs" not in render_comparison_text(one, rows=None, width=80)
