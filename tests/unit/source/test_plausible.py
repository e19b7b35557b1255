# SPDX-License-Identifier: Apache-2.0
"""A line of another version of a source is not shown as what an instruction was made of."""

from __future__ import annotations

import pytest

from gpadvisor.source.plausible import can_be


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("    data_type const *A,", "LDG.E"),
        ("    float *__restrict__ out)", "STG.E"),
        ("    int i, j;", "LDS"),
        ("#pragma unroll", "LDS.128"),
        ("#pragma unroll", "BRA"),
        ("}", "BAR.SYNC"),
        ("    sum += a[i] * b[i];", "BAR.SYNC.DEFER_BLOCKING"),
        ("    // all of the tile", "FFMA"),
        ("", "LDG.E"),
        ("    float acc = 0.0f;", "LDG.E"),
        ("    float acc = 0.0f;", "FFMA"),
        ("  int row = 0, col = -1;  // of the tile", "STG.E"),
    ],
)
def test_what_a_line_cannot_be(text: str, opcode: str) -> None:
    assert not can_be(text, opcode)


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("    __syncthreads();", "BAR.SYNC"),
        ("    reduce_gpu<32>(a, b);", "BAR.SYNC"),
        ("    tile.sync();", "BAR.SYNC"),
        ("    return *p;", "LDG.E"),
        ("    const float x = in[i];", "LDG.E"),
        ("    float y = *p;", "LDG.E"),
        ("    sum += node->value;", "LDG.E"),
        ("    x = table[i],", "LDG.E"),
        ("    __global__ void kernel(float *a) {", "S2R"),
        ("    float *a,", "IMAD.WIDE"),
        ("}", "EXIT"),
        ("    float acc = 0.0f;", "CS2R"),
        ("    float acc = 0.0f * x;", "FFMA"),
        ("    int i = 0;", "IMAD.MOV.U32"),
        ("  #pragma omp target teams distribute \\", "LDG.E"),
        ("#pragma acc parallel loop", "FFMA"),
    ],
)
def test_what_it_may_be(text: str, opcode: str) -> None:
    assert can_be(text, opcode)
