# SPDX-License-Identifier: Apache-2.0
"""Questions about one line of a CUDA source."""

from __future__ import annotations

import pytest

from gpadvisor.source.patterns import MAX_PARSED_BYTES, CudaSource, KernelSite, LoopSite

KERNEL = """#include <x.h>
template <typename T>
__global__ void __launch_bounds__(256, (2 + 2)) scale(float *out, const T *__restrict__ in,
                                                      int **table, int w, float (&fixed)[4])
{
    #pragma unroll 4  // by hand
    // why
    for (int i = 0; i < w; ++i)
        out[i] = in[i / w] % w * 0.5 + 1.0f + 2e3 + 1.f + 3. + .25L + 0x1p-3 + 7 + 1'000.5 / 8 + 0x1e3;
    while (w) { w /= out[0]; }
    #pragma unroll
    do { w--; } while (w > 3);
}
__device__ float helper(float *a, float *b) { return *a / *b; }
"""


@pytest.fixture(scope="module")
def source() -> CudaSource:
    return CudaSource(KERNEL)


def test_double_literals(source: CudaSource) -> None:
    texts = [token.text for token in source.double_literals(9)]
    assert texts == ["0.5", "2e3", "3.", ".25L", "0x1p-3", "1'000.5"]
    first = source.double_literals(9)[0]
    assert KERNEL.splitlines()[first.line - 1][first.column - 1 :].startswith("0.5")
    assert source.double_literals(10) == ()


def test_divisions_by_what_is_not_a_literal(source: CudaSource) -> None:
    assert "i / w" in [token.text for token in source.divisions(9)]
    assert not [token for token in source.divisions(9) if token.text.endswith("/ 8")]
    assert [token.text for token in source.divisions(10)] == ["w /= out[0]"]


def test_loops_and_their_pragmas(source: CudaSource) -> None:
    assert source.loop(8) == LoopSite(line=8, last_line=9, unroll="4")
    assert source.loop(10) == LoopSite(line=10, last_line=10, unroll=None)
    assert source.loop(12) == LoopSite(line=12, last_line=12, unroll="")
    assert source.loop(9) is None


def test_kernels(source: CudaSource) -> None:
    kernel = source.kernel(9)
    assert kernel == KernelSite(
        line=3, last_line=13, launch_bounds="256, (2 + 2)", unrestricted=("out", "table")
    )
    assert source.kernel(3) == kernel
    assert source.kernel(14) is None
    assert source.kernel(99) is None


def test_broken_and_huge_sources_have_no_answers() -> None:
    broken = CudaSource("__global__ void k( { for (;; ")
    assert broken.loop(1) is None or broken.loop(1) == LoopSite(line=1, last_line=1, unroll=None)
    huge = CudaSource("float x = 0.5;\n" * (MAX_PARSED_BYTES // 15 + 1))
    assert huge.double_literals(1) == ()


def test_deep_nesting_is_no_recursion() -> None:
    deep = CudaSource("void f() { x = " + "(" * 3_000 + "0.5" + ")" * 3_000 + "; }")
    assert len(deep.double_literals(1)) <= 1
