# SPDX-License-Identifier: Apache-2.0
"""The tensor pipe of a GeForce is full at half of its counter where sums have 32 bits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.optimizer_values import DEVICE, Row, context_of, listing

from gpadvisor.estimators.caps import cap_speedup
from gpadvisor.estimators.utilisation import loads

METRIC = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed"
HALF = "sum| HMMA.16816.F32 R4, R8, R12, R4\nEXIT"


@pytest.mark.parametrize(
    ("name", "text", "counted", "percent"),
    [
        ("NVIDIA GeForce RTX 3090", HALF, 48.0, 96.0),
        ("NVIDIA GeForce RTX 3090", HALF.replace(".F32", ".F16"), 48.0, 48.0),
        ("NVIDIA GeForce RTX 3090", HALF.replace("HMMA.16816.F32", "IMMA.16832.S8.S8"), 48.0, 48.0),
        ("NVIDIA GeForce RTX 3090", HALF, 90.0, 90.0),  # it cannot be more than full
        ("NVIDIA A40", HALF, 48.0, 48.0),
    ],
)
def test_a_tensor_pipe_at_half_of_its_counter_is_full(
    name: str, text: str, counted: float, percent: float
) -> None:
    context = context_of(
        listing(text),
        [Row("selected", "sum", 100)],
        metrics={METRIC: counted},
        device=replace(DEVICE, name=name),
        counts={"sum": (1000, 32000)},
    )
    (tensor,) = [one for one in loads(context) if one.name == "tensor pipe"]
    assert tensor.percent == pytest.approx(percent)
    assert tensor.metric == (f"2 x {METRIC}" if percent > counted else METRIC)
    if percent == 96.0:
        cap = cap_speedup([tensor], (), best=False)
        assert cap is not None
        assert cap.speedup == pytest.approx(1.0)


def test_without_counts_each_matrix_instruction_of_the_code_counts_once() -> None:
    text = "sum| HMMA.16816.F32 R4, R8, R12, R4\nHMMA.16816.F16 R4, R8, R12, R4\nEXIT"
    device = replace(DEVICE, name="NVIDIA GeForce RTX 3090")
    context = context_of(listing(text), [Row("selected", "sum", 100)], metrics={METRIC: 40.0}, device=device)
    (tensor,) = [one for one in loads(context) if one.name == "tensor pipe"]
    assert tensor.percent == pytest.approx(1.5 * 40.0)


@pytest.mark.parametrize(("operations", "percent"), [(41.2, 43.0), (84.0, 86.0)])
def test_operations_tell_whether_the_counter_has_the_lower_rate_already(
    operations: float, percent: float
) -> None:
    """After an attention kernel on an RTX 5090, whose pipe was told to be at 86 %, with 33 cycles each."""
    name = "sm__ops_path_tensor_op_hmma_src_{}_dst_fp32_sparsity_off.avg.pct_of_peak_sustained_elapsed"
    context = context_of(
        listing(HALF),
        [Row("selected", "sum", 100)],
        metrics={METRIC: 43.0, name.format("bf16"): operations, name.format("fp16"): 0.0},
        device=replace(DEVICE, name="NVIDIA GeForce RTX 5090"),
        counts={"sum": (1000, 32000)},
    )
    (tensor,) = [one for one in loads(context) if one.name == "tensor pipe"]
    assert tensor.percent == pytest.approx(percent)
