# SPDX-License-Identifier: Apache-2.0
"""Every instruction's location and inline chain against ``nvdisasm -gi``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from tests.kernels import KERNELS, compile_kernel, compile_text, nvdisasm_path, wheel_file

from gpadvisor.cubin import Cubin, read_cubin, section_lines
from gpadvisor.model.program import LineEntry

pytestmark = [pytest.mark.toolkit, pytest.mark.nvdisasm]

Chain = tuple[tuple[str, int], ...]  # innermost first

_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)", line (\d+)')
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_CODE = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+\S")

DEEP = """
#define TWICE(x) ((x) + (x))
template <int N> struct Power {
    template <typename T> static __device__ __forceinline__ T of(T x) { return x * Power<N - 1>::of(x); }
};
template <> struct Power<0> {
    template <typename T> static __device__ __forceinline__ T of(T) { return T(1); }
};
template <typename F> __device__ __forceinline__ float apply(F f, float x) {
    return f(x) + TWICE(f(x + 1.0f));
}
__device__ __noinline__ float called(float x, int n) {
    for (int i = 0; i < n; i++) x = apply([=](float y) { return Power<4>::of(y) / (y + i); }, x);
    return x;
}
template <typename T> __global__ void deep(T *a, int n) {
    __shared__ T tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = Power<3>::of(a[i]);
    __syncthreads();
    for (int j = 0; j < n; j++) {
        if (tile[j & 127] > T(2)) a[i] += called(float(tile[j & 127]), n);
        else a[i] -= apply([](float y) { return sinf(y); }, float(a[j]));
    }
}
template __global__ void deep<float>(float *, int);
template __global__ void deep<double>(double *, int);
"""

CUB = """
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
extern "C" __global__ void sort(int *d) {
    using Sort = cub::BlockRadixSort<int, 128, 4>;
    __shared__ typename Sort::TempStorage storage;
    int keys[4];
    for (int i = 0; i < 4; i++) keys[i] = d[threadIdx.x * 4 + i];
    Sort(storage).Sort(keys);
    for (int i = 0; i < 4; i++) d[threadIdx.x * 4 + i] = keys[i];
}
extern "C" __global__ void scan(float *d) {
    using Scan = cub::BlockScan<float, 256>;
    __shared__ typename Scan::TempStorage storage;
    float out;
    Scan(storage).InclusiveSum(d[threadIdx.x], out);
    d[threadIdx.x] = out;
}
"""


def printed(text: str) -> dict[str, dict[int, tuple[Chain, bool]]]:
    """By section and instruction: the chain in force, and whether it was printed right before.

    nvdisasm prints a chain only where the innermost place changes, even across sections.
    """
    found: dict[str, dict[int, tuple[Chain, bool]]] = {}
    current: dict[int, tuple[Chain, bool]] | None = None
    chain: Chain = ()
    pending: list[str] = []
    for row in text.splitlines():
        if (section := _SECTION.match(row)) is not None:
            current, pending = found.setdefault(section[1], {}), []
        elif "//## File" in row:
            pending.append(row)
        elif current is not None and (code := _CODE.match(row)) is not None:
            if pending:
                chain = _last_chain(pending)
            current[int(code[1], 16) // 16] = chain, bool(pending)
            pending = []
    return found


def _last_chain(rows: list[str]) -> Chain:
    """The last of several chains at one address; a chain ends with a row that was not inlined."""
    groups: list[list[str]] = [[]]
    for row in rows:
        groups[-1].append(row)
        if "inlined at" not in row:
            groups.append([])
    last = next(group for group in reversed(groups) if group)
    places = [_PLACE.findall(row) for row in last]
    found = [places[0][0], *(row[1] for row in places if len(row) > 1)]
    return tuple((path, int(number)) for path, number in found)


def own(entry: LineEntry | None) -> Chain:
    if entry is None:
        return ()
    places = [entry.location, *(frame.call_site for frame in entry.inline)]
    return tuple((place.file, place.line) for place in places)


def compare(data: bytes, folder: Path) -> tuple[int, int, list[str]]:
    """Instructions compared, those with a chain, and the differences."""
    path = folder / "lines.cubin"
    path.write_bytes(data)
    tool = nvdisasm_path()
    assert tool is not None
    done = subprocess.run([tool, "-gi", "-c", path], capture_output=True, text=True, check=True, timeout=120)
    expected = printed(done.stdout)
    cubin: Cubin = read_cubin(data)
    total, inlined, wrong = 0, 0, []
    for section in cubin.sections:
        entries = section_lines(cubin, section)
        assert any(entries), section.name
        for index, entry in enumerate(entries):
            mine = own(entry)
            theirs, told = expected[section.name][index]
            inlined += len(mine) > 1
            total += 1
            if mine[: None if told else 1] != theirs[: None if told else 1]:
                wrong.append(f"{section.name}+{index * 16:#x}: {mine} instead of {theirs}")
    return total, inlined, wrong


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_100", "sm_120"])
def test_deep_inlining(arch: str, tmp_path: Path) -> None:
    total, inlined, wrong = compare(compile_text(DEEP, "/src/deep.cu", arch), tmp_path)
    assert wrong == []
    assert total > 300
    assert inlined > 100


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_our_kernels(name: str, tmp_path: Path) -> None:
    arch = next(iter(KERNELS[name].architectures))
    arch = "sm_80" if "sm_80" in KERNELS[name].architectures else arch
    total, _, wrong = compare(compile_kernel(name, "before", arch), tmp_path)
    assert wrong == []
    assert total > 0


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_a_template_library(arch: str, tmp_path: Path) -> None:
    include = wheel_file("include")
    if include is None or not (include / "cccl" / "cub").is_dir():
        pytest.skip("the nvidia-cuda-cccl wheel is not installed")
    options = (f"--include-path={include}", f"--include-path={include / 'cccl'}", "--std=c++17")
    total, inlined, wrong = compare(compile_text(CUB, "/src/cub.cu", arch, *options), tmp_path)
    assert wrong == []
    assert inlined > total // 2


def test_function_names_of_a_chain() -> None:
    cubin = read_cubin(compile_text(DEEP, "/src/deep.cu", "sm_80"))
    names = {
        frame.function
        for section in cubin.sections
        for entry in section_lines(cubin, section)
        if entry is not None
        for frame in entry.inline
    }
    assert None not in names
    assert any(name is not None and "Power<3>::of" in name for name in names)
