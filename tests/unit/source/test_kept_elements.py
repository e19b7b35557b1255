# SPDX-License-Identifier: Apache-2.0
"""An element that a loop writes in every pass, kept in a variable: where it can be, and where it cannot."""

from __future__ import annotations

import pytest
from tests.unit.source.test_edits import edited, kernel, sites

from gpadvisor.source.edits import SiteKind

KEEP = SiteKind.KEEP_ELEMENT
LOOP = """    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < n; ++j) {{
        {body}
    }}  // all of them
    y[n] = w;"""


def test_a_sum_is_kept_and_stored_once() -> None:
    text = kernel(LOOP.format(body="y[i] += x[j] * w;"))
    (site,) = sites(text, KEEP)
    new = edited(text, site)
    before, behind = "    auto y_kept = y[i];\n    for (int j", "of them\n    y[i] = y_kept;\n    y[n] = w;"
    assert before in new
    assert "        y_kept += x[j] * w;\n" in new
    assert behind in new
    assert not sites(new, KEEP)


def test_two_loops_and_a_tile_as_in_lud() -> None:
    text = kernel(
        """    __shared__ float tile[16][16];
    if (threadIdx.x > n) {
        for (int j = 0; j < n; j++)
            tile[threadIdx.x][n] -= tile[threadIdx.x][j] * tile[j][n];
        tile[threadIdx.x][n] /= tile[n][n];
    }"""
    )
    (site,) = sites(text, KEEP)
    new = edited(text, site)
    assert "        auto tile_kept = tile[threadIdx.x][n];\n        for (int j" in new
    assert "tile_kept -= tile[threadIdx.x][j] * tile[j][n];\n        tile[threadIdx.x][n] = tile_kept;" in new


def test_the_outermost_loop_that_leaves_it_alone() -> None:
    inner = (
        "#pragma unroll 2\n        for (int k = 0; k < 4; ++k) {\n            y[i] += x[k + j];\n        }"
    )
    (site,) = sites(kernel(LOOP.format(body=inner)), KEEP)
    assert "    auto y_kept = y[i];\n    for (int j" in edited(kernel(LOOP.format(body=inner)), site)


@pytest.mark.parametrize(
    "body",
    [
        "y[j] += x[j];",  # another in each pass
        "y[i + j] += x[j];",
        "i += 1; y[i] += x[j];",
        "if (i < n) y[i] += x[j];",  # there may be no such element
        "y[i] += x[j]; y[j] = w;",  # perhaps the same
        "y[i] += x[j]; __syncthreads();",  # others look
        "y[i] += x[j]; atomicAdd(&y[i], w);",
        "y[i] += x[j]; if (x[j] > w) return;",
        "y[i] += x[j]; float& r = y[j]; r = w;",
        "y[i] += x[j]; float* p = y;",
        "y[int(x[i])] += x[j];",
        "y[x[i] > w ? i : n] += x[j];",
        "WIDE(y[i] += x[j]);",
        "volatile float v = w; y[i] += x[j] + v;",
        "y += n; y[i] += x[j];",
    ],
)
def test_elements_that_others_may_see_stay(body: str) -> None:
    assert not sites(kernel(LOOP.format(body=body)), KEEP)


def test_nothing_is_put_on_the_last_line_of_a_loop() -> None:
    text = kernel("    for (int j = 0; j < n; ++j) { y[n] += x[j]; } y[0] = w;")
    assert not sites(text, KEEP)
