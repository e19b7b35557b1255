# SPDX-License-Identifier: Apache-2.0
"""What is said of a line rests on every kernel of its cubin that has it, also on those that never ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.ncu_writer import write_report
from tests.sampled import sampled

from gpadvisor.pipeline.advise import advise_file
from gpadvisor.pipeline.cache import Cache
from gpadvisor.pipeline.request import Request
from gpadvisor.pipeline.settings import Settings
from gpadvisor.toolchain.compile import compile_source

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]

_SOURCE = """
__device__ __forceinline__ void add(float* sums, const float* x) {
    sums[threadIdx.x] += x[threadIdx.x];
    __syncthreads();
}
extern "C" __global__ void once(float* sums, const float* x) { add(sums, x); }
extern "C" __global__ void other(float* sums, const float* x, float* y) {
    __shared__ float held[64];
    held[threadIdx.x] = y[threadIdx.x];
    CALL
    y[threadIdx.x] = held[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize(
    ("call", "offered"), [("__syncthreads(); sums[0] = x[1];", True), ("add(sums, x);", False)]
)
def test_a_barrier_stays_that_another_kernel_of_the_cubin_needs(
    tmp_path: Path, call: str, offered: bool
) -> None:
    source = tmp_path / "sums.cu"
    source.write_text(_SOURCE.replace("CALL", call), encoding="utf-8")
    cubin = compile_source(source, arch="sm_80").cubin
    report = tmp_path / "run.ncu-rep"
    report.write_bytes(write_report([sampled(cubin, "once", seed="s")]))
    request = Request(settings=Settings(), root=tmp_path, show_all=True)
    for path in (report, source):
        advice = advise_file(path, request, lambda _: None, Cache(None)).advice
        (once,) = [kernel for kernel in advice.kernels if kernel.name.startswith("once")]
        said = [one.advice for one in once.suggestions if one.code == "GPA105"]
        assert (
            any(
                "Remove the barrier at sums.cu:4, if this holds for all callers of add" in one for one in said
            )
            is offered
        )
