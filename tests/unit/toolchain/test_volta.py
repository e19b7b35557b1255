# SPDX-License-Identifier: Apache-2.0
"""sm_70, which CUDA 13 knows no more, through the wheel of NVRTC 12."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpadvisor.cubin import read_cubin, section_lines
from gpadvisor.toolchain.compile import compile_source
from gpadvisor.toolchain.nvrtc import find_nvrtc

_SOURCE = """\
extern "C" __global__ void scale(float *x, float by) {
    x[threadIdx.x] *= by;
}
"""


pytestmark = [
    pytest.mark.toolkit,
    pytest.mark.skipif(
        all(copy.major != 12 for copy in find_nvrtc()), reason="toolkit: no NVRTC 12 (nvidia-cuda-nvrtc-cu12)"
    ),
]


def test_a_source_compiles_for_volta(tmp_path: Path) -> None:
    source = tmp_path / "scale.cu"
    source.write_text(_SOURCE)
    made = compile_source(source, arch="sm_70")
    cubin = read_cubin(made.cubin)
    assert (made.arch, cubin.arch) == ("sm_70", "sm_70")
    (section,) = cubin.sections
    assert section.name == "scale"
    entries = [entry for entry in section_lines(cubin, section) if entry is not None]
    assert {(Path(entry.location.file).name, entry.location.line) for entry in entries} >= {("scale.cu", 2)}


def test_limits_of_numbers_are_known_beside_the_headers_of_cuda_12(tmp_path: Path) -> None:
    source = tmp_path / "limits.cu"
    source.write_text(
        "#include <cfloat>\n#include <climits>\n__global__ void k(double *x) {\n"
        "    *x = FLT_MAX + DBL_EPSILON + FLT_DIG + INT_MAX;\n}\n"
    )
    assert compile_source(source, arch="sm_70").arch == "sm_70"
