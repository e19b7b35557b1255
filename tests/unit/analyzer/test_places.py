# SPDX-License-Identifier: Apache-2.0
"""The line an instruction is shown on: the innermost one that somebody can edit."""

from __future__ import annotations

import pytest

from gpadvisor.analyzer.places import called_lines, is_library, user_lines
from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.program import InlineFrame, LineEntry

TOOLKIT = SourceLocation("/usr/local/cuda/targets/x86_64-linux/include/crt/sm_30_intrinsics.hpp", 98)
OWN, OUTER = SourceLocation("/src/tile.cuh", 12), SourceLocation("/src/app.cu", 40)


def test_library_code_stands_on_the_users_line() -> None:
    sync, tile = InlineFrame("__syncthreads", OWN), InlineFrame("tile()", OUTER)
    entry = LineEntry(TOOLKIT, (sync, tile))
    assert user_lines([entry, None, entry]) == (
        LineEntry(OWN, (tile,), (TOOLKIT,)),
        None,
        LineEntry(OWN, (tile,), (TOOLKIT,)),
    )


def test_a_lambda_called_by_a_library_keeps_its_own_line() -> None:
    entry = LineEntry(OWN, (InlineFrame("operator()", TOOLKIT), InlineFrame("for_each", OUTER)))
    assert user_lines([entry]) == (entry,)


def test_a_kernel_of_a_library_stays_where_it_is() -> None:
    entry = LineEntry(TOOLKIT, (InlineFrame("reduce", TOOLKIT),))
    assert user_lines([entry]) == (entry,)


def test_a_function_of_a_library_that_is_called_is_the_librarys() -> None:
    inside, own, told = LineEntry(TOOLKIT), LineEntry(OWN), LineEntry(TOOLKIT, library=(TOOLKIT,))
    assert called_lines([inside, None], is_kernel=False) == (told, None)
    assert called_lines([inside, own, inside], is_kernel=True) == (told, own, told)
    assert called_lines([inside], is_kernel=True) == (inside,)


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/usr/local/cuda/include/sm_30_intrinsics.hpp", True),
        ("/usr/local/cuda-12.4/targets/sbsa-linux/include/cub/block/block_reduce.cuh", True),
        ("/usr/include/c++/13/bits/stl_algo.h", True),
        ("/opt/conda/envs/a/targets/x86_64-linux/include/thrust/pair.h", True),
        (
            "C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA/v12.4/include\\crt/sm_70_rt.hpp",
            True,
        ),
        ("C:\\Program Files\\Microsoft Visual Studio\\2022\\VC\\Tools\\MSVC\\14.38\\include\\cmath", True),
        ("C:\\Program Files (x86)\\Windows Kits\\10\\Include\\ucrt\\math.h", True),
        ("/sw/spack/opt/cuda-12.1.0-k2x/include/cuda_fp16.hpp", True),
        ("/srv/tools/include/cooperative_groups/details/sync.h", True),
        ("/opt/nvidia/hpc_sdk/Linux_x86_64/24.3/compilers/include-stdpar/thrust/for_each.h", True),
        ("../third_party/include/cub/agent/agent_scan.cuh", True),
        ("/home/me/cutlass/include/cute/algorithm/copy.hpp", True),
        ("/home/me/cccl/cub/cub/agent/agent_scan.cuh", False),
        ("/home/me/cuda-project/include/tile.cuh", False),
        ("/home/me/cuda/include/tile.cuh", False),
        ("/home/me/nvidia/src/include/reduce.hpp", False),
        ("include/tile.cuh", False),
    ],
)
def test_what_a_library_is(path: str, library: bool) -> None:
    assert is_library(path) is library
